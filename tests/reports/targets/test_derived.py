"""What is derived for the paper's encoder, through the real channel, beside what is printed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.costs import WirePlan
from benchmarks.dry_run import wire_plan
from benchmarks.fedsplitbert.figure6 import BENCHMARK as FIGURE6
from benchmarks.fedsplitbert.table6 import BENCHMARK as TABLE6
from benchmarks.record import RunRecord
from benchmarks.spec import Column, Row, Scale
from reports.evidence.equations import derive_costs
from reports.evidence.records import request_for
from reports.pages.page import Grid, Page

RunOf = Callable[..., RunRecord]
Shown = Callable[..., Page]
ROWS = {row.id: row for row in TABLE6.rows}
COLUMNS = {column.task: column for column in FIGURE6.columns}


@functools.cache
def _plan(row: str, codec: str) -> WirePlan:
    """One round of the paper's own encoder, by the real channel."""
    return wire_plan(TABLE6.cell(ROWS[row].changed({"codec": codec}), COLUMNS["mrpc"], TABLE6.scale("paper"), 0))


def derive(row: Row, column: Column, scale: Scale, examples: int | None = None) -> WirePlan:
    assert (column.task, scale.id) == ("mrpc", "paper")
    return _plan(row.id, row.codec)


def cells(grid: Grid, group: str) -> list[tuple[str, tuple[str, ...]]]:
    """Label and cells of every line of a method."""
    found = next(entry for entry in grid.groups if entry.name == group)
    return [(line.label, line.cells) for line in found.lines]


@pytest.fixture(scope="module")
def derived(shown: Shown) -> Grid:
    made = shown([], scale="demo", derive=derive)
    *_, grid = made.grids
    assert grid.title.endswith("(real data, bert-base-uncased), without training, MRPC: the same at every scale")
    return grid


def test_sizes_costs_and_gains_come_out_to_the_printed_digits(derived: Grid) -> None:
    # Size, rounds, cost, gain of rounded sizes, of exact bytes, and the product that it is.
    wanted = {
        "FedAvg": ("1.03", "6", "6.18", "1.0", "1.00", "1 × 1 × 1"),
        "FedProx": ("1.03", "6", "6.18", "1.0", "1.00", "1 × 1 × 1"),
        "FedSplitBERT": ("0.51", "2", "1.02", "6.1", "6.04", "2.01 × 3 × 1"),
        "FedSplitBERT + qat": ("0.26", "2", "0.52", "11.9", "12.08", "2.01 × 3 × 2"),
    }
    for name, numbers in wanted.items():
        ours, published, verdict = cells(derived, name)
        assert ours == ("derived", numbers)
        gain = "1" if numbers[3] == "1.0" else numbers[3]
        assert published == ("reported", (numbers[0], "", numbers[2], gain, "", ""))
        assert verdict == ("verdict", ("as printed", "", "as printed", "as printed", "", ""))


def test_fedadams_size_and_gain_are_not_derivable(derived: Grid) -> None:
    ours, published, verdict = cells(derived, "FedAdam")
    assert ours[1][0] == cells(derived, "FedAvg")[0][1][0]  # it sends what FedAvg sends
    assert published == ("reported", ("1.7", "", "3.4", "1.8", "", ""))
    assert verdict == ("verdict", ("not derivable", "", "not derivable", "not derivable", "", ""))


def test_precision_alone_is_a_row_of_its_own(derived: Grid) -> None:
    (ours,) = cells(derived, "FedAvg + fp16 †")  # not printed
    assert ours == ("derived", ("0.51", "6 (FedAvg's)", "3.06", "2.0", "2.00", "1 × 1 × 2"))
    assert [group.name for group in derived.groups] == [
        "FedAvg", "FedProx", "FedAdam", "FedAvg + fp16 †", "FedSplitBERT", "FedSplitBERT + qat",
    ]  # fmt: skip


def test_the_derived_table_is_the_same_at_every_scale(shown: Shown, derived: Grid, run_of: RunOf) -> None:
    for scale in ("lite", "paper"):
        made = shown([run_of("fedavg", "mrpc", 0.5, scale=scale)], scale=scale, derive=derive)
        assert made.grids[-1] == derived


def test_another_printed_digit_differs(shown: Shown, tmp_path: Any) -> None:
    path = tmp_path / "table6.csv"
    text = TABLE6.published_csv.read_text()
    path.write_text(text.replace("fedsplitbert,parameter_gb,,0.51", "fedsplitbert,parameter_gb,,0.52"))
    made = shown([], replace(TABLE6, published_csv=path), derive=derive)
    _, _, verdict = cells(made.grids[-1], "FedSplitBERT")
    assert verdict[1][0] == "differs"


def test_nothing_is_derived_where_no_sizes_are_printed() -> None:
    request = request_for(FIGURE6, FIGURE6.scale("lite"), [], derive=derive)
    assert derive_costs(request) == ()
