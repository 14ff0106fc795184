"""The view of what one client sends and receives in a round after the first: closed form, shapes, and ledger.

Options: forms, row id -> its `WireForm`; encoders, names and layers of those for which bytes are derived; baselines,
the rows over which savings are shown. Only the ledger needs runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from matplotlib.figure import Figure

from benchmarks.costs import ModelSizes, PeftTerms, Traffic, WireForm
from benchmarks.experiment import Row, Scale
from benchmarks.run_config import JSON
from reports.evidence.traffic import last_round
from reports.frame import Quantities, Shown
from reports.pages.page import Grid, Group, Line, keys_of
from reports.pages.plots import Dots, Panel, dot_plot
from reports.pages.text import NOT_RUN, NOTHING, human_bytes, number, row_name

FLOAT = 4  # bytes of a value
WAYS = ("up", "down")
FORM, SHAPES, LEDGER = "closed form", "shapes", "ledger"


def terms_of(sizes: ModelSizes, layers: int, clients: int) -> PeftTerms:
    """The terms of an encoder, by the sizes of its parts without an adapter."""
    d, layer = sizes.width, sizes.layer_bytes // FLOAT
    f = (layer - 4 * d**2 - 9 * d) // (2 * d + 1)  # four square layers, two wide ones, two norms, their biases
    return PeftTerms(layers, d, f, clients, sizes.head_bytes // FLOAT, layers * layer)


class Sent(Quantities):
    """Bytes of one client in a round; every row has the same task and clients."""

    place_fields = ("encoder", "counted", "quantity", "over")

    @cached_property
    def forms(self) -> Mapping[str, WireForm]:
        forms: Mapping[str, WireForm] = self.request.benchmark.view.options["forms"]
        return forms

    @cached_property
    def baselines(self) -> Sequence[Row]:
        return self.request.rows_named("baselines")

    @cached_property
    def encoders(self) -> dict[str, Scale]:
        """Name -> the scale with that encoder: the request's own, then those of the options."""
        scale, paper = self.request.scale, self.request.paper_scale
        named = {name: replace(paper, backbone=name, depth=layers) for name, layers in self.options}
        return {scale.backbone: scale, **named}

    @property
    def options(self) -> Sequence[tuple[str, int]]:
        encoders: Sequence[tuple[str, int]] = self.request.benchmark.view.options["encoders"]
        return encoders

    def _sizes(self, row: Row, scale: Scale) -> dict[str, dict[str, float]]:
        """How it is counted -> direction -> bytes of one client."""
        clients = self.request.benchmark.cell(row, self.request.columns[0], scale, 0).cohort_size
        plan, whole = (self.request.plan(each, scale) for each in (row, self.baselines[0]))
        sizes: dict[str, dict[str, float]] = {}
        if plan is None or whole is None:
            return sizes
        if row.id in self.forms:
            form, terms = self.forms[row.id], terms_of(whole.sizes, scale.depth, clients)
            sizes[FORM] = {"up": form.up(terms), "down": form.down(terms)}
        last: Traffic = plan.rounds[-1]
        sizes[SHAPES] = {"up": last.up_bytes / clients, "down": last.down_bytes / clients}
        return sizes

    def lines(self) -> Iterator[dict[str, JSON]]:
        """Bytes by encoder and by the way to count them, then savings over the baselines."""
        column = self.request.columns[0]
        for name, scale in self.encoders.items():
            bases = {base.id: self._sizes(base, scale).get(SHAPES) for base in self.baselines}
            for row in self.request.rows:
                common = keys_of(self.request, row, column) | {"encoder": name}
                sizes, records = self._sizes(row, scale), self.request.records_of(row, column)
                if scale is self.request.scale and records:
                    sizes[LEDGER] = last_round(records)
                for counted, by_way in sizes.items():
                    seeds = len(records) if counted == LEDGER else None
                    for way, size in by_way.items():
                        yield common | {"counted": counted, "quantity": way, "value": size, "n_seeds": seeds}
                for base, whole in bases.items():
                    if whole and SHAPES in sizes:
                        saved = sum(whole.values()) / sum(sizes[SHAPES].values())
                        yield common | {"counted": SHAPES, "quantity": "saved", "over": base, "value": saved}

    # ---- tables ----------------------------------------------------------------------------------------------------

    def _agree(self, row: Row, encoder: str) -> str:
        """Whether all ways to count give the same bytes."""
        counted = [
            tuple(round(self.value(row, (encoder, how, way)) or 0) for way in WAYS)
            for how in (FORM, SHAPES, LEDGER)
            if self.value(row, (encoder, how, "up")) is not None
        ]
        if len(counted) < 2:
            return NOTHING
        return "equal" if len(set(counted)) == 1 else "differ"

    def _grid(self, encoder: str) -> Grid:
        measured = encoder == self.request.scale.backbone
        ways = (FORM, SHAPES, LEDGER) if measured else (FORM, SHAPES)
        columns = [Shown((how, way), (encoder, how, way), human_bytes) for how in ways for way in WAYS]
        saved = [
            Shown(("bytes of", f"{base.name} ÷ its"), (encoder, SHAPES, "saved", base.id), number)
            for base in self.baselines
        ]
        groups = []
        for row in self.request.rows:
            form = self.forms[row.id].text if row.id in self.forms else NOTHING
            cells = self.cells(row, columns)
            if measured and not self.request.records_of(row, self.request.columns[0]):
                cells = (*cells[:-2], NOT_RUN, NOTHING)
            line = Line(form, (*cells, self._agree(row, encoder), *self.cells(row, saved)))
            groups.append(Group(row_name(row), (line,)))
        headers = (*(column.header for column in columns), ("all", "ways"), *(column.header for column in saved))
        return Grid(self.title(f"bytes of one client in a round, {encoder}"), headers, tuple(groups))

    def grids(self) -> Iterator[Grid]:
        """A table for each encoder."""
        yield from map(self._grid, self.encoders)

    def method(self) -> Iterator[str]:
        """Terms and ways to count."""
        yield (
            "Closed forms in values of 4 bytes: L layers, d width, f feed-forward width, K clients of the round, h the "
            "head, N the encoder's trained parameters, n = n_A = n_B = 2Lrd. One client, a round after the first."
        )
        yield "Shapes: the round itself on tensors without values. Ledger: payloads of the last round, mean over runs."
        yield "N leaves out the embeddings, which are frozen. The one-time distribution of the model is left out."

    def plot(self) -> Figure:
        """Both directions together, by encoder."""
        panels = []
        for encoder in self.encoders:
            sizes = {}
            for row in self.request.rows:
                both = [self.value(row, (encoder, SHAPES, way)) for way in WAYS]
                sizes[row_name(row)] = sum(size for size in both if size is not None) / 1e6
            panels.append(Panel(encoder, list(sizes), [Dots("by shapes", sizes)]))
        caption = "One client, one round after the first, uplink and downlink, without the one-time distribution."
        return dot_plot(self.request.heading, panels, "MB a round", caption, across=2)
