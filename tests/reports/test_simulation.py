"""The rules against known truth: few replicates here, many in docs/statistics.json, whose table the page shows."""

from __future__ import annotations

import doctest
import json
import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.evidence.inference import LEVEL, average_of, moved, quantile, resampled
from reports.evidence.resampling import Answered, accuracy, hierarchical

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "simulate.py"))
RESULT = json.loads((ROOT / "docs" / "statistics.json").read_text(encoding="utf-8"))
FORMER = "the same by the former rule"


def chance(replicates: int, sigmas: float) -> float:
    """The share of wrong verdicts that a rule of exactly LEVEL shows at most, by chance."""
    return LEVEL + sigmas * math.sqrt(LEVEL * (1 - LEVEL) / replicates)


@pytest.fixture(scope="module")
def simulated() -> dict[str, Any]:
    return TOOL["simulate"](160, seeds=(2, 5, 10))


def test_wrong_verdicts_are_rare(simulated: dict[str, Any]) -> None:
    wrong = {name: max(wrong for wrong, _ in cells) for name, cells in simulated["rows"].items()}
    assert {name: share for name, share in wrong.items() if share > chance(80, 3.5)} == {}
    assert np.mean(list(wrong.values())) <= LEVEL


def test_more_seeds_decide_more(simulated: dict[str, Any]) -> None:
    for name, cells in simulated["rows"].items():
        if name.startswith("beyond a bound"):
            assert cells[0][1] <= cells[-1][1] + 0.05, name


def test_the_simulation_would_notice_a_rule_that_is_wrong() -> None:
    """Student's t without the correction for overlapping splits: three times as many wrong verdicts at ten seeds."""
    found = TOOL["redrawn"](TOOL["WORLDS"][2], 300)
    resampled, at_bound = TOOL["resampled"], TOOL["at_bound"]
    plain = [resampled(list(map(float, row)), 0.0) for row in found.differences[:, :, 0] - found.truth[0]]
    assert at_bound(plain)[0] > chance(300, 2)
    assert at_bound(TOOL["of_differences"](found, 10))[0] < chance(300, 2)


def test_the_simulation_would_notice_one_t_for_seeds_and_examples() -> None:
    """Satterthwaite's degrees of freedom, where two seeds differ by more than the test set that they share errs."""
    wrong: dict[str, list[bool]] = {"kept apart": [], "one t": []}
    for own, other, truth in TOOL["central"](400, 872, 0.3, seeds=2):
        sides = [
            [Answered((hits.astype(np.int64),), (np.ones(hits.shape[0], np.int64),)) for hits in side]
            for side in (own, other)
        ]
        found = moved(hierarchical(*sides, accuracy, factor=100), -truth)
        seeds, total = found.components[0].error ** 2, found.error**2
        low = found.value - quantile(total**2 / seeds**2 if seeds else math.inf) * found.error
        wrong["one t"] += [low > 0, 2 * found.value - low < 0]
        wrong["kept apart"] += [found.interval[0] > 0, found.interval[1] < 0]
    assert np.mean(wrong["kept apart"]) < chance(800, 1) < np.mean(wrong["one t"])


def test_the_simulation_would_notice_one_t_for_tasks_that_vary_unlike() -> None:
    """Satterthwaite's degrees of freedom, where two seeds differ ten times as much on one task as on the others."""
    rng, spread = np.random.default_rng(2), [10.0, *[1.0] * 8]
    wrong: dict[str, list[bool]] = {"kept apart": [], "one t": []}
    for values in rng.standard_normal((800, len(spread), 2)) * np.array(spread)[:, None]:
        tasks = [resampled(list(map(float, task)), 0.0) for task in values]
        found = average_of(tasks)
        squares = [task.error**2 for task in tasks]
        half = quantile(sum(squares) ** 2 / sum(square**2 for square in squares)) * found.error
        wrong["one t"] += [found.value > half, found.value < -half]
        wrong["kept apart"] += [found.interval[0] > 0, found.interval[1] < 0]
    assert np.mean(wrong["kept apart"]) < LEVEL < chance(1600, 2) < np.mean(wrong["one t"])


def test_seeds_of_one_pool_are_correlated_as_their_splits_overlap() -> None:
    """What the correction rests on is there: between pools the mean varies by more than s^2 / n, by about a fifth."""
    found = TOOL["redrawn"](TOOL["WORLDS"][2], 400).differences[:, :, 0]
    shared = found.mean(axis=1).var(ddof=1) - found.var(axis=1, ddof=1).mean() / found.shape[1]
    share = shared / found.var()
    assert 0.08 < share < 0.32


def test_the_table_is_of_many_replicates_and_holds_what_it_promises() -> None:
    assert RESULT["replicates"] >= 2000
    assert RESULT["seeds"] == list(range(2, 11))
    for name, cells in RESULT["rows"].items():
        replicates = RESULT["replicates"] // (2 if name.startswith("central") else 1)
        assert max(wrong for wrong, _ in cells) <= chance(replicates, 2), name
        assert np.mean([wrong for wrong, _ in cells]) <= chance(replicates, 1), name


def test_whoever_looks_again_is_wrong_more_often_and_the_table_says_so() -> None:
    assert set(RESULT["looked"]) == {
        name.removeprefix("beyond a bound (").removesuffix(")") for name in RESULT["rows"] if "bound (" in name
    }
    for shares in RESULT["looked"].values():
        assert shares == sorted(shares)
        assert shares[0] <= LEVEL
    by_ten = [100 * shares[-1] for shares in RESULT["looked"].values()]
    assert min(by_ten) / 100 > LEVEL
    page = " ".join((ROOT / "docs" / "statistics.md").read_text(encoding="utf-8").split())
    assert f"{min(by_ten):.0f} to {max(by_ten):.0f} % by ten seeds" in page


def test_the_former_rule_decided_nothing() -> None:
    shares = [right for name, cells in RESULT["rows"].items() if name.startswith(FORMER) for _, right in cells]
    assert shares
    assert max(shares) < 0.05


def test_worked_numbers_are_what_the_code_gives() -> None:
    found = doctest.testfile(str(ROOT / "docs" / "statistics.md"), module_relative=False)
    assert (found.failed, found.attempted) == (0, 18)


def test_the_page_shows_the_table() -> None:
    page = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    _, _, rest = page.partition(TOOL["BEGIN"])
    block, end, _ = rest.partition(TOOL["END"])
    assert end
    assert block.strip() == TOOL["table"](RESULT)


def test_the_table_is_of_these_statements(simulated: dict[str, Any]) -> None:
    """Names carry the spread between seeds, which is measured."""
    assert [name.partition(", sd")[0] for name in simulated["rows"]] == [
        name.partition(", sd")[0] for name in RESULT["rows"]
    ]
