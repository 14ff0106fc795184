"""What a curve is made of: one quantity after every round, for each seed, and what the paper states of it."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.record import RunRecord
from benchmarks.spec import Column, Row
from reports.comparison import DEMO
from reports.errors import ReportError
from reports.layout import score_label
from reports.page import Request
from reports.published import lookup, read_published
from reports.statistics import mean

TRAIN_LOSS = "train_loss"
QUANTITIES = ("score", TRAIN_LOSS)


@dataclass(frozen=True)
class Series:
    """A method's curve on a task. values: a tuple a seed, of one number a round; None where it is undefined."""

    row: Row
    column: Column
    seeds: tuple[int, ...]
    values: tuple[tuple[float | None, ...], ...]

    @property
    def is_run(self) -> bool:
        """Whether a record of this cell exists."""
        return bool(self.seeds)

    @property
    def by_round(self) -> tuple[tuple[float, ...], ...]:
        """The defined values of all seeds, round by round."""
        return tuple(tuple(value for value in values if value is not None) for values in zip(*self.values, strict=True))

    @property
    def means(self) -> tuple[float | None, ...]:
        """Mean over seeds, round by round."""
        return tuple(mean(values) if values else None for values in self.by_round)


@dataclass(frozen=True)
class Fact:
    """What the paper's text states of a curve: beyond `level` within `round` rounds."""

    row: Row
    column: Column
    level: float
    round: int


def quantity_of(request: Request) -> str:
    """What the view's options ask for: "score" or "train_loss"."""
    quantity = str(request.benchmark.view.options["quantity"])
    if quantity not in QUANTITIES:
        raise ReportError(f"{request.benchmark.id}: expected a quantity of {', '.join(QUANTITIES)}, found {quantity!r}")
    return quantity


def measure_of(request: Request, column: Column) -> str:
    """The quantity of a task as a score id: "test/accuracy", …, or "train_loss"."""
    return TRAIN_LOSS if quantity_of(request) == TRAIN_LOSS else column.averaged


def measure_label(measure: str) -> str:
    """The quantity of a task as a reader names it, with its unit."""
    return "training loss" if measure == TRAIN_LOSS else f"{score_label(measure)} (%)"


def _values(record: RunRecord, measure: str) -> tuple[float | None, ...]:
    """The quantity after every round: scores in percent, losses as they are."""
    if measure == TRAIN_LOSS:
        return tuple(entry.train_loss for entry in record.rounds)
    evaluation, metric = measure.split("/")
    try:
        fractions = [entry.scores[evaluation][metric] for entry in record.rounds]
    except KeyError:
        raise ReportError(
            f"record {record.file_name}: expected the score {measure!r} of every round, found none. "
            "Move the record away to compute the cell again."
        ) from None
    return tuple(None if value is None else 100 * value for value in fractions)


def series_of(request: Request, row: Row, column: Column) -> Series:
    """The curve of one cell, empty where it was not run."""
    records, measure = request.records_of(row, column), measure_of(request, column)
    seeds = tuple(record.cell.seed for record in records)
    return Series(row, column, seeds, tuple(_values(record, measure) for record in records))


def all_series(request: Request) -> dict[tuple[str, str], Series]:
    """(row id, task) -> its curve."""
    return {
        (row.id, column.task): series_of(request, row, column) for row in request.rows for column in request.columns
    }


def reference_ids(request: Request) -> tuple[str, ...]:
    """The rows that answer the same after every round, drawn as a level."""
    return tuple(request.benchmark.view.options.get("references", ()))


def methods_of(request: Request) -> tuple[Row, ...]:
    """The rows that are drawn as curves."""
    return tuple(row for row in request.rows if row.id not in reference_ids(request))


def references_of(request: Request) -> tuple[Row, ...]:
    """The rows that are drawn as levels."""
    return tuple(row for row in request.rows if row.id in reference_ids(request))


def facts_of(request: Request) -> tuple[Fact, ...]:
    """What the paper states of the curves shown: never at the demo scale."""
    if request.scale.id == DEMO:
        return ()
    stated = lookup(read_published(request.benchmark.published_csv), request.benchmark.place)
    return tuple(
        Fact(row, column, stated[place], int(stated[row.id, column.task, "rounds"]))
        for row in request.rows
        for column in request.columns
        if (place := (row.id, column.task, measure_of(request, column))) in stated
    )
