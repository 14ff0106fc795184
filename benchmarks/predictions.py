"""What a finished cell answered: a safetensors file beside its record, so that scores can be asked for anew.

Of each client and evaluation: which examples of the task's data they are, what is right, and what the model put out
after the last round and after the chosen one, in half precision.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from benchmarks.errors import UserError
from benchmarks.record import RunRecord, write_bytes
from benchmarks.spec import JSON

if TYPE_CHECKING:  # reports read these files without torch
    from fedsim.data import Client
    from fedsim.engine import Answers

SUFFIX = ".predictions.safetensors"
ROUNDS = ("last", "chosen")


@dataclass(frozen=True)
class Predictions:
    """Of one client and evaluation, n examples in the evaluation's order.

    indices: int64 [n], positions in the task's pool, or in the set of the evaluation's name. gold: [n, ...], labels,
    scores or tags. outputs: "last" and "chosen" -> float16 [n, ...], as the objective's answers are.
    """

    indices: np.ndarray
    gold: np.ndarray
    outputs: Mapping[str, np.ndarray]


def file_name(record_name: str) -> str:
    """The name of the file beside a record's."""
    return record_name.removesuffix(".json") + SUFFIX


def write_predictions(
    path: Path, clients: Sequence[Client], last: Answers, chosen: Answers, rounds: Mapping[str, int]
) -> dict[str, JSON]:
    """Write what was answered after the last and the chosen round; returns what the record says of the file.

    rounds: "last" and "chosen" -> their numbers.
    """
    from fedsim.engine import part_name

    arrays: dict[str, np.ndarray] = {}
    for client in clients:
        for evaluation, subset in client.evaluation.items():
            part = part_name(client, evaluation)
            arrays[f"{part}/indices"] = np.asarray(subset.indices, dtype=np.int64)
            arrays[f"{part}/gold"] = np.ascontiguousarray(subset.references)
            for name, answers in zip(ROUNDS, (last, chosen), strict=True):
                if name == "last" or rounds["chosen"] != rounds["last"]:
                    arrays[f"{part}/{name}"] = _halved(answers[part])
    content = safetensors.numpy.save(arrays)
    write_bytes(path, content)
    return {"file": path.name, "sha256": hashlib.sha256(content).hexdigest(), "rounds": dict(rounds)}


def _halved(outputs: np.ndarray) -> np.ndarray:
    """Half precision; what is larger than that can hold becomes the largest it holds."""
    if outputs.dtype.kind != "f":
        return np.ascontiguousarray(outputs)
    largest = np.finfo(np.float16).max
    return np.ascontiguousarray(np.clip(outputs, -largest, largest), dtype=np.float16)


def read_predictions(folder: Path, record: RunRecord) -> dict[tuple[int, str], Predictions]:
    """(client, evaluation) -> what it answered; empty where the record has no such file.

    folder: of the record. UserError where the file is missing, or is not the one that the record was written with.
    """
    if not record.predictions:
        return {}
    path = folder / str(record.predictions["file"])
    try:
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != record.predictions["sha256"]:
            raise ValueError("its content does not have the digest that the record names")
        arrays = safetensors.numpy.load(content)
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(
            f"{path}: expected the predictions of {record.file_name}, found none that are whole ({error}). Restore the "
            "file, or move the record away to compute the cell again."
        ) from None
    found: dict[tuple[int, str], Predictions] = {}
    for name in arrays:
        part, _, what = name.rpartition("/")
        if what == "indices":
            client, _, evaluation = part.partition("/")
            outputs = {which: arrays.get(f"{part}/{which}", arrays[f"{part}/last"]) for which in ROUNDS}
            found[int(client), evaluation] = Predictions(arrays[name], arrays[f"{part}/gold"], outputs)
    return found
