"""The view of what one client's training costs, in computation, bytes and memory, as ratios to a baseline.

The benchmark says by `costing` what the baseline is. Tables of scores show the first two tables of it under theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.experiment import Row
from benchmarks.run_config import JSON
from reports.evidence.published import is_printed_as
from reports.evidence.resources import MEBIBYTE, MEGABYTES, SECONDS, SENT, WORK, Resources
from reports.evidence.statistics import printed
from reports.pages.page import KEYS, Grid, keys_of, long_form, one_line
from reports.pages.plots import HOLLOW, Dots, Panel, dot_plot, mark
from reports.pages.text import NOTHING, ONE_TIME, dagger_note, human_bytes, not_run, notes_under, number, row_name
from reports.views.costs import AS_PRINTED, DIFFERS

RANKS = False
FIELDS = [*KEYS, "encoder", "counted", "quantity", "value", "published", "n_seeds"]
_HELD = ("parameters_bytes", "gradients_bytes", "moments_bytes", "activations_bytes", "held_bytes")
_WIRE = ("up_bytes", "down_bytes", "setup_bytes")
Column = tuple[tuple[str, ...], str, str, int, Callable[[float], str]]  # header, counted, quantity, side, text


join = Resources


def _mebibytes(size: float) -> str:
    return number(size / MEBIBYTE) if size else NOTHING


def _grid(found: Resources, what: str, columns: Sequence[Column], rows: Iterable[Row]) -> Grid:
    def cells(row: Row) -> Iterator[str]:
        for _, counted, quantity, side, text in columns:
            value = found.lines[row.id].get((counted, quantity), (None, None))[side]
            yield NOTHING if value is None else text(value)

    benchmark = found.request.benchmark
    groups = tuple(one_line(row_name(row), cells(row)) for row in rows)
    return Grid(f"{benchmark.paper.name}, {benchmark.place} · {what}", tuple(header for header, *_ in columns), groups)


def computation_grid(found: Resources) -> Grid:
    """Rows are methods: seconds as printed, and their ratio to the baseline's by several ways to count."""
    forms = [(("formula", f"{name}, %"), f"formula, {name}", WORK, 0, number) for name in found.costing.forms]
    timed = [(("timed", "%"), "timed", WORK, 0, number)] if found.timed else []
    layers = (("run", "forward"), ("crossed", "backward"), ("trained", "trained"))
    columns: list[Column] = [
        (("printed", "s"), "print", SECONDS, 1, number),
        (("printed", "%"), "flops", WORK, 1, number),
        (("FLOPs", "%"), "flops", WORK, 0, number),
        *forms,
        *timed,
        *((("layers", name), "shapes", quantity, 0, "{:g}".format) for name, quantity in layers),
        (("GFLOP", "a text"), "shapes", "flops", 0, lambda value: number(value / 1e9)),
    ]
    what = f"computation of one client, in percent of {found.baseline.name}; the same at every scale"
    return _grid(found, what, columns, found.costed)


def communication_grid(found: Resources) -> Grid:
    """Rows are methods: what one client sends in a round, as printed, as a saved file and as tensors."""
    columns: list[Column] = [
        (("printed", "MB"), "saved file", MEGABYTES, 1, number),
        (("printed", "%"), "saved file", SENT, 1, number),
        (("saved", "MiB"), "saved file", MEGABYTES, 0, number),
        (("saved", "%"), "saved file", SENT, 0, number),
        (("tensors", "uplink, MiB"), "shapes", "up_bytes", 0, _mebibytes),
        (("tensors", "downlink, MiB"), "shapes", "down_bytes", 0, _mebibytes),
        ((*ONE_TIME, "MiB"), "shapes", "setup_bytes", 0, _mebibytes),
    ]
    what = f"communication of one client and round, in percent of {found.baseline.name}; the same at every scale"
    return _with_verdicts(found, _grid(found, what, columns, found.costed))


def _with_verdicts(found: Resources, grid: Grid) -> Grid:
    """The grid with a column behind the saved file's: whether its size and its ratio are as printed."""
    place, groups = 4, []
    for row, group in zip(found.costed, grid.groups, strict=True):
        pairs = (found.lines[row.id]["saved file", name] for name in (MEGABYTES, SENT))
        both = ((printed(value), printed(known)) for value, known in pairs if value is not None and known is not None)
        words = dict.fromkeys(AS_PRINTED if is_printed_as(*pair) else DIFFERS for pair in both)
        cells = group.lines[0].cells
        groups.append(one_line(group.name, (*cells[:place], "/".join(words) or NOTHING, *cells[place:])))
    return Grid(grid.title, (*grid.headers[:place], ("verdict", ""), *grid.headers[place:]), tuple(groups))


def _memory_grid(found: Resources) -> Grid:
    names, gigabyte = (
        ("weights", "gradients", "moments", "activations", "together"),
        found.request.benchmark.paper.gigabyte,
    )
    costs = found.costs[found.baseline.id]

    def cells(row: Row) -> Iterator[str]:
        yield from (human_bytes(getattr(found.costs[row.id], name), gigabyte) for name in _HELD)
        yield number(found.percent(row, lambda costs: costs.held_bytes))

    groups = tuple(one_line(row_name(row), cells(row)) for row in found.rows if row.id in found.costs)
    what = f"what one client holds while it trains, {costs.batch_size} texts of {costs.length} tokens a batch, derived"
    name = f"{found.request.benchmark.paper.name}, {found.request.benchmark.place}"
    return Grid(f"{name} · {what}", (*((text,) for text in names), ("together", "%")), groups)


def _measured_grid(found: Resources) -> Grid:
    request = found.request

    def cells(row: Row) -> tuple[str, ...]:
        if row.id not in found.measured:
            return (not_run(request, row, request.columns[0]), "", "", "", "")
        sent = {name: value for (_, name), (value, _) in found.measured[row.id].items()}
        base = found.measured.get(found.baseline.id, {}).get(("wire, measured", "up_bytes"), (0.0, None))[0]
        share = 100 * sent["up_bytes"] / base if sent["up_bytes"] and base else None
        up, down, setup = (_mebibytes(sent[name] or 0.0) for name in _WIRE)
        return (str(len(request.records_of(row, request.columns[0]))), up, number(share), down, setup)

    headers = (("n", "seeds"), ("uplink", "MiB"), ("uplink", "%"), ("downlink", "MiB"), (*ONE_TIME, "MiB"))
    groups = tuple(one_line(row_name(row), cells(row)) for row in request.rows)
    what = f"what one client sent and received in a round, measured on {request.columns[0].name}"
    return Grid(f"{request.heading}: {what}", headers, groups)


def grids(found: Resources) -> tuple[Grid, ...]:
    """Computation, communication, memory where it is derived, and the wire as measured."""
    memory = (_memory_grid(found),) if found.baseline.id in found.costs else ()
    return (computation_grid(found), communication_grid(found), *memory, _measured_grid(found))


def cost_notes(found: Resources) -> Iterator[str]:
    """How the numbers of computation and communication were obtained."""
    costs, timed, encoder = found.costs.get(found.baseline.id), found.timed, found.request.paper_scale.backbone
    if costs is not None:
        yield (
            f"FLOPs: matrix products of one client's training on {encoder}'s shapes, texts of {costs.length} tokens, "
            f"{costs.asked} of them masked; means over rounds. Layers: layers that run, that a gradient goes through, "
            "that are trained. Printed seconds come from the paper's machine, so only ratios are compared."
        )
    yield from (f"Formula, {name}: {form.text}." for name, form in found.costing.forms.items())
    if timed is not None:
        yield (
            f"Timed: seconds of an epoch over {found.baseline.name}'s, all rows in turn, {timed.machine}, "
            f"{timed.finished} (docs/performance.md). Less work was timed up to {number(timed.noise)} points above "
            "more work: smaller differences mean nothing."
        )
    yield (
        "Saved: the file that torch.save writes of a client's upload, in MiB, which the paper prints as MB; ratios are "
        "of sizes rounded in this way. Tensors: the same payload on the wire, and the download. No number includes the "
        "one-time model distribution."
    )


def notes(found: Resources) -> Iterator[str]:
    """Every note under the tables."""
    held = (
        "Held: weights, gradients and AdamW's two moments in fp32; activations that PyTorch's autograd keeps for the "
        "backward pass, counted on shapes, mean over rounds. Other kernels keep less."
    )
    measured = "Measured: the ledger's bytes over rounds and clients that took part, mean over n seeds."
    return notes_under(found.request, (*cost_notes(found), *([held] if found.costs else []), measured))


def cost_lines(found: Resources, row: Row) -> Iterator[dict[str, JSON]]:
    """What is printed and derived of a row: how it is counted, quantity, value and published."""
    for (counted, quantity), (value, published) in found.lines[row.id].items():
        yield {"counted": counted, "quantity": quantity, "value": value, "published": published}


def frame(found: Resources) -> pd.DataFrame:
    """All costs as a data frame of FIELDS; bytes and FLOPs of one client, percent of the baseline's."""
    request, column = found.request, found.request.columns[0]
    derived = {"encoder": request.paper_scale.backbone}
    lines = [keys_of(request, row) | derived | line for row in found.costed for line in cost_lines(found, row)]
    for row in request.rows:
        common = keys_of(request, row, column) | {"encoder": request.scale.backbone, "counted": "wire, measured"}
        n = len(request.records_of(row, column))
        sent = found.measured.get(row.id, {("", not_run(request, row, column)): (None, None)})
        lines += [
            common | {"quantity": name, "value": value, "n_seeds": n or None} for (_, name), (value, _) in sent.items()
        ]
    return long_form(lines, FIELDS, {"Int64": ("n_seeds",), "Float64": ("value", "published")})


def plot(found: Resources) -> Figure:
    """Computation and communication in percent of the baseline's, a panel each."""

    def dots(place: int, label: str, counted: str, quantity: str, side: int = 0) -> Dots:
        pairs = {row_name(row): found.lines[row.id].get((counted, quantity), (None, None))[side] for row in found.rows}
        style = HOLLOW | {"markersize": 8} if side else mark(place)
        return Dots(label, {name: value for name, value in pairs.items() if value is not None}, style)

    ways = {"FLOPs": "flops"} | {name: f"formula, {name}" for name in found.costing.forms}
    ways |= {"timed": "timed"} if found.timed else {}
    work = [dots(place, label, counted, WORK) for place, (label, counted) in enumerate(ways.items())]
    sent = [dots(5, "saved file", "saved file", SENT), dots(0, "printed", "saved file", SENT, 1)]
    names, level = [row_name(row) for row in found.rows], {found.baseline.name: 100.0}
    panels = [
        Panel("computation", names, [*work, dots(0, "printed", "flops", WORK, 1)], levels=level),
        Panel("communication", names, sent, levels=level),
    ]
    caption = (
        f"One client's training by {found.request.paper_scale.backbone}'s shapes, over {found.baseline.name}'s; "
        f"diamonds: as printed.{dagger_note(found.rows)}"
    )
    return dot_plot(found.request.heading, panels, f"% of {found.baseline.name}", caption, across=2)
