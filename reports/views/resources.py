"""The view of what one client's training costs, in computation, bytes and memory, as ratios to a baseline.

The benchmark says by `costing` what the baseline is. Tables of scores show the first two tables of it under theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pandas as pd

from benchmarks.costs import ClientCosts
from benchmarks.experiment import Row
from benchmarks.run_config import JSON
from reports.evidence.resources import MEBIBYTE, MEGABYTES, SECONDS, SENT, WORK, Resources
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form
from reports.pages.text import NOTHING, ONE_TIME, human_bytes, not_run, notes_under, number, row_name
from reports.views.costs import AS_PRINTED, DIFFERS

RANKS = False
FIELDS = [*KEYS, "encoder", "counted", "quantity", "value", "published", "n_seeds"]
HELD = ("parameters", "gradients", "moments", "activations")  # what a client holds, and how they are called
_LAYERS = ("forward", "backward", "trained")

join = Resources


def _grid(
    found: Resources,
    what: str,
    headers: Iterable[tuple[str, ...]],
    cells: Callable[[Row], tuple[str, ...]],
    rows: Iterable[Row],
) -> Grid:
    request = found.request
    groups = (Group(row_name(row), (Line("", cells(row)),)) for row in rows)
    return Grid(f"{request.benchmark.paper.name}, {request.benchmark.place} · {what}", tuple(headers), tuple(groups))


def _with_costs(found: Resources) -> list[Row]:
    """The rows of which a cost is printed or derived."""
    return [row for row in found.rows if row.id in found.costs or found.printed(row)]


def _of_print(found: Resources, row: Row, *columns: str) -> tuple[str, ...]:
    known = found.printed(row)
    return tuple(f"{known[column]:.2f}" if column in known else NOTHING for column in columns)


def _mebibytes(size: float) -> str:
    return number(size / MEBIBYTE) if size else NOTHING


def computation_grid(found: Resources) -> Grid:
    """Rows are methods: seconds as printed, and their ratio to the baseline's beside other counts of the same ratio."""
    forms, timed = found.costing.forms, found.timed
    headers = [("printed", "s"), ("printed", "%"), ("FLOPs", "%"), *(("formula", f"{name}, %") for name in forms)]
    headers += [("timed", "%")] if timed is not None else []
    headers += [*(("layers", name) for name in ("run", "crossed", "trained")), ("GFLOP", "a text")]

    def cells(row: Row) -> tuple[str, ...]:
        costs = found.costs.get(row.id)
        ratios = [found.percent(row, work) for work in (_flops, *(form.work for form in forms.values()))]
        if timed is not None:
            ratios.append(timed.percent.get(row.id))
        layers = [NOTHING] * 3 if costs is None else [f"{getattr(costs, name):g}" for name in _LAYERS]
        flops = number(costs.flops / 1e9 if costs else None)
        return (*_of_print(found, row, SECONDS, WORK), *map(number, ratios), *layers, flops)

    what = f"computation of one client, in percent of {found.baseline.name}; the same at every scale"
    return _grid(found, what, headers, cells, _with_costs(found))


def communication_grid(found: Resources) -> Grid:
    """Rows are methods: what one client sends in a round, as printed, as a saved file and as tensors."""
    headers = (
        *(("printed", "MB"), ("printed", "%"), ("saved", "MiB"), ("saved", "%"), ("verdict", "")),
        *(("tensors", "uplink, MiB"), ("tensors", "downlink, MiB"), (*ONE_TIME, "MiB")),
    )

    def cells(row: Row) -> tuple[str, ...]:
        costs = found.costs.get(row.id)
        saved = [NOTHING if value is None else str(value) for value in (found.saved_mb(row), found.saved_percent(row))]
        words = dict.fromkeys(AS_PRINTED if same else DIFFERS for same in found.agreements(row))
        sizes = (0.0, 0.0, 0.0) if costs is None else (costs.up_bytes, costs.down_bytes, costs.setup_bytes)
        tensors = map(_mebibytes, sizes)
        return (*_of_print(found, row, MEGABYTES, SENT), *saved, "/".join(words) or NOTHING, *tensors)

    what = f"communication of one client and round, in percent of {found.baseline.name}; the same at every scale"
    return _grid(found, what, headers, cells, _with_costs(found))


def _memory_grid(found: Resources) -> Grid:
    headers = (*((name,) for name in ("weights", *HELD[1:], "together")), ("together", "%"))
    costs, gigabyte = found.costs[found.baseline.id], found.request.benchmark.paper.gigabyte

    def cells(row: Row) -> tuple[str, ...]:
        own = found.costs[row.id]
        sizes = (*(getattr(own, f"{name}_bytes") for name in HELD), own.held_bytes)
        percent = number(found.percent(row, lambda costs: costs.held_bytes))
        return (*(human_bytes(size, gigabyte) for size in sizes), percent)

    what = f"what one client holds while it trains, {costs.batch_size} texts of {costs.length} tokens a batch, derived"
    return _grid(found, what, headers, cells, (row for row in found.rows if row.id in found.costs))


def _measured_grid(found: Resources) -> Grid:
    base = found.measured.get(found.baseline.id)

    def cells(row: Row) -> tuple[str, ...]:
        own = found.measured.get(row.id)
        if own is None:
            return (not_run(found.request, row, found.request.columns[0]), "", "", "", "")
        share = 100 * own.up_bytes / base.up_bytes if own.up_bytes and base is not None and base.up_bytes else None
        return (
            str(own.seeds),
            _mebibytes(own.up_bytes),
            number(share),
            *map(_mebibytes, (own.down_bytes, own.setup_bytes)),
        )

    request = found.request
    headers = (("n", "seeds"), ("uplink", "MiB"), ("uplink", "%"), ("downlink", "MiB"), (*ONE_TIME, "MiB"))
    groups = tuple(Group(row_name(row), (Line("", cells(row)),)) for row in request.rows)
    what = f"what one client sent and took in a round, measured on {request.columns[0].name}"
    return Grid(f"{request.heading}: {what}", headers, groups)


def grids(found: Resources) -> tuple[Grid, ...]:
    """Computation, communication, memory where it is derived, and the wire as measured."""
    memory = (_memory_grid(found),) if found.baseline.id in found.costs else ()
    return (computation_grid(found), communication_grid(found), *memory, _measured_grid(found))


def cost_notes(found: Resources) -> Iterator[str]:
    """How the tables of computation and communication came about."""
    costs, timed = found.costs.get(found.baseline.id), found.timed
    if costs is not None:
        yield (
            f"FLOPs: of the matrix products of one client's training, counted while the method's own rounds run on "
            f"{found.request.paper_scale.backbone}'s shapes, texts of {costs.length} tokens, {costs.asked} of them "
            f"masked; means over rounds. Layers: those that run, those that a gradient goes through, those whose "
            f"weights are trained. Printed seconds are those of the paper's machine, so ratios alone are compared."
        )
    for name, form in found.costing.forms.items():
        yield f"Formula, {name}: {form.text}."
    if timed is not None:
        yield (
            f"Timed: seconds of an epoch over {found.baseline.name}'s, all rows in turn in one run of `make bench "
            f"ARGS={timed.part}`, {timed.machine}, {timed.finished}; random texts (docs/performance.md). A client that "
            f"does less was timed up to {number(timed.noise)} points above one that does more: smaller differences say "
            "nothing."
        )
    yield (
        "Saved: the file that torch.save makes of what a client uploads, under the transformers library's names, in "
        "MiB, which the paper prints as MB; ratios are of sizes so rounded. Tensors: the same payload on the wire, and "
        "what comes down, without the archive's names and alignment. The one-time model distribution, "
        "the pre-trained model to each client, is in no other number, and in none of the paper's."
    )


def _method(found: Resources) -> Iterator[str]:
    yield from cost_notes(found)
    if found.costs:
        yield (
            "Held: weights, gradients and AdamW's two moments in fp32; activations are the tensors that PyTorch's "
            "autograd keeps for the backward pass with the transformers library's own layers, counted on shapes, mean "
            "over rounds. Other kernels keep less. The pool of all layers, which a client stores, is the one "
            "that is distributed."
        )
    yield "Measured: the ledger's bytes over rounds and clients that took part, mean over n seeds."


def notes(found: Resources) -> Iterator[str]:
    """Every note under the tables."""
    return notes_under(found.request, _method(found))


def _flops(costs: ClientCosts) -> float:
    return costs.flops


def cost_lines(found: Resources, row: Row) -> Iterator[dict[str, JSON]]:
    """What is printed and derived of a row: counted how, quantity, value and published; percent of the baseline's."""
    known = {column: float(value) for column, value in found.printed(row).items()}
    yield {"counted": "print", "quantity": SECONDS, "published": known.get(SECONDS)}
    ways = {"flops": _flops} | {f"formula, {name}": form.work for name, form in found.costing.forms.items()}
    for name, work in ways.items():
        yield {"counted": name, "quantity": WORK, "value": found.percent(row, work), "published": known.get(WORK)}
    if found.timed is not None:
        value = found.timed.percent.get(row.id)
        yield {"counted": "timed", "quantity": WORK, "value": value, "published": known.get(WORK)}
    for column, size in ((MEGABYTES, found.saved_mb(row)), (SENT, found.saved_percent(row))):
        value = None if size is None else float(size)
        yield {"counted": "saved file", "quantity": column, "value": value, "published": known.get(column)}
    if row.id in found.costs:
        for name, value in vars(found.costs[row.id]).items():
            yield {"counted": "shapes", "quantity": name, "value": value}


def _lines(found: Resources) -> Iterator[dict[str, JSON]]:
    derived = {"encoder": found.request.paper_scale.backbone}
    for row in _with_costs(found):
        yield from (keys_of(found.request, row) | derived | line for line in cost_lines(found, row))
    for row in found.request.rows:
        own, common = found.measured.get(row.id), keys_of(found.request, row, found.request.columns[0])
        common |= {"encoder": found.request.scale.backbone, "counted": "wire, measured"}
        if own is None:
            yield common | {"quantity": not_run(found.request, row, found.request.columns[0])}
            continue
        for name in ("up_bytes", "down_bytes", "setup_bytes"):
            yield common | {"quantity": name, "value": getattr(own, name), "n_seeds": own.seeds}


def frame(found: Resources) -> pd.DataFrame:
    """All costs as a data frame of FIELDS; bytes and FLOPs of one client, percent of the baseline's."""
    return long_form(_lines(found), FIELDS, {"Int64": ("n_seeds",), "Float64": ("value", "published")})
