"""The view of clients' sizes, on partitions that the project's own partitioners made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.record import RoundRecord, RunRecord
from benchmarks.registry import benchmark
from partitions import from_description
from reports.evidence.records import request_for
from reports.pages.page import Page
from reports.pages.plots import render
from reports.views import page

TABLE = benchmark("fedbfpt-appendix5")
PASSAGES = {"corpus-biology": 1301, "corpus-medicine": 600}


def record(row: str, task: str, seed: int = 0) -> RunRecord:
    """A record of so many passages, dealt out as the definition says, but for the part of a corpus that is taken."""
    column = next(column for column in TABLE.columns if column.task == task)
    cell = TABLE.cell(TABLE.row(row), column, TABLE.scale("lite"), seed)
    description = {name: value for name, value in cell.partition.items() if name != "share"}
    labels = np.zeros(PASSAGES[task], dtype=np.int64)
    dealt = from_description(description)(labels, cell.clients, np.random.default_rng(seed))
    inputs = {"data": {"digest": "d0"}, "backbone": {"digest": "b0"}}
    return RunRecord(
        cell=cell,
        cell_id=cell.cell_id({"data": "d0", "backbone": "b0"}),
        inputs=inputs,
        partition=dealt.report.to_json(),
        clients=tuple({"client": client, "train": size} for client, size in enumerate(dealt.report.sizes)),
        rounds=(RoundRecord(1, tuple(range(6)), None, (), {"test": {"perplexity": 9.0}}, (), 0, 0),),
        sampling_errors={},
        setup_bytes=0,
        ledger=(),
        environment={},
        timing={},
        finished="2025-01-01T00:00:00+00:00",
    )


def shown(records: Sequence[RunRecord], scale: str = "lite") -> Page:
    return page(request_for(TABLE, TABLE.scale(scale), records))


@pytest.fixture(scope="module")
def found() -> Page:
    return shown([record(row, task) for row in ("uniform", "skewed") for task in PASSAGES])


def test_obtained_shares_are_those_requested_to_the_passage(found: Page) -> None:
    run = found.frame().query("status == 'run'")
    assert len(run) == 2 * 2 * 6
    for (_, task), part in run.groupby(["row", "column"]):
        assert part["examples"].sum() == PASSAGES[task]
        assert part["requested"].sum() == pytest.approx(100)
        assert (part["requested"] - part["obtained"]).abs().max() <= 100 / PASSAGES[task]
        assert (100 * part["examples"] / PASSAGES[task]).tolist() == pytest.approx(part["obtained"].tolist())


def test_print_is_compared_by_its_share_of_the_centre(found: Page) -> None:
    frame = found.frame().set_index(["row", "column", "client"]).sort_index()
    own = frame.loc["skewed", "corpus-biology", "3"]
    assert own["megabytes"] == 128.37
    assert own["published"] == pytest.approx(100 * 128.37 / 431.48)
    assert own["difference"] == pytest.approx(own["obtained"] - own["published"], abs=0.02)
    uniform = found.frame().query("row == 'uniform'")
    assert uniform["requested"].tolist() == pytest.approx([100 / 6] * len(uniform))


def test_what_is_not_run_says_so_and_nothing_of_the_demo_is_compared(found: Page) -> None:
    missing = found.frame().query("column == 'corpus-computer-science'")
    assert set(missing["status"]) == {"not run"}
    assert missing["obtained"].isna().all()
    assert missing["published"].notna().all()
    assert "Not run: Computer Science." in found.notes
    demo = shown([], "demo").frame()
    assert demo["published"].isna().all()


def test_it_is_drawn_whether_run_or_not(found: Page) -> None:
    assert found.figure is not None
    empty = shown([])
    assert empty.figure is not None
    drawn = [render(figure, "png")[0] for figure in (found.figure, empty.figure)]
    assert all(image.startswith(b"\x89PNG") for image in drawn)
    assert drawn[0] != drawn[1]


def test_seeds_that_differ_are_pointed_out() -> None:
    own = record("uniform", "corpus-biology")
    other = record("uniform", "corpus-biology", seed=1)
    sizes = [*reversed(other.partition["sizes"])]
    uneven = replace(other, partition={**other.partition, "sizes": sizes})
    note = "Uniform, Biology: seeds differ in sizes; the lowest one is shown."
    assert note in shown([own, uneven]).notes
    assert note not in shown([own, other]).notes
