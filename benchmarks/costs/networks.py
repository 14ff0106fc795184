"""Estimates the time of runs on given networks and devices from bytes, messages and operations."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.errors import UserError, unknown

MEGABIT = 1e6 / 8  # bytes
Preset = TypeVar("Preset")
# Payload kinds that travel in another kind's message: masks with activations, labels with features.
ACCOMPANYING = ("masks", "labels")
BATCHWISE = ("activations", "gradients")  # sent with every batch


@dataclass(frozen=True)
class Network:
    """A client's link: bytes per second in each direction, and the round-trip time in seconds."""

    name: str
    down: float
    up: float
    latency: float
    source: str


@dataclass(frozen=True)
class Device:
    """A machine that trains: its peak in operations per second; a multiply-add counts as two."""

    name: str
    peak: float
    source: str


_WEBPAGETEST = "WebPageTest's connection profile"
NETWORKS = {
    "3g": Network("3G", 1.6 * MEGABIT, 0.768 * MEGABIT, 0.3, f'{_WEBPAGETEST} "3G": 1.6 and 0.768 Mbit/s, 300 ms'),
    "lte": Network("LTE", 12 * MEGABIT, 12 * MEGABIT, 0.07, f'{_WEBPAGETEST} "LTE": 12 and 12 Mbit/s, 70 ms'),
    "fibre": Network(
        "home fibre",
        2488 / 32 * MEGABIT,
        1244 / 32 * MEGABIT,
        0.004,
        "GPON (ITU-T G.984.2: 2488 and 1244 Mbit/s) shared by 32 homes; 4 ms as WebPageTest's FIOS",
    ),
    "datacentre": Network(
        "data centre",
        10_000 * MEGABIT,
        10_000 * MEGABIT,
        0.0005,
        "10-gigabit Ethernet (IEEE 802.3ae); 0.5 ms inside a data centre (Dean, LADIS 2009)",
    ),
}
DEVICES = {
    "phone": Device("phone", 154e9, "4 Arm Cortex-A78 at 2.4 GHz, 2 pipes of 4 fp32 multiply-adds a cycle"),
    "laptop": Device("laptop", 358e9, "4 x86 cores at 2.8 GHz, 2 AVX2 pipes of 8 fp32 multiply-adds a cycle"),
    "v100": Device("V100", 15.7e12, "NVIDIA V100 SXM2, fp32, by its data sheet"),
}


@dataclass(frozen=True)
class Wire:
    """A transport's overhead: a factor on payload bytes, and extra bytes per message."""

    name: str = "payload bytes"
    factor: float = 1.0
    message_bytes: float = 0.0


WIRES = {
    "payload": "payload bytes",
    "framed": "framed by protobuf, gRPC and HTTP/2",
    "gzip": "framed by protobuf, gRPC and HTTP/2, payloads by gzip",
}
_MEASURED = Path(__file__).parents[1] / "performance" / "measured" / "epyc" / "wire.json"


def wire_of(name: str, codec: str) -> Wire:
    """A transport's overhead on a codec's payloads, which `make bench ARGS=wire` measured in a demo run.

    Args:
        name: "payload" for no overhead; "framed" for Flower's protobuf, gRPC and HTTP/2; "gzip" for the same with
            compressed payloads.
        codec: The run's codec.

    Raises:
        UserError: The name is unknown, or the codec has no measurement.
    """
    title = preset("wire", WIRES, name)
    if name == "payload":
        return Wire()
    by_codec = {row["codec"]: row for row in json.loads(_MEASURED.read_text(encoding="utf-8"))["rows"]}
    if codec not in by_codec:
        raise UserError(
            f"--wire {name}: measured for {', '.join(by_codec)}, found a run with {codec}: use --wire payload"
        )
    measured = by_codec[codec]
    factor = measured["frames_factor"] * (measured["gzip_factor"] if name == "gzip" else 1.0)
    return Wire(title, factor, measured["message_bytes"])


@dataclass(frozen=True)
class Turn:
    """One client's part of a round.

    Args:
        messages: In both directions, without payloads that travel in another message.
        operations: Of the client.
        server_operations: Of the server for this client.
    """

    down_bytes: float = 0.0
    up_bytes: float = 0.0
    messages: float = 0.0
    operations: float = 0.0
    server_operations: float = 0.0


@dataclass(frozen=True)
class Deployment:
    """The network and devices of a run.

    Args:
        utilisation: The share of a device's peak that training reaches.
        parallel: Whether a round's clients work in parallel, each with its link and device, but with one server.
        stragglers: The probability that a client takes `slowdown` times as long in a round.
    """

    network: Network
    device: Device
    server: Device = DEVICES["v100"]
    utilisation: float = 0.3
    parallel: bool = True
    stragglers: float = 0.0
    slowdown: float = 4.0
    wire: Wire = Wire()

    def __post_init__(self) -> None:
        links = (self.network.down, self.network.up, self.device.peak, self.server.peak, self.utilisation)
        if not all(0 < each < math.inf for each in links) or not 0 <= self.network.latency < math.inf:
            raise UserError(f"deployment: expected rates above 0 and a latency of 0 or more, found {self}")
        if not 0 <= self.stragglers <= 1 or not 1 <= self.slowdown < math.inf:
            raise UserError(
                "stragglers: expected a share from 0 to 1 and a slowdown of 1 or more, found "
                f"{self.stragglers} and {self.slowdown}"
            )

    @property
    def label(self) -> str:
        return f"{self.device.name} ({self.network.name})"

    def client_seconds(self, turn: Turn) -> float:
        """Seconds of a client's transfers and computation; each message waits half a round trip."""
        transfer = turn.down_bytes / self.network.down + turn.up_bytes / self.network.up
        framing = self.wire.message_bytes * (1 / self.network.down + 1 / self.network.up) / 2  # mean of both directions
        return (
            self.wire.factor * transfer
            + turn.messages * (self.network.latency / 2 + framing)
            + turn.operations / (self.utilisation * self.device.peak)
        )

    def round_seconds(self, turns: Sequence[Turn]) -> float:
        """The expected seconds of a round: the slowest client's, or the server's for all clients if longer.

        If clients take turns, the sum.
        """
        served = [turn.server_operations / (self.utilisation * self.server.peak) for turn in turns]
        each = [self.client_seconds(turn) for turn in turns]
        if not self.parallel:
            return math.fsum(each) * (1 + self.stragglers * (self.slowdown - 1)) + math.fsum(served)
        normal = [at_client + at_server for at_client, at_server in zip(each, served, strict=True)]
        slow = [self.slowdown * at_client + at_server for at_client, at_server in zip(each, served, strict=True)]
        return _expected_maximum(normal, slow, self.stragglers, math.fsum(served))

    def run_seconds(self, rounds: Iterable[Sequence[Turn]]) -> float:
        """The expected seconds of all rounds in sequence."""
        return math.fsum(map(self.round_seconds, rounds))


def _expected_maximum(normal: Sequence[float], slow: Sequence[float], share: float, least: float) -> float:
    """The expected maximum of independent times; each is slow with this probability."""
    if share in (0, 1):
        return max(*(slow if share else normal), least)
    times = sorted({max(time, least) for time in (*normal, *slow)})
    expected = below = 0.0
    for time in times:
        reached = math.prod(
            (1 - share) * (usual <= time) + share * (late <= time) for usual, late in zip(normal, slow, strict=True)
        )
        expected += time * (reached - below)
        below = reached
    return expected


TYPICAL = {  # network -> a typical client
    network: Deployment(NETWORKS[network], DEVICES[device])
    for network, device in (("3g", "phone"), ("lte", "phone"), ("fibre", "laptop"), ("datacentre", "v100"))
}


def preset(what: str, presets: Mapping[str, Preset], name: str) -> Preset:
    """The preset with that name; UserError for an unknown one. what: such as "network"."""
    if name not in presets:
        raise unknown(what, name, presets)
    return presets[name]
