"""A user's own settings and encoder: cells of their own, labelled so, that no unchanged table shows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.customise import with_backbone, with_settings
from benchmarks.errors import UserError
from benchmarks.federation import load_inputs
from benchmarks.record import read_records
from benchmarks.registry import benchmark
from benchmarks.settings import Settings
from benchmarks.spec import Cell

pytestmark = pytest.mark.usefixtures("untuned")

TABLE = benchmark("fedsplitbert-table3")
CellsOf = Callable[..., list[Cell]]
Words = Callable[..., list[str]]


# ---- --set -----------------------------------------------------------------------------------------------------


def test_a_setting_labels_every_scale_and_changes_every_cell() -> None:
    changed = with_settings(TABLE, ["training.rounds=7", "codec=bf16"])
    for scale, own in zip(TABLE.scales, changed.scales, strict=True):
        assert own.label == f"{scale.label}; changed: training.rounds=7, codec=bf16"
        chosen = changed.cells(own, [0, 1])
        cells = [cell for _, _, cell in chosen]
        assert {(cell.training.rounds, cell.codec) for row, _, cell in chosen if not row.fixed} == {(7, "bf16")}
        assert {(cell.training.rounds, cell.codec) for row, _, cell in chosen if row.fixed} == {(1, "bf16")}
        begun = [cell.initial for cell in cells if cell.initial is not None]
        assert {(cell.training.rounds, cell.codec) for cell in begun} == {(7, "bf16")}  # what those begin from, too
        assert not {cell.spec_id for cell in cells} & {cell.spec_id for _, _, cell in TABLE.cells(scale, [0, 1])}
    assert with_settings(TABLE, []) is TABLE


@pytest.mark.parametrize(
    ("assignment", "read"),
    [
        ("training.learning_rate=3e-5", lambda cell: cell.training.learning_rate),
        ("training.learning_rate=1", lambda cell: cell.training.learning_rate),  # a whole number is a float, too
        ("training.padding=fixed", lambda cell: cell.training.padding),
        ("options.embeddings=global", lambda cell: cell.options["embeddings"]),
        ("options.server.tau=0.5", lambda cell: cell.options["server"]["tau"]),
        ('partition={"scheme":"equal"}', lambda cell: cell.partition),
        ("holdout=validation", lambda cell: cell.holdout),
        ("test_share=0.5", lambda cell: cell.test_share),
        ("clients=5", lambda cell: cell.clients),
    ],
)
def test_a_setting_reaches_its_field_and_no_other(
    assignment: str, read: Callable[[Cell], object], cells_of: CellsOf
) -> None:
    text = assignment.partition("=")[2]
    expected = json.loads(text) if text[0] in "0123456789{" else text
    (plain,), (changed,) = cells_of(["fedadam"]), cells_of(["fedadam"], assignment)
    assert read(changed) == expected
    assert type(read(changed)) is (float if "rate" in assignment else type(expected))
    assert changed.spec_id != plain.spec_id
    if "server" in assignment:
        assert changed.options["server"] == {**plain.options["server"], "tau": 0.5}


def test_of_two_settings_of_a_field_the_last_counts(cells_of: CellsOf) -> None:
    twice = cells_of(["fedavg"], "training.rounds=2", "training.rounds=3")
    assert twice == cells_of(["fedavg"], "training.rounds=3")


def test_what_makes_a_cell_of_the_table_cannot_be_set(cells_of: CellsOf) -> None:
    for name in ("scale", "task", "source", "backbone", "training", "options"):
        with pytest.raises(UserError, match=f"--set {name}: unknown field"):
            cells_of(["fedavg"], f"{name}=x")


# ---- --backbone ------------------------------------------------------------------------------------------------


def test_another_encoder_labels_the_scale_and_changes_its_cells(tiny_encoder: Path) -> None:
    lite = TABLE.scale("lite")
    own = with_backbone(lite, str(tiny_encoder))
    assert (own.backbone, own.depth) == ("my-encoder", 4)
    assert own.label == f"{lite.label}; on my-encoder"
    cells = {row.id: cell for row, _, cell in TABLE.cells(own, [0], columns=TABLE.columns[:1])}
    assert cells["fedsplitbert"].options == {"critical_layer": 2}  # half of this encoder's depth, too
    ids = {cell.spec_id for _, _, cell in TABLE.cells(lite, [0], columns=TABLE.columns[:1])}
    assert not ids & {cell.spec_id for cell in cells.values()}


def test_the_scales_own_encoder_changes_nothing() -> None:
    for scale in TABLE.scales:
        assert with_backbone(scale, None) is scale
        assert with_backbone(scale, scale.backbone) is scale


def test_weights_of_the_same_name_are_told_apart(tiny_encoder: Path, tmp_path: Path, cells_of: CellsOf) -> None:
    copy = tmp_path / tiny_encoder.name
    shutil.copytree(tiny_encoder, copy)
    weights = copy / "model.safetensors"
    content = bytearray(weights.read_bytes())

    def digest(folder: Path) -> str:
        (cell,) = cells_of(["fedavg"])
        cell = replace(cell, backbone=folder.name)  # as a user's own backbone enters a cell
        return load_inputs(cell, Settings(backbone=str(folder))).digests["backbone"]

    elsewhere = tmp_path / "elsewhere" / tiny_encoder.name
    shutil.copytree(tiny_encoder, elsewhere)
    assert digest(elsewhere) == digest(tiny_encoder)  # the same content is the same encoder wherever it lies
    content[-1] ^= 1
    weights.write_bytes(content)
    assert digest(copy) != digest(tiny_encoder)


# ---- in a report -----------------------------------------------------------------------------------------------


def test_changed_cells_are_reported_under_their_changes_alone(
    tmp_path: Path, run_words: Words, tiny_encoder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = ["--backbone", str(tiny_encoder)]
    assert main([*run_words(tmp_path, "local-majority", "test_share=0.5"), *changes]) == 0
    (record,) = read_records(tmp_path / "records")
    assert (record.cell.backbone, record.cell.test_share) == ("my-encoder", 0.5)
    assert record.inputs["backbone"]["origin"] == {"from": "folder"}
    assert str(tiny_encoder) not in json.dumps(record.to_json())  # no path of this machine
    report = ["report", TABLE.id, "--results-dir", str(tmp_path)]
    for others in ([], changes, ["--set", "test_share=0.5"], [*changes, "--set", "test_share=0.4"]):
        assert main([*report, *others]) == 2
        assert "belongs to what was asked for" in capsys.readouterr().err
    (written,) = (tmp_path / "reports" / TABLE.id).glob("demo-changed-*/table.md")
    assert not (tmp_path / "reports" / TABLE.id / "demo").exists()
    written.unlink()
    assert main([*report, *changes, "--set", "test_share=0.5"]) == 0
    assert "on my-encoder" in written.read_text()
    assert "test\\_share=0.5" in written.read_text() or "test_share=0.5" in written.read_text()


def test_empty_variables_are_as_good_as_none(
    tmp_path: Path, run_words: Words, monkeypatch: pytest.MonkeyPatch, finished_results: Path
) -> None:
    """As an `export BACKBONE=` in a job script leaves them."""
    for name in ("BACKBONE", "DATA_DIR", "RESULTS_DIR"):
        monkeypatch.setenv(name, "")
    shutil.copytree(finished_results / "records", tmp_path / "records")
    assert main(run_words(tmp_path, "fedsplitbert", "training.rounds=1")) == 0
    assert len(list(read_records(tmp_path / "records"))) == 1
