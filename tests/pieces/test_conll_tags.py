"""Token classification from CoNLL columns: a word and its tag a line, an empty line behind each sentence."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from benchmarks.backbones import build_tokenizer, load_tokenizer, locate
from benchmarks.encoding import encode
from benchmarks.federation import build_clients, load_inputs
from benchmarks.runner import run_cell
from benchmarks.scoring import scores
from benchmarks.spec import Cell, Training
from benchmarks.tasks import DataSource, Examples, Task, TaskData
from benchmarks.tasks.words import ADJECTIVES, NOUNS, VERBS
from fedsim.data import IGNORED, Subset
from fedsim.objectives import build_objective

THINGS = ("O", "B-thing", "I-thing")
KINDS = {
    "JNLPBA": ("protein", "DNA", "RNA", "cell_type", "cell_line"),
    "SciERC": ("Generic", "Task", "Material", "Method", "Metric", "OtherScientificTerm"),
}


def read_columns(path: Path, tags: tuple[str, ...]) -> Examples:
    """The sentences of a file: the first column is the word, the last one its tag."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if "-DOCSTART-" not in line]
    sentences = [list(rows) for filled, rows in groupby(lines, bool) if filled]
    texts = tuple(tuple(row[0] for row in rows) for rows in sentences)
    ids = tuple(tuple(tags.index(row[-1]) for row in rows) for rows in sentences)
    return Examples(texts, np.zeros(len(texts), dtype=np.int64), ids)


def columns(name: str, tags: tuple[str, ...], file: str, sentences: int | None = None) -> Task:
    """A task from a file below the data directory, or from its first sentences."""

    def load(source: DataSource) -> TaskData:
        found = read_columns(source.folder / file, tags)
        return TaskData(Examples(found.texts[:sentences], found.labels[:sentences], found.tags[:sentences]), file)

    kind = "token_classification"
    # token_recovery: the share of the tokens asked for whose id is right
    return Task(name, name, "columns", None, ("token_recovery",), load, generated, objective=kind, tags=tags)


def generated(seed: int, sentences: int = 120) -> TaskData:
    """A thing is a noun with the adjective before it; a fifth of the nouns are compounds, of several tokens."""
    rng = np.random.default_rng(seed)
    texts, tags = [], []
    for _ in range(sentences):
        words, own = [], []
        for _ in range(rng.integers(1, 5)):
            adjective = [rng.choice(ADJECTIVES)] * rng.integers(0, 2)
            noun = "-".join(rng.choice(NOUNS, size=1 + (rng.random() < 0.2)))
            words += ["the", *adjective, noun, rng.choice(VERBS)]
            own += [0, *([1, 2] if adjective else [1]), 0]
        texts.append(tuple(map(str, words)))
        tags.append(tuple(own))
    return TaskData(Examples(tuple(texts), np.zeros(sentences, dtype=np.int64), tuple(tags)), "generated")


def a_cell(task: Task, algorithm: str = "fedavg", **options: object) -> Cell:
    training = Training(4, learning_rate=3e-3, batch_size=8, local_epochs=2, max_length=32, precision="fp32")
    shared = {"clients": 2, "partition": {"scheme": "equal"}, "training": training, "seed": 0, "head": "tokens"}
    return Cell("demo", task.id, 1, task.family, "tiny", algorithm=algorithm, options=options, **shared)


def as_columns(words: tuple[str, ...], tags: tuple[int, ...]) -> str:
    return "".join(f"{word}\tX\t{THINGS[tag]}\n" for word, tag in zip(words, tags, strict=True))


def unwatched(event: object) -> None: ...


@pytest.fixture
def task(known_task, settings):
    pool, file = generated(0).pool, settings.data_dir / "train.txt"
    file.write_text("-DOCSTART-\tO\n\n" + "\n".join(map(as_columns, pool.texts, pool.tags)), encoding="utf-8")
    return known_task(columns("things", THINGS, "train.txt"))


def test_a_file_is_read_as_it_was_written(task, settings):
    read, written = task.load(DataSource(settings.data_dir)).pool, generated(0).pool
    assert (read.texts, read.tags) == (written.texts, written.tags)


def test_a_cell_learns_the_tags(task, settings):
    record = run_cell(a_cell(task, embeddings="global"), settings, unwatched)
    floor = run_cell(a_cell(task, "local_majority"), settings, unwatched)
    right, most_frequent = (each.rounds[-1].scores["test"]["token_recovery"] for each in (record, floor))
    assert right > most_frequent + 0.2
    assert record.rounds[-1].train_loss < record.rounds[0].train_loss / 2
    assert floor.sampling_errors["test"]["token_recovery"] > 0


def test_words_are_asked_for_at_their_first_tokens_and_nothing_else_is_scored(task, settings):
    clients, _ = build_clients(a_cell(task), load_inputs(a_cell(task), settings), settings)
    parts = [subset for client in clients for subset in (client.train, *client.evaluation.values())]
    words = sum(len(text) for text in generated(0).pool.texts)
    assert sum((subset.references != IGNORED).sum() for subset in parts) == words
    assert sum(subset.examples.lengths[subset.indices].sum() for subset in parts) > words + 2 * len(generated(0).pool)
    objective, subset = build_objective("token_classification", len(THINGS)), parts[0]
    answers = np.random.default_rng(0).random(objective.shape(subset))  # at padding and further tokens: anything
    rows, places = (subset.references != IGNORED).nonzero()
    answers[rows, places, subset.references[rows, places]] = 2
    assert scores(task.metrics, objective, answers, subset) == {"token_recovery": 1.0}


@pytest.mark.parametrize("long_texts", ["cut", "blocks"])
def test_long_sentences_keep_their_words_tags(task, long_texts):
    tokenizer, pool = build_tokenizer(locate("tiny")), generated(0).pool
    encoded = encode(pool, tokenizer, 9, replace(task, long_texts=long_texts))
    examples = encoded.examples
    asked = examples.targets != IGNORED
    ids = iter(zip(examples.tokens[asked], examples.targets[asked], strict=True))
    for text, tags in zip(pool.texts, pool.tags, strict=True):
        first = [tokenizer(word, add_special_tokens=False).input_ids[0] for word in text]
        expected = list(zip(first, tags, strict=True))
        if long_texts == "cut":  # what fits beside [CLS] and [SEP]
            whole = tokenizer(list(text), is_split_into_words=True).word_ids()[1:-1][:7]
            expected = expected[: whole[-1] + 1]
        assert [next(ids) for _ in expected] == expected
    assert next(ids, None) is None


@pytest.mark.parametrize("corpus", KINDS)
def test_real_columns(data_dir, encoder_dir, known_task, settings, corpus):
    tags = ("O", *(f"{part}-{kind}" for kind in KINDS[corpus] for part in "BI"))
    task = known_task(columns(corpus, tags, f"{corpus}/dev.txt", sentences=40))
    whole = read_columns(data_dir / corpus / "dev.txt", tags)
    assert {tag for own in whole.tags for tag in own} == set(range(len(tags)))
    found = encode(whole, load_tokenizer(encoder_dir), 512, task).examples
    targets = Subset(found, np.arange(len(whole))).references
    assert [tuple(row[row != IGNORED]) for row in targets] == list(whole.tags)
    places = replace(settings, data_dir=data_dir, backbone=str(encoder_dir))
    record = run_cell(a_cell(task, "fedfreezebert"), places, unwatched)
    assert record.rounds[-1].train_loss < record.rounds[0].train_loss
    assert 0 < record.rounds[-1].scores["test"]["token_recovery"] < 1
