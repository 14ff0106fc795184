"""What MLflow needs of a table's definition; it does not depend on the part of the table that a command runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from benchmarks.measures import metric
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig


@dataclass(frozen=True)
class TableCell:
    """How a table shows a run.

    rows, method: ids and names of the rows that show it. score: the score of its column, "test/f1", or "".
    published: that score in the paper, in the metric's unit. is_reference: whether it is no row of the paper, such as
    central training. command: repeats the run.
    """

    rows: tuple[str, ...] = ()
    method: str = ""
    score: str = ""
    published: float | None = None
    is_reference: bool = False
    command: str = ""

    @property
    def published_text(self) -> str:
        """The published score with its unit, or ""."""
        return "" if self.published is None else metric(self.score).in_unit(f"{self.published:g}")


@dataclass(frozen=True)
class Table:
    """A table at a scale; a user's changes make it another table.

    id: letters, digits and hyphens, by which views select its runs. name: of its run. changes: the user's, or "".
    title, paper: descriptions of the table's run and of the experiment. scores: task -> the score of its column.
    places: the number of rows × columns. has_methods: whether it shows anything but references.
    cells: definition_id -> how it shows that run. is_comparable: whether a record may be compared with the paper.
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
    cells: Mapping[str, TableCell] = field(default_factory=dict)
    is_comparable: Callable[[RunResult], bool] = lambda record: False

    def shown(self, cell: RunConfig) -> TableCell:
        """How the table shows a run; an earlier run, from which others begin, has no row."""
        return self.cells.get(cell.definition_id, TableCell(method=cell.algorithm))
