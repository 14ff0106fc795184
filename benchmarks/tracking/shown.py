"""How a table shows its cells, as plain data: what MLflow cannot know from a cell or its record alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from benchmarks.measures import metric
from benchmarks.record import RunRecord


def _never(_: RunRecord) -> bool:
    return False


@dataclass(frozen=True)
class Shown:
    """A cell in its table. score: "test/f1", the one that counts; "" for none.

    rows, method: ids and name of the rows that show it. reported: what the paper reports, in the unit of records.
    is_reference: no row of the paper, but one that puts others in their place, such as central training.
    """

    rows: tuple[str, ...] = ()
    method: str = ""
    score: str = ""
    reported: float | None = None
    is_reference: bool = False


@dataclass(frozen=True)
class About:
    """A table and its paper in words. params: of the table's run, which never change.

    is_comparable: whether a record may be held against what the paper reports.
    """

    paper: str = ""
    table: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    is_comparable: Callable[[RunRecord], bool] = _never


def table_values(record: RunRecord, shown: Shown, about: About) -> dict[str, float | None]:
    """The score that counts, what the paper reports of it and the difference, all in the unit of records."""
    try:
        score = record.score(shown.score, "chosen") if shown.score and record.rounds else None
    except KeyError:  # an old record, from before its table had this score
        score = None
    difference = None
    if score is not None and shown.reported is not None and about.is_comparable(record):
        difference = score - shown.reported
    return {"score": score, "reported": shown.reported, "difference_to_reported": difference}


def is_lower_better(shown: Mapping[str, Shown]) -> bool:
    """Whether the scores of all cells, by definition_id, are of metrics of which less is better."""
    scores = {cell.score for cell in shown.values() if cell.score}
    return bool(scores) and not any(metric(score).higher_is_better for score in scores)
