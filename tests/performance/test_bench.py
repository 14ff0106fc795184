"""The benchmarks' counts and comparisons, on federations that train in milliseconds. No time is asserted."""

import json
from functools import partial

import pytest
import torch

from benchmarks.performance import federations, flower_job, suite
from benchmarks.performance.suite import Bar, Section
from benchmarks.running.run_options import RunOptions

LENGTHS, VOCABULARY = (4, 9), 512  # of the tiny encoder


@pytest.fixture
def workload():
    return suite.workload_of("tiny", precision="fp32")


@pytest.fixture
def clients():
    return suite.random_clients(3, 16, 2, LENGTHS, VOCABULARY)


def test_results_are_printed_and_kept(tmp_path, monkeypatch, capsys):
    def measured(value):
        section = Section([{"way": "a", "s": 1.5}], [Bar("speed", value, 2)], "A note.")
        monkeypatch.setattr(federations, "engine", lambda repeats: section)
        return suite.run_suite(["engine"], RunOptions(results_dir=tmp_path), repeats=2)

    assert measured(3) == 0
    assert measured(1) == 1
    shown = capsys.readouterr().out
    assert "way a, s 1.5" in shown
    assert "speed: 1 (bar ≥ 2 on any CPU: NOT met)" in shown
    assert "A note." in shown
    result = json.loads((tmp_path / "performance" / "engine.json").read_text())
    assert result["repeats"] == 2
    assert result["bars"][0]["value"] == 1
    assert {"device", "threads", "versions"} <= result["environment"].keys()


def test_engine_and_plain_round_train_the_same_model(workload, clients, monkeypatch):
    """Equal up to the order of sums: both average three clients after an epoch on the same batches."""
    states = []
    run = partial(federations.run_federation, on_round=lambda run: states.append(run.state.shared))
    monkeypatch.setattr(federations, "run_federation", run)
    federations.federation(workload, clients)
    torch.testing.assert_close(states[0], federations.plain_round(workload, clients), rtol=1e-4, atol=1e-6)


def test_flower_gets_the_same_batches_and_the_same_model(tmp_path, workload, clients):
    job = federations.write_job(tmp_path, workload, clients, rounds=2)
    assert json.loads(job.read_text(encoding="utf-8"))["clients"] == len(clients)
    model = flower_job.load_model(tmp_path)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    assert all(torch.equal(state[federations.library_name(name)], value) for name, value in workload.initial.items())
    exchanged = {federations.library_name(name) for name in suite.trained_names(workload)}
    assert set(flower_job.trained_state(model)) == exchanged
    (batch,) = flower_job.load_batches(tmp_path, 1)
    workload.model.network.eval()
    model.eval()
    with torch.inference_mode():
        torch.testing.assert_close(
            model(**batch).logits, workload.model.path_logits(batch).mean(0), rtol=1e-4, atol=1e-5
        )
    flower_job.train(model, [batch], 1e-2)
    changed = {name for name, value in model.state_dict().items() if not torch.equal(value, state[name])}
    assert changed
    assert changed <= exchanged


@pytest.mark.slow
def test_job_runs_in_flower(workload, clients):
    python = federations.flower_python()
    if python is None:
        pytest.skip("needs Flower's environment: make bench FLOWER=1")
    assert len(federations.run_flower(python, workload, clients, rounds=2)) == 2
