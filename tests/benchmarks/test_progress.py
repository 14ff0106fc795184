"""What a person sees while cells run, with a clock that the tests move."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from benchmarks.cli import progress
from benchmarks.cli.progress import Estimate, ProgressDisplay, duration
from benchmarks.results import RoundRecord, RunResult, write_result
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellFailed, CellFinished, CellStarted, RoundFinished, Trained
from benchmarks.running.timings import Timings, taken, taken_in

INPUTS = {"data": "d", "backbone": "b"}


class Clock:
    """Seconds that pass when told."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=found.monotonic))
    return found


@pytest.fixture
def cells(cells_of: Callable[..., list[RunConfig]]) -> list[RunConfig]:
    """Two of MRPC and two of RTE, two rounds each."""
    return cells_of(["fedavg", "fedprox"], "training.rounds=2", tasks=["mrpc", "rte"])


def finished_round(number: int, f1: float | None = 0.5) -> RoundRecord:
    scores = {"test": {"f1": f1, "accuracy": 0.75}}
    return RoundRecord(number, (0,), 0.25, (0.25,), scores, (scores,), 4, 4)


def record_of(cell: RunConfig, f1: float | None = 0.5) -> RunResult:
    return RunResult(
        cell, cell.cell_id(INPUTS), {}, {}, (), (finished_round(1), finished_round(2, f1)), {}, 0, (), {},
        {"setup_seconds": 30, "train_seconds": 90}, "",
    )  # fmt: skip


# ---- the estimate ----------------------------------------------------------------------------------------------


def test_an_estimate_needs_some_training(cells: list[RunConfig], clock: Clock) -> None:
    estimate = Estimate(cells)
    assert (estimate.seconds_left(), estimate.text()) == (None, "")
    estimate.started(cells[0], "a", (10, 10), 0)
    assert estimate.seconds_left() is None


def test_without_records_all_runs_count_alike(cells: list[RunConfig], clock: Clock) -> None:
    estimate = Estimate(cells)  # four runs
    estimate.started(cells[0], "a", (10, 10), 0)
    clock.now += 30
    estimate.trained("a", 10)  # half a run in 30 s: three and a half are left
    assert estimate.seconds_left() == pytest.approx(210)


def test_recorded_times_weigh_runs_and_this_machine_sets_the_pace(cells: list[RunConfig], clock: Clock) -> None:
    timings = Timings([(cells[0], 100.0), (cells[2], 300.0)])
    estimate = Estimate([cells[0], cells[2]], timings)
    estimate.started(cells[0], "a", (10, 10), 0)
    clock.now += 100
    estimate.trained("a", 10)  # 50 recorded seconds took 100: 350 of them are left
    assert estimate.seconds_left() == pytest.approx(700)


def test_a_resumed_run_has_less_to_train_and_a_finished_one_nothing(cells: list[RunConfig], clock: Clock) -> None:
    estimate = Estimate(cells[:3])
    estimate.finished(cells[1], "found")
    estimate.started(cells[0], "a", (10, 10), 1)
    clock.now += 20
    estimate.trained("a", 5)  # a quarter of a run in 20 s; a quarter and a whole one are left
    assert estimate.seconds_left() == pytest.approx(100)
    estimate.finished(cells[0], "a")
    assert estimate.seconds_left() == pytest.approx(80)


def test_records_tell_how_long_cells_like_them_take(cells: list[RunConfig], tmp_path: Path) -> None:
    write_result(tmp_path, record_of(cells[0]))
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.json").write_text("[]")
    for found in (taken_in([tmp_path, tmp_path, tmp_path / "nowhere"]), taken([record_of(cells[0])])):
        timings = Timings(found)
        assert timings.seconds(replace(cells[0], seed=7)) == 90
        assert timings.seconds(replace(cells[0], options={"embeddings": "global"})) == 90  # of its method, at least
        assert timings.seconds(cells[2]) is None  # another task


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (150, "2 min"), (5399, "90 min"), (5400, "1.5 h"), (36000, "10.0 h")],
)
def test_durations_in_the_unit_that_reads_best(seconds: float, text: str) -> None:
    assert duration(seconds) == text


# ---- the display -----------------------------------------------------------------------------------------------


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def display(cells: list[RunConfig], output: io.StringIO) -> ProgressDisplay:
    names = {cells[0].spec_id: "MRPC · FedAvg · seed 0", cells[1].spec_id: "MRPC · FedProx · seed 0"}
    return ProgressDisplay("table", cells, names, Console(file=output, width=60))


def test_one_line_for_each_finished_cell_and_none_for_a_round(
    display: ProgressDisplay, cells: list[RunConfig], output: io.StringIO, clock: Clock
) -> None:
    cell_id = cells[0].cell_id(INPUTS)
    with display:
        display(CellStarted(cells[0], cell_id, (), (10, 10)))
        for number in (1, 2):
            clock.now += 5
            display(Trained(cell_id, 10))
            display(RoundFinished(cell_id, finished_round(number)))
        assert output.getvalue() == ""
        display(CellFinished(record_of(cells[0])))
    # 30 + 90 seconds by the record; 3 cells of 20 examples at 2 a second are left. Longer than the console is wide.
    line = "[1/4] MRPC · FedAvg · seed 0: F1 50.00, Acc 75.00 in 2 min  about 30 s left\n"
    assert output.getvalue() == line


def test_a_log_hears_of_long_cells_once_a_minute(
    display: ProgressDisplay, cells: list[RunConfig], output: io.StringIO, clock: Clock
) -> None:
    for cell, rounds in ((cells[0], ()), (cells[1], (finished_round(1),))):
        display(CellStarted(cell, cell.cell_id(INPUTS), rounds, (300, 300)))
    for _ in range(7):
        clock.now += 20
        display(Trained(cells[0].cell_id(INPUTS), 30))
    assert output.getvalue().splitlines() == [
        "MRPC · FedProx · seed 0: goes on after round 1 of 2",
        "[0/4] MRPC · FedAvg · seed 0 15 %; MRPC · FedProx · seed 0 50 %  about 22 min left",
        "[0/4] MRPC · FedAvg · seed 0 30 %; MRPC · FedProx · seed 0 50 %  about 21 min left",
    ]


def test_many_cells_are_a_short_line_and_a_terminal_has_bars_instead(
    cells: list[RunConfig], output: io.StringIO, clock: Clock
) -> None:
    for terminal in (False, True):
        console = Console(file=output, width=60, force_terminal=terminal, color_system=None)
        display = ProgressDisplay("table", cells, {}, console)
        for cell in cells:
            display(CellStarted(cell, cell.cell_id(INPUTS), (), (10, 10)))
        clock.now += 61
        display(Trained(cells[0].cell_id(INPUTS), 10))
    lines = output.getvalue().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("[0/4] ")
    assert "; 1 more  about " in lines[0]


def test_undefined_scores_and_cells_without_a_name(
    display: ProgressDisplay, cells: list[RunConfig], output: io.StringIO
) -> None:
    display(CellFinished(record_of(cells[2], f1=None)))
    assert output.getvalue() == f"[1/4] {cells[2].label}: F1 undefined, Acc 75.00 in 2 min\n"


def test_found_failed_and_resumed_cells_are_marked(
    display: ProgressDisplay, cells: list[RunConfig], output: io.StringIO
) -> None:
    display(CellFinished(record_of(cells[0]), reused=True))
    display(CellStarted(cells[1], cells[1].cell_id(INPUTS), (finished_round(1),), (10, 10)))
    display(CellFailed(cells[1], "training diverged in round 2 [loss nan]"))
    display(CellFailed(cells[2], "training diverged in round 2 [loss nan]"))
    assert not display.running
    assert output.getvalue().splitlines() == [
        "[1/4] MRPC · FedAvg · seed 0: found",
        "MRPC · FedProx · seed 0: goes on after round 1 of 2",
        "[2/4] MRPC · FedProx · seed 0: failed: training diverged in round 2 [loss nan]",
        f"[3/4] {display.names.get(cells[2].spec_id, cells[2].label)}: failed for the same reason",
    ]


def test_bars_in_a_terminal(cells: list[RunConfig], output: io.StringIO) -> None:
    console = Console(file=output, width=120, force_terminal=True, color_system=None)
    cell_id = cells[0].cell_id(INPUTS)
    with ProgressDisplay("table @ demo", cells, {}, console) as display:
        display(CellStarted(cells[0], cell_id, (), (10, 10)))
        display(Trained(cell_id, 10))
        display(RoundFinished(cell_id, finished_round(1)))
        display.bars.refresh()
        display(CellFinished(record_of(cells[0])))
    shown = output.getvalue()
    assert "table @ demo" in shown
    assert "0/4" in shown
    assert "1/4" in shown
    assert "round 1 of 2, loss 0.250" in shown
