"""The display of running cells and their remaining time, with a simulated clock."""

import io
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from benchmarks.cli import progress
from benchmarks.cli.progress import ProgressDisplay, TimeLeft
from benchmarks.results import RoundRecord, RunResult, write_result
from benchmarks.run_config import RunConfig
from benchmarks.running.events import CellFailed, CellFinished, CellPruned, CellStarted, RoundFinished, Trained
from benchmarks.running.timings import Timings, taken, taken_in
from tests.benchmarks.conftest import cells_of


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that advances when a test adds seconds to `now`."""
    clock = SimpleNamespace(now=1000.0)
    moved = SimpleNamespace(monotonic=lambda: clock.now, strftime=lambda form: "now")
    monkeypatch.setattr(progress, "time", moved)
    return clock


@pytest.fixture
def cells() -> list[RunConfig]:
    """Two of MRPC and two of RTE, two rounds each."""
    return cells_of(["fedavg", "fedprox"], "training.rounds=2", tasks=["mrpc", "rte"])


def finished_round(number: int, f1: float | None = 0.5) -> RoundRecord:
    scores = {"test": {"f1": f1, "accuracy": 0.75}, "validation": {"f1": 1 / number}}
    return RoundRecord(number, (0,), 0.25, (0.25,), scores, (scores,), 4, 4)


def record_of(cell: RunConfig, f1: float | None = 0.5) -> RunResult:
    """A record whose first round is the best on validation data."""
    rounds = finished_round(1, f1), finished_round(2, 0.9)
    timing = {"setup_seconds": 30, "train_seconds": 90}
    cell_id = cell.cell_id({"data": "d", "backbone": "b"})
    return RunResult(cell, cell_id, {}, {}, (), rounds, {}, 0, (), {}, timing, "", chosen_by="validation/f1")


def test_cells_that_train_nothing_give_no_estimate(cells, clock):
    """Two such cells, which spent 25 s on imports, once turned 17 minutes into 4.7 h."""
    idle = [replace(cells[0], algorithm="local_majority", seed=seed) for seed in (0, 1)]
    left = TimeLeft([*idle, *cells], Timings())
    for cell in idle:
        left.start(cell, 0.0)
        clock.now += 25
        left.train(cell, 1.0)
        left.end(cell)
    assert left.seconds() is None
    left.start(cells[0], 0.0)
    clock.now += 50
    left.train(cells[0], 1.0)
    left.end(cells[0])
    assert left.seconds() == pytest.approx(300, rel=0.05)  # a run in 100 s, with the start; three are left
    passes = cells[0].training.rounds * cells[0].training.local_epochs
    work = Timings([(cells[0], 30.0)]).work([*idle, *cells])
    assert work[idle[0].spec_id] == pytest.approx(0.01 * 30 / passes)  # by the pace of the cells with records
    assert work[cells[0].spec_id] == 30


def test_records_give_the_time_of_similar_cells(cells, tmp_path):
    write_result(tmp_path, record_of(cells[0]))
    (tmp_path / "broken.json").write_text("{")
    for times in (taken_in([tmp_path, tmp_path, tmp_path / "nowhere"]), taken([record_of(cells[0])])):
        timings = Timings(times)
        assert timings.seconds(replace(cells[0], seed=7)) == 90
        assert timings.seconds(replace(cells[0], options={"embeddings": "global"})) == 90  # of its method, at least
        assert timings.seconds(cells[2]) is None  # another task


def test_the_log_has_every_cell_and_the_console_problems_and_the_time_left(cells, clock, tmp_path):
    output, log = io.StringIO(), tmp_path / "logs" / "table.log"
    names = {cells[0].spec_id: "MRPC · FedAvg · seed 0", cells[1].spec_id: "MRPC · FedProx · seed 0"}
    display = ProgressDisplay("table", cells, names, Console(file=output, width=60), log=log)
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
    assert log.read_text(encoding="utf-8").splitlines() == [
        "now [1/4] MRPC · FedAvg · seed 0: F1 50.00, Acc 75.00 at round 1 in 2.0 min",  # the round of its table
        "now [2/4] MRPC · FedProx · seed 0: pruned after round 1",
        f"now [3/4] {name}: failed: no data [of this task]",
        f"now [4/4] {cells[3].label}: failed for the same reason",
    ]


def test_bars_in_a_terminal(cells):
    output = io.StringIO()
    console = Console(file=output, width=120, force_terminal=True, color_system=None)
    with ProgressDisplay("table @ demo", cells, {}, console) as display:
        display(CellStarted(cells[0], "id", (), (10, 10)))
        display(Trained("id", 10))
        display(RoundFinished("id", finished_round(1)))
        display.bars.refresh()
        display(CellFinished(record_of(cells[0], f1=None)))
        display(CellFinished(record_of(cells[1]), reused=True))
    for text in ("table @ demo", "0/4", "2/4", "round 1 of 2, loss 0.250", "F1 undefined", "already finished"):
        assert text in output.getvalue()
