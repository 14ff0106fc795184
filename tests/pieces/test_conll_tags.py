"""Token classification from CoNLL columns: a word and its tag a line, an empty line behind each sentence."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from benchmarks.runner import run_cell
from benchmarks.spec import Cell, Training
from benchmarks.tasks import DataSource, Examples, Task, TaskData
from benchmarks.tasks.words import ADJECTIVES, NOUNS, VERBS

TAGS = ("O", "B-thing", "I-thing")
TAGGED = (TAGS, "train.txt")


def read_columns(path: Path, tags: tuple[str, ...]) -> Examples:
    """Sentences of a file: the first column is the word, the last one its tag."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if "-DOCSTART-" not in line]
    sentences = [list(rows) for filled, rows in groupby(lines, bool) if filled]
    texts = tuple(tuple(row[0] for row in rows) for rows in sentences)
    ids = tuple(tuple(tags.index(row[-1]) for row in rows) for rows in sentences)
    return Examples(texts, np.zeros(len(texts), dtype=np.int64), ids)


def columns_task(name: str, tags: tuple[str, ...], file: str) -> Task:
    def load(source: DataSource) -> TaskData:
        return TaskData(read_columns(source.folder / file, tags), f"folder: {file}")

    return Task(
        id=name,
        name=name,
        family="columns",
        labels=None,
        metrics=("token_recovery",),  # the share of tokens with the right id
        load=load,
        generate=generated,
        objective="token_classification",
        tags=tags,
    )


def generated(seed: int, sentences: int = 120) -> TaskData:
    """A thing is a noun, or a noun behind an adjective; a fifth of the nouns are compounds, of several tokens."""
    rng = np.random.default_rng(seed)
    texts, tags = [], []
    for _ in range(sentences):
        words, own = [], []
        for _ in range(rng.integers(1, 5)):
            noun = "-".join(rng.choice(NOUNS, size=1 + (rng.random() < 0.2)))
            adjectives = list(rng.choice(ADJECTIVES, size=rng.integers(0, 2)))
            words += ["the", *adjectives, noun, str(rng.choice(VERBS))]
            own += [0, *([1, 2] if adjectives else [1]), 0]
        texts.append(tuple(map(str, words)))
        tags.append(tuple(own))
    return TaskData(Examples(tuple(texts), np.zeros(sentences, dtype=np.int64), tuple(tags)), "generated")


def a_cell(task: Task, **changes: object) -> Cell:
    training = Training(rounds=3, learning_rate=3e-3, batch_size=8, max_length=32, precision="fp32")
    values = {"backbone": "tiny", "algorithm": "fedavg", "options": {"embeddings": "global"}, "training": training}
    split = {"clients": 2, "partition": {"scheme": "equal"}, "seed": 0}
    return Cell("demo", task.id, task.version, task.family, **values, **split, head="tokens", **changes)


@pytest.fixture
def task(known_task, settings):
    rows = zip(*(getattr(generated(0).pool, column) for column in ("texts", "tags")), strict=True)
    sentences = ["".join(f"{word}\tX\t{TAGS[tag]}\n" for word, tag in zip(*row, strict=True)) for row in rows]
    (settings.data_dir / "train.txt").write_text("-DOCSTART-\tO\n\n" + "\n".join(sentences), encoding="utf-8")
    return known_task(columns_task("columns", TAGS, "train.txt"))


def test_a_file_is_read_as_it_was_written(task, settings):
    read, written = task.load(DataSource(settings.data_dir)).pool, generated(0).pool
    assert (read.texts, read.tags) == (written.texts, written.tags)


def test_a_cell_learns_the_tags(task, settings):
    record = run_cell(a_cell(task), settings, lambda event: None)
    right = [entry.scores["test"]["token_recovery"] for entry in record.rounds]
    floor = run_cell(replace_algorithm(a_cell(task)), settings, lambda event: None)
    most_frequent = floor.rounds[-1].scores["test"]["token_recovery"]
    assert most_frequent < 0.7
    assert right[-1] > 0.9
    assert record.rounds[-1].train_loss < record.rounds[0].train_loss
    assert 0 < record.sampling_errors["test"]["token_recovery"] < 0.05
