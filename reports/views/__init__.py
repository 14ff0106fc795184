"""Views: how a table or figure shows its records. A view is a module here with a function of its own name."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from reports.page import Page, Request


def page(request: Request) -> Page:
    """The page of a benchmark at a scale, by the view that the benchmark names."""
    name = request.benchmark.view.name
    view: Callable[[Request], Page] = getattr(importlib.import_module(f"reports.views.{name}"), name)
    return view(request)
