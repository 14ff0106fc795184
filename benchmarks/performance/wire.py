"""Measures the transport's overhead on demo runs' payloads: Flower's framing, and gzip."""

from __future__ import annotations

import gzip
import io
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.performance.suite import Section
from benchmarks.registry import benchmark
from benchmarks.running.federation import build_clients, build_federation, load_inputs
from benchmarks.running.run_options import RunOptions
from fedsim.codecs import Codec, Encoded
from fedsim.engine import run_federation
from fedsim.precision import DTYPES
from fedsim.wire import Channel, Params

TABLE, ROW, TASK = "fedsplitbert-table3", "fedavg", "mrpc"
HTTP2_FRAME, HTTP2_HEADER, GRPC_PREFIX = 16_384, 9, 5  # bytes: RFC 9113, and gRPC's length-prefixed messages
LEVEL = 6  # the gzip command's default
FIELD = 1  # byte of a protobuf field's tag
TYPE = b"numpy.ndarray"  # Parameters.tensor_type in Flower


class Recorded(Channel):
    """A channel that stores every message's encoded tensors."""

    def __init__(self, codec: str) -> None:
        super().__init__(codec)
        self.messages: list[list[Tensor]] = []

    def _send(
        self, client: int, direction: str, payload: Mapping[str, Tensor], kind: str, codec: Codec | None = None
    ) -> Params:
        self.messages.append([])
        return super()._send(client, direction, payload, kind, codec)

    def _encode(self, tensor: Tensor, kind: str, draws: torch.Generator, codec: Codec) -> tuple[Codec, Encoded]:
        used, encoded = super()._encode(tensor, kind, draws, codec)
        self.messages[-1] += [part.clone() for part in encoded]
        return used, encoded


def wire(repeats: int) -> Section:
    """Framing and compression of FedAvg's payloads, for each codec. repeats: ignored, as bytes do not vary."""
    rows = []
    for codec in DTYPES:
        messages = demo_messages(codec)
        raw = sum(tensor.nbytes for message in messages for tensor in message)
        framed = [framing_bytes(message) for message in messages]
        packed = sum(
            len(gzip.compress(b"".join(array_of(each).tobytes() for each in message), LEVEL)) for message in messages
        )
        rows.append({
            "codec": codec,
            "messages": len(messages),
            "tensors_a_message": len(messages[0]),
            "message_bytes": sum(framed) / len(framed),
            "frames_factor": 1 + HTTP2_HEADER / HTTP2_FRAME,
            "gzip_factor": packed / raw,
        })  # fmt: skip
    return Section(rows, note="message_bytes: npy headers, protobuf fields and gRPC's prefix; frames: HTTP/2.")


def demo_messages(codec: str) -> list[list[Tensor]]:
    """The encoded tensors of every message in the first round of a FedAvg demo run."""
    table = benchmark(TABLE)
    scale = table.scale("demo")
    column = next(each for each in table.columns_at(scale) if each.task == TASK)
    cell = replace(table.cell(table.row(ROW), column, scale, 0), codec=codec)
    channel = Recorded(codec)
    with tempfile.TemporaryDirectory() as folder:
        options = RunOptions(Path(folder), device="cpu")
        inputs = load_inputs(cell, options, None)
        clients, _ = build_clients(cell, inputs, options)
        algorithm = build_federation(cell, inputs, options).algorithm
        run_federation(algorithm, clients, channel, lambda *_: {}, rounds=1, seed=cell.seed)
    return channel.messages


def framing_bytes(message: list[Tensor]) -> int:
    """Bytes that Flower's serialisation adds to a message: an npy header and a protobuf field per tensor."""
    added = GRPC_PREFIX + FIELD + _varint(len(TYPE)) + len(TYPE)
    for tensor in message:
        file = io.BytesIO()
        np.save(file, array_of(tensor), allow_pickle=False)
        size = file.getbuffer().nbytes
        added += size - tensor.nbytes + FIELD + _varint(size)
    return added


def array_of(tensor: Tensor) -> np.ndarray:
    """A tensor as an array with the same bits, as NumPy has no bf16."""
    same = tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor
    return same.contiguous().numpy()


def _varint(value: int) -> int:
    """The size of a protobuf variable-length integer in bytes."""
    return max(1, -(-value.bit_length() // 7))
