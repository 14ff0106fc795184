"""Views of gains and of split training's seconds; performance profiles."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.costs.networks import TYPICAL, wire_of
from benchmarks.dry_run.shapes import derive_work
from benchmarks.errors import UserError
from benchmarks.fedbert.paper import BLOCKS
from benchmarks.fedbert.split_costs import SplitCosts
from benchmarks.fedbert.tables import TABLE2
from benchmarks.publication import View
from benchmarks.registry import benchmark
from benchmarks.results import RunResult
from reports.evidence.records import request_for
from reports.front.picture import spread_out
from reports.site.profiles import improvement, profile_shares
from reports.views import page

ACC = "test/accuracy"
LENGTH = 512


def test_hours_of_split_training_by_hand():
    """A laptop at home: RoBERTa-small's states of 23 040 texts cross four times, in 90 batches of four messages."""
    costs = SplitCosts(request_for(TABLE2, TABLE2.scale("lite"), ()))
    cell = TABLE2.cell(TABLE2.row("emdavg"), TABLE2.columns[0], TABLE2.scale("paper"), 0)
    work, at, texts = derive_work(cell), TYPICAL["fibre"], BLOCKS / 10
    crossing, mask = 2 * texts * LENGTH * 256 * 4, texts * LENGTH
    at_client = texts * work.client / (0.3 * 358e9) + 4 * 90 * 0.002
    served = texts * work.server / (0.3 * 15.7e12)
    down, up = crossing / at.network.down, (crossing + mask) / at.network.up
    parallel, sequential = (3600 * costs.hours[row, "RoBERTa-small"]["fibre"] for row in ("emdavg", "share"))
    assert parallel == pytest.approx(max(down + up + at_client + served, 10 * served), rel=0.01)
    assert sequential == pytest.approx(10 * (down + up + at_client + served), rel=0.01)
    assert "computed" in list(costs.grids())[-1].title


def test_counts_of_tokens_have_no_operations_by_shapes():
    """The unigram model reads the texts themselves, so neither `time` nor the site says how long it computes."""
    table = benchmark("fedbert-table8")
    row = next(row for row in table.rows if row.algorithm == "unigram")
    assert derive_work(table.cell(row, table.columns[0], table.scale("lite"), 0)) is None


def test_a_wire_without_a_measurement_of_the_codec_is_refused():
    with pytest.raises(UserError, match="--wire gzip: measured for fp32, fp16, bf16, found a run with int8"):
        wire_of("gzip", "int8")


def test_one_round_for_the_reference_and_the_part(table3, record_of):
    """FedAvg is best in its first round on validation data; fine-tuning adds one round after FedAvg's last."""

    def run(row: str, *curve: float) -> RunResult:
        record = record_of(row, "qqp", {ACC: curve[-1]})
        rounds = tuple(
            replace(
                record.rounds[0], round=number, scores={name: {"accuracy": level} for name in ("test", "validation")}
            )
            for number, level in enumerate(curve, start=1)
        )
        return replace(record, rounds=rounds, chosen_by="validation/accuracy")

    view = View("gains", {"reference": "fedavg", "part": "fedprox", "headline": "fedsplitbert"})
    column = next(column for column in table3.columns if column.task == "qqp")
    table = replace(table3, columns=(column,), view=view)
    records = [run("fedavg", 0.80, 0.70), run("fedprox", 0.75), run("fedsplitbert", 0.78, 0.77)]
    frame = page(request_for(table, table.scale("lite"), records)).frame().set_index("row")
    assert [round(frame.gain[row], 6) for row in ("fedprox", "fedsplitbert")] == [5.0, 7.0]
    assert round(frame.beyond["fedsplitbert"], 6) == 2.0
    late = replace(table, view=replace(view, options={**view.options, "at": "late"}))
    frame = page(request_for(late, late.scale("lite"), records)).frame().set_index("row")
    assert [round(frame.gain[row], 6) for row in ("fedprox", "fedsplitbert")] == [0.0, 2.5]


RUNS = {
    "A": {"x": np.array([80.0, 82.0]), "y": np.array([60.0, 60.0])},
    "B": {"x": np.array([81.0, 79.0]), "y": np.array([60.0, 50.0])},
}


def test_improvement_counts_pairs_of_seeds_and_halves_ties():
    probability, interval = improvement("A", "B", RUNS)
    assert probability == pytest.approx((3 / 4 + (0.5 + 1 + 0.5 + 1) / 4) / 2)
    assert probability + improvement("B", "A", RUNS)[0] == pytest.approx(1)
    assert interval is not None
    assert interval[0] < probability < interval[1]


def test_profiles_are_shares_within_a_distance_of_the_best_mean():
    _, shares = profile_shares(RUNS)  # best means: 81 on x, 60 on y
    assert (shares["A"][0], shares["B"][0]) == (pytest.approx((1 / 2 + 1) / 2), pytest.approx((1 / 2 + 1 / 2) / 2))
    assert shares["B"][-1] == 1.0
    assert list(shares["B"]) == sorted(shares["B"])


def test_labels_keep_their_order_and_a_distance():
    assert spread_out([5.0, 0.0, 5.2], 1.0) == pytest.approx([4.6, 0.0, 5.6])
    assert spread_out([0.0, 0.0, 0.0], 2.0) == pytest.approx([-2.0, 0.0, 2.0])


def test_a_shared_earlier_run_counts_once_in_the_bytes_of_all_tasks(table3, record_of):
    """By hand: 40 000 for the earlier run, and 8 000 for each of two tasks, as a mean of two seeds."""
    earlier = record_of("fedavg", "mnli", {ACC: 0.5}, up=(20_000, 20_000))
    records = [
        replace(run, inputs={**run.inputs, "initial": {"cell_id": earlier.cell_id, "digest": "w0"}})
        for task in ("qqp", "qnli")
        for seed in (0, 1)
        for run in [record_of("fedavg", task, {ACC: 0.5}, seed=seed)]
    ]
    columns = [column for column in table3.columns if column.task in ("qqp", "qnli")]
    request = request_for(table3, table3.scale("lite"), [earlier, *records], [table3.row("fedavg")], columns)
    (costs,) = (grid for grid in page(request).grids if "cost" in grid.title)
    assert costs.groups[0].lines[0].cells[1] == "56.00 kB"
