"""Which records stand behind a cell of a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark, Column, Row, Scale


@dataclass(frozen=True)
class Selection:
    """The records of one cell, one a seed in the order of seeds, and how many others were left out."""

    records: tuple[RunRecord, ...] = ()
    left_out: int = 0


def digests(record: RunRecord) -> dict[str, str]:
    """Input name -> digest: what, with the definition, identifies a run."""
    return {name: entry["digest"] for name, entry in record.inputs.items()}


def is_partial(record: RunRecord) -> bool:
    """Whether some of the task's data were lacking."""
    return any(str(note).startswith("partial") for note in record.inputs["data"].get("notes", ()))


def by_definition(records: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """spec_id -> its records in the order in which they finished, each run once."""
    runs = {record.cell_id: record for record in sorted(records, key=lambda record: record.finished)}
    index: dict[str, list[RunRecord]] = {}
    for record in runs.values():
        index.setdefault(record.cell.spec_id, []).append(record)
    return index


def select(
    benchmark: Benchmark,
    scale: Scale,
    row: Row,
    column: Column,
    index: Mapping[str, Sequence[RunRecord]],
    seeds: Iterable[int],
) -> Selection:
    """The records whose cell is the definition's up to the seed, all with the inputs of the newest one."""
    found = [
        record for seed in sorted(seeds) for record in index.get(benchmark.cell(row, column, scale, seed).spec_id, ())
    ]
    if not found:
        return Selection()
    newest = digests(max(found, key=lambda record: record.finished))
    kept = tuple(record for record in found if digests(record) == newest)
    return Selection(kept, len(found) - len(kept))
