"""Wrong data, encoders and checkpoints: status 2, one clear message, and earlier results as they were."""

from __future__ import annotations

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

Refusal = Callable[..., str]
Words = Callable[..., list[str]]
Contents = Callable[[Path], dict[str, bytes]]

# ---- data ------------------------------------------------------------------------------------------------------

HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
GOOD = ["1\t1\t2\tThe dog barks .\tA dog barks .\n", "0\t3\t4\tIt rains .\tHe sleeps .\n"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with a sound MRPC."""
    folder = tmp_path / "data" / "MRPC"
    folder.mkdir(parents=True)
    for name in ("train.tsv", "dev.tsv"):
        (folder / name).write_text(HEADER + "".join(GOOD * 4))
    return folder.parent


@pytest.fixture
def refused_data(refusal: Refusal, run_words: Words, data: Path, results: Path) -> Callable[[], str]:
    def refuse() -> str:
        words = [*run_words(results, "fedavg"), "--scale", "lite", "--backbone", "tiny"]
        return refusal([*words, "--data-dir", str(data)])

    return refuse


def test_a_malformed_row_is_named_with_file_and_line(data: Path, refused_data: Callable[[], str]) -> None:
    file = data / "MRPC" / "dev.tsv"
    file.write_text(HEADER + GOOD[0] + "1\t1\t2\tOne text .\n" + GOOD[1])
    message = refused_data()
    assert message.startswith(f"{file}:3: expected 5 columns, found 4")  # the header is line 1
    assert "--lenient" in message


def test_a_label_that_runs_out(data: Path, refused_data: Callable[[], str]) -> None:
    for name in ("train.tsv", "dev.tsv"):
        (data / "MRPC" / name).write_text(HEADER + GOOD[0] * 8)
    message = refused_data()
    assert message.startswith("label 0: shares [0.05, 0.25, 0.75] wanted, 0 examples available")


# ---- encoders --------------------------------------------------------------------------------------------------


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
def test_a_wrong_encoder(
    case: str, refusal: Refusal, results: Path, run_words: Words, tiny_encoder: Path, tmp_path: Path
) -> None:
    damage, expected = ENCODERS[case]
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, folder)
    damage(folder)
    message = refusal([*run_words(results, "fedavg"), "--backbone", str(folder)])
    assert str(folder) in message
    assert expected in message


# ---- checkpoints -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def interrupted_results(finished_results: Path, tmp_path_factory: pytest.TempPathFactory, run_words: Words) -> Path:
    """Earlier results with one more cell, interrupted after its last round and before its record."""
    results = tmp_path_factory.mktemp("interrupted") / "results"
    shutil.copytree(finished_results, results)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "write_result", interrupt)
        assert main(run_words(results, "fedsplitbert", "training.rounds=2")) == 130
    return results


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


CHECKPOINTS: dict[str, Callable[[Path], object]] = {
    "a bit of the manifest": lambda folder: flipped(folder / "state.json"),
    "a bit of the server's tensors": lambda folder: flipped(next(folder.glob("server-*"))),
    "a client's file gone": lambda folder: next(folder.glob("client-2-*")).unlink(),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CHECKPOINTS)
def test_a_damaged_checkpoint(
    case: str, refusal: Refusal, interrupted_results: Path, run_words: Words, tmp_path: Path, contents: Contents
) -> None:
    copy = tmp_path / "results"
    shutil.copytree(interrupted_results, copy)
    (folder,) = (copy / "checkpoints").iterdir()
    CHECKPOINTS[case](folder)
    before = contents(copy)
    message = refusal(run_words(copy, "fedsplitbert", "training.rounds=2"))
    assert "is damaged" in message
    assert f"Remove the folder {folder} to start this cell from its first round" in message
    assert contents(copy) == before
