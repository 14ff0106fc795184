"""The view of the bytes that one client sends and receives per round after the first, counted in three ways.

Options: forms, row id -> its `WireForm`; encoders, names and layers of those for which bytes are derived; baselines,
the rows over which savings are shown; rank, of LoRA; factors, the row at which a factor is published -> its name,
its sentence and its interpretations; factor_encoders, names and layers of their encoders. Only the ledger needs runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from matplotlib.figure import Figure

from benchmarks.costs import Factor, ModelSizes, PeftTerms, Traffic, WireForm
from benchmarks.experiment import Row, Scale
from benchmarks.run_config import JSON
from reports.evidence.published import by_place
from reports.evidence.published_files import read_published
from reports.evidence.records import Request
from reports.evidence.traffic import last_round
from reports.frame import Quantities, Shown
from reports.pages.page import Grid, Group, Line, keys_of, one_line
from reports.pages.plots import Dots, Panel, dot_plot
from reports.pages.text import NOT_RUN, NOTHING, human_bytes, number

FLOAT = 4  # bytes of a value
WAYS = ("up", "down")
FORM, SHAPES, LEDGER = "closed form", "shapes", "ledger"
RATIO, RANKS = "factor", "largest rank"  # for a stated factor: its value here, and the ranks at which it is reached
MOST_RANK = 1024  # the largest rank that is tried


def terms_of(sizes: ModelSizes, layers: int, clients: int, rank: int) -> PeftTerms:
    """The terms of an encoder, by the sizes of its parts without an adapter."""
    d, layer = sizes.width, sizes.layer_bytes // FLOAT
    f = (layer - 4 * d**2 - 9 * d) // (2 * d + 1)  # four square layers, two wide ones, two norms, their biases
    head, embeddings = sizes.head_bytes // FLOAT, sizes.embeddings_bytes // FLOAT
    return PeftTerms(layers, d, f, clients, head, layers * layer, embeddings, rank)


def _reached(values: Mapping[str, float]) -> str:
    """A factor here, with the ranks that reach the stated factor, if a number is stated."""
    ratio = number(values[RATIO], places=2 if values[RATIO] < 100 else 1)
    if RANKS not in values:
        return ratio
    most = values[RANKS]
    ranks = "no rank" if not most else "any rank" if most == MOST_RANK else f"r ≤ {most:.0f}"
    return f"{ratio} ({ranks})"


class Sent(Quantities):
    """Bytes of one client in a round; every row has the same task and clients."""

    place_fields = ("encoder", "counted", "quantity", "over")

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.forms: Mapping[str, WireForm] = self.options["forms"]
        self.factors: Mapping[str, tuple[str, str, Sequence[Factor]]] = self.options["factors"]
        self.baselines = request.rows_named("baselines")

    @cached_property
    def encoders(self) -> dict[str, Scale]:
        """Name -> the scale with that encoder: the request's, then those of the options."""
        scale, paper = self.request.scale, self.request.paper_scale
        named = self.options["encoders"]
        others = {name: replace(paper, backbone=name, depth=depth) for name, depth in named if name != scale.backbone}
        return {scale.backbone: scale} | others

    @cached_property
    def stated(self) -> dict[str, float]:
        """The row at which a factor is published -> the factor."""
        published = by_place(read_published(self.request.benchmark.published_csv), "Text")
        return {row: published[row, "gain", ""].value for row in self.factors if (row, "gain", "") in published}

    def terms(self, scale: Scale) -> PeftTerms | None:
        """The terms of a scale's encoder and clients; None if they depend on the texts."""
        table, first = self.request.benchmark, self.baselines[0]
        plan, cell = self.request.plan(first, scale), table.cell(first, self.request.columns[0], scale, 0)
        return terms_of(plan.sizes, scale.depth, cell.cohort_size, self.options["rank"]) if plan else None

    def _sizes(self, row: Row, scale: Scale) -> dict[str, dict[str, float]]:
        """Way to count -> direction -> bytes of one client."""
        plan, terms = self.request.plan(row, scale), self.terms(scale)
        sizes: dict[str, dict[str, float]] = {}
        if plan is None or terms is None:
            return sizes
        if row.id in self.forms:
            form = self.forms[row.id]
            sizes[FORM] = {"up": form.up(terms), "down": form.down(terms)}
        last: Traffic = plan.rounds[-1]
        sizes[SHAPES] = {"up": last.up_bytes / terms.K, "down": last.down_bytes / terms.K}
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
        yield from self._factor_lines()

    def _factor_lines(self) -> Iterator[dict[str, JSON]]:
        """Each interpretation of each stated factor, by encoder, and the largest rank at which it is reached."""
        for name, depth in self.options["factor_encoders"]:
            terms = self.terms(replace(self.request.paper_scale, backbone=name, depth=depth))
            if terms is None:
                return
            for row, (_, _, readings) in self.factors.items():
                for reading in readings:
                    common = keys_of(self.request) | {"row": row, "encoder": name, "over": reading.text}
                    yield common | {"counted": RATIO, "quantity": RATIO, "value": reading.ratio(terms)}
                    if row in self.stated:
                        ranks = range(1, MOST_RANK + 1)
                        reach = [r for r in ranks if reading.ratio(replace(terms, r=r)) >= self.stated[row]]
                        yield common | {"counted": RATIO, "quantity": RANKS, "value": max(reach, default=0)}

    # ---- tables ----------------------------------------------------------------------------------------------------

    def _both(self, row: Row, encoder: str, how: str) -> list[float]:
        """Bytes in both directions, counted in one way; empty if they are unknown."""
        sizes = (self.value(row, (encoder, how, way)) for way in WAYS)
        return [size for size in sizes if size is not None]

    def _compared(self, row: Row, encoder: str, how: str) -> str:
        """Bytes counted in another way: "equal" to the closed form, or up and down."""
        form, other = (self._both(row, encoder, each) for each in (FORM, how))
        if not other:
            return NOT_RUN if how == LEDGER else NOTHING
        if list(map(round, form)) == list(map(round, other)):
            return "equal"
        return " / ".join(map(human_bytes, other))

    def _grid(self, encoder: str) -> Grid:
        others = (SHAPES, LEDGER) if encoder == self.request.scale.backbone else (SHAPES,)
        columns = [Shown((FORM, way), (encoder, FORM, way), human_bytes) for way in WAYS]
        saved = [
            Shown((f"{base.name}'s bytes", "÷ this row's"), (encoder, SHAPES, "saved", base.id), number)
            for base in self.baselines
        ]
        groups = []
        for row in self.request.rows:
            form = self.forms[row.id].text if row.id in self.forms else NOTHING
            compared = (self._compared(row, encoder, how) for how in others)
            groups.append(
                one_line(
                    self.request.name_of(row), (*self.cells(row, columns), *compared, *self.cells(row, saved)), form
                )
            )
        headers = *(column.header for column in columns), *((how,) for how in others), *(each.header for each in saved)
        title = self.title(f"bytes of one client in a round, {encoder}")
        return Grid(title, headers, tuple(groups), is_whole=True)

    def grids(self) -> Iterator[Grid]:
        """A table for each encoder."""
        yield from map(self._grid, self.encoders)
        yield self._factor_grid()

    def _factor_grid(self) -> Grid:
        """Which tensors have to be counted to reach each stated factor."""
        by_encoder: dict[str, dict[tuple[str, str], dict[str, float]]] = {}
        for (row, (encoder, counted, *quantity)), line in self.by_place.items():
            if counted == RATIO:
                by_encoder.setdefault(encoder, {}).setdefault((row, quantity[1]), {})[quantity[0]] = line["value"]
        groups = []
        for row, (name, _, readings) in self.factors.items():
            lines = [
                Line(reading.text, tuple(_reached(each[row, reading.text]) for each in by_encoder.values()))
                for reading in readings
            ]
            groups.append(Group(name, tuple(lines)))
        title = self.title(
            "factors that papers state, by the tensors that are counted, and the ranks at which each is reached"
        )
        headers = tuple(tuple(encoder.split("-", 1)) for encoder in by_encoder)
        return Grid(title, headers, tuple(groups) if by_encoder else (), "Stated")

    def method(self) -> Iterator[str]:
        """Terms and ways to count."""
        yield (
            "Closed forms in values of 4 bytes: L layers, d width, f feed-forward width, K clients of the round, h the "
            "head, N the encoder's trained parameters, n = n_A = n_B = 2Lrd. One client, a round after the first."
        )
        yield "Shapes: the round itself on tensors without values. Ledger: payloads of the last round, mean over runs."
        yield "N leaves out the embeddings E, which are frozen. The one-time distribution of the model is left out."
        yield (
            f"Stated factors: ratios of closed forms at rank {self.options['rank']}, both "
            "directions, of the adapter alone unless h or E is named; in brackets the ranks at which the stated number "
            "is reached. A paper that does not say what it counts is neither confirmed nor refuted by one "
            "interpretation."
        )
        yield from (f"{sentence}." for _, sentence, _ in self.factors.values())

    def plot(self) -> Figure:
        """Both directions together, by encoder."""
        panels = []
        for encoder in self.encoders:
            sizes = {
                self.request.name_of(row): sum(self._both(row, encoder, SHAPES)) / 1e6 for row in self.request.rows
            }
            panels.append(Panel(encoder, list(sizes), [Dots("by shapes", sizes)]))
        caption = "One client, one round after the first, uplink and downlink, without the one-time distribution."
        return dot_plot(self.request.heading, panels, "MB per round", caption, across=2)
