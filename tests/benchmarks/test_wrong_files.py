"""Wrong data, encoders and checkpoints: status 2, one clear message, and earlier results as they were."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from benchmarks.cli.main import main
from benchmarks.encoders.tokenization import word_tokenizer
from benchmarks.running import runner
from benchmarks.tasks.generated import VOCABULARY
from tests.benchmarks.conftest import contents, run_words


def of_another_family(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "opt", "n_layer": 4}))


def with_cut_weights(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])


def with_a_pickle_alone(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({}, folder / "pytorch_model.bin")


def with_anothers_tokenizer(folder: Path) -> None:
    fillers = [f"filler{number}" for number in range(600)]  # every word's id is beyond the encoder's 512
    word_tokenizer([*fillers, *VOCABULARY]).save_pretrained(folder)


ENCODERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "another family": (of_another_family, "expected a BERT-family encoder (bert, roberta"),
    "weights cut short": (with_cut_weights, "the weights cannot be read"),
    "a pickle alone": (with_a_pickle_alone, "expected weights as model.safetensors, found none"),
    "another encoder's tokenizer": (with_anothers_tokenizer, "tokenizer"),
}


@pytest.mark.parametrize("case", ENCODERS)
def test_a_wrong_encoder(case, refusal, results, tiny_encoder, tmp_path):
    damage, expected = ENCODERS[case]
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, folder)
    damage(folder)
    message = refusal([*run_words(results, "fedavg"), "--backbone", str(folder)])
    assert str(folder) in message
    assert expected in message


@pytest.mark.slow
def test_a_damaged_checkpoint(refusal, tmp_path, monkeypatch):
    """A run that is interrupted after its last round and before its record, with one bit changed."""
    results = tmp_path / "results"
    words = run_words(results, "fedsplitbert", "training.rounds=2")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runner, "write_result", interrupt)
        assert main(words) == 130
    (folder,) = (results / "checkpoints").iterdir()
    content = bytearray((folder / "state.json").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "state.json").write_bytes(content)
    before = contents(results)
    message = refusal(words)
    assert "is damaged" in message
    assert f"Remove the folder {folder} to start this cell from its first round" in message
    assert contents(results) == before
