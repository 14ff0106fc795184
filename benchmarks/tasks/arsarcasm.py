"""ArSarcasm-v2 (Abu Farha, Zaghouani and Magdy, 2021): the sentiment of Arabic tweets, for FedFreezeBERT."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.tasks import generated
from benchmarks.tasks.base import Task, TextExamples, by_digest
from benchmarks.tasks.rows import TableReader
from benchmarks.tasks.sources import Files, Part

SHARES = (0.37, 0.46, 0.17)  # of the real training set
RECIPE = generated.Recipe(SHARES, (generated.BLAME, generated.HEDGING, generated.PRAISE))
generate = partial(
    generated.generated_data,
    "arsarcasm",
    partial(generated.classified, RECIPE, nouns=generated.NOUNS),
    {"pool": 240, "test": 120},
)


def _notes(parts: list[TextExamples]) -> tuple[str, ...]:
    empty = sum(not text.strip() for examples in parts for (text,) in examples.texts)
    return (f"empty texts: {empty}",) if empty else ()


FILES = Files(
    "ArSarcasm-v2",
    (Part("training_data.csv", "train"), Part("testing_data.csv", "test", "test", central=True)),
    layouts=("ArSarcasm-v2/{file}", "{file}"),  # as in the authors' repository, github.com/iabufarha/ArSarcasm-v2
    wanted="the authors' CSV files, ArSarcasm-v2/training_data.csv and testing_data.csv",
    reader=TableReader(("tweet",), "sentiment", ("NEG", "NEU", "POS"), blank=True),  # empty tweets count, with a note
    repository="arbml/ArSarcasm_v2",  # a copy by ARBML; the authors' copy on the hub lacks this version
    notes=_notes,
)


SENTIMENT = Task(
    id="arsarcasm",
    name="ArSarcasm-v2",
    family="arsarcasm",
    labels=("negative", "neutral", "positive"),
    metrics=("f1_pn", "accuracy"),
    load=FILES.load,
    find=FILES.find,
    generate=generate,
    genuine=by_digest("486357409e887d47a8a8732348868cdd21cb8f830daa27248e3dfdd0d269b373"),
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
)
