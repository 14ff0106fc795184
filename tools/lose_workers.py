"""Many small cells over workers that are killed at random: every cell gets its record, once, and no claim stays.

`python tools/lose_workers.py --cells 1000 --workers 8 --kills 200`; the status says whether all of that held.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.executors.board import Board
from benchmarks.executors.queue import Queue
from benchmarks.executors.workers import work
from benchmarks.record import read_records
from benchmarks.registry import benchmark, columns_of, rows_of
from benchmarks.settings import Settings
from benchmarks.spec import Cell
from fedsim.leases import clean

HEAVY = ("benchmarks.runner", "benchmarks.executors.workers", "datasets", "evaluate")


def small_cells(count: int) -> list[Cell]:
    """The majority on generated data, a seed each: a round of it takes no training."""
    table = benchmark("fedsplitbert-table3")
    ((_, _, cell),) = table.cells(
        table.scale("demo"), [0], rows_of(table, ["local-majority"]), columns_of(table, ["mrpc"])
    )
    cell = replace(cell, training=replace(cell.training, rounds=1))
    return [replace(cell, seed=seed) for seed in range(count)]


def lose(folder: Path, cells: int, workers: int, kills: int, seconds: float, seed: int = 0) -> Counter[str]:
    """Run it in a results folder; counts of what came of it. seconds: after so many, nobody is killed any more."""
    settings = Settings(results_dir=folder, device="cpu")
    board = Board.of(small_cells(cells), False)
    ids = set(board.open)
    queue = Queue.made(board, settings)
    context = multiprocessing.get_context("forkserver")  # imports once, so that a worker is replaced in a moment
    context.set_forkserver_preload(list(HEAVY))
    draw, hear, events = random.Random(seed), queue.listener(board), queue.events()
    crew = [_hired(context, queue) for _ in range(workers)]
    found: Counter[str] = Counter()
    begun, pause = time.monotonic(), seconds / (kills or 1)
    while board.open:
        time.sleep(draw.uniform(0, 2 * pause))
        hear()
        if found["kills"] < kills and time.monotonic() - begun < seconds:
            number = draw.randrange(workers)
            if crew[number].is_alive():
                crew[number].kill()
                crew[number].join()
                found["kills"] += 1
                crew[number] = _hired(context, queue)
        if board.open and not any(process.is_alive() for process in crew):
            break
    for process in crew:
        process.join()
    computed = Counter(event.record.cell.spec_id for event in events() if getattr(event, "reused", None) is False)
    clean(folder / "locks")
    queue.remove()
    recorded = Counter(record.cell.spec_id for record in read_records(settings.records_dir))
    found.update(
        records=recorded.total(),
        missing=len(ids - recorded.keys()),
        twice=sum(count > 1 for count in [*computed.values(), *recorded.values()]),
        claims=len(list((folder / "locks").iterdir())),
        checkpoints=len(list(folder.glob("checkpoints/*"))),
        seconds=round(time.monotonic() - begun),
    )
    return found


def _hired(context: multiprocessing.context.BaseContext, queue: Queue) -> multiprocessing.process.BaseProcess:
    process = context.Process(target=work, args=(queue.folder, {}))  # type: ignore[attr-defined]
    process.start()
    return process  # type: ignore[no-any-return]


def main() -> int:
    """Print the counts; status 1 where a cell was lost or computed twice, or a claim stayed."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("cells", 1000), ("workers", 8), ("kills", 200), ("seconds", 300), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    words = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = lose(Path(folder) / "results", words.cells, words.workers, words.kills, words.seconds, words.seed)
    print(json.dumps(found))
    return int(any(found[name] for name in ("missing", "twice", "claims")) or found["records"] != words.cells)


if __name__ == "__main__":
    sys.exit(main())
