"""Generated examples with the real tasks' schemas and approximate label distributions, and a quickly learnable signal.

As in real data, labels correlate with certain words, and with the number of words that a pair shares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.tasks.base import TaskData, TextExamples


def _split(block: str) -> tuple[str, ...]:
    return tuple(block.split())


NOUNS = _split(
    """
    actor apple artist author baker band bank beach bear bell bike bird boat book bottle box boy branch bread bridge
    brother bus cake camera captain car castle cat chair chief child church city clock cloud coach coat coffee cook
    corner cow crowd cup daughter desk doctor dog door dream driver duck engine farm farmer father field fire fish
    flag flower forest fox friend garden gate girl glass guard guest hammer harbor hat hill horse hotel house island
    jacket judge key king kitchen knife ladder lake lamp lawyer leaf letter library lion lock machine map market mayor
    mirror moon mother mountain
    """
)
OTHER_NOUNS = _split(
    """
    museum nurse ocean office orange paper park pencil phone piano picture pilot plane planet plate player poet pond
    queen rabbit radio rain ring river road robot roof room rope sailor school seed sheep ship shirt shoe shop singer
    sister snow soldier song spoon star station stone storm street student sugar sun table tailor teacher temple tent
    ticket tiger tower town train tree truck uncle valley village wall watch water wheel window winter wolf writer
    """
)
VERBS = _split(
    """
    asks brings builds buys calls carries catches cleans closes counts draws drops feeds fills finds follows gets
    guides helps hears holds joins keeps kicks lifts likes makes meets moves names opens paints passes pays plays
    pulls pushes reads sees sells sends shows stops takes teaches tells touches turns uses visits wants washes
    """
)
ADJECTIVES = _split(
    """
    big blue brown clean cold dark deep dry early fast flat full green heavy high hot large late light little long
    loud low narrow new old quick quiet red round sharp short slow small soft square tall thin warm wet wide young
    """
)
ARTICLES = ("the", "a", "this", "that")
QUESTIONS = ("who", "what", "when", "where", "why", "how")

# Words that indicate the label.
PRAISE = ("charming", "delightful", "funny", "great", "lovely", "wonderful")
BLAME = ("awful", "boring", "clumsy", "dull", "stupid", "terrible")
CORRECT = ("came", "drank", "gave", "ran", "sang", "took")
INCORRECT = ("comed", "drinked", "gived", "runned", "singed", "taked")
AGREEING = ("also", "exactly", "indeed", "likewise", "same", "truly")
OPPOSING = ("differently", "instead", "never", "not", "opposite", "unlike")
HEDGING = ("likely", "maybe", "might", "perhaps", "possibly", "sometimes")

VOCABULARY = (
    *(".", *ARTICLES, *QUESTIONS, *NOUNS, *OTHER_NOUNS, *VERBS, *ADJECTIVES),
    *(*PRAISE, *BLAME, *CORRECT, *INCORRECT, *AGREEING, *OPPOSING, *HEDGING),
)

EXAMPLES = 240
NOISE = 0.1  # share of examples whose text indicates another label or score
MARKERS = 2  # words per text that indicate its label
SCORE_MARKERS = 4
NOUNS_OF_KIND = 6  # per entity type, so that each occurs often
WORDS = (6, 9)  # fewest and most words per text, without markers, question word and full stop


@dataclass(frozen=True)
class Recipe:
    """A recipe for a task's texts; tuples are ordered by label id.

    Args:
        shares: The label distribution.
        markers: Words that indicate each label.
        overlaps: Per label, the share of the second text's words that come from the first; empty for single texts.
        questions: Whether each text is a question.
    """

    shares: tuple[float, ...]
    markers: tuple[tuple[str, ...], ...]
    overlaps: tuple[float, ...] = ()
    questions: tuple[bool, bool] = (False, False)


UNEQUAL_EQUAL = (OPPOSING, AGREEING)
RECIPES = {
    "cola": Recipe((0.3, 0.7), (INCORRECT, CORRECT)),
    "sst2": Recipe((0.44, 0.56), (BLAME, PRAISE)),
    "mrpc": Recipe((0.33, 0.67), UNEQUAL_EQUAL, (0.3, 0.8)),
    "qqp": Recipe((0.63, 0.37), UNEQUAL_EQUAL, (0.2, 0.8), (True, True)),
    "mnli": Recipe((1 / 3, 1 / 3, 1 / 3), (AGREEING, HEDGING, OPPOSING), (0.8, 0.3, 0.6)),
    "rte": Recipe((0.5, 0.5), (AGREEING, OPPOSING), (0.8, 0.3)),
    "qnli": Recipe((0.5, 0.5), (AGREEING, OPPOSING), (0.7, 0.2), (True, False)),
    "wnli": Recipe((0.51, 0.49), UNEQUAL_EQUAL, (0.4, 0.7)),
}


def generate_glue(task_id: str, seed: int) -> TaskData:
    """Examples in a GLUE task's schema, from a seed (>= 0).

    MNLI's mismatched set is a quarter as large and has other nouns. Texts are words of VOCABULARY with single spaces.
    """
    rng = np.random.default_rng([seed, *task_id.encode()])
    make = _scored if task_id == "stsb" else partial(classified, RECIPES[task_id])
    pool = make(EXAMPLES, NOUNS, rng)
    held_out = {"mismatched": make(EXAMPLES // 4, OTHER_NOUNS, rng)} if task_id == "mnli" else {}
    return TaskData(pool=pool, origin=f"generated from seed {seed}", held_out=held_out)


def classified(recipe: Recipe, examples: int, nouns: tuple[str, ...], rng: np.random.Generator) -> TextExamples:
    """Examples of a recipe about the given nouns, with label counts that follow its shares."""
    shares = np.array(recipe.shares)
    # Not random: the counts follow the shares for every seed.
    labels = np.searchsorted(np.cumsum(shares[:-1]), (np.arange(examples) + 0.5) / examples)
    labels = rng.permutation(labels).astype(np.int64)
    texts: list[tuple[str, ...]] = []
    for label in labels:
        shown = label
        if rng.random() < NOISE:
            shown = rng.choice([other for other in range(len(shares)) if other != label])
        marked = tuple(rng.choice(recipe.markers[shown], size=MARKERS))
        if not recipe.overlaps:
            texts.append((_text(_words(nouns, rng), marked, False, rng),))
        else:
            texts.append(_pair(nouns, recipe.overlaps[shown], marked, recipe.questions, rng))
    return TextExamples(texts=tuple(texts), labels=labels)


def _scored(examples: int, nouns: tuple[str, ...], rng: np.random.Generator) -> TextExamples:
    """Pairs with scores from 0 to 5 in steps of 0.2, as uniformly as the number of examples allows."""
    labels = rng.permutation(np.resize(np.arange(26), examples)) / 5
    texts = []
    for label in labels:
        likeness = rng.random() if rng.random() < NOISE else label / 5
        marked = tuple(
            rng.choice(AGREEING if slot < round(likeness * SCORE_MARKERS) else OPPOSING)
            for slot in range(SCORE_MARKERS)
        )
        texts.append(_pair(nouns, likeness, marked, (False, False), rng))
    return TextExamples(texts=tuple(texts), labels=labels)


def _pair(
    nouns: tuple[str, ...],
    overlap: float,
    marked: tuple[str, ...],
    questions: tuple[bool, bool],
    rng: np.random.Generator,
) -> tuple[str, str]:
    first, other = _words(nouns, rng), _words(nouns, rng)
    shared = round(overlap * len(other))
    second = [*rng.permutation(first)[:shared], *other[shared:]]
    return _text(first, (), questions[0], rng), _text(second, marked, questions[1], rng)


def _words(nouns: tuple[str, ...], rng: np.random.Generator) -> list[str]:
    pattern = (ARTICLES, ADJECTIVES, nouns, VERBS, ARTICLES, nouns)
    size = rng.integers(WORDS[0], WORDS[1], endpoint=True)
    return [str(rng.choice(pattern[place % len(pattern)])) for place in range(size)]


def _text(chosen: list[str], marked: tuple[str, ...], question: bool, rng: np.random.Generator) -> str:
    """The words, with each marker at a random position."""
    placed = list(chosen)
    for marker in marked:
        placed.insert(int(rng.integers(len(placed), endpoint=True)), marker)
    return " ".join([str(rng.choice(QUESTIONS)), *placed] if question else [*placed, "."])


def generated_data(task_id: str, make: Callable[..., TextExamples], sizes: Mapping[str, int], seed: int) -> TaskData:
    """Examples in a task's schema from a seed (>= 0). sizes: of the pool and each central set, in this order."""
    rng = np.random.default_rng([seed, *task_id.encode()])
    central = {name: make(examples=size, rng=rng) for name, size in sizes.items()}
    return TaskData(pool=central.pop("pool"), origin=f"generated from seed {seed}", central=central)


def tagged(kinds: int, examples: int, rng: np.random.Generator) -> TextExamples:
    """Sentences as words, with the tags O, B- and I- of each type; a fifth of the nouns are compounds.

    An entity is a noun in NOUNS, which determines its type, with the preceding adjective; other nouns are not entities.
    """
    of_kind = [NOUNS[kind::kinds][:NOUNS_OF_KIND] for kind in range(kinds)]
    texts, tags = [], []
    for _ in range(examples):
        text: list[str] = []
        text_tags: list[int] = []
        for _ in range(rng.integers(1, 4, endpoint=True)):
            kind = int(rng.integers(kinds))
            is_entity = rng.random() < 0.7
            nouns = of_kind[kind] if is_entity else OTHER_NOUNS
            adjective = [rng.choice(ADJECTIVES)] * rng.integers(0, 2)
            text += ["the", *adjective, "-".join(rng.choice(nouns, size=1 + (rng.random() < 0.2)))]
            inside = [1 + 2 * kind, 2 + 2 * kind] if is_entity else [0, 0]
            text_tags += [0, *inside[: 1 + len(adjective)]]
            text.append(rng.choice(VERBS))
            text_tags.append(0)
        texts.append(tuple(map(str, text)))
        tags.append(tuple(text_tags))
    return TextExamples(tuple(texts), np.zeros(examples, dtype=np.int64), tuple(tags))
