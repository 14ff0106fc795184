"""FedBFPT's computation: an epoch of each method's local model at BERT-base's shapes, all in turn in one run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from statistics import median

import numpy as np
import torch

from benchmarks.backbones import architecture
from benchmarks.errors import UserError
from benchmarks.performance.population import in_process
from benchmarks.performance.section import Bar, Bench, Section, in_turn, ratio
from benchmarks.performance.workload import MAX_LENGTH, clients_of, setting_of, texts
from benchmarks.planned import Features
from benchmarks.planning import counted_setting
from benchmarks.registry import benchmark
from benchmarks.runner import hold_freed_memory, peak_memory_bytes, quiet_libraries
from benchmarks.settings import Settings
from benchmarks.spec import JSON, Cell, canonical_json
from benchmarks.untrained import Untrained
from fedsim.algorithms import Setting, build_algorithm
from fedsim.models.groups import LAYER, parameter_groups
from fedsim.objectives import MaskedLM, Vocabulary

TABLE = "fedbfpt-pretraining"
BASELINE, METHOD = "bert-fl", "fedbfpt"
# Table 2's rows that train differently, then those of tables 4 and 5; FEDBFPT's other variants cost what it does.
ROWS = (BASELINE, "distilbert", "tinybert-6", "tinybert-4", METHOD, "fedbfpt-all", "fedbfpt-4", "fedbfpt-8")
PRINTED_PERCENT = 46.70  # abstract and table 2: FEDBFPT's computation over BERT-FL's
BATCH, BATCHES = 8, 2
FIRST_WORD, MASK = 999, 103  # of BERT's vocabulary: what stands below the first word is masked by nobody


@dataclass(frozen=True)
class Sizes:
    """How large the measurement is; a test makes it small. config: changes to the encoders' configurations."""

    rows: Sequence[str] = ROWS
    batch: int = BATCH
    batches: int = BATCHES
    tokens: int = MAX_LENGTH
    config: Mapping[str, JSON] | None = None


@dataclass(frozen=True)
class Job:
    """A local model and what is trained of it: all that decides how long an epoch takes."""

    config: str  # of its encoder, with its own number of layers, as JSON
    layers: int
    trained: frozenset[str]
    backbone: str = field(compare=False)  # whose configuration that is a change of

    @property
    def said(self) -> str:
        """What is trained, in words."""
        places = sorted({int(match[1]) for name in self.trained if (match := LAYER.search(name))})
        return f"layer {places[0]} + output" if len(places) == 1 else "all"


def measure(bench: Bench, sizes: Sizes = Sizes()) -> Section:
    """Seconds of an epoch of each row over the baseline's; rows whose layer moves on are means over their rounds."""
    table = benchmark(TABLE)
    cells = {row: table.cell(table.row(row), table.columns[0], table.scale("paper"), 0) for row in sizes.rows}
    rounds = {row: jobs_by_round(cell, sizes.config) for row, cell in cells.items()}
    jobs = list(dict.fromkeys(chain.from_iterable(rounds.values())))
    first = {jobs[0] for jobs in rounds.values()}
    peaks = {job: in_process(peak_of, job, sizes, bench.settings) for job in jobs if job in first}
    bench.say(f"  {len(jobs)} local models, each {bench.repeats + 1} times")
    models = {job.config: setting_for(job, sizes, bench.settings) for job in jobs}  # one for all jobs of its shape
    epochs = [epoch_of(job, models[job.config], sizes) for job in jobs]
    seconds = dict(zip(jobs, in_turn(bench.repeats, *epochs), strict=True))
    turns = {row: [sum(turn) / len(own) for turn in zip(*(seconds[job] for job in own), strict=True)]
             for row, own in rounds.items()}  # fmt: skip

    def line(row: str, what: str, job: Job, taken: Sequence[float], trained: str) -> dict[str, JSON]:
        percent = 100 * ratio(taken, turns[BASELINE])
        return {
            "row": row,
            "what": what,
            "layers": job.layers,
            "trained": trained,
            "seconds": round(median(taken), 2),
            "percent": round(percent, 2),
            "peak_bytes": peaks.get(job),
        }

    rows = []
    for row, own in rounds.items():
        distinct, name = list(dict.fromkeys(own)), table.row(row).name
        trained = own[0].said if len(distinct) == 1 else f"a layer + output, {len(own)} rounds"
        rows.append(line(row, name, own[0], turns[row], trained))
        for job in distinct if len(distinct) > 1 else ():
            rows.append(line("", f"{name}, {own.count(job)} of {len(own)} rounds", job, seconds[job], job.said))
    for found in rows:
        bench.say(f"  {found['what']}, {found['trained']}: {found['seconds']} s, {found['percent']} %")
    percent = next(found["percent"] for found in rows if found["row"] == METHOD)
    bar = Bar("FEDBFPT's epoch over BERT-FL's", percent, PRINTED_PERCENT, at_least=False, unit="%")
    notes = (
        f"An epoch of {sizes.batches} batches of {sizes.batch} random texts of {sizes.tokens} tokens, 15 % of them "
        f"masked, AdamW and dropout included; local models have BERT-base's shapes, DistilBERT's or TinyBERT's. The "
        f"paper: batches of 256 on an RTX A6000, FEDBFPT {PRINTED_PERCENT} %. With batches as small as these, AdamW's "
        f"step over all parameters weighs more.",
        "percent: seconds over BERT-FL's, the median over turns of this one run; of FEDBFPT over its five rounds, of "
        "which three train layer 0. peak: of a fresh process that trains an epoch of the row's first round, its "
        "libraries included. TinyBERT-6 and FEDBFPT-ALL are one computation, measured once.",
        "DistilBERT's layers are not BERT's: they run as the transformers library has them, all others over packed "
        "tokens.",
    )
    return Section("fedbfpt", "FedBFPT: local models", rows, [bar], notes)


def jobs_by_round(cell: Cell, config: Mapping[str, JSON] | None = None) -> list[Job]:
    """What a client trains in each round of a cell, by the method's own plans. config: changes to the encoder's."""
    training = Untrained(cell.seed, cell.training.learning_rate, BATCH, rounds=cell.training.rounds)
    setting = counted_setting(cell, cell.backbone, training, Features(counted=False))
    plan_of = build_algorithm(cell.algorithm, setting, cell.options).plan
    if plan_of is None:
        raise UserError(f"{cell.algorithm}: expected a method that shows its exchange plans, found one that does not")
    found = []
    for round in range(1, cell.training.rounds + 1):
        plan = plan_of(round, 0)
        depth = parameter_groups(plan.view).depth
        own = {**architecture(cell.backbone), **(config or {}), "num_hidden_layers": depth}
        found.append(Job(canonical_json(own), depth, plan.train, cell.backbone))
    return found


def setting_for(job: Job, sizes: Sizes, settings: Settings) -> Setting:
    """A client with the job's local model, which masks tokens of random texts."""
    config = json.loads(job.config)
    words = int(config["vocab_size"])
    objective = MaskedLM(words, Vocabulary(words, np.arange(FIRST_WORD, words), MASK))
    return setting_of(
        job.backbone,
        config=config,
        head="masked-lm",
        objective=objective,
        device=settings.device,
        batch_size=sizes.batch,
    )


def epoch_of(job: Job, setting: Setting, sizes: Sizes, batches: int | None = None) -> Callable[[], object]:
    """One epoch of a job; batches: in place of the usual ones."""
    count = (batches or sizes.batches) * sizes.batch
    (client,) = clients_of(texts(count, (sizes.tokens, sizes.tokens), setting.objective.outputs), 1)
    return partial(setting.training.run, setting.model, client.train, sorted(job.trained), 1, 0)


def peak_of(job: Job, sizes: Sizes, settings: Settings) -> int:
    """Peak memory of this process in bytes, after an epoch of one batch."""
    quiet_libraries()
    torch.set_num_threads(settings.threads)
    hold_freed_memory()
    epoch_of(job, setting_for(job, sizes, settings), sizes, batches=1)()
    return peak_memory_bytes()
