"""How often the rules of `reports/evidence/inference.py` are wrong where the truth is known, and how often they decide.

Methods are trained and scored here as in a federation's miniature: linear classifiers (nearest centroid) that learn
from 80 % of a finite pool of noisy examples and are scored on the rest, so what seeds share by redrawing overlapping
splits of one pool is really there. The truth is over all pools: the mean over every replicate.

`python tools/simulate.py` runs many replicates (a quarter of an hour), writes docs/statistics.json and
puts its table into docs/statistics.md.
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

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from reports.evidence import inference, resampling  # noqa: E402
from reports.evidence.inference import above_every, average_of, median_bounds, moved, resampled, similar  # noqa: E402
from reports.evidence.statistics import Estimate, over_seeds  # noqa: E402

SEEDS = range(2, 11)
RATIO = 0.25  # n_test / n_train of an 80/20 split of a whole pool
DIMENSIONS, SIGNAL = 10, 0.9  # of an example: accuracies of 75 to 82 %
EFFECT = 3.0  # points beyond what is asked, where power is reported
BEGIN, END = "<!-- simulation:begin -->", "<!-- simulation:end -->"
CHUNK = 250  # replicates at once: 10 MB an array


@dataclass(frozen=True)
class World:
    """Where methods are compared.

    pool: examples. used: of these each seed draws so many anew; 0: all. 20 % of them are its test set. apart: how much
    worse the rivals see them, as noise of each feature. training: how much else than the data, such as initial weights,
    changes what is learned.
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
        """n_test / n_train: what is not tested on counts as trained on."""
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
    """Differences in points [R, n, rivals] of a method from its rivals, and the unpaired sampling error of each."""

    differences: np.ndarray
    errors: np.ndarray
    ratio: float = RATIO

    @property
    def truth(self) -> np.ndarray:
        return self.differences.mean(axis=(0, 1))

    @property
    def sd(self) -> float:
        """Between seeds of one pool."""
        return float(np.sqrt(self.differences.var(axis=1, ddof=1).mean()))


def _examples(world: World, shape: tuple[int, int], rivals: int, rng: np.random.Generator) -> tuple[Any, list[Any]]:
    """Labels ± 1 [R, N], and the features [R, N, D] that each method sees of them."""
    labels = (2 * rng.integers(0, 2, shape) - 1).astype(np.float32)
    seen = rng.standard_normal((*shape, world.dimensions), dtype=np.float32)
    seen[..., 0] += SIGNAL * labels
    return labels, [seen] + [seen + world.apart * rng.standard_normal(seen.shape, np.float32) for _ in range(rivals)]


def redrawn(world: World, replicates: int, rivals: int = 1, seeds: int = max(SEEDS), seed: int = 0) -> Drawn:
    """Every seed splits its replicate's pool anew; all methods learn from the same part and answer the same other."""
    rng, parts, test = np.random.default_rng(seed), [], world.test
    for start in range(0, replicates, CHUNK):
        shape = min(CHUNK, replicates - start), world.pool
        labels, seen = _examples(world, shape, rivals, rng)
        for _ in range(seeds):
            order = rng.random(shape, np.float32)
            held = np.argpartition(order, test, axis=1)[:, :test]
            known = labels.copy()
            np.put_along_axis(known, held, 0, axis=1)
            if world.used:
                left_out = np.argpartition(order, world.used, axis=1)[:, world.used :]
                np.put_along_axis(known, left_out, 0, axis=1)
            hits = np.stack([_hits(world, features, known, labels, held, rng) for features in seen])  # [M, R, test]
            share = hits.mean(axis=2)
            variance = share * (1 - share) / test
            parts.append(100 * np.stack([share[0] - share[1:], np.sqrt(variance[0] + variance[1:])]))
    by_seed = [np.concatenate(parts[number::seeds], axis=2) for number in range(seeds)]  # [2, rivals, R] each
    differences, errors = np.stack(by_seed).transpose(1, 3, 0, 2)
    return Drawn(differences, errors, world.ratio)


def _hits(world: World, features: Any, known: Any, labels: Any, held: Any, rng: np.random.Generator) -> np.ndarray:
    """Learn from the examples whose label is known, and say which of the others are answered rightly."""
    learned = (features.transpose(0, 2, 1) @ known[..., None])[..., 0] / np.count_nonzero(known, axis=1)[:, None]
    learned += world.training * rng.standard_normal(learned.shape)
    right = (features @ learned[..., None].astype(np.float32))[..., 0] * labels > 0
    return np.take_along_axis(right, held, axis=1)


def central(
    replicates: int, test: int, training: float, apart: float = 0.5, seeds: int = max(SEEDS)
) -> Iterator[tuple[np.ndarray, np.ndarray, float]]:
    """One test set for all seeds, which train on the same data: hits [n, test] of both, and the truth of these data."""
    rng, world = np.random.default_rng(1), World("", 400, apart, training)
    for _ in range(replicates):
        labels, seen = _examples(world, (1, world.pool), 1, rng)
        held, tested = _examples(world, (1, test), 1, rng)
        hits, truths = [], []
        for number, (features, asked) in enumerate(zip(seen, tested, strict=True)):
            learned = np.einsum("n,nd->d", labels[0], features[0]) / world.pool
            every = learned + training * rng.standard_normal((seeds + 400, DIMENSIONS))
            hits.append((asked[0] @ every[:seeds].T * held[0][:, None] > 0).T)
            noise = math.hypot(1, apart if number else 0)
            truths.append(_normal(SIGNAL * every[:, 0] / (noise * np.linalg.norm(every, axis=1))).mean())
        yield hits[0], hits[1], 100 * float(truths[0] - truths[1])


def _normal(value: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return np.asarray(ndtr(value))


def byte_ratios(replicates: int, rounds: int = 12, seeds: int = max(SEEDS), seed: int = 0) -> np.ndarray:
    """A rival's bytes to its best score over a method's bytes to the same score, [R, n]; 0 where it never gets there.

    Curves that saturate, at a pace that varies with pool and seed (a fifth of the variance is the pool's, as the test
    sets overlap), scored with noise. The method sends half as much a round and learns a little faster.
    """
    rng, shape = np.random.default_rng(seed), (replicates, seeds, 2, rounds)
    pool, own = rng.standard_normal((replicates, 1, 2, 1)), rng.standard_normal((replicates, seeds, 2, 1))
    pace = np.array([2.5, 3.5])[:, None] * np.exp(0.4 * (math.sqrt(0.2) * pool + math.sqrt(0.8) * own))
    curve = 80 * (1 - np.exp(-np.arange(1, rounds + 1) / pace)) + rng.standard_normal(shape)
    mine, theirs = curve[:, :, 0], curve[:, :, 1]
    target, spent = theirs.max(axis=2), theirs.argmax(axis=2) + 1
    reached = mine >= target[..., None]
    return np.where(reached.any(axis=2), 2 * spent / (reached.argmax(axis=2) + 1), 0.0)


# ---- verdicts ----------------------------------------------------------------------------------------------------


def of_differences(found: Drawn, n: int, rival: int = 0) -> list[Estimate]:
    """The rule for redrawn splits, a replicate each; the truth taken off, so that it is 0."""
    values, errors = found.differences[:, :n, rival] - found.truth[rival], found.errors[:, :n, rival]
    floors = np.sqrt((errors**2).mean(axis=1))
    return [
        resampled(list(map(float, row)), found.ratio, floor=float(floor))
        for row, floor in zip(values, floors, strict=True)
    ]


def old_rule(found: Drawn, n: int) -> list[Estimate]:
    """The rule until then: the wider of a 95 % t interval and ± 1.96 × the unpaired sampling error."""
    values, errors = found.differences[:, :n, 0] - found.truth[0], found.errors[:, :n, 0]
    return [over_seeds(list(map(float, row)), list(map(float, its))) for row, its in zip(values, errors, strict=True)]


def _share(found: Sequence[Estimate], met: Callable[[float, float], bool]) -> float:
    return float(np.mean([one.interval is not None and met(*one.interval) for one in found]))


def at_bound(found: Sequence[Estimate], effect: float = EFFECT) -> tuple[float, float]:
    """Wrong verdicts, the worse side, where the truth is the bound itself; and right ones where it is beyond it."""
    wrong = max(_share(found, lambda low, high: low > 0), _share(found, lambda low, high: high < 0))
    return wrong, _share(found, lambda low, high: low > -effect)


def at_margin(found: Sequence[Estimate], margin: float = 1.0) -> tuple[float, float]:
    """Wrong verdicts of "similar" where the truth is the margin, on its wrong or right side; and right ones at 0."""
    beyond = [similar(moved(one, side * margin), margin) for one in found for side in (-1, 1)]
    wrong = max(np.mean([answer is True for answer in beyond]), np.mean([answer is False for answer in beyond]))
    narrow = np.mean([similar(one, 0.01) is False for one in found])  # hardly a margin: two ways of being wrong
    return float(max(wrong, narrow)), float(np.mean([similar(one, margin) is True for one in found]))


def looked_at_each(found: Drawn, seeds: Sequence[int]) -> list[float]:
    """Wrong verdicts, as `at_bound`'s, of whoever looks after each of these numbers of seeds until one is reached."""
    known = [[one.interval or (-math.inf, math.inf) for one in of_differences(found, n)] for n in seeds]
    said = np.array([[(low > 0) - (high < 0) for low, high in at] for at in known])  # 1, -1: a verdict; 0: none yet
    for before, now in itertools.pairwise(said):
        np.copyto(now, before, where=before != 0)
    return [float(max((at > 0).mean(), (at < 0).mean())) for at in said]


def simulate(replicates: int, seeds: Sequence[int] = SEEDS) -> dict[str, Any]:
    """Shares of wrong and right verdicts at each n (`at_bound`), by statement; and of wrong ones if one looks again."""
    rows: dict[str, list[tuple[float, float]]] = {}
    looked: dict[str, list[float]] = {}
    worlds = [redrawn(world, replicates, seed=number) for number, world in enumerate(WORLDS)]
    for world, found in zip(WORLDS, worlds, strict=True):
        name = f"{world.name}, sd {found.sd:.1f}"
        looked[name] = looked_at_each(found, seeds)
        rows[f"beyond a bound ({name})"] = [at_bound(of_differences(found, n)) for n in seeds]
        if world.pool == WORLDS[0].pool:
            rows[f"the same by the former rule ({name})"] = [at_bound(old_rule(found, n)) for n in seeds]
        rows[f"similar within 1 point ({name})"] = [at_margin(of_differences(found, n)) for n in seeds]
    rows["average over 9 tasks beyond a bound"] = [
        at_bound([average_of(part) for part in _tasks(worlds, n)], 1.0) for n in seeds
    ]
    unlike = [worlds[-1], *[worlds[0]] * 8]
    rows["average over 9 tasks, one of 5 times the others' spread, beyond a bound"] = [
        at_bound([average_of(part) for part in _tasks(unlike, n)], 1.0) for n in seeds
    ]
    rows["each of 9 tasks beyond a bound"] = [_of_all(list(_tasks(worlds, n))) for n in seeds]
    rivals = redrawn(WORLDS[2], replicates, rivals=4, seed=9)
    by_n = ([of_differences(rivals, n, rival) for rival in range(4)] for n in seeds)
    rows["above each of 4 rivals on one task"] = [_of_all(list(zip(*found, strict=True))) for found in by_n]
    rows |= _central(max(replicates // 2, 100), seeds)
    ratios = byte_ratios(4 * replicates)
    truth = float(np.median(ratios))
    rows["fewer bytes to a target, by a factor"] = [_of_ratios(ratios[:, :n], truth) for n in seeds]
    return {"replicates": replicates, "seeds": list(seeds), "rows": rows, "looked": looked}


def _tasks(worlds: Sequence[Drawn], n: int) -> Iterator[tuple[Estimate, ...]]:
    """Nine tasks at a time, of every kind of world; each from another replicate."""
    known = [of_differences(found, n) for found in worlds]
    total = len(known[0])
    for start in range(total):
        yield tuple(known[task % len(known)][(start + 97 * task) % total] for task in range(9))


def _of_all(parts: Sequence[tuple[Estimate, ...]]) -> tuple[float, float]:
    """All at the bound: one bound above it is enough to be wrong against them, all below for them but one far above."""
    against = _share([above_every(part) for part in parts], lambda low, high: high < 0)
    wrong = [above_every([part[0], *(moved(one, 20) for one in part[1:])]) for part in parts]
    power = [above_every([moved(one, EFFECT) for one in part]) for part in parts]
    return max(against, _share(wrong, lambda low, high: low > 0)), _share(power, lambda low, high: low > 0)


def _central(replicates: int, seeds: Sequence[int]) -> dict[str, list[tuple[float, float]]]:
    """One test set for all seeds: with every answer at hand, and with sampling errors alone."""
    rows = {}
    for test, training in CENTRAL:
        drawn = list(central(replicates, test, training))
        name = f"{test} examples, sd {_between(drawn):.1f}"
        rows |= {f"central test set, {known} ({name})": cells for known, cells in _shared(drawn, seeds).items()}
    return rows


def _between(drawn: Sequence[tuple[np.ndarray, np.ndarray, float]]) -> float:
    """Points between seeds' differences."""
    return 100 * float(np.sqrt(np.mean([(own.mean(axis=1) - its.mean(axis=1)).var(ddof=1) for own, its, _ in drawn])))


def _shared(
    drawn: Sequence[tuple[np.ndarray, np.ndarray, float]], seeds: Sequence[int]
) -> dict[str, list[tuple[float, float]]]:
    rows: dict[str, list[tuple[float, float]]] = {"answers kept": [], "scores alone": []}
    for n in seeds:
        kept, alone = [], []
        for own, other, truth in drawn:
            gold = (np.ones(own.shape[1], dtype=np.int64),)
            sides = (
                [resampling.Answered((hits.astype(np.int64),), gold) for hits in side[:n]] for side in (own, other)
            )
            kept.append(moved(resampling.hierarchical(*sides, resampling.accuracy, factor=100), -truth))
            shares = own[:n].mean(axis=1), other[:n].mean(axis=1)
            error = 100 * math.sqrt(sum(float((share * (1 - share)).mean()) for share in shares) / own.shape[1])
            over = resampled(list(map(float, 100 * (shares[0] - shares[1]))), 0.0, floor=0.0)
            alone.append(moved(inference.with_sampling(over, error), -truth))
        for found, row in zip((kept, alone), rows.values(), strict=True):
            row.append(at_bound(found))
    return rows


def _of_ratios(ratios: np.ndarray, truth: float) -> tuple[float, float]:
    found = [median_bounds(list(map(float, row)), test_over_train=RATIO) for row in ratios]
    wrong = max(_share(found, lambda low, high: low > truth), _share(found, lambda low, high: high < truth))
    return wrong, _share(found, lambda low, high: low >= truth / 2)


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
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{table(result)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
