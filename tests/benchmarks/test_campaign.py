"""The evidence campaign: steps as data, resumed after a stop, with the same results as without one."""

import argparse
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import registry
from benchmarks.campaign import protocol
from benchmarks.campaign.protocol import TABLES, Step, steps
from benchmarks.cli import campaign
from benchmarks.cli.arguments import build_parser
from benchmarks.cli.campaign import campaign_command
from benchmarks.results import read_results
from benchmarks.sweeps.tuning import read_sweep
from tests.benchmarks.conftest import outcome

RUN = "run fedsplitbert-table3 --tasks wnli --methods fedavg,local-majority --seeds 5-6 --set training.rounds=3"


@pytest.fixture(autouse=True)
def campaign_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The campaign's tables, isolated from the committed results."""
    monkeypatch.setattr(registry, "_INCLUDED", dict(registry._INCLUDED))
    for module in (campaign, protocol):
        monkeypatch.setattr(module, "RESULTS", tmp_path / "committed")
    protocol.campaign.cache_clear()
    for folder in TABLES:
        registry.include(folder)
    yield
    protocol.campaign.cache_clear()


def parsed(results: Path, *more: str) -> argparse.Namespace:
    return build_parser().parse_args(["campaign", "--results-dir", str(results), "--device", "cpu", *more])


def test_steps_have_numbers_of_their_own():
    numbers = [step.number for step in steps()]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


def test_a_run_whose_rows_are_not_tuned_is_left_out(tmp_path, capsys):
    command = next(command for command in steps()[0].commands if command.startswith("run"))
    assert campaign.run_steps([Step("CoLA", (command,))], parsed(tmp_path), None) == 2
    out = capsys.readouterr().out
    assert "not run, without tuned settings for " in out
    assert all(row in out for row in ("c0", "c6", "c8", "c10"))
    assert not list(tmp_path.rglob("*.json"))


def test_every_cell_of_the_campaigns_table_is_defined():
    """A page of the table requests all cells, including those that no step runs."""
    table = registry.benchmark("fedsplitbert-evidence")
    for scale in table.scales:
        for row in (*table.rows, *table.without_training):
            cells = [table.cell(row, column, scale, 0) for column in table.columns_at(scale)]
            assert len({cell.task for cell in cells}) == len(table.columns_at(scale))


def test_a_finished_steps_runs_of_a_papers_table_move_to_the_papers_records(monkeypatch, tmp_path):
    """Those of an unfinished step and of the campaign's own tables stay; nothing is kept twice.

    The table's definition gets the settings of its sweep, and keeps those for other tasks.
    """
    source = registry.folder_of("fedpeft") / "records"
    one, two, ours = list(read_results(source))[:3]
    for record in (one, two, ours):
        for path in source.glob(f"{Path(record.file_name).stem}*"):
            (tmp_path / "new" / "records").mkdir(parents=True, exist_ok=True)
            shutil.copy(path, tmp_path / "new" / "records")
    elsewhere = replace(two.cell, seed=77)  # not run
    steps = {1: (one.cell, ours.cell), 2: (two.cell, elsewhere)}
    homes = {cell.spec_id: "paper" for cell in (one.cell, two.cell, elsewhere)}

    def committed() -> protocol.Campaign:
        records = tuple(read_results(tmp_path / "committed" / "records"))
        return protocol.Campaign(steps, {}, records, homes, {1: ["paper-table"]})

    def write_choice(path: Path, task: str, rate: float) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        best = {"number": 0, "mean": 0.5, "values": {"training.learning_rate": rate}}
        entry = {"task": task, "method": "d", "score": "accuracy on validation data", "best": best}
        path.write_text(json.dumps({"tunings": [entry]}))

    chosen = tmp_path / "papers" / "paper" / "tuned" / "lite.json"
    write_choice(chosen, "sst2", 0.1)
    write_choice(tmp_path / "new" / "sweeps" / "paper-table-lite.json", "tweets", 0.2)
    table = SimpleNamespace(scale=lambda name: name, search=lambda scale: SimpleNamespace(chosen=chosen))
    monkeypatch.setattr(campaign, "benchmark", lambda name: table)
    committed.cache_clear = lambda: None
    monkeypatch.setattr(campaign, "campaign", committed)
    monkeypatch.setattr(campaign, "ROOT", tmp_path / "papers")
    for _ in range(2):
        campaign._keep(tmp_path / "new")
        names = {
            name: {path.name for path in (tmp_path / name / "records").iterdir()}
            for name in ("papers/paper", "committed")
        }
        assert names["papers/paper"] == {path.name for path in source.glob(f"{Path(one.file_name).stem}*")}
        assert {record.cell_id for record in committed().records} == {two.cell_id, ours.cell_id}
    rates = {entry["task"]: entry["best"]["values"] for entry in read_sweep(chosen)}
    assert rates == {"sst2": {"training.learning_rate": 0.1}, "tweets": {"training.learning_rate": 0.2}}
    assert not committed().missing([1], list(read_results(tmp_path / "papers" / "paper" / "records")))


def test_two_folders_sweeps_are_joined_and_a_journal_is_replaced_only_by_its_continuation(tmp_path):
    """A new results folder has the sweeps of this session alone, in a shorter file than the committed one."""
    one, other = tmp_path / "one" / "sweeps", tmp_path / "other" / "sweeps"
    for folder, tasks, trials in ((one, ("rte", "mrpc"), 8), (other, ("mrpc", "sst2"), 3)):
        folder.mkdir(parents=True)
        entries = [
            {"task": task, "method": "d", "study": f"paper/{task}", "best": None, "trials": [{}] * trials}
            for task in tasks
        ]
        (folder / "paper-table-lite.json").write_text(json.dumps({"tunings": entries}))
    (one / "journal.log").write_text("a\nb\n")
    (other / "journal.log").write_text("a\nc\nd\n")
    campaign._copy_sweeps(other.parent, one.parent)
    joined = {entry["task"]: len(entry["trials"]) for entry in read_sweep(one / "paper-table-lite.json")}
    assert joined == {"rte": 8, "mrpc": 8, "sst2": 3}
    assert (one / "journal.log").read_text() == "a\nb\n"
    (other / "journal.log").write_text("a\nb\nc\n")
    campaign._copy_sweeps(other.parent, one.parent)
    assert (one / "journal.log").read_text() == "a\nb\nc\n"


@pytest.mark.slow
def test_a_stopped_campaign_resumes_to_the_same_results_and_keeps_them(tmp_path, monkeypatch, capsys):
    for module in (campaign, protocol):
        monkeypatch.setattr(module, "SCALE", "demo")
    monkeypatch.setattr(protocol, "steps", list)  # the protocol's have no demo scale
    monkeypatch.setattr(campaign, "steps", lambda: [Step("demo", (RUN,))])
    for seconds in (4.0, 7.0):
        campaign.run_steps(campaign.steps(), parsed(tmp_path / "stopped"), time.monotonic() + seconds)
    assert campaign_command(parsed(tmp_path / "stopped")) == 0
    assert "demo: finished, 4 runs" in capsys.readouterr().out
    assert campaign_command(parsed(tmp_path / "whole", "--keep")) == 0
    assert campaign_command(parsed(tmp_path / "taken in", "--status")) == 0
    stopped, whole, taken_in = (
        {result.cell_id: outcome(result) for result in read_results(tmp_path / name / "records")}
        for name in ("stopped", "whole", "taken in")
    )
    assert stopped == whole == taken_in
    assert len(whole) == 4
