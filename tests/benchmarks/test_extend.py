"""The page on adding one's own: its method, task and table, as they are printed there, run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import benchmarks.tasks
import fedsim.algorithms
from benchmarks import api, registry
from benchmarks.cli.main import main
from benchmarks.dry_run.rounds import wire_plan
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page's files, each where it belongs, and a file of reviews."""
    method, task, table, published = re.findall(r"```(?:python|csv)\n(.*?)```", PAGE, re.DOTALL)
    for place, text in (
        ("methods/fedbias.py", method),
        ("tasks/reviews.py", task),
        ("tables/reviews.py", table),
        ("tables/published.csv", published),
    ):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text, encoding="utf-8")
    lines = [f"{word} film number {number}\t{word}" for number in range(60) for word in ("good", "bad")]
    (tmp_path / "data" / "reviews").mkdir(parents=True)
    (tmp_path / "data" / "reviews" / "reviews.tsv").write_text("\n".join(["text\tverdict", *lines]), encoding="utf-8")
    monkeypatch.setattr(fedsim.algorithms, "__path__", [*fedsim.algorithms.__path__, str(tmp_path / "methods")])
    monkeypatch.setattr(benchmarks.tasks, "__path__", [*benchmarks.tasks.__path__, str(tmp_path / "tasks")])
    benchmarks.tasks._registry.cache_clear()
    monkeypatch.setattr(registry, "_INCLUDED", {})
    monkeypatch.setattr(registry, "_FILES", {})
    yield tmp_path
    benchmarks.tasks._registry.cache_clear()


def test_what_the_page_adds_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = [f"--set={change}" for change in ("training.rounds=1", "training.max_length=16")]
    places = ["--include", str(folder / "tables"), "--data-dir", str(folder / "data")]
    places += ["--results-dir", str(folder / "results"), "--backbone", "tiny"]
    words = ["run", "ours-reviews", "--scale", "lite", *places, *short, "--workers", "1", "--no-tracking"]
    assert main(words) == 0, capsys.readouterr().err
    found = api.load(folder / "results" / "records")
    records = {(record.cell.algorithm, record.cell.options.get("head")): record for record in found}
    assert set(records) == {("local_majority", None), ("fedavg", None), ("fedbias", None), ("fedbias", "local")}
    sent = {name: record.rounds[0].up_bytes for name, record in records.items()}
    assert 0 < sent["fedbias", "local"] < sent["fedbias", None] < sent["fedavg", None] / 10
    for record in records.values():
        plan = wire_plan(record.cell)
        assert (plan.up_bytes, plan.down_bytes) == (record.rounds[0].up_bytes, record.rounds[0].down_bytes)


def test_missing_data_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "data" / "reviews" / "reviews.tsv").unlink()
    places = ["--include", str(folder / "tables"), "--data-dir", str(folder / "data"), "--backbone", "tiny"]
    places += ["--results-dir", str(folder / "results"), "--workers", "1", "--no-tracking"]
    assert main(["run", "ours-reviews", "--scale", "lite", *places]) == 2
    assert "put reviews/reviews.tsv, with the columns text and verdict, there" in capsys.readouterr().err
