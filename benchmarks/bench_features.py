"""`bench`: D-FedFreezeBERT on features that were computed once: time beside computing them anew, and memory."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median

import numpy as np
import torch

from benchmarks.backbones import architecture
from benchmarks.runner import peak_memory_bytes, quiet_libraries
from benchmarks.settings import Settings
from benchmarks.spec import JSON
from fedsim.algorithms import Setting
from fedsim.data import Examples, Subset
from fedsim.feature_cache import FeatureCache
from fedsim.models.encoder import encoder_from_config
from fedsim.models.model import Model
from fedsim.models.sequence import with_head
from fedsim.objectives import Classification
from fedsim.precision import resolve_precision
from fedsim.training import LocalTraining

TIMES_AS_FAST = {"average": 10.0, "psum": 2.0}  # at least
MEMORY_RATIO = 1.1  # at most, of a process that trains on eight times as many features
EXAMPLES = 1024
FEW, MANY = 512, 8 * 512  # examples whose features memory is measured with
LENGTHS = (10, 60)  # tokens of a text, fewest and most
REPEATS = 5


def bench_features(settings: Settings, backbone: str = "arabic-mini") -> int:
    """Print how many times as fast an epoch is with the cache, and how memory grows with it; status 1 off the bars.

    Random texts and an encoder of the backbone's sizes with fresh weights: time does not depend on what they know.
    """
    quiet_libraries()
    config = architecture(backbone)
    precision = resolve_precision("auto", settings.device)
    print(f"frozen encoder of {backbone}'s sizes, {precision.device}, {precision.name}: {EXAMPLES} examples an epoch, ")
    print(f"{settings.threads} threads; {REPEATS} pairs of epochs for each head")
    slow = [_times(settings, config, head, bar) < bar for head, bar in TIMES_AS_FAST.items()]
    return int(any(slow) or _memory(settings, config) > MEMORY_RATIO)


def _times(settings: Settings, config: Mapping[str, JSON], head: str, bar: float) -> float:
    """Time epochs in turn on cached features and on token ids; the median of the pairwise ratios.

    Both ways train the same batches of a client's local training. The encoder's one pass over all examples, which the
    first epoch pays, is timed apart.
    """
    subset = _texts(config["vocab_size"], EXAMPLES)
    with tempfile.TemporaryDirectory(dir=settings.results_dir) as folder:
        setting = _setting(settings, config, head, Path(folder))
        begun = time.perf_counter()
        features = setting.by_features(subset)
        once_seconds = time.perf_counter() - begun
        for examples in (features, subset):
            _epoch_seconds(setting, examples, 0)  # warm-up
        pairs = [
            (_epoch_seconds(setting, features, number), _epoch_seconds(setting, subset, number))
            for number in range(1, REPEATS + 1)
        ]
    ratio = median(anew / cached for cached, anew in pairs)
    cached_seconds, anew_seconds = (median(column) for column in zip(*pairs, strict=True))
    print(
        f"  {head:8} anew {anew_seconds:6.2f} s   cached {cached_seconds:6.2f} s   {ratio:5.1f} times as fast "
        f"(at least {bar:g}); computing them once {once_seconds:.2f} s"
    )
    return ratio


def _memory(settings: Settings, config: Mapping[str, JSON]) -> float:
    """Peak memory of a process that computes many features and trains on them, over that of one with few."""
    peaks = []
    for count in (FEW, MANY):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:  # a peak is a process's
            features_bytes, peak_bytes = process.submit(_peak, settings, dict(config), count).result()
        print(f"  psum     {features_bytes / 1e6:6.0f} MB of features: peak memory {peak_bytes / 1e6:.0f} MB")
        peaks.append(peak_bytes)
    ratio = peaks[1] / peaks[0]
    print(f"  memory   {ratio:.2f} times as much for {MANY // FEW} times the features (at most {MEMORY_RATIO:g})")
    return ratio


def _peak(settings: Settings, config: Mapping[str, JSON], count: int) -> tuple[int, int]:
    """Bytes of the features of so many texts, and the process's peak after an epoch on them."""
    quiet_libraries()
    with tempfile.TemporaryDirectory(dir=settings.results_dir) as folder:
        setting = _setting(settings, config, "psum", Path(folder))
        features = setting.by_features(_texts(config["vocab_size"], count))
        _epoch_seconds(setting, features, 1)
        return sum(path.stat().st_size for path in Path(folder).iterdir()), peak_memory_bytes()


def _setting(settings: Settings, config: Mapping[str, JSON], head: str, folder: Path) -> Setting:
    """A client's local training of a head on the frozen encoder, with a cache in the folder."""
    torch.set_num_threads(settings.threads)
    network = with_head(encoder_from_config(config), 3, seed=0, head=head)
    model = Model(network, resolve_precision("auto", settings.device), Classification(3))
    training = LocalTraining(seed=0, learning_rate=5e-4, batch_size=16, weight_decay=0.0)
    return Setting(lambda: model, training, model.objective, features=FeatureCache(folder))


def _texts(vocabulary: int, count: int) -> Subset:
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(*LENGTHS, count, endpoint=True))])
    tokens = rng.integers(1, vocabulary, offsets[-1], dtype=np.int32)
    examples = Examples(tokens, np.zeros_like(tokens), offsets, rng.integers(0, 3, count), padding_id=0)
    return Subset(examples, np.arange(count))


def _epoch_seconds(setting: Setting, subset: Subset, number: int) -> float:
    begun = time.perf_counter()
    setting.training.run(setting.model, subset, sorted(setting.model.groups.head), number, 0)
    return time.perf_counter() - begun
