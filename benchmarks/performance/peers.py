"""Against what users would pick: the same FedAvg job in our engine, in Flower, and in a loop of one's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.performance.fedavg_job import (
    FIXED_WIDTH,
    Job,
    Ready,
    engine_answers,
    engine_seconds,
    plain_answers,
    plain_round,
    plain_start,
    prepare,
)
from benchmarks.performance.flower import flower_python, run_flower
from benchmarks.performance.section import Bar, Bench, Section, ratio, seconds
from benchmarks.performance.side_by_side import side_by_side
from benchmarks.runner import quiet_libraries
from benchmarks.scoring import combine_errors
from benchmarks.spec import JSON

THREADS = 2
BATCHES = 16  # of each client and timed round
LITERAL_BATCHES = 4  # the same of the loop: its batches are all of one width, and slow
SEEDS, ROUNDS = (0, 1), 2  # of the runs whose accuracy is compared

ENGINE = "engine, one cell on 2 threads"
PAIR = "engine, two cells side by side, a thread each"
LOOP = f"a loop of one's own, padded to {FIXED_WIDTH}, fp32, 2 threads"
FLOWER = {  # CPUs that a client gets -> what that means on two of them
    2: "Flower, one client at a time on 2 threads",
    1: "Flower, two clients at a time, a thread each",
}
FLOWER_BARS = {ENGINE: 3.0, PAIR: 4.0}  # times Flower's throughput, at least
LOOP_BAR = 6.0  # times the loop's throughput, at least, for one cell on two threads
MISSING = "Flower is not installed beside this project (`make bench FLOWER=1`): its rows and bars are left out."


@dataclass
class Measured:
    """By way, a figure of each repeat: examples a second, and Flower's as if its clients' loops were all it did."""

    throughput: dict[str, list[float]] = field(default_factory=dict)
    loops_alone: dict[str, list[float]] = field(default_factory=dict)

    def add(self, way: str, examples_a_second: float, alone: float | None = None) -> float:
        """Note a figure, and give it back."""
        self.throughput.setdefault(way, []).append(examples_a_second)
        if alone is not None:
            self.loops_alone.setdefault(way, []).append(alone)
        return examples_a_second


def measure(bench: Bench) -> Section:
    """Throughput of training, in turn, and with real data the accuracy after the same rounds."""
    quiet_libraries()
    settings = replace(bench.settings, device="cpu", threads=THREADS)
    settings.results_dir.mkdir(parents=True, exist_ok=True)
    job, python = Job(settings, batches=BATCHES), flower_python()
    measured, cpus = _throughput(job, python, bench)
    correct = _correct(job, python, cpus, bench.say) if job.real else {}
    notes = [
        f"FedAvg of 3 clients, batches of 16, frozen embeddings; a timed round has {BATCHES} batches a client "
        f"({LITERAL_BATCHES} of the loop), without set-up and without scoring. CPU alone, whatever else there is.",
        "Flower: message API and `run_simulation`, the transformers library's classifier in fp32, dynamic padding, "
        "AdamW; its bars are held against the faster of its two ways. `loops alone` leaves out what Flower spends "
        "between clients' loops and counts no idle CPU.",
    ]
    if python is None:
        notes.append(MISSING)
    notes.append(
        f"Accuracy: mean over clients' test sets and seeds {SEEDS} after {ROUNDS} rounds, with its standard error; "
        "difference: from the engine's, with the standard error of a difference of such binomial shares."
        if job.real
        else "Random texts: accuracy is not compared without real data."
    )
    return Section(
        "peers", "Against what users would pick", _rows(measured, correct), bars(measured.throughput, cpus), notes
    )


def bars(throughput: Mapping[str, Sequence[float]], cpus: int | None) -> list[Bar]:
    """Ratios that have to hold; cpus: that a client gets in the faster of Flower's ways, None without Flower."""
    found = []
    if cpus is not None:
        found = [
            Bar(f"{way}, beside Flower", ratio(throughput[way], throughput[FLOWER[cpus]]), bound)
            for way, bound in FLOWER_BARS.items()
        ]
    return [*found, Bar(f"{ENGINE}, beside the loop", ratio(throughput[ENGINE], throughput[LOOP]), LOOP_BAR)]


def _throughput(job: Job, python: Path | None, bench: Bench) -> tuple[Measured, int | None]:
    """Every way in turn; and the CPUs a client gets in Flower's faster way, which was tried before."""
    measured = Measured()
    with side_by_side(job) as cells:
        ready = prepare(job)
        literal = prepare(replace(job, batches=LITERAL_BATCHES), literal=True)
        start = plain_start(literal)
        engine_seconds(ready, job.settings.results_dir, 0)  # warm-up
        cpus = None
        if python is not None:
            tried = {cpus: _flower(python, job, ready, cpus) for cpus in FLOWER}
            cpus = max(tried, key=lambda each: tried[each][0])
            bench.say("  " + "; ".join(f"{FLOWER[each]}: {tried[each][0]:.1f} examples/s" for each in tried))
            slower = next(each for each in FLOWER if each != cpus)
            measured.add(FLOWER[slower], *tried[slower])
        for number in range(1, bench.repeats + 1):
            speeds = [
                measured.add(ENGINE, ready.examples / engine_seconds(ready, job.settings.results_dir, number)),
                measured.add(PAIR, cells(number)),
            ]
            if python is not None and cpus is not None:
                speeds.append(measured.add(FLOWER[cpus], *_flower(python, job, ready, cpus)))
            speeds.append(measured.add(LOOP, literal.examples / seconds(lambda: plain_round(literal, start, 1))))
            bench.say("  examples/s: " + "  ".join(f"{speed:.1f}" for speed in speeds))
    return measured, cpus


def _flower(python: Path, job: Job, ready: Ready, cpus: int) -> tuple[float, float]:
    """Examples a second of Flower's second round, and of the clients' loops alone."""
    result = run_flower(python, job, ready, 2, cpus)
    at_once = THREADS // cpus
    return ready.examples / result.seconds[1], ready.examples * at_once / sum(result.loop_seconds[1])


def _correct(
    job: Job, python: Path | None, cpus: int | None, say: Callable[[str], None]
) -> dict[str, list[np.ndarray]]:
    """Way -> of each seed and client, which texts of its test set are answered rightly."""
    found: dict[str, list[np.ndarray]] = {}
    for seed in SEEDS:
        whole = Job(job.settings, seed)
        ready = prepare(whole)
        answers: dict[str, Sequence[Sequence[int] | np.ndarray]] = {ENGINE: engine_answers(ready, ROUNDS, seed)}
        if python is not None and cpus is not None:
            answers[FLOWER[cpus]] = run_flower(python, whole, ready, ROUNDS, cpus, scored=True).predictions
        answers[LOOP] = plain_answers(prepare(whole, literal=True), ROUNDS)
        for way, given in answers.items():
            right = [
                np.asarray(own) == client.evaluation["test"].labels
                for own, client in zip(given, ready.clients, strict=True)
            ]
            found.setdefault(way, []).extend(right)
            say(f"  accuracy, seed {seed}, {way}: {100 * accuracy(right)[0]:.2f}")
    return found


def accuracy(correct: Sequence[np.ndarray]) -> tuple[float, float]:
    """The mean share that is right over test sets, and its binomial standard error."""
    shares = [float(right.mean()) for right in correct]
    errors = [(share * (1 - share) / len(right)) ** 0.5 for share, right in zip(shares, correct, strict=True)]
    return sum(shares) / len(shares), combine_errors(errors) or 0.0


def _rows(measured: Measured, correct: Mapping[str, Sequence[np.ndarray]]) -> list[dict[str, JSON]]:
    order = [way for way in (ENGINE, PAIR, *FLOWER.values(), LOOP) if way in measured.throughput]
    engine = median(measured.throughput[ENGINE])
    rows: list[dict[str, JSON]] = []
    for way in order:
        figures, alone = measured.throughput[way], measured.loops_alone.get(way)
        rows.append(
            {
                "way": way,
                "examples/s": median(figures),
                "loops alone": median(alone) if alone else None,
                "one cell is times as fast": engine / median(figures),
                **_accuracy_columns(correct, way),
            }
        )
    return rows


def _accuracy_columns(correct: Mapping[str, Sequence[np.ndarray]], way: str) -> dict[str, JSON]:
    if not correct:
        return {}
    names = ("accuracy %", "its error", "difference", "error of the difference")
    if way not in correct:
        return dict.fromkeys(names)
    (own, error), (engine, engine_error) = accuracy(correct[way]), accuracy(correct[ENGINE])
    values = [own, error, *((None, None) if way == ENGINE else (own - engine, (error**2 + engine_error**2) ** 0.5))]
    return {name: None if value is None else 100 * value for name, value in zip(names, values, strict=True)}
