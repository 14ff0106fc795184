"""A run's record on generated and real data; a restart does not change it."""

import json
import shutil
import subprocess
from dataclasses import replace
from importlib import metadata
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks.cli.main import main
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.results import RunResult, read_result, read_results, write_result
from benchmarks.running.data_split import VALIDATION_SHARE
from benchmarks.running.events import CellStarted
from benchmarks.running.federation import micro_batches_of
from benchmarks.running.process import PACKAGES
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell
from benchmarks.selection import part_of
from benchmarks.tasks import DataSource, task
from fedsim.precision import Precision
from tests.benchmarks.conftest import cells_of, outcome, run_arguments
from tests.conftest import ROOT

METHODS = ("local-majority", "fedavg", "fedadam", "fedsplitbert-qat")
SHORT = ("training.rounds=2", "training.local_epochs=1")


@pytest.fixture(scope="module")
def module_settings(tmp_path_factory: pytest.TempPathFactory) -> RunOptions:
    return RunOptions(results_dir=tmp_path_factory.mktemp("runner"), device="cpu")


@pytest.fixture(scope="module")
def finished(module_settings: RunOptions) -> dict[str, RunResult]:
    """Method -> its record on MRPC after two rounds, computed in this process."""
    cells = cells_of(METHODS, *SHORT)
    records = (run_cell(cell, module_settings, lambda _: None) for cell in cells)
    return dict(zip(METHODS, records, strict=True))


def test_a_record_says_what_was_computed_on_what(finished):
    record = finished["fedsplitbert-qat"]
    environment = record.environment
    assert environment["versions"] == {name: metadata.version(name) for name in PACKAGES}
    assert environment["threads"] == 1
    if (ROOT / ".git").exists():
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
        assert environment["revision"] == head.stdout.strip()
        assert isinstance(environment["modified"], bool)
    assert record.inputs["data"]["digest"] == task("mrpc").generate(0).digest
    assert record.inputs["backbone"]["config"]["num_hidden_layers"] == 4
    assert record.inputs["backbone"]["drawn"] == ["encoder", "pooler"]
    assert record.timing["train_seconds"] > 0
    assert record.timing["peak_memory_bytes"] > 2**20


def test_a_record_says_in_which_parts_batches_were_cut(finished, settings):
    whole = finished["fedsplitbert-qat"]
    assert "micro_batch" not in whole.to_json()
    as_large = run_cell(whole.cell, replace(settings, micro_batch=whole.cell.training.batch_size), lambda _: None)
    assert outcome(as_large) == outcome(whole)
    places = settings.results_dir / "parts"
    parts = run_cell(whole.cell, replace(settings, micro_batch=5, results_dir=places), lambda _: None)
    assert (parts.cell_id, parts.micro_batch, parts.ledger) == (whole.cell_id, 5, whole.ledger)
    assert parts.rounds != whole.rounds  # each part draws dropout anew
    assert outcome(read_result(places / "records" / parts.file_name)) == outcome(parts)
    baseline = finished["local-majority"].cell
    assert run_cell(baseline, replace(settings, micro_batch=5), lambda _: None).micro_batch is None


@pytest.mark.slow
def test_parts_on_a_gpu_fit_its_memory_or_this_runs_share_of_it(settings, monkeypatch):
    """FedAvg of RoBERTa-base on 256 blocks of 512 tokens, on a simulated GPU."""
    cell = part_of("fedbert-pretraining", "paper", ["fedavg"]).runs()[0]
    gpu = Precision(torch.device("cuda"), "bf16")

    def part(gibibytes, **changes):
        memory = SimpleNamespace(total_memory=gibibytes * 2**30)
        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: memory)
        training, _ = micro_batches_of(cell, replace(settings, **changes), gpu)
        return training.size

    assert 1 < part(16) < part(40) <= part(80)
    assert part(80, workers=2) == part(40) == part(40, workers=2)
    assert part(80, workers=2, executor="slurm") == part(80)
    assert part(16, micro_batch=3) == 3
    assert micro_batches_of(cell, settings, Precision(torch.device("cpu"), "fp32"))[0].size is None


def test_a_record_holds_every_round(finished):
    for record in finished.values():
        assert [entry.round for entry in record.rounds] == [1, 2]
        for entry in record.rounds:
            assert entry.cohort == (0, 1, 2)
            for metric in ("f1", "accuracy"):
                values = [scores["test"][metric] for scores in entry.client_scores]
                assert entry.scores["test"][metric] == pytest.approx(np.mean(values))
            assert len(entry.client_losses) == (0 if record.cell.algorithm == "local_majority" else 3)
        assert set(record.sampling_errors["test"]) == {"f1", "accuracy"}


def test_other_data_of_the_same_cell_are_computed_again_with_a_remark(finished, settings, events):
    record = finished["local-majority"]
    inputs = {**record.inputs, "data": {**record.inputs["data"], "digest": "0" * 64}}
    digests = {name: entry["digest"] for name, entry in inputs.items()}
    other = replace(record, inputs=inputs, cell_id=record.cell.cell_id(digests))
    write_result(settings.records_dir, other)
    assert run_cell(record.cell, settings, events).cell_id == record.cell_id
    (started,) = events.of(CellStarted)
    assert started.note == f"data, encoder or method differ from those of {other.file_name}: the cell is computed again"


# 95 % of a client's 1260 examples are held back, and 95 % of the other 63 are scored: 3 to train, 60 to score.
FEW_EXAMPLES = ("training.rounds=1", "test_share=0.95", "holdout=validation", "options.critical_layer=6")


@pytest.mark.slow
def test_a_run_on_real_data_has_the_sizes_the_bytes_and_the_digest_that_can_be_derived(data_dir, encoder_dir, tmp_path):
    args = run_arguments(tmp_path, "fedsplitbert", *FEW_EXAMPLES)
    assert main([*args, "--scale", "lite", "--data-dir", str(data_dir)]) == 0
    (record,) = read_results(tmp_path / "records")

    # 1323 examples of label 0, which is 105 % of the shares of the three clients together.
    assert record.partition["sizes"] == [1260, 1260, 1260]
    assert record.partition["n_examples"] == 4076  # MRPC's 3668 and 408
    assert [client["test"] for client in record.clients] == 3 * [round(VALIDATION_SHARE * 63)]

    hidden, inner = 384, 1536
    layer = 4 * (hidden**2 + hidden) + 2 * hidden * inner + inner + hidden + 4 * hidden
    sent = 3 * 3 * layer * 4  # 3 clients, 3 of 6 layers, 4 bytes a value
    assert record.rounds[0].up_bytes == record.rounds[0].down_bytes == sent
    embeddings, head = (30522 + 512 + 2 + 2) * hidden, 2 * hidden + 2  # one linear layer over the mean of the tokens
    assert record.setup_bytes == 3 * 4 * (embeddings + 6 * layer + head)
    plan = wire_plan(record.cell)
    assert (plan.up_bytes, plan.down_bytes, plan.setup_bytes) == (sent, sent, record.setup_bytes)

    copy = tmp_path / "copy"
    shutil.copytree(data_dir / "glue_data" / "MRPC", copy / "MRPC")  # another place, the other layout
    data = record.inputs["data"]
    assert data["digest"] == task("mrpc").load(DataSource(copy)).digest
    assert (data["origin"], data["skipped"]) == ("folder: MRPC/train.tsv, MRPC/dev.tsv", [])
    assert str(data_dir) not in json.dumps(record.to_json())
    assert 0 < record.rounds[0].train_loss < 2
    assert [0 <= scores["test"]["accuracy"] <= 1 for scores in record.rounds[0].client_scores] == [True] * 3
