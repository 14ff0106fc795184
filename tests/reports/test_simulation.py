"""The rules against known truth: few replicates here, many in docs/statistics.json, whose table the page shows."""

from __future__ import annotations

import json
import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reports.evidence.inference import LEVEL, moved, quantile
from reports.evidence.resampling import Answered, accuracy, hierarchical

ROOT = Path(__file__).resolve().parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "simulate.py"))
RESULT = json.loads((ROOT / "docs" / "statistics.json").read_text(encoding="utf-8"))


def chance(replicates: int, sigmas: float) -> float:
    """The share of wrong verdicts that a rule of exactly LEVEL shows at most, by chance."""
    return LEVEL + sigmas * math.sqrt(LEVEL * (1 - LEVEL) / replicates)


@pytest.fixture(scope="module")
def simulated() -> dict[str, Any]:
    return TOOL["simulate"](160, seeds=(2, 5, 10))


@pytest.mark.slow
def test_wrong_verdicts_are_rare(simulated: dict[str, Any]) -> None:
    wrong = {name: max(wrong for wrong, _ in cells) for name, cells in simulated["rows"].items()}
    # Names carry the spread between seeds, which is measured.
    assert [name.partition(", sd")[0] for name in wrong] == [name.partition(", sd")[0] for name in RESULT["rows"]]
    assert {name: share for name, share in wrong.items() if share > chance(80, 3.5)} == {}
    assert np.mean(list(wrong.values())) <= LEVEL


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


def test_the_table_is_of_many_replicates_and_holds_what_it_promises() -> None:
    assert RESULT["replicates"] >= 2000
    assert RESULT["seeds"] == list(range(2, 11))
    for name, cells in RESULT["rows"].items():
        replicates = RESULT["replicates"] // (2 if name.startswith("central") else 1)
        assert max(wrong for wrong, _ in cells) <= chance(replicates, 2), name
        assert np.mean([wrong for wrong, _ in cells]) <= chance(replicates, 1), name


def test_the_page_shows_the_table() -> None:
    page = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    _, _, rest = page.partition(TOOL["BEGIN"])
    block, end, _ = rest.partition(TOOL["END"])
    assert end
    assert block.strip() == TOOL["table"](RESULT)
