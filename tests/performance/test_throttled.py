"""Computed time against the clock: every encoded payload of a demo run goes through a throttled socket."""

import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from benchmarks.networks import ACCOMPANYING, Deployment, Device, Network, Turn
from benchmarks.running.federation import build_clients, build_federation, load_inputs
from benchmarks.running.process import quiet_libraries
from benchmarks.running.run_options import RunOptions
from fedsim.engine import run_federation
from fedsim.wire import Channel, Params
from tests.golden.outcome import CELLS

LATENCY, SECONDS, CHUNK = 0.01, 15.0, 1 << 14  # of a round trip; that all transfers take; bytes sent at once
UP_SHARE = 0.5  # of the downlink's rate


class Link:
    """A socket on the loopback whose sender keeps to a rate; what arrives is compared with what was sent."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.near = socket.create_connection(listener.getsockname())
            self.far, _ = listener.accept()
        self.near.settimeout(30)
        self.far.settimeout(30)

    def send(self, data: bytes, rate: float) -> bytes:
        """The bytes that arrive, no sooner than the rate allows."""
        received = bytearray(len(data))

        def receive() -> None:
            view = memoryview(received)
            while view:
                view = view[self.far.recv_into(view) :]

        reader = threading.Thread(target=receive)
        reader.start()
        start = time.perf_counter()
        for first in range(0, len(data), CHUNK):
            self.near.sendall(data[first : first + CHUNK])
            due = start + min(first + CHUNK, len(data)) / rate
            time.sleep(max(0.0, due - time.perf_counter()))
        reader.join()
        return bytes(received)

    def close(self) -> None:
        self.near.close()
        self.far.close()


class Throttled(Channel):
    """A channel over a link of fixed rates, on which every message waits half a round trip."""

    def __init__(self, codec: str, network: Network, link: Link) -> None:
        super().__init__(codec)
        self.network, self.link, self.rate = network, link, network.down

    def _send(self, client: int, direction: str, payload: Mapping[str, Tensor], kind: str, *codec: Any) -> Params:
        self.rate = self.network.down if direction == "down" else self.network.up
        if payload and kind not in ACCOMPANYING:
            time.sleep(self.network.latency / 2)
        return super()._send(client, direction, payload, kind, *codec)

    def _transfer(self, tensor: Tensor, *how: Any) -> tuple[Tensor, int, int]:
        encoded = self._crossing(tensor, *how).contiguous()
        arrived = self.link.send(encoded.view(torch.uint8).numpy().tobytes() if encoded.dim() else b"", self.rate)
        same = torch.frombuffer(bytearray(arrived), dtype=encoded.dtype).reshape(encoded.shape)
        received = same.float() if same.is_floating_point() else same
        return received, encoded.numel(), encoded.numel() * encoded.element_size()

    def _crossing(self, tensor: Tensor, *how: Any) -> Tensor:
        """What crosses of a tensor; a cast makes one tensor of it."""
        if not tensor.is_floating_point():
            return tensor.detach()
        _, (encoded,) = self._encode(tensor.detach(), *how[:2], self.codec)
        return encoded


def run(name: str, folder, channel: Channel) -> tuple[float, float]:
    """Seconds by the clock of the rounds, and those in which this thread computed."""
    cell, options = CELLS[name], RunOptions(results_dir=folder, device="cpu")
    quiet_libraries()
    torch.set_num_threads(1)
    inputs = load_inputs(cell, options, None)
    clients, _ = build_clients(cell, inputs, options)
    algorithm = build_federation(cell, inputs, options).algorithm
    start, computed = time.perf_counter(), time.thread_time()
    run_federation(algorithm, clients, channel, lambda *_: {}, rounds=cell.training.rounds, seed=cell.seed)
    return time.perf_counter() - start, time.thread_time() - computed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fedavg", "fedsplitbert-fp16", "fedbert-parallel"])
def test_computed_time_agrees_with_the_clock(name, tmp_path):
    codec = CELLS[name].codec
    dry = Channel(codec)
    run(name, tmp_path / "dry", dry)
    sizes = {way: dry.ledger.total_bytes(way) for way in ("down", "up")}
    rate = (sizes["down"] + sizes["up"] / UP_SHARE) / SECONDS
    network = Network("loopback", rate, UP_SHARE * rate, LATENCY, "this test")
    link = Link()
    try:
        channel = Throttled(codec, network, link)
        clock, computed = run(name, tmp_path / "throttled", channel)
    finally:
        link.close()
    rows = [row for row in channel.ledger.rows if row.round]
    messages = sum(row.messages for row in rows if row.kind not in ACCOMPANYING)
    turn = Turn(channel.ledger.total_bytes("down"), channel.ledger.total_bytes("up"), messages, computed)
    deployment = Deployment(network, Device("this machine", 1.0, "seconds"), utilisation=1.0, parallel=False)
    assert channel.ledger.rows == dry.ledger.rows
    assert deployment.run_seconds([[turn]]) == pytest.approx(clock, rel=0.1)
