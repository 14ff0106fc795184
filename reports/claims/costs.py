"""Costs of rows: bytes and FLOPs from the shapes of the paper's encoder, bytes of our runs, and times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.claims import At, CostBound, Sends
from benchmarks.costs.networks import TYPICAL
from benchmarks.dry_run import shapes
from benchmarks.run_config import JSON
from fedsim.files import read_json
from reports.claims.cells import Pair, Runs, Tables
from reports.claims.criterion import Evidence, derived
from reports.evidence.caching import once
from reports.evidence.equations import Costs
from reports.evidence.records import PAPER, Request, request_for
from reports.evidence.traffic import Cost, derived_cost, derived_turns
from reports.pages.text import number
from reports.views.sent import Sent

ONE_MACHINE = "times are not comparable: they are of another machine than the paper's"
COMPUTED = "times are not comparable: they are computed for networks and devices that the paper does not name"
SHARED_MACHINE = "times are not comparable: records are timed beside other work on their machines"

# A term of closed forms -> the value that a claim gives it, in words.
_TERMS: Mapping[str, Callable[[int], str]] = {
    "h": lambda values: f"a head of {values} values" if values else "without the head",
    "K": lambda clients: f"{clients} clients",
    "r": lambda rank: f"rank {rank}",
}


@dataclass(frozen=True)
class RowCosts:
    """Costs of rows at one scale. Every answer is None if nothing was run."""

    runs: Runs

    @property
    def tables(self) -> Tables:
        return self.runs.tables

    @property
    def is_paper(self) -> bool:
        """Whether the records are from the paper's scale, where its absolute numbers apply."""
        return self.runs.scale.id == PAPER

    def compared(self, relation: CostBound, pair: Pair) -> Evidence | None:
        """Two rows' costs compared."""
        rows, task = (pair.row, pair.other), pair.task
        if relation.of == "flops":
            flops = [self._flops(at, task) for at in rows]
            note = f"FLOPs computed from {self._shapes(pair.row)}"
            return None if None in flops else derived(relation.compare(*flops), 0, note)
        if relation.of == "form":
            return self._by_forms(relation, pair)
        if relation.of == "seconds":
            return self._seconds(relation, pair)
        if relation.of == "time":
            return self._computed(relation, pair)

        def compare(*costs: Cost) -> float:
            quotient: float = relation.compare(*(getattr(cost, f"{relation.of}_bytes") for cost in costs))
            return quotient

        return self._by_bytes(rows, task, compare, " %" if relation.share else " ×", relation.texts)

    def _by_forms(self, relation: CostBound, pair: Pair) -> Evidence | None:
        """Two rows by their closed forms, with the relation's terms in place of the encoder's and clients'."""
        request = self._request(pair.row, pair.task)
        sent = Sent(request) if request else None
        terms = sent.terms(request.scale) if sent and request else None
        if sent is None or terms is None:
            return None
        row, other = (sent.forms[at.row].both(replace(terms, **relation.terms)) for at in (pair.row, pair.other))
        told = (_TERMS[name](value) for name, value in relation.terms.items())
        return derived(relation.compare(row, other), 0, ", ".join(("closed forms", *told)))

    def _seconds(self, relation: CostBound, pair: Pair) -> Evidence | None:
        """Seconds of training: timed alternately with the paper's encoder, if available, and in our runs."""
        rows, task = (pair.row, pair.other), pair.task
        costs = [cost for at in rows if (cost := self.runs.cost(at, task)) is not None]
        times = [cost.train_seconds / cost.rounds for cost in costs if cost.train_seconds is not None]
        ours = relation.compare(*times) if len(times) == len(rows) else None
        n, name = min((cost.seeds for cost in costs), default=0), self.tables.task(pair.row, task)
        timed = self._timed(pair)
        if timed is None:
            return None if ours is None else Evidence(ours, None, n, reasons=((name, SHARED_MACHINE),))
        note = f"timed side by side on a CPU with {self._shapes(pair.row)}; {self._in_runs(ours, ' %')}"
        return Evidence(timed, None, n, note, reasons=((name, ONE_MACHINE),))

    def _timed(self, pair: Pair) -> float | None:
        """The row's seconds in percent of its table's baseline, from the run that timed both, if any."""
        table = self.tables.benchmark(pair.row)
        if table.costing is None or table.costing.baseline != pair.other.row:
            return None
        return percents(read_json(table.costing.timed)).get(pair.row.row)

    def _computed(self, relation: CostBound, pair: Pair) -> Evidence | None:
        """Both rows' runs with the paper's encoder on typical networks: the largest quotient, all of them in a note."""
        turns = []
        for at in (pair.row, pair.other):
            request = self._request(at, pair.task)
            run_turns = derived_turns(request, request.rows[0], relation.texts) if request else None
            if run_turns is None:
                return None
            turns.append(run_turns)
        cases = [(relation.compare(*map(at.run_seconds, turns)), at.label) for at in TYPICAL.values()]
        note = "; ".join(f"{label}: {number(quotient)}" for quotient, label in sorted(cases, reverse=True))
        return Evidence(max(cases)[0], None, 0, note, reasons=((self.tables.task(pair.row, pair.task), COMPUTED),))

    def total(self, relation: Sends, row: At, task: str) -> Evidence | None:
        """GB in the given number of rounds. Only the paper's encoder decides about absolute bytes."""
        if not self.is_paper and self._derived(row, task) is None:
            return None
        gigabyte = self.tables.benchmark(row).paper.gigabyte
        return self._by_bytes((row,), task, lambda cost: relation.rounds * cost.round_bytes / gigabyte, " GB")

    def _by_bytes(
        self, rows: Sequence[At], task: str, compare: Callable[..., float], unit: str, texts: int | None = None
    ) -> Evidence | None:
        """By the paper's own encoder: measured at its scale, else by its shapes, with our runs' value as a note."""
        costs = [cost for at in rows if (cost := self.runs.cost(*self.tables.costed(at, task))) is not None]
        is_run = len(costs) == len(rows)
        measured, n = (compare(*costs), min(cost.seeds for cost in costs)) if is_run else (None, 0)
        shapes = [cost for at in rows if (cost := self._derived(at, task, texts)) is not None]
        has_paper_runs = self.is_paper and not any(self.tables.benchmark(at).stage for at in rows)
        if len(shapes) < len(rows) or (measured is not None and has_paper_runs):
            return None if measured is None else derived(measured, n)
        note = f"computed from {self._shapes(rows[0])}; {self._in_runs(measured, unit)}"
        return derived(compare(*shapes), n, note)

    def _in_runs(self, measured: float | None, unit: str) -> str:
        """The value in our runs as text, which differs at another scale."""
        if measured is None:
            return "not measured"
        return f"{number(measured)}{unit} measured in our runs{'' if self.is_paper else ' with a small encoder'}"

    def _flops(self, at: At, task: str) -> float | None:
        """Of one client's training on a text, with the paper's own encoder; of central training the server's."""
        request = self._request(at, task)
        if request is None:
            return None
        table = request.benchmark
        work = shapes.derive_work(table.cell(request.rows[0], table.columns[0], request.scale, 0))
        return None if work is None else work.client or work.server

    def _shapes(self, at: At) -> str:
        return f"{self.tables.benchmark(at).scale(PAPER).backbone}'s tensor shapes"

    def _request(self, at: At, task: str) -> Request | None:
        """A request for the run that determines a row's cost at the paper's scale: its own, or an earlier one.

        The earlier one is taken with the row's encoder. The request has only that row and task.
        """
        benchmark = self.tables.benchmark(at)
        if self.tables.column(at, task) is None or PAPER not in {scale.id for scale in benchmark.scales}:
            return None
        costed, costed_task = self.tables.costed(at, task)
        column = self.tables.column(costed, costed_task)
        if column is None:
            return None
        table = replace(self.tables.benchmark(costed), columns=(column,))
        scale = replace(
            table.scale(PAPER), backbone=benchmark.scale(PAPER).backbone, depth=benchmark.scale(PAPER).depth
        )
        table = replace(table, scales=tuple(scale if each.id == PAPER else each for each in table.scales))
        return request_for(table, scale, (), [self.tables.row(costed)])

    @once
    def _derived(self, at: At, task: str, texts: int | None = None) -> Cost | None:
        """The bytes of the paper's encoder, for the number of texts in its equation, if it has one."""
        request = self._request(at, task)
        if request is None:
            return None
        row = request.rows[0]
        if texts is None and row.id in request.benchmark.closed_forms:
            return Costs(request).derived_run(row)
        return derived_cost(request, row, texts)


def percents(timings: JSON) -> dict[str, float]:
    """Row id -> its seconds in percent of the baseline's, in a result of `make bench`."""
    return {entry["row"]: float(entry["percent"]) for entry in timings["rows"] if entry["row"]}
