"""Digests of everything that reports render from the committed records, so that no number of it changes unseen.

`python tools/pages.py` renews tests/pages.sha256: do so only where a page is meant to change, and say so in the commit.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIGESTS = ROOT / "tests" / "pages.sha256"
SCALE = "lite"


def rendered() -> Iterator[tuple[str, str]]:
    """Name and text of every page, long form, judgement and audit; floats to ten digits, as CPUs differ in the last."""
    from benchmarks.cli.paper import benchmarks_of, published_of
    from benchmarks.record import read_records
    from benchmarks.registry import benchmark, benchmark_ids, claims_of
    from benchmarks.shapes import derive_client, derive_for
    from reports.audit import findings
    from reports.audit.checks import Material, audit_markdown
    from reports.claims.judge import judge
    from reports.claims.tables import claims_markdown
    from reports.evidence.records import request_for
    from reports.pages.render import markdown
    from reports.views import page

    folders = sorted(ROOT.glob("benchmarks/*/records"))
    records = tuple(record for folder in folders for record in read_records(folder))
    for name in benchmark_ids():
        table = benchmark(name)
        asked = request_for(table, table.scale(SCALE), records, derive=derive_for(table), derive_client=derive_client)
        shown = page(asked)
        yield f"{name}.md", markdown(shown)
        yield f"{name}.csv", shown.frame().to_csv(index=False, lineterminator="\n", float_format="%.10g")
    for paper in (folder.parent.name for folder in folders):
        tables = benchmarks_of(paper)
        own = next(table for table in tables.values() if table.paper.id == paper)
        claims, published = claims_of(paper), published_of(tables.values())
        derive = derive_for, derive_client
        judged = judge(own.paper.name, claims, published, records, tables, own.scale(SCALE), *derive)
        yield f"{paper}-claims.md", claims_markdown(judged)
        material = Material(paper, published, tables, claims, records, *derive)
        yield f"{paper}-audit.md", audit_markdown(findings(material))


def digests() -> str:
    """A line for each text: its SHA-256 and its name."""
    return "".join(f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n" for name, text in rendered())


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    DIGESTS.write_text(digests(), encoding="utf-8")
