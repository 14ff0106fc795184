"""Bytes that a run sent: in its last stage alone, and together with the earlier runs from which it starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks.results import RunResult, read_result
from benchmarks.running.completed import initial_of

Find = Callable[[str, str], RunResult | None]  # (cell_id, spec_id) of a run -> its record


class RunBytes(NamedTuple):
    """Payload bytes of all rounds, summed over clients."""

    up: int
    down: int


def stage_bytes(record: RunResult) -> RunBytes:
    """The bytes of a run without its earlier runs."""
    return RunBytes(sum(entry.up_bytes for entry in record.rounds), sum(entry.down_bytes for entry in record.rounds))


def run_bytes(record: RunResult, find: Find) -> RunBytes | None:
    """The bytes of a run and of every earlier run from which it starts.

    Args:
        record: The finished run.
        find: Gives the record of an earlier run; see `among` and `in_folder`.

    Returns:
        The sums, or None where the record of an earlier run is missing.
    """
    before, stage = initial_of(record.cell), stage_bytes(record)
    if before is None:
        return stage
    cell_id = record.inputs.get("initial", {}).get("cell_id", "")  # the first records lack it
    earlier = find(cell_id, before.spec_id)
    sent = run_bytes(earlier, find) if earlier is not None else None
    return RunBytes(sent.up + stage.up, sent.down + stage.down) if sent is not None else None


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
