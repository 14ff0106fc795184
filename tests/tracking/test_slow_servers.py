"""Tracking servers that answer badly hold a run for a moment, then the mirror is off; records bring it up to date."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cli.main import main
from benchmarks.errors import UserError
from benchmarks.record import RunRecord
from benchmarks.tracking import Mirror, patience, require_uri
from benchmarks.tracking.patience import Courier, Patience, SlowError


class Server(ThreadingHTTPServer):
    """Its first `good` requests are answered well, the others as its `behaviour` says, until it is `over`."""

    daemon_threads = True

    def __init__(self, behaviour: str, good: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviour, self.good = behaviour, good
        self.requests = itertools.count()
        self.over = threading.Event()
        self.uri = f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if next(self.server.requests) < self.server.good:
            self._answer(json.dumps({"experiment": {"experiment_id": "1", "name": "x", "tags": []}}).encode())
            return
        getattr(self, f"_{self.server.behaviour}")()

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass

    def _answer(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(content)

    def _busy(self) -> None:
        self._answer(b"{}", 429, Retry_After="3600")

    def _overloaded(self) -> None:
        self._answer(b"{}", 429)

    def _silent(self) -> None:
        self.server.over.wait()

    def _dripping(self) -> None:
        self.send_response(200)
        self.end_headers()
        while not self.server.over.wait(0.05):
            self.wfile.write(b" ")

    def _dripping_headers(self) -> None:
        for character in itertools.cycle("X"):
            self.wfile.write(character.encode())
            if self.server.over.wait(0.05):
                return

    def _endless(self) -> None:
        self.send_response(200)
        self.end_headers()
        while not self.server.over.is_set():
            self.wfile.write(b" " * 2**12)
            self.server.over.wait(0.001)


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(*arguments: Any) -> Server:
        server = Server(*arguments)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.over.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patience of a test."""
    for name, seconds in (("SECONDS", 0.3), ("CALL_SECONDS", 0.2), ("POLL_SECONDS", 0.02)):
        monkeypatch.setattr(patience, name, seconds)


def couriers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "tracking"]


@pytest.mark.parametrize("good", [0, 1])
@pytest.mark.parametrize("behaviour", ["busy", "overloaded", "silent", "dripping", "dripping_headers", "endless"])
def test_a_server_that_does_not_answer_well_is_left(
    behaviour: str,
    good: int,
    short: None,
    serve: Callable[..., Server],
    open_mirror: Callable[..., Mirror],
    record_of: Callable[..., RunRecord],
    play: Any,
    warnings: list[str],
) -> None:
    server = serve(behaviour, good)
    with open_mirror(uri=server.uri) as mirror:
        play(mirror, record_of())  # nothing waits any more
        mirror.log_report([])
    (warning,) = warnings
    warnings.clear()
    assert f"at {server.uri} is off" in warning
    assert "python -m benchmarks import" in warning


def test_an_endless_answer_is_not_read_on(short: None, serve: Callable[..., Server]) -> None:
    server, found = serve("endless"), Patience()
    courier = Courier(found)
    (thread,) = (thread for thread in couriers() if thread is courier._thread)

    def ask() -> None:
        import requests

        found.begin(0)
        requests.get(server.uri, timeout=5)

    with pytest.raises(SlowError, match="kept this waiting"):
        courier(ask)
    thread.join(20)
    assert not thread.is_alive()


def test_patience_is_used_up_by_calls_that_are_late(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    now = [0.0]
    monkeypatch.setattr(patience.time, "monotonic", lambda: now[0])

    class Client:
        def wait(self, seconds: float) -> None:
            now[0] += seconds

        def log_artifact(self, _: str, path: str) -> None:
            now[0] += 20

    found = Patience()
    client = found.watched(Client())
    for _ in range(100):
        client.wait(patience.CALL_SECONDS)  # not late
    found.check()
    large = tmp_path / "predictions"
    with large.open("wb") as file:
        file.truncate(20 * patience.BYTES_A_SECOND)
    client.log_artifact("run", str(large))  # a large file may take its time
    found.check()
    client.wait(patience.CALL_SECONDS + 0.6 * patience.SECONDS)
    found.check()
    client.wait(patience.CALL_SECONDS + 0.6 * patience.SECONDS)
    with pytest.raises(SlowError):
        found.check()


def test_what_is_told_raises_as_it_would(short: None) -> None:
    courier = Courier(Patience())

    def fail() -> None:
        raise KeyError("a key")

    for _ in range(2):
        with pytest.raises(KeyError, match="a key"):
            courier(fail)
    courier.close()


@pytest.mark.parametrize(
    "uri", ["http://", "http://:5000", "http://[::1", "https://host:99999", "http://me:secret@h:x"]
)
def test_a_bad_uri_is_one_message_before_anything_starts(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    words = ["fedsplitbert-table3", "--tasks", "mrpc", "--methods", "local-majority", "--results-dir", str(tmp_path)]
    assert main(["run", *words, "--device", "cpu", "--workers", "1"]) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith("error: MLFLOW_TRACKING_URI: expected http://host:port")
    assert found.err.count("\n") == 1
    assert "secret" not in found.err
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize(
    "uri", ["http://localhost", "https://me:x@host:1/path", "sqlite:///a b.db", "postgresql://h/x"]
)
def test_other_uris_are_asked(uri: str) -> None:
    require_uri(uri)
    with pytest.raises(UserError, match="MLFLOW_TRACKING_URI"):
        require_uri("http://host:0")
