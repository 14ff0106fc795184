"""Files are read whole, or refused with their name and what was expected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.files import FileError, MissingFileError, parse_json, read_file, read_json, read_text


def test_a_missing_file_differs_from_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"gone.json: expected a record, found nothing there"):
        read_file(tmp_path / "gone.json", "a record")
    with pytest.raises(FileError, match="expected a record, found a folder") as raised:
        read_file(tmp_path, "a record")
    assert not isinstance(raised.value, MissingFileError)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no JSON that can be read: Expecting value"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b"[" * 100_000, "nested too deep"),
        (b"1" * 10_000, "no JSON that can be read"),  # Python refuses to read so long a number
        ('{"ä": 1}'.encode("latin-1"), "found the byte 0xe4 at 2"),
    ],
)
def test_other_content_than_json_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    path.write_bytes(content)
    with pytest.raises(FileError, match=f"it.json: expected settings.*{message}"):
        read_json(path, "settings")


@given(content=st.binary(max_size=200))
def test_any_bytes_are_a_value_or_one_error(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(content)
    message = str(path)
    try:
        assert parse_json(read_text(path), path) == json.loads(content)
    except FileError as error:
        message = str(error)
    assert str(path) in message
