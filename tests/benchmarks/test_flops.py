"""FLOPs by hand: what is frozen above and below, rounds of a method's own, tokens that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import fedsim.algorithms
from benchmarks.effort import Effort, estimate_effort
from benchmarks.federation import build_clients, load_inputs
from benchmarks.flops import Counted, FlopCounter, OneText, PerText, Size, prepared_already
from benchmarks.registry import benchmark
from benchmarks.dry_run import cohorts
from benchmarks.settings import Settings
from benchmarks.spec import Cell
from fedsim.algorithms import Setting
from fedsim.algorithms.averaging import averaging
from fedsim.algorithms.inversion import known_texts, tokens_of
from fedsim.data import Batch, Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics
from fedsim.models.encoder import encoder_from_config
from fedsim.models.model import Model
from fedsim.models.sequence import with_head
from fedsim.objectives import CausalLM, MaskedLM, TokenClassification, Vocabulary
from fedsim.plan import ExchangePlan
from fedsim.precision import Precision
from fedsim.store import ClientStore
from fedsim.wire import Channel

CellsOf = Callable[..., list[Cell]]
H, INNER, DEPTH = 64, 128, 4  # of the built-in tiny encoder
QUERY_KEY_VALUE = 2 * 3 * H**2  # a token, forwards
LAYER = 2 * (4 * H**2 + 2 * H * INNER)
POOLED = 2 * (H**2 + 2 * H)


@pytest.fixture
def cell(cells_of: CellsOf) -> Cell:
    (found,) = cells_of(["fedavg"], "training.rounds=2", "training.local_epochs=3")
    return found


@pytest.fixture
def effort(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Effort]:
    """The effort of a cell under a method that a test makes up."""

    def estimate(method: Callable[[Setting], FederatedAlgorithm], **changes: Any) -> Effort:
        monkeypatch.setattr(fedsim.algorithms, "algorithm_function", lambda name: method)
        training = replace(cell.training, **changes)
        return estimate_effort(replace(cell, algorithm=method.__name__, options={}, training=training), Settings())

    return estimate


@pytest.fixture
def clients(cell: Cell) -> list[Client]:
    return build_clients(cell, load_inputs(cell, Settings()), Settings())[0]


def texts(clients: Sequence[Client]) -> np.ndarray:
    """Tokens of each training text."""
    return np.concatenate([client.train.examples.lengths[client.train.indices] for client in clients])


def attention(lengths: np.ndarray) -> int:
    """One layer's products of queries and keys, and of weights and values, forwards."""
    return int(4 * H * (lengths**2).sum())


def trains(layers: Sequence[int], head: bool = True, embeddings: bool = False) -> Callable[..., FederatedAlgorithm]:
    """A method that trains these layers, counted from 0 at the bottom."""

    def made(setting: Setting) -> FederatedAlgorithm:
        parts = setting.model.groups
        own = frozenset().union(
            *(parts.layers[layer] for layer in layers),
            parts.head if head else (),
            parts.embeddings if embeddings else (),
        )
        plan = ExchangePlan({name: name for name in parts.names}, own, own, own, frozenset())
        return averaging(setting, lambda round, client: plan)

    made.__name__ = f"trains-{'-'.join(map(str, layers))}-{head}-{embeddings}"
    return made


# ---- which gradients there are ---------------------------------------------------------------------------------


def by_hand(lengths: np.ndarray, lowest: int, trained: int, head: int, embeddings: bool = False) -> int:
    """FLOPs of an epoch: all layers forwards; gradients of activations from the top to the lowest trained layer; of
    weights where trained; 2 of attention wherever a gradient goes through. head: passes through the head."""
    tokens, count = int(lengths.sum()), len(lengths)
    through = DEPTH - lowest  # layers with gradients of activations
    found = DEPTH * (LAYER * tokens + attention(lengths)) + through * (LAYER * tokens + 2 * attention(lengths))
    found += trained * LAYER * tokens + head * POOLED * count
    return found if embeddings else found - QUERY_KEY_VALUE * tokens  # nothing is trained below the lowest layer


@pytest.mark.parametrize(
    ("method", "lowest", "trained", "head"),
    [
        (trains([0]), 0, 1, 3),  # frozen layers above
        (trains([2]), 2, 1, 3),  # above and below
        (trains([1, 3]), 1, 2, 3),  # between
        (trains([0], head=False), 0, 1, 2),  # a frozen head as well
        (trains([0, 1, 2, 3]), 0, 4, 3),
    ],
)
def test_a_backward_pass_goes_down_to_what_is_trained(
    effort: Callable[..., Effort], cell: Cell, clients: list[Client], method: Any, lowest: int, trained: int, head: int
) -> None:
    expected = 2 * 3 * by_hand(texts(clients), lowest, trained, head)  # rounds, epochs
    assert effort(method).training_flops == expected


def test_trained_embeddings_ask_for_gradients_through_all_layers(
    effort: Callable[..., Effort], clients: list[Client]
) -> None:
    frozen_layers, all_trained = (effort(trains(layers, embeddings=True)) for layers in ([], range(DEPTH)))
    assert frozen_layers.training_flops == 2 * 3 * by_hand(texts(clients), 0, 0, 3, embeddings=True)
    assert all_trained.training_flops == 2 * 3 * by_hand(texts(clients), 0, DEPTH, 3, embeddings=True)


def test_a_head_over_a_frozen_encoder_has_no_gradient_below(
    effort: Callable[..., Effort], clients: list[Client]
) -> None:
    lengths = texts(clients)
    encoder = DEPTH * (LAYER * lengths.sum() + attention(lengths))
    pooler, classifier = 2 * H**2, 2 * 2 * H
    expected = encoder + (2 * pooler + 3 * classifier) * len(lengths)
    assert effort(trains([])).training_flops == 2 * 3 * expected


def test_shallower_clients_and_layers_that_take_turns(effort: Callable[..., Effort], clients: list[Client]) -> None:
    """The first two layers stand for the server's; the first is trained in round 1, the second in round 2."""

    def method(setting: Setting) -> FederatedAlgorithm:
        parts = setting.model.groups
        names = parts.embeddings | parts.layers[0] | parts.layers[1] | parts.head

        def plan(round: int, client: int) -> ExchangePlan:
            own = parts.layers[round - 1] | parts.head
            return ExchangePlan({name: name for name in names}, own, own, own, frozenset())

        return averaging(setting, plan)

    lengths = texts(clients)
    tokens, head = int(lengths.sum()), 3 * POOLED * len(lengths)
    forward, backward = LAYER * tokens + attention(lengths), LAYER * tokens + 2 * attention(lengths)
    trained = LAYER * tokens - QUERY_KEY_VALUE * tokens
    first, second = (2 * forward + through * backward + trained + head for through in (2, 1))
    assert effort(method).training_flops == 3 * (first + second)


def test_each_round_counts_the_clients_that_are_drawn(
    effort: Callable[..., Effort], cell: Cell, clients: list[Client]
) -> None:
    third = effort(trains([2]), participation=0.34)
    cell = replace(cell, training=replace(cell.training, participation=0.34))
    drawn = list(cohorts(cell, clients))
    assert third.training_flops == 3 * sum(by_hand(texts(cohort), 2, 1, 3) for cohort in drawn)
    batches = (-(-len(client.train) // cell.training.batch_size) for cohort in drawn for client in cohort)
    assert third.steps == 3 * sum(batches)


# ---- rounds of a method's own ----------------------------------------------------------------------------------


def own_round(setting: Setting, together: bool) -> FederatedAlgorithm:
    """Trains all but the embeddings with the parts of local training; together: clients meet on every batch."""
    model, training = setting.model, setting.training
    names = sorted(model.groups.names - model.groups.embeddings)

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        return FederationState(0, {}, {}, store)

    def round(state: FederationState, cohort: Sequence[Client], channel: Channel) -> Any:
        number, losses = state.round + 1, []
        streams = [training.batches(client.train, model.objective, number, client.id) for client in cohort]
        model.set_trained(names)
        optimizer = training.optimizer_of(model, names, cohort[0].train, number)
        for batch in taking_turns(streams) if together else (batch for stream in streams for batch in stream):
            loss = model.loss(batch)
            optimizer.backward(loss)
            optimizer.step()
            losses.append(loss.item())
        assert np.isfinite(losses).all()
        return FederationState(number, model.snapshot(names), {}, state.clients), RoundMetrics((), losses[-1])

    def predict(state: FederationState, client: Client | None, subset: Subset) -> np.ndarray:
        return model.predict(subset, 64, None)

    return FederatedAlgorithm(init, round, predict, personal=False)


def taking_turns(streams: list[Iterator[Batch]]) -> Iterator[Batch]:
    while streams:
        for stream in list(streams):
            batch = next(stream, None)
            if batch is None:
                streams.remove(stream)
            else:
                yield batch


@pytest.mark.parametrize("together", [False, True])
def test_a_method_that_composes_its_steps_costs_what_it_computes(
    effort: Callable[..., Effort], cell: Cell, together: bool
) -> None:
    def method(setting: Setting) -> FederatedAlgorithm:
        return own_round(setting, together)

    own, average = effort(method), effort(trains(range(DEPTH)))
    assert own.training_flops == average.training_flops > 0
    assert own.steps == average.steps
    assert own.scoring_flops == average.scoring_flops > 0


def of_table(table: str, row: str, **changes: Any) -> Cell:
    found = benchmark(table)
    (cell,) = (cell for each, _, cell in found.cells(found.scale("demo"), [0]) if each.id == row)
    return replace(cell, **changes)


def test_a_server_that_trains_on_features_costs_what_a_central_one_costs() -> None:
    server, central, trimmed = (
        estimate_effort(of_table("fedfreezebert-table3", row, **changes), Settings())
        for row, changes in (
            ("c-psum", {}),
            ("c-psum", {"algorithm": "central", "options": {"train": "head"}}),
            ("c-psum", {"options": {"features": "trimmed"}}),
        )
    )
    assert server == central == trimmed
    assert server.training_flops > 0


def test_an_attack_trains_a_model_of_its_own() -> None:
    cell = of_table("fedfreezebert-inversion", "last")
    clients, _ = build_clients(cell, load_inputs(cell, Settings()), Settings())
    known = known_texts(clients, cell.options["public_texts"], cell.seed)
    lengths, asked = known.examples.lengths[known.indices], tokens_of(known)
    inner = outer = 2 * 4 * H * H
    logits = 2 * H * len(np.unique(asked))
    encoder = DEPTH * (LAYER * lengths.sum() + attention(lengths))
    # A LayerNorm below the inner matrix is trained; the words that an estimate is compared with are not.
    epoch = 3 * (inner + outer) * lengths.sum() + 2 * logits * len(asked)
    assert estimate_effort(cell, Settings()).training_flops == encoder + cell.training.local_epochs * epoch


def test_the_token_majority_computes_nothing() -> None:
    assert estimate_effort(of_table("fedfreezebert-inversion", "token-majority"), Settings()) == Effort(0, 0, 0)


def test_every_client_is_asked_where_all_answer_together() -> None:
    own, together = (
        estimate_effort(of_table("fedfreezebert-table3", "fedsplitbert-ordinary", options=options), Settings())
        for options in ({"critical_layer": 3, "answers": "own"}, {"critical_layer": 3, "answers": "mean"})
    )
    assert own.scoring_flops == together.scoring_flops > 0  # five models on a common test set, either way


# ---- tokens that are asked for ---------------------------------------------------------------------------------

V = 90
CONFIG = {
    "model_type": "bert", "vocab_size": V, "hidden_size": H, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": INNER, "max_position_embeddings": 16,
}  # fmt: skip
WORDS = Vocabulary(V, np.arange(5, V), mask_id=4)


@pytest.mark.parametrize(
    ("objective", "head", "per_target", "embeddings"),
    [
        (MaskedLM(V, WORDS), "masked-lm", 3 * 2 * H * H + 3 * 2 * H * V, True),  # the transform, the tied decoder
        (MaskedLM(V, WORDS), "masked-lm", 3 * 2 * H * H + 2 * 2 * H * V, False),  # a decoder that is not trained
        (CausalLM(V), "causal-lm", 3 * 2 * H * V, True),
        (TokenClassification(7), "tokens", 3 * 2 * H * 7, True),
    ],
)
def test_what_stands_on_tokens_counts_those_asked_for(
    objective: Any, head: str, per_target: int, embeddings: bool
) -> None:
    with torch.device("meta"):
        model = with_head(encoder_from_config(CONFIG), objective.outputs, 0, head=head)
    resident = Model(model, Precision(torch.device("meta"), "fp32"), prepared_already(objective))
    counter = FlopCounter()
    parts = resident.groups
    names = sorted(parts.names if embeddings else parts.names - parts.embeddings)
    counted: list[PerText] = []
    training = Counted(0, 1e-3, 4, counter=counter, on_batches=lambda _, subset, flops: counted.append(flops))
    subset = OneText(Size(5, 1), objective).subset
    with counter:
        training.run(resident, subset, names, 1, 0)
        training.run(resident, subset, names, 1, 0)  # known by now
    (found, again) = counted
    assert found == again
    lowest = 0 if embeddings else QUERY_KEY_VALUE
    assert found == PerText(base=0, token=3 * 2 * LAYER - lowest, pair=3 * 2 * 4 * H, target=per_target)
    assert found.of(np.array([5, 9]), 3) == found.token * 14 + found.pair * (25 + 81) + found.target * 3
