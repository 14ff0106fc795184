"""Every benchmark: a module of a paper's folder that defines BENCHMARK. Adding a table is adding a file."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from pathlib import Path
from typing import TypeVar

from benchmarks.claims import Claim
from benchmarks.errors import UserError
from benchmarks.spec import Benchmark, Column, Row, Scale

T = TypeVar("T")
_ROOT = Path(__file__).parent


def benchmark_ids() -> list[str]:
    """All ids, "<paper>-<table, figure or study>", from the file names alone."""
    return sorted(
        f"{folder.name}-{module.name}"
        for folder in _ROOT.iterdir()
        if (folder / "published").is_dir()
        for module in pkgutil.iter_modules([str(folder)])
        if module.name.startswith(("table", "figure", "appendix", "sensitivity", "inversion", "pretraining"))
    )


def benchmark(benchmark_id: str) -> Benchmark:
    """The benchmark of that id; UserError where there is none."""
    known = benchmark_ids()
    if benchmark_id not in known:
        raise UserError(_unknown("benchmark", benchmark_id, known))
    paper, _, name = benchmark_id.partition("-")
    found: Benchmark = importlib.import_module(f"benchmarks.{paper}.{name}").BENCHMARK
    return found


def claims_of(paper_id: str) -> tuple[Claim, ...]:
    """What a paper asserts, as its folder's claims.py states it; empty where there is none."""
    if not (_ROOT / paper_id / "claims.py").is_file():
        return ()
    found: tuple[Claim, ...] = importlib.import_module(f"benchmarks.{paper_id}.claims").CLAIMS
    return found


def scale_of(chosen: Benchmark, scale_id: str) -> Scale:
    """The benchmark's scale of that id."""
    known = {scale.id: scale for scale in chosen.scales}
    if scale_id not in known:
        raise UserError(_unknown("scale", scale_id, list(known)))
    return known[scale_id]


def rows_of(chosen: Benchmark, ids: list[str]) -> list[Row]:
    """The rows of those ids, all where none is named."""
    known = {row.id: row for row in chosen.rows}
    return [_known("method", row_id, known) for row_id in ids] or list(chosen.rows)


def columns_of(chosen: Benchmark, tasks: list[str]) -> list[Column]:
    """The columns of those tasks, all where none is named."""
    known = {column.task: column for column in chosen.columns}
    return [_known("task", task, known) for task in tasks] or list(chosen.columns)


def _known(kind: str, name: str, known: dict[str, T]) -> T:
    if name not in known:
        raise UserError(_unknown(kind, name, list(known)))
    return known[name]


def _unknown(kind: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"unknown {kind} {name!r}: expected one of {', '.join(known)}.{hint}"
