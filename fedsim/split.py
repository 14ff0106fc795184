"""Split training: clients hold embeddings and head, the server the layers; tensors cross on every batch.

The graph is cut at the wire and gradients are sent back explicitly, which is exact (Gupta and Raskar 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial

from torch import Tensor

from fedsim.algorithms import Workload
from fedsim.data import Batch, Client
from fedsim.engine import FederationState
from fedsim.errors import FederationError
from fedsim.models.model import Model, encoder_layers
from fedsim.rng import TorchStream
from fedsim.server import Moments
from fedsim.store import ClientStore
from fedsim.training import Losses, Optimizer
from fedsim.wire import Channel, Params

Send = Callable[[Mapping[str, Tensor], str], Params]


@dataclass
class SplitMethod:
    """Base class for split-training methods."""

    workload: Workload

    @cached_property
    def at_client(self) -> list[str]:
        """Names of the client's parameters: W^E and W^H, embeddings and head."""
        parts = self.workload.model.groups
        return sorted(parts.embeddings | parts.head)

    @cached_property
    def at_server(self) -> list[str]:
        """Names of the server's parameters: W^T, the layers."""
        return sorted(frozenset().union(*self.workload.model.groups.layers))

    def init(self, clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        self.workload.require_no_adapter("split training")
        for client in clients:
            channel.setup(client.id, {name: self.workload.initial[name] for name in self.at_client})
        return FederationState(0, {}, {}, store)


class Side:
    """One party's parameters, as copies that are trained in place, and their optimiser."""

    def __init__(
        self, workload: Workload, values: Params, names: Iterable[str], moments: Moments, done: int, steps: int
    ) -> None:
        """values: parameters before training. names: the party's parameters. moments: the optimiser's, if kept.

        done, steps: optimiser steps before this round, and in the whole run.
        """
        model, config, ordered = workload.model, workload.training.config, sorted(names)
        parameters = {name: model.parameters[name] for name in ordered}
        self.values = {name: values[name].detach().to(model.device, copy=True) for name in ordered}
        self.optimizer = Optimizer(parameters, config, model.precision, done, steps)
        self._keeps = config.optimizer == "kept"
        if self._keeps:
            self.optimizer.load(moments)

    @property
    def moments(self) -> Moments:
        """The optimiser's moments for the next round; empty if each round has a new optimiser."""
        return self.optimizer.moments if self._keeps else {}


def together(first: Moments, second: Moments) -> Moments:
    """Merge two parties' moments."""
    return {kind: {**first.get(kind, {}), **second.get(kind, {})} for kind in first.keys() | second.keys()}


class SplitUpdate:
    """One client's local epochs with the server, batch by batch: ClientUpdate in FedBERT's Algorithms 2 and 3."""

    def __init__(
        self, workload: Workload, channel: Channel, client: Client, number: int, client_side: Side, server: Side
    ):
        """number: the round. client_side, server: the parties' sides; other clients may also train the server's."""
        self.workload, self.channel, self.client, self.number = workload, channel, client, number
        self.client_side, self.server = client_side, server
        self._losses = Losses(workload.model)
        self._crossing = channel.apart()  # counts the parts of a batch, which form one message
        self._dropout = TorchStream(workload.training.seed, number, client.id, "dropout")

    def __iter__(self) -> Iterator[None]:
        """Train batch by batch; other clients may train between two batches."""
        model, training = self.workload.model, self.workload.training
        for batch in training.batches(self.client.train, model.objective, self.number, self.client.id):
            with self._dropout.drawn():
                model.lend(self.client_side.values | self.server.values)
                model.set_trained(model.parameters)
                model.network.train()
                loss = training.micro_batches.accumulate(batch, self._exchange, self._clear)
            for row in self._crossing.ledger.rows:
                self.channel.ledger.add(row._replace(messages=1))
            self._step()
            self._losses.add(loss, batch)
            training.on_batch(len(batch["labels"]))
            yield

    def _step(self) -> None:
        """One step per party; if clipping uses the norm over both parties, they exchange their norms."""
        client, server, config = self.client_side.optimizer, self.server.optimizer, self.workload.training.config
        of_client = of_server = None
        if config.clip_norm is not None and config.clip_scope == "model":
            of_client = self.channel.to_server(self.client.id, {"norm": client.norm()}, "norms")["norm"]
            of_server = self.channel.to_client(self.client.id, {"norm": server.norm()}, "norms")["norm"]
        server.step(elsewhere=of_client)
        client.step(elsewhere=of_server)

    def _clear(self) -> None:
        self._crossing = self.channel.apart()
        self.client_side.optimizer.clear()
        self.server.optimizer.clear()

    def _exchange(self, part: Batch, share: float) -> Tensor:
        """Run lines 17 to 25 of both algorithms, up to the steps, on part of a batch; returns its share of the loss.

        The client sends P_ef, the embeddings' output, with the token mask, and P_hb, the head's gradient. The server
        sends P_tf, the layers' output, and P_tb, their gradient. Ids and targets stay with the client.
        """
        left: dict[str, Tensor] = {}  # before the wire, with their graph
        arrived: dict[str, Tensor] = {}  # behind the wire, where a new graph begins
        to_server, to_client = (
            partial(send, self.client.id) for send in (self._crossing.to_server, self._crossing.to_client)
        )

        def crosses(send: Send, name: str) -> Callable[[Tensor], Tensor]:
            def through(states_BSD: Tensor) -> Tensor:
                left[name] = states_BSD
                arrived[name] = send({name: states_BSD}, "activations")[name].to(states_BSD.dtype).requires_grad_()
                return arrived[name]

            return through

        model = self.workload.model
        mask_BS = to_server({"mask": part["attention_mask"].bool()}, "masks")["mask"]
        with (
            crossing(model, 0, crosses(to_server, "ef")),
            crossing(model, model.groups.depth, crosses(to_client, "tf")),
        ):
            loss = model.loss({**part, "attention_mask": mask_BS.to(part["attention_mask"].dtype)}) * share
        client, server = self.client_side.optimizer, self.server.optimizer
        client.backward(loss)
        server.backward(left["tf"], to_server({"hb": client.gradient(arrived["tf"])}, "gradients")["hb"])
        client.backward(left["ef"], to_client({"tb": server.gradient(arrived["ef"])}, "gradients")["tb"])
        return loss

    @property
    def loss(self) -> float:
        """The mean loss of all batches so far; raises DivergedError if training diverged."""
        where = f"in round {self.number} on client {self.client.id}"
        trained = self.client_side.values | self.server.values
        return self._losses.mean(trained, where, self.workload.training.config.learning_rate)


@contextmanager
def crossing(model: Model, layer: int, through: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Pass the hidden states [B, S, D] that leave a layer through a function before the next layer reads them.

    layer: 0 for the embeddings, then the encoder's layers from 1; the last layer feeds the head. through: receives the
    states with their graph. If it returns a detached copy, the caller has to send the gradient back. Several crossings
    may be open at once.
    FederationError if there is no such layer, or if the head also reads a layer below the crossing.
    """
    layers, head = encoder_layers(model), model.network.head
    if not 0 <= layer <= len(layers):
        raise FederationError(f"crossing: expected a layer from 0 to {len(layers)}, found {layer}")
    if head.states > 1 and layer > len(layers) - head.states:
        raise FederationError(
            f"crossing behind layer {layer}: the head {type(head).__name__} reads the last {head.states} of "
            f"{len(layers)} layers; cross behind a lower layer, or choose a head that reads only the last one"
        )
    if layer < len(layers):
        hook = layers[layer].register_forward_pre_hook(lambda _, inputs: (through(inputs[0]), *inputs[1:]))
    else:
        hook = head.register_forward_pre_hook(lambda _, inputs: ((through(inputs[0][0]),), *inputs[1:]))
    try:
        yield
    finally:
        hook.remove()
