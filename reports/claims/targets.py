"""Targets of claims, seed by seed, and what runs need to reach them: rounds, bytes, or missing points."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.claims import MAJORITY, At, Target
from benchmarks.measures import metric
from benchmarks.results import RunResult
from reports.claims.cells import Runs
from reports.claims.criterion import Evidence, median_evidence
from reports.claims.differences import unpaired_error
from reports.evidence.inference import resampled, with_sampling
from reports.evidence.paired import Pairs, resplit_ratio
from reports.evidence.records import PAPER
from reports.evidence.scores import best_by_seed, round_scores
from reports.evidence.statistics import Estimate, mean
from reports.evidence.targets import attempt
from reports.pages.text import number

NO_MAJORITY = "target not checked: the majority-class baseline was not run"
MEANS_NOTHING = "vacuous target: with another encoder all methods reach some level"


@dataclass(frozen=True)
class Goal:
    """A target. by_seed: as recorded; text: in words; reason: why nothing may be concluded from reaching it."""

    by_seed: Mapping[int, float]
    text: str
    reason: str = ""


def goal(runs: Runs, target: Target, task: str, score: str, seeds: Iterable[int]) -> Goal | None:
    """The paper's target at its scale; elsewhere, for each seed, the best that a baseline scores after any round.

    None if no seed has all baselines.
    """
    measured, sets_target = metric(score), runs.scale.id != PAPER or task not in target.percent
    by_seed, text = _levels(runs, target, task, score, tuple(seeds), sets_target)
    if not by_seed:
        return None
    if runs.scale.id != PAPER and target.only_printed:
        return Goal(by_seed, text, MEANS_NOTHING)
    majority = _majority(runs, target, task, score)
    known = {seed: value for seed, value in by_seed.items() if seed in majority}
    if not known:
        return Goal(by_seed, text, NO_MAJORITY)
    met = sum(own is not None and measured.reaches(own, known[seed]) for seed, own in majority.items() if seed in known)
    why = f"vacuous target: the majority-class baseline, which sends nothing, meets it in {met} of {len(known)} seeds"
    if not met and sets_target:  # a baseline that has learned nothing sets no target
        idle = [runs.failed(at, task) for at in target.baselines]
        return Goal(known, text, idle[0] if all(idle) else runs.untuned(target.baselines, task))
    return Goal(known, text, why if met else "")


def _levels(
    runs: Runs, target: Target, task: str, score: str, seeds: Sequence[int], sets_target: bool
) -> tuple[dict[int, float], str]:
    """Seed -> what is to be reached, as recorded, and the same in words. sets_target: whether baselines' runs do."""
    measured = metric(score)
    if not sets_target:
        wanted = target.percent[task]
        return dict.fromkeys(seeds, wanted / measured.factor), f"target {wanted:g}"
    best = [best_by_seed(runs.of(at, task), score) for at in target.baselines]
    values = {seed: measured.best(each[seed] for each in best) for seed in seeds if all(seed in each for each in best)}
    by_seed = {seed: value for seed, value in values.items() if value is not None}
    level = number(measured.shown(mean(list(by_seed.values())))) if by_seed else ""
    names = [runs.tables.row(at).name for at in target.baselines]
    return by_seed, f"target {level}, {names[0] if len(names) == 1 else 'the best baseline'}'s best round"


def _majority(runs: Runs, target: Target, task: str, score: str) -> dict[int, float | None]:
    """What the local majority scores, by seed; None if undefined, as a constant answer's correlation is."""
    table = runs.tables.benchmark(target.baselines[0])
    if MAJORITY not in {row.id for row in table.rows}:
        return {}
    records = runs.of(At(table.id, MAJORITY), task)
    return {record.cell.seed: metric(score).best(round_scores(record, score)) for record in records}


def fewer_rounds(pairs: Pairs, wanted: Goal, score: str) -> Evidence:
    """Rounds that the other needs to the target, minus those that the row needs."""
    bounds, is_late = [], False
    for own, its in _with_goal(pairs, wanted):
        (low, high), (least, most) = (_rounds(run, score, wanted) for run in (its, own))
        bounds.append((low - most, high - least))
        is_late = is_late or math.isinf(most)
    note = f"not within {len(pairs[0][0].rounds)} rounds; {wanted.text}" if is_late else wanted.text
    return median_evidence(bounds, _ratio(pairs), note)


def _rounds(record: RunResult, score: str, wanted: Goal) -> tuple[float, float]:
    """The least and the largest number of rounds until the target."""
    found = attempt(record, score, wanted.by_seed[record.cell.seed])
    return (found.rounds, found.rounds) if found.is_reached else (found.rounds + 1, math.inf)


def byte_ratio(pairs: Pairs, wanted: Goal, score: str, directions: Sequence[str]) -> Evidence:
    """The other's bytes until the target over the row's; a bound for runs that never reach it."""
    bounds: list[tuple[float, float]] = []
    when: dict[str, list[str]] = {"own": [], "other": []}
    for own, its in _with_goal(pairs, wanted):
        mine, theirs = (attempt(run, score, wanted.by_seed[run.cell.seed], directions) for run in (own, its))
        ratio = theirs.bytes / mine.bytes if mine.bytes else math.inf
        bounds.append((ratio if mine.is_reached else 0.0, ratio if theirs.is_reached else math.inf))
        when["own"].append(mine.when)
        when["other"].append(theirs.when)
    note = f"{_once(when['other'])} against {_once(when['own'])}; {wanted.text}"
    return median_evidence(bounds, _ratio(pairs), note)


def above(runs: Sequence[RunResult], limits: Sequence[int], wanted: Goal, score: str) -> Estimate:
    """By how much the best score within so many rounds of each run is better than the target, in its unit."""
    measured, values, when = metric(score), [], []
    for run, limit in zip(runs, limits, strict=True):
        target = wanted.by_seed[run.cell.seed]
        best = measured.best(round_scores(run, score)[:limit])
        values.append(None if best is None else measured.shown(measured.gain(best, target)))
        when.append(attempt(run, score, target).when)
    note, ratio = f"{_once(when)}; {wanted.text}", resplit_ratio(runs)
    if ratio:
        return resampled(values, ratio, note, floor=unpaired_error(runs, score))
    return with_sampling(resampled(values, 0.0, note, floor=0.0), unpaired_error(runs, score))


def _ratio(pairs: Pairs) -> float:
    return resplit_ratio([own for own, _ in pairs])


def _with_goal(pairs: Pairs, wanted: Goal) -> Pairs:
    return [(own, its) for own, its in pairs if own.cell.seed in wanted.by_seed]


def _once(texts: Iterable[str]) -> str:
    """Each text once."""
    return ", ".join(dict.fromkeys(texts))
