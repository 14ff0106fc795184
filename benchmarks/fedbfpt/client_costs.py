"""A client's training costs in computation, bytes and memory, relative to `costing`'s baseline.

Table 2 shows all; Tables 4 and 5 and the appendix's show computation and communication below their scores.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product

from matplotlib.figure import Figure

from benchmarks.costs import ClientCosts, Costing
from benchmarks.dry_run import shapes
from benchmarks.experiment import Row
from benchmarks.run_config import JSON
from fedsim.files import read_json
from reports.claims.costs import percents
from reports.evidence.published import AS_PUBLISHED, DIFFERS, Numbers, is_printed_as
from reports.evidence.published_files import read_published
from reports.evidence.statistics import printed
from reports.evidence.traffic import client_traffic
from reports.frame import Place, Quantities, Shown
from reports.pages.page import KEYS, Grid, keys_of, one_line
from reports.pages.plots import HOLLOW, MARKS, Dots, Panel, dot_plot
from reports.pages.text import NOTHING, ONE_TIME, dagger_note, human_bytes, not_run, number
from reports.views.scores import ScoreTable

SECONDS, WORK, MEGABYTES, SENT = PRINTED = (  # the columns of published costs
    "computation_seconds",
    "computation_percent",
    "communication_mb",
    "communication_percent",
)
MEBIBYTE = 2**20
_SAVED, _WIRE = "saved file", "wire, measured"
_HELD = ("parameters_bytes", "gradients_bytes", "moments_bytes", "activations_bytes", "held_bytes")
_HELD_NAMES = ("weights", "gradients", "moments", "activations", "together")


def _mebibytes(size: float) -> str:
    return number(size / MEBIBYTE) if size else NOTHING


class Resources(Quantities):
    """The costs of a request's rows with the paper's encoder; records have the scale's."""

    @cached_property
    def costing(self) -> Costing:
        costing = self.request.benchmark.costing
        assert costing is not None
        return costing

    @cached_property
    def baseline(self) -> Row:
        table = self.request.benchmark
        return (table.stage.benchmark if table.stage else table).row(self.costing.baseline)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The request's rows; all rows of the paper scale if all rows are requested."""
        request = self.request
        is_whole = {row.id for row in request.rows} >= {row.id for row in request.benchmark.rows_at(request.scale)}
        return request.benchmark.rows_at(request.paper_scale) if is_whole else request.rows

    @cached_property
    def costs(self) -> dict[str, ClientCosts]:
        """Row id -> a client's training costs by shapes, for derivable rows."""
        table, scale = self.request.benchmark, self.request.paper_scale
        column, costs = table.columns_at(scale)[0], dict[str, ClientCosts | None]()
        for row in (*self.rows, self.baseline):
            cell = table.stage.cell(row, column, scale) if table.stage else table.cell(row, column, scale, 0)
            costs[row.id] = None if cell is None else shapes.derive_client(cell)
        return {name: cost for name, cost in costs.items() if cost is not None}

    @cached_property
    def timed(self) -> JSON:
        """The run that timed the rows, one after the other."""
        return read_json(self.costing.timed)

    def _percent(self, row: Row, amount: Callable[[ClientCosts], float]) -> float | None:
        """A row's amount in percent of the baseline's; None if not derived."""
        costs = [self.costs.get(name) for name in (row.id, self.baseline.id)]
        row_amount, base = (None if cost is None else amount(cost) for cost in costs)
        return None if row_amount is None or base is None else 100 * row_amount / base

    def _saved(self, row: Row) -> float | None:
        """The uploaded file in the paper's MB, to two decimals; None if not derived or without upload."""
        costs = self.costs.get(row.id)
        return float(printed(costs.saved_bytes / MEBIBYTE)) if costs is not None and costs.saved_bytes else None

    @cached_property
    def derived(self) -> list[dict[str, JSON]]:
        """The frame's published and derived costs, for rows that have any: the same at every scale."""
        numbers, lines = Numbers.of(read_published(self.request.benchmark.published_csv)), []
        for row in self.rows:
            of_row = [
                {"counted": counted, "quantity": quantity, "value": value, "published": published}
                for (counted, quantity), (value, published) in self._quantities(row, numbers).items()
            ]
            if row.id in self.costs or any(line["published"] is not None for line in of_row):
                lines += [keys_of(self.request, row) | line for line in of_row]
        return lines

    def _quantities(self, row: Row, numbers: Numbers) -> dict[Place, tuple[float | None, float | None]]:
        places = {name: (self.request.benchmark.place, row.id, name, "") for name in PRINTED}
        paper = {name: float(numbers.values[at]) if at in numbers.values else None for name, at in places.items()}
        ways: dict[str, Callable[[ClientCosts], float]] = {"flops": lambda costs: costs.flops}
        ways |= {f"formula, {name}": form.work for name, form in self.costing.forms.items()}
        saved, base = self._saved(row), self._saved(self.baseline)
        # Both are rounded first, because the paper's ratios are of rounded sizes.
        share = float(printed(100 * printed(saved) / printed(base))) if saved is not None and base is not None else None
        quantities: dict[Place, tuple[float | None, float | None]] = {("print", SECONDS): (None, paper[SECONDS])}
        quantities |= {(name, WORK): (self._percent(row, work), paper[WORK]) for name, work in ways.items()}
        quantities["timed", WORK] = percents(self.timed).get(row.id), paper[WORK]
        quantities |= {(_SAVED, MEGABYTES): (saved, paper[MEGABYTES]), (_SAVED, SENT): (share, paper[SENT])}
        costs = self.costs.get(row.id)
        return quantities | {("shapes", name): (value, None) for name, value in (vars(costs).items() if costs else ())}

    @property
    def costed(self) -> list[Row]:
        """The rows with a published or derived cost."""
        shown = {line["row"] for line in self.derived}
        return [row for row in self.rows if row.id in shown]

    def lines(self) -> Iterator[dict[str, JSON]]:
        """A client's bytes and FLOPs, in percent of the baseline's."""
        request, column = self.request, self.request.columns[0]
        yield from ({"encoder": request.paper_scale.backbone} | line for line in self.derived)
        for row in request.rows:
            records = request.records_of(row, column)
            missing: dict[str, float | None] = {not_run(request, row, column): None}
            sent: Mapping[str, float | None] = client_traffic(records) or missing
            common = keys_of(request, row, column) | {"encoder": request.scale.backbone, "counted": _WIRE}
            for name, value in sent.items():
                yield common | {"quantity": name, "value": value, "n_seeds": len(records) or None}

    # ---- tables ----------------------------------------------------------------------------------------------------

    def computation_grid(self) -> Grid:
        """Rows are methods: published seconds, and ratios to the baseline's by several counts."""
        layers = (("run", "forward"), ("crossed", "backward"), ("trained", "trained"))
        forms = [Shown(("formula", f"{name}, %"), (f"formula, {name}", WORK)) for name in self.costing.forms]
        columns = [
            Shown(("published", "s"), ("print", SECONDS), field="published"),
            Shown(("published", "%"), ("flops", WORK), field="published"),
            *(Shown(("FLOPs", "%"), ("flops", WORK)), *forms, Shown(("timed", "%"), ("timed", WORK))),
            *(Shown(("layers", name), ("shapes", quantity), "{:g}".format) for name, quantity in layers),
            Shown(("GFLOP", "per text"), ("shapes", "flops"), lambda value: number(value / 1e9)),
        ]
        what = f"computation of one client, in percent of {self.baseline.name}; the same at every scale"
        return self.table(self.title(what), self.costed, columns)

    def communication_grid(self) -> Grid:
        """Rows are methods: a client's upload per round, as published, as a saved file and as tensors."""
        columns = [
            Shown(("published", "MB"), (_SAVED, MEGABYTES), field="published"),
            Shown(("published", "%"), (_SAVED, SENT), field="published"),
            *(Shown(("saved", "MiB"), (_SAVED, MEGABYTES)), Shown(("saved", "%"), (_SAVED, SENT))),
            Shown(("tensors", "uplink, MiB"), ("shapes", "up_bytes"), _mebibytes),
            Shown(("tensors", "downlink, MiB"), ("shapes", "down_bytes"), _mebibytes),
            Shown((*ONE_TIME, "MiB"), ("shapes", "setup_bytes"), _mebibytes),
        ]
        what = f"communication of one client and round, in percent of {self.baseline.name}; the same at every scale"
        grid, place, groups = self.table(self.title(what), self.costed, columns), 4, []
        for row, group in zip(self.costed, grid.groups, strict=True):  # a verdict behind the saved file's columns
            places = ((_SAVED, name) for name in (MEGABYTES, SENT))
            pairs = ([self.value(row, at, field) for field in ("value", "published")] for at in places)
            both = [[printed(value) for value in pair if value is not None] for pair in pairs]
            verdicts = dict.fromkeys(
                AS_PUBLISHED if is_printed_as(*pair) else DIFFERS for pair in both if len(pair) == 2
            )
            cells = group.lines[0].cells
            groups.append(one_line(group.name, (*cells[:place], "/".join(verdicts) or NOTHING, *cells[place:])))
        return Grid(grid.title, (*grid.headers[:place], ("verdict", ""), *grid.headers[place:]), tuple(groups))

    def _memory_grid(self) -> Grid:
        costs, gigabyte = self.costs[self.baseline.id], self.request.benchmark.paper.gigabyte

        def cells(row: Row) -> Iterator[str]:
            yield from (human_bytes(getattr(self.costs[row.id], name), gigabyte) for name in _HELD)
            yield number(self._percent(row, lambda costs: costs.held_bytes))

        groups = tuple(one_line(self.request.name_of(row), cells(row)) for row in self.rows if row.id in self.costs)
        batch = f"{costs.batch_size} texts of {costs.length} tokens per batch"
        title = self.title(f"what one client holds while it trains, {batch}, derived")
        return Grid(title, (*((text,) for text in _HELD_NAMES), ("together", "%")), groups)

    def _measured_grid(self) -> Grid:
        request, column = self.request, self.request.columns[0]
        base = self.value(self.baseline, (_WIRE, "up_bytes"))

        def cells(row: Row) -> tuple[str, ...]:
            up, down, setup = (self.value(row, (_WIRE, f"{name}_bytes")) for name in ("up", "down", "setup"))
            if up is None or down is None or setup is None:
                return (not_run(request, row, column), "", "", "", "")
            share = number(100 * up / base) if up and base else NOTHING
            n = str(len(request.records_of(row, column)))
            return (n, _mebibytes(up), share, _mebibytes(down), _mebibytes(setup))

        headers = (("n", "seeds"), ("uplink", "MiB"), ("uplink", "%"), ("downlink", "MiB"), (*ONE_TIME, "MiB"))
        groups = tuple(one_line(self.request.name_of(row), cells(row)) for row in request.rows)
        what = f"what one client sent and received in a round, measured on {column.name}"
        return Grid(f"{request.heading}: {what}", headers, groups)

    def grids(self) -> tuple[Grid, ...]:
        """Computation, communication, memory if derived, and measured bytes."""
        memory = (self._memory_grid(),) if self.baseline.id in self.costs else ()
        return (self.computation_grid(), self.communication_grid(), *memory, self._measured_grid())

    def cost_notes(self) -> Iterator[str]:
        """How computation and communication were counted."""
        costs, encoder = self.costs.get(self.baseline.id), self.request.paper_scale.backbone
        timed, host = self.timed, self.timed["environment"]
        if costs is not None:
            yield (
                f"FLOPs: matrix products of one client's training on {encoder}'s shapes, texts of {costs.length} "
                f"tokens, {costs.asked} of them masked; means over rounds. Layers: layers that run, that a gradient "
                "goes through, that are trained. Printed seconds come from the paper's machine, so only ratios are "
                "compared."
            )
        yield from (f"Formula, {name}: {form.text}." for name, form in self.costing.forms.items())
        yield (
            f"Timed: seconds of an epoch over {self.baseline.name}'s, all rows in turn, {host['device']}, "
            f"{host['threads']} threads, {host['precision']}, {timed['finished'][:10]} (docs/performance.md). Less "
            f"work took up to {number(_noise(timed['rows']))} points longer than more work: smaller differences mean "
            "nothing."
        )
        yield (
            "Saved: the file that torch.save writes for a client's upload, in MiB, which the paper calls MB; ratios "
            "are of rounded sizes. Tensors: the same payload on the wire, and the download. No number "
            "includes the one-time model distribution."
        )

    def method(self) -> Iterator[str]:
        """How all tables' numbers were obtained."""
        yield from self.cost_notes()
        if self.costs:
            yield (
                "Held: weights, gradients and AdamW's two moments in fp32; activations that PyTorch's autograd keeps "
                "for the backward pass, counted on shapes, mean over rounds. Other kernels keep less."
            )
        yield "Measured: the ledger's bytes over rounds and clients that took part, mean over n seeds."

    def plot(self) -> Figure:
        """A panel each for computation and communication, in percent of the baseline's."""
        ways = {"FLOPs": "flops"} | {name: f"formula, {name}" for name in self.costing.forms} | {"timed": "timed"}
        work = [
            Dots(label, self.values(self.rows, (counted, WORK)), {"marker": sign})
            for sign, (label, counted) in zip(MARKS, ways.items(), strict=False)
        ]
        saved = Dots("saved file", self.values(self.rows, (_SAVED, SENT)), {"marker": MARKS[5]})
        reported = HOLLOW | {"markersize": 8}
        work += [Dots("printed", self.values(self.rows, ("flops", WORK), "published"), reported)]
        sent = [saved, Dots("printed", self.values(self.rows, (_SAVED, SENT), "published"), reported)]
        names, level = [self.request.name_of(row) for row in self.rows], {self.baseline.name: 100.0}
        panels = [Panel("computation", names, work, levels=level), Panel("communication", names, sent, levels=level)]
        caption = (
            f"One client's training by {self.request.paper_scale.backbone}'s shapes, over {self.baseline.name}'s; "
            f"diamonds: as printed.{dagger_note(self.request, self.rows)}"
        )
        return dot_plot(self.request.heading, panels, f"% of {self.baseline.name}", caption, across=2)


class ScoresAndCosts(ScoreTable):
    """Scores, and below them what a client's training costs."""

    @cached_property
    def costs(self) -> Resources:
        return Resources(self.request)

    def notes(self) -> Iterator[str]:
        """The scores' notes, then the costs'."""
        yield from super().notes()
        yield from self.costs.cost_notes()

    def grids(self) -> Iterator[Grid]:
        """Scores, bytes, computation and communication."""
        yield from super().grids()
        costs = (self.costs.computation_grid(), self.costs.communication_grid())
        yield from (grid for grid in costs if grid.groups)

    def lines(self) -> Iterator[dict[str, JSON]]:
        """The scores' lines, and a line per cost, whose quantity and count name a score."""
        yield from super().lines()
        about = {"score_at": self.request.scored_at, "column": "costs", "task": "Costs", "status": "derived"}
        for line in self.costs.derived:
            common = {name: line[name] for name in line if name in (*KEYS, "published")}
            yield common | about | {"score": f"{line['quantity']} ({line['counted']})", "ours": line["value"]}


def _noise(lines: Sequence[Mapping[str, JSON]]) -> float:
    """The most points by which a client that trains one layer took longer than one that does no less."""
    trained = ((line, re.match(r"layer (\d+) ", line.get("trained", ""))) for line in lines)
    # Layers that run, and how many of them have a gradient: from the trained one upwards.
    jobs = [(line["layers"], line["layers"] - int(layer[1]), line["percent"]) for line, layer in trained if layer]
    pairs = ((one, other) for one, other in product(jobs, repeat=2) if one[0] <= other[0] and one[1] <= other[1])
    return max((one[2] - other[2] for one, other in pairs), default=0.0)
