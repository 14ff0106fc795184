"""What shapes give of every cell that pages, claims and audits ask for: into benchmarks/derived.json.

`python tools/derived.py` renews it, in some minutes: do so where what a method sends or computes is meant to change, or
where a table is added. Pages of records are then made without torch.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def ask_everything() -> None:
    """Ask for all that reports and the site ask for, at every scale, with the committed records and without."""
    from benchmarks.cli.derive import derive_client, derive_for
    from benchmarks.cli.paper import audited, judged
    from benchmarks.record import read_records
    from benchmarks.registry import benchmark, benchmark_ids
    from reports.evidence.records import request_for
    from reports.site.points import points_of
    from reports.views import page

    records = [record for folder in sorted(ROOT.glob("benchmarks/*/records")) for record in read_records(folder)]
    tables = [benchmark(name) for name in benchmark_ids()]
    for table in tables:
        for scale in table.scales:
            asked = request_for(table, scale, records, derive=derive_for(table), derive_client=derive_client)
            page(asked)
            list(points_of(asked))
    for paper in dict.fromkeys(table.paper.id for table in tables):
        scales = {scale.id: scale for table in tables if table.paper.id == paper for scale in table.scales}
        for scale in scales.values():
            judged(paper, scale, records)
        audited(paper, records)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from benchmarks import derived

    derived.FILE.unlink(missing_ok=True)  # everything anew
    ask_everything()
    derived.FILE.write_text(derived.renewed(), encoding="utf-8")
