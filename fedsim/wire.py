"""The wire: the channel that encodes, counts and decodes every tensor that leaves its owner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fedsim.codecs import Cast, Codec, Encoded, build_codec, for_downloads
from fedsim.rng import derive_seed
from fedsim.store import ClientStore
from fedsim.store import Params as Params

FP32 = Cast(torch.float32)
# Kinds that a codec by change encodes: parameters as changes, the others directly. All else crosses in fp32: a second
# moment rounded to 0, for example, would divide a step by almost 0.
ENCODED = ("parameters", "activations", "gradients", "features")
SETUP_ROUND = 0  # the one-time distribution of the pre-trained model; rounds count from 1


class LedgerRow(NamedTuple):
    """One client's traffic in one round, direction and kind: total values, bytes and messages."""

    round: int
    client: int
    direction: str  # "down" to the client, "up" to the server
    kind: str  # "parameters", "activations", "gradients", "features", "labels", "masks", "norms"
    values: int
    bytes: int
    messages: int = 1


class Ledger:
    """Traffic summed by round, client, direction and kind; its size does not grow with the number of messages."""

    def __init__(self, rows: Iterable[Sequence[Any]] = ()) -> None:
        self._rounds: dict[int, dict[tuple[int, str, str], LedgerRow]] = {}
        for row in rows:
            self.add(LedgerRow(*row))

    @property
    def rows(self) -> list[LedgerRow]:
        """All sums, by round, in the order of their first messages."""
        return [row for sums in self._rounds.values() for row in sums.values()]

    def add(self, row: LedgerRow) -> None:
        """Add messages to their sum."""
        sums = self._rounds.setdefault(row.round, {})
        key = (row.client, row.direction, row.kind)
        if key in sums:
            *_, values, size, messages = sums[key]
            row = row._replace(values=row.values + values, bytes=row.bytes + size, messages=row.messages + messages)
        sums[key] = row

    def total_bytes(self, direction: str | None = None, round: int | None = None) -> int:
        """Bytes without the set-up, in one direction or both, in one round or all."""
        numbers = self._rounds.keys() - {SETUP_ROUND} if round is None else {round} - {SETUP_ROUND}
        rows = (row for number in numbers for row in self._rounds.get(number, {}).values())
        return sum(row.bytes for row in rows if direction in (None, row.direction))

    @property
    def setup_bytes(self) -> int:
        """Bytes sent once, before the first round."""
        return sum(row.bytes for row in self._rounds.get(SETUP_ROUND, {}).values())


class Channel:
    """The link between server and clients: encode -> count -> decode, so that a codec's rounding takes effect.

    It counts the bytes of encoded values. Names, shapes and framing are not counted: they are equal in every round and
    known in advance.

    A codec by change sends parameters as differences from `held`: the client's last received parameters, initially the
    set-up's, which both sides know. So the next download also carries what this one drops. With error feedback, a
    client adds what an upload drops (`dropped`) to its next upload.
    """

    def __init__(self, codec: str = "fp32", seed: int = 0) -> None:
        """seed: for random codecs; their samples also depend on round, client and message."""
        self.codec = build_codec(codec)
        self.ledger = Ledger()
        self.round = SETUP_ROUND
        self.held, self.dropped = ClientStore(), ClientStore()
        self._initial: dict[int, Mapping[str, Tensor]] = {}
        self._seed, self._messages = seed, Counter[str]()

    def apart(self) -> Channel:
        """A copy with a separate ledger, whose rows are added to this ledger later, in order."""
        channel = copy(self)
        channel.ledger = Ledger()
        return channel

    def keep_in(self, store: ClientStore) -> None:
        """Keep the codec's memory of each client in the same way and place as a store's tensors."""
        self.held, self.dropped = store.with_prefix("held"), store.with_prefix("dropped")

    def setup(self, client: int, payload: Mapping[str, Tensor]) -> None:
        """Count the model that a client receives once, before the first round, in the model's precision."""
        values = sum(tensor.numel() for tensor in payload.values())
        size = sum(tensor.numel() * tensor.element_size() for tensor in payload.values())
        self.ledger.add(LedgerRow(SETUP_ROUND, client, "down", "parameters", values, size))
        self._initial[client] = payload

    def to_client(
        self,
        client: int,
        payload: Mapping[str, Tensor],
        kind: str = "parameters",
        view: Mapping[str, str] | None = None,
    ) -> Params:
        """What the client receives. view: the payload's names -> the server's, if they differ."""
        if not self.codec.by_change or kind != "parameters":
            return self._send(client, "down", payload, kind)
        held = _fitting(self._held(client), payload, view)
        changes = {name: payload[name] - held[name] for name in payload}
        arrived = self._send(client, "down", changes, kind, for_downloads(self.codec))
        received = {name: held[name] + arrived[name] for name in payload}
        self._remember(self.held, client, received, view)
        return received

    def to_server(
        self,
        client: int,
        payload: Mapping[str, Tensor],
        kind: str = "parameters",
        view: Mapping[str, str] | None = None,
        onto: Mapping[str, Tensor] | None = None,
    ) -> Params:
        """What the server receives.

        view: as in `to_client`. onto: the server's tensors, by the payload's names, to which received changes are
        added. Without it they are added to the client's tensors, so that the server also loses what the download
        dropped.
        """
        if not self.codec.by_change or kind != "parameters":
            return self._send(client, "up", payload, kind)
        held = _fitting(self._held(client), payload, view)
        due = _fitting(self.dropped.get(client), payload, view)
        changes = {name: payload[name] - held[name] + due[name] for name in payload}
        arrived = self._send(client, "up", changes, kind)
        if self.codec.keeps_dropped:
            self._remember(self.dropped, client, {name: changes[name] - arrived[name] for name in changes}, view)
        base = held if onto is None else onto
        return {name: base[name] + arrived[name] for name in payload}

    def at_client(self, client: int, params: Mapping[str, Tensor]) -> Params:
        """The server's tensors as received by a client in an earlier round."""
        return _fitting(self._held(client), params) if self.codec.by_change else dict(params)

    def merged(self, client: int, params: Mapping[str, Tensor]) -> None:
        """Note that a client has computed these server tensors itself, from what it received.

        What it dropped from uploads of their former values is void.
        """
        if self.codec.by_change and params:
            self._remember(self.held, client, dict(params), None)
            kept = {name: tensor for name, tensor in self.dropped.get(client).items() if name not in params}
            if self.codec.keeps_dropped:
                self.dropped.put(client, self.round, kept)

    def stream_to_server(self, client: int, chunks: Iterable[Mapping[str, Tensor]]) -> Iterator[Params]:
        """Send a large payload in chunks and yield what the server receives; each name is a kind with a ledger row."""
        sent: dict[str, tuple[int, int]] = {}
        try:
            for chunk in chunks:
                received: Params = {}
                for kind, tensor in chunk.items():
                    received[kind], values, size = self._transfer(tensor, kind, self._draws(client, "up", kind))
                    before = sent.get(kind, (0, 0))
                    sent[kind] = before[0] + values, before[1] + size
                yield received
        finally:  # also counts what was sent before an interruption
            for kind, (values, size) in sent.items():
                self.ledger.add(LedgerRow(self.round, client, "up", kind, values, size))

    def at_rest(self, params: Mapping[str, Tensor]) -> Params:
        """The server's copy, kept in the precision that is sent (FedSplitBERT, Algorithm 1)."""
        if self.codec.by_change:
            return dict(params)
        draws = torch.Generator()  # not used by a cast
        return {name: self.codec.decode(self.codec.encode(each, draws), each.shape) for name, each in params.items()}

    def _send(
        self, client: int, direction: str, payload: Mapping[str, Tensor], kind: str, codec: Codec | None = None
    ) -> Params:
        received: Params = {}
        values = size = 0
        draws = self._draws(client, direction, kind)
        for name, tensor in payload.items():
            received[name], tensor_values, tensor_size = self._transfer(tensor, kind, draws, codec)
            values += tensor_values
            size += tensor_size
        if payload:
            self.ledger.add(LedgerRow(self.round, client, direction, kind, values, size))
        return received

    def _transfer(
        self, tensor: Tensor, kind: str, draws: torch.Generator, codec: Codec | None = None
    ) -> tuple[Tensor, int, int]:
        """The received tensor, its number of values, and the bytes sent.

        A tensor that a codec by change does not shorten crosses in fp32.
        """
        tensor = tensor.detach()
        if not tensor.is_floating_point():
            return tensor, tensor.numel(), _bytes((tensor,))
        codec, encoded = self._encode(tensor, kind, draws, codec or self.codec)
        return codec.decode(encoded, tensor.shape), tensor.numel(), _bytes(encoded)

    def _encode(self, tensor: Tensor, kind: str, draws: torch.Generator, codec: Codec) -> tuple[Codec, Encoded]:
        if not codec.by_change:
            return codec, codec.encode(tensor, draws)
        if kind in ENCODED and tensor.numel():
            encoded = codec.encode(tensor.float(), draws)
            if _bytes(encoded) < 4 * tensor.numel():
                return codec, encoded
        return FP32, FP32.encode(tensor, draws)

    def _draws(self, client: int, direction: str, kind: str) -> torch.Generator:
        """The generator for the next message; equal in any process and after a resume."""
        stream = f"{direction} {kind}"
        key = f"{self.round}/{client}/{stream}"
        self._messages[key] += 1
        seed = derive_seed(self._seed, self.round, client, f"codec {stream} {self._messages[key]}")
        return torch.Generator().manual_seed(seed)

    def _held(self, client: int) -> Mapping[str, Tensor]:
        return {**self._initial.get(client, {}), **self.held.get(client)}

    def _remember(self, store: ClientStore, client: int, params: Params, view: Mapping[str, str] | None) -> None:
        named = {(view or {}).get(name, name): tensor for name, tensor in params.items()}
        store.put(client, self.round, {**store.get(client), **named})


def _fitting(
    memory: Mapping[str, Tensor], payload: Mapping[str, Tensor], view: Mapping[str, str] | None = None
) -> Params:
    """The remembered tensor for each name in a payload, or zeros if it is missing or has another shape."""
    fitting: Params = {}
    for name, tensor in payload.items():
        before = memory.get((view or {}).get(name, name))
        fits = before is not None and before.shape == tensor.shape
        fitting[name] = before.to(tensor.device) if before is not None and fits else torch.zeros_like(tensor)
    return fitting


def _bytes(encoded: Encoded) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in encoded)
