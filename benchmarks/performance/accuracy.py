"""Part 2, too: ways of training that differ in speed learn the same, to within the noise of seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import mean, stdev

import numpy as np

from benchmarks.performance.fedavg_job import Job, Ready, engine_answers, plain_answers, prepare
from benchmarks.performance.flower import flower_python, run_flower
from benchmarks.performance.section import Bench, Section
from benchmarks.spec import JSON

ROUNDS = 3
THREADS = 2
SEEDS = {"packed": 5, "library": 5, "flower": 1, "literal": 1}  # how many: what is slow is run less often
WAYS = {
    "packed": "engine, packed layers",
    "library": "engine, the library's layers",
    "flower": "Flower",
    "literal": "a loop of one's own, padded to 128, fp32",
}
MISSING = "Flower is not installed beside this project (`make bench FLOWER=1`): its row is left out."


def measure(bench: Bench) -> Section:
    """Mean accuracy over clients after the same rounds, by way and seed, and differences in pairs."""
    title = f"The same accuracy: FedAvg on MRPC, {ROUNDS} rounds"
    settings = replace(bench.settings, device="cpu", threads=THREADS)
    if settings.data_dir is None:
        return Section("accuracy", title, [], (), ("Not measured without real data: set DATA_DIR.",))
    python = flower_python()
    runs: Mapping[str, Callable[[Job], Sequence[Sequence[int] | np.ndarray]] | None] = {
        "packed": lambda job: engine_answers(prepare(job), ROUNDS, job.seed),
        "library": lambda job: engine_answers(prepare(job, kernels="reference"), ROUNDS, job.seed),
        "flower": (lambda job: run_flower(python, job, prepare(job), ROUNDS, 2, scored=True).predictions)
        if python
        else None,
        "literal": lambda job: plain_answers(prepare(job, literal=True), ROUNDS),
    }
    found: dict[str, list[float]] = {}
    for way, run in runs.items():
        for seed in range(SEEDS[way] if run else 0):
            assert run is not None
            job = Job(settings, seed)
            found.setdefault(way, []).append(accuracy(run(job), prepare(job)))
            bench.say(f"  {WAYS[way]}, seed {seed}: {found[way][-1]:.2f} %")
    notes = [
        "Accuracy in percent, the mean over three clients' test sets (some 750 pairs: the standard error of one such "
        "accuracy is 1.5). difference: from the packed layers', paired by seed, with its standard error over seeds.",
    ]
    return Section("accuracy", title, rows(found), (), [*notes, *([] if python else [MISSING])])


def accuracy(answers: Sequence[Sequence[int] | np.ndarray], ready: Ready) -> float:
    """The mean over clients of the share of right answers to their test sets, in percent."""
    pairs = zip(answers, ready.clients, strict=True)
    return 100 * mean(float((np.asarray(own) == client.evaluation["test"].labels).mean()) for own, client in pairs)


def rows(found: Mapping[str, Sequence[float]]) -> list[dict[str, JSON]]:
    """Of each way's accuracies by seed: their mean, and the paired difference from the first way's."""
    first = next(iter(found.values()))
    made: list[dict[str, JSON]] = []
    for way, own in found.items():
        pairs = [a - b for a, b in zip(own, first, strict=False)]
        other = own is not first
        made.append(
            {
                "way": WAYS[way],
                "seeds": len(own),
                "accuracy": round(mean(own), 2),
                "difference": round(mean(pairs), 2) if other else None,
                "its error": round(stdev(pairs) / len(pairs) ** 0.5, 2) if other and len(pairs) > 1 else None,
            }
        )
    return made
