"""Answers by shapes: keys, and the cache file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.dry_run import client_costs, shapes
from benchmarks.dry_run import rounds as dry_run
from benchmarks.dry_run.shapes import derive_client, key_of, plan_of
from benchmarks.registry import benchmark
from benchmarks.run_config import RunConfig

TABLE = benchmark("fedbfpt-pretraining")
CELL = TABLE.cell(TABLE.row("fedbfpt"), TABLE.columns[0], TABLE.scale("demo"), 0)
FEATURES = benchmark("fedfreezebert-table3")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache file of a fresh process."""
    monkeypatch.setattr(shapes, "_answers", {})
    monkeypatch.setattr(shapes, "_file", None)
    shapes.keep_in(tmp_path)
    return tmp_path / "cache" / "shapes.json"


@pytest.fixture
def underived(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is derived any more."""
    for module, name in ((dry_run, "wire_plan"), (client_costs, "client_costs")):
        monkeypatch.setattr(module, name, lambda *_, **__: pytest.fail("derived again"))


def test_answers_are_kept(path: Path, request: pytest.FixtureRequest) -> None:
    row = FEATURES.row("c-psum")
    unknown = FEATURES.cell(row, FEATURES.columns[0], FEATURES.scale("demo"), 0)
    plan, costs = plan_of(CELL), derive_client(CELL)
    assert plan_of(unknown) is None
    request.getfixturevalue("underived")
    shapes.keep_in(path.parents[1])  # as the next process does
    assert (plan_of(CELL), derive_client(CELL), plan_of(unknown)) == (plan, costs, None)
    assert plan is not None
    assert not plan.alike


@pytest.mark.parametrize("damage", ["", "[1]", '{"plan', "bytes", "entry"])
def test_a_damaged_file_is_derived_anew(path: Path, damage: str) -> None:
    plan = plan_of(CELL)
    text = path.read_text().replace('"kinds"', '"kind"') if damage == "entry" else damage
    path.write_bytes(b"\xff\x00" if damage == "bytes" else text.encode())
    shapes.keep_in(path.parents[1])
    assert plan_of(CELL) == plan
    shapes.keep_in(path.parents[1])
    assert key_of("plan", CELL) in shapes._answers


def test_keys_tell_shapes_and_libraries_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(**training: object) -> RunConfig:
        return replace(CELL, training=replace(CELL.training, **training))  # type: ignore[arg-type]

    same = key_of("plan", changed(learning_rate=1.0))
    others = [key_of("plan", changed(rounds=99)), key_of("plan", CELL, 10), key_of("client", CELL)]
    assert key_of("plan", CELL) == same
    monkeypatch.setattr(shapes.metadata, "version", lambda name: "0.0")
    assert len({same, *others, key_of("plan", CELL)}) == 5
