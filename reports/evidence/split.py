"""Split learning's closed forms beside bytes: by the paper's encoders' shapes, and as ledgers have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from benchmarks.costs import ClosedForm, Parts, SplitTerms
from benchmarks.experiment import Row
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig
from fedsim.files import read_json
from reports import ReportError
from reports.evidence.records import Request
from reports.evidence.statistics import mean
from reports.evidence.traffic import Cost, measured_cost

FLOAT_BYTES = 4
# Whose seconds the part `split` of `make bench` has of a batch.
PARTS = {"client": ("embeddings", "head", "client_step"), "server": ("layers", "server_step")}
WAYS = ("FedAvg", "sequential", "parallel")
BANDWIDTHS = {"100 Mbit/s": 100e6 / 8, "1 Gbit/s": 1e9 / 8}  # bytes a second
SHARED = ("activations", "gradients", "parameters")  # the kinds of payload that equations speak of


@dataclass(frozen=True)
class Compared:
    """A row's bytes of one client's epoch, by kind. closed: by its equation; counted: on the wire, where it was run.

    epochs: of all clients, by which both are divided. seeds: 0 where nothing was run.
    """

    row: Row
    form: ClosedForm
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
        """Whether every kind that equations speak of is counted to the byte; other kinds are beside it."""
        return all(round(self.epochs * (self.closed.get(kind, 0) - self.counted.get(kind, 0))) == 0 for kind in SHARED)


@dataclass(frozen=True)
class Split:
    """Closed forms and bytes of a request's rows.

    The view's options: `baseline`, a row id; `encoders`, name -> backbone of those that the paper has; `blocks` of all
    clients together. What is derived is empty where nobody derives it. ReportError where a record is damaged.
    """

    request: Request

    @property
    def rows(self) -> list[Row]:
        """Those with an equation."""
        return [row for row in self.request.rows if row.id in self.request.benchmark.closed_forms]

    @cached_property
    def derived(self) -> dict[str, dict[str, Compared]]:
        """Encoder's name -> row id -> what shapes give."""
        options = self.request.benchmark.view.options
        return {name: self._of_encoder(backbone, options["blocks"]) for name, backbone in options["encoders"].items()}

    def _of_encoder(self, backbone: str, blocks: int) -> dict[str, Compared]:
        of_rows = [(row, self._of_row(row, backbone, blocks)[1]) for row in self.rows]
        return {row.id: self._compared(row, terms, None) for row, terms in of_rows if terms is not None}

    def _of_row(self, row: Row, backbone: str, blocks: int) -> tuple[RunConfig, SplitTerms | None]:
        """A row's cell at the paper's scale with an encoder, and its symbols."""
        request = self.request
        scales = tuple(
            replace(scale, backbone=backbone) if scale == request.paper_scale else scale
            for scale in request.benchmark.scales
        )
        other = replace(request, benchmark=replace(request.benchmark, scales=scales))
        cell = other.benchmark.cell(row, request.columns[0], other.paper_scale, 0)
        return cell, self._terms(cell, [blocks / cell.clients] * cell.clients, other)

    @cached_property
    def measured(self) -> dict[str, Compared]:
        """Row id -> what the records' ledgers have, of the first task; the mean over seeds, which are alike."""
        request, found = self.request, {}
        column = request.columns[0]
        for row in self.rows:
            records = request.records_of(row, column)
            cost = measured_cost(request.benchmark, column, records)
            terms = self._terms(records[0].cell, _blocks(records), request) if records else None
            if cost is not None and terms is not None:
                found[row.id] = self._compared(row, terms, cost)
        return found

    def _terms(self, cell: RunConfig, blocks: list[float], request: Request) -> SplitTerms | None:
        """The symbols of one cell; its model's sizes are those that FedAvg's round gives."""
        benchmark, scale = request.benchmark, request.benchmark.scale(cell.scale)
        baseline = benchmark.row(benchmark.view.options["baseline"])
        plan = request.derive(baseline, request.columns[0], scale) if request.derive else None
        if plan is None:
            return None
        training, sizes = cell.training, plan.sizes
        in_turn = "turns" in cell.options  # a round is then one client's
        crossing = mean(blocks) * training.max_length * sizes.width * FLOAT_BYTES
        epochs = training.rounds * training.local_epochs / (cell.clients if in_turn else 1)
        W, E, H = sizes.model_bytes, sizes.embeddings_bytes, sizes.head_bytes
        return SplitTerms(training.rounds, cell.clients, epochs, crossing, W, E, H)

    def _compared(self, row: Row, terms: SplitTerms, cost: Cost | None) -> Compared:
        form, epochs = self.request.benchmark.closed_forms[row.id], terms.N * terms.T
        closed, counted = (
            {kind: size / epochs for kind, size in parts.items() if size}
            for parts in (form.parts(terms), cost.kinds if cost else {})
        )
        return Compared(row, form, closed, counted, epochs, cost.seeds if cost else 0)

    @cached_property
    def modelled(self) -> dict[tuple[str, str], Mapping[str, float]]:
        """(encoder, bandwidth) -> WAYS -> modelled seconds of an epoch: every client's text once, in a deployment.

        Of a token each party's seconds are those measured; client and server compute as fast as that machine, every
        client has the bandwidth to itself, for one message after the other, and FedAvg exchanges models once in such an
        epoch. In parallel a client computes and sends for its own epoch, unless the one server, which has all clients'
        batches to compute, takes longer.
        """
        found: dict[tuple[str, str], Mapping[str, float]] = {}
        for name, backbone in self.request.benchmark.view.options["encoders"].items():
            own, bytes_of = self.timed.get(backbone), self._crossing.get(name)
            if own is None or bytes_of is None:
                continue
            tokens, crossing, clients, model_bytes = bytes_of
            client, server, whole = (own[of] * tokens / own["tokens"] for of in ("client", "server", "whole"))
            for label, bandwidth in BANDWIDTHS.items():
                alone = client + server + 4 * crossing / bandwidth
                times = (whole + 2 * model_bytes / bandwidth, clients * alone, max(alone, clients * server))
                found[name, label] = dict(zip(WAYS, times, strict=True))
        return found

    @cached_property
    def _crossing(self) -> dict[str, tuple[float, float, int, float]]:
        """Encoder's name -> tokens of a client's epoch, bytes that cross a cut in it one way, clients, |W|."""
        request, found = self.request, {}
        options = request.benchmark.view.options
        row = request.benchmark.row(options["baseline"])
        for name, backbone in options["encoders"].items():
            cell, terms = self._of_row(row, backbone, options["blocks"])
            if terms is not None:
                tokens = options["blocks"] / cell.clients * cell.training.max_length
                found[name] = tokens, terms.pL, cell.clients, terms.W
        return found

    @cached_property
    def timed(self) -> Mapping[str, Mapping[str, float]]:
        """Model -> seconds of a batch, a client's, the server's and the unsplit model's, and its tokens.

        Of one run of `make bench`.

        Empty where there is none; ReportError where the file is damaged.
        """
        costing = self.request.benchmark.costing
        path = costing.timed if costing else None
        return {} if path is None or not path.is_file() else _timed(path)


def _timed(path: Path) -> Mapping[str, Mapping[str, float]]:
    try:
        found = read_json(path)
        return {
            entry["model"]: {
                **{name: sum(float(entry[f"{part}_seconds"]) for part in own) for name, own in PARTS.items()},
                "tokens": float(entry["batch"]) * float(entry["tokens"]),
                "whole": float(entry["batch"]) * float(entry["tokens"]) / float(entry["unsplit_tokens_per_second"]),
            }
            for entry in found["rows"]
        }
    except (ValueError, KeyError, TypeError) as error:
        raise ReportError(
            f"{path}: expected a result of `make bench`, found a damaged one ({type(error).__name__}: {error}). "
            f"Restore the file, or measure again."
        ) from None


def _blocks(records: tuple[RunResult, ...]) -> list[float]:
    """Blocks that each client trains on; one partition for all seeds."""
    return [float(client["train"]) for client in records[0].clients]
