"""The view of split learning's costs: a client's epoch by closed form, on the wire, and in seconds where measured.

Options: baseline, a row id; encoders, name -> backbone of the paper's encoders; blocks of all clients together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import product
from math import isclose
from typing import Any

from matplotlib.figure import Figure

from benchmarks.costs import Parts, SplitTerms
from benchmarks.experiment import Row
from benchmarks.networks import Deployment, Device, Network, Turn
from benchmarks.run_config import JSON, RunConfig
from reports.evidence.published import DIFFERS, MEGABYTE
from reports.evidence.records import Request
from reports.evidence.statistics import mean
from reports.evidence.traffic import measured_cost
from reports.frame import Quantities, read_timings
from reports.pages.page import KEYS, Grid, keys_of, one_line
from reports.pages.plots import MARKS, Dots, Panel, dot_plot
from reports.pages.text import NOT_RUN, NOTHING, dagger_note, human_bytes, number, row_name

TIMED = ("client", "server", "whole")
WAYS = ("FedAvg", "sequential", "parallel")
EXACT = "to the byte"
_FLOAT_BYTES, _HOUR = 4, 3600
# The timed parts of a batch, by party.
_PARTS = {"client": ("embeddings", "head", "client_step"), "server": ("layers", "server_step")}
_LINKS = tuple(
    Network(name, rate, rate, 0.0, "no latency") for name, rate in (("100 Mbit/s", 1e8 / 8), ("1 Gbit/s", 1e9 / 8))
)
_MEASURED = Device("as timed", 1.0, "operations are seconds")
_CLOSED, _COUNTED = "closed form", "wire, measured"
_SHARED = ("activations", "gradients", "parameters")  # the kinds of payload that equations speak of


class SplitCosts(Quantities):
    """A client's epoch by closed form and on the wire, by encoder; derived where the request can derive it.

    ReportError where a record or the file of timings is damaged.
    """

    place_fields = ("encoder", "counted", "quantity")
    fields = (*KEYS, "encoder", "counted", "quantity", "value", "n_seeds")

    @property
    def options(self) -> Mapping[str, Any]:
        return self.request.benchmark.view.options

    @property
    def rows(self) -> list[Row]:
        """The rows with an equation."""
        return [row for row in self.request.rows if row.id in self.request.benchmark.closed_forms]

    def lines(self) -> Iterator[dict[str, JSON]]:
        """Bytes of one client's epoch: of the whole run over clients and a client's epochs; and seconds."""
        request, column = self.request, self.request.columns[0]
        for name, row in product(self.options["encoders"], self.rows):
            terms = self._of_encoder(row, name)[1]
            yield from () if terms is None else self._epoch(row, name, _CLOSED, terms, self._closed(row, terms))
        for row in self.rows:
            records = request.records_of(row, column)
            cost, own = measured_cost(request.benchmark, column, records, request.find), request.scale.backbone
            if cost is not None:
                blocks = mean([float(client["train"]) for client in records[0].clients])
                terms = self._terms(records[0].cell, blocks, request)
                if terms is not None:
                    yield from self._epoch(row, own, _CLOSED, terms, self._closed(row, terms), cost.seeds)
                    yield from self._epoch(row, own, _COUNTED, terms, cost.kinds, cost.seeds)
        seconds = [
            (name, "timed", f"{party}_seconds", own[party]) for name, own in self.timed.items() for party in TIMED
        ]
        for (model, bandwidth), times in self.modelled.items():
            seconds += [
                (model, f"modelled, {bandwidth}", f"{way}_epoch_seconds", value) for way, value in times.items()
            ]
        for model, counted, quantity, value in seconds:
            yield keys_of(request) | {"encoder": model, "counted": counted, "quantity": quantity, "value": value}

    def _closed(self, row: Row, terms: SplitTerms) -> Parts:
        return self.request.benchmark.closed_forms[row.id].parts(terms)

    def _epoch(
        self, row: Row, encoder: str, counted: str, terms: SplitTerms, sizes: Parts, seeds: int = 0
    ) -> Iterator[dict[str, JSON]]:
        common = keys_of(self.request, row, self.request.columns[0]) | {"encoder": encoder, "counted": counted}
        for kind, size in sizes.items():
            if size:
                value = size / (terms.N * terms.T)
                yield common | {"n_seeds": seeds, "quantity": f"{kind}_bytes", "value": value}

    def _of_encoder(self, row: Row, name: str) -> tuple[RunConfig, SplitTerms | None]:
        """A row's cell at the paper's scale with one of its encoders, and the equation's symbols."""
        request, backbone = self.request, self.options["encoders"][name]
        scales = tuple(
            replace(scale, backbone=backbone) if scale == request.paper_scale else scale
            for scale in request.benchmark.scales
        )
        other = replace(request, benchmark=replace(request.benchmark, scales=scales))
        cell = other.benchmark.cell(row, request.columns[0], other.paper_scale, 0)
        return cell, self._terms(cell, self.options["blocks"] / cell.clients, other)

    def _terms(self, cell: RunConfig, blocks: float, request: Request) -> SplitTerms | None:
        """The symbols of one cell; blocks: of one client. FedAvg's round gives the model's sizes."""
        benchmark, scale = request.benchmark, request.benchmark.scale(cell.scale)
        baseline = benchmark.row(self.options["baseline"])
        plan = request.derive(baseline, request.columns[0], scale) if request.derive else None
        if plan is None:
            return None
        training, sizes = cell.training, plan.sizes
        crossing = blocks * training.max_length * sizes.width * _FLOAT_BYTES
        # With turns, a round is one client's.
        epochs = training.rounds * training.local_epochs / (cell.clients if "turns" in cell.options else 1)
        parts = sizes.model_bytes, sizes.embeddings_bytes, sizes.head_bytes
        return SplitTerms(training.rounds, cell.clients, epochs, crossing, *parts)

    @cached_property
    def modelled(self) -> dict[tuple[str, str], Mapping[str, float]]:
        """(encoder, bandwidth) -> WAYS -> modelled seconds of an epoch: every client's text once, in a deployment.

        Each party's seconds of a token are measured; client and server compute as fast as that machine, every client
        has the bandwidth to itself, for one message after the other, and FedAvg exchanges models once in such an
        epoch. In parallel a client computes and sends for its own epoch, unless the one server, which has all clients'
        batches to compute, takes longer.
        """
        found: dict[tuple[str, str], Mapping[str, float]] = {}
        row = self.request.benchmark.row(self.options["baseline"])
        for name, backbone in self.options["encoders"].items():
            cell, terms = self._of_encoder(row, name)
            seconds = self.timed.get(backbone)
            if seconds is None or terms is None:
                continue
            tokens = self.options["blocks"] / cell.clients * cell.training.max_length
            client, server, whole = (seconds[party] * tokens / seconds["tokens"] for party in TIMED)
            model = [Turn(terms.W, terms.W, operations=whole)] * cell.clients
            split = [Turn(2 * terms.pL, 2 * terms.pL, operations=client, server_operations=server)] * cell.clients
            for link in _LINKS:
                together = Deployment(link, _MEASURED, _MEASURED, utilisation=1.0)
                in_turn = replace(together, parallel=False)
                ways = (together, model), (in_turn, split), (together, split)
                times = [at.round_seconds(turns) for at, turns in ways]
                found[name, link.name] = dict(zip(WAYS, times, strict=True))
        return found

    @cached_property
    def timed(self) -> Mapping[str, Mapping[str, float]]:
        """Model -> seconds of a batch for the client, the server and the unsplit model, and its tokens.

        From one run; empty where there is none. ReportError where the file is damaged.
        """
        costing = self.request.benchmark.costing
        return read_timings(costing.timed if costing else None, _timed) or {}

    # ---- tables ----------------------------------------------------------------------------------------------------

    def _bytes(self, row: Row, encoder: str, kinds: Sequence[str] = _SHARED, counted: str = _CLOSED) -> float:
        """Bytes of some kinds together; 0 without any."""
        return sum(self.value(row, (encoder, counted, f"{kind}_bytes")) or 0.0 for kind in kinds)

    def _cells(self, row: Row, encoder: str) -> tuple[str, ...]:
        form = self.request.benchmark.closed_forms[row.id]
        total = self._bytes(row, encoder)
        if not total:
            return (form.equation, form.text, NOT_RUN, *[""] * 5)
        base = self._bytes(self.request.benchmark.row(self.options["baseline"]), encoder)
        sizes = (self._bytes(row, encoder, _SHARED[:2]), self._bytes(row, encoder, _SHARED[2:]), total)
        times, verdict = f"{number(total / base)} ×" if base else NOTHING, NOTHING
        if encoder == self.request.scale.backbone:
            closed, counted = (
                [self._bytes(row, encoder, [kind], way) for kind in _SHARED] for way in (_CLOSED, _COUNTED)
            )
            verdict = EXACT if all(map(partial(isclose, rel_tol=1e-12), closed, counted)) else DIFFERS
        masks = self._bytes(row, encoder, ("masks",), _COUNTED)
        texts = (human_bytes(size) if size else NOTHING for size in (*sizes, masks))
        crossing, averaged, together, apart = texts
        return (form.equation, form.text, crossing, averaged, together, times, verdict, apart)

    def grids(self) -> Iterator[Grid]:
        """A table for each of the paper's encoders that is derived, one for the records, and two of seconds."""
        headers = (
            *(("Table 2",), ("closed form", "of a run"), ("crossing", "closed form")),
            *(("averaged, handed on", "closed form"), ("together",), ("over FedAvg's",), ("on the wire",)),
            ("masks", "apart"),
        )
        titles = {name: self.title(f"{name}, derived: the same at every scale") for name in self.derived}
        for encoder, title in (titles | {self.request.scale.backbone: f"{self.request.heading}: measured"}).items():
            groups = tuple(one_line(row_name(row), self._cells(row, encoder)) for row in self.rows)
            yield Grid(f"{title}; one client's epoch", headers, groups)
        yield from self._seconds()

    @property
    def derived(self) -> list[str]:
        """The paper's encoders whose bytes are derived."""
        known = {place[0] for _, place in self.by_place}
        return [name for name in self.options["encoders"] if name in known]

    def _seconds(self) -> Iterator[Grid]:
        if self.timed:
            headers = (
                ("T(E) + T(H)", "client"),
                ("T(T)", "server"),
                ("T(W)", "unsplit"),
                ("client's share", "of T(T)"),
            )

            def cells(own: Mapping[str, float]) -> Sequence[str]:
                return [*(number(own[party]) for party in TIMED), f"{number(100 * own['client'] / own['server'])} %"]

            groups = tuple(one_line(model, cells(own)) for model, own in self.timed.items())
            title = self.title("seconds of a batch, measured in one run (docs/performance.md)")
            yield Grid(title, headers, groups, "Model")
        if self.modelled:
            groups = tuple(
                one_line(f"{model}, {bandwidth}", (f"{number(own[way] / _HOUR)} h" for way in WAYS))
                for (model, bandwidth), own in self.modelled.items()
            )
            title = self.title("modelled, not measured: hours until every client's text has been trained on once")
            yield Grid(title, tuple((way, "modelled") for way in WAYS), groups, "Model, bandwidth")

    def method(self) -> Iterator[str]:
        """How the numbers were obtained."""
        yield (
            "One client's epoch: bytes of the whole run, in both directions, over clients and a client's epochs. "
            "Crossing: 4pL over the true batches; averaged and handed on: the closed form's second term. Table 2 "
            "prints the first term alone, and N times it at the server."
        )
        yield (
            f"On the wire: {EXACT} where the channel counts the closed form's activations, gradients and parameters. "
            "Masks stand apart. No number includes the set-up, which sends embeddings and head (or the model) to each "
            "client."
        )
        if self.modelled:
            yield (
                "Modelled: each party's seconds a token as measured on one machine, in blocks of 128; every client has "
                "the bandwidth to itself, one message after the other; FedAvg exchanges models once. Parallel: a "
                "client's own batches and bytes, or all clients' batches at the one server where that takes longer. No "
                "latency."
            )
        if self.derived:
            yield f"Derived: closed forms with the paper's encoders and {self.options['blocks']:,} blocks in all."

    def plot(self) -> Figure:
        """A mark for each mode and encoder: by closed form for the paper's encoders and the scale's."""
        encoders, series = {name: name for name in self.derived}, []
        encoders[f"{self.request.scale.id}, measured"] = self.request.scale.backbone
        for sign, (label, encoder) in zip(MARKS, encoders.items(), strict=False):
            sizes = {row_name(row): self._bytes(row, encoder) / MEGABYTE for row in self.rows}
            series.append(Dots(label, {name: size for name, size in sizes.items() if size}, {"marker": sign}))
        caption = f"Closed forms of Table 2 with averaging and hand-overs.{dagger_note(self.rows)}"
        panel = Panel("one client's epoch", [row_name(row) for row in self.rows], series)
        return dot_plot(self.request.heading, [panel], "MB, both directions", caption)


def way_of(row: Row) -> str:
    """The one of WAYS by which a row trains."""
    return {"fedbert_sequential": "sequential", "fedbert_parallel": "parallel"}.get(row.algorithm, "FedAvg")


def _timed(content: JSON) -> dict[str, dict[str, float]]:
    found = {}
    for entry in content["rows"]:
        tokens = float(entry["batch"]) * float(entry["tokens"])
        parties = {name: sum(float(entry[f"{part}_seconds"]) for part in parts) for name, parts in _PARTS.items()}
        whole = tokens / float(entry["unsplit_tokens_per_second"])
        found[entry["model"]] = {**parties, "tokens": tokens, "whole": whole}
    return found
