"""Numbers that papers publish, or that follow from their text, as evidence: exact decimals without spread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from benchmarks.claims import P_VALUE, At, AtMost, AverageBetter, Better, CostBound, PublishedColumn, Reaches, Sends
from benchmarks.measures import metric
from reports.claims.cells import Pair, Tables
from reports.claims.criterion import Evidence, exact
from reports.evidence.published import Numbers
from reports.evidence.published_files import AVERAGE, PARAMETERS, Place
from reports.pages.text import number

FROM_PROSE = "derived from prose"


@dataclass(frozen=True)
class PublishedNumbers:
    """Published numbers, by paper. Every answer is None if the paper does not give the number."""

    tables: Tables
    numbers: Mapping[str, Numbers]

    def _numbers(self, at: At) -> Numbers:
        return self.numbers.get(self.tables.benchmark(at).paper.id, Numbers({}))

    def _place(self, at: At, column: str, score: str) -> Place:
        return self.tables.benchmark(at).place, at.published or at.row, column, score

    def _score(self, at: At, column: str, score: str) -> Decimal | None:
        return self._numbers(at).values.get(self._place(at, column, score))

    def _cost(self, place: PublishedColumn | None, at: At) -> Decimal | None:
        if place is None:
            return None
        return self._numbers(at).values.get((place.table, at.published or at.row, place.column, ""))

    def _marked(self, evidence: Evidence, rows: Sequence[At], column: str, score: str) -> Evidence:
        """With a note if a number was derived from the paper's prose."""
        if not any(self._place(at, column, score) in self._numbers(at).derived for at in rows):
            return evidence
        return replace(evidence, note="; ".join(filter(None, (evidence.note, FROM_PROSE))))

    def difference(self, pair: Pair, relation: Better) -> Evidence | None:
        """The row's advantage, or its p-value. Losses and rounds are in curves, which have no numbers."""
        if relation.p_values:
            return self._p_value(pair, relation.p_values)
        if relation.measure != "score":
            return None
        return self._difference(pair, relation.relative, relation.since or ())

    def _difference(self, pair: Pair, relative: bool = False, since: Sequence[At] = ()) -> Evidence | None:
        """The advantage, less that of an earlier pair if gains are compared."""
        rows = (pair.row, pair.other, *since)
        pairs = ((pair.row, since[0]), (pair.other, since[1])) if since else ((pair.row, pair.other),)
        gains = [self._gain(row, rival, pair, relative) for row, rival in pairs]
        if any(gain is None for gain in gains):
            return None
        first, *earlier = (gain for gain in gains if gain is not None)
        return self._marked(exact(first - sum(earlier)), rows, pair.task, pair.score)

    def _gain(self, row: At, rival: At, pair: Pair, relative: bool) -> Decimal | None:
        score, other = (self._score(at, pair.task, pair.score) for at in (row, rival))
        if score is None or other is None:
            return None
        return metric(pair.score).sign * (100 * (score / other - 1) if relative else score - other)

    def identities(self, pair: Pair) -> tuple[str, ...]:
        """No runs: a number that two tables publish is two numbers."""
        return ()

    def leads(self, pair: Pair, relative: bool) -> Iterator[tuple[At, Evidence | None]]:
        """Not asked of published numbers: a sentence agrees with them or does not."""
        return iter(())

    def average_margin(self, relation: AverageBetter, rivals: Mapping[str, At]) -> Evidence | None:
        margins: dict[str, list[Decimal]] = {}
        for row in relation.rows:
            average, other = (self._score(at, AVERAGE, "") for at in (row, rivals[row.benchmark]))
            if average is None or other is None:
                return None
            table = self.tables.benchmark(row)
            margins.setdefault(table.place, []).append(metric(table.columns[0].averaged).sign * (average - other))
        means = {place: sum(values, Decimal(0)) / len(values) for place, values in margins.items()}
        parts = (f"{place} {number(float(margin), '+')}" for place, margin in means.items())
        return exact(sum(means.values()) / len(means), ", ".join(parts))

    def _p_value(self, pair: Pair, table: str) -> Evidence | None:
        place = table, pair.row.published or pair.row.row, pair.task, P_VALUE
        p = self._numbers(pair.row).values.get(place)
        return None if p is None else exact(p, f"printed {p}")

    def above_target(self, relation: Reaches, row: At, task: str) -> Evidence | None:
        """By the published cost if bytes are limited, else by the published score. Rounds are in curves only."""
        percent = Decimal(str(relation.target.percent[task]))
        if relation.within_rounds is not None:
            return None
        if relation.below_bytes is not None:
            cost = self._cost(relation.costs, row)
            if cost is None:
                return None
            limit = Decimal(str(relation.below_bytes)) / self.tables.benchmark(row).paper.gigabyte
            return exact(limit - cost, f"{cost} of {limit.normalize():f} GB")
        score = self._score(row, task, relation.target.score)
        if score is None:
            return None
        above = metric(relation.target.score).sign * (score - percent)
        note = f"target {percent.normalize():f}"
        return self._marked(exact(above, note), (row,), task, relation.target.score)

    def cost(self, relation: CostBound, pair: Pair) -> Evidence | None:
        """Two costs compared; of whole runs by the paper's equations with its published parameters."""
        rows = pair.row, pair.other
        if relation.of == "run":
            return self._by_equations(relation, rows)
        row, other = (self._cost(relation.costs, at) for at in rows)
        if row is None or other is None:
            return None
        return exact(relation.compare(row, other), f"{row} of {other}" if relation.share else "")

    def _by_equations(self, relation: CostBound, rows: tuple[At, At]) -> Evidence | None:
        table, numbers = self.tables.benchmark(rows[0]), self._numbers(rows[0])
        row, other = (table.closed_forms.get(at.row) for at in rows)
        has_terms = any(place[:2] == (table.place, PARAMETERS) for place in numbers.values)
        if row is None or other is None or not has_terms:
            return None
        terms, gigabyte = numbers.terms(table.place), table.paper.gigabyte
        quotient = relation.compare(row.cost_gb(terms, gigabyte), other.cost_gb(terms, gigabyte))
        return exact(quotient, f"equations {other.equation} and {row.equation} with the printed parameters")

    def total(self, relation: Sends, row: At, task: str) -> Evidence | None:
        """GB in the given number of rounds."""
        size = self._cost(relation.sizes, row)
        return None if size is None else exact(relation.rounds * size, f"{relation.rounds} × {size} GB")

    def level(self, relation: AtMost, row: At, task: str) -> Evidence | None:
        score = self._score(row, task, relation.score)
        return None if score is None else self._marked(exact(score), (row,), task, relation.score)

    def gap(self, pair: Pair) -> Evidence | None:
        """The largest difference over all scores."""
        every = [self._difference(each) for each in self.tables.pairs((pair.row,), (pair.other,), (pair.task,))]
        published = [each for each in every if each is not None]
        is_whole = bool(published) and len(published) == len(every)
        return max(published, key=lambda each: abs(each.value or 0.0)) if is_whole else None
