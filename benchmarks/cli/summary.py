"""The summary after a run: a matrix of scores, their evidence, bytes, and the files of the whole table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import api
from benchmarks.experiment import Column, Row
from benchmarks.results import RunBytes, RunResult, all_stages, among, stage_bytes
from benchmarks.run_config import digest
from benchmarks.selection import Selection
from fedsim.errors import plural
from reports.evidence.gate import gates
from reports.evidence.published_files import AVERAGE
from reports.evidence.records import Request
from reports.evidence.scores import defined, score_label, scores_of
from reports.evidence.statistics import mean, sample_sd
from reports.evidence.traffic import measured_cost
from reports.pages import files
from reports.pages.page import Page
from reports.pages.render import print_page
from reports.pages.text import NOTHING, at_round, dagger_note, in_one_unit, number, skipped_note

REFERENCES = ("local-majority", "fedavg")  # rows shown next to a run's, if they have records
WIDTH = 150  # characters per line in a file: fits nine tasks with one seed


def show_run(
    chosen: Selection, records: Sequence[RunResult], every: Sequence[RunResult], results_dir: Path, notes: bool
) -> list[Path]:
    """Print a run's results and write the whole table; returns its files.

    every: all records, for the table and for reference rows of the same tasks and seeds.
    """
    names = {row.id for row in chosen.named}
    rows, shown = list(chosen.named), list(records)
    references = [row for row in chosen.benchmark.rows_at(chosen.scale) if row.id in REFERENCES and row.id not in names]
    for row in reversed(references if names else []):
        cells = {cell.spec_id for cell in replace(chosen, rows=[row]).runs()}
        if of_row := [record for record in every if record.cell.spec_id in cells]:
            rows, shown = [row, *rows], [*shown, *of_row]
    find = among(every)
    earlier = [stage for record in shown for stage in (all_stages(record, find) or [])[:-1]]
    page = api.page(replace(chosen, named=rows), [*shown, *earlier])
    print(*summary(page), sep="\n")
    print_page(page, Console(), tables=False, notes=notes)
    _, folder, paths = write_table(chosen, every, results_dir)
    print(f"Tables, plots and {plural(len(page.notes), 'note')} (--notes): {folder}")
    return paths


def write_table(
    chosen: Selection,
    records: Sequence[RunResult],
    results_dir: Path,
    score_at: str = "",
    draw: Any = files.draw,
) -> tuple[Page, Path, list[Path]]:
    """Write the whole table of a selection; returns its page, the folder and the files.

    Changed settings get a separate folder. draw: writes the plots, or collects them for later.
    """
    scale = chosen.scale
    rows, columns = chosen.benchmark.rows_at(scale), chosen.benchmark.columns_at(scale)
    whole = replace(chosen, rows=rows, columns=columns, named=())
    page = api.page(whole, records, score_at)
    name = f"{scale.id}-changed-{digest(scale.label, 8)}" if scale.changed else scale.id
    folder = results_dir / "reports" / chosen.benchmark.id / name
    return page, folder, files.write_report(page, folder, draw)


def summary(page: Page, width: int | None = None) -> list[str]:
    """A heading, each method's score per task, notes on the evidence, and bytes.

    width: characters per line of the matrix; None for the terminal's width.
    """
    request, console = page.request, Console()
    width = width or (console.width if console.is_terminal else WIDTH)
    lines = [f"{request.heading}: {request.coverage}"]
    if page.ranks and page.run:
        lines += [*_matrix(page, width), *_worth(request)]
    lines += [": ".join(page.finding)] if page.finding else []
    diverged = [
        f"{request.name_of(row)} on {column.name} {selection.divergence}"
        for row in request.rows
        for column in request.columns
        if (selection := request.selections[row.id, column.task]).diverged
    ]
    lines += [f"Diverged: {'; '.join(diverged)}"] if diverged else []
    for column in request.columns:
        lines += skipped_note(column, [record for row in request.rows for record in request.records_of(row, column)])
    return [*lines, *_sent(request), *_gains(page, width)]


def _matrix(page: Page, width: int) -> Iterator[str]:
    """Methods as lines and tasks as columns, without empty ones; several blocks if one is too wide."""
    request = page.request
    values = {
        (row.id, column.task): _values(request, row, column) for row in request.rows for column in request.columns
    }
    rows = [row for row in request.rows if any(values[row.id, column.task] for column in request.columns)]
    columns = [column for column in request.columns if any(values[row.id, column.task] for row in rows)]
    counts = sorted({len(values[row.id, column.task]) for row in rows for column in columns} - {0})
    what = "Score" if counts == [1] else "Mean ± standard deviation"
    seeds = "(n) seeds" if len(counts) > 1 else plural(counts[0], "seed") if counts else "no seed"
    yield f"{what} of {seeds}, {at_round(request)}.{dagger_note(request, rows)}"
    texts = [["", *(request.name_of(row) for row in rows)]]
    for column in columns:
        heading = f"{column.name} {score_label(column, column.averaged)}"
        texts.append([heading, *(_cell(values[row.id, column.task], len(counts) > 1) for row in rows)])
    if len(request.columns) > 1 and "ours" in (frame := page.frame()):
        frame = frame[(frame["column"] == AVERAGE) & frame["ours"].notna()]
        averages = dict(zip(frame["row"], frame["ours"], strict=True))  # over tasks, by the paper's definition
        texts += [["Average", *(number(averages.get(row.id)) for row in rows)]] if averages else []
    yield from _in_columns(texts, width)


def _in_columns(columns: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Lines with the first column left-aligned, the others right-aligned; several blocks if they are too wide."""
    names, *blocks = [[f"{text:{max(map(len, column))}}" for text in column] for column in columns]
    lines = names
    for block in ([f"  {text.strip():>{len(text)}}" for text in block] for block in blocks):
        if lines is not names and len(lines[0]) + len(block[0]) > width:
            yield from lines
            lines = names
        lines = [line + text for line, text in zip(lines, block, strict=True)]
    yield from lines


def _gains(page: Page, width: int) -> Iterator[str]:
    """The measured gains in a table of bytes: a baseline's bytes divided by a method's."""
    frame = page.frame()
    if "gain" not in set(frame.get("quantity", ())):
        return
    is_measured = frame["counted"] == "wire, measured" if "counted" in frame else frame["target"] == "baseline"
    gains = frame[is_measured & (frame["quantity"] == "gain") & frame["value"].notna()]
    if gains.empty:
        return
    rows, by = page.request.benchmark.row, "over" if "over" in gains else "task"
    yield "Gain: the baseline's bytes divided by the method's."
    texts = [["", *(page.request.name_of(rows(name)) for name in gains["row"].unique())]]
    for name in gains[by].unique():
        values = gains[gains[by] == name].set_index("row")["value"]
        heading = f"over {rows(name).name}" if by == "over" else name
        texts.append([heading, *(number(values.get(row)) for row in gains["row"].unique())])
    yield from _in_columns(texts, width)


def _values(request: Request, row: Row, column: Column) -> tuple[float, ...]:
    """The defined values of the headline score, one per seed, in the metric's unit."""
    return defined(scores_of(request.records_of(row, column), column.averaged).at(request.score_at))


def _cell(values: Sequence[float], with_count: bool) -> str:
    if not values:
        return NOTHING
    sd = sample_sd(values)
    spread = "" if sd is None else f" ± {number(sd)}"
    return f"{number(mean(values))}{spread}{f' ({len(values)})' if with_count else ''}"


def _worth(request: Request) -> Iterator[str]:
    """Why the scores are not evidence for an ordering of methods, if so."""
    if request.scale.id == "demo":
        yield "Generated data: scores are not evidence about methods."
    if {len(selection.records) for selection in request.selections.values()} - {0} == {1}:
        yield "1 seed: no ordering."
    names = {column.task: column.name for column in request.columns}
    for task, gate in gates(request).items():
        if gate.is_shut:
            yield f"No evidence for an ordering on {names[task]}: {gate.why}."


def _sent(request: Request) -> Iterator[str]:
    """Each method's bytes per round, as the paper counts them, in one unit; then the bytes of all runs."""
    benchmark, runs, sent = request.benchmark, dict[str, RunBytes](), []  # runs: distinct, with parent runs
    for row in request.rows:
        cells = [(column, request.records_of(row, column)) for column in request.columns]
        every = (measured_cost(benchmark, column, records, request.find) for column, records in cells)
        costs = [cost for cost in every if cost is not None]
        for record in (record for _, records in cells for record in records):
            runs |= {stage.cell_id: stage_bytes(stage) for stage in all_stages(record, request.find) or [record]}
        if any(cost.round_bytes for cost in costs):
            sent.append((mean([cost.round_bytes for cost in costs]), request.name_of(row)))
    if sent:
        sent.sort()
        sizes = in_one_unit([size for size, _ in sent], benchmark.paper.gigabyte, places=1)
        a_round = "; ".join(f"{name} {size}" for (_, name), size in zip(sent, sizes, strict=True))
        sums = [float(sum(sizes)) for sizes in zip(*runs.values(), strict=True)]
        uplink, downlink = in_one_unit(sums, benchmark.paper.gigabyte, places=1)
        yield f"Communication cost per round: {a_round}."
        yield f"All runs together: uplink {uplink}, downlink {downlink}."
