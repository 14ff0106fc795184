"""Files from outside: read where they are plain, whole and bounded; everything else is refused by name, and at once."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.files import FileError, MissingFileError, open_file, parse_json, read_file, read_json, read_text


def looped(path: Path) -> None:
    path.symlink_to(path)


def listening(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's whole path may be longer than the system allows
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


def locked(path: Path) -> None:
    path.write_bytes(b"{}")
    path.chmod(0)


PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "found nothing there"),
    "folder": (Path.mkdir, "found a folder"),
    "pipe": (os.mkfifo, "found a named pipe"),
    "socket": (listening, "found a socket"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "found a device"),
    "terminal": (lambda path: path.symlink_to("/dev/tty"), "found a device"),
    "loop": (looped, "cannot be read: Too many levels of symbolic links"),
    "dangling": (lambda path: path.symlink_to(path.with_name("nowhere")), "found nothing there"),
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("read", [open_file, read_file, read_text, read_json])
def test_what_is_no_plain_file_is_refused_and_never_waited_for(read, name: str, tmp_path: Path) -> None:
    make, found = PLACES[name]
    make(tmp_path / "it")
    with pytest.raises(FileError, match=f"it: expected the numbers.*{found}"):
        read(tmp_path / "it", "the numbers")


def test_a_missing_file_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError):
        read_file(tmp_path / "nothing")
    with pytest.raises(FileError) as raised:
        read_file(tmp_path)
    assert not isinstance(raised.value, MissingFileError)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "no JSON that can be read: Expecting value"),
        (b"{", "no JSON that can be read"),
        (b'{"a": NaN}', "NaN is no number of JSON"),
        (b"[-Infinity]", "-Infinity is no number of JSON"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b"1" * 10_000, "no JSON that can be read"),  # Python refuses to read so long a number
        ('{"ä": 1}'.encode("latin-1"), "found the byte 0xe4 at 2"),
        ('{"a": 1}'.encode("utf-16"), "found the byte 0xff at 0"),
    ],
)
def test_what_is_no_json_is_refused(content: bytes, found: str, tmp_path: Path) -> None:
    path = tmp_path / "it.json"
    path.write_bytes(content)
    with pytest.raises(FileError, match=f"it.json: expected settings.*{found}"):
        read_json(path, "settings")


def test_a_file_longer_than_asked_for_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"12345")
    assert read_file(path, most=5) == b"12345"
    with pytest.raises(FileError, match="expected a file of at most 4 bytes, found a longer file"):
        read_file(path, most=4)


def test_a_file_without_end_is_refused() -> None:
    """Some of the system's own files say that they are empty, and are not."""
    with pytest.raises(FileError, match="of at most 10 bytes"):
        read_file(Path("/proc/self/maps"), most=10)


@pytest.mark.skipif(os.geteuid() == 0, reason="modes do not bind the superuser")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    locked(tmp_path / "it")
    with pytest.raises(FileError, match="Permission denied"):
        read_file(tmp_path / "it")


def test_a_path_that_no_file_can_have() -> None:
    with pytest.raises(FileError, match="cannot be read"):
        read_file(Path("a\0b"))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_value_or_refused(content: bytes) -> None:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return
    with suppress(FileError):  # nothing else
        parse_json(text, Path("it"))


def test_an_open_file_is_at_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(b"ab\ncd")
    with open_file(tmp_path / "it", buffering=1) as file:
        assert list(file) == [b"ab\n", b"cd"]
