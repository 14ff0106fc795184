"""The result of a finished run: a JSON record, written atomically, from which reports compute everything."""

from __future__ import annotations

import dataclasses
import json
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from benchmarks.errors import UserError
from benchmarks.measures import OF_CLIENTS, TRAIN_LOSS, metric
from benchmarks.run_config import JSON, VALIDATION, RunConfig, digest
from fedsim.files import parse_json, read_text, write_bytes
from fedsim.strict import from_json, later, strict, to_plain

SCHEMA = 1
CHECKSUM = "sha256"  # of the record without this field, as canonical JSON
ROUND = "round"  # what is measured of a round's aggregation, by fedsim.aggregation
POOLED = "pooled"  # the evaluation on all clients' test examples together
Scores = Mapping[str, Mapping[str, float | None]]  # evaluation -> metric -> score; None where it is undefined
Count = Annotated[int, Field(ge=0)]


class LedgerEntry(NamedTuple):
    """Payloads of one kind that one client sent ("up") or received ("down") in one round; round 0 is the set-up."""

    round: Count
    client: Annotated[int, Field(ge=-1)]
    direction: Annotated[str, Field(pattern="^(up|down)$")]
    kind: str
    values: Count
    bytes: Count
    messages: Count = 1  # number of payloads; the first records have an entry for each


def _absent(kind: Any) -> Any:
    """A group that the JSON leaves out where it is empty, as the first records do."""
    return Field(default_factory=kind, exclude_if=operator.not_)


@strict(UserError)
class RoundRecord:
    """One round: losses, scores after aggregation, and the payload bytes that crossed the wire in it."""

    round: Annotated[int, Field(ge=1)]
    cohort: tuple[int, ...]
    train_loss: float | None
    client_losses: tuple[float, ...]
    scores: Scores  # means over clients
    client_scores: tuple[Scores, ...]  # of each client, in client order
    up_bytes: Count
    down_bytes: Count
    pooled_scores: Scores = _absent(dict)  # on all clients' examples together
    measured: Mapping[str, float | None] = _absent(dict)  # of the round's aggregation, by name

    def score(self, name: str) -> float | None:
        """A score: "test/f1" combined over clients, "test/f1@worst" of some of them, "pooled/f1", or TRAIN_LOSS; or a
        number of the round's aggregation, such as "round/aggregation_error".

        None where it is undefined, where the round lacks its evaluation, or an old record lacks pooled scores;
        KeyError for an unknown name.
        """
        if name == TRAIN_LOSS:
            return self.train_loss
        evaluation, measured = name.split("/")
        if evaluation == ROUND:
            return self.measured.get(measured)
        if evaluation == POOLED:
            return self.pooled_scores["test"][measured] if self.pooled_scores else None
        if self.scores and evaluation not in self.scores:
            return None
        base, at, _ = measured.partition("@")
        if not at:
            return self.scores[evaluation][base]
        return metric(name).combined([scores[evaluation][base] for scores in self.client_scores])

    @property
    def of_clients(self) -> dict[str, dict[str, float | None]]:
        """Evaluation -> "f1@worst" -> its score, for every number of clients that is no mean and is defined."""
        names = ((part, f"{name}@{of}") for part in self.scores for name in self.scores[part] for of in OF_CLIENTS)
        found: dict[str, dict[str, float | None]] = {}
        for part, name in names if len(self.client_scores) > 1 else ():
            if (value := self.score(f"{part}/{name}")) is not None:
                found.setdefault(part, {})[name] = value
        return found


def chosen_round(scores: Sequence[Mapping[str, Mapping[str, float | None]]], by: str) -> int:
    """The number of the first round that is best by a score ("validation/f1"); the last one for the score ""."""
    if by:
        evaluation, name = by.split("/")
        values = [entry[evaluation][name] for entry in scores]
        best = metric(name).best(values)
        if best is not None:
            return values.index(best) + 1
    return len(scores)


@strict(UserError)
class RunResult:
    """The result of one run: its configuration, its inputs, its scores by round, and its cost."""

    cell: RunConfig
    cell_id: str
    inputs: Mapping[str, JSON]  # {"data": {"digest", "origin", "examples", "skipped", …}, "backbone": {"digest", …}}
    partition: Mapping[str, JSON]  # partitions.PartitionReport.to_json()
    clients: tuple[Mapping[str, JSON], ...]  # per client: {"client", "train", "test", …} numbers of examples
    rounds: tuple[RoundRecord, ...]
    sampling_errors: Scores  # of the chosen round's scores, from the finite test set
    setup_bytes: Count
    ledger: tuple[LedgerEntry, ...]
    environment: Mapping[str, JSON]  # versions, device, precision, threads, git revision: never part of identity
    timing: Mapping[str, int | float]  # seconds and bytes, measured
    finished: str  # UTC, ISO 8601
    chosen_by: str = later("")  # the score by which a round is chosen, "validation/f1"; "" where the last one counts
    # Texts that went through the model at once, where batches were cut: each part draws dropout anew.
    micro_batch: int | None = later(None, ge=1)
    predictions: Mapping[str, JSON] = _absent(dict)  # {"sha256"} of the file of benchmarks.predictions
    diverged: Mapping[str, JSON] = _absent(dict)  # {"round", "reason"}: the result has only the rounds before that one
    schema: int = SCHEMA
    # The folder of the file and of its predictions; not in the JSON.
    folder: Annotated[Path | None, Field(exclude=True)] = dataclasses.field(default=None, compare=False)

    def to_json(self) -> dict[str, JSON]:
        """The result as plain JSON values."""
        value: dict[str, JSON] = to_plain(self)
        return {**value, "cell": self.cell.to_json()}

    @property
    def known_by(self) -> dict[str, str]:
        """Input -> its digest, or the id of the earlier run that made it; see `Inputs.digests`."""
        return {name: entry.get("cell_id", entry["digest"]) for name, entry in self.inputs.items()}

    @property
    def outcome(self) -> dict[str, JSON]:
        """The part that must not depend on machine, time and restarts."""
        value = json.loads(json.dumps(self.to_json()))
        for volatile in ("environment", "timing", "finished"):
            del value[volatile]
        del value["inputs"]["data"]["origin"], value["inputs"]["backbone"]["origin"]
        return value

    def by_round(self, name: str) -> tuple[float | None, ...]:
        """A score after every round; see `RoundRecord.score`. KeyError for an unknown name."""
        return tuple(entry.score(name) for entry in self.rounds)

    def score(self, name: str, at: str = "last") -> float | None:
        """A score of `by_round` at the "last", "best" or "chosen" round; None where training diverged."""
        if self.diverged:
            return None
        values = self.by_round(name)
        if at == "chosen":
            return values[self.chosen_round - 1]
        return values[-1] if at == "last" else metric(name).best(values)

    @property
    def chosen_round(self) -> int:
        """The best round on validation data; the last round without such data."""
        return chosen_round([entry.scores for entry in self.rounds], self.chosen_by)

    def at_last_round(self) -> RunResult:
        """The same run scored at its last round; sampling errors stay those of the chosen round."""
        return dataclasses.replace(self, chosen_by="")

    def sampling_error(self, name: str) -> float | None:
        """Standard error of the chosen round's score from the finite test set; None where unknown, 0 for TRAIN_LOSS."""
        if name == TRAIN_LOSS:
            return 0.0
        evaluation, measured = name.split("/")
        return self.sampling_errors.get(evaluation, {}).get(measured)

    @property
    def divergence(self) -> str:
        """A phrase for when training diverged; "" where it did not."""
        return f"diverged in round {self.diverged['round']}" if self.diverged else ""

    @property
    def file_name(self) -> str:
        """The name of the record's file."""
        return f"{self.cell.label}-{self.cell_id}.json"

    @property
    def predictions_name(self) -> str:
        """The name of the compressed file of predictions next to the record."""
        return f"{self.cell.label}-{self.cell_id}.predictions.safetensors.xz"

    def own_examples(self, evaluation: str) -> tuple[int, ...]:
        """Examples of an evaluation that each client keeps back; 0 for a central set, and for what is measured."""
        has_none = evaluation == ROUND or evaluation in self._central
        return tuple(0 if has_none else int(client[evaluation]) for client in self.clients)

    def examples(self, evaluation: str) -> int:
        """Examples of an evaluation on all clients together, or of the central set."""
        central = self._central
        return int(central[evaluation]) if evaluation in central else sum(self.own_examples(evaluation))

    @property
    def _central(self) -> Mapping[str, int]:
        """Sizes of the sets on which every client is scored; for tuning, the validation set is the test set."""
        sizes: Mapping[str, int] = self.inputs["data"].get("central", {})
        if self.cell.holdout == "test":
            return sizes
        return {"test": sizes[VALIDATION]} if VALIDATION in sizes else {}


def result_from_json(value: Mapping[str, Any]) -> RunResult:
    """The result that `to_json` wrote; raises KeyError or ValueError where it is not one."""
    if value["schema"] != SCHEMA:
        raise ValueError(f"record schema {value['schema']}, this version reads {SCHEMA}")
    record = from_json(RunResult, json.dumps(value))
    # The first records identify an earlier run by the weights that it left.
    digests = {name: entry["digest"] for name, entry in record.inputs.items()}
    ids = [record.cell.cell_id(inputs) for inputs in (record.known_by, digests)]
    if record.cell_id not in ids:
        raise ValueError(f"its content gives the id {ids[0]}, not {record.cell_id}: it was changed after the run")
    counted: Counter[tuple[int, str]] = Counter()
    for row in record.ledger:
        counted[row.round, row.direction if row.round else "setup"] += row.bytes
    stated = {(0, "setup"): record.setup_bytes}
    for entry in record.rounds:
        stated |= {(entry.round, "up"): entry.up_bytes, (entry.round, "down"): entry.down_bytes}
    if wrong := [key for key in counted.keys() | stated if counted[key] != stated.get(key)]:
        number, way = min(wrong)
        raise ValueError(f"round {number}: its ledger has {counted[min(wrong)]} bytes {way}, the round another sum")
    return record


def checksum(value: Mapping[str, JSON]) -> str:
    """SHA-256 of a record as canonical JSON."""
    return digest(json.loads(json.dumps(value)), 64)


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, atomically."""
    write_bytes(path, text.encode())


def write_result(folder: Path, record: RunResult) -> Path:
    """Write a record with its checksum into a folder; an existing record is never overwritten."""
    path = folder / record.file_name
    if not path.exists():
        value = record.to_json()
        value[CHECKSUM] = checksum(value)
        write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def read_result(path: Path) -> RunResult:
    """The result in a file; raises UserError, which names the file, where it is damaged."""
    try:
        value = parse_json(read_text(path, "a record"), path, "a record")
        expected = value.pop(CHECKSUM, None)
        record = result_from_json(value)
        if checksum(value) != expected:
            raise ValueError("its content does not have its checksum: it was changed after the run")
        return dataclasses.replace(record, folder=path.parent)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: expected a record of a finished cell, found a damaged one ({type(error).__name__}: {error}). "
            f"Restore the file, or move it away to compute the cell again; other records are not touched."
        ) from None


def read_results(folder: Path) -> Iterator[RunResult]:
    """Every record of a folder, in the order of file names."""
    for path in sorted(folder.glob("*.json")):
        yield read_result(path)


def read_folders(folders: Iterable[Path]) -> list[RunResult]:
    """The records of several folders, each cell once; UserError where a folder is missing."""
    records: dict[str, RunResult] = {}
    for folder in folders:
        if not folder.is_dir():
            found = "something else" if folder.exists() else "nothing"
            raise UserError(
                f"{folder}: expected a folder of records, found {found}: run a benchmark first, or name its folder"
            )
        for record in read_results(folder):
            records.setdefault(record.cell_id, record)
    return list(records.values())


# ---- bytes, with the earlier runs from which a run starts --------------------------------------------------------

Find = Callable[[str, str], RunResult | None]  # (cell_id, spec_id) of a run -> its record


class RunBytes(NamedTuple):
    """Payload bytes of all rounds, summed over clients."""

    up: int
    down: int


def stage_bytes(record: RunResult) -> RunBytes:
    """The bytes of a run without its earlier runs."""
    return RunBytes(sum(entry.up_bytes for entry in record.rounds), sum(entry.down_bytes for entry in record.rounds))


def all_stages(record: RunResult, find: Find) -> list[RunResult] | None:
    """A run after every earlier run from which it starts, the first one first.

    Args:
        record: The finished run.
        find: Gives the record of an earlier run; see `among` and `in_folder`.

    Returns:
        The records, or None where that of an earlier run is missing.
    """
    initial = record.cell.initial
    if initial is None and "initial" not in record.inputs:
        return [record]
    cell_id = record.inputs.get("initial", {}).get("cell_id", "")  # the first records lack it
    earlier = find(cell_id, initial.spec_id if initial else "")
    stages = all_stages(earlier, find) if earlier else None
    return [*stages, record] if stages else None


def run_bytes(record: RunResult, find: Find) -> RunBytes | None:
    """The bytes of a run and of every earlier run from which it starts; None where a record is missing."""
    stages = all_stages(record, find)
    return RunBytes(*map(sum, zip(*map(stage_bytes, stages), strict=True))) if stages else None


def among(records: Iterable[RunResult]) -> Find:
    """Find earlier runs among records: by cell_id, or else by spec_id."""
    listed = list(records)
    by_id = {record.cell_id: record for record in listed}
    by_spec = {record.cell.spec_id: record for record in listed}
    return lambda cell_id, spec_id: by_id.get(cell_id) or by_spec.get(spec_id)


def in_folder(folder: Path) -> Find:
    """Find earlier runs by cell_id among the files of a folder of records."""

    def find(cell_id: str, spec_id: str) -> RunResult | None:
        path = next(folder.glob(f"*-{cell_id}.json"), None) if cell_id else None
        return read_result(path) if path is not None else None

    return find
