"""Against what users would pick: the same FedAvg job in our engine, in Flower, and in a loop of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from benchmarks.performance.fedavg_job import (
    FIXED_WIDTH,
    Job,
    Ready,
    engine_seconds,
    plain_round,
    plain_start,
    prepare,
)
from benchmarks.performance.flower import flower_python, run_flower
from benchmarks.performance.section import Bar, Bench, Section, ratio, seconds
from benchmarks.performance.side_by_side import side_by_side
from benchmarks.run_config import JSON
from benchmarks.running.process import hold_freed_memory, quiet_libraries

THREADS = 2
BATCHES = 16  # of each client and timed round
LITERAL_BATCHES = 4  # the same of the loop: its batches are all of one width, and slow

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
    """Throughput of training, timed in turn."""
    quiet_libraries()
    hold_freed_memory()
    settings = replace(bench.settings, device="cpu", threads=THREADS)
    settings.results_dir.mkdir(parents=True, exist_ok=True)
    job, python = Job(settings, batches=BATCHES), flower_python()
    measured, cpus = _throughput(job, python, bench)
    notes = [
        f"FedAvg of 3 clients, batches of 16, frozen embeddings; a timed round has {BATCHES} batches a client "
        f"({LITERAL_BATCHES} of the loop), without set-up and without scoring. CPU alone, whatever else there is.",
        "Flower: message API and `run_simulation`, the transformers library's classifier in fp32, dynamic padding, "
        "AdamW; its bars are held against the faster of its two ways. `loops alone` leaves out what Flower spends "
        "between clients' loops and counts no idle CPU.",
    ]
    if python is None:
        notes.append(MISSING)
    return Section("peers", "Against what users would pick", _rows(measured), bars(measured.throughput, cpus), notes)


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


def _rows(measured: Measured) -> list[dict[str, JSON]]:
    order = [way for way in (ENGINE, PAIR, *FLOWER.values(), LOOP) if way in measured.throughput]
    engine = median(measured.throughput[ENGINE])
    return [
        {
            "way": way,
            "examples/s": median(measured.throughput[way]),
            "loops alone": median(measured.loops_alone[way]) if way in measured.loops_alone else None,
            "one cell is times as fast": engine / median(measured.throughput[way]),
        }
        for way in order
    ]
