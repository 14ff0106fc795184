"""What an encoder's files have, and that a name is not a place."""

import shutil

import pytest

from benchmarks.cli.main import main
from benchmarks.encoders.backbones import KNOWN, backbone_name, requested_backbone
from benchmarks.encoders.loading import locate
from benchmarks.errors import UserError
from benchmarks.registry import benchmark, with_backbone

TABLE = benchmark("fedsplitbert-table3")


def test_doctor_prints_what_an_encoders_files_have(tiny_encoder, tmp_path, capsys):
    assert main(["doctor", "--backbone", str(tiny_encoder), "--results-dir", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"ok   encoder: {tiny_encoder.name} (bert): ")
    assert any(line.startswith("ok   tensors: ") and " used" in line for line in lines)
    assert any(line.startswith("ok   drawn at random: a task's classifier") for line in lines)
    assert sum(line.startswith("ok   tokenizer, ") for line in lines) == 5
    assert len(lines) <= 10


def test_a_definitions_encoder_is_never_a_folder_of_that_name(tiny_encoder, tmp_path, monkeypatch):
    shutil.copytree(tiny_encoder, tmp_path / "bert-base-uncased")
    monkeypatch.chdir(tmp_path)
    assert backbone_name("bert-base-uncased") == "bert-base-uncased"
    with pytest.raises(UserError, match=r"BACKBONE bert-base-uncased: expected one encoder, found two: .*\./bert-base"):
        requested_backbone("bert-base-uncased")
    shutil.copytree(tiny_encoder, tmp_path / "mine")
    assert requested_backbone("mine") == "./mine"
    assert locate("./mine").folder == tmp_path / "mine"


def test_another_encoder_is_named_in_every_caption(tiny_encoder, tmp_path):
    folder = tmp_path / "bert-base-uncased"
    shutil.copytree(tiny_encoder, folder)
    scale = with_backbone(TABLE.scale("paper"), str(folder))
    assert scale.backbone == "folder-bert-base-uncased"
    assert scale.changed
    assert "on folder-bert-base-uncased" in scale.label
    for other in TABLE.scales:
        assert other.backbone not in with_backbone(other, str(tiny_encoder)).label


def test_a_folder_with_the_pinned_content_is_the_pinned_encoder(encoder_dir, tmp_path):
    pinned = locate("all-MiniLM-L6-v2")
    assert pinned.digest == KNOWN["all-MiniLM-L6-v2"].digest
    assert pinned.folder is not None
    shutil.copytree(pinned.folder, tmp_path / "all-MiniLM-L6-v2")
    lite = TABLE.scale("lite")
    assert with_backbone(lite, str(tmp_path / "all-MiniLM-L6-v2")) is lite
