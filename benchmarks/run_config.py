"""The configuration of one run: with data and weights it determines the result, and thus the run's identity."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from benchmarks.errors import UserError
from fedsim.adapter_config import Adapter
from fedsim.strict import from_json, later, strict, to_plain
from fedsim.train_config import TrainConfig as TrainConfig

JSON = Any
# Increased whenever the engine's arithmetic changes: other versions have other configurations.
# 1: the transformers library's layers. 2: layers over packed tokens with their own dropout, and measured precision.
ENGINE_VERSION = 2
SCALES = ("demo", "lite", "literal", "paper")
VALIDATION = "validation"  # the evaluation that chooses a round
# Names of scales, tasks and algorithms enter file names, and records may come from other machines.
NAME = re.compile(r"\w[\w.-]{0,63}", re.ASCII)


def canonical_json(value: JSON) -> str:
    """The canonical JSON text of a value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: JSON, length: int = 16) -> str:
    """Hexadecimal SHA-256 of the canonical JSON, cut to `length` digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def _require_name(value: str) -> str:
    if not NAME.fullmatch(value):
        raise ValueError("a name of at most 64 letters, digits, '_', '.' or '-', as file names contain it")
    return value


Name = Annotated[str, AfterValidator(_require_name)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


@strict(UserError)
class RunConfig:
    """The configuration of one run."""

    scale: Name
    task: Name
    task_version: int
    source: str  # "generated", or the family of the real dataset, such as "glue"
    backbone: str
    clients: Annotated[int, Field(gt=0)]
    partition: Mapping[str, JSON]  # as `partitions.from_description` reads it
    algorithm: Name
    options: Mapping[str, JSON]  # of the algorithm
    training: TrainConfig
    seed: Seed
    codec: str = "fp32"
    test_share: float = Field(default=0.2, ge=0, lt=1)  # of each client's examples
    holdout: Literal["test", "validation"] = "test"  # scored; "validation", for tuning, is a share of the training part
    engine_version: int = ENGINE_VERSION
    head: str = later("pooled")  # a name in fedsim.models.heads
    validation_share: float = later(0.0, ge=0, lt=1)  # of a client's training part, to choose a round
    data_seed: Seed | None = later(None)  # for the split over clients; None: `seed`
    grouped: bool = later(False)  # no first text is both trained on and held out
    central_share: float = later(1.0, gt=0, le=1)  # the random share of each central set that is scored
    initial: RunConfig | None = later(None)  # the earlier run, whose outcome initialises the model
    independent: bool = later(False)  # also score clients on class-balanced test examples of all clients
    adapter: Adapter = later(None)  # trained instead of the encoder's parameters

    def to_json(self) -> dict[str, JSON]:
        """The configuration as plain JSON values, without later fields at their default."""
        value: dict[str, JSON] = json.loads(canonical_json(to_plain(self)))
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, JSON]) -> RunConfig:
        """The configuration from `to_json` output; ValueError for other values."""
        return from_json(cls, json.dumps(value))

    @cached_property  # reports compare every record's spec_id and place_id
    def spec_id(self) -> str:
        """Identity of the definition without the inputs' digests; reports join on it."""
        return digest(to_plain(self))

    @cached_property
    def definition_id(self) -> str:
        """Identity of the definition without the engine's version; finds older records for reports."""
        return digest(without_fields(to_plain(self), ("engine_version",)))

    @property
    def place_id(self) -> str:
        """Identity of the definition without the engine's version and the seed."""
        return digest(without_fields(to_plain(self), ("engine_version", "seed")))

    def cell_id(self, inputs: Mapping[str, str]) -> str:
        """Identity of the run: the definition with the digests of its inputs (data, backbone, a user's method)."""
        return digest({"cell": to_plain(self), "inputs": dict(inputs)})

    @property
    def cohort_size(self) -> int:
        """The number of clients per round, as in `fedsim.engine.drawn_places`."""
        return max(1, int(self.training.participation * self.clients + 0.5))

    @property
    def label(self) -> str:
        """Short readable name, for files and progress lines."""
        return f"{self.scale}-{self.task}-{self.algorithm}-s{self.seed}"


def without_fields(config: Mapping[str, JSON], names: Collection[str]) -> dict[str, JSON]:
    """A configuration's plain fields without these, such as "seed" or "training.rounds", also in its earlier runs."""
    left = {name: value for name, value in config.items() if name not in names}
    for group, value in left.items():
        if isinstance(value, dict):
            inner = [name.removeprefix(f"{group}.") for name in names if name.startswith(f"{group}.")]
            left[group] = without_fields(value, names if group == "initial" else inner)
    return left
