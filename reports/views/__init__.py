"""Views: how a table or figure shows its records.

A view is a module of this package: `join` answers a request with what it shows, of which `grids`, `notes`, `frame` and
`plot` make the tables, the notes under them, the long form and the figure. A view that is about something else than
scores says so: `RANKS = False`; one that has something for the first page: `finding`.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

from benchmarks.experiment import Benchmark
from reports.evidence.records import Request
from reports.pages.page import Page


def page(request: Request) -> Page:
    """The page of a benchmark at a scale, by the view that the benchmark names."""
    name = request.benchmark.view.name
    return show(name, _module(name).join(request))


def _module(name: str) -> Any:
    return importlib.import_module(f"reports.views.{name}")


def has_finding(benchmark: Benchmark) -> bool:
    """Whether a benchmark's view may have something for the first page: most have not, and their pages take time."""
    return hasattr(_module(benchmark.view.name), "finding")


def show(name: str, found: Any) -> Page:
    """The page of what a view's `join` gave."""
    view = _module(name)
    return Page(
        found.request,
        tuple(view.grids(found)),
        tuple(view.notes(found)),
        partial(view.frame, found),
        partial(view.plot, found),
        getattr(view, "RANKS", True),
        view.finding(found) if hasattr(view, "finding") else None,
    )
