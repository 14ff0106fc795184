"""A cell: one run, with everything that decides its result; pure data, and its identity."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from benchmarks.changes import FIXED
from benchmarks.errors import UserError
from benchmarks.plain import JSON, LATER, built, canonical_json, digest, plain

# Raised whenever the engine's arithmetic changes meaning: records of other versions are other cells.
# 1: the transformers library's layers. 2: layers over packed tokens, dropout of their own, precision by measurement.
ENGINE_VERSION = 2
VALIDATION = "validation"  # the evaluation by which a round is chosen
# What a scale, a task or an algorithm may be called: these enter file names, and records come from elsewhere, too.
NAME = re.compile(r"\w[\w.-]{0,63}", re.ASCII)


@dataclass(frozen=True)
class Training:
    """How one cell trains: budget, optimiser and precision."""

    rounds: int
    learning_rate: float
    batch_size: int
    local_epochs: int = 1
    weight_decay: float = 0.01
    max_length: int = 128
    padding: str = "longest"  # "longest": batches by length; "fixed": the papers' literal padding to max_length
    precision: str = "auto"  # "auto" suits the device; "fp32", "bf16", "fp16"
    participation: float = 1.0  # share of the clients drawn for each round
    schedule: str = field(default="constant", metadata=LATER)  # of the learning rate, over all rounds: or "linear"
    warmup: float = field(default=0.0, metadata=LATER)  # share of all steps in which the learning rate rises
    clip_norm: float | None = field(default=None, metadata=LATER)  # longer gradients are shortened to it
    decayed: str = field(default="all", metadata=LATER)  # or "matrices": no weight decay on biases and LayerNorm
    optimizer: str = field(default="fresh", metadata=LATER)  # in every round, or "kept" from round to round
    decay: float = field(default=1.0, metadata=LATER)  # what the learning rate is multiplied with after each round
    beta2: float = field(default=0.999, metadata=LATER)  # AdamW's; its beta1 is 0.9
    epsilon: float = field(default=1e-8, metadata=LATER)  # AdamW's
    kernels: str = field(default="packed", metadata=LATER)  # texts without padding on CPUs, or "reference": padded
    stop: int | None = field(default=None, metadata=LATER)  # ends after so many of `rounds`, whose schedule stays

    @property
    def last_round(self) -> int:
        """The round after which the run ends."""
        return self.rounds if self.stop is None else min(self.stop, self.rounds)


@dataclass(frozen=True)
class Cell:
    """One run: everything that, with the data and the weights, decides a result.

    UserError where a part of its label is no plain name, such as one with a slash in it: the label enters file names.
    """

    scale: str = field(metadata=FIXED)
    task: str = field(metadata=FIXED)
    task_version: int
    source: str = field(metadata=FIXED)  # "generated", or the name of the real dataset's family, such as "glue"
    backbone: str = field(metadata=FIXED)
    clients: int
    partition: Mapping[str, JSON]  # as partitions.describe gives it
    algorithm: str
    options: Mapping[str, JSON]
    training: Training
    seed: int
    codec: str = "fp32"
    test_share: float = 0.2
    holdout: str = "test"  # what is scored: "test", or "validation", a share of the training part, for tuning
    engine_version: int = ENGINE_VERSION
    head: str = field(default="pooled", metadata=LATER)  # what stands on the encoder: a name of fedsim.models.heads
    validation_share: float = field(default=0.0, metadata=LATER)  # of a client's training part, to choose a round by
    data_seed: int | None = field(default=None, metadata=LATER)  # who holds which examples; None: the cell's own seed
    grouped: bool = field(default=False, metadata=LATER)  # whether no first text is both trained on and held back
    central_share: float = field(default=1.0, metadata=LATER)  # of each central set, a random part that is scored
    initial: Cell | None = field(default=None, metadata=LATER)  # the cell from whose outcome the model begins

    def __post_init__(self) -> None:
        for part in ("scale", "task", "algorithm"):
            name = getattr(self, part)
            if not isinstance(name, str) or not NAME.fullmatch(name):
                raise UserError(
                    f"{part}: expected a name of at most 64 letters, digits, '_', '.' and '-', found {name!r}: "
                    "it enters file names"
                )
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**63:
            raise UserError(f"seed: expected a whole number from 0 on, found {self.seed!r}")

    def to_json(self) -> dict[str, JSON]:
        """The cell as plain JSON values, without LATER fields that have their default, in nested groups too."""
        value: dict[str, JSON] = json.loads(canonical_json(plain(self)))
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, JSON]) -> Cell:
        """The cell that `to_json` wrote; TypeError where it is not one."""
        return built(cls, value)

    @cached_property  # tables, claims and gates ask every record for it, and for the next
    def spec_id(self) -> str:
        """Identity of the definition, without the inputs' digests: what a report joins on."""
        return digest(self.to_json())

    @cached_property
    def definition_id(self) -> str:
        """Identity of the definition, whatever the engine's version: by which a report finds older records, too."""
        return digest(plain(self, omit=("engine_version",)))

    @property
    def place_id(self) -> str:
        """Identity of the definition, whatever the engine's version and the seed."""
        return digest(plain(self, omit=("engine_version", "seed")))

    def cell_id(self, inputs: Mapping[str, str]) -> str:
        """Identity of the run: the definition with the digests of its inputs (data, backbone)."""
        return digest({"cell": self.to_json(), "inputs": dict(inputs)})

    @property
    def cohort_size(self) -> int:
        """How many clients take part in a round, as the engine draws them (`fedsim.engine.drawn_places`)."""
        return max(1, int(self.training.participation * self.clients + 0.5))

    @property
    def label(self) -> str:
        """Short readable name, for files and progress lines."""
        return f"{self.scale}-{self.task}-{self.algorithm}-s{self.seed}"
