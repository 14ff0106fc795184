"""How many seeds a comparison needs, from its spread over those that were run."""

from __future__ import annotations

from reports.evidence.inference import LEVEL, reach
from reports.evidence.statistics import Estimate

FEWEST_SEEDS = 3  # that show a spread: two say hardly anything of it
MOST_SEEDS = 100  # beyond which nobody is advised to go


def seeds_needed(found: Estimate, effect: float, level: float = LEVEL, most: int = MOST_SEEDS) -> int | None:
    """The fewest seeds whose one-sided bound reaches an effect, at this estimate's spread.

    With n seeds the bound lies t(1 - level; n - 1) sqrt(1/n + n_test/n_train) s from the value. None where no number
    up to `most` is enough, as redrawn splits overlap, or where fewer than FEWEST_SEEDS show the spread.
    """
    if not found.components or found.n < FEWEST_SEEDS:
        return None
    for n in range(2, most + 1):
        if reach([part.with_seeds(n, found.n) for part in found.components], level) <= abs(effect):
            return n
    return None
