"""The outcome of a demo cell, in numbers for comparison with later versions of the code."""

import hashlib
import math
import platform
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.running.completed import initial_of
from benchmarks.running.federation import build_clients, build_federation, load_inputs
from benchmarks.running.process import quiet_libraries
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_stage
from benchmarks.running.scoring import mean_scores, scores
from fedsim.adapter_config import AdapterConfig
from fedsim.engine import run_federation
from fedsim.wire import Channel, Params

JSON = Any
TRAINING = TrainConfig(rounds=2, learning_rate=2e-3, batch_size=16, max_length=32, precision="fp32")
ONE_ROUND = TrainConfig(rounds=1, learning_rate=2e-3, batch_size=16, local_epochs=2, max_length=32, precision="fp32")
LABELS = {"scheme": "label-table", "shares": ((5, 95), (25, 75), (75, 25)), "size": None}


def _pairs(algorithm: str, codec: str = "fp32", **options: JSON) -> RunConfig:
    """Sentence pairs; each client keeps a test part."""
    return RunConfig(
        "demo", "mrpc", 1, "generated", "tiny", 3, LABELS, algorithm, options, training=TRAINING, seed=0, codec=codec
    )


def _tweets(algorithm: str, head: str, training: TrainConfig, task: str = "arsarcasm", **options: JSON) -> RunConfig:
    """Tweets of three classes with a central test set, or their tokens."""
    dirichlet = {"scheme": "dirichlet", "alpha": 1.0}
    return RunConfig(
        "demo", task, 1, "generated", "tiny", 3, dirichlet, algorithm, options, training, 0, test_share=0.0, head=head
    )


def _corpus(algorithm: str, **options: JSON) -> RunConfig:
    """Passages of a corpus, for masked language modelling; each client keeps a test part."""
    scheme = {"scheme": "equal", "share": 0.1}
    return RunConfig(
        "demo", "corpus-biology", 1, "generated", "tiny", 3, scheme, algorithm, options, TRAINING, 0, head="masked-lm"
    )


def _lora(algorithm: str, **options: JSON) -> RunConfig:
    return replace(_pairs(algorithm, **options), adapter=AdapterConfig("lora", r=4))


# One for each method. They are no rows of a table, so that a definition may change without them.
CELLS: Mapping[str, RunConfig] = {
    "untrained": _pairs("untrained"),
    "unigram": replace(_corpus("unigram"), training=ONE_ROUND),
    "local-majority": _pairs("local_majority"),
    "fedavg": _pairs("fedavg"),
    "fedprox": _pairs("fedavg", proximal=0.05),
    "fedadam": _pairs("fedavg", server={"name": "adam", "learning_rate": 0.01}),
    "fedsplitbert": _pairs("fedsplitbert", critical_layer=2),
    "fedsplitbert-fp16": _pairs("fedsplitbert", "fp16", critical_layer=2),
    "fedper": _pairs("fedper"),
    "fedrep": _pairs("fedrep"),
    "ditto": _pairs("ditto"),
    "scaffold": _pairs("scaffold"),
    "fedbfpt": replace(_pairs("fedbfpt", local_layers=2), training=replace(TRAINING, rounds=3)),
    "fedbert-sequential": _corpus("fedbert_sequential", turns="round"),
    "fedbert-parallel": _corpus("fedbert_parallel", averaged="embeddings"),
    "fedavg-prior": replace(_pairs("local_prior"), training=ONE_ROUND, initial=_pairs("fedavg")),
    "linear": _pairs("linear"),
    "d-fedfreezebert-psum": _tweets("fedfreezebert", "psum", TRAINING),
    "c-fedfreezebert-average": _tweets("fedfreezebert_central", "average", ONE_ROUND),
    "central": _tweets("central", "pooled", ONE_ROUND, embeddings="global"),
    "inversion": _tweets("inversion", "average", ONE_ROUND, "arsarcasm-texts", public_texts=100, sent="fp16"),
    "nearest-neighbour": _tweets("nearest_neighbour", "average", ONE_ROUND, "arsarcasm-texts", sent="fp16"),
    "fedit": _lora("fedavg"),
    "ffa-lora": _lora("ffa_lora"),
    "rolora": _lora("rolora"),
    "fedsa-lora": _lora("fedsa_lora"),
    "share-b": _lora("share_b"),
    "flora": _lora("flora"),
    "flexlora": _lora("flexlora"),
    "fedex-lora": _lora("fedex_lora"),
    "fedrot-lora": _lora("fedrot_lora"),
    "fedsvd": _lora("fedsvd"),
    "hetlora": _lora("hetlora", ranks=[4, 2]),
    "token-majority": _tweets("token_majority", "average", ONE_ROUND, "arsarcasm-texts", public_texts=100),
}


def cpu_kind() -> dict[str, JSON]:
    """The properties of a machine and its libraries that are known to affect the last bits."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    first: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        first.setdefault(name.strip(), value.strip())
    flags = first.get("flags", first.get("Features", "")).split()
    return {
        "machine": platform.machine(),
        "vendor": first.get("vendor_id", platform.processor()),
        "family": first.get("cpu family", ""),
        "model": first.get("model", ""),
        "flags": " ".join(sorted(flag for flag in flags if re.match(r"amx|avx|fma|f16c|sve|asimd", flag))),
        "torch": f"{torch.__version__} {torch.backends.cpu.get_cpu_capability()}",
        "transformers": metadata.version("transformers"),
        "numpy": metadata.version("numpy"),
    }


def digest(tensors: Params) -> str:
    """SHA-256 of tensors: names, types, shapes and bits."""
    state = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        state.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        state.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return state.hexdigest()


def part_of(name: str) -> str:
    """The part of a model that a parameter belongs to."""
    layer = re.search(r"\.layer\.(\d+)\.", name)
    return f"layer {int(layer[1]) + 1}" if layer else "head" if name.startswith("head.") else "embeddings"


def lengths(tensors: Params, initial: Params) -> dict[str, float]:
    """How far each part has moved from where it began; of tensors that are new, how long they are.

    A key's bias has no gradient but rounding, which Adam magnifies to whole steps: it is left out.
    """
    squares: dict[str, float] = {}
    for name, tensor in sorted(tensors.items()):
        if name.endswith("key.bias"):
            continue
        start = initial.get(name)
        moved = tensor.double() - (start.double() if start is not None and start.shape == tensor.shape else 0)
        squares[part_of(name)] = squares.get(part_of(name), 0.0) + moved.square().sum().item()
    return {part: math.sqrt(square) for part, square in squares.items()}


def outcome(cell: RunConfig, folder: Path) -> dict[str, JSON]:
    """A cell's loss curve, and digests and norms of its weights: the server's and each client's."""
    quiet_libraries()
    settings = RunOptions(results_dir=folder, device="cpu")
    torch.set_num_threads(settings.threads)
    before = initial_of(cell)
    inputs = load_inputs(cell, settings, run_stage(before, settings, lambda _: None) if before else None)
    clients, _ = build_clients(cell, inputs, settings)
    federation = build_federation(cell, inputs, settings)
    algorithm, workload = federation.algorithm, federation.workload
    run = run_federation(
        algorithm,
        clients,
        Channel(cell.codec),
        lambda answers, part: scores(inputs.task.metrics, workload.objective, answers, part),
        rounds=cell.training.rounds,
        seed=cell.seed,
        participation=cell.training.participation,
    )
    server = algorithm.server(run.state) if algorithm.server else run.state.shared
    weights = {"server": server} | {f"client {client}": run.state.clients.get(client) for client in run.state.clients}
    initial = workload.initial if server else {}  # a method without a model loads none
    return {
        "rounds": [
            {"train_loss": result.metrics.train_loss, "scores": mean_scores(result.client_scores)}
            for result in run.results
        ],
        "bytes": run.channel.ledger.total_bytes(),
        "weights": {
            owner: {"sha256": digest(tensors), "lengths": lengths(tensors, initial)}
            for owner, tensors in weights.items()
            if tensors
        },
    }


# Elsewhere: sums come in another order, and Adam magnifies what is near 0. A score may turn on one test example.
LOSS, LENGTH, SCORE = 1e-4, 1e-3, 0.05


def values(outcome: JSON, place: str = "") -> dict[str, JSON]:
    """Place -> value, for all values of an outcome."""
    if not isinstance(outcome, dict | list):
        return {place: outcome}
    parts = outcome.items() if isinstance(outcome, dict) else enumerate(outcome, 1)
    return {where: value for key, part in parts for where, value in values(part, f"{place}/{key}").items()}


def tolerated(place: str, expected: float) -> JSON:
    """What a value may be elsewhere."""
    if "scores" in place:
        return pytest.approx(expected, rel=0, abs=SCORE)
    return pytest.approx(expected, rel=LENGTH if "lengths" in place else LOSS, abs=1e-6)


def differences(expected: JSON, result: JSON, exact: bool) -> list[str]:
    """Where two outcomes differ: in any bit, or by more than the tolerance."""
    wanted, given = values(expected), values(result)
    if not exact:
        wanted = {at: tolerated(at, value) if isinstance(value, float) else value for at, value in wanted.items()}
        given |= {at: value for at, value in wanted.items() if at.endswith("sha256") and at in given}
    places = [at for at in {**wanted, **given} if wanted.get(at, "nothing") != given.get(at, "nothing")]
    return [f"{at}: expected {wanted.get(at, 'nothing')}, found {given.get(at, 'nothing')}" for at in places]
