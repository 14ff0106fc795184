"""The evidence campaign: steps as data, resumed after a stop, with the same results as without one."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import pytest

from benchmarks import registry
from benchmarks.cli import campaign
from benchmarks.cli.arguments import build_parser
from benchmarks.cli.campaign import Step, campaign_command, steps
from benchmarks.results import read_results

RUN = "run fedsplitbert-table3 --tasks wnli --methods fedavg,local-majority --seeds 5-6 --set training.rounds=3"


@pytest.fixture(autouse=True)
def demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One step at demo scale; nothing is taken from or kept with the committed results."""
    monkeypatch.setattr(registry, "_INCLUDED", dict(registry._INCLUDED))
    monkeypatch.setattr(campaign, "COMMITTED", tmp_path / "committed")


def parsed(results: Path, *more: str) -> argparse.Namespace:
    return build_parser().parse_args(["campaign", "--results-dir", str(results), "--device", "cpu", *more])


def test_every_step_names_runs_and_sweeps_of_known_rows(tmp_path: Path) -> None:
    every = steps()
    assert [step.number for step in every] == list(range(1, len(every) + 1))
    for step in every:
        assert {command.split()[0] for command in step.commands} <= {"run", "sweep"}
        assert [cell for command in step.commands for cell in campaign._cells(command, parsed(tmp_path))]


def test_the_protocol_fixes_the_number_of_runs(tmp_path: Path) -> None:
    """CoLA: 6 rows × 6 seeds; 2 rows × 4 tasks × 5; 5 × 4 × 5; 2 × 6 × 5; all of them fresh seeds."""
    cells = [
        {cell.spec_id: cell for command in step.commands for cell in campaign._cells(command, parsed(tmp_path))}
        for step in steps()[:4]
    ]
    assert [len(own) for own in cells] == [36, 40, 100, 60]
    assert min(cell.seed for own in cells for cell in own.values()) == 5


def test_a_run_whose_rows_are_not_tuned_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = next(command for command in steps()[0].commands if command.startswith("run"))
    arguments = parsed(tmp_path)
    assert {"c0", "c6", "c8", "c10"} <= set(campaign._untuned_rows(campaign._parsed(command, arguments)))
    assert campaign.run_steps([Step(1, "CoLA", "nothing", (command,))], arguments, None) == 2
    assert "are not tuned" in capsys.readouterr().out
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.slow
def test_a_stopped_campaign_goes_on_and_computes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(campaign, "SCALE", "demo")
    monkeypatch.setattr(campaign, "steps", lambda: [Step(1, "demo", "nothing", (RUN,))])
    arguments = parsed(tmp_path / "stopped")
    for seconds in (4.0, 7.0):
        campaign.run_steps(campaign.steps(), arguments, time.monotonic() + seconds)
    assert campaign_command(arguments) == 0
    assert "Step 1, demo: finished, 4 cells" in capsys.readouterr().out
    assert campaign_command(parsed(tmp_path / "whole")) == 0
    stopped, whole = (
        {result.cell_id: result.outcome for result in read_results(tmp_path / name / "records")}
        for name in ("stopped", "whole")
    )
    assert stopped == whole
    assert len(whole) == 4


@pytest.mark.slow
def test_results_are_kept_and_taken_in_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "SCALE", "demo")
    command = RUN.replace("fedavg,", "").replace("5-6", "5-5")
    monkeypatch.setattr(campaign, "steps", lambda: [Step(1, "demo", "nothing", (command,))])
    assert campaign_command(parsed(tmp_path / "first", "--keep")) == 0
    kept = sorted(path.name for path in (tmp_path / "committed" / "records").iterdir())
    assert len(kept) == 2  # the result and its predictions
    assert campaign_command(parsed(tmp_path / "second", "--status")) == 0
    assert sorted(path.name for path in (tmp_path / "second" / "records").iterdir()) == kept
