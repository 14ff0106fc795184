"""How long the report and the site take over many records, in processes that cannot import torch.

`python tools/pages_speed.py [number]`: copies of the committed records under other seeds, in a folder that goes away.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from itertools import count, islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NUMBER = 1000
APART = 100  # seeds between one copy and the next
COMMAND = """
import sys
sys.modules.update(dict.fromkeys(("torch", "transformers")))
from benchmarks.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def write_copies(folder: Path, number: int) -> None:
    """So many records, each a committed one under another seed, without predictions."""
    from benchmarks.record import read_records, write_record

    own = [record for records in sorted(ROOT.glob("benchmarks/*/records")) for record in read_records(records)]
    pairs = ((record, APART * copy) for copy in count() for record in own)
    for record, further in islice(pairs, number):
        cell = replace(record.cell, seed=record.cell.seed + further)
        identity = cell.cell_id({name: entry["digest"] for name, entry in record.inputs.items()})
        write_record(folder, replace(record, cell=cell, cell_id=identity, predictions={}, folder=None))


def timed(*words: str) -> tuple[float, float]:
    """Seconds that a command took by the clock, and of the processor."""
    before, start = os.times(), time.perf_counter()
    subprocess.run([sys.executable, "-c", COMMAND, *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    spent, after = time.perf_counter() - start, os.times()
    busy = after.children_user + after.children_system - before.children_user - before.children_system
    return spent, busy


def main(number: int) -> None:
    """Print both times."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_copies(folder / "records", number)
        records = ("--records", str(folder / "records"), "--results-dir", str(folder / "results"))
        for command in ("report", "site"):
            spent, busy = timed(command, *records)
            print(f"{command}: {number} records in {spent:.1f} s, {busy:.1f} s of the processor")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main(int(sys.argv[1]) if len(sys.argv) > 1 else NUMBER)
