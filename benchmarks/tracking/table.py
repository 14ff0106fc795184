"""What MLflow needs of a table's definition, as plain data: the same whatever part of the table a call runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.measures import metric
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig

if TYPE_CHECKING:
    from mlflow.entities import Run

MIRRORED = "_mirrored"  # tag of a run that shows a whole record: a digest of all that it shows


@dataclass(frozen=True)
class TableCell:
    """How a table shows a run.

    rows, method: ids and names of the rows that show it. score: the one that counts, "test/f1"; "" for none.
    published: that score in the paper, in the metric's unit. is_reference: no row of the paper, such as central
    training. command: repeats the run.
    """

    rows: tuple[str, ...] = ()
    method: str = ""
    score: str = ""
    published: float | None = None
    is_reference: bool = False
    command: str = ""

    @property
    def published_text(self) -> str:
        """The published score with its unit; "" where there is none."""
        return "" if self.published is None else metric(self.score).in_unit(f"{self.published:g}")


@dataclass(frozen=True)
class Table:
    """A table at a scale, as it is defined or with a user's changes, which make it another table.

    id: letters, digits and hyphens, by which views find its runs. name: of its run. changes: a user's, "" for none.
    title, paper: descriptions of the table's run and of the experiment. scores: task -> the score that counts there.
    places: how many rows × columns it has. has_methods: whether it shows anything but references.
    cells: definition_id -> how it shows that run. is_comparable: whether a record may be held against the paper.
    """

    id: str
    name: str
    changes: str = ""
    title: str = ""
    paper: str = ""
    scores: Mapping[str, str] = field(default_factory=dict)
    places: int = 0
    has_methods: bool = True
    command: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    cells: Mapping[str, TableCell] = field(default_factory=dict)
    is_comparable: Callable[[RunResult], bool] = lambda record: False

    def shown(self, cell: RunConfig) -> TableCell:
        """How the table shows a run; an earlier run, from which others begin, has no row."""
        return self.cells.get(cell.definition_id, TableCell(method=cell.algorithm))

    def comparability(self, record: RunResult) -> str:
        """What stands behind the published score."""
        return "" if self.is_comparable(record) else " (not comparable)"

    def state(self, runs: Sequence[Run]) -> tuple[str, int]:
        """The status of the table's run, and how many of its cells have a result.

        Args:
            runs: The runs below the table's in MLflow, whoever computed them.
        """
        results = [run.data.tags for run in runs if MIRRORED in run.data.tags]
        others = {run.info.status for run in runs if MIRRORED not in run.data.tags}
        done = {(row, tags["task"]) for tags in results for row in tags.get("_rows", "").split(",") if row}
        if "RUNNING" in others and not 0 < self.places <= len(done):
            return "RUNNING", len(done)
        stopped = "FAILED" if "FAILED" in others else "KILLED" if others else "FINISHED"
        return "FINISHED" if results else stopped, len(done)
