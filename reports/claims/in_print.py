"""Relations on the numbers that the paper prints: exact decimals, no spread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from benchmarks.claims import At, AverageBetter, Cheaper, Printed, Reaches
from reports.audit.finding import Numbers
from reports.claims.estimate import Estimate, exact
from reports.claims.relations import Measure
from reports.claims.tables import Pair, Tables
from reports.layout import number
from reports.published import AVERAGE


@dataclass(frozen=True)
class InPrint:
    """A Source of printed numbers; curves have none."""

    tables: Tables
    numbers: Numbers

    def _at(self, at: At, column: str, score: str) -> Decimal | None:
        place = self.tables.benchmark(at).place
        return self.numbers.values.get((place, at.printed or at.row, column, score))

    def _gigabytes(self, printed: Printed | None, at: At) -> Decimal | None:
        if printed is None:
            return None
        return self.numbers.values.get((printed.table, at.printed or at.row, printed.column, ""))

    def difference(self, pair: Pair, measure: Measure, relative: bool) -> Estimate | None:
        """Of two printed scores; curves carry no numbers."""
        own, other = (self._at(at, pair.task, pair.score) for at in (pair.row, pair.other))
        if measure != "score" or own is None or other is None:
            return None
        return exact(float(100 * (own / other - 1) if relative else own - other))

    def average_margin(self, relation: AverageBetter) -> Estimate | None:
        """By the printed averages."""
        margins: dict[str, list[Decimal]] = {}
        for row in relation.rows:
            rivals = [at for at in relation.than if at.benchmark == row.benchmark]
            own, *others = (self._at(at, AVERAGE, "") for at in (row, *rivals))
            known = [other for other in others if other is not None]
            if own is None or len(known) < len(others):
                return None
            margins.setdefault(self.tables.benchmark(row).place, []).append(own - max(known))
        every = [margin for found in margins.values() for margin in found]
        parts = (f"{place} {number(float(_mean(found)), '+')}" for place, found in margins.items())
        return exact(float(_mean(every)), note=", ".join(parts))

    def above_target(self, relation: Reaches, row: At, task: str) -> Estimate | None:
        """By the printed cost where bytes are limited, else by the printed score; rounds are in curves only."""
        percent = Decimal(str(relation.target.percent[task]))
        if relation.within_rounds is not None:
            return None
        if relation.below_bytes is not None:
            cost = self._gigabytes(relation.costs, row)
            if cost is None:
                return None
            limit = Decimal(str(relation.below_bytes)) / self.tables.benchmark(row).paper.gigabyte
            return exact(float(limit - cost), note=f"{cost} of {limit.normalize():f} GB")
        score = self._at(row, task, relation.target.score)
        return None if score is None else exact(float(score - percent), note=f"target {percent.normalize():f}")

    def ratio(self, relation: Cheaper, pair: Pair) -> Estimate | None:
        """Of the printed gigabytes."""
        own, other = (self._gigabytes(relation.costs, at) for at in (pair.row, pair.other))
        return None if own is None or other is None else exact(float(other / own))

    def gap(self, pair: Pair) -> Estimate | None:
        """Over the scores that both tables print."""
        scores = self.tables.pairs((pair.row,), (pair.other,), (pair.task,))
        found = [self.difference(score, "score", False) for score in scores]
        values = [estimate.value for estimate in found if estimate is not None and estimate.value is not None]
        return exact(max(values, key=abs)) if values and len(values) == len(found) else None


def _mean(values: Sequence[Decimal]) -> Decimal:
    return sum(values, Decimal(0)) / len(values)
