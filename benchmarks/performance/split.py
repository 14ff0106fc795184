"""Split training: tokens a second against the same loop unsplit, and what of a batch's time is whose, in one run."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

import numpy as np
import torch
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from benchmarks.backbones import architecture
from benchmarks.performance.section import Bar, Bench, Section, in_turn, ratio
from benchmarks.performance.workload import MAX_LENGTH, clients_of, setting_of, texts
from benchmarks.spec import JSON
from fedsim.algorithms import Setting, build_algorithm
from fedsim.data import Client
from fedsim.objectives import CausalLM, MaskedLM, Objective, Vocabulary
from fedsim.split import server_side
from fedsim.store import ClientStore
from fedsim.wire import Channel, Params

LEAST_RATIO = 0.9  # tokens a second of split training over those of the unsplit loop
FIRST_WORD, MASK = 999, 4  # what stands below the first word is masked by nobody
# Whose time ends with a message of FedBERT's Algorithms 2 and 3, as `fedsim.split` names them.
ENDS: Mapping[str, str] = {"mask": "rest", "ef": "embeddings", "tf": "layers", "hb": "head", "tb": "layers"}
PARTS = ("embeddings", "head", "client_step", "layers", "server_step", "wire", "rest")


@dataclass(frozen=True)
class Job:
    """A model, and how much of random text an epoch is. has_bar: whether the ratio has to hold for it."""

    backbone: str
    batch: int
    batches: int
    has_bar: bool = False


JOBS = (  # as lite cells train, then the paper's models in batches that a small machine holds
    Job("roberta-mini-fresh", 32, 4, has_bar=True),
    Job("gpt2-mini-fresh", 32, 4, has_bar=True),
    Job("roberta-small-fresh", 8, 2),
    Job("roberta-base-fresh", 8, 2),
    Job("gpt2-fresh", 8, 2),
)


@dataclass(frozen=True)
class Sizes:
    """How large the measurement is; a test makes it small."""

    jobs: Sequence[Job] = JOBS
    tokens: int = MAX_LENGTH


def measure(bench: Bench, sizes: Sizes = Sizes()) -> Section:
    """Both loops on the same model and batches in turn, then the seconds of a split batch by part."""
    rows, bars = [], []
    for job in sizes.jobs:
        bench.say(f"  {job.backbone}: {job.batches} batches of {job.batch}, {bench.repeats + 1} times each way")
        setting, client = workload_of(job, sizes, bench)
        unsplit, split = in_turn(bench.repeats, *(one_round(setting, client, name) for name in ALGORITHMS))
        share, tokens = ratio(unsplit, split), job.batch * job.batches * sizes.tokens
        parts = [by_part(setting, client) for _ in range(bench.repeats)]
        seconds = {part: round(median(own[part] for own in parts) / job.batches, 5) for part in PARTS}
        rows.append(
            {"model": job.backbone, "batch": job.batch, "tokens": sizes.tokens}
            | {"unsplit_tokens_per_second": round(tokens / median(unsplit))}
            | {"split_tokens_per_second": round(tokens / median(split)), "split_over_unsplit": round(share, 3)}
            | {f"{part}_seconds": own for part, own in seconds.items()}
        )
        if job.has_bar:
            bars.append(Bar(f"{job.backbone}: split over unsplit tokens a second", share, LEAST_RATIO))
        client_side = sum(seconds[part] for part in ("embeddings", "head", "client_step"))
        server_side = sum(seconds[part] for part in ("layers", "server_step"))
        bench.say(f"    {share:.3f} of the speed; a batch: client {client_side:.3f} s, server {server_side:.3f} s")
    notes = (
        f"One client's epoch, in turn: centralised training of the whole model, and split training with one client, "
        f"which is the same computation with every batch's activations and gradients through the channel in fp32. "
        f"Blocks of {sizes.tokens} random tokens, 15 % masked (RoBERTa) or each from those before it (GPT-2), "
        "AdamW and dropout included; the ratio is the median over pairs of this one run.",
        "Seconds are a split batch's, medians of passes with a clock at every message: embeddings, T(E), and head, "
        "T(H), forward, loss and backward, at the client; layers, T(T), at the server; a step is AdamW's over the "
        "party's parameters, of which the word embeddings, decoder of the head too, are the client's. wire: encoding, "
        "counting and decoding. rest: masking, lending tensors to the model. Client and server are one machine here.",
    )
    return Section("split", "Split training", rows, bars, notes)


def workload_of(job: Job, sizes: Sizes, bench: Bench) -> tuple[Setting, Client]:
    """The job's model and one client with random blocks, whose optimiser is kept as that of pre-training is."""
    config = architecture(job.backbone)
    words, is_causal = int(config["vocab_size"]), config["model_type"] == "gpt2"
    first = min(FIRST_WORD, words // 2)
    masked = MaskedLM(words, Vocabulary(words, np.arange(first, words), MASK))
    objective: Objective = CausalLM(words) if is_causal else masked
    head = "causal-lm" if is_causal else "masked-lm"
    options: dict[str, JSON] = {"batch_size": job.batch, "optimizer": "kept"}
    setting = setting_of(job.backbone, head=head, objective=objective, device=bench.settings.device, **options)
    examples = texts(job.batch * job.batches, (sizes.tokens, sizes.tokens), words, first=first)
    (client,) = clients_of(examples, 1)
    return replace(setting, clients=1), client


ALGORITHMS: Mapping[str, Mapping[str, JSON]] = {"central": {"embeddings": "global"}, "fedbert_sequential": {}}


def one_round(setting: Setting, client: Client, name: str, channel: Channel | None = None) -> Callable[[], object]:
    """A round of a method from its beginning."""
    algorithm, crossed = build_algorithm(name, setting, ALGORITHMS[name]), channel or Channel()
    state = algorithm.init([client], crossed, ClientStore())
    return partial(algorithm.round, state, [client], crossed)


class Clock:
    """Seconds by what they were spent on."""

    def __init__(self, device: torch.device) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._device = device
        self._last = time.perf_counter()

    def lap(self, part: str) -> None:
        """Count what has passed since the last lap to a part; a GPU is waited for."""
        if self._device.type == "cuda":
            torch.cuda.synchronize()
        now = time.perf_counter()
        self.seconds[part] += now - self._last
        self._last = now


class ClockedChannel(Channel):
    """A channel that tells the clock whose computation a message ends."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def _send(self, client: int, direction: str, payload: Mapping[str, Tensor], kind: str) -> Params:
        ended = next((ENDS[name] for name in payload if name in ENDS), "")
        self._clock.lap(ended or "rest")
        received = super()._send(client, direction, payload, kind)
        self._clock.lap("wire" if ended else "rest")  # parameters are handed on once a turn
        return received


def by_part(setting: Setting, client: Client) -> Mapping[str, float]:
    """Seconds of a split round by PARTS; their sum is the round's."""
    clock = Clock(setting.model.device)
    work = one_round(setting, client, "fedbert_sequential", ClockedChannel(clock))
    clock.lap("before")
    with _steps_on(clock, setting):
        work()
        clock.lap("rest")
    return clock.seconds


@contextmanager
def _steps_on(clock: Clock, setting: Setting) -> Iterator[None]:
    """Tell the clock of each optimiser's step: the server's comes first, behind the embeddings' backward pass."""
    at_server = {id(setting.model.parameters[name]) for name in server_side(setting.model.groups)}

    def is_server(optimizer: torch.optim.Optimizer) -> bool:
        return id(optimizer.param_groups[0]["params"][0]) in at_server

    hooks = (
        register_optimizer_step_pre_hook(lambda own, *_: clock.lap("embeddings" if is_server(own) else "client_step")),
        register_optimizer_step_post_hook(
            lambda own, *_: clock.lap(f"{'server' if is_server(own) else 'client'}_step")
        ),
    )
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
