"""The records behind a claim's rows, paired by seed, and what a run needed to reach a score."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from benchmarks.claims import At
from benchmarks.record import RunRecord
from benchmarks.spec import Scale
from reports.claims.tables import Tables
from reports.selection import by_definition, digests, is_partial, select
from reports.targets import round_scores


@dataclass(frozen=True)
class Runs:
    """Records of one scale, found by row and task."""

    tables: Tables
    scale: Scale
    records: tuple[RunRecord, ...]

    @cached_property
    def _index(self) -> dict[str, list[RunRecord]]:
        return by_definition(record for record in self.records if record.cell.scale == self.scale.id)

    @cached_property
    def _seeds(self) -> set[int]:
        return {record.cell.seed for found in self._index.values() for record in found}

    @cached_property
    def _found(self) -> dict[tuple[At, str], tuple[RunRecord, ...]]:
        return {}

    def partial(self, tasks: Iterable[str]) -> list[str]:
        """The names of those tasks whose data were partial in some record."""
        found = {record.cell.task for records in self._index.values() for record in records if is_partial(record)}
        return [self.tables.task_name(task) for task in dict.fromkeys(tasks) if task in found]

    def of(self, at: At, task: str) -> tuple[RunRecord, ...]:
        """The records of a row on a task, one a seed in the order of seeds."""
        if (at, task) not in self._found:
            benchmark, column = self.tables.benchmark(at), self.tables.column(at, task)
            scale = {scale.id: scale for scale in benchmark.scales}.get(self.scale.id)
            found: tuple[RunRecord, ...] = ()
            if column is not None and scale is not None:
                found = select(benchmark, scale, self.tables.row(at), column, self._index, self._seeds).records
            self._found[at, task] = found
        return self._found[at, task]

    def paired(self, row: At, other: At, task: str) -> list[tuple[RunRecord, RunRecord]]:
        """The records of two rows with the same seed, data and weights."""
        others = {record.cell.seed: record for record in self.of(other, task)}
        pairs = ((own, others[own.cell.seed]) for own in self.of(row, task) if own.cell.seed in others)
        return [(own, its) for own, its in pairs if digests(own) == digests(its)]


def last_score(record: RunRecord, score: str) -> float | None:
    """A score after the last round."""
    return round_scores(record, score)[-1]


def sampling_error(record: RunRecord, score: str) -> float | None:
    """Sampling error of the last round's score, from the finite test sets; None where it is unknown."""
    evaluation, metric = score.split("/")
    return record.sampling_errors.get(evaluation, {}).get(metric)


def reached(record: RunRecord, rounds: int | None) -> str:
    """When a run reached a target, in words; one that did not is censored, not dropped."""
    return f"not within {len(record.rounds)} rounds" if rounds is None else f"round {rounds}"


def in_words(texts: Iterable[str]) -> str:
    """What seeds say, each statement once."""
    return ", ".join(dict.fromkeys(texts))
