"""Views: how a table or figure shows its records, by the name or the class that a benchmark's `view` has."""

from __future__ import annotations

import importlib

from benchmarks.experiment import Benchmark
from reports.evidence.records import Request
from reports.frame import TableView
from reports.pages.page import Page

VIEWS = {
    "scores": "reports.views.scores.ScoreTable",
    "curves": "reports.views.curves.Curves",
    "gains": "reports.views.gains.Gains",
    "orders": "reports.views.orders.Orders",
    "clients": "reports.views.clients.Clients",
    "sent": "reports.views.sent.Sent",
    "labels": "reports.views.shares.LabelShares",
}


def view_class(benchmark: Benchmark) -> type[TableView]:
    """The view that a benchmark names."""
    module, _, name = VIEWS.get(benchmark.view.name, benchmark.view.name).rpartition(".")
    view: type[TableView] = getattr(importlib.import_module(module), name)
    return view


def view_of(request: Request) -> TableView:
    """A request as the view that its benchmark names."""
    return view_class(request.benchmark)(request)


def has_finding(benchmark: Benchmark) -> bool:
    """Whether a benchmark's view has something for the first page: most have not, and their pages take time."""
    return view_class(benchmark).finding is not TableView.finding


def page(request: Request) -> Page:
    """The page of a benchmark at a scale."""
    return view_of(request).page()
