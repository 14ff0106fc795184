"""The rules against known truth: few replicates here, many in docs/statistics.json, whose table the page shows."""

import json
import math
import runpy

import numpy as np
import pytest

from reports.evidence.inference import LEVEL
from tests.conftest import ROOT

TOOL = runpy.run_path(str(ROOT / "tools" / "simulate.py"))
RESULT = json.loads((ROOT / "docs" / "statistics.json").read_text(encoding="utf-8"))


def chance(replicates: int, sigmas: float) -> float:
    """The share of wrong verdicts that a rule of exactly LEVEL shows at most, by chance."""
    return LEVEL + sigmas * math.sqrt(LEVEL * (1 - LEVEL) / replicates)


@pytest.mark.slow
def test_wrong_verdicts_are_rare():
    rows = TOOL["simulate"](160, seeds=(2, 5))["rows"]
    wrong = {name: max(share for share, _ in cells) for name, cells in rows.items()}
    # Names carry the spread between seeds, which is measured.
    assert [name.partition(", sd")[0] for name in wrong] == [name.partition(", sd")[0] for name in RESULT["rows"]]
    assert {name: share for name, share in wrong.items() if share > chance(80, 3.5)} == {}
    assert np.mean(list(wrong.values())) <= LEVEL


@pytest.mark.slow
def test_the_simulation_would_notice_a_wrong_rule():
    """Student's t without the correction for overlapping splits: three times as many wrong verdicts at ten seeds."""
    drawn = TOOL["redrawn"](TOOL["WORLDS"][2], 300)
    plain = [TOOL["resampled"](row, 0.0) for row in (drawn.differences - drawn.truth).tolist()]
    assert TOOL["at_bound"](plain)[0] > chance(300, 2)
    assert TOOL["at_bound"](TOOL["of_differences"](drawn, 10))[0] < chance(300, 2)


def test_the_table_is_of_many_replicates_and_holds_what_it_promises():
    assert RESULT["replicates"] >= 2000
    assert RESULT["seeds"] == list(range(2, 11))
    for name, cells in RESULT["rows"].items():
        replicates = RESULT["replicates"] // (2 if name.startswith("central") else 1)
        assert max(wrong for wrong, _ in cells) <= chance(replicates, 2), name
        assert np.mean([wrong for wrong, _ in cells]) <= chance(replicates, 1), name


def test_the_page_shows_the_table():
    page = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    _, _, rest = page.partition(TOOL["BEGIN"])
    block, end, _ = rest.partition(TOOL["END"])
    assert end
    assert block.strip() == TOOL["table"](RESULT)
