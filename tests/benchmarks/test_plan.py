"""`plan`: counted examples, hours from records, reasons for unknown bytes. `rehearse`: real shapes, no records."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cli import rehearse
from benchmarks.cli.main import main
from benchmarks.cli.needs import needs_of
from benchmarks.cli.rehearse import distinct
from benchmarks.costs import GPUS
from benchmarks.dry_run.cache import keep_in
from benchmarks.dry_run.client_costs import SPLIT as SPLIT_METHODS
from benchmarks.dry_run.memory import RESERVED
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.errors import UserError
from benchmarks.registry import benchmark, benchmark_ids, rows_of, scale_of
from benchmarks.results import read_results
from benchmarks.run_config import RunConfig
from benchmarks.running import counting
from benchmarks.running.counts import counted, counted_or_published
from benchmarks.running.federation import build_clients, load_inputs
from benchmarks.running.run_options import RunOptions
from benchmarks.tasks import task
from fedsim.errors import FederationError
from reports.pages.text import human_bytes

FROZEN, SPLIT = "fedfreezebert-table3", "fedsplitbert-table3"
TABLE3 = benchmark(FROZEN)
GIGABYTE = TABLE3.paper.gigabyte


@pytest.fixture
def plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run the command and return its output with single spaces."""

    def run(*arguments: str) -> str:
        assert main(["plan", *arguments, "--results-dir", str(tmp_path)]) == 0
        return " ".join(capsys.readouterr().out.split())

    return run


@pytest.fixture
def values(plan: Callable[..., str]) -> Callable[..., dict[str, Any]]:
    return lambda *arguments: dict(json.loads(plan(*arguments, "--json")))


def cell_of(row: str, scale: str = "demo") -> RunConfig:
    (method,) = rows_of(TABLE3, [row])
    return TABLE3.cell(method, TABLE3.columns[0], scale_of(TABLE3, scale), 0)


@pytest.mark.parametrize(("table", "method"), [(SPLIT, "fedavg"), ("fedbert-pretraining", "fedavg")])
def test_a_folders_encoder_is_planned_by_its_shapes(values, tiny_encoder, data_dir, table, method):
    """Without the hub, which does not have the folder's name; also where the tokenizer determines the examples."""
    options = ("--methods", method, "--gpu", "a6000", "--data-dir", str(data_dir))
    (line, *_) = values(table, *options, "--backbone", str(tiny_encoder))["rows"]
    (built_in, *_) = values(table, *options)["rows"]
    assert line["backbone"] == tiny_encoder.name
    names = ("up_bytes", "down_bytes", "memory", "hours")
    assert [line[name] for name in names] == [built_in[name] for name in names]
    assert line["hours"] > 0


@pytest.mark.parametrize("holdout", ["test", "validation"])
def test_counts_are_those_of_the_clients_that_are_built(holdout):
    for cell in (cell_of("c-psum"), benchmark(SPLIT).cells(TABLE3.scale("demo"), [3])[4][2]):
        held = replace(cell, holdout=holdout)
        clients, _ = build_clients(held, load_inputs(held, RunOptions()), RunOptions())
        assert counted(held, RunOptions()).examples == [len(client.train) for client in clients]


def test_long_texts_count_as_blocks_and_each_evaluation_by_itself():
    table = benchmark("fedbfpt-pretraining")
    cell = table.cell(table.row("fedbfpt"), table.columns[0], table.scale("demo"), 0)
    short = replace(cell, training=replace(cell.training, max_length=24))  # most passages are longer
    clients, _ = build_clients(short, load_inputs(short, RunOptions()), RunOptions())
    assert counted(short, RunOptions()).examples == [len(client.train) for client in clients]
    assert sum(counted(short, RunOptions()).examples) > sum(counted(cell, RunOptions()).examples)
    scores = benchmark("fedpeft-scores")
    both = scores.cell(scores.row("fedit"), scores.columns[0], scores.scale("demo"), 0)
    alone = counted(replace(both, independent=False), RunOptions())
    assert both.independent
    assert counted(both, RunOptions()).scored > alone.scored


def test_generated_data_are_counted(plan):
    out = plan(FROZEN, "--methods", "c-psum,c-average,d-fedavg-psum")
    examples = counted(cell_of("c-psum"), RunOptions()).examples
    said = f"Counted on ArSarcasm-v2's {sum(examples)} training examples"
    assert f"{said}: C-FedFreezeBERT · P-SUM; C-FedFreezeBERT · average." in out
    wire = wire_plan(cell_of("c-psum"), examples=examples)
    assert human_bytes(wire.up_bytes + wire.down_bytes, GIGABYTE) in out
    assert "Bytes unknown" not in out


def test_of_long_texts_a_sample_is_counted_and_its_error_is_printed(plan, monkeypatch):
    table = benchmark("fedbert-pretraining")
    cell = table.cell(table.row("emdavg"), table.columns[0], scale_of(table, "demo"), 0)
    whole = counted(cell, RunOptions())
    monkeypatch.setattr(counting, "WHOLE_CHARACTERS", 1000)
    sample = counted(cell, RunOptions())
    assert whole.error == 0 < sample.error < 0.2
    assert sum(sample.examples) == pytest.approx(sum(whole.examples), rel=1.5 * sample.error)
    out = plan("fedbert-pretraining", "--methods", "emdavg")
    assert f"{sum(sample.examples):,} training examples, by a 5 % sample: ± {sample.error:.1%}" in out


def test_missing_data_are_counted_by_their_published_sizes(tmp_path, values):
    assert counted_or_published(cell_at_paper("qnli-central"), RunOptions(data_dir=tmp_path)).examples == [104_743]
    with pytest.raises(UserError, match="RTE"):  # no size is published here
        counted_or_published(cell_at_paper("rte-central"), RunOptions(data_dir=tmp_path))
    arguments = ("--scale", "paper", "--tasks", "rte-central,qnli-central", "--methods", "scratch", "--gpu", "a6000")
    plan = values("fedbert-table7", *arguments, "--data-dir", str(tmp_path))
    rte, qnli = plan["rows"]
    assert (rte["hours"], rte["published_sizes"], plan["gpu_hours"]) == (None, False, None)
    assert qnli["hours"] > 1
    assert qnli["published_sizes"]
    assert qnli["micro_batch"] == qnli["batch"] == 32


def test_the_sum_of_hours_counts_an_earlier_run_of_two_seeds_once(values):
    options = ("--methods", "bert,bert-fl", "--tasks", "scierc", "--tflops", "1e-6")
    plan = values("fedbfpt-table3", *options, "--gpu", "a6000", "--seeds", "0-1")
    alone, (further, fine_tuning) = (row["stage_hours"] for row in plan["rows"])
    assert plan["gpu_hours"] == pytest.approx(2 * alone[0] + further + 2 * fine_tuning)
    assert plan["hours"] == pytest.approx(plan["gpu_hours"])  # without a GPU's table, too


def cell_at_paper(task: str) -> RunConfig:
    table = benchmark("fedbert-table7")
    (column,) = (column for column in table.columns if column.task == task)
    return table.cell(table.row("scratch"), column, scale_of(table, "paper"), 0)


def test_clipping_by_side_decides_nothing_at_the_paper_scale():
    """The release does not clip in split training, where each party knows only its own gradients."""
    for table in map(benchmark, benchmark_ids()):
        for scale in (scale for scale in table.scales if scale.id == "paper"):
            split = [cell for _, _, cell in table.cells(scale, [0]) if cell.algorithm in SPLIT_METHODS]
            assert all(c.training.clip_norm is None or c.training.clip_scope == "model" for c in split), table.id


@pytest.mark.slow
@pytest.mark.parametrize("paper", ["fedbert", "fedbfpt", "fedfreezebert", "fedpeft", "fedsplitbert"])
def test_each_method_and_model_of_the_paper_scale_fits_a_gpu_in_a_number_of_hours(paper, tmp_path, data_dir):
    keep_in(tmp_path)
    options = RunOptions(tmp_path, data_dir)
    for place, cell in distinct([paper]):
        for gpu in (GPUS["v100-32"], GPUS["a6000"]):
            needs = needs_of(cell, gpu, options)
            assert needs["hours"] is not None, place
            if needs["memory"]:
                assert needs["memory"]["total"] <= (1 - RESERVED) * gpu.memory, place
                assert 1 <= needs["micro_batch"] <= needs["batch"], place
                assert min(needs["scored_at_once"], needs["hours"]) > 0, place


@pytest.mark.slow
def test_a_second_plan_is_the_same_and_needs_no_torch(tmp_path):
    args = [SPLIT, "--methods", "fedavg", "--gpu", "a6000", "--results-dir", str(tmp_path), "--json"]
    code = "import sys; from benchmarks.cli.main import main; main(sys.argv[1:]); print('torch' in sys.modules)"
    first, second = (
        subprocess.run([sys.executable, "-c", code, "plan", *args], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first.removesuffix("True\n") == second.removesuffix("False\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--scale", "lite", "--tasks", "arsarcasm"], "on the number of examples; name the data folder with"),
        (["--scale", "lite", "--tasks", "arsarcasm", "--data-dir", "docs"], "looked in docs"),
        (["--set", "options.features=trimmed"], "the bytes depend on the texts themselves"),
    ],
)
def test_unknown_bytes_have_a_reason(arguments, reason, plan):
    out = plan(FROZEN, "--methods", "c-psum,c-hsum", *arguments)
    assert re.search(f"Bytes unknown .*{reason}.*: C-FedFreezeBERT · P-SUM; C-FedFreezeBERT · H-SUM", out)
    assert "Counted on" not in out


@pytest.fixture
def own_files(tmp_path: Path) -> Path:
    """A data directory with ten MRPC pairs."""
    folder = tmp_path / "data" / "MRPC"
    folder.mkdir(parents=True)
    lines = "".join(f"{row % 2}\t{row}\t{row}\tone text {row}\tanother text {row}\n" for row in range(10))
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_text(f"Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n{lines}")
    return tmp_path / "data"


def test_the_plan_says_what_run_would_refuse(values, plan, own_files, tiny_encoder, tmp_path):
    arguments = (SPLIT, "--scale", "lite", "--tasks", "mrpc", "--methods", "fedavg", "--backbone", str(tiny_encoder))
    at = (*arguments, "--data-dir", str(own_files))
    assert values(*at, "--set", 'partition={"scheme": "equal"}', "--set", "clients=2")["obstacles"] == []
    assert "`run` would stop" in plan(*at, "--set", "clients=5")
    (too_few,) = values(*at, "--set", 'partition={"scheme": "equal"}', "--set", "clients=20")["obstacles"]
    assert "test_share" in too_few
    (own_files / "MRPC" / "dev.tsv").unlink()
    (missing,) = values(*at)["obstacles"]
    assert "MRPC lacks dev.tsv" in missing
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "model.safetensors"):
        (bare / name).write_bytes((tiny_encoder / name).read_bytes())
    (no_tokenizer,) = values(*arguments[:-1], str(bare))["obstacles"]
    assert no_tokenizer.startswith(f"{bare}: expected a tokenizer")
    (bare / "model.safetensors").unlink()
    (no_weights,) = values(*arguments[:-1], str(bare))["obstacles"]
    assert no_weights.startswith(f"{bare}: expected weights")


def test_texts_that_an_encoder_has_no_positions_for_are_refused(plan, tiny_encoder):
    arguments = (SPLIT, "--methods", "fedavg", "--backbone", str(tiny_encoder), "--set", "training.max_length=1000")
    assert re.search(r"Bytes unknown \(training.max_length: expected 8 to \d+, the limit of", plan(*arguments))


def test_the_plan_as_json_adds_up(values):
    summary = values("fedsplitbert-table4", "--tasks", "mrpc", "--seeds", "3")
    assert (summary["scale"], summary["seeds"], summary["finished_cells"]) == ("demo", [0, 1, 2], 0)
    once = {row["cell"]: row for row in summary["rows"]}
    assert (summary["cells"], summary["unique_cells"]) == (3 * len(summary["rows"]), 3 * len(once))
    for name in ("up_bytes", "down_bytes", "setup_bytes"):
        assert summary["sum"][name] == 3 * sum(row[name] for row in once.values()) > 0
    assert all(row["up_bytes"] == row["rounds"] * row["up_bytes_per_round"] for row in summary["rows"])


def test_hours_come_from_records_of_similar_cells(values):
    summary = values(SPLIT, "--scale", "lite", "--tasks", "mrpc", "--methods", "fedavg", "--seeds", "2")
    table = benchmark(SPLIT)
    (((_, _, cell)),) = table.cells(table.scale("lite"), [0], [table.row("fedavg")], table.columns[:1])
    fields = "scale", "task", "algorithm", "backbone", "options", "head"
    seconds = [
        record.timing["train_seconds"]
        for record in read_results(Path(__file__).parents[2] / "benchmarks" / "fedsplitbert" / "records")
        if all(getattr(record.cell, name) == getattr(cell, name) for name in fields)
    ]
    assert summary["hours"] == pytest.approx(2 * sum(seconds) / len(seconds) / 3600)
    assert summary["cells_of_unknown_hours"] == 0


def test_equal_tasks_and_methods_without_traffic_are_folded_and_units_are_equal(plan):
    methods = "local-majority,central,local-only,fedavg,fedsplitbert"
    out = plan(SPLIT, "--methods", methods, "--tasks", "mrpc,rte,wnli", "--scale", "lite")
    assert "│ MRPC, RTE, WNLI │ FedAvg │ 6 │ 127.77 MB │" in out
    assert "│ MRPC │ FedSplitBERT │ 6 │ 106.47 MB │" in out  # c differs from task to task
    assert "│ RTE, WNLI │ FedSplitBERT │ 6 │ 63.88 MB │ 127.76 MB │ 0.77 GB │ 0.27 GB │" in out
    assert "Sends nothing: Majority class, per client; Centralised training." in out
    assert "Sends nothing but 0.27 GB one-time: Local only." in out


# ---- rehearse ----------------------------------------------------------------------------------------------------


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
    assert " failed, for fedsplitbert-table4, " in error


@pytest.mark.slow
def test_each_method_and_model_takes_a_step(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(["rehearse"]) == 0
    assert not list(tmp_path.iterdir())
