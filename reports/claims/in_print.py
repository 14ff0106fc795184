"""Relations on the numbers that papers print, or that follow from their text: exact decimals, no spread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from benchmarks.claims import (
    P_VALUE,
    At,
    AtMost,
    AverageBetter,
    Better,
    Cheaper,
    CostShare,
    NotTold,
    Printed,
    Reaches,
    Sends,
    Similar,
)
from benchmarks.measures import metric
from reports.claims.cells import Pair, Tables
from reports.evidence.published import AVERAGE, Numbers, Place
from reports.evidence.statistics import Estimate, exact
from reports.pages.text import number

FROM_PROSE = "derived from prose"


@dataclass(frozen=True)
class InPrint:
    """A Source of published numbers, by paper; curves have none."""

    tables: Tables
    published: Mapping[str, Numbers]

    def _numbers(self, at: At) -> Numbers:
        return self.published.get(self.tables.benchmark(at).paper.id, Numbers({}))

    def _place(self, at: At, column: str, score: str) -> Place:
        return self.tables.benchmark(at).place, at.printed or at.row, column, score

    def _at(self, at: At, column: str, score: str) -> Decimal | None:
        return self._numbers(at).values.get(self._place(at, column, score))

    def _cost(self, printed: Printed | None, at: At) -> Decimal | None:
        if printed is None:
            return None
        return self._numbers(at).values.get((printed.table, at.printed or at.row, printed.column, ""))

    def _marked(self, estimate: Estimate, rows: Sequence[At], column: str, score: str) -> Estimate:
        if not any(self._place(at, column, score) in self._numbers(at).derived for at in rows):
            return estimate
        return replace(estimate, note="; ".join(filter(None, (estimate.note, FROM_PROSE))))

    def difference(self, relation: Better | Similar, pair: Pair) -> Estimate | None:
        if isinstance(relation, Better) and relation.measure != "score":
            return None
        return self._difference(pair, relation.relative)

    def _difference(self, pair: Pair, relative: bool = False) -> Estimate | None:
        own, other = (self._at(at, pair.task, pair.score) for at in (pair.row, pair.other))
        if own is None or other is None:
            return None
        value = exact(float(metric(pair.score).sign * (100 * (own / other - 1) if relative else own - other)))
        return self._marked(value, (pair.row, pair.other), pair.task, pair.score)

    def leads(self, relation: Better | Similar, pair: Pair) -> Iterator[tuple[At, Estimate | None]]:
        """Not asked of print: a sentence agrees with its numbers or does not."""
        return iter(())

    def average_margin(self, relation: AverageBetter, rivals: Mapping[str, At]) -> Estimate | None:
        margins: dict[str, list[Decimal]] = {}
        for row in relation.rows:
            own, other = (self._at(at, AVERAGE, "") for at in (row, rivals[row.benchmark]))
            if own is None or other is None:
                return None
            table = self.tables.benchmark(row)
            margins.setdefault(table.place, []).append(metric(table.columns[0].averaged).sign * (own - other))
        means = {place: sum(found, Decimal(0)) / len(found) for place, found in margins.items()}
        parts = (f"{place} {number(float(margin), '+')}" for place, margin in means.items())
        return exact(float(sum(means.values()) / len(means)), note=", ".join(parts))

    def p_value(self, relation: NotTold, pair: Pair) -> Estimate | None:
        """As the paper prints it: it may be above any level, and shows no equality."""
        place = relation.printed, pair.row.printed or pair.row.row, pair.task, P_VALUE
        found = self._numbers(pair.row).values.get(place)
        return None if found is None else exact(float(found), note=f"printed {found}")

    def above_target(self, relation: Reaches, row: At, task: str) -> Estimate | None:
        """By the printed cost where bytes are limited, else by the published score; rounds are in curves only."""
        percent = Decimal(str(relation.target.percent[task]))
        if relation.within_rounds is not None:
            return None
        if relation.below_bytes is not None:
            cost = self._cost(relation.costs, row)
            if cost is None:
                return None
            limit = Decimal(str(relation.below_bytes)) / self.tables.benchmark(row).paper.gigabyte
            return exact(float(limit - cost), note=f"{cost} of {limit.normalize():f} GB")
        score = self._at(row, task, relation.target.score)
        if score is None:
            return None
        above = metric(relation.target.score).sign * (score - percent)
        value = exact(float(above), note=f"target {percent.normalize():f}")
        return self._marked(value, (row,), task, relation.target.score)

    def ratio(self, relation: Cheaper, pair: Pair) -> Estimate | None:
        if relation.whole_run:
            return self._ratio_by_equations(pair)
        own, other = (self._cost(relation.costs, at) for at in (pair.row, pair.other))
        return None if own is None or other is None else exact(float(other / own))

    def share(self, relation: CostShare, pair: Pair) -> Estimate | None:
        own, other = (self._cost(relation.costs, at) for at in (pair.row, pair.other))
        return None if own is None or other is None else exact(float(100 * own / other), note=f"{own} of {other}")

    def _ratio_by_equations(self, pair: Pair) -> Estimate | None:
        table, numbers = self.tables.benchmark(pair.row), self._numbers(pair.row)
        own, other = (table.closed_forms.get(at.row) for at in (pair.row, pair.other))
        if own is None or other is None or not numbers.has_terms(table.place):
            return None
        terms, gigabyte = numbers.terms(table.place), table.paper.gigabyte
        ratio = other.cost_gb(terms, gigabyte) / own.cost_gb(terms, gigabyte)
        return exact(ratio, note=f"equations {other.equation} and {own.equation} with the printed parameters")

    def gigabytes(self, relation: Sends, row: At, task: str) -> Estimate | None:
        size = self._cost(relation.sizes, row)
        return None if size is None else exact(float(relation.rounds * size), note=f"{relation.rounds} × {size} GB")

    def level(self, relation: AtMost, row: At, task: str) -> Estimate | None:
        score = self._at(row, task, relation.score)
        return None if score is None else self._marked(exact(float(score)), (row,), task, relation.score)

    def gap(self, pair: Pair) -> Estimate | None:
        scores = self.tables.pairs((pair.row,), (pair.other,), (pair.task,))
        found = [self._difference(score) for score in scores]
        values = [estimate for estimate in found if estimate is not None and estimate.value is not None]
        return max(values, key=lambda value: abs(value.value or 0.0)) if values and len(values) == len(found) else None
