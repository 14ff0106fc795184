"""Wrong inputs: status 2, one clear message that says what to do, and earlier results as they were."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.cli.run import summary
from benchmarks.cli.select import Selection
from benchmarks.errors import UserError
from benchmarks.events import CellFailed
from benchmarks.federation import load_inputs
from benchmarks.registry import benchmark
from benchmarks.settings import Settings, require_machine
from benchmarks.spec import Cell
from benchmarks.stages import earlier_stages

TABLE = "fedsplitbert-table3"
ROOT = Path(__file__).resolve().parents[2]
Refusal = Callable[..., str]
Words = Callable[..., list[str]]
Contents = Callable[[Path], dict[str, bytes]]


# ---- words that are refused before anything is loaded ----------------------------------------------------------

RUN = ["run", TABLE, "--no-tracking"]
WORDS = {
    "unknown command": (["runn"], "invalid choice: 'runn'"),
    "unknown flag": ([*RUN, "--sacle", "lite"], "unrecognized arguments: --sacle"),
    "no benchmark": (["run"], "required: id"),
    "unknown benchmark": (["run", "fedsplit-table9"], "unknown benchmark 'fedsplit-table9': expected one of"),
    "misspelled benchmark": (["plan", "fedsplitbert-tabel3"], "Did you mean 'fedsplitbert-table3'?"),
    "unknown task": ([*RUN, "--tasks", "squad"], "unknown task 'squad': expected one of mrpc, cola"),
    "misspelled task": ([*RUN, "--tasks", "mrcp,rte"], "Did you mean 'mrpc'?"),
    "unknown method": ([*RUN, "--methods", "scaffold"], "unknown method 'scaffold': expected one of"),
    "misspelled method": ([*RUN, "--methods", "fedavgg"], "Did you mean 'fedavg'?"),
    "unknown scale": ([*RUN, "--scale", "huge"], "unknown scale 'huge': expected one of demo, lite, literal, paper"),
    "misspelled scale": (["plan", TABLE, "--scale", "Lite"], "Did you mean 'lite'?"),
    "no seeds": ([*RUN, "--seeds", "0"], "--seeds: expected a whole number above 0, found '0'"),
    "seeds in words": ([*RUN, "--seeds", "abc"], "--seeds: expected a whole number above 0, found 'abc'"),
    "negative seeds": ([*RUN, "--seeds=-1"], "--seeds: expected a whole number from 0 to 10,000, found "),
    "seeds that fall": (
        [*RUN, "--seeds", "10-5"],
        "--seeds: expected a number of seeds up to 10,000, or the first and the last, such as 5-10, found '10-5'",
    ),
    "a range in words": ([*RUN, "--seeds", "a-b"], "--seeds: expected a whole number from 0 to 10,000, found 'a'"),
    "a range to a word": ([*RUN, "--seeds", "5-b"], "--seeds: expected a whole number from 0 to 10,000, found 'b'"),
    "a range without an end": ([*RUN, "--seeds", "5-"], "--seeds: expected a whole number from 0 to 10,000, found "),
    "a range of three": ([*RUN, "--seeds", "1-2-3"], "--seeds: expected a whole number from 0 to 10,000, found '2-3'"),
    "a range below 0": ([*RUN, "--seeds=-3"], "--seeds: expected a whole number from 0 to 10,000, found "),
    "a range beyond the last seed": (
        [*RUN, "--seeds", "5-10001"],
        "--seeds: expected a whole number from 0 to 10,000, found '10001'",
    ),
    "a range of too many seeds": (
        [*RUN, "--seeds", "0-10000"],
        "--seeds: expected a number of seeds up to 10,000, or the first and the last, such as 5-10, found '0-10000'",
    ),
    "a seed and a range": ([*RUN, "--seed", "1", "--seeds", "2-3"], "--seeds: not allowed with argument --seed"),
    "executor": ([*RUN, "--executor", "cloud"], "--executor: invalid choice: 'cloud'"),
    "address of no Ray": (
        [*RUN, "--ray-address", "head:6379"],
        "--ray-address: expected with --executor ray, found processes",
    ),
    "words for no SLURM": (
        [*RUN, "--slurm", "partition=gpu"],
        "--slurm: expected with --executor slurm, found processes",
    ),
    "workers in words": ([*RUN, "--workers", "abc"], "--workers: expected a whole number above 0, found 'abc'"),
    "no threads": ([*RUN, "--threads", "0"], "--threads: expected a whole number above 0, found '0'"),
    "a seed below 0": ([*RUN, "--seed", "-1"], "--seed: expected a whole number from 0 to 10,000, found '-1'"),
    "a seed and seeds": ([*RUN, "--seed", "1", "--seeds", "2"], "--seeds: not allowed with argument --seed"),
    "too many seeds": (
        [*RUN, "--seeds", "1000000000"],
        "--seeds: expected a number of seeds up to 10,000, or the first and the last, such as 5-10, found '1000000000'",
    ),
    "too many threads": ([*RUN, "--threads", "1" + 12 * "0"], "--threads: expected a number from 1 to 1,024, found"),
    "too many workers": ([*RUN, "--workers", "1000000000"], "--workers: expected a number from 1 to 1,024, found"),
    "no scale": ([*RUN, "--scale", ""], "--scale: expected something, found ''; leave it out"),
    "no tasks": ([*RUN, "--tasks", " , "], "--tasks: expected names between commas, found"),
    "a device of Ray's": (
        [*RUN, "--executor", "ray", "--device", "gpu"],
        "device 'gpu': expected cpu, cuda, or cuda:0",
    ),
    "empty results": ([*RUN, "--results-dir", ""], "--results-dir: expected something, found ''"),
    "empty data": ([*RUN, "--data-dir", " "], "--data-dir: expected something, found ' '"),
    "endless results": ([*RUN, "--results-dir", "x/" * 3000], "--results-dir: expected a path of at most 3000 bytes"),
    "port in words": (["ui", "--port", "http"], "--port: expected a whole number above 0, found 'http'"),
    "port zero": (["ui", "--port", "0"], "--port: expected a whole number above 0, found '0'"),
    "unknown score": (["report", "--score", "first"], "--score: invalid choice: 'first'"),
    "unknown field": ([*RUN, "--set", "training.round=2"], "--set training.round: unknown field; expected one of"),
    "no assignment": ([*RUN, "--set", "training.rounds"], "expected field=value, such as"),
    "float for int": ([*RUN, "--set", "training.rounds=1.5"], "training.rounds: expected int such as"),
    "text for int": ([*RUN, "--set", "training.rounds=two"], "training.rounds: expected int such as"),
    "text for float": ([*RUN, "--set", "training.learning_rate=fast"], "learning_rate: expected float such as"),
    "number for text": ([*RUN, "--set", "codec=16"], "codec: expected str such as 'fp32', found 16"),
    "no number": ([*RUN, "--set", "training.learning_rate=NaN"], "training.learning_rate"),
    "infinite": ([*RUN, "--set", "training.participation=1e999"], "training.participation"),
    "unknown encoder": (["plan", TABLE, "--backbone", "nobody/no-such-bert"], "BACKBONE to a folder that holds"),
    "encoder nowhere": (["plan", TABLE, "--backbone", "./no/such/folder"], "expected config.json"),
}


@pytest.mark.parametrize("case", WORDS)
def test_words(case: str, refusal: Refusal, results: Path) -> None:
    words, expected = WORDS[case]
    placed = words if not words or words == ["runn"] else [*words, "--results-dir", str(results)]
    assert expected in refusal(placed)


@pytest.mark.xfail(strict=True, reason="the message says that it found ''")
@pytest.mark.parametrize("text", ["-3", "5-", "-"])
def test_a_refusal_of_seeds_names_what_was_given(text: str, refusal: Refusal, results: Path) -> None:
    assert repr(text) in refusal([*RUN, f"--seeds={text}", "--results-dir", str(results)])


# ---- values that a cell refuses --------------------------------------------------------------------------------

VALUES = {
    "options.critical_layer=13": "critical layer 13: expected 0 to 12, of the paper's 12 layers",
    "options.critical_layer=-1": "critical layer -1: expected 0 to 12",
    "options.critical_layer=two": "critical layer",
    "options.critical_layer=1.5": "critical layer",
    "options.dropout=0.5": "fedsplitbert: unknown options ['dropout']",
    "options.embeddings=melted": "embeddings: expected one of frozen, global, local, found 'melted'",
    "options.proximal=-0.1": "proximal: expected a weight >= 0, found -0.1",
    "options.proximal=much": "proximal",
    "options.server=adam": "server",
    "options.server=3": "server",
    "options.server.name=sgdd": "unknown server optimiser 'sgdd': expected one of sgd, adam, yogi, adagrad",
    "options.server.friction=0.5": "server optimiser: unknown options ['friction']",
    "options.server.momentum=1": "expected 0 <= momentum < 1",
    "options.server.nesterov=true": "expected momentum with sgd, and nesterov with momentum",
    "training.rounds=0": "training.rounds: expected a number above 0, found 0",
    "training.learning_rate=-1": "training.learning_rate: expected a number above 0, found -1.0",
    "training.batch_size=0": "training.batch_size: expected a number above 0, found 0",
    "training.weight_decay=-1": "training.weight_decay",
    "training.participation=0": "participation: expected a share in (0, 1], found 0.0",
    "training.participation=2": "participation: expected a share in (0, 1], found 2.0",
    "training.precision=fp8": "unknown precision 'fp8': expected auto, fp32, bf16, fp16",
    "training.precision=fp16": "precision fp16 needs a GPU",
    "training.padding=widest": "training.padding: expected longest or fixed, found 'widest'",
    "training.padding=fixed training.max_length=65": "max_length: expected 8 to 64, the positions of tiny, found 65",
    "training.max_length=7": "max_length: expected 8 to 64, the positions of tiny, found 7",
    "codec=fp8": "unknown codec 'fp8': expected one of fp32, fp16, bf16",
    "holdout=dev": "holdout: expected test or validation, found 'dev'",
    "test_share=1": "test_share: expected a share in (0, 1) for the task mrpc, found 1.0",
    "validation_share=1": "validation_share: expected a share in [0, 1), found 1.0",
    "validation_share=0.001": "examples at validation_share 0.001 give",
    "data_seed=-1": "data_seed: expected a whole number from 0 on, or null, found -1",
    "data_seed=one": "--set data_seed: expected int or null",
    "grouped=1": "--set grouped: expected bool",
    "grouped=true test_share=0.001": "test_share 0.001: whole groups of examples leave client 0",
    'partition={"scheme":"dirichlet","alpha":1.0,"capped":"yes"}': "capped must be true or false, found 'yes'",
    "task_version=2": "task mrpc: the cell was defined for version 2",
    "clients=100000": "100000 clients cannot share 240 examples",
    'partition={"scheme":"label-table","shares":[[0.5,0.5],[0.5,0.5],[0.5,0.5]],"size":5000}': "over-draws label 0",
    'partition={"scheme":"alphabetical"}': "unknown partition scheme 'alphabetical', known are",
}


@pytest.mark.parametrize("assignments", VALUES)
def test_values(assignments: str, refusal: Refusal, results: Path, run_words: Words) -> None:
    words = run_words(results, "fedsplitbert", "training.rounds=1", *assignments.split())
    assert VALUES[assignments] in refusal(words)


@pytest.mark.parametrize("device", ["cuda:99", "toaster", "cpu:7", "cuda:", "cuda:x", "cuda:-1", "cuda:٣", "meta"])
@pytest.mark.parametrize("method", ["fedsplitbert", "fedavg"])  # finished, and not
def test_devices_are_checked_before_a_finished_record_is_looked_up(
    device: str, method: str, refusal: Refusal, results: Path, run_words: Words
) -> None:
    words = [*run_words(results, method, "training.rounds=1"), "--device", device]
    assert f"device {device!r}: expected cpu, cuda, or cuda:0, cuda:1 and so on" in refusal(words)


@pytest.mark.parametrize("words", [["--threads", "1000000000000"], ["--workers", "1000000000"]])
def test_numbers_are_checked_before_a_finished_record_is_looked_up(
    words: list[str], refusal: Refusal, results: Path, run_words: Words
) -> None:
    assert "expected a number from 1 to 1,024" in refusal(
        [*run_words(results, "fedsplitbert", "training.rounds=1"), *words]
    )


def test_the_nodes_of_a_cluster_may_have_other_devices() -> None:
    require_machine("cuda:7", executor="slurm")
    with pytest.raises(UserError, match="--threads: expected a number from 1 to 1,024, found 0"):
        require_machine("cpu", threads=0)


def test_one_message_names_every_reason_and_the_cells_that_it_stopped(
    refusal: Refusal, finished_results: Path, tmp_path: Path, run_words: Words
) -> None:
    shutil.copytree(finished_results / "records", tmp_path / "records")
    methods = "fedsplitbert,fedavg,local-majority"  # the first is finished, with c = 6 of 12
    message = refusal(run_words(tmp_path, methods, "training.rounds=1", "options.critical_layer=6"))
    assert message.startswith("2 of 3 cells could not be computed; the others are finished. fedavg: unknown options")
    assert "(MRPC · FedAvg · seed 0)" in message


def test_what_a_cell_begins_from_is_named_and_not_counted_as_a_cell() -> None:
    table = benchmark("fedbfpt-table3")
    scale = table.scale("demo")
    chosen = Selection(table, scale, [table.row("bert-c")], [table.columns[0]], [0])
    [cell] = [cell for _, _, cell in chosen.cells()]
    stage = earlier_stages(cell)[-1]
    failures = [CellFailed(stage, "no passages"), CellFailed(cell, "stopped")]
    message = summary(failures, [cell], chosen)
    assert message.startswith("1 of 1 cells could not be computed. no passages (first: corpus-")
    assert message.endswith(f"stopped ({table.columns[0].name} · BERT-C · seed 0)")


# ---- places ----------------------------------------------------------------------------------------------------


def test_data_directory(refusal: Refusal, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*RUN, "--results-dir", str(results), "--data-dir"]
    assert "expected a folder, found nothing. Set DATA_DIR" in refusal([*words, str(tmp_path / "nowhere")])
    (tmp_path / "file").touch()
    assert "expected a folder, found a file. Set DATA_DIR" in refusal([*words, str(tmp_path / "file")])
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "elsewhere"))
    assert f"data directory {tmp_path / 'elsewhere'}" in refusal(words[:-1])


def test_results_directory_below_a_file(
    refusal: Refusal, results: Path, tmp_path: Path, run_words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    below = tmp_path / "file" / "results"
    assert "cannot be written (Not a directory). Set RESULTS_DIR" in refusal(run_words(below, "fedavg"))
    records = str(results / "records")
    assert "Set RESULTS_DIR" in refusal(["report", "--records", records, "--results-dir", str(below)])
    assert "Set RESULTS_DIR" in refusal(["import", records, "--results-dir", str(below)])
    monkeypatch.setenv("RESULTS_DIR", str(below))
    assert f"results directory {below}" in refusal(RUN)


def test_results_directory_read_only(
    refusal: Refusal, results: Path, run_words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(**_: object) -> None:  # as for anyone but root
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    assert "cannot be written (Permission denied). Set RESULTS_DIR" in refusal(run_words(results, "fedavg"))


@pytest.mark.parametrize("inner", ["records", "checkpoints", "locks"])
def test_folders_in_the_results_are_tried_before_hours_of_training(
    inner: str, refusal: Refusal, tmp_path: Path, run_words: Words
) -> None:
    (tmp_path / inner).touch()  # no folder can be made here
    assert str(tmp_path / inner) in refusal(run_words(tmp_path, "local-majority"))


def test_report_and_import_without_records(refusal: Refusal, results: Path, tmp_path: Path) -> None:
    words = ["--results-dir", str(tmp_path)]
    assert "run a benchmark first" in refusal(["report", *words])
    expected = f"{tmp_path / 'none'}: expected a folder of records, found nothing"
    assert expected in refusal(["report", *words, "--records", str(tmp_path / "none")])
    (tmp_path / "records").mkdir()
    assert "belongs to what was asked for: run it first" in refusal(["report", TABLE, *words])
    unrun = ["report", TABLE, "--tasks", "rte", "--results-dir", str(results)]
    assert "belongs to what was asked for: run it first" in refusal(unrun)
    assert "expected a folder of records, found nothing" in refusal(["import", str(tmp_path / "none"), *words])


def test_a_readme_without_its_markers(refusal: Refusal, finished_results: Path, tmp_path: Path) -> None:
    words = ["report", "--records", str(finished_results / "records"), "--results-dir", str(tmp_path), "--set"]
    readme = tmp_path / "README.md"
    asked = [*words, "training.rounds=1", TABLE, "--readme", str(readme)]
    assert str(readme) in refusal(asked)  # there is none
    readme.write_text("# Mine\n")
    assert "reproduced:begin" in refusal(asked)
    assert readme.read_text() == "# Mine\n"


# ---- damaged records -------------------------------------------------------------------------------------------


def shortened(text: str) -> str:
    return text[: len(text) // 2]


def of_another_seed(text: str) -> str:
    value = json.loads(text)
    value["cell"]["seed"] = 7
    return json.dumps(value)


def of_another_schema(text: str) -> str:
    return json.dumps({**json.loads(text), "schema": 99})


RECORDS: dict[str, tuple[Callable[[str], str], str]] = {
    "cut short": (shortened, "found no JSON that can be read"),
    "edited": (of_another_seed, "it was changed after the run"),
    "another schema": (of_another_schema, "record schema 99, this version reads 1"),
    "a list": (lambda _: "[]", "TypeError"),
    "empty": (lambda _: "", "found no JSON that can be read"),
}


@pytest.mark.parametrize("case", RECORDS)
def test_a_damaged_record(
    case: str, refusal: Refusal, finished_results: Path, tmp_path: Path, run_words: Words, contents: Contents
) -> None:
    damage, expected = RECORDS[case]
    copy = tmp_path / "results"
    shutil.copytree(finished_results, copy)
    (record,) = (copy / "records").glob("*.json")
    record.write_text(damage(record.read_text()))
    before = contents(copy)
    for words in (
        run_words(copy, "fedsplitbert", "training.rounds=1"),
        ["report", "--results-dir", str(copy)],
        ["plan", TABLE, "--results-dir", str(copy)],
        ["import", str(copy / "records"), "--results-dir", str(tmp_path / "other")],
    ):
        message = refusal(words)
        assert message.startswith(f"{record}: expected a record of a finished cell, found a damaged one")
        assert expected in message
        assert "move it away to compute the cell again; other records are not touched" in message
    assert contents(copy) == before
    assert not list((tmp_path / "other").rglob("*.json"))


def test_a_record_under_another_cells_name(
    refusal: Refusal, finished_results: Path, tmp_path: Path, run_words: Words, cells_of: Callable[..., list[Cell]]
) -> None:
    (other,) = cells_of(["fedsplitbert"], "training.rounds=2")
    name = f"{other.label}-{other.cell_id(load_inputs(other, Settings()).digests)}.json"
    (tmp_path / "records").mkdir()
    (record,) = (finished_results / "records").glob("*.json")
    shutil.copy(record, tmp_path / "records" / name)
    assert name in refusal(run_words(tmp_path, "fedsplitbert", "training.rounds=2"))


# ---- the process itself ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "fedsplitbert-tabel3"], "Did you mean 'fedsplitbert-table3'?"),
        ([*RUN, "--seeds", "0"], "--seeds: expected a whole number above 0, found '0'"),
        ([*RUN, "--tasks", "mrpc", "--methods", "fedavg", "--set", "holdout=dev"], "holdout: expected test or"),
    ],
)
def test_a_process_ends_with_status_2_and_the_message_alone(
    words: list[str], expected: str, results: Path, message_in: Callable[[str], str]
) -> None:
    command = [sys.executable, "-m", "benchmarks", *words, "--results-dir", str(results)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert expected in message_in(ended.stderr)
