"""`report` on several ids and several folders of records, and `make readme`, which asks for both."""

from __future__ import annotations

import csv
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from reports.pages.files import BEGIN, END

ROOT = Path(__file__).resolve().parents[2]
TABLE, FROZEN = "fedsplitbert-table3", "fedfreezebert-table3"


@pytest.fixture(scope="module")
def frozen_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one finished demo cell of FedFreezeBERT."""
    results = tmp_path_factory.mktemp("frozen") / "results"
    words = ["--workers", "1", "--device", "cpu", "--no-tracking", "--results-dir", str(results)]
    assert main(["run", FROZEN, "--methods", "c-ordinary", *words]) == 0
    return results


def test_one_page_from_several_folders(
    finished_results: Path, frozen_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"{BEGIN}\n{END}\n", encoding="utf-8")
    folders = [
        word for results in (finished_results, frozen_results) for word in ("--records", str(results / "records"))
    ]
    places = ["--readme", str(readme), "--pictures", str(tmp_path / "pictures"), "--results-dir", str(tmp_path)]
    # The rounds of the finished cell were changed, so it is one of Table III with that change alone.
    words = ["report", TABLE, FROZEN, "--set", "training.rounds=1", *folders, *places]
    assert main(words) == 0
    text = readme.read_text(encoding="utf-8")
    assert "### FedSplitBERT, Table III · scale demo" in text
    assert "### FedFreezeBERT, Table 3 · scale demo" in text
    pictures = {path.name for path in (tmp_path / "pictures").iterdir() if "-sweep-" not in path.name}
    assert pictures == {f"{TABLE}-demo.png", f"{FROZEN}-demo.png"}
    out = capsys.readouterr().out.splitlines()
    assert [line for line in out if line.startswith(f"{TABLE} @ demo: 1 of ")]
    assert len(out) < 10  # a line for each table, claims, audit and page
    assert main([*words, "--tables"]) == 0
    assert "Method" in capsys.readouterr().out


def test_a_scale_that_some_tables_lack_is_skipped_for_these(
    finished_results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["--records", str(finished_results / "records"), "--results-dir", str(tmp_path)]
    assert main(["report", "--scale", "literal", *places]) == 2
    assert "belongs to what was asked for: run it first" in capsys.readouterr().err
    assert main(["report", "--scale", "huge", *places]) == 2
    assert "unknown scale 'huge'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_part_that_is_run_does_not_replace_the_whole_table(
    tmp_path: Path, run_words: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "reports" / TABLE / "demo" / "table.csv"
    for method, own, other in (
        ("local-majority", "by client", "overall"), ("overall-majority", "overall", "by client")
    ):  # fmt: skip
        assert main(run_words(tmp_path, method)) == 0
        out = capsys.readouterr().out
        assert f"Majority-class baseline, {own}" in out
        # What was run before is not repeated, but for the reference rows.
        assert (f"Majority-class baseline, {other}" in out) == (method == "overall-majority")
    assert main(["report", TABLE, "--methods", "local-majority", "--results-dir", str(tmp_path)]) == 0
    with written.open(encoding="utf-8") as file:
        assert {row["row"] for row in csv.DictReader(file) if row["status"] == "run"} == {
            "local-majority",
            "overall-majority",
        }


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_readme_renders_every_page_that_has_records() -> None:
    command = ["make", "-n", "readme", "INSTALLED="]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folders = sorted(path.parent.name for path in ROOT.glob("benchmarks/*/records"))
    assert "front --scale lite --records" in said
    for paper in folders:
        assert f"report {paper} --readme benchmarks/{paper}/README.md" in said
        assert said.count(f"--records benchmarks/{paper}/records") == 1 + len(folders)
