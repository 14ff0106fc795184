"""A module of a paper's folder defines a table, whatever the file is called."""

import importlib
from pathlib import Path

import pytest

import benchmarks
from benchmarks import registry
from benchmarks.cli.main import main
from benchmarks.errors import UserError

ODD = '''"""A study: BENCHMARK = something is in the text alone."""
from dataclasses import replace

from benchmarks.fedsplitbert import tables

BENCHMARK{annotation} = replace(tables.TABLE3, id="{id}", place="A study")
'''
NONE = {
    "claims": "CLAIMS = ()\n",
    "mentions": "# BENCHMARK = 1\n",
    "similar": "BENCHMARKS = ()\nBENCHMARK_ID = 1\n",
    "imports": "from benchmarks.fedsplitbert.tables import TABLE3 as BENCHMARK\n",
}


@pytest.fixture
def paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of a paper, in place of the others."""
    folder = tmp_path / "oddpaper"
    folder.mkdir()
    monkeypatch.setattr(registry, "_ROOT", tmp_path)
    monkeypatch.setattr(benchmarks, "__path__", [*benchmarks.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    return folder


@pytest.mark.parametrize("annotation", ["", ": object"])
def test_adding_a_file_is_enough(paper, annotation):
    name = "annotated_2" if annotation else "zz9_study"
    (paper / f"{name}.py").write_text(ODD.format(id=f"oddpaper-{name}", annotation=annotation), encoding="utf-8")
    for other, text in NONE.items():
        (paper / f"{other}.py").write_text(text, encoding="utf-8")
    assert registry.benchmark_ids() == [f"oddpaper-{name}"]
    assert registry.benchmark(f"oddpaper-{name}").place == "A study"
    for other in NONE:
        with pytest.raises(UserError, match=f"unknown benchmark 'oddpaper-{other}'"):
            registry.benchmark(f"oddpaper-{other}")


def test_the_list_fits_a_terminal_and_counts_cells_that_have_a_record(capsys, tmp_path):
    counts = {}
    for scale in ("lite", "demo"):
        assert main(["list", "--scale", scale, "--results-dir", str(tmp_path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 80
        counts[scale] = {line.split()[0]: line.split()[1] for line in lines if line.count("/")}
    assert counts["lite"]["fedsplitbert-table1"] == "9/9"
    assert counts["demo"]["fedsplitbert-table1"] == "0/9"
    assert counts["demo"].keys() == set(registry.benchmark_ids())
