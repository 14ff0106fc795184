"""What MLflow is told of a table: how it shows its cells, what the paper reports of them, and both in words."""

from __future__ import annotations

from benchmarks.cli.select import Selection
from benchmarks.environment import code_revision
from benchmarks.measures import metric
from benchmarks.record import RunRecord
from benchmarks.spec import Column, Row
from benchmarks.tracking import About, Shown

RowsOf = list[tuple[Row, Column]]


def shown_cells(chosen: Selection) -> dict[str, Shown]:
    """definition_id of a cell -> how the table shows it."""
    reported = _reported(chosen)
    by_cell: dict[str, RowsOf] = {}
    for row, column, cell in chosen.cells():
        by_cell.setdefault(cell.definition_id, []).append((row, column))
    return {name: _shown(places, reported) for name, places in by_cell.items()}


def about(chosen: Selection) -> About:
    """The table and its paper in words."""
    from reports.views.reproduced import is_comparable

    def may_be_compared(record: RunRecord) -> bool:
        return record.cell.holdout == "test" and is_comparable(chosen.scale, [record])

    benchmark, paper = chosen.benchmark, chosen.benchmark.paper
    label = benchmark.label(chosen.scale, chosen.columns)
    return About(
        f"{paper.name}: {paper.citation}. One run a cell (method, task, seed), below the run of each table. "
        f"Communication cost in the paper: {paper.bytes_convention}. Here `bytes/uplink` and `bytes/downlink` are sums "
        "over rounds and clients, in bytes; scores of percent are fractions. Methods marked † are in no paper and put "
        "others in their place. The menu *Views* has each table and task.",
        f"{paper.name}, {benchmark.place}: {benchmark.title}. Scale {chosen.scale.id}: {label}.",
        {"benchmark": benchmark.id, "paper": paper.id, "place": benchmark.place, "scale": chosen.scale.id},
        may_be_compared,
    )


def group_tags(chosen: Selection) -> dict[str, str]:
    """What one searches the runs of tables by."""
    tags = {
        "benchmark": chosen.benchmark.id,
        "place": chosen.benchmark.place,
        "scale": chosen.benchmark.label(chosen.scale, chosen.columns),
        "backbone": chosen.scale.backbone,
        "tasks": ",".join(column.task for column in chosen.columns),
        "methods": ",".join(row.id for row in chosen.rows),
        "seeds": ",".join(map(str, chosen.seeds)),
    }
    revision = code_revision()["revision"]
    return tags | ({"mlflow.source.git.commit": str(revision)} if revision else {})


def _reported(chosen: Selection) -> dict[tuple[str, str, str], float]:
    """(row, task, score) -> what the paper reports, as it is printed; empty where it cannot be read."""
    from reports import ReportError
    from reports.evidence.published import published_for
    from reports.evidence.records import request_for

    table = str(chosen.benchmark.view.options.get("printed_in", ""))
    try:
        found = published_for(request_for(chosen.benchmark, chosen.scale, ()), table)
    except ReportError:  # the report at the end says it
        return {}
    return {place: entry.value for place, entry in found.items()}


def _shown(places: RowsOf, reported: dict[tuple[str, str, str], float]) -> Shown:
    from reports.pages.text import row_name

    score = places[0][1].averaged
    values = [reported.get((row.id, column.task, score)) for row, column in places]
    value = next((value for value in values if value is not None), None)
    rows = tuple(dict.fromkeys(row.id for row, _ in places))
    names = dict.fromkeys(row_name(row) for row, _ in places)
    in_unit = None if value is None else round(value / metric(score).factor, 12)  # 76.65 % is 0.7665
    return Shown(rows, " / ".join(names), score, in_unit, not any(row.printed for row, _ in places))
