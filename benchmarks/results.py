"""The result of a finished run: a JSON record, written atomically, the basis of all reports."""

from __future__ import annotations

import dataclasses
import json
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from benchmarks.errors import UserError
from benchmarks.measures import OF_CLIENTS, TRAIN_LOSS, metric
from benchmarks.run_config import JSON, VALIDATION, RunConfig, digest
from fedsim.errors import named
from fedsim.files import UnreadableError, parse_json, read_text, write_bytes
from fedsim.strict import UnknownFieldError, from_json, later, strict, to_plain

SCHEMA = 1
CHECKSUM = "sha256"  # of the record's canonical JSON without this field
ROUND = "round"  # measurements of a round's aggregation, by fedsim.aggregation
POOLED = "pooled"  # the evaluation on the union of all clients' test examples
INDEPENDENT = "independent"  # the evaluation on class-balanced test examples of all clients
Scores = Mapping[str, Mapping[str, float | None]]  # evaluation -> metric -> score; None if undefined
Count = Annotated[int, Field(ge=0)]


class LedgerEntry(NamedTuple):
    """Payloads of one kind that one client sent ("up") or received ("down") in one round; round 0 is the set-up."""

    round: Count
    client: Annotated[int, Field(ge=-1)]
    direction: Annotated[str, Field(pattern="^(up|down)$")]
    kind: str
    values: Count
    bytes: Count
    messages: Count = 1  # number of payloads; old records have an entry per payload


def _absent(kind: Any) -> Any:
    """A group that the JSON omits if it is empty, as in old records."""
    return Field(default_factory=kind, exclude_if=operator.not_)


@strict(UserError)
class RoundRecord:
    """One round: losses, scores after aggregation, and payload bytes."""

    round: Annotated[int, Field(ge=1)]
    cohort: tuple[int, ...]
    train_loss: float | None
    client_losses: tuple[float, ...]
    scores: Scores  # means over clients
    client_scores: tuple[Scores, ...]  # per client, in client order
    up_bytes: Count
    down_bytes: Count
    pooled_scores: Scores = _absent(dict)  # on the union of all clients' examples
    measured: Mapping[str, float | None] = _absent(dict)  # about the round's aggregation, by name

    def score(self, name: str) -> float | None:
        """A score by name: "test/f1" over clients, "test/f1@worst" for a client statistic, "pooled/f1", TRAIN_LOSS, or
        a measurement of the aggregation, such as "round/aggregation_error".

        None if it is undefined, or if the round lacks its evaluation, or an old record its pooled scores;
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
        """Evaluation -> "f1@worst" -> its score, for every defined client statistic other than the mean."""
        names = ((part, f"{name}@{of}") for part in self.scores for name in self.scores[part] for of in OF_CLIENTS)
        statistics: dict[str, dict[str, float | None]] = {}
        for part, name in names if len(self.client_scores) > 1 else ():
            if (value := self.score(f"{part}/{name}")) is not None:
                statistics.setdefault(part, {})[name] = value
        return statistics


def chosen_round(scores: Sequence[Mapping[str, Mapping[str, float | None]]], by: str) -> int:
    """The number of the first round with the best score ("validation/f1"); the last round for the score ""."""
    if by:
        evaluation, name = by.split("/")
        values = [entry[evaluation][name] for entry in scores]
        best = metric(name).best(values)
        if best is not None:
            return values.index(best) + 1
    return len(scores)


@strict(UserError)
class RunResult:
    """The result of one run: its configuration, inputs, scores by round, and cost."""

    cell: RunConfig
    cell_id: str
    inputs: Mapping[str, JSON]  # {"data": {"digest", "origin", "examples", "skipped", …}, "backbone": {"digest", …}}
    partition: Mapping[str, JSON]  # partitions.PartitionReport.to_json()
    clients: tuple[Mapping[str, JSON], ...]  # per client: {"client", "train", "test", …} number of examples
    rounds: tuple[RoundRecord, ...]
    sampling_errors: Scores  # of the chosen round's scores, due to the finite test set
    setup_bytes: Count
    ledger: tuple[LedgerEntry, ...]
    environment: Mapping[str, JSON]  # versions, device, precision, threads, git revision; not part of the identity
    timing: Mapping[str, int | float]  # seconds and bytes, measured
    finished: str  # UTC, ISO 8601
    chosen_by: str = later("")  # the score that chooses the round, "validation/f1"; "" for the last round
    # Texts per forward pass, if batches were split: each part draws new dropout masks.
    micro_batch: int | None = later(None, ge=1)
    predictions: Mapping[str, JSON] = _absent(dict)  # {"sha256"} of the predictions file
    diverged: Mapping[str, JSON] = _absent(dict)  # {"round", "reason"}: the result has only earlier rounds
    schema: int = SCHEMA
    # The folder of the record and its predictions; not in the JSON.
    folder: Annotated[Path | None, Field(exclude=True)] = dataclasses.field(default=None, compare=False)
    # Of corrected predictions: the round that the run chose by its own scores; not in the JSON.
    chosen_before: Annotated[int | None, Field(exclude=True)] = dataclasses.field(default=None, compare=False)

    def to_json(self) -> dict[str, JSON]:
        """The result as plain JSON values."""
        value: dict[str, JSON] = to_plain(self)
        return {**value, "cell": self.cell.to_json()}

    @property
    def input_digests(self) -> dict[str, str]:
        """Input -> its digest, or the id of the earlier run that produced it; see `Inputs.digests`."""
        return {name: entry.get("cell_id", entry["digest"]) for name, entry in self.inputs.items()}

    def by_round(self, name: str) -> tuple[float | None, ...]:
        """A score after every round; see `RoundRecord.score`. KeyError for an unknown name."""
        return tuple(entry.score(name) for entry in self.rounds)

    def score(self, name: str, at: str = "last") -> float | None:
        """A score at the "last" or "chosen" round; None if training diverged. name: as in `by_round`."""
        if self.diverged:
            return None
        return self.by_round(name)[self.chosen_round - 1 if at == "chosen" else -1]

    @property
    def chosen_round(self) -> int:
        """The best round on validation data; the last round without such data."""
        return self.chosen_before or chosen_round([entry.scores for entry in self.rounds], self.chosen_by)

    def at_last_round(self) -> RunResult:
        """The same run, scored at its last round; sampling errors remain those of the chosen round."""
        return dataclasses.replace(self, chosen_by="", chosen_before=None)

    def sampling_error(self, name: str) -> float | None:
        """Standard error of the chosen round's score due to the finite test set; None if unknown, 0 for TRAIN_LOSS."""
        if name == TRAIN_LOSS:
            return 0.0
        evaluation, measured = name.split("/")
        return self.sampling_errors.get(evaluation, {}).get(measured)

    @property
    def divergence(self) -> str:
        """A phrase that says in which round training diverged; "" if it did not."""
        return f"diverged in round {self.diverged['round']}" if self.diverged else ""

    @property
    def file_name(self) -> str:
        return f"{self.cell.label}-{self.cell_id}.json"

    def held_out_counts(self, evaluation: str) -> tuple[int, ...]:
        """Each client's held-out examples for an evaluation; 0 for a central set and for measurements."""
        has_none = evaluation == ROUND or evaluation in self._central
        return tuple(0 if has_none else int(client[evaluation]) for client in self.clients)

    def examples(self, evaluation: str) -> int:
        """The number of an evaluation's examples over all clients, or in the central set."""
        central = self._central
        return int(central[evaluation]) if evaluation in central else sum(self.held_out_counts(evaluation))

    @property
    def _central(self) -> Mapping[str, int]:
        """Sizes of the sets that score every client; in tuning, the validation set is the test set."""
        sizes: Mapping[str, int] = self.inputs["data"].get("central", {})
        if self.cell.holdout == "test":
            return sizes
        return {"test": sizes[VALIDATION]} if VALIDATION in sizes else {}


class NewerError(ValueError):
    """A newer version of the project wrote the record."""


def result_from_json(value: Mapping[str, Any]) -> RunResult:
    """The result from `to_json` output; KeyError or ValueError for other values, NewerError for a newer version's."""
    schema = value["schema"]
    if isinstance(schema, int) and schema > SCHEMA:
        raise NewerError(f"schema {schema}, this version reads schema {SCHEMA}")
    if schema != SCHEMA:
        raise ValueError(f"expected the record schema {SCHEMA}, found {schema}")
    try:
        record = from_json(RunResult, json.dumps(value))
    except UnknownFieldError as error:
        raise NewerError(f"this version does not know {named('field', error.names)}") from None
    # Old records identify an earlier run by its final weights.
    digests = {name: entry["digest"] for name, entry in record.inputs.items()}
    ids = [record.cell.cell_id(inputs) for inputs in (record.input_digests, digests)]
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
        claimed = stated.get((number, way), "no sum")
        raise ValueError(f"round {number}: expected the ledger's {counted[number, way]} bytes {way}, found {claimed}")
    return record


def checksum(value: Mapping[str, JSON]) -> str:
    """SHA-256 of a record as canonical JSON."""
    return digest(json.loads(json.dumps(value)), 64)


def write_text(path: Path, text: str) -> None:
    """Write a text atomically, as UTF-8."""
    write_bytes(path, text.encode())


def write_result(folder: Path, record: RunResult) -> Path:
    """Write a record with its checksum to a folder; existing records are never overwritten."""
    path = folder / record.file_name
    if not path.exists():
        value = record.to_json()
        value[CHECKSUM] = checksum(value)
        write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def read_result(path: Path) -> RunResult:
    """The result in a file; UserError with the file's name if it is damaged, or a newer version wrote it."""
    try:
        value = parse_json(read_text(path, "a record"), path, "a record")
        expected = value.pop(CHECKSUM, None)
        if checksum(value) != expected:
            raise ValueError("its checksum does not match its content: it was changed after the run")
        return dataclasses.replace(result_from_json(value), folder=path.parent)
    except UnreadableError as error:
        raise UserError(f"{error}; correct its permissions. The record may be intact") from None
    except NewerError as error:
        found, todo = (
            f"one of a newer version of the project ({error})",
            "Update this version (`git pull`).",
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = str(error).removeprefix(f"{path}: ")  # of fedsim.files
        found = f"a damaged one ({problem if isinstance(error, ValueError) else repr(error)})"
        todo = "Restore the file, or move it away to compute the cell again; other records are not touched."
    raise UserError(f"{path}: expected a record of a finished cell, found {found}. {todo}")


def read_results(*folders: Path, unreadable: list[str] | None = None) -> list[RunResult]:
    """All records in folders, ordered by file name, one per cell.

    unreadable: takes a message about each file that cannot be read; without it, one UserError has them all.
    """
    records, problems = dict[str, RunResult](), list[str]()
    for path in (path for folder in folders for path in sorted(folder.glob("*.json"))):
        try:
            record = read_result(path)
            records.setdefault(record.cell_id, record)
        except UserError as error:
            problems.append(str(error))
    if unreadable is not None:
        unreadable += problems
    elif problems:
        raise UserError("\n".join(problems))
    return list(records.values())


def read_folders(folders: Iterable[Path], unreadable: list[str] | None = None) -> list[RunResult]:
    """As `read_results`; UserError if a folder is missing, or only its parent is named."""
    for folder in (folders := list(folders)):
        if not folder.is_dir():
            content = "something else" if folder.exists() else "nothing"
            raise UserError(
                f"{folder}: expected a folder of records, found {content}: run a benchmark first, or name its folder"
            )
        if (folder / "records").is_dir() and not any(folder.glob("*.json")):
            raise UserError(f"{folder}: expected a folder of records, found its parent; name {folder / 'records'}")
    return read_results(*folders, unreadable=unreadable)


# ---- bytes, including earlier runs -------------------------------------------------------------------------------

Find = Callable[[str, str], RunResult | None]  # (cell_id, spec_id) of a run -> its record


class RunBytes(NamedTuple):
    """Payload bytes of all rounds, summed over clients."""

    up: int
    down: int


def stage_bytes(record: RunResult) -> RunBytes:
    """The bytes of a run without its earlier runs."""
    return RunBytes(sum(entry.up_bytes for entry in record.rounds), sum(entry.down_bytes for entry in record.rounds))


def all_stages(record: RunResult, find: Find) -> list[RunResult] | None:
    """A run and all its earlier runs, in order of time; None if an earlier run has no record.

    find: returns the record of an earlier run; see `among` and `completed.in_folder`.
    """
    initial = record.cell.initial
    if initial is None and "initial" not in record.inputs:
        return [record]
    cell_id = record.inputs.get("initial", {}).get("cell_id", "")  # old records lack it
    earlier = find(cell_id, initial.spec_id if initial else "")
    stages = all_stages(earlier, find) if earlier else None
    return [*stages, record] if stages else None


def run_bytes(record: RunResult, find: Find) -> RunBytes | None:
    """The bytes of a run and all its earlier runs; None if a record is missing."""
    stages = all_stages(record, find)
    return RunBytes(*map(sum, zip(*map(stage_bytes, stages), strict=True))) if stages else None


def among(records: Iterable[RunResult]) -> Find:
    """A function that finds earlier runs among records, by cell_id, or else by spec_id."""
    listed = list(records)
    by_id = {record.cell_id: record for record in listed}
    by_spec = {record.cell.spec_id: record for record in listed}
    return lambda cell_id, spec_id: by_id.get(cell_id) or by_spec.get(spec_id)
