"""A federation that trains in milliseconds and that tests can vary."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fedsim.algorithms import Workload, build_algorithm
from fedsim.data import Client, Examples, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, RoundMetrics, Run, Scorer, run_federation
from fedsim.features import FeatureCache
from fedsim.models.model import Model
from fedsim.models.sequence import encoder_from_config, with_head
from fedsim.objectives import Classification, Objective, Regression
from fedsim.precision import resolve_precision
from fedsim.store import ClientStore
from fedsim.train_config import TrainConfig
from fedsim.training import LocalTraining
from fedsim.wire import Channel, Params

# Weights are drawn ten times wider than BERT's, so that so narrow a model answers differently to different texts.
CONFIG: Mapping[str, Any] = {
    "model_type": "bert",
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 16,
    "initializer_range": 0.2,
}
TRAIN_SIZES = (14, 10, 6)  # unequal, so that weights N_i / N show
TEST_SIZE = 5


def _objective(outputs: int) -> Objective:
    return Regression() if outputs == 1 else Classification(outputs)


def _examples() -> Examples:
    rng = np.random.default_rng(0)
    count = sum(TRAIN_SIZES) + len(TRAIN_SIZES) * TEST_SIZE
    offsets = np.concatenate([[0], np.cumsum(rng.integers(3, 10, count))])
    tokens = rng.integers(1, CONFIG["vocab_size"], offsets[-1]).astype(np.int32)
    types = rng.integers(0, 2, offsets[-1]).astype(np.int32)
    labels = (tokens[offsets[:-1]] > CONFIG["vocab_size"] / 2).astype(np.int64)
    return Examples(tokens, types, offsets, labels, padding_id=0)


def _clients(examples: Examples) -> list[Client]:
    clients = []
    start = 0
    for number, size in enumerate(TRAIN_SIZES):
        train, end = start + size, start + size + TEST_SIZE
        test = {"test": Subset(examples, np.arange(train, end))}
        clients.append(Client(number, Subset(examples, np.arange(start, train)), test))
        start = end
    return clients


class RecordingChannel(Channel):
    """A channel that stores what was received: (round, client, direction) -> tensors."""

    def __init__(self, codec: str = "fp32") -> None:
        super().__init__(codec)
        self.received: dict[tuple[int, int, str], Params] = {}

    def to_client(self, client: int, *payload: Any, **how: Any) -> Params:
        return self._record(client, "down", super().to_client(client, *payload, **how))

    def to_server(self, client: int, *payload: Any, **how: Any) -> Params:
        return self._record(client, "up", super().to_server(client, *payload, **how))

    def _record(self, client: int, direction: str, received: Params) -> Params:
        copies = {name: tensor.clone() for name, tensor in received.items()}
        self.received[self.round, client, direction] = copies
        return received


def score(answers: np.ndarray, subset: Subset) -> dict[str, float | None]:
    """Accuracy, a number that changes with the last bit of any answer, and an undefined number."""
    accuracy = float((answers.argmax(1) == subset.labels).mean())
    return {"accuracy": accuracy, "sum": float(answers.astype(np.float64).sum()), "undefined": None}


def local_training(seed: int = 0, epochs: int = 1, width: int | None = None, **config: Any) -> LocalTraining:
    """Local training of one epoch of one round, unless a test asks for more.

    width: tokens to which texts are padded; None: those of the longest of a batch.
    """
    if width is not None:
        config |= {"padding": "fixed", "max_length": width}
    return LocalTraining(TrainConfig(**{"rounds": 1, "local_epochs": epochs, **config}), seed)


class Small:
    """Three clients and a BERT with three layers, or the requested number."""

    config = CONFIG
    hidden = CONFIG["hidden_size"]

    def __init__(self, depth: int = CONFIG["num_hidden_layers"]) -> None:
        self.depth = depth
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self._encoder: nn.Module = encoder_from_config({**CONFIG, "num_hidden_layers": depth})
        self.examples = _examples()
        self.clients = _clients(self.examples)

    def load(
        self,
        outputs: int = 2,
        precision: str = "fp32",
        device: str = "cpu",
        head: str = "pooled",
        objective: Objective | None = None,
        kernels: str = "packed",
    ) -> Model:
        """A new model with the same weights each time."""
        objective = objective or _objective(outputs)
        model = with_head(copy.deepcopy(self._encoder), objective.outputs, seed=0, head=head)
        return Model(model, resolve_precision(precision, device), objective, kernels)

    def workload(
        self,
        load: Callable[[], Model] | None = None,
        outputs: int = 2,
        head: str = "pooled",
        features: FeatureCache | None = None,
        objective: Objective | None = None,
        participation: float = 1.0,
        **training: Any,
    ) -> Workload:
        """One step for each client and round, unless a test asks for more."""
        values = {"seed": 0, "learning_rate": 5e-3, "batch_size": 16, **training}
        return Workload(
            load or (lambda: self.load(outputs, head=head, objective=objective)),
            local_training(**values),
            objective or _objective(outputs),
            max_length=CONFIG["max_position_embeddings"],
            features=features or FeatureCache(),
            clients=len(TRAIN_SIZES),
            participation=participation,
        )

    def algorithm(self, name: str, /, workload: Workload | None = None, **options: Any) -> FederatedAlgorithm:
        return build_algorithm(name, workload or self.workload(), options)

    def run(
        self,
        algorithm: FederatedAlgorithm,
        codec: str = "fp32",
        clients: Sequence[Client] | None = None,
        channel: Channel | None = None,
        score: Scorer = score,
        **engine: Any,
    ) -> Run:
        channel = channel or Channel(codec)
        values = {"rounds": 2, "seed": 0, **engine}
        return run_federation(algorithm, clients or self.clients, channel, score, **values)


def _assert_same_tensors(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> None:
    assert left.keys() == right.keys()
    differing = [name for name in left if not torch.equal(left[name].cpu(), right[name].cpu())]
    assert not differing


def _assert_same_run(left: Run, right: Run) -> None:
    assert left.state.round == right.state.round
    _assert_same_tensors(left.state.shared, right.state.shared)
    assert left.state.moments.keys() == right.state.moments.keys()
    for moment in left.state.moments:
        _assert_same_tensors(left.state.moments[moment], right.state.moments[moment])
    assert list(left.state.clients) == list(right.state.clients)
    for client in left.state.clients:
        _assert_same_tensors(left.state.clients.get(client), right.state.clients.get(client))
    assert left.results == right.results
    assert left.best == right.best
    assert left.answers.keys() == right.answers.keys()
    for number, answers in left.answers.items():
        assert answers.keys() == right.answers[number].keys()
        assert all(np.array_equal(own, right.answers[number][part]) for part, own in answers.items())
    assert left.channel.ledger.rows == right.channel.ledger.rows


@pytest.fixture(scope="session")
def small() -> Small:
    return Small()


@pytest.fixture(scope="session")
def deep() -> Small:
    """The same with four layers, as P-SUM and H-SUM need them."""
    return Small(depth=4)


@pytest.fixture(scope="session")
def assert_same_tensors() -> Callable[[Mapping[str, Tensor], Mapping[str, Tensor]], None]:
    """Same names, same bits."""
    return _assert_same_tensors


@pytest.fixture(scope="session")
def assert_same_run() -> Callable[[Run, Run], None]:
    """Same bits in the server's state, the clients' tensors, the results and the ledger."""
    return _assert_same_run


@pytest.fixture(scope="session")
def recording_channel() -> type[RecordingChannel]:
    return RecordingChannel


@pytest.fixture(scope="session")
def counting() -> FederatedAlgorithm:
    """A method without a model: after round r every tensor holds r, and every client's loss was r."""

    def init(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
        for client in clients:
            channel.setup(client.id, {"w": torch.zeros(3)})
        return FederationState(0, {}, {}, store)

    def round(state: FederationState, cohort: Sequence[Client], channel: Channel) -> Any:
        number = state.round + 1
        value = torch.full((3,), float(number))
        for client in cohort:
            channel.to_server(client.id, {"w": value})
            state.clients.put(client.id, number, {"own": value + client.id})
        metrics = RoundMetrics(tuple(float(number) for _ in cohort), float(number))
        return FederationState(number, {"w": value}, {"m": {"w": -value}}, state.clients), metrics

    def predict(state: FederationState, client: Client, subset: Subset) -> np.ndarray:
        own = state.clients.get(client.id).get("own", torch.zeros(3))
        return np.tile(own.numpy()[:2], (len(subset), 1))

    return FederatedAlgorithm(init, round, predict)
