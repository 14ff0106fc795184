"""The result of a finished run: JSON, written atomically, the truth from which everything else is computed."""

from __future__ import annotations

import dataclasses
import json
import operator
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from benchmarks.errors import UserError
from benchmarks.measures import TRAIN_LOSS, metric
from benchmarks.run_config import JSON, VALIDATION, RunConfig, digest
from fedsim.files import parse_json, read_text
from fedsim.strict import from_json, later, strict, to_plain

SCHEMA = 1
CHECKSUM = "sha256"  # of the rest of the file's content, as canonical JSON
POOLED = "pooled"  # the evaluation on all clients' test examples together: "pooled/pearson"
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
    messages: Count = 1  # number of payloads; the first results have an entry for each


def _absent(kind: Any) -> Any:
    """A group that is left out of the JSON where it is empty: the first results know of none."""
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


def chosen_round(scores: Sequence[Mapping[str, Mapping[str, float | None]]], by: str) -> int:
    """Of rounds with their scores, the number of the first that is best by a score; the last one without a score."""
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
    predictions: Mapping[str, JSON] = _absent(dict)  # {"sha256"} of the file of benchmarks.predictions
    # {"round", "reason"} where training left the finite numbers: the result has the rounds before that one, and no
    # score at its end, no sampling error and no prediction.
    diverged: Mapping[str, JSON] = _absent(dict)
    schema: int = SCHEMA
    # where it was read, with its predictions; not in the JSON
    folder: Annotated[Path | None, Field(exclude=True)] = dataclasses.field(default=None, compare=False)

    def to_json(self) -> dict[str, JSON]:
        """The result as plain JSON values."""
        value: dict[str, JSON] = to_plain(self)
        return {**value, "cell": self.cell.to_json()}

    @property
    def known_by(self) -> dict[str, str]:
        """What it was computed from, as `Inputs.digests`: input -> digest, or id of the cell that made it."""
        return {name: entry.get("cell_id", entry["digest"]) for name, entry in self.inputs.items()}

    @property
    def outcome(self) -> dict[str, JSON]:
        """The part that must not depend on where, when and how often the cell was started."""
        value = json.loads(json.dumps(self.to_json()))
        for volatile in ("environment", "timing", "finished"):
            del value[volatile]
        del value["inputs"]["data"]["origin"], value["inputs"]["backbone"]["origin"]
        return value

    def by_round(self, name: str) -> tuple[float | None, ...]:
        """The clients' combined score ("test/f1") after every round, as recorded; or each round's TRAIN_LOSS.

        "pooled/f1" is the score on all clients' test examples together. None where it is undefined, where the data of
        this run lacked its evaluation and had others, or where an old record holds no pooled scores; KeyError where it
        is unknown.
        """
        if name == TRAIN_LOSS:
            return tuple(entry.train_loss for entry in self.rounds)
        evaluation, measured = name.split("/")
        if evaluation == POOLED:
            pooled = [entry.pooled_scores for entry in self.rounds]
            return tuple(scores["test"][measured] if scores else None for scores in pooled)
        if self.rounds and self.rounds[0].scores and evaluation not in self.rounds[0].scores:
            return (None,) * len(self.rounds)
        return tuple(entry.scores[evaluation][measured] for entry in self.rounds)

    def score(self, name: str, at: str = "last") -> float | None:
        """A score as `by_round` has it: at the last round, at the "best" one by its metric, or at the "chosen" one.

        None where training diverged: no round is what became of the cell.
        """
        if self.diverged:
            return None
        values = self.by_round(name)
        if at == "chosen":
            return values[self.chosen_round - 1]
        return values[-1] if at == "last" else metric(name).best(values)

    @property
    def chosen_round(self) -> int:
        """The round that is best on validation data; the last one where none was held back for that."""
        return chosen_round([entry.scores for entry in self.rounds], self.chosen_by)

    def at_last_round(self) -> RunResult:
        """The same run, scored at its last round; finite test sets' errors stay those of the round that was chosen."""
        return dataclasses.replace(self, chosen_by="")

    def sampling_error(self, name: str) -> float | None:
        """Of the chosen round's score, from the finite test set; None where it is unknown, 0 of a training loss."""
        if name == TRAIN_LOSS:
            return 0.0
        evaluation, measured = name.split("/")
        return self.sampling_errors.get(evaluation, {}).get(measured)

    @property
    def divergence(self) -> str:
        """Of a cell whose training diverged, when, in words; "" of another."""
        return f"diverged in round {self.diverged['round']}" if self.diverged else ""

    @property
    def file_name(self) -> str:
        """The name under which the record is kept."""
        return f"{self.cell.label}-{self.cell_id}.json"

    @property
    def predictions_name(self) -> str:
        """The name of the compressed file next to it, of the cell's answers."""
        return f"{self.cell.label}-{self.cell_id}.predictions.safetensors.xz"

    def own_examples(self, evaluation: str) -> tuple[int, ...]:
        """Examples of an evaluation that each client keeps back; none where its set is central."""
        is_central = evaluation in self._central
        return tuple(0 if is_central else int(client[evaluation]) for client in self.clients)

    def examples(self, evaluation: str) -> int:
        """Examples of an evaluation, of all clients together; those of the central set where there is one."""
        central = self._central
        return int(central[evaluation]) if evaluation in central else sum(self.own_examples(evaluation))

    @property
    def _central(self) -> Mapping[str, int]:
        """The sets on which every client was scored; a cell for tuning has the validation set, if any, for its test."""
        found: Mapping[str, int] = self.inputs["data"].get("central", {})
        if self.cell.holdout == "test":
            return found
        return {"test": found[VALIDATION]} if VALIDATION in found else {}


def result_from_json(value: Mapping[str, Any]) -> RunResult:
    """The result that `to_json` wrote; raises KeyError or ValueError where it is not one."""
    if value["schema"] != SCHEMA:
        raise ValueError(f"record schema {value['schema']}, this version reads {SCHEMA}")
    record = from_json(RunResult, json.dumps(value))
    ids = [record.cell.cell_id(known) for known in (record.known_by, _first_known_by(record))]
    if record.cell_id not in ids:
        raise ValueError(f"its content gives the id {ids[0]}, not {record.cell_id}: it was changed after the run")
    return record


def _first_known_by(record: RunResult) -> dict[str, str]:
    """As `known_by` in the first results, whose earlier runs were known by the weights that they left."""
    return {name: entry["digest"] for name, entry in record.inputs.items()}


def round_from_json(value: Mapping[str, Any]) -> RoundRecord:
    """A round as a result's JSON has it; raises ValueError where it is not one."""
    return from_json(RoundRecord, json.dumps(value))


def require_sense(record: RunResult) -> None:
    """ValueError where numbers contradict each other: a checksum does not say that a run wrote them."""
    for problem in _problems(record):
        raise ValueError(problem)


def _problems(record: RunResult) -> Iterator[str]:
    clients = record.cell.clients
    for name in ("data", "backbone"):
        if not {"digest", "origin"} <= record.inputs.get(name, {}).keys():
            yield f"inputs: expected the digest and the origin of the {name}"
    if [entry.round for entry in record.rounds] != list(range(1, len(record.rounds) + 1)):
        yield "rounds: expected 1, 2, 3 and so on"
    if len(record.rounds) > record.cell.training.last_round:
        yield f"rounds: expected at most {record.cell.training.last_round}, found {len(record.rounds)}"
    if not record.diverged and not record.rounds:
        yield "rounds: expected some of a cell that did not diverge"
    if len(record.clients) != clients:
        yield f"clients: expected {clients}, found {len(record.clients)}"
    for entry in record.rounds:
        if not set(entry.cohort) <= set(range(clients)):
            yield f"round {entry.round}: a cohort of clients that there are not"
        if len(entry.client_scores) != clients:
            yield f"round {entry.round}: expected scores of {clients} clients, found {len(entry.client_scores)}"
    yield from _ledger(record)


def _ledger(record: RunResult) -> Iterator[str]:
    clients = record.cell.clients
    sums: Counter[tuple[int, str]] = Counter()
    for row in record.ledger:
        if row.round > len(record.rounds) or row.client >= clients:
            yield f"ledger: expected one of the rounds and clients, found {tuple(row)}"
        sums[row.round, row.direction] += row.bytes
    for entry in record.rounds:
        for direction, said in (("up", entry.up_bytes), ("down", entry.down_bytes)):
            if said != sums[entry.round, direction]:
                found = sums[entry.round, direction]
                yield f"round {entry.round}: {said} bytes {direction}, and {found} in the ledger"
    if record.setup_bytes != sums[0, "down"] + sums[0, "up"]:
        yield f"set-up: {record.setup_bytes} bytes, and {sums[0, 'down'] + sums[0, 'up']} in the ledger"


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically: readers see the old content or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def checksum(value: Mapping[str, JSON]) -> str:
    """SHA-256 of a record's content."""
    return digest(json.loads(json.dumps(value)), 64)


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, atomically."""
    write_bytes(path, text.encode())


def write_result(folder: Path, record: RunResult) -> Path:
    """Keep a record in a folder under its own name, with its checksum; a finished record is never overwritten."""
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
        require_sense(record)
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
    """The records of several folders, each cell once, the first found; UserError where one is no folder."""
    found: dict[str, RunResult] = {}
    for folder in folders:
        if not folder.is_dir():
            what = "something else" if folder.exists() else "nothing"
            raise UserError(
                f"{folder}: expected a folder of records, found {what}: run a benchmark first, or name its folder"
            )
        for record in read_results(folder):
            found.setdefault(record.cell_id, record)
    return list(found.values())
