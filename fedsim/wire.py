"""The wire: codecs, and the channel that encodes, counts and decodes every tensor that leaves its owner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fedsim.errors import FederationError

Params = dict[str, Tensor]
SETUP_ROUND = 0  # the one-time distribution of the pre-trained model; rounds count from 1


class LedgerRow(NamedTuple):
    """What one client sent or received of one kind in one round: how many values, bytes and messages in all."""

    round: int
    client: int
    direction: str  # "down" to the client, "up" to the server
    kind: str  # "parameters", "activations", "gradients", "features", "labels", "masks", "norms"
    values: int
    bytes: int
    messages: int = 1


class Ledger:
    """What crossed the wire, as sums by round, client, direction and kind: its size does not depend on the messages."""

    def __init__(self, rows: Iterable[Sequence[Any]] = ()) -> None:
        self._rounds: dict[int, dict[tuple[int, str, str], LedgerRow]] = {}
        for row in rows:
            self.add(LedgerRow(*row))

    @property
    def rows(self) -> list[LedgerRow]:
        """Every sum, round by round, in the order of first messages."""
        return [row for sums in self._rounds.values() for row in sums.values()]

    def add(self, row: LedgerRow) -> None:
        """Count some messages."""
        sums = self._rounds.setdefault(row.round, {})
        key = (row.client, row.direction, row.kind)
        if key in sums:
            *_, values, size, messages = sums[key]
            row = row._replace(values=row.values + values, bytes=row.bytes + size, messages=row.messages + messages)
        sums[key] = row

    def total_bytes(self, direction: str | None = None, round: int | None = None) -> int:
        """Bytes of the rounds proper (not the set-up), of one direction or both, of one round or all."""
        numbers = self._rounds.keys() - {SETUP_ROUND} if round is None else {round} - {SETUP_ROUND}
        rows = (row for number in numbers for row in self._rounds.get(number, {}).values())
        return sum(row.bytes for row in rows if direction in (None, row.direction))

    @property
    def setup_bytes(self) -> int:
        """Bytes sent once, before the first round."""
        return sum(row.bytes for row in self._rounds.get(SETUP_ROUND, {}).values())


CODECS: Mapping[str, torch.dtype] = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def codec_dtype(name: str) -> torch.dtype:
    """The element type in which a codec sends floating-point values."""
    if name not in CODECS:
        raise FederationError(f"unknown codec {name!r}: expected one of {', '.join(CODECS)}")
    return CODECS[name]


class Channel:
    """Between the server and its clients: encode -> count -> decode, so that a codec's rounding is real.

    Bytes are those of the encoded values; names, shapes and framing are not counted (they are the same in
    every round and known in advance).
    """

    def __init__(self, codec: str = "fp32", ledger: Ledger | None = None) -> None:
        self.dtype = codec_dtype(codec)
        self.ledger = ledger if ledger is not None else Ledger()
        self.round = SETUP_ROUND

    def apart(self) -> Channel:
        """A copy with a separate ledger, for transfers whose rows are added to this one's later, in order."""
        own = copy(self)
        own.ledger = Ledger()
        return own

    def setup(self, client: int, payload: Mapping[str, Tensor]) -> None:
        """Count the model that a client is given once, before the first round, in its own precision."""
        values = sum(tensor.numel() for tensor in payload.values())
        size = sum(tensor.numel() * tensor.element_size() for tensor in payload.values())
        self.ledger.add(LedgerRow(SETUP_ROUND, client, "down", "parameters", values, size))

    def to_client(self, client: int, payload: Mapping[str, Tensor], kind: str = "parameters") -> Params:
        """What the client receives."""
        return self._send(client, "down", payload, kind)

    def to_server(self, client: int, payload: Mapping[str, Tensor], kind: str = "parameters") -> Params:
        """What the server receives."""
        return self._send(client, "up", payload, kind)

    def stream_to_server(self, client: int, chunks: Iterable[Mapping[str, Tensor]]) -> Iterator[Params]:
        """What the server receives of a large payload, chunk by chunk; each name is a kind, with one ledger row."""
        sent: dict[str, tuple[int, int]] = {}
        try:
            for chunk in chunks:
                received: Params = {}
                for kind, tensor in chunk.items():
                    received[kind], values, size = self._transfer(tensor)
                    before = sent.get(kind, (0, 0))
                    sent[kind] = before[0] + values, before[1] + size
                yield received
        finally:  # also what was sent before someone broke off
            for kind, (values, size) in sent.items():
                self.ledger.add(LedgerRow(self.round, client, "up", kind, values, size))

    def at_rest(self, params: Mapping[str, Tensor]) -> Params:
        """The server's copy, kept in the precision in which it is sent (FedSplitBERT, Algorithm 1)."""
        return {name: self._decode(self._encode(tensor)) for name, tensor in params.items()}

    def _send(self, client: int, direction: str, payload: Mapping[str, Tensor], kind: str) -> Params:
        received: Params = {}
        values = size = 0
        for name, tensor in payload.items():
            received[name], own_values, own_size = self._transfer(tensor)
            values += own_values
            size += own_size
        if payload:
            self.ledger.add(LedgerRow(self.round, client, direction, kind, values, size))
        return received

    def _transfer(self, tensor: Tensor) -> tuple[Tensor, int, int]:
        """What arrives of a tensor, and the values and bytes that went over the wire."""
        encoded = self._encode(tensor)
        return self._decode(encoded), encoded.numel(), encoded.numel() * encoded.element_size()

    def _encode(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self.dtype) if tensor.is_floating_point() else tensor.detach()

    @staticmethod
    def _decode(tensor: Tensor) -> Tensor:
        return tensor.to(torch.float32) if tensor.is_floating_point() else tensor
