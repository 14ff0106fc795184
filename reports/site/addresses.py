"""Where each page lies, from the site's folder."""

from __future__ import annotations

from benchmarks.results import RunResult
from reports.evidence.records import Request

INDEX, PROFILES, RECORDS = "index.html", "profiles.html", "records.html"


def table_page(request: Request) -> str:
    """A table's page at a scale."""
    return f"tables/{request.benchmark.id}-{request.scale.id}.html"


def sweep_page(request: Request) -> str:
    """The page of a table's sweeps at a scale; its files lie in the folder of that name."""
    return f"sweeps/{request.benchmark.id}-{request.scale.id}.html"


def paper_page(paper: str, part: str = "") -> str:
    """A paper's page; part: "claims" or "audit"."""
    return f"papers/{paper}-{part}.html" if part else f"papers/{paper}.html"


def cell_page(cell_id: str) -> str:
    """The page of a cell's record."""
    return f"cells/{cell_id}.html"


def record_copy(record: RunResult) -> str:
    """The copy of a record's file."""
    return f"records/{record.file_name}"


def data_script(name: str) -> str:
    """A script of data."""
    return f"data/{name}.js"


def anchor(identity: str) -> str:
    """A finding's or claim's anchor: letters, digits and dashes."""
    return "-".join("".join(letter if letter.isalnum() else " " for letter in identity).split())
