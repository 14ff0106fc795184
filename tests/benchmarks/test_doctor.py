"""What an encoder's files have, and that a name is not a place."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.encoders.backbones import KNOWN, backbone_name, requested_backbone
from benchmarks.encoders.loading import drawn_parts, locate
from benchmarks.errors import UserError
from benchmarks.registry import benchmark, with_backbone
from fedsim.models.pretrained import has_head

TABLE = benchmark("fedsplitbert-table3")


def test_doctor_prints_what_an_encoders_files_have(
    tiny_encoder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--backbone", str(tiny_encoder), "--results-dir", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"ok   encoder: {tiny_encoder.name} (bert): ")
    assert any(line.startswith("ok   tensors: ") and " used" in line for line in lines)
    assert any(line.startswith("ok   drawn at random: a task's classifier") for line in lines)
    assert sum(line.startswith("ok   tokenizer, ") for line in lines) == 5
    assert len(lines) <= 10


def test_parts_that_are_drawn_are_named(tiny_encoder: Path) -> None:
    (built_in, folder) = locate("tiny"), locate(str(tiny_encoder))
    assert drawn_parts(built_in, "pooled") == ("encoder", "pooler")
    assert drawn_parts(built_in, "average") == ("encoder",)
    assert drawn_parts(folder, "average") == ()
    assert drawn_parts(folder, "masked-lm") == ("masked-lm",)
    has_pooler = has_head(tiny_encoder, folder.config, "pooler")
    assert drawn_parts(folder, "pooled") == (() if has_pooler else ("pooler",))
    assert drawn_parts(replace(folder, heads=False), "pooled") == ("pooler",)


def test_show_names_what_a_scale_draws(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "fedsplitbert-table3"]) == 0
    scales = capsys.readouterr().out.partition("\nScales\n")[2].partition("\n\n")[0].splitlines()
    drawn = {line: scales[place - 1].split()[0] for place, line in enumerate(scales) if "drawn at random" in line}
    assert {scale: line.rpartition(": ")[2] for line, scale in drawn.items()} == {
        "demo": "all weights",
        "literal": "pooler",  # MiniLM was trained without its pooler; at lite the head is the average
    }


def test_a_definitions_encoder_is_never_a_folder_of_that_name(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_encoder, tmp_path / "bert-base-uncased")
    monkeypatch.chdir(tmp_path)
    assert backbone_name("bert-base-uncased") == "bert-base-uncased"
    with pytest.raises(UserError, match=r"BACKBONE bert-base-uncased: expected one encoder, found two: .*\./bert-base"):
        requested_backbone("bert-base-uncased")
    shutil.copytree(tiny_encoder, tmp_path / "mine")
    assert requested_backbone("mine") == "./mine"
    assert locate("./mine").folder == tmp_path / "mine"


def test_another_encoder_is_named_in_every_caption(tiny_encoder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bert-base-uncased"
    shutil.copytree(tiny_encoder, folder)
    scale = with_backbone(TABLE.scale("paper"), str(folder))
    assert scale.backbone == "folder-bert-base-uncased"
    assert scale.changed
    assert "on folder-bert-base-uncased" in scale.label
    for other in TABLE.scales:
        assert other.backbone not in with_backbone(other, str(tiny_encoder)).label


def test_a_folder_with_the_pinned_content_is_the_pinned_encoder(encoder_dir: Path, tmp_path: Path) -> None:
    pinned = locate("all-MiniLM-L6-v2")
    assert pinned.digest == KNOWN["all-MiniLM-L6-v2"].digest
    assert pinned.folder is not None
    shutil.copytree(pinned.folder, tmp_path / "all-MiniLM-L6-v2")
    lite = TABLE.scale("lite")
    assert with_backbone(lite, str(tmp_path / "all-MiniLM-L6-v2")) is lite
