"""Runs that start from another run's weights: that run is computed once, and kills change no result."""

import shutil
from dataclasses import replace

import pytest
import safetensors.torch
import torch

from benchmarks.corrections import PRIOR
from benchmarks.errors import UserError
from benchmarks.executors import run_cells
from benchmarks.registry import benchmark, rows_of, scale_of
from benchmarks.results import RunResult, read_results, stage_bytes
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import KeptWeights, by_stage, earlier_stages, keep_weights
from benchmarks.running.events import CellFinished, CellStarted, Event, RoundFinished
from benchmarks.running.federation import build_federation, load_inputs
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell, run_stage
from reports.evidence.corrections import corrected
from reports.evidence.records import newest_by_place
from tests.benchmarks.conftest import cells_of, outcomes
from tests.kills import killed_before_step

PRETRAINING, TABLE = benchmark("fedbfpt-general"), benchmark("fedfreezebert-table3")


def first_stage(rounds: int = 2) -> RunConfig:
    """The shortest masked language modelling on generated passages."""
    ((_, _, cell),) = PRETRAINING.cells(scale_of(PRETRAINING, "demo"), [0])
    return replace(cell, training=replace(cell.training, rounds=rounds, batch_size=64))


def second_stage(first: RunConfig, row: str = "fedavg-average", rounds: int = 1) -> RunConfig:
    """A classifier on the first stage's encoder."""
    ((_, _, cell),) = TABLE.cells(scale_of(TABLE, "demo"), [0], rows_of(TABLE, [row]))
    return replace(cell, training=replace(cell.training, rounds=rounds, batch_size=64), initial=first)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunOptions:
    """Results with both stages; tests must not change them."""
    settings = RunOptions(results_dir=tmp_path_factory.mktemp("finished"), device="cpu")
    run_cell(second_stage(first_stage()), settings, lambda _: None)
    return settings


def tensors_of(weights: KeptWeights) -> dict[str, torch.Tensor]:
    return dict(safetensors.torch.load(weights.content()))


def test_the_earlier_runs_of_a_cell():
    first = first_stage()
    second = second_stage(first)
    third = replace(second, initial=second, seed=1)
    assert earlier_stages(third) == [first, second]
    assert by_stage([third, second]) == [[first], [second], [third]]
    other = replace(second, seed=2)
    assert by_stage([second, other]) == [[first], [second, other]]
    assert by_stage([replace(second, initial=None)]) == [[replace(second, initial=None)]]


def test_a_run_starts_from_the_weights_of_the_earlier_one(finished):
    first, second = first_stage(), second_stage(first_stage())
    outcome = run_stage(first, finished, lambda _: None)
    left = tensors_of(outcome)
    inputs = load_inputs(second, finished, outcome)
    assert inputs.digests["initial"] == outcome.cell_id
    begun = build_federation(second, inputs, finished).workload.model
    untrained = build_federation(second, load_inputs(second, finished), finished).workload.model
    encoder = sorted(begun.groups.names - begun.groups.head)
    assert encoder
    assert all(torch.equal(begun.parameters[name], left[name]) for name in encoder)
    assert not all(torch.equal(untrained.parameters[name], left[name]) for name in encoder)
    for name in begun.groups.head:  # another head: its own fresh weights
        assert torch.equal(begun.parameters[name], untrained.parameters[name])
    again = replace(first, seed=1, initial=first)  # the same head
    begun = build_federation(again, load_inputs(again, finished, outcome), finished).workload.model
    assert left.keys() == begun.parameters.keys()  # the tied decoder is there once
    assert all(torch.equal(begun.parameters[name], left[name]) for name in left)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_common_earlier_run_is_computed_once_and_first(workers, tmp_path, events):
    first = first_stage(1)
    cells = [second_stage(first), second_stage(first, "c-average")]
    settings = RunOptions(results_dir=tmp_path, device="cpu", workers=workers)
    assert run_cells(cells, settings, events) == 0
    started = [event.cell.spec_id for event in events.of(CellStarted)]
    assert started[0] == first.spec_id
    assert sorted(started[1:]) == sorted(cell.spec_id for cell in cells)
    assert len(events.of(CellFinished)) == 3
    events.clear()
    assert run_cells(cells, settings, events) == 0
    assert not events.of(CellStarted)
    assert all(event.reused for event in events.of(CellFinished))


# ---- missing and damaged weights ----------------------------------------------------------------------------------


def test_missing_weights_are_computed_again_and_the_record_stays(tmp_path, events):
    settings, first = RunOptions(results_dir=tmp_path, device="cpu"), first_stage(1)
    kept = run_stage(first, settings, lambda _: None)
    before = outcomes(settings)
    kept.path.unlink()
    assert run_stage(first, settings, events).sha256 == kept.sha256
    assert outcomes(settings) == before
    assert len(events.of(CellStarted)) == 1


def test_a_finished_run_needs_no_weights(finished, tmp_path, events):
    """As after an import of records without weights."""
    settings = RunOptions(results_dir=tmp_path, device="cpu")
    shutil.copytree(finished.records_dir, settings.records_dir)
    first, second = first_stage(), second_stage(first_stage())
    assert run_cells([second], settings, events) == 0
    assert [event.record.cell for event in events.of(CellFinished)] == [second]
    assert run_cells([first], settings, events, keeps_weights=True) == 0
    assert not events.of(CellStarted)
    assert not (tmp_path / "weights").exists()


def left_by_another_machine(settings: RunOptions, cell: RunConfig) -> None:
    """Weights of the same cell with other bits."""
    outcome = run_stage(cell, settings, lambda _: None)
    changed = {name: value * 1.01 for name, value in tensors_of(outcome).items()}
    keep_weights(settings, cell, outcome.cell_id, safetensors.torch.save(changed))


def test_a_cell_has_one_id_on_every_machine(finished, tmp_path):
    settings, second = RunOptions(results_dir=tmp_path, device="cpu"), second_stage(first_stage())
    left_by_another_machine(settings, first_stage())
    (original,) = (record for record in read_results(finished.records_dir) if record.cell == second)
    here = run_cell(second, settings, lambda _: None)
    assert here.cell_id == original.cell_id
    assert here.inputs["initial"]["digest"] != original.inputs["initial"]["digest"]
    assert here.rounds != original.rounds
    both = newest_by_place([original, here])[second.place_id]
    assert [record.finished for record in both] == [here.finished]


def test_training_does_not_resume_from_other_weights(tmp_path, events):
    settings, second = RunOptions(results_dir=tmp_path, device="cpu"), second_stage(first_stage(1), rounds=2)

    def stop(event: Event) -> None:
        if isinstance(event, RoundFinished) and event.round.round == 1 and any(tmp_path.glob("records/*")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_cell(second, settings, stop)
    assert list(tmp_path.glob("checkpoints/*/state.json"))
    left_by_another_machine(settings, first_stage(1))
    run_cell(second, settings, events)
    assert [event.finished for event in events.of(CellStarted)] == [()]
    assert not list(tmp_path.glob("checkpoints/*"))


def test_damaged_weights_are_refused(tmp_path):
    settings, first = RunOptions(results_dir=tmp_path, device="cpu"), first_stage(1)
    path = run_stage(first, settings, lambda _: None).path
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"the weights are damaged. Remove the file"):
        run_cell(second_stage(first), settings, lambda _: None)


def test_killed_before_each_step_on_the_disk(finished, tmp_path):
    settings, second = RunOptions(results_dir=tmp_path, device="cpu"), second_stage(first_stage())
    kills, within, between = 0, 0, 0
    while len(list(tmp_path.glob("records/*.json"))) < 2 and kills < 60:
        with killed_before_step(kills % 12 + 1):  # each start comes further than the last
            run_cell(second, settings, lambda _: None)
        kills += 1
        within += bool(list(tmp_path.glob("checkpoints/*/state.json")))
        between += len(list(tmp_path.glob("records/*.json"))) == 1
    assert within
    assert between
    assert outcomes(settings) == outcomes(finished)
    run_cell(second, settings, lambda _: None)  # the last kill may have struck while its checkpoint was removed
    assert not list(tmp_path.glob("checkpoints/*/*"))


SHORT = ("training.rounds=2", "training.local_epochs=1")


@pytest.mark.slow
def test_rows_start_from_one_fedavg_and_its_corrected_answers_are_those_of_local_prior(settings):
    (tuned, first) = cells_of(["fedavg-finetuned"], *SHORT) + cells_of(["fedavg"], *SHORT)
    prior = replace(tuned, algorithm="local_prior", options={})
    assert earlier_stages(tuned) == earlier_stages(prior) == [first]
    assert run_cells([tuned, prior], settings, lambda _: None) == 0
    records: dict[str, RunResult] = {record.cell.spec_id: record for record in read_results(settings.records_dir)}
    assert len(records) == 3
    finetuned, adjusted, fedavg = (records[cell.spec_id] for cell in (tuned, prior, first))
    assert finetuned.inputs["initial"] == adjusted.inputs["initial"]
    assert adjusted.inputs["initial"]["cell_id"] == fedavg.cell_id
    without_training = corrected(fedavg, PRIOR)
    assert without_training is not None
    ours, theirs = without_training.rounds[-1], adjusted.rounds[-1]
    sides = ((*each.client_scores, each.pooled_scores) for each in (ours, theirs))
    for one, other in zip(*sides, strict=True):
        for name, value in other["test"].items():  # answers are kept in half precision, which may move one example
            assert one["test"][name] == pytest.approx(value, abs=1.5 / min(fedavg.held_out_counts("test")))
    assert ours.scores["test"] != fedavg.rounds[-1].scores["test"]
    assert stage_bytes(adjusted).up == stage_bytes(adjusted).down == 3 * 2 * 4  # 3 clients, 2 labels
