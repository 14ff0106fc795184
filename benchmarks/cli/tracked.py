"""The table that MLflow shows: its definition, the names of its runs, and the published values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product

from benchmarks.cli.select import Selection
from benchmarks.errors import UserError
from benchmarks.experiment import Column, Row
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig, canonical_json, digest
from benchmarks.running.run_options import RunOptions
from benchmarks.tracking import Mirror, Table, TableCell, default_tracking_uri, require_uri


def open_mirror(chosen: Selection, made: RunOptions, warn: Callable[[str], None]) -> Mirror:
    """The sink that shows a selection in MLflow: a run for its table, and one below it for each cell."""
    uri = default_tracking_uri(made.results_dir)
    require_uri(uri)
    return Mirror(uri, made.results_dir, chosen.benchmark.paper.id, tracked_table(chosen, made), warn)


def tracked_table(chosen: Selection, made: RunOptions) -> Table:
    """The whole table of which a selection is a part; of a sweep, its trials."""
    from reports.views.reproduced import is_comparable

    def may_be_compared(record: RunResult) -> bool:
        return record.cell.holdout == "test" and is_comparable(chosen.scale, [record])

    benchmark, scale, paper = chosen.benchmark, chosen.scale, chosen.benchmark.paper
    rows, columns = benchmark.rows_at(scale), benchmark.columns_at(scale)
    changes = "; ".join(text.removeprefix("changed: ") for text in scale.changes)
    slug = re.sub(r"[^a-z0-9]+", "-", chosen.title.lower())
    convention = (
        f"Communication cost in the paper: {paper.bytes_convention}. Here `bytes/uplink`, `bytes/downlink` and MB are "
        "sums over rounds and clients, with all earlier runs from which a run begins; `_stage` leaves these out. "
        "Methods marked † are in no paper. The menu *Views* has each table and task, and its curves."
    )
    label = benchmark.label(scale, columns)
    return Table(
        id=f"{slug}-changed-{digest(scale.label, 8)}" if changes else slug,
        name=f"{chosen.title}, {changes}" if changes else chosen.title,
        changes=changes,
        title=f"{paper.name}, {benchmark.place}: {benchmark.title}. Scale {scale.id}: {label}.",
        paper=f"{paper.name}: {paper.citation}. {convention}",
        scores={column.task: column.averaged for column in columns},
        places=0 if _is_sweep(chosen) else len(rows) * len(columns),
        has_methods=any(row.printed for row in rows),
        command=shlex.join(_command(chosen, made)),
        params={"benchmark": benchmark.id, "paper": paper.id, "place": benchmark.place, "scale": scale.id},
        cells=_cells(chosen, made),
        is_comparable=may_be_compared,
    )


def _is_sweep(chosen: Selection) -> bool:
    return chosen.title.endswith(" sweep")


def _command(chosen: Selection, made: RunOptions) -> list[str]:
    """The words of the command that repeats a table, or a sweep of it."""
    words = ["python", "-m", "benchmarks", "sweep" if _is_sweep(chosen) else "run", chosen.benchmark.id]
    words += ["--scale", chosen.scale.id]
    for name, value in chosen.benchmark.overrides:
        words += ["--set", f"{name}={value if isinstance(value, str) else canonical_json(value)}"]
    words += ["--from-sweep"] if any("by a sweep" in text for text in chosen.scale.changes) else []
    words += ["--backbone", made.backbone] if made.backbone else []
    words += ["--data-dir", str(made.data_dir)] if made.data_dir else []
    return [*words, *(["--lenient"] if made.lenient else [])]


def _cells(chosen: Selection, made: RunOptions) -> dict[str, TableCell]:
    """definition_id of a run -> how the table shows it."""
    published, command = _published(chosen), _command(chosen, made)
    places: dict[str, list[tuple[Row, Column, int]]] = {}
    for row, column, cell in chosen.cells() if _is_sweep(chosen) else _whole(chosen):
        places.setdefault(cell.definition_id, []).append((row, column, cell.seed))
    return {name: _shown(found, published, command, _is_sweep(chosen)) for name, found in places.items()}


def _whole(chosen: Selection) -> Iterator[tuple[Row, Column, RunConfig]]:
    """Every cell of a table, whatever part of it is chosen."""
    benchmark, scale = chosen.benchmark, chosen.scale
    for row, column, seed in product(benchmark.rows_at(scale), benchmark.columns_at(scale), chosen.seeds):
        with suppress(UserError):  # settings that other methods do not have
            yield row, column, benchmark.cell(row, column, scale, seed)


def _shown(
    places: Sequence[tuple[Row, Column, int]],
    published: Mapping[tuple[str, str, str], float],
    command: Sequence[str],
    is_sweep: bool,
) -> TableCell:
    from reports.pages.text import row_name

    rows, (_, column, seed) = [row for row, _, _ in places], places[0]
    values = (published.get((row.id, column.task, column.averaged)) for row in rows)
    of_run = [] if is_sweep else ["--methods", rows[0].id, "--tasks", column.task, "--seed", str(seed)]
    return TableCell(
        rows=tuple(dict.fromkeys(row.id for row in rows)),
        method=" / ".join(dict.fromkeys(map(row_name, rows))),
        score=column.averaged,
        published=next((value for value in values if value is not None), None),
        is_reference=not any(row.printed for row in rows),
        command=shlex.join([*command, *of_run]),
    )


def _published(chosen: Selection) -> dict[tuple[str, str, str], float]:
    """(row, task, score) -> what the paper reports, in the metric's unit; empty where it cannot be read."""
    from reports import ReportError
    from reports.evidence.published import published_for
    from reports.evidence.records import request_for

    table = str(chosen.benchmark.view.options.get("printed_in", ""))
    try:
        found = published_for(request_for(chosen.benchmark, chosen.scale, ()), table)
    except ReportError:  # the report at the end says it
        return {}
    return {place: entry.value for place, entry in found.items()}
