"""The answers of a finished cell, in a compressed safetensors file next to its record: for computing scores anew.

For each client and evaluation: the examples' indices, the gold labels, and the model's outputs after each of the last
three rounds and after the chosen one.
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
from benchmarks.results import RunResult, read_result, write_bytes
from fedsim.files import MissingFileError, read_file

if TYPE_CHECKING:  # reports read these files without torch
    from fedsim.data import Client, Subset
    from fedsim.engine import Answers

# One step below the largest half, so that there is room for a step down from what is clipped to it.
LARGEST = np.nextafter(np.finfo(np.float16).max, np.float16(0))
IGNORED = -100  # as fedsim.data has it: nothing is asked here
LAST_ROUNDS = 3  # as fedsim.engine has it
MOST_MEMORY = 2**28  # bytes that decompressing may take: the default settings need 10 MB


@dataclass(frozen=True)
class Predictions:
    """Of one client and evaluation, n examples in the evaluation's order.

    indices: int64 [n], positions in the task's pool, or in the set of the evaluation's name (of texts in blocks: of the
    blocks). gold: [n, ...], labels, scores or tags. last, chosen: the answers after the last and the chosen round,
    [n, ...], as the objective's answers are; logits in half precision. Where tokens are asked for, a row has their tags
    (int8, or int16 where there are more than 128) or ids (int32), and IGNORED behind them; in answers also where logits
    were not finite. by_round: round -> the answers after it: the last three rounds and the chosen one, or fewer in
    records made before these were kept.
    """

    indices: np.ndarray
    gold: np.ndarray
    last: np.ndarray
    chosen: np.ndarray
    by_round: Mapping[int, np.ndarray]


def pack_predictions(clients: Sequence[Client], answers: Mapping[int, Answers], chosen: int) -> bytes:
    """The content of the file of predictions, uncompressed.

    Arrays are named "<client>/<evaluation>/<what>"; one that is the same for all clients, as for a central test set, is
    stored once, as "<evaluation>/<what>". The answers of the last round are "last", those of earlier ones "last-1" and
    "last-2", and those of a chosen round before these "chosen".

    Args:
        clients: The clients, in order.
        answers: Round -> the answers after it; the chosen round and the last rounds.
        chosen: The number of the chosen round.
    """
    from fedsim.engine import part_name

    names = {number: _array_name(number, chosen, max(answers)) for number in sorted(answers, reverse=True)}
    arrays: dict[str, np.ndarray] = {}
    for evaluation in clients[0].evaluation:
        parts = {part_name(client, evaluation): client.evaluation[evaluation] for client in clients}
        common = len({id(subset) for subset in parts.values()}) == 1
        kept = {
            part: _kept(subset, {name: answers[number][part] for number, name in names.items()})
            for part, subset in parts.items()
        }
        for what in next(iter(kept.values())):
            by_part = {part: own[what] for part, own in kept.items()}
            first, *others = by_part.values()
            if common and all(np.array_equal(first, other) for other in others):
                arrays[f"{evaluation}/{what}"] = first
            else:
                arrays |= {f"{part}/{what}": array for part, array in by_part.items()}
    return safetensors.numpy.save(arrays)


def _array_name(number: int, chosen: int, last: int) -> str:
    """The name under which the answers after a round are stored."""
    if last - number < LAST_ROUNDS:
        return f"last-{last - number}" if number < last else "last"
    assert number == chosen, f"round {number} is neither one of the last nor the chosen one"
    return "chosen"


def _kept(subset: Subset, answers: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What is kept of a part and of what was answered for it, by its name.

    Where tokens are asked for, these are their tags or ids, end to end, and "tokens" says how many each text has: with
    logits, and with tokens of which nothing is asked, files would be a hundred times as large.
    """
    indices, gold = np.asarray(subset.indices, dtype=np.int64), subset.references
    if gold.ndim < 2:
        halves = {what: halved(outputs) for what, outputs in answers.items()}
        return {"indices": indices, "gold": np.ascontiguousarray(gold), **halves}
    asked = gold != IGNORED
    found = {what: _tags(outputs[asked]) for what, outputs in answers.items()}
    kind = next(iter(found.values())).dtype
    tokens = asked.sum(axis=1, dtype=np.int32)
    return {"indices": indices, "gold": gold[asked].astype(kind), **found, "tokens": tokens}


def _tags(outputs: np.ndarray) -> np.ndarray:
    """Tokens' ids, int32, as they were answered; or their tags by logits [tokens, tags]: IGNORED where not finite."""
    if outputs.ndim < 2:
        return outputs.astype(np.int32)
    kind = np.min_scalar_type(-outputs.shape[-1])  # the least that has all tags: int8 for 128 of them
    return np.where(np.isfinite(outputs).all(axis=-1), outputs.argmax(axis=-1), IGNORED).astype(kind)


def halved(outputs: np.ndarray) -> np.ndarray:
    """Logits in half precision: the same place is the first to have a row's largest value, and finite ones stay finite.

    Others stay as they are: ids, a language model's sums, and scores, as rounding would decide the correlation of
    those that are nearly constant.
    """
    if outputs.dtype != np.float32 or outputs.ndim < 2 or outputs.shape[-1] == 1:
        return np.ascontiguousarray(outputs)
    found = np.where(np.isfinite(outputs), np.clip(outputs, -LARGEST, LARGEST), outputs).astype(np.float16)
    winner = outputs.argmax(axis=-1)[..., None]
    is_before = np.arange(outputs.shape[-1]) < winner
    is_tied = is_before & (found == np.take_along_axis(found, winner, axis=-1))
    found[is_tied] = np.nextafter(found[is_tied], np.float16(-np.inf))
    return np.ascontiguousarray(found)


def read_predictions(folder: Path, record: RunResult) -> dict[tuple[int, str], Predictions]:
    """(client, evaluation) -> what it answered; empty where the record was made before answers were kept.

    folder: of the record. UserError where the file is missing, or is not the one that the record was written with.
    """
    if not record.predictions:
        return {}
    try:
        arrays = safetensors.numpy.load(_content(folder, record))
        last, chosen = len(record.rounds), record.chosen_round
        stored = {name.rpartition("/")[2] for name in arrays}
        names = {last - step: f"last-{step}" if step else "last" for step in range(LAST_ROUNDS)}
        names = {number: name for number, name in names.items() if name in stored}
        if "chosen" in stored and chosen not in names:
            names[chosen] = "chosen"
        return {
            (int(client["client"]), evaluation): _predictions(arrays, client["client"], evaluation, names, chosen)
            for client in record.clients
            for evaluation in client
            if evaluation not in ("client", "train")
        }
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        raise _damaged(folder, record, error) from None


def _predictions(
    arrays: Mapping[str, np.ndarray], client: int, evaluation: str, names: Mapping[int, str], chosen: int
) -> Predictions:
    """names: round -> the name of the array of the answers after it."""
    by_round = {number: _rows(arrays, client, evaluation, names[number]) for number in sorted(names)}
    return Predictions(
        _array(arrays, client, evaluation, "indices"),
        _rows(arrays, client, evaluation, "gold"),
        by_round[max(by_round)],
        by_round[chosen],
        by_round,
    )


def _rows(arrays: Mapping[str, np.ndarray], client: int, evaluation: str, what: str) -> np.ndarray:
    """A row for each text: as it was kept, or what was kept end to end."""
    values = _array(arrays, client, evaluation, what)
    if not {f"{client}/{evaluation}/tokens", f"{evaluation}/tokens"} & arrays.keys():
        return values
    tokens = _array(arrays, client, evaluation, "tokens")
    is_asked = np.arange(tokens.max(initial=0)) < tokens[:, None]
    rows = np.full(is_asked.shape, IGNORED, dtype=values.dtype)
    rows[is_asked] = values
    return rows


def _array(arrays: Mapping[str, np.ndarray], client: int, evaluation: str, what: str) -> np.ndarray:
    own = f"{client}/{evaluation}/{what}"
    return arrays[own] if own in arrays else arrays[f"{evaluation}/{what}"]


def has_predictions(folder: Path, record: RunResult) -> bool:
    """Whether a folder holds the predictions that a record names, if it names any; UserError where they are damaged."""
    if not record.predictions:
        return True
    try:
        _content(folder, record)
    except MissingFileError:
        return False
    except (OSError, ValueError) as error:
        raise _damaged(folder, record, error) from None
    return True


def copy_predictions(source: Path, record: RunResult, target: Path) -> None:
    """Bring a record's predictions, where there are some, into a folder into which the record itself comes next.

    Where that folder has the record from another run already, it stays, and so does what it answered.
    """
    known = target / record.file_name
    if not record.predictions or not predictions_file(source, record).exists():
        return
    if not known.exists() or read_result(known).predictions == record.predictions:
        write_predictions(target, record, _content(source, record))


def write_predictions(folder: Path, record: RunResult, content: bytes) -> None:
    """Write the packed predictions next to where their record belongs."""
    write_bytes(folder / record.predictions_name, lzma.compress(content))


def predictions_file(folder: Path, record: RunResult) -> Path:
    """The file of a record's predictions; earlier versions left it uncompressed."""
    path = folder / record.predictions_name
    uncompressed = path.with_suffix("")
    return uncompressed if uncompressed.exists() and not path.exists() else path


def _content(folder: Path, record: RunResult) -> bytes:
    """The file's content, uncompressed; ValueError where it has another digest than the record says."""
    path = predictions_file(folder, record)
    content = read_file(path)
    if path.suffix == ".xz":
        try:
            content = lzma.decompress(content, lzma.FORMAT_XZ, MOST_MEMORY)
        except lzma.LZMAError as error:
            raise ValueError(f"it cannot be decompressed: {error}") from None
    if hashlib.sha256(content).hexdigest() != record.predictions["sha256"]:
        raise ValueError("its content does not have the digest that the record names")
    return content


def _damaged(folder: Path, record: RunResult, error: Exception) -> UserError:
    return UserError(
        f"{predictions_file(folder, record)}: expected the predictions of {record.file_name}, found none that are "
        f"whole ({error}). Restore the file, or move the record away to compute the cell again."
    )
