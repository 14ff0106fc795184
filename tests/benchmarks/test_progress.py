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
from benchmarks.cli.progress import ProgressDisplay, TimeLeft
from benchmarks.results import RoundRecord, RunResult, write_result
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellFailed, CellFinished, CellPruned, CellStarted, RoundFinished, Trained
from benchmarks.running.timings import Timings, taken, taken_in

INPUTS = {"data": "d", "backbone": "b"}


class Clock:
    """Seconds that pass when a test adds them."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def strftime(self, form: str) -> str:
        return "now"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=clock.monotonic, strftime=clock.strftime))
    return clock


@pytest.fixture
def cells(cells_of: Callable[..., list[RunConfig]]) -> list[RunConfig]:
    """Two of MRPC and two of RTE, two rounds each."""
    return cells_of(["fedavg", "fedprox"], "training.rounds=2", tasks=["mrpc", "rte"])


def finished_round(number: int, f1: float | None = 0.5) -> RoundRecord:
    scores = {"test": {"f1": f1, "accuracy": 0.75}, "validation": {"f1": 1 / number}}
    return RoundRecord(number, (0,), 0.25, (0.25,), scores, (scores,), 4, 4)


def record_of(cell: RunConfig, f1: float | None = 0.5) -> RunResult:
    """A record whose first round is the best on validation data."""
    rounds = finished_round(1, f1), finished_round(2, 0.9)
    timing = {"setup_seconds": 30, "train_seconds": 90}
    return RunResult(
        cell, cell.cell_id(INPUTS), {}, {}, (), rounds, {}, 0, (), {}, timing, "", chosen_by="validation/f1"
    )


# ---- the estimate ------------------------------------------------------------------------------------------------


def test_without_records_all_runs_count_alike(cells: list[RunConfig], clock: Clock) -> None:
    estimate = TimeLeft(cells, Timings())  # four runs
    estimate.start(cells[0], 0.0)
    assert (estimate.seconds(), str(estimate)) == (None, "")
    clock.now += 30
    estimate.train(cells[0], 0.5)  # half a run in 30 s: three and a half are left
    assert estimate.seconds() == pytest.approx(210)


def test_this_machine_sets_the_pace_after_the_first_minute(cells: list[RunConfig], clock: Clock) -> None:
    estimate = TimeLeft([cells[0], cells[2]], Timings([(cells[0], 100.0), (cells[2], 300.0)]))
    estimate.start(cells[0], 0.0)
    clock.now += 100
    estimate.train(cells[0], 0.5)  # 50 recorded seconds took 100; 350 of them are left
    assert estimate.seconds() == pytest.approx(350 * (100 + 60) / (50 + 60))


def test_a_resumed_run_has_less_to_train_and_a_finished_one_nothing(cells: list[RunConfig], clock: Clock) -> None:
    estimate = TimeLeft(cells[:3], Timings())
    estimate.end(cells[1])
    estimate.start(cells[0], 0.5)
    clock.now += 20
    estimate.train(cells[0], 0.75)  # a quarter of a run in 20 s; a quarter and a whole one are left
    assert estimate.seconds() == pytest.approx(100)
    estimate.end(cells[0])
    assert str(estimate) == "about 1.3 min left"


def test_records_tell_how_long_similar_cells_take(cells: list[RunConfig], tmp_path: Path) -> None:
    write_result(tmp_path, record_of(cells[0]))
    (tmp_path / "broken.json").write_text("{")
    for found in (taken_in([tmp_path, tmp_path, tmp_path / "nowhere"]), taken([record_of(cells[0])])):
        timings = Timings(found)
        assert timings.seconds(replace(cells[0], seed=7)) == 90
        assert timings.seconds(replace(cells[0], options={"embeddings": "global"})) == 90  # of its method, at least
        assert timings.seconds(cells[2]) is None  # another task


# ---- the display -------------------------------------------------------------------------------------------------


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def display(cells: list[RunConfig], output: io.StringIO) -> ProgressDisplay:
    names = {cells[0].spec_id: "MRPC · FedAvg · seed 0", cells[1].spec_id: "MRPC · FedProx · seed 0"}
    return ProgressDisplay("table", cells, names, Console(file=output, width=60))


def test_a_finished_cell_shows_the_round_of_its_table(
    display: ProgressDisplay, cells: list[RunConfig], output: io.StringIO
) -> None:
    display(CellFinished(record_of(cells[0])))
    display(CellFinished(record_of(cells[2], f1=None)))
    display(CellFinished(record_of(cells[1]), reused=True))
    assert output.getvalue().splitlines() == [
        "[1/4] MRPC · FedAvg · seed 0: F1 50.00, Acc 75.00 at round 1 in 2.0 min",
        f"[2/4] {cells[2].label}: F1 undefined, Acc 75.00 at round 1 in 2.0 min",
        "[3/4] MRPC · FedProx · seed 0: already finished",
    ]


def test_with_a_log_the_console_has_problems_and_now_and_then_a_line(
    display: ProgressDisplay, cells: list[RunConfig], output: io.StringIO, clock: Clock, tmp_path: Path
) -> None:
    display.log = tmp_path / "logs" / "table.log"
    display(CellFinished(record_of(cells[0])))
    display(CellStarted(cells[1], "id", (finished_round(1),), (300, 300)))
    for _ in range(18):
        clock.now += 20
        display(Trained("id", 10))
    display(CellPruned(cells[1], 1))
    for cell in cells[2:]:
        display(CellFailed(cell, "no data [of this task]"))
    name = cells[2].label
    assert output.getvalue().splitlines() == [
        "MRPC · FedProx · seed 0: resumes after round 1 of 2",
        "[1/4] about 49.0 min left",  # after a minute; the next pauses are two and four minutes
        "[1/4] about 47.0 min left",
        f"[3/4] {name}: failed: no data [of this task]  about 20.0 min left",
    ]
    lines = display.log.read_text(encoding="utf-8").splitlines()
    assert [line.partition("]")[0] for line in lines] == [f"now [{number}/4" for number in (1, 2, 3, 4)]
    assert lines[1] == "now [2/4] MRPC · FedProx · seed 0: pruned after round 1"
    assert lines[3].endswith("failed for the same reason")


def test_bars_in_a_terminal(cells: list[RunConfig], output: io.StringIO) -> None:
    console = Console(file=output, width=120, force_terminal=True, color_system=None)
    with ProgressDisplay("table @ demo", cells, {}, console) as display:
        display(CellStarted(cells[0], cells[0].cell_id(INPUTS), (), (10, 10)))
        display(Trained(cells[0].cell_id(INPUTS), 10))
        display(RoundFinished(cells[0].cell_id(INPUTS), finished_round(1)))
        display.bars.refresh()
        display(CellFinished(record_of(cells[0])))
    for text in ("table @ demo", "0/4", "1/4", "round 1 of 2, loss 0.250"):
        assert text in output.getvalue()
