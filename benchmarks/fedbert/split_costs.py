"""Table 2: a client's epoch in split learning: closed forms, bytes on the wire, seconds and computed hours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import product
from math import isclose
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.costs import Parts, SplitTerms
from benchmarks.costs.networks import TYPICAL, Deployment
from benchmarks.experiment import Row
from benchmarks.fedbert.paper import BLOCKS, FEDAVG
from benchmarks.run_config import JSON, RunConfig
from fedsim.files import read_json
from reports.evidence.published import DIFFERS, MEGABYTE
from reports.evidence.records import Request
from reports.evidence.statistics import mean
from reports.evidence.traffic import derived_turns, measured_cost
from reports.frame import Quantities
from reports.pages.page import Grid, keys_of, one_line
from reports.pages.plots import MARKS, Dots, Panel, dot_plot
from reports.pages.text import NOT_RUN, NOTHING, dagger_note, human_bytes, number

ENCODERS = {"RoBERTa-small": "roberta-small-fresh", "RoBERTa-base": "roberta-base-fresh"}  # the paper's
TIMINGS = Path(__file__).parents[1] / "performance" / "measured" / "epyc" / "split.json"
TIMED = ("client", "server", "whole")
EXACT = "exact match"
_FLOAT_BYTES, _HOUR = 4, 3600
# The timed parts of a batch, by party.
_PARTS = {"client": ("embeddings", "head", "client_step"), "server": ("layers", "server_step")}
_CLOSED, _COUNTED = "closed form", "wire, measured"
_SHARED = ("activations", "gradients", "parameters")  # payload kinds in the equations


class SplitCosts(Quantities):
    """A client's epoch by closed form and on the wire, by encoder; derived if possible.

    ReportError for a damaged record or timings file.
    """

    place_fields = ("encoder", "counted", "quantity")

    @property
    def rows(self) -> list[Row]:
        """The rows with an equation."""
        return [row for row in self.request.rows if row.id in self.request.benchmark.closed_forms]

    def lines(self) -> Iterator[dict[str, JSON]]:
        """Bytes per client and epoch (the run's bytes divided by clients and their epochs), and seconds."""
        request, column = self.request, self.request.columns[0]
        for name, row in product(ENCODERS, self.rows):
            other, cell = self._with_encoder(row, name)
            terms = self._terms(cell, BLOCKS / cell.clients, other)
            yield from () if terms is None else self._epoch(row, name, _CLOSED, terms, self._closed(row, terms))
        for row in self.rows:
            records = request.records_of(row, column)
            cost, backbone = measured_cost(request.benchmark, column, records, request.find), request.scale.backbone
            if cost is not None:
                blocks = mean([float(client["train"]) for client in records[0].clients])
                terms = self._terms(records[0].cell, blocks, request)
                if terms is not None:
                    yield from self._epoch(row, backbone, _CLOSED, terms, self._closed(row, terms), cost.seeds)
                    yield from self._epoch(row, backbone, _COUNTED, terms, cost.kinds, cost.seeds)
        for (row_id, name), times in self.hours.items():
            common = keys_of(request, request.benchmark.row(row_id), column)
            common |= {"encoder": name, "quantity": "epoch_hours"}
            yield from (common | {"counted": network, "value": value} for network, value in times.items())
        for model, parties in self.timed.items():
            common = keys_of(request) | {"encoder": model, "counted": "timed"}
            yield from (common | {"quantity": f"{party}_seconds", "value": parties[party]} for party in TIMED)

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

    def _with_encoder(self, row: Row, name: str) -> tuple[Request, RunConfig]:
        """The request with one of the paper's encoders at the paper's scale, and a row's run there."""
        request, backbone = self.request, ENCODERS[name]
        scales = tuple(
            replace(scale, backbone=backbone) if scale == request.paper_scale else scale
            for scale in request.benchmark.scales
        )
        other = replace(request, benchmark=replace(request.benchmark, scales=scales))
        return other, other.benchmark.cell(row, request.columns[0], other.paper_scale, 0)

    def _terms(self, cell: RunConfig, blocks: float, request: Request) -> SplitTerms | None:
        """A cell's symbols; blocks: per client. FedAvg's round gives the model's sizes."""
        benchmark, scale = request.benchmark, request.benchmark.scale(cell.scale)
        plan = request.plan(benchmark.row(FEDAVG.id), scale)
        if plan is None:
            return None
        training, sizes = cell.training, plan.sizes
        crossing = blocks * training.max_length * sizes.width * _FLOAT_BYTES
        parts = sizes.model_bytes, sizes.embeddings_bytes, sizes.head_bytes
        return SplitTerms(training.rounds, cell.clients, _epochs(cell), crossing, *parts)

    @cached_property
    def hours(self) -> dict[tuple[str, str], dict[str, float]]:
        """(row id, encoder) -> network -> computed hours for all clients' epoch on the paper's number of texts."""
        hours = dict[tuple[str, str], dict[str, float]]()
        for row, name in product(self.rows, ENCODERS):
            request, cell = self._with_encoder(row, name)
            turns = derived_turns(request, row, BLOCKS)
            if turns is not None:
                seconds = {network: at.run_seconds(turns) for network, at in TYPICAL.items()}
                hours[row.id, name] = {name: duration / _epochs(cell) / _HOUR for name, duration in seconds.items()}
        return hours

    @cached_property
    def timed(self) -> Mapping[str, Mapping[str, float]]:
        """Model -> seconds per batch for client, server and unsplit model, from one run."""
        timed = {}
        for entry in read_json(TIMINGS)["rows"]:
            times = {name: sum(float(entry[f"{part}_seconds"]) for part in parts) for name, parts in _PARTS.items()}
            tokens = float(entry["batch"]) * float(entry["tokens"])
            timed[entry["model"]] = {**times, "whole": tokens / float(entry["unsplit_tokens_per_second"])}
        return timed

    # ---- tables ----------------------------------------------------------------------------------------------------

    def _bytes(self, row: Row, encoder: str, kinds: Sequence[str] = _SHARED, counted: str = _CLOSED) -> float:
        """Total bytes of the given kinds; 0 without any."""
        return sum(self.value(row, (encoder, counted, f"{kind}_bytes")) or 0.0 for kind in kinds)

    def _cells(self, row: Row, encoder: str) -> tuple[str, ...]:
        form = self.request.benchmark.closed_forms[row.id]
        total = self._bytes(row, encoder)
        if not total:
            return (form.equation, form.text, NOT_RUN, *[""] * 5)
        base = self._bytes(self.request.benchmark.row(FEDAVG.id), encoder)
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
        """A table per derived encoder of the paper, one for the records, and tables of seconds and hours."""
        headers = (
            *(("Table 2",), ("closed form", "of a run"), ("cut layer", "closed form")),
            *(("averaged or passed on", "closed form"), ("sum",), ("over FedAvg's",), ("on the wire",)),
            ("masks", "counted separately"),
        )
        titles = {name: self.title(f"{name}, derived: the same at every scale") for name in self.derived}
        for encoder, title in (titles | {self.request.scale.backbone: f"{self.request.heading}: measured"}).items():
            groups = tuple(one_line(self.request.name_of(row), self._cells(row, encoder)) for row in self.rows)
            yield Grid(f"{title}; one client's epoch", headers, groups)
        yield from self._seconds()

    @property
    def derived(self) -> list[str]:
        """The paper's encoders whose bytes are derived."""
        encoders = {place[0] for _, place in self.by_place}
        return [name for name in ENCODERS if name in encoders]

    def _seconds(self) -> Iterator[Grid]:
        headers = (("T(E) + T(H)", "client"), ("T(T)", "server"), ("T(W)", "unsplit"), ("client's share", "of T(T)"))

        def cells(seconds: Mapping[str, float]) -> Sequence[str]:
            return [
                *(number(seconds[party]) for party in TIMED),
                f"{number(100 * seconds['client'] / seconds['server'])} %",
            ]

        groups = tuple(one_line(model, cells(seconds)) for model, seconds in self.timed.items())
        title = self.title("seconds of a batch, measured in one run (docs/performance.md)")
        yield Grid(title, headers, groups, "Model")
        for name in ENCODERS:
            hours = {self.request.name_of(row): self.hours.get((row.id, name), {}) for row in self.rows}
            if any(hours.values()):
                title = self.title(f"{name}, computed: hours until every client's text has been trained on once")
                groups = tuple(
                    one_line(row, map(number, by_network.values())) for row, by_network in hours.items() if by_network
                )
                yield Grid(title, tuple((at.label, "h") for at in TYPICAL.values()), groups)

    def method(self) -> Iterator[str]:
        """How the numbers were obtained."""
        yield (
            "One client's epoch: bytes of the whole run, in both directions, over clients and a client's epochs. "
            "Cut layer: 4pL over the true batches; averaged or passed on: the closed form's second term. Table 2 "
            "has the first term alone, and N times it at the server."
        )
        yield (
            f"On the wire: {EXACT} where the channel counts the closed form's activations, gradients and parameters. "
            "Masks are separate. No number includes the set-up, which sends embeddings and head (or the model) to each "
            "client."
        )
        if self.hours:
            yield (
                "Hours are computed from bytes, messages and operations by shapes. Each client has its own link and "
                f"device, which reaches {Deployment.utilisation:.0%} of its peak. Every message waits half a round "
                f"trip. The server is a {Deployment.server.name}. `python -m benchmarks time` names the sources."
            )
        if self.derived:
            yield f"Derived: closed forms with the paper's encoders and {BLOCKS:,} blocks in all."

    def plot(self) -> Figure:
        """A mark per mode and encoder, by closed form."""
        encoders, series = {name: name for name in self.derived}, []
        encoders[f"{self.request.scale.id}, measured"] = self.request.scale.backbone
        for sign, (label, encoder) in zip(MARKS, encoders.items(), strict=False):
            sizes = {self.request.name_of(row): self._bytes(row, encoder) / MEGABYTE for row in self.rows}
            series.append(Dots(label, {name: size for name, size in sizes.items() if size}, {"marker": sign}))
        caption = f"Closed forms of Table 2 with averaging and hand-overs.{dagger_note(self.request, self.rows)}"
        panel = Panel("one client's epoch", [self.request.name_of(row) for row in self.rows], series)
        return dot_plot(self.request.heading, [panel], "MB, both directions", caption)


def _epochs(cell: RunConfig) -> float:
    """A client's epochs in a run; with turns, each round belongs to one client."""
    return cell.training.rounds * cell.training.local_epochs / (cell.clients if "turns" in cell.options else 1)
