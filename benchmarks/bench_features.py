"""`bench`: epochs of D-FedFreezeBERT on features that were computed once, beside computing them anew in each."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch

from benchmarks.backbones import architecture
from benchmarks.pretraining.recipes import ARABIC_MINI
from benchmarks.runner import quiet_libraries
from benchmarks.settings import Settings
from fedsim.algorithms import Setting
from fedsim.data import Examples, Part
from fedsim.feature_cache import FeatureCache
from fedsim.models.encoder import encoder_from_config
from fedsim.models.resident import Resident
from fedsim.models.sequence import with_classifier
from fedsim.precision import resolve_precision
from fedsim.training import LocalTraining

TIMES_AS_FAST = {"average": 10.0, "psum": 2.0}  # at least
EXAMPLES = 1024
LENGTHS = (10, 60)  # tokens of a text, fewest and most
REPEATS = 5


def bench_features(settings: Settings, backbone: str = ARABIC_MINI.id) -> int:
    """Time epochs in turn on cached features and on token ids; print the median of the pairwise ratios for each head.

    Random texts and an encoder of the backbone's sizes with fresh weights: time does not depend on what they know. Both
    ways train the same batches of a client's local training. The encoder's one pass over all examples, which the first
    epoch pays, is timed apart. Status 1 where a ratio stays below TIMES_AS_FAST.
    """
    quiet_libraries()
    torch.set_num_threads(settings.threads)
    precision = resolve_precision("auto", settings.device)
    config = architecture(backbone)
    part = _texts(config["vocab_size"])
    training = LocalTraining(seed=0, learning_rate=5e-4, batch_size=16, weight_decay=0.0)
    print(f"frozen encoder of {backbone}'s sizes, {precision.device}, {precision.name}: {EXAMPLES} examples an epoch, ")
    print(f"{settings.threads} threads; {REPEATS} pairs of epochs for each head")
    missed = 0
    for head, bar in TIMES_AS_FAST.items():
        resident = Resident(with_classifier(encoder_from_config(config), 3, seed=0, head=head), precision)
        with tempfile.TemporaryDirectory(dir=settings.results_dir) as folder:
            setting = Setting(_loaded(resident), training, 3, features=FeatureCache(Path(folder)))
            begun = time.perf_counter()
            features = setting.by_features(part)
            once_seconds = time.perf_counter() - begun
            for examples in (features, part):
                _epoch_seconds(setting, examples, 0)  # warm-up
            pairs = [
                (_epoch_seconds(setting, features, number), _epoch_seconds(setting, part, number))
                for number in range(1, REPEATS + 1)
            ]
        ratio = median(anew / cached for cached, anew in pairs)
        cached_seconds, anew_seconds = (median(column) for column in zip(*pairs, strict=True))
        print(
            f"  {head:8} anew {anew_seconds:6.2f} s   cached {cached_seconds:6.2f} s   {ratio:5.1f} times as fast "
            f"(at least {bar:g}); computing them once {once_seconds:.2f} s"
        )
        missed += ratio < bar
    return min(missed, 1)


def _loaded(resident: Resident) -> Callable[[], Resident]:
    return lambda: resident


def _texts(vocabulary: int) -> Part:
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(*LENGTHS, EXAMPLES, endpoint=True))])
    tokens = rng.integers(1, vocabulary, offsets[-1], dtype=np.int32)
    examples = Examples(tokens, np.zeros_like(tokens), offsets, rng.integers(0, 3, EXAMPLES), padding_id=0)
    return Part(examples, np.arange(EXAMPLES))


def _epoch_seconds(setting: Setting, part: Part, number: int) -> float:
    begun = time.perf_counter()
    setting.training.run(setting.model, part, sorted(setting.model.anatomy.head), number, 0, {}, 0.0)
    return time.perf_counter() - begun
