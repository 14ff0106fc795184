"""Estimates over seeds for claims: relative and average differences, and the cost of reaching targets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.claims import MAJORITY, At, AverageBetter, Target
from benchmarks.measures import metric
from benchmarks.results import RunResult
from reports.claims.cells import Runs
from reports.claims.criterion import Evidence, evidence, median_evidence
from reports.claims.hypothesis import is_majority
from reports.evidence.inference import average_of, average_together, is_flat, on_test_sets, resampled, scaled
from reports.evidence.paired import Pairs, difference, gains, paired_error, resplit_ratio, rule_for, unpaired_error
from reports.evidence.records import PAPER
from reports.evidence.scores import best_by_seed, defined, round_scores, scores_of
from reports.evidence.statistics import Estimate, mean, sample_sd, welch_test
from reports.evidence.targets import attempt
from reports.pages.text import number

NO_MAJORITY = "target not checked: the per-client majority class was not run"
PAPERS_TARGET = "the paper's target is vacuous"
MEANS_NOTHING = "no target at this scale: the published level has no meaning for another encoder"

# ---- differences -------------------------------------------------------------------------------------------------


def relative_difference(pairs: Pairs, score: str, at: str) -> Estimate:
    """The mean advantage of each pair's first record, in percent of the second ones' mean, which is taken as exact."""
    others = scores_of([second for _, second in pairs], score)
    estimate, values = difference(pairs, score, at), defined(others.at(rule_for(at, pairs)))
    level = abs(mean(values)) if values else 0.0
    if not level:
        return Estimate(None, None, estimate.n, estimate.note)
    by = 100 / level
    return replace(
        estimate,
        value=None if estimate.value is None else estimate.value * by,
        interval=None if estimate.interval is None else (estimate.interval[0] * by, estimate.interval[1] * by),
        components=None if estimate.components is None else scaled(estimate.components, by),
    )


def difference_of_gains(pairs: Pairs, before: Pairs, score: str, at: str, relative: bool) -> Estimate | None:
    """The difference between two sides' gains over other records, such as those before training.

    Args:
        pairs: One pair per seed.
        before: The others, on the same held-out data as the same side of `pairs`.
        score: The score.
        at: The round that counts.
        relative: Whether gains are in percent of the others' scores.

    Returns:
        The mean over the seeds of both, in percentage points or in the score's unit; None without a shared seed.
    """
    start, measured = {pair[0].cell.seed: pair for pair in before}, metric(score)
    values, rule = [], rule_for(at, [*pairs, *before])
    for pair in pairs:
        if (first := start.get(pair[0].cell.seed)) is None:
            continue
        scores = [[scores_of([record], score).at(rule)[0] for record in side] for side in zip(pair, first, strict=True)]
        both = [
            (after, other)
            for after, other in scores
            if after is not None and other is not None and (other != 0 or not relative)
        ]
        gain = [measured.sign * (100 * (after / other - 1) if relative else after - other) for after, other in both]
        values.append(gain[0] - gain[1] if len(gain) == len(scores) else None)
    return resampled(values, resplit_ratio([first for first, _ in pairs])) if values else None


def unpaired_p(pairs: Pairs, score: str) -> str:
    """Welch's t test of both sides' scores in the chosen round, with seeds as independent draws, as in papers.

    "" below two seeds, or if no score varies.
    """
    first, second = (defined(scores_of([pair[side] for pair in pairs], score).at()) for side in (0, 1))
    sds, n = [sample_sd(first), sample_sd(second)], [len(first), len(second)]
    spread = [sd for sd in sds if sd is not None]
    if len(spread) < 2 or not any(spread):
        return ""
    t, freedom, p = welch_test(mean(first) - mean(second), spread, n)
    return f"p = {number(p, places=4)}: Welch's t = {number(t)} with {number(freedom)} degrees of freedom"


def mean_difference(of_rows: Sequence[Pairs], score: str, at: str) -> Estimate | None:
    """The average advantage of several rows over one rival, over the seeds that all of them have.

    Redrawn splits are averaged seed by seed. If seeds share their test set, errors are added as if fully correlated,
    which is wider. None without a shared seed.
    """
    shared = set.intersection(*({first.cell.seed for first, _ in pairs} for pairs in of_rows))
    if not shared:
        return None
    kept = [[pair for pair in pairs if pair[0].cell.seed in shared] for pairs in of_rows]
    if len(kept) == 1:
        return difference(kept[0], score, at)
    if ratio := resplit_ratio([first for pairs in kept for first, _ in pairs]):
        by_row = [gains(pairs, score, at) for pairs in kept]
        values = [None if None in row else mean(defined(row)) for row in zip(*by_row, strict=True)]
        estimate = resampled(values, ratio)
        if not is_flat(estimate):
            return estimate
        floors = [paired_error(pairs, score, at) for pairs in kept]
        return resampled(values, ratio, floor=None if None in floors else mean(defined(floors)))
    return average_together([difference(pairs, score, at) for pairs in kept])


def average_margin(runs: Runs, relation: AverageBetter, rivals: Mapping[str, At]) -> Evidence | None:
    """The average advantage over one rival per table: mean over the table's rows, then over the tables.

    Columns that cannot be judged are left out. There is no interval unless every other task of the tables was run, and
    nothing is concluded unless all of them are evidence. Tables share data seed by seed: their errors are taken as
    fully correlated. rivals: benchmark id -> one of the relation's choices.
    """
    averages, texts, closed, is_complete = [], [], {}, True
    for name, rival in rivals.items():
        rows = tuple(row for row in relation.rows if row.benchmark == name)
        every = runs.tables.tasks(rows[0], relation.tasks)
        judged = tuple(task for task in every if not runs.gate(rows[0], task).is_settled)
        counted = judged if is_majority(judged, every) else every
        gains_by_task = {
            task: gain for task in counted if (gain := _gain(runs, rows, rival, task, relation.scores)) is not None
        }
        is_complete = is_complete and len(gains_by_task) == len(counted)
        if gains_by_task:
            averages.append(average_of(tuple(gains_by_task.values())))
            texts.append(_part(runs, rows[0], every, counted, gains_by_task))
        for task in (*(task for task in counted if runs.gate(rows[0], task).is_settled), *gains_by_task):
            failed = "" if relation.over_failed else runs.failed(rival, task)
            if why := runs.gate(rows[0], task).why or failed or runs.untuned((*rows, rival), task):
                closed[runs.tables.task(rows[0], task)] = why
    reasons = tuple(closed.items())
    if not averages:
        return evidence(None, reasons=reasons) if closed else None
    is_whole = len(averages) == 1 and is_complete and len(judged) == len(every)  # its part is the average itself
    whole = average_together(averages, "" if is_whole else ", ".join(texts))
    if is_complete or closed:
        return evidence(whole, reasons=reasons)
    return evidence(whole, interval=None, components=None)


def _gain(runs: Runs, rows: Sequence[At], rival: At, task: str, scores: Sequence[str]) -> Estimate | None:
    """The rows' mean gain on a task, paired by seed; None unless all of them ran."""
    column = runs.tables.column(rows[0], task)
    if column is None or runs.tables.column(rival, task) is None:
        return None
    pairs = [runs.paired(row, rival, task) for row in rows]
    score = next((score for score in scores if score in column.scores), column.averaged)
    return mean_difference(pairs, score, runs.score_at) if all(pairs) else None


def _part(
    runs: Runs, row: At, every: Sequence[str], counted: Sequence[str], gains_by_task: Mapping[str, Estimate]
) -> str:
    """A table's part of the sum as text, with its tasks."""
    place, value = runs.tables.benchmark(row).place, mean([gain.value or 0.0 for gain in gains_by_task.values()])
    left_out = ", ".join(runs.tables.task(row, task) for task in every if task not in counted)
    part = f" without {left_out}" if left_out else ""
    if len(gains_by_task) < len(counted):
        part = f" on {len(gains_by_task)} of {len(every)} tasks"
    return f"{place} {number(value, '+')}{part}"


# ---- targets -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Goal:
    """A target.

    Args:
        by_seed: Seed -> the target as recorded.
        text: The target as shown.
        reason: Why reaching it is no evidence.
    """

    by_seed: Mapping[int, float]
    text: str
    reason: str = ""


def vacuous(runs: Runs, target: Target, task: str, score: str) -> str:
    """Why the paper's target shows nothing: the per-client majority class reaches it; "" if it does not.

    It has no encoder, so it is the same at every scale that has the paper's clients.
    """
    levels = defined(tuple(_majority(runs, target, task, score).values()))
    wanted, measured = target.percent.get(task), metric(score)
    if wanted is None or not levels or not all(measured.reaches(level, wanted / measured.factor) for level in levels):
        return ""
    level = number(measured.shown(mean(levels)))
    return f"{PAPERS_TARGET}: the per-client majority class scores {level}, the target is {wanted:g}, n = {len(levels)}"


def goal(runs: Runs, target: Target, task: str, score: str, seeds: Iterable[int]) -> Goal | None:
    """The paper's target at its scale; elsewhere, for each seed, the best score of a baseline after any round.

    None if no seed has all baselines.
    """
    measured, sets_target = metric(score), runs.scale.id != PAPER or task not in target.percent
    by_seed, text = _levels(runs, target, task, score, tuple(seeds), sets_target)
    if not by_seed:
        return None
    if runs.scale.id != PAPER and target.only_published:
        return Goal(by_seed, text, MEANS_NOTHING)
    majority = _majority(runs, target, task, score)
    with_majority = {seed: value for seed, value in by_seed.items() if seed in majority}
    if not with_majority:
        return Goal(by_seed, text, NO_MAJORITY)
    met = sum(
        level is not None and measured.reaches(level, by_seed[seed])
        for seed, level in majority.items()
        if seed in with_majority
    )
    in_seeds = f"{met} of {len(with_majority)} seeds"
    why = f"vacuous target: the per-client majority class, which sends nothing, meets it in {in_seeds}"
    if not met and sets_target:  # a baseline that has learned nothing sets no target
        idle = [runs.failed(at, task) for at in target.baselines]
        return Goal(with_majority, text, idle[0] if all(idle) else runs.untuned(target.baselines, task))
    return Goal(with_majority, text, why if met else "")


def _levels(
    runs: Runs, target: Target, task: str, score: str, seeds: Sequence[int], sets_target: bool
) -> tuple[dict[int, float], str]:
    """Seed -> the target, as recorded, and the same as text. sets_target: whether baselines' runs set it."""
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
    """The per-client majority class's scores by seed; None if undefined, such as its correlation."""
    table = runs.tables.benchmark(target.baselines[0])
    if MAJORITY not in {row.id for row in table.rows}:
        return {}
    records = runs.of(At(table.id, MAJORITY), task)
    return {record.cell.seed: metric(score).best(round_scores(record, score)) for record in records}


def fewer_rounds(pairs: Pairs, wanted: Goal, score: str) -> Evidence:
    """The other's rounds until the target, minus the row's."""
    bounds, is_late = [], False
    for first, second in _with_goal(pairs, wanted):
        (low, high), (least, most) = (_rounds(run, score, wanted) for run in (second, first))
        bounds.append((low - most, high - least))
        is_late = is_late or math.isinf(most)
    note = f"not within {len(pairs[0][0].rounds)} rounds; {wanted.text}" if is_late else wanted.text
    return median_evidence(bounds, _ratio(pairs), note)


def _rounds(record: RunResult, score: str, wanted: Goal) -> tuple[float, float]:
    """The least and the largest number of rounds until the target."""
    run = attempt(record, score, wanted.by_seed[record.cell.seed])
    return (run.rounds, run.rounds) if run.is_reached else (run.rounds + 1, math.inf)


def byte_ratio(pairs: Pairs, wanted: Goal, score: str, directions: Sequence[str]) -> Evidence:
    """The other's bytes until the target over the row's; a bound for runs that never reach it."""
    bounds: list[tuple[float, float]] = []
    when: dict[str, list[str]] = {"row": [], "other": []}
    for first, second in _with_goal(pairs, wanted):
        mine, theirs = (attempt(run, score, wanted.by_seed[run.cell.seed], directions) for run in (first, second))
        ratio = theirs.bytes / mine.bytes if mine.bytes else math.inf
        bounds.append((ratio if mine.is_reached else 0.0, ratio if theirs.is_reached else math.inf))
        when["row"].append(mine.when)
        when["other"].append(theirs.when)
    note = f"{_once(when['other'])} against {_once(when['row'])}; {wanted.text}"
    return median_evidence(bounds, _ratio(pairs), note)


def above(runs: Sequence[RunResult], limits: Sequence[int], wanted: Goal, score: str) -> Estimate:
    """The best score within the given rounds of each run, minus the target, in its unit; positive is better."""
    measured, values, when = metric(score), [], []
    for run, limit in zip(runs, limits, strict=True):
        target = wanted.by_seed[run.cell.seed]
        best = measured.best(round_scores(run, score)[:limit])
        values.append(None if best is None else measured.shown(measured.gain(best, target)))
        when.append(attempt(run, score, target).when)
    scores = scores_of(runs, score)  # the target is a score on the same test sets
    error = unpaired_error(scores, scores)
    return on_test_sets(values, resplit_ratio(runs), error, f"{_once(when)}; {wanted.text}")


def _ratio(pairs: Pairs) -> float:
    return resplit_ratio([first for first, _ in pairs])


def _with_goal(pairs: Pairs, wanted: Goal) -> Pairs:
    return [(first, second) for first, second in pairs if first.cell.seed in wanted.by_seed]


def _once(texts: Iterable[str]) -> str:
    """Each text once."""
    return ", ".join(dict.fromkeys(texts))
