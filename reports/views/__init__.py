"""Views: how a table or figure shows its records.

A view is a module here: `join` answers a request with whatever it shows, of which `grids`, `notes` and `frame` make
the tables, the notes under them and the long form. `plot` of the module beside it, `<view>_plot`, draws the figure. One
that is about something else than scores says so: `RANKS = False`; one that has something for the first page: `finding`.
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
    return show(name, importlib.import_module(f"reports.views.{name}").join(request))


def has_finding(benchmark: Benchmark) -> bool:
    """Whether a benchmark's view may have something for the first page: most have not, and their pages take time."""
    return hasattr(importlib.import_module(f"reports.views.{benchmark.view.name}"), "finding")


def show(name: str, found: Any) -> Page:
    """The page of what a view's `join` gave."""
    view, drawing = (importlib.import_module(f"reports.views.{name}{part}") for part in ("", "_plot"))
    grids, notes = tuple(view.grids(found)), tuple(view.notes(found))
    return Page(
        found.request,
        grids,
        notes,
        partial(view.frame, found),
        partial(drawing.plot, found),
        getattr(view, "RANKS", True),
        view.finding(found) if hasattr(view, "finding") else None,
    )
