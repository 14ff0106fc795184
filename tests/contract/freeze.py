"""Freeze the contract: `DATA_DIR=folder python -m tests.contract.freeze [frame ...]` writes tests/expected.

It prints how each file changes; the commit message explains the change. The list of records stays as it is: tables,
claims and audits are computed over the records that records.csv names, unless --take-in-records adds the later ones.
"""

import argparse
import os
import time

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")

from tests.contract import project
from tests.contract.facts import difference, read, write
from tests.contract.frames import FRAMES, RECORDS, records_of


def main() -> None:
    names = [frame.name for frame in FRAMES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("frame", nargs="*", default=names, help=f"one of {', '.join(names)}; all by default")
    parser.add_argument("--take-in-records", action="store_true", help="list every committed record anew")
    asked = parser.parse_args()
    if unknown := set(asked.frame) - set(names):
        parser.error(f"unknown frames {', '.join(sorted(unknown))}: expected some of {', '.join(names)}")
    for frame, compute in FRAMES.items():
        if frame.name not in asked.frame:
            continue
        begun = time.perf_counter()
        old = read(frame) if frame.path.exists() else {}
        is_new_list = frame == RECORDS and (asked.take_in_records or not old)
        new = records_of(list(project.committed_records())) if is_new_list else compute()
        write(frame, new)
        seconds = time.perf_counter() - begun
        print(f"{frame.path.name}: {len(new)} facts, {frame.path.stat().st_size:,} bytes, {seconds:.1f} s")
        print((difference(frame, old, new) or "unchanged") if old else "new")


if __name__ == "__main__":
    main()
