"""Two rows' records, paired by seed: by how much one is better, also in percent of the other, and several together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.results import RunResult
from reports.evidence.inference import average_together, is_flat, resampled, scaled
from reports.evidence.paired import Pairs, difference, gains, paired_error, resplit_ratio
from reports.evidence.scores import known, scores_of
from reports.evidence.statistics import Estimate, mean, sample_sd, welch_test
from reports.pages.text import number


def relative_difference(pairs: Pairs, score: str) -> Estimate:
    """By how much the first records of pairs are better, in percent of the second ones' mean, as if that was known."""
    found, values = difference(pairs, score), known(scores_of([its for _, its in pairs], score).at())
    level = abs(mean(values)) if values else 0.0
    return _scaled(found, 100 / level) if level else Estimate(None, None, found.n, found.note)


def unpaired_p(pairs: Pairs, score: str) -> Estimate:
    """Two-sided p of Welch's t test of both sides' scores over seeds, at the chosen round, as if nothing paired them.

    As papers do it: seeds are taken for independent draws. No value below two seeds, nor where no score varies.
    """
    own, its = (known(scores_of([pair[side] for pair in pairs], score).at()) for side in (0, 1))
    sds, n = [sample_sd(own), sample_sd(its)], [len(own), len(its)]
    spread = [sd for sd in sds if sd is not None]
    if len(spread) < 2 or not any(spread):
        return Estimate(None, None, min(n))
    t, freedom, p = welch_test(mean(own) - mean(its), spread, n)
    return Estimate(
        p, None, min(n), f"p = {number(p, places=4)}: Welch's t = {number(t)} with {number(freedom)} degrees of freedom"
    )


def _scaled(found: Estimate, by: float) -> Estimate:
    return replace(
        found,
        value=None if found.value is None else found.value * by,
        interval=None if found.interval is None else (found.interval[0] * by, found.interval[1] * by),
        components=None if found.components is None else scaled(found.components, by),
    )


def mean_difference(of_rows: Sequence[Pairs], score: str) -> Estimate | None:
    """By how much several rows are better than one rival on average, over the seeds that all of them have.

    Rows that share seeds and rival go together: redrawn splits are averaged seed by seed; where seeds share their test
    set, errors are added as if they went together wholly, which is wider. None without a seed.
    """
    shared = set.intersection(*({own.cell.seed for own, _ in pairs} for pairs in of_rows))
    if not shared:
        return None
    kept = [[pair for pair in pairs if pair[0].cell.seed in shared] for pairs in of_rows]
    if len(kept) == 1:
        return difference(kept[0], score)
    if ratio := resplit_ratio([own for pairs in kept for own, _ in pairs]):
        by_row = [gains(pairs, score) for pairs in kept]
        values = [None if None in row else mean(known(row)) for row in zip(*by_row, strict=True)]
        found = resampled(values, ratio)
        if not is_flat(found):
            return found
        floors = [paired_error(pairs, score) for pairs in kept]
        return resampled(values, ratio, floor=None if None in floors else mean(known(floors)))
    return average_together([difference(pairs, score) for pairs in kept])


def unpaired_error(records: Sequence[RunResult], score: str) -> float | None:
    """The sampling error of a difference to another score on the same test sets, as if that had other examples."""
    found = scores_of(records, score)
    return None if found.error is None or None in found.errors else found.error * 2**0.5
