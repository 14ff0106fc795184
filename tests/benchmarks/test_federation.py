"""What a cell asks of its encoder."""

import errno
from pathlib import Path

import pytest

from benchmarks.cli import look, main
from fedsim.models.families import longest_text


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "bert", "max_position_embeddings": 512, "pad_token_id": 0}, 512),
        # RoBERTa's first position id is its padding id + 1: 514 rows of the table serve 512 tokens
        ({"model_type": "roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 1}, 512),
        ({"model_type": "bert"}, 512),
    ],
)
def test_longest_text(config: dict[str, object], expected: int) -> None:
    assert longest_text(config) == expected


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_full_disk_is_one_message(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def full(words: object) -> int:
        raise OSError(number, "No room", str(tmp_path / "x.json"))

    monkeypatch.setattr(look, "list_command", full)
    assert main.main(["list"]) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path / 'x.json'} cannot be used (No room); finished rounds are saved; "
        "the same command continues from there\n"
    )


def test_other_errors_of_files_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(words: object) -> int:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(look, "list_command", broken)
    with pytest.raises(OSError, match="Bad file descriptor"):
        main.main(["list"])
