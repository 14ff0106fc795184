"""The command line in use: help, all tables of a paper, tables outside the tree, data, variables of make."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import registry
from benchmarks.cli.arguments import COMMANDS
from benchmarks.cli.main import main
from benchmarks.errors import UserError
from benchmarks.results import read_results
from benchmarks.running import federation
from benchmarks.running.run_options import RunOptions
from benchmarks.selection import tables_of
from benchmarks.tasks import task

ROOT = Path(__file__).resolve().parents[2]
OWN = """from dataclasses import replace

from benchmarks.fedsplitbert import tables

BENCHMARK = replace(tables.TABLE1, id="{id}", place="Mine", columns=tables.TABLE1.columns[:1])
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's folder with a table; forgotten after the test."""
    monkeypatch.setattr(registry, "_INCLUDED", {})
    monkeypatch.setattr(registry, "_FILES", {})
    folder = tmp_path / "own tables"
    folder.mkdir()
    (folder / "whatever.py").write_text(OWN.format(id="mine-first"), encoding="utf-8")
    (folder / "notes.py").write_text("X = 1\n", encoding="utf-8")
    return folder


def test_without_words_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(f"    {command}" in out for command in COMMANDS)


def test_a_papers_name_means_all_of_its_tables() -> None:
    assert tables_of("fedfreezebert") == [name for name in registry.benchmark_ids() if "fedfreezebert" in name]
    assert tables_of("fedfreezebert-table3") == ["fedfreezebert-table3"]
    with pytest.raises(UserError, match="unknown benchmark 'nobody'"):
        registry.benchmark(*tables_of("nobody"))


def test_tables_outside_the_tree_run_by_their_definition(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own / "second.py").write_text(OWN.format(id="mine-second"), encoding="utf-8")
    places = ["--include", str(own), "--results-dir", str(own / "results")]
    assert main(["list", *places]) == 0
    out = capsys.readouterr().out
    assert "mine-first" in out
    assert "whatever" not in out
    assert main(["run", "mine", *places, "--no-tracking", "--workers", "1", "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert out.count("1 of 1 cells run") == 2  # the same cell, once computed
    assert len(list(read_results(own / "results" / "records"))) == 1


def test_a_folder_without_a_usable_table_is_refused(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, message in (
        (OWN.format(id="fedsplitbert-table1"), "the id fedsplitbert-table1 is taken"),
        ("BENCHMARK = 1\n", "expected BENCHMARK to be a Benchmark, found int"),
        ("import no_such_module\nBENCHMARK = 1\n", "cannot be imported"),
        ("", "found none there"),
    ):
        (own / "whatever.py").write_text(text, encoding="utf-8")
        assert main(["list", "--include", str(own)]) == 2
        assert message in capsys.readouterr().err


def test_data_says_what_a_folder_holds_or_where_to_download_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = ["--results-dir", str(tmp_path / "results")]
    assert main(["data", *results]) == 0
    assert "nyu-mll/glue" in capsys.readouterr().out
    folder = tmp_path / "data" / "RTE"
    folder.mkdir(parents=True)
    for part in ("train", "dev"):
        rows = "\n".join(f"{number}\tA man sleeps {part} {number}.\tHe rests.\tentailment" for number in range(5))
        (folder / f"{part}.tsv").write_text(f"index\tsentence1\tsentence2\tlabel\n{rows}\n", encoding="utf-8")
    assert main(["data", *results, "--data-dir", str(folder.parent)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("ok   rte: 10 examples") for line in lines)
    assert any(line.startswith("none mrpc: ") for line in lines)
    assert main(["data", *results, "--data-dir", str(tmp_path / "nowhere")]) == 2


def test_a_task_without_generated_examples_has_no_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(federation, "task", lambda name: replace(task(name), generate=None))
    federation._task_data.cache_clear()
    with pytest.raises(UserError, match="task mrpc: expected one that makes examples for the demo scale"):
        federation._task_data("mrpc", "generated", RunOptions())


def dry(*words: str) -> subprocess.CompletedProcess[str]:
    """What make would do."""
    if shutil.which("make") is None:
        pytest.skip("needs make")
    own = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(["make", "-n", *words], cwd=ROOT, capture_output=True, text=True, env=own)


def test_a_bad_data_dir_is_refused_before_anything_is_downloaded(tmp_path: Path) -> None:
    refused = dry("fedsplitbert-table3", "SCALE=lite", f"DATA_DIR={tmp_path / 'no'}")
    assert refused.returncode == 2
    assert "expected a folder of your datasets" in refused.stderr
    assert "pip" not in refused.stdout
    assert dry("lint", f"DATA_DIR={tmp_path / 'no'}").returncode == 0


def test_a_variable_that_make_does_not_know_is_refused() -> None:
    for given, meant in (
        ("TASK=mrpc", "TASKS"),
        ("tasks=mrpc", "TASKS"),
        ("SEED=1", "SEEDS"),
        ("data=/data", "DATA_DIR"),
    ):
        refused = dry("fedsplitbert-table3", "VENV=none", given)
        assert refused.returncode == 2
        assert f"unknown variable {given.partition('=')[0]}: did you mean {meant}?" in refused.stderr
    assert "the variables are SCALE" in dry("fedsplitbert-table3", "VENV=none", "COLOUR=red").stderr
    for given in ("CUDA_VISIBLE_DEVICES=0", "PIP_INDEX_URL=x", "MLFLOW_TRACKING_URI=x", "OMP_NUM_THREADS=1", "SEEDS=1"):
        assert dry("fedsplitbert-table3", "VENV=none", given).returncode == 0


def test_ones_own_environment_is_used_as_it_is() -> None:
    shown = dry("fedfreezebert", "SCALE=lite", "VENV=none", "PYTHON=my-python")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.split()[:5] == ["my-python", "-m", "benchmarks", "run", "'fedfreezebert'"]
    assert "pip" not in shown.stdout
