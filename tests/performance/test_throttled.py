"""Computed time against the clock: every encoded payload of a demo run goes through a throttled socket."""

import socket
import threading
import time
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from benchmarks.costs.networks import ACCOMPANYING, Deployment, Device, Network, Turn
from benchmarks.running.federation import build_clients, build_federation, load_inputs
from benchmarks.running.process import quiet_libraries
from benchmarks.running.run_options import RunOptions
from fedsim.engine import run_federation
from fedsim.wire import Channel, Params
from tests.golden.outcome import CELLS

LATENCY, SECONDS, CHUNK = 0.01, 15.0, 1 << 14  # of a round trip; that all transfers take; bytes sent at once
UP_SHARE = 0.5  # of the downlink's rate


class Link:
    """A loopback socket with a fixed rate; received bytes are compared with sent ones."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.near = socket.create_connection(listener.getsockname())
            self.far, _ = listener.accept()
        self.near.settimeout(30)
        self.far.settimeout(30)
        self.under_way = 0.0  # seconds by the clock in which messages were on the link

    def send(self, data: bytes, rate: float) -> bytes:
        """The received bytes, no earlier than the rate allows."""
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


def raw(tensor: Tensor) -> bytes:
    """A tensor's bytes in memory."""
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


class Throttled(Channel):
    """A channel over a link of fixed rates, on which every message waits half a round trip."""

    def __init__(self, codec: str, network: Network, link: Link) -> None:
        super().__init__(codec)
        self.network, self.link = network, link  # which a copy for one client shares

    def _encode(self, *args):
        used, encoded = super()._encode(*args)
        self.parts += map(raw, encoded)
        return used, encoded

    def _send(self, client: int, direction: str, payload: Mapping[str, Tensor], kind: str, codec=None) -> Params:
        self.parts = []
        received = super()._send(client, direction, payload, kind, codec)
        sent = b"".join(self.parts)
        start = time.perf_counter()
        if payload and kind not in ACCOMPANYING:
            time.sleep(self.network.latency / 2)
        arrived = self.link.send(sent, self.network.down if direction == "down" else self.network.up)
        self.link.under_way += time.perf_counter() - start
        assert arrived == sent
        return received


def run(name: str, folder, channel: Channel) -> float:
    """Seconds of the rounds by the clock."""
    cell, options = CELLS[name], RunOptions(results_dir=folder, device="cpu")
    quiet_libraries()
    torch.set_num_threads(1)
    inputs = load_inputs(cell, options, None)
    clients, _ = build_clients(cell, inputs, options)
    algorithm = build_federation(cell, inputs, options).algorithm
    start = time.perf_counter()
    run_federation(algorithm, clients, channel, lambda *_: {}, rounds=cell.training.rounds, seed=cell.seed)
    return time.perf_counter() - start


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
        clock = run(name, tmp_path / "throttled", channel)
    finally:
        link.close()
    rows = [row for row in channel.ledger.rows if row.round]
    messages = sum(row.messages for row in rows if row.kind not in ACCOMPANYING)
    computed = clock - link.under_way
    turn = Turn(channel.ledger.total_bytes("down"), channel.ledger.total_bytes("up"), messages, computed)
    deployment = Deployment(network, Device("this machine", 1.0, "seconds"), utilisation=1.0, parallel=False)
    assert channel.ledger.rows == dry.ledger.rows
    assert deployment.run_seconds([[turn]]) == pytest.approx(clock, rel=0.1)
