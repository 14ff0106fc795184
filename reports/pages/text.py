"""Numbers and names as a page writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.spec import Row
from reports.evidence.statistics import printed

DAGGER = "†"  # marks a row that the paper does not print
DERIVED = "≈"  # marks what rests on a number that the paper does not print, but that follows from its text
NOTHING = "–"
NOT_RUN = "not run"
UNDEFINED = "undefined"


def row_name(row: Row) -> str:
    """The method's name, with a dagger where the paper does not print it."""
    return row.name if row.printed else f"{row.name} {DAGGER}"


def dagger_note(rows: Sequence[Row]) -> str:
    """What the dagger means, where one of the rows has it."""
    return "" if all(row.printed for row in rows) else f" {DAGGER} not in the paper."


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


def interval_text(interval: tuple[float, float] | None) -> str:
    """An interval in square brackets; a dash for none."""
    return NOTHING if interval is None else f"[{number(interval[0])}, {number(interval[1])}]"


def joined(texts: Iterable[str]) -> str:
    """The texts of a cell's numbers as a paper prints them, a/b; one dash where there is none at all."""
    found = list(texts)
    return NOTHING if set(found) == {NOTHING} else "/".join(found)
