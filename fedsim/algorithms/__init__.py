"""Methods: each is a function that builds a FederatedAlgorithm from its options.

A method's file has the function's name; only baselines share a file, and so do attacks.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from fedsim.data import Client, Subset
from fedsim.engine import FederatedAlgorithm, FederationState, MapClients, RoundMetrics, RoundOutcome, drawn_places
from fedsim.errors import FederationError, named
from fedsim.features import FeatureCache
from fedsim.micro_batches import MicroBatches
from fedsim.models.model import Model, shallower
from fedsim.objectives import Objective
from fedsim.plan import ClientId, ExchangePlan
from fedsim.store import ClientStore, same_device
from fedsim.training import LocalTraining
from fedsim.wire import Channel, Params

ADDED: dict[str, Callable[..., FederatedAlgorithm]] = {}  # methods from outside this folder, by name
SHARED_FILES = {
    "baselines": ("local_majority", "local_prior", "unigram", "untrained"),
    "attacks": ("inversion", "nearest_neighbour", "token_majority"),
}


@dataclass(frozen=True)
class Workload:
    """A method's inputs: the model (loaded on first use), local training, and the objective."""

    load_model: Callable[[], Model]
    training: LocalTraining
    objective: Objective
    evaluation_batch_size: int = 64
    scoring: MicroBatches = field(default_factory=lambda: MicroBatches(trains=False))  # of batches
    features: FeatureCache = field(default_factory=FeatureCache)
    clients: int | None = None  # number of clients, with ids from 0, if plans depend on all of them
    map_clients: MapClients = map  # computes a round's updates: by default one after the other

    @cached_property
    def model(self) -> Model:
        """The server's model in this process; clients with the same parameters and names use it, too."""
        return self.load_model()

    @cached_property
    def initial(self) -> Params:
        """Copies of the model's parameters before any training; every run on this workload starts from them."""
        return self.model.snapshot(self.model.parameters)

    @property
    def members(self) -> range:
        """The ids of all clients; FederationError if their number is not given."""
        if self.clients is None:
            raise FederationError("workload: this method's plans depend on all clients; give the number of `clients`")
        return range(self.clients)

    def cohort(self, round: int) -> list[ClientId]:
        """The ids of the clients that take part in a round, as sampled by the engine."""
        return drawn_places(len(self.members), self.training.config.participation, self.training.seed, round)

    def server_params(self, state: FederationState) -> Params:
        """Every parameter of the server's model: merged tensors, and initial values for the others."""
        return self.initial | same_device(state.shared, self.model.device)

    def client_model(self, plan: ExchangePlan) -> Model:
        """The model for a client with this plan: the server's, or one with only the parameters that the plan names.

        Clients with the same parameters share it; it holds the last client's values.
        """
        names = frozenset(plan.view)
        if names == self.model.parameters.keys():
            return self.model
        if names not in self._shallower:
            self._shallower[names] = shallower(self.model, names)
        return self._shallower[names]

    @cached_property
    def _shallower(self) -> dict[frozenset[str], Model]:
        return {}

    def require_no_adapter(self, what: str) -> None:
        """Raise FederationError if the model has an adapter. what: the method or part without adapters."""
        if adapter := self.model.network.adapter:
            raise FederationError(f"{what}: expected a model without an adapter, found {adapter.kind}; leave it out")

    def answers(self, values: Params, subset: Subset) -> np.ndarray:
        """The answers for a subset from the model with these parameters, which never change in place."""
        self.model.set_trained(())  # so that `hold` does not write unchanged tensors again for each client
        self.model.hold(values)
        return self.scored(self.model, subset)

    def scored(self, model: Model, subset: Subset) -> np.ndarray:
        """The objective's answers for a subset, by a model as it is."""
        return model.predict(subset, self.evaluation_batch_size, self.training.width, self.scoring)

    def by_features(self, subset: Subset, half: bool = False) -> Subset:
        """The subset with the encoder's current hidden states instead of token ids, computed once.

        half: keep them in half precision. FederationError if the model has an adapter, which features would ignore.
        """
        self.require_no_adapter("features of a frozen encoder")
        return self.features.subset(self.model, subset, self.evaluation_batch_size, self.training.width, half)


def silent_start(clients: Sequence[Client], channel: Channel, store: ClientStore) -> FederationState:
    """The initial state for a method without set-up traffic."""
    return FederationState(round=0, shared={}, moments={}, clients=store)


def idle_round(state: FederationState, cohort: Sequence[Client], channel: Channel) -> RoundOutcome:
    """A round without training or traffic."""
    return replace(state, round=state.round + 1), RoundMetrics((), None)


def require_choice(option: str, value: str, choices: Sequence[str]) -> None:
    """Raise FederationError unless an option's value is one of its choices."""
    if value not in choices:
        raise FederationError(f"{option}: expected one of {', '.join(choices)}, found {value!r}")


def add_method(function: Callable[..., FederatedAlgorithm]) -> None:
    """Add a method from outside this folder, by its function's name."""
    ADDED[function.__name__] = function


def algorithm_names() -> list[str]:
    """Every method's name, without importing methods."""
    files = {module.name for module in pkgutil.iter_modules(__path__)} - {"averaging", *SHARED_FILES}
    return sorted(files.union(ADDED, *SHARED_FILES.values()))


def algorithm_function(name: str) -> Callable[..., FederatedAlgorithm]:
    """The function that builds a method; raises FederationError if there is no method of that name."""
    if name in ADDED:
        return ADDED[name]
    if name not in algorithm_names():
        raise FederationError(f"unknown algorithm {name!r}: expected one of {', '.join(algorithm_names())}")
    file = next((file for file, names in SHARED_FILES.items() if name in names), name)
    function: Callable[..., FederatedAlgorithm] = getattr(importlib.import_module(f"{__name__}.{file}"), name)
    return function


def trains(name: str) -> bool:
    """Whether a method trains with steps and a learning rate; files list their other methods as UNTRAINED."""
    function: Any = inspect.unwrap(algorithm_function(name))
    return name not in function.__globals__.get("UNTRAINED", ())


def require_options(name: str, options: Mapping[str, Any]) -> None:
    """Raise FederationError for an unknown method, and for an unknown or missing option, with all options' names."""
    function = algorithm_function(name)
    parameters = list(inspect.signature(function).parameters.values())[1:]
    unknown = sorted(set(options) - {parameter.name for parameter in parameters})
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in options]
    faults = {"unknown": unknown, "missing": missing}
    if problems := [f"{fault} {named('option', names)}" for fault, names in faults.items() if names]:
        taken = ", ".join(parameter.name for parameter in parameters)
        raise FederationError(f"{name}: {', '.join(problems)}; its options: {taken or 'none'}")


def build_algorithm(name: str, workload: Workload, options: Mapping[str, Any]) -> FederatedAlgorithm:
    """Build a method; FederationError if its options do not fit."""
    require_options(name, options)
    return algorithm_function(name)(workload, **options)
