"""Files that are computed once: whole or absent, checked when they are opened, read without being held."""

import logging
import multiprocessing
import os
import signal
import time
import zlib

import numpy as np
import pytest

from fedsim.stored import Chunks, FileCache, MappedFile

CONTENT = bytes(range(256)) * 64


def opened(folder, name="a", content=CONTENT, limit=10**9, calls=None):
    def write(file):
        (calls if calls is not None else []).append(name)
        file.write(content)

    return FileCache(folder, ".bin", limit).open(name, write)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_computed_once_and_has_its_checksum(tmp_path):
    calls = []
    for _ in range(2):
        assert opened(tmp_path, calls=calls).buffer[:] == CONTENT
    assert calls == ["a"]
    assert names(tmp_path) == ["a.bin", "a.crc32"]
    assert (tmp_path / "a.crc32").read_text() == f"{zlib.crc32(CONTENT):08x}\n"


DAMAGES = {
    "cut": lambda content: content[:-1],
    "a bit": lambda content: content[:5000] + bytes([content[5000] ^ 4]) + content[5001:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_named_and_computed_again(tmp_path, damage, caplog):
    before = opened(tmp_path)
    path = tmp_path / "a.bin"
    path.unlink()  # who has it open keeps what was read
    path.write_bytes(DAMAGES[damage](CONTENT))
    for _ in range(2):
        assert opened(tmp_path).buffer[:] == CONTENT
    (message,) = caplog.messages
    assert message == f"{path} is damaged (it does not have its checksum): it is computed again"
    assert before.buffer[:] == CONTENT


def test_a_full_disk_leaves_nothing(tmp_path):
    def full(file):
        file.write(CONTENT)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        FileCache(tmp_path, ".bin", 10**9).open("a", full)
    assert names(tmp_path) == []


def test_the_least_recently_used_go_first(tmp_path):
    limit = 2 * len(CONTENT)
    for number, name in enumerate("abac"):
        opened(tmp_path, name, limit=limit)
        os.utime(tmp_path / f"{name}.bin", (number, number))
    assert names(tmp_path) == ["a.bin", "a.crc32", "c.bin", "c.crc32"]


def _write_forever(folder):
    def write(file):
        file.write(CONTENT)
        file.flush()
        time.sleep(600)

    FileCache(folder, ".bin", 10**9).open("a", write)


def test_what_a_killed_process_left_does_not_count_and_goes(tmp_path):
    process = multiprocessing.get_context("fork").Process(target=_write_forever, args=(tmp_path,))
    process.start()
    partial = tmp_path / "a.partial"
    while not (partial.exists() and partial.stat().st_size):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    opened(tmp_path, "b")  # another one, which makes room
    assert names(tmp_path) == ["b.bin", "b.crc32"]
    assert opened(tmp_path).buffer[:] == CONTENT


def test_a_slice_of_chunks_is_that_of_the_whole_array(tmp_path):
    whole = np.arange(17, dtype=np.int32)
    path = tmp_path / "file"
    path.write_bytes(whole.tobytes())
    with path.open("rb") as file:
        mapped = MappedFile(file)
    stored = np.frombuffer(mapped.buffer, np.int32)
    chunks = Chunks(np.split(stored, [3, 3, 10, 16]), mapped)
    assert len(chunks) == 17
    assert np.array_equal(np.asarray(chunks), whole)
    for begin in range(-3, 18):
        for end in range(-3, 19):
            found = chunks[begin:end]
            assert found.dtype == np.int32
            assert np.array_equal(found, whole[begin:end])
            assert found.base is None  # a copy


@pytest.fixture(autouse=True)
def warnings_alone(caplog):
    caplog.set_level(logging.WARNING)
