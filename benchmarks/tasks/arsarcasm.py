"""ArSarcasm-v2 (Abu Farha, Zaghouani and Magdy, 2021): the sentiment of Arabic tweets, for FedFreezeBERT."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.tasks.base import Examples, Task, TaskData
from benchmarks.tasks.generated import Recipe, classified, generated_data
from benchmarks.tasks.passages import unlabelled
from benchmarks.tasks.rows import Table
from benchmarks.tasks.sources import Files, Part
from benchmarks.tasks.words import BLAME, HEDGING, NOUNS, PRAISE

# The shares are those of the real training set.
GENERATED = partial(classified, Recipe((0.37, 0.46, 0.17), (BLAME, HEDGING, PRAISE)), nouns=NOUNS)
generate = partial(generated_data, "arsarcasm", GENERATED, {"pool": 240, "test": 120})


def _notes(parts: list[Examples]) -> tuple[str, ...]:
    empty = sum(not text.strip() for examples in parts for (text,) in examples.texts)
    return (f"empty texts: {empty}",) if empty else ()


FILES = Files(
    "ArSarcasm-v2",
    (Part("training_data.csv", "train"), Part("testing_data.csv", "test", "test", central=True)),
    layouts=("ArSarcasm-v2/{file}", "{file}"),  # as in the authors' repository, github.com/iabufarha/ArSarcasm-v2
    wanted="the authors' CSV files, ArSarcasm-v2/training_data.csv and testing_data.csv",
    reader=Table(("tweet",), "sentiment", ("NEG", "NEU", "POS"), blank=True),  # an empty tweet is an example, and noted
    repository="arbml/ArSarcasm_v2",  # a copy by ARBML; the authors published none of this version
    notes=_notes,
)


def distinct_texts(data: TaskData) -> TaskData:
    """The training tweets alone, without labels and each once, so that none is held out and trained on as well."""
    texts = tuple(dict.fromkeys(texts for texts in data.pool.texts if any(text.strip() for text in texts)))
    return replace(data, pool=unlabelled(texts), central={})


SENTIMENT = Task(
    id="arsarcasm",
    name="ArSarcasm-v2",
    family="arsarcasm",
    labels=("negative", "neutral", "positive"),
    metrics=("f1_pn", "accuracy"),
    load=FILES.load,
    generate=generate,
)
TASKS = (
    SENTIMENT,
    replace(
        SENTIMENT,
        id="arsarcasm-texts",
        name="ArSarcasm-v2, the texts themselves",
        metrics=("token_recovery", "text_recovery"),
        objective="token_recovery",
    ),
    replace(
        SENTIMENT,
        id="arsarcasm-masked",
        name="ArSarcasm-v2, masked tokens of the training tweets",
        labels=None,
        metrics=("perplexity",),
        load=lambda source: distinct_texts(FILES.load(source)),
        generate=lambda seed: distinct_texts(generate(seed)),
        objective="masked_lm",
    ),
)
