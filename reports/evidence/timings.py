"""Files of `make bench`, in which rows were trained one after the other on one machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchmarks.run_config import JSON
from fedsim.files import read_json
from reports import ReportError

Parsed = TypeVar("Parsed")


def read_timings(path: Path | None, parse: Callable[[JSON], Parsed]) -> Parsed | None:
    """What such a file holds; None where there is none. ReportError where it is damaged."""
    if path is None or not path.is_file():
        return None
    try:
        return parse(read_json(path))
    except (ValueError, KeyError, TypeError) as error:
        raise ReportError(
            f"{path}: expected a file of timings, found a damaged one ({type(error).__name__}: {error}). "
            "Restore the file."
        ) from None


def percents(content: JSON) -> dict[str, float]:
    """Row id -> its seconds in percent of the baseline's."""
    return {entry["row"]: float(entry["percent"]) for entry in content["rows"] if entry["row"]}
