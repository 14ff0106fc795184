"""A rehearsal: real shapes of the paper scale, nothing recorded."""

from pathlib import Path

import pytest

from benchmarks.cli import rehearse
from benchmarks.cli.main import main
from benchmarks.cli.rehearse import distinct
from benchmarks.tasks import task
from fedsim.errors import FederationError


def test_numbers_among_options_make_no_other_method():
    runs = [(cell.algorithm, task(cell.task).objective) for _, cell in distinct(["fedsplitbert-table4"])]
    assert sorted(runs) == [
        (name, kind) for name in ("fedavg", "fedsplitbert") for kind in ("classification", "regression")
    ]
    assert all(cell.scale == "paper" for _, cell in distinct(["fedbert-table6"]))


def test_a_failure_is_named_and_the_others_are_rehearsed(monkeypatch, capsys):
    def step(cell, located):
        if cell.algorithm == "fedavg":
            raise FederationError("no room")
        return 0.5

    monkeypatch.setattr(rehearse, "step", step)
    assert main(["rehearse", "fedsplitbert-table4"]) == 2
    out, error = capsys.readouterr()
    assert "failed: FederationError: no room" in out
    assert "bert-base-uncased (random weights), pooled, 128 tokens: loss 0.5" in out
    assert "rehearsals failed, of the rows fedsplitbert-table4, " in error


@pytest.mark.slow
def test_each_method_and_model_takes_a_step(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["rehearse"]) == 0
    assert not list(Path(tmp_path).iterdir())
