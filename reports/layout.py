"""Tables as text in a grid: what every view makes and every renderer draws, each in its own notation."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.spec import Row
from reports.statistics import printed

DAGGER = "†"  # marks a row that the paper does not print
DERIVED = "≈"  # marks what rests on a number that the paper does not print, but that follows from its text
NOTHING = "–"
NOT_RUN = "not run"
UNDEFINED = "undefined"
_METRICS = {
    "accuracy": "Acc",
    "f1": "F1",
    "f1_pn": "F1^PN",
    "matthews_correlation": "Mcc",
    "pearson": "Pearson",
    "text_recovery": "texts",
    "token_recovery": "tokens",
}
_EVALUATIONS = {"test": "", "mismatched": " (mm)"}


@dataclass(frozen=True)
class Line:
    """One line of a method: what its numbers are, and one text a column."""

    label: str
    cells: tuple[str, ...]
    is_main: bool = False


@dataclass(frozen=True)
class Group:
    """The lines of one method."""

    name: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Grid:
    """A table: a title, headers of one or more lines each, and a group of lines a method (or what `stub` names)."""

    title: str
    headers: tuple[tuple[str, ...], ...]
    groups: tuple[Group, ...]
    stub: str = "Method"  # heads the names of the groups


def score_label(score: str) -> str:
    """Short name of a score: "test/f1" -> "F1", "mismatched/accuracy" -> "Acc (mm)"."""
    evaluation, metric = score.split("/")
    return _METRICS.get(metric, metric) + _EVALUATIONS.get(evaluation, f" ({evaluation})")


def row_name(row: Row) -> str:
    """The method's name, with a dagger where the paper does not print it."""
    return row.name if row.printed else f"{row.name} {DAGGER}"


def marked(text: str, is_derived: bool) -> str:
    """A text that says where it rests on a derived number; a dash stays one."""
    return f"{DERIVED} {text}" if is_derived and text != NOTHING else text


def human_bytes(count: float, gigabyte: int = 10**9) -> str:
    """Bytes in readable units: from a tenth of one in the paper's GB, below that in decimal MB and kB."""
    if count >= gigabyte / 10:
        return f"{printed(count / gigabyte)} GB"
    if count >= 10**6:
        return f"{printed(count / 10**6)} MB"
    return f"{printed(count / 10**3)} kB" if count >= 10**3 else f"{count:.0f} B"


def human_seconds(seconds: float) -> str:
    """A duration in readable units."""
    if seconds >= 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.1f} s"


def number(value: float | None, sign: str = "", places: int = 2) -> str:
    """A number with so many decimals; a dash for none."""
    return NOTHING if value is None else f"{printed(value, places=places):{sign}}".replace("-", "−")
