"""The view of split learning's costs: a client's epoch by closed form, on the wire, and in seconds where measured.

Options: baseline, a row id; encoders, name -> backbone of the paper's encoders; blocks of all clients together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from matplotlib.figure import Figure

from benchmarks.costs import Parts, SplitTerms
from benchmarks.experiment import Row
from benchmarks.run_config import JSON, RunConfig
from reports.evidence.published import MEGABYTE
from reports.evidence.records import Request
from reports.evidence.statistics import mean
from reports.evidence.traffic import measured_cost
from reports.frame import View, read_timings
from reports.pages.page import KEYS, Grid, keys_of, one_line
from reports.pages.plots import MARKS, Dots, Panel, dot_plot
from reports.pages.text import NOT_RUN, NOTHING, dagger_note, human_bytes, number, row_name

TIMED = ("client", "server", "whole")
WAYS = ("FedAvg", "sequential", "parallel")
EXACT, DIFFERS = "to the byte", "differs"
_FLOAT_BYTES, _HOUR = 4, 3600
# The timed parts of a batch, by party.
_PARTS = {"client": ("embeddings", "head", "client_step"), "server": ("layers", "server_step")}
_BANDWIDTHS = {"100 Mbit/s": 100e6 / 8, "1 Gbit/s": 1e9 / 8}  # bytes a second
_SHARED = ("activations", "gradients", "parameters")  # the kinds of payload that equations speak of


@dataclass(frozen=True)
class SplitEpoch:
    """A row's bytes of one client's epoch, by kind. closed: by its equation; counted: on the wire, where it was run.

    epochs: of all clients, by which both are divided. seeds: 0 where nothing was run.
    """

    closed: Parts
    counted: Parts
    epochs: float
    seeds: int = 0

    @property
    def total(self) -> float:
        """By the equation."""
        return sum(self.closed.values())

    @property
    def agrees(self) -> bool:
        """Whether every kind that equations speak of is counted to the byte."""
        return all(round(self.epochs * (self.closed.get(kind, 0) - self.counted.get(kind, 0))) == 0 for kind in _SHARED)


class SplitCosts(View):
    """Closed forms and bytes of a request's rows; derived numbers are empty where the request cannot derive them.

    ReportError where a record or the file of timings is damaged.
    """

    ranks = False
    fields = (*KEYS, "encoder", "counted", "quantity", "value", "n_seeds")
    integers = ("n_seeds",)
    floats = ("value",)

    @property
    def options(self) -> Mapping[str, Any]:
        return self.request.benchmark.view.options

    @property
    def rows(self) -> list[Row]:
        """The rows with an equation."""
        return [row for row in self.request.rows if row.id in self.request.benchmark.closed_forms]

    @cached_property
    def derived(self) -> dict[str, dict[str, SplitEpoch]]:
        """Encoder's name -> row id -> what shapes give."""
        found: dict[str, dict[str, SplitEpoch]] = {}
        for name in self.options["encoders"]:
            terms = {row.id: self._of_encoder(row, name)[1] for row in self.rows}
            found[name] = {row_id: self._epoch(row_id, own, {}) for row_id, own in terms.items() if own is not None}
        return found

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

    @cached_property
    def measured(self) -> dict[str, SplitEpoch]:
        """Row id -> what the records' ledgers have, of the first task; the mean over seeds, which are alike."""
        request, found = self.request, dict[str, SplitEpoch]()
        for row in self.rows:
            records = request.records_of(row, request.columns[0])
            cost = measured_cost(request.benchmark, request.columns[0], records, request.find)
            if cost is not None:
                blocks = mean([float(client["train"]) for client in records[0].clients])
                terms = self._terms(records[0].cell, blocks, request)
                found |= {} if terms is None else {row.id: self._epoch(row.id, terms, cost.kinds, cost.seeds)}
        return found

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

    def _epoch(self, row_id: str, terms: SplitTerms, kinds: Parts, seeds: int = 0) -> SplitEpoch:
        epochs, form = terms.N * terms.T, self.request.benchmark.closed_forms[row_id]
        closed, counted = (
            {kind: size / epochs for kind, size in parts.items() if size} for parts in (form.parts(terms), kinds)
        )
        return SplitEpoch(closed, counted, epochs, seeds)

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
            for label, bandwidth in _BANDWIDTHS.items():
                alone = client + server + 4 * terms.pL / bandwidth
                times = whole + 2 * terms.W / bandwidth, cell.clients * alone, max(alone, cell.clients * server)
                found[name, label] = dict(zip(WAYS, times, strict=True))
        return found

    @cached_property
    def timed(self) -> Mapping[str, Mapping[str, float]]:
        """Model -> seconds of a batch for the client, the server and the unsplit model, and its tokens.

        From one run; empty where there is none. ReportError where the file is damaged.
        """
        costing = self.request.benchmark.costing
        return read_timings(costing.timed if costing else None, _timed) or {}

    def grids(self) -> tuple[Grid, ...]:
        """A table for each of the paper's encoders that is derived, one for the records, and two of seconds."""
        request, forms = self.request, self.request.benchmark.closed_forms
        name = f"{request.benchmark.paper.name}, {request.benchmark.place}"
        headers = (
            *(("Table 2",), ("closed form", "of a run"), ("crossing", "closed form")),
            *(("averaged, handed on", "closed form"), ("together",), ("over FedAvg's",), ("on the wire",)),
            ("masks", "apart"),
        )
        known = {
            f"{name} · {encoder}, derived: the same at every scale": own for encoder, own in self.derived.items() if own
        }
        tables = []
        for title, epochs in (known | {f"{request.heading}: measured": self.measured}).items():
            base = epochs.get(self.options["baseline"])
            groups = (
                one_line(row_name(row), (forms[row.id].equation, forms[row.id].text, *_cells(epochs.get(row.id), base)))
                for row in self.rows
            )
            tables.append(Grid(f"{title}; one client's epoch", headers, tuple(groups)))
        return (*tables, *self._seconds(name))

    def _seconds(self, name: str) -> Iterator[Grid]:
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
            title = f"{name} · seconds of a batch, measured in one run (docs/performance.md)"
            yield Grid(title, headers, groups, "Model")
        if self.modelled:
            groups = tuple(
                one_line(f"{model}, {bandwidth}", (f"{number(own[way] / _HOUR)} h" for way in WAYS))
                for (model, bandwidth), own in self.modelled.items()
            )
            title = f"{name} · modelled, not measured: hours until every client's text has been trained on once"
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
        if any(self.derived.values()):
            yield f"Derived: closed forms with the paper's encoders and {self.options['blocks']:,} blocks in all."

    def lines(self) -> Iterator[dict[str, JSON]]:
        """Bytes of one client's epoch, and seconds of one batch."""
        request = self.request
        ways = {("derived", name): epochs for name, epochs in self.derived.items()}
        ways["measured", request.scale.backbone] = self.measured
        for (counted, encoder), epochs in ways.items():
            for row in (row for row in self.rows if row.id in epochs):
                common = keys_of(request, row, request.columns[0]) | {
                    "encoder": encoder,
                    "n_seeds": epochs[row.id].seeds,
                }
                for how, parts in (
                    ("closed form", epochs[row.id].closed),
                    (f"wire, {counted}", epochs[row.id].counted),
                ):
                    for kind, size in parts.items():
                        yield common | {"counted": how, "quantity": f"{kind}_bytes", "value": size}
        seconds = [
            (model, "timed", f"{party}_seconds", own[party]) for model, own in self.timed.items() for party in TIMED
        ]
        for (model, bandwidth), times in self.modelled.items():
            seconds += [
                (model, f"modelled, {bandwidth}", f"{way}_epoch_seconds", value) for way, value in times.items()
            ]
        for model, counted, quantity, value in seconds:
            yield keys_of(request) | {"encoder": model, "counted": counted, "quantity": quantity, "value": value}

    def plot(self) -> Figure:
        """A mark for each mode and encoder: by closed form for the paper's encoders and the scale's."""
        encoders, series = {**self.derived, f"{self.request.scale.id}, measured": self.measured}, []
        for sign, (label, epochs) in zip(MARKS, encoders.items(), strict=False):
            sizes = {row_name(row): epochs[row.id].total / MEGABYTE for row in self.rows if row.id in epochs}
            series.append(Dots(label, sizes, {"marker": sign}))
        caption = f"Closed forms of Table 2 with averaging and hand-overs.{dagger_note(self.rows)}"
        panel = Panel("one client's epoch", [row_name(row) for row in self.rows], series)
        return dot_plot(self.request.heading, [panel], "MB, both directions", caption)


def _timed(content: JSON) -> dict[str, dict[str, float]]:
    found = {}
    for entry in content["rows"]:
        tokens = float(entry["batch"]) * float(entry["tokens"])
        parties = {name: sum(float(entry[f"{part}_seconds"]) for part in parts) for name, parts in _PARTS.items()}
        whole = tokens / float(entry["unsplit_tokens_per_second"])
        found[entry["model"]] = {**parties, "tokens": tokens, "whole": whole}
    return found


def _bytes(size: float) -> str:
    return human_bytes(size) if size else NOTHING


def _cells(found: SplitEpoch | None, base: SplitEpoch | None) -> tuple[str, ...]:
    if found is None:
        return (NOT_RUN, *[""] * 5)
    crossing = sum(found.closed.get(kind, 0) for kind in _SHARED[:2])
    times = f"{number(found.total / base.total)} ×" if base is not None and base.total else NOTHING
    verdict = NOTHING if not found.seeds else EXACT if found.agrees else DIFFERS
    sizes = map(_bytes, (crossing, found.closed.get("parameters", 0), found.total))
    return (*sizes, times, verdict, _bytes(found.counted.get("masks", 0)))
