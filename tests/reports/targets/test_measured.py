"""Bytes to a target and gains, measured: the tables and the long form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.costs import ModelSizes, WirePlan
from benchmarks.fedsplitbert.figure6 import BENCHMARK as FIGURE6
from benchmarks.fedsplitbert.table6 import BENCHMARK as TABLE6
from benchmarks.record import RunRecord
from benchmarks.spec import Row
from reports import ReportError
from reports.evidence.records import request_for
from reports.evidence.targets import KINDS, find_targets
from reports.pages.page import Grid, Page
from reports.pages.render import markdown

RunOf = Callable[..., RunRecord]
Shown = Callable[..., Page]
ROWS = {row.id: row for row in TABLE6.rows}
COLUMNS = {column.task: column for column in FIGURE6.columns}


def cells(grid: Grid, group: str) -> list[tuple[str, tuple[str, ...]]]:
    """Label and cells of every line of a method."""
    found = next(entry for entry in grid.groups if entry.name == group)
    return [(line.label, line.cells) for line in found.lines]


def grid_to(made: Page, target: str) -> Grid:
    """The table of one kind of target: "the best", "the printed"."""
    return next(grid for grid in made.grids if f": bytes to {target}" in grid.title)


def both(made: Page, group: str) -> list[tuple[str, tuple[str, ...]]]:
    """A method's line to the scale-free target, and to the printed one."""
    return [cells(grid_to(made, target), group)[0] for target in ("the best", "the printed")]


def test_a_gain_is_layers_times_rounds_times_precision(shown: Shown, run_of: RunOf) -> None:
    # FedAvg 40 MB a round, needs 3 to its own 0.84; FedSplitBERT half the values, needs 2; + qat half a value's bytes.
    made = shown(
        [
            run_of("fedavg", "mrpc", 0.5, 0.6, 0.84),
            run_of("fedavg-fp16", "mrpc", 0.5, 0.6, 0.85),
            run_of("fedsplitbert", "mrpc", 0.83, 0.85, 0.8),
            run_of("fedsplitbert-qat", "mrpc", 0.83, 0.84, 0.8),
        ]
    )
    set_up = "0.01"  # 12 000 bytes
    label = "MRPC Acc ≥ 84.00 %"
    wanted = {
        "FedAvg": ("1", "40.00", "3", "120.00", "1.00×", "1 × 1 × 1", set_up),
        "FedAvg + fp16 †": ("1", "20.00", "3", "60.00", "2.00×", "1 × 1 × 2", set_up),
        "FedSplitBERT": ("1", "20.00", "2", "40.00", "3.00×", "2 × 1.50 × 1", set_up),
        "FedSplitBERT + qat": ("1", "10.00", "2", "20.00", "6.00×", "2 × 1.50 × 2", set_up),
        "FedProx": ("not run", "", "", "", "", "", ""),
    }
    for name, line in wanted.items():
        assert both(made, name) == [(label, line)] * 2  # FedAvg's best round is at the printed 84 %
    assert (made.run, made.cells) == (4, 7)
    assert len(made.grids) == 2  # nothing derived


def test_a_target_never_reached_is_censored_and_makes_gains_bounds(shown: Shown, run_of: RunOf) -> None:
    made = shown(
        [
            run_of("fedavg", "mrpc", 0.5, 0.6, 0.7),
            run_of("fedadam", "mrpc", 0.5, 0.6, 0.6),
            run_of("fedsplitbert-qat", "mrpc", 0.85, 0.8, 0.7),
        ]
    )
    to_own, to_printed = both(made, "FedAvg")
    assert to_own[1][2:6] == ("3", "120.00", "1.00×", "1 × 1 × 1")
    assert to_printed[1][2:6] == ("not within 3 rounds", "> 120.00", "–", "–")
    assert [line[1][2:6] for line in both(made, "FedAdam")] == [("not within 3 rounds", "> 120.00", "–", "–")] * 2
    to_own, to_printed = both(made, "FedSplitBERT + qat")
    assert to_own[1][2:6] == ("1", "10.00", "12.00×", "2 × 3 × 2")
    assert to_printed[1][2:6] == ("1", "10.00", "≥ 12.00×", "2 × ≥ 3 × 2")


def test_seeds_that_miss_the_target_are_counted_not_dropped(shown: Shown, run_of: RunOf) -> None:
    made = shown(
        [
            run_of("fedavg", "mrpc", 0.5, 0.6, 0.7),
            run_of("fedavg", "mrpc", 0.5, 0.8, 0.6, seed=1),  # best rounds: 0.7 and 0.8, each its seed's target
            run_of("fedsplitbert", "mrpc", 0.7, 0.75, 0.8),
            run_of("fedsplitbert", "mrpc", 0.7, 0.75, 0.75, seed=1),
            run_of("fedsplitbert-qat", "mrpc", 0.7, 0.75, 0.8),
            run_of("fedsplitbert-qat", "mrpc", 0.75, 0.85, 0.8, seed=1),
            run_of("fedsplitbert-qat", "mrpc", 0.75, 0.85, 0.8, seed=2),  # FedAvg sets it no target
        ]
    )
    (label, base), _ = both(made, "FedAvg")
    assert label == "MRPC Acc ≥ 75.00 %"
    assert base[:5] == ("2", "40.00", "2.50", "100.00", "1.00×")  # rounds 3 and 2
    (_, own), _ = both(made, "FedSplitBERT")
    # One seed needs a round, the other more than 3: more than (20 + 60) / 2 MB.
    assert own[:5] == ("2", "20.00", "1 of 2 seeds; others not within 3 rounds", "> 40.00", "–")
    (_, qat), _ = both(made, "FedSplitBERT + qat")
    assert qat[:6] == ("3", "10.00", "1.50", "15.00", "6.67×", "2 × 1.67 × 2")


def test_what_sends_nothing_reaches_a_target_for_nothing(shown: Shown, run_of: RunOf) -> None:
    made = shown([run_of("fedavg", "mrpc", 0.5, 0.7), run_of("local-majority", "mrpc", 0.8)])
    to_own, to_printed = both(made, "Majority-class baseline, by client †")
    assert to_own[1][:6] == ("1", "0.00", "1", "0.00", "sends nothing", "–")
    assert to_printed[1][2:5] == ("not within 1 round", "–", "–")


def test_without_the_baseline_only_the_printed_target_is_left(shown: Shown, run_of: RunOf) -> None:
    made = shown([run_of("fedsplitbert", "mrpc", 0.85, 0.8)])
    to_own, to_printed = both(made, "FedSplitBERT")
    assert to_own == ("MRPC Acc ≥ –", ("1", "20.00", "–", "–", "–", "–", "0.01"))
    assert to_printed[1][2:5] == ("1", "20.00", "–")


def test_the_baseline_counts_where_it_is_not_shown(shown: Shown, run_of: RunOf) -> None:
    records = [run_of("fedavg", "mrpc", 0.5, 0.6), run_of("fedsplitbert", "mrpc", 0.6, 0.8)]
    made = shown(records, rows=(ROWS["fedsplitbert"],))
    assert both(made, "FedSplitBERT")[0][1][2:5] == ("1", "20.00", "4.00×")
    assert [group.name for group in made.grids[0].groups] == ["FedSplitBERT"]


def test_tasks_that_were_not_run_are_named_not_shown(shown: Shown, run_of: RunOf) -> None:
    made = shown([run_of("fedavg", "rte", 0.5), run_of("fedprox", "wnli", 0.5)], FIGURE6)
    lines = cells(grid_to(made, "the printed"), "FedAvg")
    assert [(label, text[0]) for label, text in lines] == [
        ("RTE Acc ≥ 64.00 %", "1"),
        ("WNLI Acc ≥ 47.00 %", "not run"),
    ]
    assert "Not run: MRPC, QNLI." in made.notes


def test_notes_say_what_the_targets_mean(shown: Shown, run_of: RunOf) -> None:
    made = shown([run_of("fedavg", "mrpc", 0.5)])
    targets = next(note for note in made.notes if note.startswith("Two targets"))
    assert "(MRPC Acc 84 %), which was set for bert-base-uncased and means little for another encoder" in targets
    assert any(note.startswith("Deviation fedadam:") for note in made.notes)
    assert not any(note.startswith("Derived") for note in made.notes)
    assert "sends the tensors that FedAvg sends" in markdown(made)


def test_a_task_without_a_printed_target_is_an_error(shown: Shown, run_of: RunOf) -> None:
    broken = replace(TABLE6, view=replace(TABLE6.view, options={**TABLE6.view.options, "targets": {}}))
    with pytest.raises(ReportError, match="expected a target for mrpc, found none"):
        shown([run_of("fedavg", "mrpc", 0.5)], broken)


@given(data=st.data())
def test_shown_gains_are_ratios_of_shown_bytes(run_of: RunOf, data: Any) -> None:
    scores = st.lists(st.sampled_from([0.2, 0.5, 0.84, 0.9]), min_size=1, max_size=4)
    records = [
        run_of(row, "mrpc", *data.draw(scores), seed=seed)
        for row in ("fedavg", "fedsplitbert", "fedsplitbert-qat")
        for seed in range(data.draw(st.integers(1, 2)))
    ]
    found = find_targets(request_for(TABLE6, TABLE6.scale("lite"), records))
    for kind in KINDS:
        base = found.at(kind, ROWS["fedavg"], COLUMNS["mrpc"])
        for outcome in found.of(kind, COLUMNS["mrpc"]):
            if outcome.gain is None:
                assert not outcome.is_complete
            else:
                assert outcome.is_complete
                assert base.sent is not None
                assert outcome.sent is not None
                assert outcome.gain.total == base.sent.bytes / outcome.sent.bytes
                assert outcome.is_bound == (not base.is_complete)


def numbers(frame: pd.DataFrame, row: str, quantity: str) -> list[tuple[str, float]]:
    """Relation and value of every line of a quantity."""
    lines = frame[(frame["row"] == row) & (frame["quantity"] == quantity)]
    return list(zip(lines["relation"], lines["value"], strict=True))


def test_the_frame_holds_every_quantity_with_its_relation(shown: Shown, run_of: RunOf) -> None:
    records = [run_of("fedavg", "mrpc", 0.5, 0.7), run_of("fedsplitbert-qat", "mrpc", 0.9, 0.9)]

    def derive(row: Row, *_: object) -> WirePlan:
        size = 10**9 if row.codec == "fp16" else 2 * 10**9
        return WirePlan(size, size, 0, {}, ModelSizes(0, 0, 0, 0, 0, 1, True))

    frame = shown(records, derive=derive).frame()
    assert numbers(frame, "fedavg", "bytes") == [("=", 80_000_000), (">", 80_000_000)]
    assert numbers(frame, "fedsplitbert-qat", "gain") == [("=", 8), ("≥", 8)]
    assert numbers(frame, "fedsplitbert-qat", "gain_precision") == [("=", 2), ("=", 2)]
    assert numbers(frame, "fedsplitbert-qat", "gain_rounds") == [("=", 2), ("≥", 2)]
    assert [relation for relation, _ in numbers(frame, "fedprox", "status")] == ["not run"] * 2
    assert numbers(frame, "fedsplitbert-qat", "derived_round_bytes") == [("=", 10**9)]
    (size,) = frame[(frame["row"] == "fedadam") & (frame["quantity"] == "derived_size_gb")].to_dict("records")
    assert (size["value"], size["published"], size["encoder"]) == (2, 1.7, "bert-base-uncased")
    reached = frame[(frame["row"] == "fedavg") & (frame["quantity"] == "rounds")]
    assert list(reached["n_reached"]) == [1, 0]
    assert list(reached["target_percent"]) == pytest.approx([70, 84])


def test_the_frame_holds_what_the_text_states(shown: Shown, run_of: RunOf) -> None:
    frame = shown([run_of("fedavg", "rte", 0.5)], FIGURE6).frame()
    stated = frame[frame["quantity"] == "stated_megabytes"]
    assert set(zip(stated["row"], stated["column"], stated["relation"], stated["published"], strict=True)) == {
        ("fedsplitbert", "rte", "≈", 1000),
        *((row, "rte", "≥", 5000) for row in ("fedavg", "fedprox", "fedadam")),
        *(("fedsplitbert", task, "<", 1000) for task in ("mrpc", "wnli")),
    }
