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

SCORE, CONCATENATED = "test/entity_f1", "test/entity_f1_concatenated"
N, WORDS, TAGS = 400, 3, 5  # sentences of a central test set, their words, and tags


def keep(folder: Path, record: RunResult, tags: np.ndarray, predicted: np.ndarray) -> RunResult:
    """The record of one client with a file of its answers; sentences are [CLS], the words and [SEP]."""
    targets = np.pad(tags, ((0, 0), (1, 1)), constant_values=IGNORED)
    offsets = np.arange(N + 1) * targets.shape[1]
    tokens = np.zeros(targets.size, np.int32)
    whole = Subset(Examples(tokens, tokens, offsets, np.zeros(N), 0, targets.ravel()), np.arange(N))
    logits = np.pad(np.eye(TAGS, dtype=np.float32)[predicted], ((0, 0), (1, 1), (0, 0)))
    last = len(record.rounds)
    content = pack_predictions([Client(0, whole, {"test": whole})], {last: {"0/test": logits}}, last)
    write_predictions(folder, record, content)
    return dataclasses.replace(
        record,
        clients=({"client": 0, "train": 80, "test": N},),
        inputs={**record.inputs, "data": {**record.inputs["data"], "central": {"test": N}}},
        predictions={"sha256": hashlib.sha256(content).hexdigest()},
        folder=folder,
    )


def test_the_error_of_a_difference_is_that_of_sentences(record_of: Callable[..., RunResult], tmp_path: Path) -> None:
    """One entity a sentence, found in half of the sentences, and in an eighth: F1 is f(p) = 2p / (1 + p), nested."""
    tags = np.array([[1, 2, 0] if row % 3 else [0, 3, 0] for row in range(N)])
    p, q = 1 / 2, 1 / 8
    pairs = []
    for seed in range(2):  # which agree, so that the error is the test set's
        both = []
        for row, every in (("fedsplitbert", 2), ("fedavg", 8)):
            predicted = np.where((np.arange(N) % every == 0)[:, None], tags, 0)
            scores = dict.fromkeys((SCORE, CONCATENATED), 2 / (every + 1))
            errors = dict.fromkeys(scores, 0.02)
            record = record_of(row, "qqp", scores, seed=seed, errors=errors)
            both.append(keep(tmp_path, record, tags, predicted))
        pairs.append((both[0], both[1]))
    found = difference(pairs, SCORE)
    assert found.value == pytest.approx(100 * (2 * p / (1 + p) - 2 * q / (1 + q)))
    slopes = [2 / (1 + share) ** 2 for share in (p, q)]
    variance = slopes[0] ** 2 * p * (1 - p) + slopes[1] ** 2 * q * (1 - q) - 2 * slopes[0] * slopes[1] * q * (1 - p)
    assert found.error == pytest.approx(100 * math.sqrt(variance / N), rel=0.1)
    assert (found.note, difference(pairs, CONCATENATED).note) == ("", UNPAIRED)  # no sum over sentences
