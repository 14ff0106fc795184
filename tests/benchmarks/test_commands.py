"""The command line: help, tables outside the tree, `doctor`, invalid inputs and files, closed outputs, make."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cli import run
from benchmarks.cli.arguments import COMMANDS
from benchmarks.cli.main import main
from benchmarks.encoders.tokenization import word_tokenizer
from benchmarks.results import read_results
from benchmarks.tasks.generated import VOCABULARY
from tests.benchmarks.conftest import contents, run_arguments
from tests.conftest import ROOT
from tests.processes import PATIENCE_SECONDS, command

TABLE = "fedsplitbert-table3"
RUN = ["run", TABLE, "--no-tracking"]
TEMPLATE = """from dataclasses import replace

from benchmarks.fedsplitbert import tables

BENCHMARK{annotation} = replace(tables.TABLE1, id="{id}", place="Mine", columns=tables.TABLE1.columns[:1])
"""
NO_TABLE = """'''Its text alone has BENCHMARK = something.'''
# BENCHMARK = 1
BENCHMARKED = BENCHMARK_ID = 1
from benchmarks.fedsplitbert.tables import TABLE3 as BENCHMARK
"""


@pytest.fixture
def table_folder(tmp_path: Path, nothing_included: None) -> Path:
    """A user's folder with a table."""
    folder = tmp_path / "own tables"
    folder.mkdir()
    (folder / "whatever.py").write_text(TEMPLATE.format(id="mine-first", annotation=""), encoding="utf-8")
    (folder / "notes.py").write_text(NO_TABLE, encoding="utf-8")
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_its_help(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert f"python -m benchmarks {command}" in capsys.readouterr().out


def test_tables_outside_the_tree_run_by_their_definition(table_folder, capsys):
    (table_folder / "second.py").write_text(TEMPLATE.format(id="mine-second", annotation=": object"), encoding="utf-8")
    places = ["--include", str(table_folder), "--results-dir", str(table_folder / "results")]
    assert main(["list", *places]) == 0
    out = capsys.readouterr().out
    assert "mine-first" in out
    assert "whatever" not in out
    assert main(["run", "mine", *places, "--no-tracking", "--workers", "1", "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert out.count("1 of 1 cells run") == 2  # the same cell, once computed
    assert len(list(read_results(table_folder / "results" / "records"))) == 1


def test_doctor_and_data_say_what_a_machine_has(tmp_path, capsys):
    results, folder = ["--results-dir", str(tmp_path / "results")], tmp_path / "data" / "RTE"
    assert main(["data", *results]) == 0
    assert "nyu-mll/glue" in capsys.readouterr().out
    folder.mkdir(parents=True)
    for part in ("train", "dev"):
        rows = "\n".join(f"{number}\tA man sleeps {part} {number}.\tHe rests.\tentailment" for number in range(5))
        (folder / f"{part}.tsv").write_text(f"index\tsentence1\tsentence2\tlabel\n{rows}\n", encoding="utf-8")
    places = [*results, "--data-dir", str(folder.parent)]
    assert main(["data", *places]) == 0
    assert any(line.startswith("ok   rte: 10 examples") for line in capsys.readouterr().out.splitlines())
    assert main(["doctor", *places]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "ok   scale demo: ready" in lines
    assert any(line.startswith("ok   results: ") and line.endswith("GiB free") for line in lines)
    (missing,) = (line for line in lines if line.startswith("no   scale paper: missing encoders "))  # not downloaded
    encoders, data = missing.split("; missing data ")
    assert "bert-base-uncased" in encoders
    assert encoders.endswith(": a run downloads or makes them")
    assert {"qnli", "rte-central"} & set(data.partition(":")[0].split(", ")) == {"qnli"}  # RTE is here
    assert sum(line.startswith(("no   scale ", "ok   scale ")) for line in lines) == 4


def test_doctor_refuses_a_wrong_folder(tmp_path, capsys):
    (tmp_path / "results").write_text("", encoding="utf-8")  # a file
    for places in (["--results-dir", str(tmp_path / "results")], ["--data-dir", str(tmp_path / "none")]):
        assert main(["doctor", *places]) == 2
        out = capsys.readouterr().out
        assert "no   settings: " in out
        assert "scale" not in out


# ---- wrong inputs ------------------------------------------------------------------------------------------------

# Twelve that end in the command line itself, before any library is loaded or a file written.
WRONG: dict[str, tuple[list[str], str]] = {
    "misspelled benchmark": (["plan", "fedsplitbert-tabel3"], "Did you mean 'fedsplitbert-table3'?"),
    "unknown flag": ([*RUN, "--sacle", "lite"], "--sacle lite. `python -m benchmarks run --help` lists the options"),
    "unknown table of records": (["report", "fedsplitbert-table33"], "unknown benchmark 'fedsplitbert-table33'"),
    "beginning of a name": (["run", "fedpeft-scores", "--methods", "fedsa"], "Did you mean 'fedsa-lora'?"),
    "unknown task": ([*RUN, "--tasks", "squad"], "unknown task 'squad': expected one of mrpc, cola"),
    "misspelled method": ([*RUN, "--methods", "fedavgg"], "Did you mean 'fedavg'?"),
    "unknown scale": ([*RUN, "--scale", "huge"], "unknown scale 'huge': expected one of demo, lite, literal, paper"),
    "no seeds": ([*RUN, "--seeds", "0"], "--seeds: expected a number of seeds from 1 to 10,000"),
    "seeds backwards": ([*RUN, "--seeds=10-5"], "'10-5'"),
    "too many seeds": ([*RUN, "--seeds=0-10000"], "'0-10000'"),
    "unknown field": ([*RUN, "--set", "training.round=2"], "training.round"),
    "another type": ([*RUN, "--set", "training.rounds=two"], "training.rounds"),
    "no value": (
        ["plan", TABLE, "--set", "partition.size="],
        "--set partition.size: expected an integer of at least 1",
    ),
    "no part of a batch": ([*RUN, "--micro-batch", "0"], "--micro-batch: expected auto, or a whole number above 0"),
    "no such device": ([*RUN, "--tasks", "mrpc", "--device", "toaster"], "device 'toaster': expected cpu, cuda"),
    "no such encoder": (["plan", TABLE, "--backbone", "nobody/no-such-bert"], "BACKBONE to a folder with"),
    "no data folder": ([*RUN, "--data-dir", "/no/such/folder"], "expected a folder, found nothing. Set DATA_DIR"),
    "no records": (["report", TABLE, "--tasks", "rte"], "expected records of fedsplitbert-table3 in "),
}
WRONG_VALUES = {
    "options.critical_layer=13": "critical layer 13: expected 0 to 12, as the paper's model has 12 layers",
    "options.dropout=0.5": "fedsplitbert: unknown option dropout;",
    "training.precision=fp16": "precision fp16 needs a GPU",
    "clients=100000": "100000 clients: expected at least one example for each, found 240 examples;",
    'partition={"scheme":[]}': "unknown partition scheme []: expected one of",
    'partition={"scheme":"alphabetical"}': "unknown partition scheme 'alphabetical': expected one of",
}
WRONG_TABLES = {
    TEMPLATE.format(id="fedsplitbert-table1", annotation=""): "BENCHMARK: expected a new id, found fedsplitbert-table1",
    "BENCHMARK = 1\n": "expected BENCHMARK to be a Benchmark, found int",
    "import no_such_module\nBENCHMARK = 1\n": "cannot be imported",
    "": "found none",
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_input_ends_with_one_message(case, refusal, results):
    arguments, expected = WRONG[case]
    assert expected in refusal([*arguments, "--results-dir", str(results)])


@pytest.mark.parametrize("assignment", WRONG_VALUES)
def test_a_wrong_value_ends_with_one_message(assignment, refusal, results):
    arguments = run_arguments(results, "fedsplitbert", "training.rounds=1", assignment)
    assert WRONG_VALUES[assignment] in refusal(arguments)


@pytest.mark.parametrize("assignment", ["codec=fp8", "head=none", "options.dropout=0.5"])
def test_names_in_settings_are_checked_before_a_job_starts(assignment, refusal, tmp_path):
    assert refusal(run_arguments(tmp_path / "results", "fedsplitbert", assignment)).count("unknown") == 1
    assert not (tmp_path / "results" / "logs").exists()


def test_a_folder_without_a_usable_table_is_refused(table_folder, refusal):
    for text, expected in WRONG_TABLES.items():
        (table_folder / "whatever.py").write_text(text, encoding="utf-8")
        assert expected in refusal(["list", "--include", str(table_folder)])


def test_a_results_folder_below_a_file_is_refused(refusal, tmp_path):
    (tmp_path / "file").touch()
    message = refusal(["list", "--results-dir", str(tmp_path / "file")])
    assert message.endswith("file: expected a folder, found a file; name your runs' folder")
    message = refusal(run_arguments(tmp_path / "file" / "results", "fedavg"))
    assert "cannot be written (Not a directory). Set RESULTS_DIR" in message
    message = refusal(["fetch", "fedsplitbert-iid", "--to", str(tmp_path / "file")])
    assert "cannot be written (File exists). Set --to" in message


def test_a_damaged_record_is_named_and_nothing_is_lost(refusal, finished_results, tmp_path):
    copy = tmp_path / "results"
    shutil.copytree(finished_results, copy)
    (record,) = (copy / "records").glob("*.json")
    record.write_text(record.read_text().replace('"seed": 0', '"seed": 7'))
    before = contents(copy)
    for arguments in (
        run_arguments(copy, "fedsplitbert", "training.rounds=1"),
        ["report", "--results-dir", str(copy)],
        ["import", str(copy / "records"), "--results-dir", str(tmp_path / "other")],
    ):
        message = refusal(arguments)
        assert message.startswith(f"{record}: expected a record of a finished cell, found a damaged one")
        assert "move it away to compute the cell again; other records are not touched" in message
    assert contents(copy) == before
    assert not list((tmp_path / "other").rglob("*.json"))


def test_damaged_records_are_all_named_and_stop_no_other_run_or_import(refusal, finished_results, tmp_path, capsys):
    copy, other = tmp_path / "results", tmp_path / "other"
    shutil.copytree(finished_results, copy)
    damaged = [copy / "records" / name for name in ("a.json", "b.json")]
    for path in damaged:
        path.write_text("{")
    for arguments in (
        ["report", "--results-dir", str(copy)],
        ["import", str(copy / "records"), "--results-dir", str(other)],
    ):
        lines = refusal(arguments).splitlines()
        assert [line.partition(": expected a record of a finished cell")[0] for line in lines] == [*map(str, damaged)]
    assert contents(other / "records") == contents(finished_results / "records")
    assert main(run_arguments(copy, "local-majority")) == 0
    stderr = capsys.readouterr().err
    for path in damaged:
        assert f"warning: left out: {path}: expected a record of a finished cell, found a damaged one" in stderr


# ---- closed outputs ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_reader_may_stop_after_a_line():
    """A pipe to `head -1`: every further write fails."""
    with command("list", stdout=subprocess.PIPE) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=PATIENCE_SECONDS) == 141


@pytest.mark.parametrize(("encoding", "title"), [("ascii", b"Table III ? scale demo"), ("cp1252", b"Table III \xb7 s")])
def test_a_terminal_without_the_characters_and_a_wrong_backend_lose_nothing(encoding, title, results, monkeypatch):
    output = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", output)
    for name, value in {"MPLBACKEND": "nonsense", "COLUMNS": "abc", "TERM": "weird"}.items():
        monkeypatch.setenv(name, value)
    assert main(run_arguments(results, "fedsplitbert", "training.rounds=1")) == 0  # draws the plots again
    output.flush()
    assert title in output.buffer.getvalue()


# ---- make --------------------------------------------------------------------------------------------------------


def dry(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The commands that make would run."""
    if shutil.which("make") is None:
        pytest.skip("needs make")
    clean = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(["make", "-n", *arguments], cwd=ROOT, capture_output=True, text=True, env=clean)


def test_make_refuses_a_missing_data_folder_before_any_download(tmp_path):
    refused = dry(TABLE, "SCALE=lite", f"DATA_DIR={tmp_path / 'no'}")
    assert refused.returncode == 2
    assert "expected a folder with your datasets" in refused.stderr
    assert "pip" not in refused.stdout
    assert dry("lint", f"DATA_DIR={tmp_path / 'no'}").returncode == 0


def test_make_refuses_unknown_variables_and_passes_those_of_its_tools():
    for given, meant in {"TASK=a": "TASKS", "tasks=a": "TASKS", "SEED=1": "SEEDS", "data=/d": "DATA_DIR"}.items():
        refused = dry(TABLE, "VENV=none", given)
        assert refused.returncode == 2
        assert f"unknown variable {given.partition('=')[0]}: did you mean {meant}?" in refused.stderr
    assert "the variables are SCALE" in dry(TABLE, "VENV=none", "COLOUR=red").stderr
    tools = "CUDA_VISIBLE_DEVICES PIP_INDEX_URL HF_HOME MLFLOW_TRACKING_URI OMP_NUM_THREADS TORCH_HOME SEEDS"
    assert dry(TABLE, "VENV=none", *(f"{name}=1" for name in tools.split())).returncode == 0


# ---- wrong files -------------------------------------------------------------------------------------------------


def test_encoders_with_wrong_files_are_refused(refusal, results, tiny_encoder, tmp_path):
    cut, pickled, foreign = folders = [tmp_path / name for name in ("cut", "pickled", "foreign")]
    for folder in folders:
        shutil.copytree(tiny_encoder, folder)
    weights = (cut / "model.safetensors").read_bytes()
    (cut / "model.safetensors").write_bytes(weights[:-1000])
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    fillers = [f"filler{number}" for number in range(600)]  # every word's id is beyond the encoder's 512
    word_tokenizer([*fillers, *VOCABULARY]).save_pretrained(foreign)
    for folder, expected in (
        (cut, "the weights cannot be read"),
        (pickled, "expected weights as model.safetensors, found none"),
        (foreign, "tokenizer, vocabulary: "),
    ):
        message = refusal([*run_arguments(results, "fedavg"), "--backbone", str(folder)])
        assert str(folder) in message
        assert expected in message


def test_a_papers_tables_run_at_the_default_scale_if_they_have_it(monkeypatch):
    names: list[str] = []
    monkeypatch.setattr(run, "_run_table", lambda args: names.append(args.id))
    assert main(["run", "fedpeft"]) == 0
    assert "fedpeft-scores" in names
    assert "fedpeft-even" not in names  # only at larger scales
