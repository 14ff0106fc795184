"""How often the rules of `reports/evidence/inference.py` are wrong where the truth is known, and how often they decide.

Methods are trained and scored as in a miniature federation: linear classifiers (nearest centroid) learn from 80 % of a
finite pool of noisy examples and are scored on the rest, so seeds share overlapping splits of one pool, as real ones
do. The truth is over all pools: the mean over every replicate. Whole claims are simulated in
tests/reports/claims/test_simulated.py.

`python tools/simulate.py` runs many replicates (a quarter of an hour), writes docs/statistics.json and puts its table
into docs/statistics.md.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reports.evidence.inference import average_of, median_bounds, moved, resampled, similar, with_sampling  # noqa: E402
from reports.evidence.resampling import Answered, accuracy, hierarchical  # noqa: E402
from reports.evidence.statistics import Estimate  # noqa: E402
from reports.front.readme import update_readme  # noqa: E402

SEEDS = range(2, 11)
RATIO = 0.25  # n_test / n_train of an 80/20 split of a whole pool
DIMENSIONS, SIGNAL = 10, 0.9  # of an example: accuracies of 75 to 82 %
EFFECT = 3.0  # points beyond the criterion, where power is reported
CHUNK = 250  # replicates at once: 10 MB an array
Shares = tuple[float, float]  # of wrong verdicts, and of right ones


@dataclass(frozen=True)
class World:
    """Where two methods are compared.

    Args:
        pool: Examples.
        apart: Noise of each feature that only the second method sees.
        training: What else than the data, such as initial weights, changes what is learned.
        used: Examples of the pool that each seed draws anew; 0 for all. 20 % of them are its test set.
    """

    name: str
    pool: int
    apart: float
    training: float = 0.0
    dimensions: int = DIMENSIONS
    used: int = 0

    @property
    def test(self) -> int:
        return (self.used or self.pool) // 5

    @property
    def ratio(self) -> float:
        """n_test / n_train: all examples that are not tested on count as trained on."""
        return self.test / (self.pool - self.test)


WORLDS = (
    World("answers nearly alike", 2000, 0.05),
    World("2 000 examples", 2000, 0.5, 0.05),
    World("500 examples", 500, 0.3),
    World("500, seeds that train unlike", 500, 0.5, 0.12),
    World("250 examples, 50 features", 250, 0.5, 0.0, 50),
    World("500 of 5 000 drawn anew", 5000, 0.3, used=500),
)
# (test examples, `World.training`) of sets that all seeds share: seeds differ by less than the set errs, or by more
CENTRAL = ((400, 0.12), (872, 0.3), (3000, 0.3))


@dataclass(frozen=True)
class Drawn:
    """Differences of two methods in points [R, n], and the unpaired sampling error of each."""

    differences: np.ndarray
    errors: np.ndarray
    ratio: float = RATIO

    @property
    def truth(self) -> float:
        return float(self.differences.mean())

    @property
    def sd(self) -> float:
        """Between seeds of one pool."""
        return float(np.sqrt(self.differences.var(axis=1, ddof=1).mean()))


def _examples(world: World, shape: tuple[int, int], rng: np.random.Generator) -> tuple[Any, list[Any]]:
    """Labels ± 1 [R, N], and the features [R, N, D] that each method sees."""
    labels = (2 * rng.integers(0, 2, shape) - 1).astype(np.float32)
    seen = rng.standard_normal((*shape, world.dimensions), dtype=np.float32)
    seen[..., 0] += SIGNAL * labels
    return labels, [seen, seen + world.apart * rng.standard_normal(seen.shape, np.float32)]


def redrawn(world: World, replicates: int, seeds: int = max(SEEDS), seed: int = 0) -> Drawn:
    """Every seed splits its replicate's pool anew; both methods learn from one part and answer the other."""
    rng, parts, test = np.random.default_rng(seed), [], world.test
    for start in range(0, replicates, CHUNK):
        shape = min(CHUNK, replicates - start), world.pool
        labels, seen = _examples(world, shape, rng)
        for _ in range(seeds):
            order = rng.random(shape, np.float32)
            held = np.argpartition(order, test, axis=1)[:, :test]
            given = labels.copy()
            np.put_along_axis(given, held, 0, axis=1)
            if world.used:
                left_out = np.argpartition(order, world.used, axis=1)[:, world.used :]
                np.put_along_axis(given, left_out, 0, axis=1)
            share = np.stack([_hits(world, features, given, labels, held, rng) for features in seen]).mean(axis=2)
            errors = np.sqrt((share * (1 - share) / test).sum(axis=0))
            parts.append(100 * np.stack([share[0] - share[1], errors]))
    by_seed = [np.concatenate(parts[number::seeds], axis=1) for number in range(seeds)]  # [2, R] each
    return Drawn(*np.stack(by_seed).transpose(1, 2, 0), world.ratio)


def _hits(world: World, features: Any, given: Any, labels: Any, held: Any, rng: np.random.Generator) -> np.ndarray:
    """Learn from the examples with a label that is not 0, and say which of the others are answered correctly."""
    learned = (features.transpose(0, 2, 1) @ given[..., None])[..., 0] / np.count_nonzero(given, axis=1)[:, None]
    learned += world.training * rng.standard_normal(learned.shape)
    right = (features @ learned[..., None].astype(np.float32))[..., 0] * labels > 0
    return np.take_along_axis(right, held, axis=1)


def central(
    replicates: int, test: int, training: float, apart: float = 0.5, seeds: int = max(SEEDS)
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """One test set for all seeds, which train on the same data: hits [n, test] of both, and the truth of these data."""
    rng, world = np.random.default_rng(1), World("", 400, apart, training)
    for _ in range(replicates):
        labels, seen = _examples(world, (1, world.pool), rng)
        held, tested = _examples(world, (1, test), rng)
        hits, truths = [], []
        for number, (features, asked) in enumerate(zip(seen, tested, strict=True)):
            learned = np.einsum("n,nd->d", labels[0], features[0]) / world.pool
            every = learned + training * rng.standard_normal((seeds + 400, DIMENSIONS))
            hits.append((asked[0] @ every[:seeds].T * held[0][:, None] > 0).T)
            noise = math.hypot(1, apart if number else 0)
            truths.append(ndtr(SIGNAL * every[:, 0] / (noise * np.linalg.norm(every, axis=1))).mean())
        yield hits[0], hits[1], 100 * float(truths[0] - truths[1])


def byte_ratios(replicates: int, rounds: int = 12, seeds: int = max(SEEDS), seed: int = 0) -> np.ndarray:
    """A rival's bytes to its best score over a method's bytes to the same score, [R, n]; 0 if it never gets there.

    Curves saturate at a pace that varies with pool and seed, scored with noise. A fifth of the variance is the pool's,
    as the test sets overlap. The method sends half as much a round and learns a little faster.
    """
    rng, shape = np.random.default_rng(seed), (replicates, seeds, 2, rounds)
    pool, split = rng.standard_normal((replicates, 1, 2, 1)), rng.standard_normal((replicates, seeds, 2, 1))
    pace = np.array([2.5, 3.5])[:, None] * np.exp(0.4 * (math.sqrt(0.2) * pool + math.sqrt(0.8) * split))
    curve = 80 * (1 - np.exp(-np.arange(1, rounds + 1) / pace)) + rng.standard_normal(shape)
    mine, theirs = curve[:, :, 0], curve[:, :, 1]
    target, spent = theirs.max(axis=2), theirs.argmax(axis=2) + 1
    reached = mine >= target[..., None]
    return np.where(reached.any(axis=2), 2 * spent / (reached.argmax(axis=2) + 1), 0.0)


# ---- verdicts ----------------------------------------------------------------------------------------------------


def of_differences(drawn: Drawn, n: int) -> list[Estimate]:
    """The rule for redrawn splits, for each replicate; shifted so that the truth is 0."""
    values, floors = drawn.differences[:, :n] - drawn.truth, np.sqrt((drawn.errors[:, :n] ** 2).mean(axis=1))
    rows = zip(values.tolist(), floors.tolist(), strict=True)
    return [resampled(row, drawn.ratio, floor=floor) for row, floor in rows]


def _share(estimates: Sequence[Estimate], met: Callable[[float, float], bool]) -> float:
    return float(np.mean([one.interval is not None and met(*one.interval) for one in estimates]))


def at_bound(estimates: Sequence[Estimate], effect: float = EFFECT) -> Shares:
    """Wrong verdicts, the worse side, where the truth is the bound itself; and right ones where it is beyond it."""
    wrong = max(_share(estimates, lambda low, high: low > 0), _share(estimates, lambda low, high: high < 0))
    return wrong, _share(estimates, lambda low, high: low > -effect)


def at_margin(estimates: Sequence[Estimate], margin: float = 1.0) -> Shares:
    """Wrong verdicts of "similar" where the truth is the margin, on its wrong or right side; and right ones at 0."""
    beyond = [similar(moved(one, side * margin), margin) for one in estimates for side in (-1, 1)]
    wrong = max(np.mean([answer is True for answer in beyond]), np.mean([answer is False for answer in beyond]))
    narrow = np.mean([similar(one, 0.01) is False for one in estimates])  # hardly a margin: two ways of being wrong
    return float(max(wrong, narrow)), float(np.mean([similar(one, margin) is True for one in estimates]))


def looked_at_each(drawn: Drawn, seeds: Sequence[int]) -> list[float]:
    """Wrong verdicts, as in `at_bound`, if one checks after each of these numbers of seeds and stops at a verdict."""
    intervals = [[one.interval or (-math.inf, math.inf) for one in of_differences(drawn, n)] for n in seeds]
    verdicts = np.array([[(low > 0) - (high < 0) for low, high in at] for at in intervals])  # 1, -1; 0: none yet
    for before, now in itertools.pairwise(verdicts):
        np.copyto(now, before, where=before != 0)
    return [float(max((at > 0).mean(), (at < 0).mean())) for at in verdicts]


def simulate(replicates: int, seeds: Sequence[int] = SEEDS) -> dict[str, Any]:
    """Shares of wrong and right verdicts at each n (`at_bound`), by statement; and of wrong ones if one looks again."""
    rows: dict[str, list[Shares]] = {}
    looked: dict[str, list[float]] = {}
    worlds = [redrawn(world, replicates, seed=number) for number, world in enumerate(WORLDS)]
    for world, drawn in zip(WORLDS, worlds, strict=True):
        name = f"{world.name}, sd {drawn.sd:.1f}"
        looked[name] = looked_at_each(drawn, seeds)
        rows[f"beyond a bound ({name})"] = [at_bound(of_differences(drawn, n)) for n in seeds]
        rows[f"similar within 1 point ({name})"] = [at_margin(of_differences(drawn, n)) for n in seeds]
    unlike = ", one of 5 times the others' spread,"
    for name, some in (("", worlds), (unlike, [worlds[-1], *[worlds[0]] * 8])):
        rows[f"average over 9 tasks{name} beyond a bound"] = [at_bound(_averages(some, n), 1.0) for n in seeds]
    for test, training in CENTRAL:
        sets = list(central(max(replicates // 2, 100), test, training))
        differences = np.array([first.mean(axis=1) - second.mean(axis=1) for first, second, _ in sets])
        name = f"({test} examples, sd {100 * float(np.sqrt(differences.var(axis=1, ddof=1).mean())):.1f})"
        rows[f"central test set, answers kept {name}"] = [at_bound([_kept(*one, n) for one in sets]) for n in seeds]
        rows[f"central test set, scores alone {name}"] = [at_bound([_alone(*one, n) for one in sets]) for n in seeds]
    ratios = byte_ratios(4 * replicates)
    truth = float(np.median(ratios))
    rows["fewer bytes to a target, by a factor"] = [_of_ratios(ratios[:, :n], truth) for n in seeds]
    return {"replicates": replicates, "seeds": list(seeds), "rows": rows, "looked": looked}


def _averages(worlds: Sequence[Drawn], n: int) -> list[Estimate]:
    """Averages over nine tasks, of every kind of world; each task from another replicate."""
    estimates = [of_differences(drawn, n) for drawn in worlds]
    total, kinds = len(estimates[0]), len(estimates)
    tasks = ([estimates[task % kinds][(start + 97 * task) % total] for task in range(9)] for start in range(total))
    return [average_of(each) for each in tasks]


def _kept(first: np.ndarray, second: np.ndarray, truth: float, n: int) -> Estimate:
    """The rule for one test set whose answers are kept."""
    gold = (np.ones(first.shape[1], dtype=np.int64),)
    sides = ([Answered((hits.astype(np.int64),), gold) for hits in side[:n]] for side in (first, second))
    return moved(hierarchical(*sides, accuracy, factor=100), -truth)


def _alone(first: np.ndarray, second: np.ndarray, truth: float, n: int) -> Estimate:
    """The rule for one test set without stored predictions: only its scores are known."""
    shares = first[:n].mean(axis=1), second[:n].mean(axis=1)
    error = 100 * math.sqrt(sum(float((share * (1 - share)).mean()) for share in shares) / first.shape[1])
    over_seeds = resampled((100 * (shares[0] - shares[1])).tolist(), 0.0, floor=0.0)
    return moved(with_sampling(over_seeds, error), -truth)


def _of_ratios(ratios: np.ndarray, truth: float) -> Shares:
    bounds = [median_bounds(row, test_over_train=RATIO) for row in ratios.tolist()]
    wrong = max(_share(bounds, lambda low, high: low > truth), _share(bounds, lambda low, high: high < truth))
    return wrong, _share(bounds, lambda low, high: low >= truth / 2)


# ---- the table ---------------------------------------------------------------------------------------------------


def table(result: dict[str, Any]) -> str:
    """The result as Markdown: percent of wrong verdicts / of right ones at each n."""
    seeds = result["seeds"]
    lines = [f"| statement | {' | '.join(f'n = {n}' for n in seeds)} |", f"| :-- |{' --: |' * len(seeds)}"]
    for name, cells in result["rows"].items():
        texts = (f"{100 * wrong:.1f} / {100 * right:.0f}" for wrong, right in cells)
        lines.append(f"| {name} | {' | '.join(texts)} |")
    again = 'Percent of wrong verdicts on "beyond a bound" if checked after each seed, stopping at the first verdict:'
    lines += ["", again, "", *lines[:2]]
    for name, shares in result["looked"].items():
        lines.append(f"| {name} | {' | '.join(f'{100 * share:.1f}' for share in shares)} |")
    return "\n".join(lines)


def main() -> None:
    """Simulate, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=3000)
    result = simulate(parser.parse_args().replicates)
    page = ROOT / "docs" / "statistics.md"
    (ROOT / "docs" / "statistics.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    update_readme(page, table(result), "simulation")


if __name__ == "__main__":
    main()
