"""A federation that trains in milliseconds and that tests can vary."""

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from fedsim.adapter_config import AdapterConfig
from fedsim.algorithms import Workload, build_algorithm
from fedsim.data import Client, Examples, Subset
from fedsim.engine import FederatedAlgorithm, Run, run_federation
from fedsim.features import FeatureCache
from fedsim.models.adapters import with_adapter
from fedsim.models.model import Model
from fedsim.models.sequence import encoder_from_config, with_head
from fedsim.objectives import CausalLM, Classification, MaskedLM, Objective, Vocabulary
from fedsim.precision import resolve_precision
from fedsim.store import ClientStore
from fedsim.train_config import TrainConfig
from fedsim.training import LocalTraining
from fedsim.wire import Channel

VOCABULARY, SPECIAL, MASK = 60, 10, 3  # ids below SPECIAL are special
WIDTH = 16  # tokens of the longest text
# In BERT's names, which the library maps to the other families'; only hidden_dim is DistilBERT's own. Weights are drawn
# ten times wider than BERT's, so that so narrow a model answers differently to different texts.
CONFIG: Mapping[str, Any] = {
    "model_type": "bert",
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "hidden_dim": 24,
    "max_position_embeddings": WIDTH,
    "initializer_range": 0.2,
}
GPT2: Mapping[str, Any] = {
    "model_type": "gpt2",
    "num_hidden_layers": 2,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": 0,
}
CLASSES = Classification(2)
MASKED = MaskedLM(VOCABULARY, Vocabulary(VOCABULARY, np.arange(SPECIAL, VOCABULARY), MASK))
CAUSAL = CausalLM(VOCABULARY)
LORA = AdapterConfig("lora", r=2, alpha=4.0)
TRAIN_SIZES = (14, 10, 6)  # unequal, so that weights N_i / N show
TEST_SIZE = 5
NUMBER = re.compile(r"\.layer\.(\d+)\.")


def _examples() -> Examples:
    rng = np.random.default_rng(0)
    count = sum(TRAIN_SIZES) + len(TRAIN_SIZES) * TEST_SIZE
    offsets = np.concatenate([[0], np.cumsum(rng.integers(3, 10, count))])
    tokens = rng.integers(1, VOCABULARY, offsets[-1]).astype(np.int32)
    types = rng.integers(0, 2, offsets[-1]).astype(np.int32)
    labels = (tokens[offsets[:-1]] > VOCABULARY / 2).astype(np.int64)
    return Examples(tokens, types, offsets, labels, padding_id=0)


def clients_of(examples: Examples) -> list[Client]:
    clients = []
    start = 0
    for number, size in enumerate(TRAIN_SIZES):
        train, end = start + size, start + size + TEST_SIZE
        test = {"test": Subset(examples, np.arange(train, end))}
        clients.append(Client(number, Subset(examples, np.arange(start, train)), test))
        start = end
    return clients


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
    return LocalTraining(TrainConfig(**{"rounds": 1, "local_epochs": epochs, "max_length": WIDTH, **config}), seed)


def layer_of(name: str) -> int | None:
    """The number of a parameter's layer, from 0; None outside the layers."""
    match = NUMBER.search(name)
    return int(match[1]) if match else None


class Small:
    """Three clients and an encoder: a BERT with three layers, or with these changes to its configuration."""

    def __init__(self, **changes: Any) -> None:
        self.config = {**CONFIG, **changes}
        self.hidden, self.depth = self.config["hidden_size"], self.config["num_hidden_layers"]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self._encoder: nn.Module = encoder_from_config(self.config)
        self.examples = _examples()
        self.clients = clients_of(self.examples)

    def load(
        self,
        objective: Objective = CLASSES,
        head: str = "pooled",
        adapter: AdapterConfig | None = None,
        precision: str = "fp32",
        device: str = "cpu",
        kernels: str = "packed",
        checkpoints: bool = False,
        dropout: bool = True,
    ) -> Model:
        """A new model with the same weights each time."""
        network = with_head(copy.deepcopy(self._encoder), objective.outputs, seed=0, head=head)
        for module in network.modules():
            if isinstance(module, nn.Dropout) and not dropout:
                module.p = 0.0
        network = with_adapter(network, adapter, seed=0)
        return Model(network, resolve_precision(precision, device), objective, kernels, checkpoints)

    def workload(
        self,
        load: Callable[[], Model] | None = None,
        objective: Objective = CLASSES,
        head: str = "pooled",
        adapter: AdapterConfig | None = None,
        features: FeatureCache | None = None,
        clients: int = len(TRAIN_SIZES),
        **training: Any,
    ) -> Workload:
        """One step for each client and round, unless a test asks for more."""
        return Workload(
            load or (lambda: self.load(objective, head, adapter)),
            local_training(**{"learning_rate": 5e-3, "batch_size": 16, **training}),
            objective,
            features=features or FeatureCache(),
            clients=clients,
        )

    def algorithm(self, name: str, /, workload: Workload | None = None, **options: Any) -> FederatedAlgorithm:
        return build_algorithm(name, workload or self.workload(), options)

    def run(
        self,
        algorithm: FederatedAlgorithm,
        codec: str = "fp32",
        clients: Sequence[Client] | None = None,
        channel: Channel | None = None,
        **engine: Any,
    ) -> Run:
        channel = channel or Channel(codec)
        return run_federation(algorithm, clients or self.clients, channel, score, **{"rounds": 2, "seed": 0, **engine})


def assert_same_tensors(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> None:
    """Same names, same bits."""
    assert left.keys() == right.keys()
    differing = [name for name in left if not torch.equal(left[name].cpu(), right[name].cpu())]
    assert not differing


def assert_same_run(left: Run, right: Run) -> None:
    """Same bits in the server's state, the clients' tensors, the results, the answers and the channel."""
    assert left.state.round == right.state.round
    assert_same_tensors(left.state.shared, right.state.shared)
    assert left.state.moments.keys() == right.state.moments.keys()
    for moment in left.state.moments:
        assert_same_tensors(left.state.moments[moment], right.state.moments[moment])
    _assert_same_store(left.state.clients, right.state.clients)
    _assert_same_store(left.channel.held, right.channel.held)
    _assert_same_store(left.channel.dropped, right.channel.dropped)
    assert left.results == right.results
    assert left.best == right.best
    assert left.answers.keys() == right.answers.keys()
    for number, answers in left.answers.items():
        assert answers.keys() == right.answers[number].keys()
        assert all(np.array_equal(array, right.answers[number][part]) for part, array in answers.items())
    assert left.channel.ledger.rows == right.channel.ledger.rows


def _assert_same_store(left: ClientStore, right: ClientStore) -> None:
    assert list(left) == list(right)
    for client in left:
        assert_same_tensors(left.get(client), right.get(client))


@pytest.fixture(scope="session")
def small() -> Small:
    return Small()


@pytest.fixture(scope="session")
def deep() -> Small:
    """The same with four layers, as P-SUM and H-SUM need them."""
    return Small(num_hidden_layers=4)
