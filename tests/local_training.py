"""Local training for tests of the engine: one epoch of one round, unless a test asks for more."""

from typing import Any

from fedsim.train_config import TrainConfig
from fedsim.training import LocalTraining


def local_training(seed: int = 0, epochs: int = 1, width: int | None = None, **config: Any) -> LocalTraining:
    """width: tokens to which texts are padded; None: those of the longest of a batch."""
    if width is not None:
        config |= {"padding": "fixed", "max_length": width}
    return LocalTraining(TrainConfig(**{"rounds": 1, "local_epochs": epochs, **config}), seed)
