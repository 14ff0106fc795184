"""Views: how a table or figure shows its records.

A view is a module here: `join` answers a request with whatever it shows, of which `grids`, `notes` and `frame` make
the tables, the notes under them and the long form. `plot` of the module beside it, `<view>_plot`, draws the figure. One
that is about something else than scores says so: `RANKS = False`. What the first page is to tell of it: `finding`.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any

from reports.evidence.records import Request
from reports.pages.page import Page


def page(request: Request) -> Page:
    """The page of a benchmark at a scale, by the view that the benchmark names."""
    name = request.benchmark.view.name
    return show(name, importlib.import_module(f"reports.views.{name}").join(request))


def finding(request: Request) -> tuple[str, str] | None:
    """What a benchmark's view has for the first page: what was measured, and its numbers; None of most views."""
    view = importlib.import_module(f"reports.views.{request.benchmark.view.name}")
    found: tuple[str, str] | None = view.finding(view.join(request)) if hasattr(view, "finding") else None
    return found


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
    )
