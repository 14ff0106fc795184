"""How far seeds correlate, by the examples that they share, and how often the judge is wrong at that correlation.

`python tools/correlation.py` reads the committed records, simulates (a minute), and puts its tables
into docs/statistics.md and docs/correlation.json. Training noise is normal, or has heavy tails (Student's t).
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.experiment import Benchmark  # noqa: E402
from benchmarks.predictions import read_predictions  # noqa: E402
from benchmarks.registry import benchmark  # noqa: E402
from benchmarks.results import RunResult, read_results  # noqa: E402
from reports.claims.criterion import Criterion, evidence  # noqa: E402
from reports.claims.hypothesis import Assertion, Hypothesis, State, decide  # noqa: E402
from reports.evidence.inference import average_of, resampled  # noqa: E402
from reports.evidence.paired import gains, resplit_ratio  # noqa: E402
from reports.evidence.records import newest_by_place, paired, select  # noqa: E402
from reports.evidence.statistics import Estimate  # noqa: E402
from reports.front.readme import update_readme  # noqa: E402

TABLES = ("fedsplitbert-table3", "fedsplitbert-table4")  # whose seeds redraw their splits
METHOD, SCALE = "fedavg", "lite"
AVERAGED = ("mrpc", "cola", "sst2", "qqp", "qnli")  # the five tasks of the protocol
SEEDS, FREEDOM = (5, 10), 5.0


@dataclass(frozen=True)
class World:
    """How seeds vary. correlation: of two seeds; None for the share of examples that they have in common."""

    freedom: float
    correlation: float | None = None


WORLDS = {"normal": World(1e9), f"t{FREEDOM:g}": World(FREEDOM), f"t{FREEDOM:g} at 0.5": World(FREEDOM, 0.5)}


@dataclass(frozen=True)
class Split:
    """A split that seeds redraw, and what two seeds share of it, as shares.

    tests: as sizes imply. counted: as stored predictions show, over all pairs of seeds; None without predictions.
    training: as sizes imply.
    """

    name: str
    task: str
    tests: float
    counted: float | None
    training: float


def _committed() -> Iterator[tuple[Benchmark, Sequence[RunResult]]]:
    for table in map(benchmark, TABLES):
        yield table, read_results(ROOT / "benchmarks" / table.paper.id / "records")


def splits() -> Iterator[Split]:
    """The splits of the first table's committed records."""
    table, results = next(_committed())
    index = newest_by_place(results)
    for column in table.columns:
        records = select(table, table.scale(SCALE), table.row(METHOD), column, index).records
        test, train = (ratio / (1 + ratio) for ratio in (resplit_ratio(records, part) for part in ("test", "train")))
        if len(records) > 1 and test:
            sizes = test, _counted(records), train
            yield Split(column.name, column.task, *sizes)


def _counted(records: Sequence[RunResult]) -> float | None:
    """The mean share of test examples that two seeds share, by their ids."""
    tested = []
    for record in records:
        answers = read_predictions(record.folder, record) if record.folder else {}
        ids = [part.indices for (_, evaluation), part in answers.items() if evaluation == "test"]
        tested += [set(np.concatenate(ids).tolist())] if ids else []
    shares = [len(one & other) / len(one) for one, other in itertools.combinations(tested, 2)]
    return float(np.mean(shares)) if shares else None


def differences(rng: np.random.Generator, shape: tuple[int, int], world: World) -> np.ndarray:
    """Differences [R, n] with mean 0 and variance 1: a normal part that all seeds share, plus noise for each seed."""
    noise = rng.standard_t(world.freedom, shape) / np.sqrt(world.freedom / (world.freedom - 2))
    common = rng.standard_normal((shape[0], 1))
    return np.asarray(np.sqrt(world.correlation) * common + np.sqrt(1 - world.correlation) * noise)


def estimates(rng: np.random.Generator, shape: tuple[int, int], share: float, world: World) -> list[Estimate]:
    """The judge's estimate of each row of differences, whose splits share this much."""
    rows = differences(
        rng, shape, replace(world, correlation=share if world.correlation is None else world.correlation)
    )
    return [resampled(row, share / (1 - share)) for row in rows.tolist()]


def wrong(outcomes: Sequence[Estimate]) -> float:
    """How often a comparison is decided though the truth is the bound: the mean of both sides."""
    return sum(not one.interval[0] <= 0 <= one.interval[1] for one in outcomes if one.interval) / len(outcomes) / 2


def wrong_on_mean(shares: Sequence[float], world: World, n: int, replicates: int) -> float:
    """The same of the mean over independent tasks."""
    rng = np.random.default_rng(1)
    tasks = [estimates(rng, (replicates, n), share, world) for share in shares]
    return wrong([average_of(parts) for parts in zip(*tasks, strict=True)])


def wrong_on_all(shares: Sequence[float], world: World, n: int, replicates: int) -> float:
    """How often a claim of one method above two rivals on every task is contradicted, though all of it just holds."""
    rng, by_comparison = np.random.default_rng(2), []
    for share in shares:
        alike = replace(world, correlation=share if world.correlation is None else world.correlation)
        mine, *rivals = (differences(rng, (replicates, n), alike) for _ in range(3))
        rows = [((mine - its) / np.sqrt(2)).tolist() for its in rivals]
        by_comparison += [[resampled(row, share / (1 - share)) for row in rival] for rival in rows]
    asserted = (
        [Hypothesis((Assertion("", (), "", Criterion(0.0), evidence(one)),)) for one in each]
        for each in zip(*by_comparison, strict=True)
    )
    return sum(decide(each).state is State.NO for each in asserted) / replicates


def simulate(table_splits: Sequence[Split], replicates: int) -> dict[str, list[list[float]]]:
    """Statement -> for each n of SEEDS the share of wrong verdicts in each of WORLDS."""
    rows = {
        f"{what}, {split.name}": [
            [wrong(estimates(np.random.default_rng(0), (replicates, n), share, world)) for world in WORLDS.values()]
            for n in SEEDS
        ]
        for what in ("score", "loss")
        for split in table_splits
        for share in [split.tests if what == "score" else split.training]
    }
    shares = [split.tests for split in table_splits if split.task in AVERAGED]
    for name, rule in (("mean of five tasks", wrong_on_mean), ("above two rivals on all five", wrong_on_all)):
        rows[f"score, {name}"] = [[rule(shares, world, n, replicates // 4) for world in WORLDS.values()] for n in SEEDS]
    return rows


def kurtosis(samples: Sequence[Sequence[float]]) -> float:
    """The mean fourth power of samples of one size, each standardised by its own mean and deviation."""
    z = np.asarray(samples) - np.mean(samples, axis=1, keepdims=True)
    return float(np.mean((z / z.std(axis=1, keepdims=True)) ** 4))


def measured_noise() -> list[list[float]]:
    """Differences of every two rows on a task, of the first SEEDS[0] seeds, by the last round."""
    samples = []
    for table, records in _committed():
        index = newest_by_place(records)
        for column in table.columns:
            by_row = [select(table, table.scale(SCALE), row, column, index).records for row in table.rows]
            for one, other in itertools.combinations(by_row, 2):
                gained = gains(paired(one, other), column.primary or column.averaged, "last")[: SEEDS[0]]
                if len(gained) == SEEDS[0] and None not in gained and len(set(gained)) > 1:
                    samples.append([value for value in gained if value is not None])
    return samples


def tails() -> dict[str, float]:
    """The kurtosis of committed differences and of noise as simulated, in samples of one size."""
    rng, samples = np.random.default_rng(3), measured_noise()
    shape = 50_000, SEEDS[0]
    drawn = {f"t with {freedom:g} degrees": rng.standard_t(freedom, shape) for freedom in (3, FREEDOM)}
    noise = {"normal": rng.standard_normal(shape), **drawn}
    return {f"{len(samples)} committed comparisons": kurtosis(samples)} | {
        name: kurtosis(rows.tolist()) for name, rows in noise.items()
    }


def page_of(
    table_splits: Sequence[Split], rows: Mapping[str, Sequence[Sequence[float]]], shape: Mapping[str, float]
) -> str:
    """What seeds share, how heavy the noise's tails are, and the percent of wrong verdicts, as Markdown."""
    lines = ["| split over three clients | test examples shared, by sizes | counted | training examples shared |"]
    lines.append("| :-- | --: | --: | --: |")
    for split in table_splits:
        counted = "" if split.counted is None else f"{100 * split.counted:.1f} %"
        lines.append(f"| {split.name} | {100 * split.tests:.1f} % | {counted} | {100 * split.training:.1f} % |")
    heads = [f"{name}, n = {n}" for n in SEEDS for name in WORLDS]
    lines += ["", f"| percent of wrong verdicts | {' | '.join(heads)} |", f"| :-- |{' --: |' * len(heads)}"]
    for name, cells in rows.items():
        lines.append(f"| {name} | {' | '.join(f'{100 * share:.1f}' for cell in cells for share in cell)} |")
    told = "; ".join(f"{name} {value:.2f}" for name, value in shape.items())
    return "\n".join([*lines, "", f"Kurtosis of {SEEDS[0]} standardised differences: {told}."])


def main() -> None:
    """Measure, simulate, and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=20000)
    replicates, table_splits = parser.parse_args().replicates, list(splits())
    rows, page = simulate(table_splits, replicates), ROOT / "docs" / "statistics.md"
    result = {"replicates": replicates, "seeds": SEEDS, "worlds": list(WORLDS), "rows": rows, "kurtosis": tails()}
    (ROOT / "docs" / "correlation.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    update_readme(page, page_of(table_splits, rows, result["kurtosis"]), "correlation")


if __name__ == "__main__":
    main()
