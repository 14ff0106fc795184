"""Files that processes share: locks, complete or absent caches, and errors that name the file."""

import io
import json
import multiprocessing
import os
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fedsim import locks
from fedsim.files import FileError, parse_json, read_text, write_bytes
from fedsim.locks import LEASE_SECONDS, LostError, TakenError, held
from fedsim.stored import FileCache

CONTEXT = multiprocessing.get_context("spawn")
CONTENT = bytes(range(256)) * 64


def hold_for_ever(path, ready):
    with held(path):
        ready.set()
        time.sleep(600)


def test_the_holder_is_named_and_its_end_frees_the_lock_at_once(tmp_path):
    ready = CONTEXT.Event()
    holder = CONTEXT.Process(target=hold_for_ever, args=(tmp_path / "name", ready))
    holder.start()
    assert ready.wait(60)
    with pytest.raises(TakenError, match=f"^process {holder.pid} on ") as taken, held(tmp_path / "name", wait=False):
        pass
    assert taken.value.host == os.uname().nodename
    holder.kill()
    holder.join()
    started = time.monotonic()
    with held(tmp_path / "name"):
        assert time.monotonic() - started < LEASE_SECONDS / 2
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_another_machine_took_over_is_lost(tmp_path):
    path = tmp_path / "name"
    with held(path) as lock:
        lock.check()
        path.unlink()  # as another machine does that has not seen it renewed
        with pytest.raises(LostError, match="the lock expired"):
            lock.check()
        with held(path, wait=False), pytest.raises(LostError):
            lock.check()


def test_a_lock_file_of_a_process_that_was_killed_before_it_named_itself_blocks_nobody(tmp_path, monkeypatch):
    path = tmp_path / "name"
    path.touch()
    with pytest.raises(TakenError, match="another process"), held(path, wait=False):  # it may name itself yet
        pass
    os.utime(path, (time.time() - 3600,) * 2)
    with held(path, wait=False) as lock:
        lock.check()
    monkeypatch.setattr(locks, "UNSIGNED_SECONDS", 0.5)
    (tmp_path / "a.lock").touch()
    assert opened(tmp_path)[:] == CONTENT  # waits for the other process, then goes on without it
    assert not [*tmp_path.glob("*.lock"), *tmp_path.glob("name")]


def opened(folder, name="a", limit=10**9, calls=None):
    def write(file):
        (calls if calls is not None else []).append(name)
        file.write(CONTENT)

    return FileCache(folder, ".bin", limit).open(name, write)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("damaged", [CONTENT[:-1], CONTENT[:5000] + b"?" + CONTENT[5001:]], ids=["cut", "a byte"])
def test_a_file_is_computed_once_and_again_if_it_is_damaged(tmp_path, damaged, caplog):
    calls, path = [], tmp_path / "a.bin"
    before = opened(tmp_path, calls=calls)
    assert opened(tmp_path, calls=calls)[:] == CONTENT
    assert calls == ["a"]
    path.unlink()  # whoever has it open can still read it
    path.write_bytes(damaged)
    for _ in range(2):
        assert opened(tmp_path, calls=calls)[:] == CONTENT
    assert calls == ["a", "a"]
    assert caplog.messages[-1] == f"{path} is damaged (checksum mismatch): computing it again"
    assert before[:] == CONTENT


def test_a_full_disk_leaves_nothing_and_the_file_is_named(tmp_path, monkeypatch):
    def full(file):
        file.write(CONTENT)
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}'"):
        FileCache(tmp_path, ".bin", 10**9).open("a", full)
    monkeypatch.setattr(os, "fsync", lambda _: full(io.BytesIO()))
    with pytest.raises(OSError, match=f"No space left on device: '{tmp_path / 'a'}'"):
        write_bytes(tmp_path / "a", CONTENT)
    assert names(tmp_path) == []


def test_the_least_recently_used_and_partial_files_are_removed(tmp_path):
    (tmp_path / "d.partial").write_bytes(CONTENT)  # of a process that was killed
    for number, name in enumerate("abac"):
        opened(tmp_path, name, limit=2 * len(CONTENT))
        os.utime(tmp_path / f"{name}.bin", (number, number))
    assert names(tmp_path) == ["a.bin", "a.crc32", "c.bin", "c.crc32"]


@example(content=b'{"a": NaN}')
@given(content=st.binary(max_size=200))
def test_any_bytes_are_a_value_or_one_error(content, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(content)
    message = str(path)
    try:
        assert parse_json(read_text(path), path) == json.loads(content)
    except FileError as error:
        message = str(error)
    assert str(path) in message
