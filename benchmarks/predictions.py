"""A finished run's answers, in a compressed safetensors file next to its record, to recompute scores.

Per client and evaluation: the examples' indices, the gold labels, and the model's outputs after each of the last three
rounds and after the chosen one.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from benchmarks.errors import UserError
from benchmarks.results import RunResult, read_result, write_result
from fedsim.files import MissingFileError, read_file, write_bytes

if TYPE_CHECKING:  # reports read these files without torch
    from fedsim.data import Client, Subset
    from fedsim.engine import Answers

# One step below the largest half-precision number, which leaves room for a step.
LARGEST = np.nextafter(np.finfo(np.float16).max, np.float16(0))
IGNORED = -100  # as in fedsim.data: a token without a label
LAST_ROUNDS = 3  # as in fedsim.engine
MOST_MEMORY = 2**28  # in bytes, for decompression; the default settings need 10 MB


@dataclass(frozen=True)
class Predictions:
    """One client's answers on an evaluation with n examples.

    For token tasks, a row has tags (int8, or int16 for more than 128 tags) or ids (int32), padded with IGNORED;
    answers with non-finite logits are IGNORED, too.

    Args:
        indices: int64 [n], positions in the task's pool, or in the evaluation's set.
        gold: [n, ...], labels, scores or tags.
        last: The answers after the last round, [n, ...]; logits in half precision.
        chosen: The answers after the chosen round.
        by_round: Round -> the answers after it, for the last three rounds and the chosen one; old records have fewer.
    """

    indices: np.ndarray
    gold: np.ndarray
    last: np.ndarray
    chosen: np.ndarray
    by_round: Mapping[int, np.ndarray]


def pack_predictions(clients: Sequence[Client], answers: Mapping[int, Answers], chosen: int) -> bytes:
    """The uncompressed content of the predictions file.

    Arrays are named "<client>/<evaluation>/<what>", or "<evaluation>/<what>" if all clients share an array, as on a
    central test set. The answers after the last rounds are "last", "last-1" and "last-2"; those of an earlier chosen
    round are "chosen".

    answers: round -> the answers after it, for the chosen round and the last rounds.
    """
    from fedsim.engine import part_name  # loads torch

    names = {number: name for number, name in _last_names(max(answers)).items() if number in answers}
    names.setdefault(chosen, "chosen")
    arrays: dict[str, np.ndarray] = {}
    for evaluation in clients[0].evaluation:
        parts = {part_name(client, evaluation): client.evaluation[evaluation] for client in clients}
        common = len({id(subset) for subset in parts.values()}) == 1
        packed = {
            part: _pack(subset, {name: answers[number][part] for number, name in names.items()})
            for part, subset in parts.items()
        }
        for what in next(iter(packed.values())):
            by_part = {f"{part}/{what}": arrays_of[what] for part, arrays_of in packed.items()}
            first, *others = by_part.values()
            shared = common and all(np.array_equal(first, other) for other in others)
            arrays |= {f"{evaluation}/{what}": first} if shared else by_part
    return safetensors.numpy.save(arrays)


def _last_names(last: int) -> dict[int, str]:
    """Each of the last rounds -> the array name for the answers after it."""
    return {last - step: f"last-{step}" if step else "last" for step in range(LAST_ROUNDS)}


def _pack(subset: Subset, answers: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays for one client and evaluation.

    Tags and token ids are concatenated, and "tokens" has the number per text: logits and unlabelled tokens would make
    files a hundred times as large.
    """
    indices, gold = np.asarray(subset.indices, dtype=np.int64), subset.references
    if gold.ndim < 2:
        halves = {what: halved(outputs) for what, outputs in answers.items()}
        return {"indices": indices, "gold": np.ascontiguousarray(gold), **halves}
    has_label = gold != IGNORED
    tags = {what: _tags(outputs[has_label]) for what, outputs in answers.items()}
    kind = next(iter(tags.values())).dtype
    return {
        "indices": indices,
        "gold": gold[has_label].astype(kind),
        **tags,
        "tokens": has_label.sum(axis=1, dtype=np.int32),
    }


def _tags(outputs: np.ndarray) -> np.ndarray:
    """Token ids as int32; or the tags with the largest logits [tokens, tags], IGNORED for non-finite logits."""
    if outputs.ndim < 2:
        return outputs.astype(np.int32)
    kind = np.min_scalar_type(-outputs.shape[-1])  # the smallest type for all tags: int8 for 128 tags
    return np.where(np.isfinite(outputs).all(axis=-1), outputs.argmax(axis=-1), IGNORED).astype(kind)


def halved(outputs: np.ndarray) -> np.ndarray:
    """Logits in half precision with the same argmax; finite values stay finite.

    Ids, a language model's sums and regression scores stay unchanged: rounding would dominate the correlation of
    nearly constant scores.
    """
    if outputs.dtype != np.float32 or outputs.ndim < 2 or outputs.shape[-1] == 1:
        return np.ascontiguousarray(outputs)
    halves = np.where(np.isfinite(outputs), np.clip(outputs, -LARGEST, LARGEST), outputs).astype(np.float16)
    winner = outputs.argmax(axis=-1)[..., None]
    is_before = np.arange(outputs.shape[-1]) < winner
    is_tied = is_before & (halves == np.take_along_axis(halves, winner, axis=-1))
    halves[is_tied] = np.nextafter(halves[is_tied], np.float16(-np.inf))
    return np.ascontiguousarray(halves)


def read_predictions(folder: Path, record: RunResult) -> dict[tuple[int, str], Predictions]:
    """(client, evaluation) -> answers; empty for a record without predictions.

    UserError if the file is missing from the folder, or differs from the file that the run wrote.
    """
    if not record.predictions:
        return {}
    try:
        arrays = safetensors.numpy.load(_content(folder, record))
        return {
            (int(client["client"]), evaluation): _unpack(arrays, client["client"], evaluation, record)
            for client in record.clients
            for evaluation in client
            if evaluation not in ("client", "train")
        }
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise _damaged(folder, record, error) from None


def _unpack(arrays: Mapping[str, np.ndarray], client: int, evaluation: str, record: RunResult) -> Predictions:
    stored: dict[str, np.ndarray] = {}
    for part in (evaluation, f"{client}/{evaluation}"):
        stored |= {name.rpartition("/")[2]: arrays[name] for name in arrays if name.rpartition("/")[0] == part}
    tokens = stored.get("tokens")

    def rows(what: str) -> np.ndarray:
        """One row per text; concatenated values are split and padded with IGNORED."""
        if tokens is None:
            return stored[what]
        has_label = np.arange(tokens.max(initial=0)) < tokens[:, None]
        padded = np.full(has_label.shape, IGNORED, dtype=stored[what].dtype)
        padded[has_label] = stored[what]
        return padded

    names = {number: name for number, name in _last_names(len(record.rounds)).items() if name in stored}
    if "chosen" in stored:
        names.setdefault(record.chosen_round, "chosen")
    answers = {number: rows(names[number]) for number in sorted(names)}
    return Predictions(stored["indices"], rows("gold"), answers[max(answers)], answers[record.chosen_round], answers)


def stored_predictions(record: RunResult) -> dict[tuple[int, str], Predictions]:
    """`read_predictions` next to the record; empty where there is no file, as with imported records."""
    folder = record.folder
    if folder is None or not record.predictions or not predictions_file(folder, record).exists():
        return {}
    return read_predictions(folder, record)


def has_predictions(folder: Path, record: RunResult) -> bool:
    """Whether a folder has all predictions that a record names; UserError if they are damaged."""
    try:
        return not record.predictions or bool(_content(folder, record))
    except MissingFileError:
        return False
    except (OSError, ValueError) as error:
        raise _damaged(folder, record, error) from None


def copy_record(record: RunResult, target: Path) -> None:
    """Copy a record from its folder to another one, after its predictions, if the folder has them.

    If the target already has another run's record for the cell, that record and its predictions stay.
    """
    source, existing = record.folder, target / record.file_name
    if (
        source is not None
        and record.predictions
        and predictions_file(source, record).exists()
        and (not existing.exists() or read_result(existing).predictions == record.predictions)
    ):
        write_predictions(target, record, _content(source, record))
    write_result(target, record)


def write_predictions(folder: Path, record: RunResult, content: bytes) -> None:
    """Write packed predictions next to their record."""
    write_bytes(predictions_file(folder, record), lzma.compress(content))


def predictions_file(folder: Path, record: RunResult) -> Path:
    """The path of a record's predictions file."""
    return folder / f"{record.cell.label}-{record.cell_id}.predictions.safetensors.xz"


def _content(folder: Path, record: RunResult) -> bytes:
    """The file's decompressed content; ValueError if its digest is not the record's."""
    try:
        content = lzma.decompress(read_file(predictions_file(folder, record)), lzma.FORMAT_XZ, MOST_MEMORY)
    except lzma.LZMAError as error:
        raise ValueError(f"it cannot be decompressed: {error}") from None
    if hashlib.sha256(content).hexdigest() != record.predictions["sha256"]:
        raise ValueError("its digest is not the record's")
    return content


def _damaged(folder: Path, record: RunResult, error: Exception) -> UserError:
    return UserError(
        f"{predictions_file(folder, record)}: expected the predictions of {record.file_name}, found a damaged or "
        f"missing file ({error}). Restore the file, or move the record away to compute the cell again."
    )
