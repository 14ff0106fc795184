"""The paired bootstrap over seeds and sentences: entity F1 from the tags that were kept."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.predictions import pack_predictions, write_predictions
from benchmarks.results import RunResult
from fedsim.data import IGNORED, Client, Examples, Subset
from reports.evidence.paired import UNPAIRED, difference

SCORE, THEIRS = "test/entity_f1", "test/entity_f1_concatenated"
N, TAGS = 400, 5  # sentences of a central test set


def client(number: int, tags: list[list[int]]) -> Client:
    """One scored on sentences of which the tokens [CLS], the words and [SEP] are there."""
    targets = np.array([target for own in tags for target in (IGNORED, *own, IGNORED)])
    offsets = np.concatenate([[0], np.cumsum([len(own) + 2 for own in tags])])
    tokens = np.zeros(len(targets), np.int32)
    examples = Examples(tokens, tokens, offsets, np.zeros(len(tags)), 0, targets)
    whole = Subset(examples, np.arange(len(tags)))
    return Client(number, whole, {"test": whole})


def logits(predicted: list[list[int]]) -> np.ndarray:
    found = np.zeros((len(predicted), 2 + max(map(len, predicted)), TAGS), np.float32)
    for row, own in enumerate(predicted):
        found[row, np.arange(1, len(own) + 1), own] = 1
    return found


def keep(folder: Path, record: RunResult, tags: list[list[list[int]]], answers: list[list[list[int]]]) -> RunResult:
    """The record with a file of answers of clients on test sets of their own."""
    clients = [client(number, own) for number, own in enumerate(tags)]
    last = len(record.rounds)
    found = {last: {f"{number}/test": logits(own) for number, own in enumerate(answers)}}
    content = pack_predictions(clients, found, last)
    write_predictions(folder, record, content)
    own = tuple({"client": number, "train": 80, "test": len(part)} for number, part in enumerate(tags))
    kept = {"sha256": hashlib.sha256(content).hexdigest()}
    return dataclasses.replace(record, clients=own, predictions=kept, folder=folder)


def central(record: RunResult) -> RunResult:
    inputs = {**record.inputs, "data": {**record.inputs["data"], "central": {"test": N}}}
    return dataclasses.replace(record, inputs=inputs)


@pytest.fixture
def pairs(record_of: Callable[..., RunResult], tmp_path: Path) -> list[tuple[RunResult, RunResult]]:
    """Two seeds on one test set, one entity a sentence, found in half of the sentences, and in a quarter of these."""
    tags = [[1, 2, 0] if row % 3 else [0, 3] for row in range(N)]
    nothing = [[0] * len(own) for own in tags]
    found, sides = [], list(zip(tags, nothing, strict=True))
    for seed in range(2):
        both = []
        for row, every in (("fedsplitbert", 2), ("fedavg", 8)):
            answers = [own if number % every == 0 else its for number, (own, its) in enumerate(sides)]
            value = 2 * (1 / every) / (1 + 1 / every)
            record = record_of(row, "qqp", {SCORE: value, THEIRS: value}, seed=seed, errors={SCORE: 0.02, THEIRS: 0.02})
            both.append(keep(tmp_path, central(record), [tags], [answers]))
        found.append(tuple(both))
    return found


def test_the_difference_and_its_error_are_those_of_sentences(pairs: list[tuple[RunResult, RunResult]]) -> None:
    """The seeds agree, so that the error is the test set's: of f(p) = 2p / (1 + p) at p and q, which are nested."""
    found = difference(pairs, SCORE)
    p, q = 1 / 2, 1 / 8
    assert found.value == pytest.approx(100 * (2 * p / (1 + p) - 2 * q / (1 + q)))
    slopes = [2 / (1 + share) ** 2 for share in (p, q)]
    variance = slopes[0] ** 2 * p * (1 - p) + slopes[1] ** 2 * q * (1 - q) - 2 * slopes[0] * slopes[1] * q * (1 - p)
    assert found.error == pytest.approx(100 * math.sqrt(variance / N), rel=0.1)
    assert found.note == ""
    assert found.interval is not None


def test_the_authors_own_f1_is_no_sum_over_sentences_and_stays_unpaired(
    pairs: list[tuple[RunResult, RunResult]],
) -> None:
    assert difference(pairs, THEIRS).note == UNPAIRED
