"""Every benchmark: a module of a paper's folder that defines BENCHMARK. Adding a table is adding a file."""

from __future__ import annotations

import ast
import difflib
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from benchmarks.claims import Claim
from benchmarks.errors import UserError
from benchmarks.spec import Benchmark, Column, Row, Scale

T = TypeVar("T")
_ROOT = Path(__file__).parent


def benchmark_ids() -> list[str]:
    """All ids, "<paper>-<module>", of the modules that define BENCHMARK; none is imported."""
    return sorted(
        f"{module.parent.name}-{module.stem}" for module in _ROOT.glob("*/*.py") if _defines(module, "BENCHMARK")
    )


def benchmark(benchmark_id: str) -> Benchmark:
    """The benchmark of that id; UserError where there is none."""
    paper, _, name = benchmark_id.partition("-")
    module = _ROOT / paper / f"{name}.py"
    if not (module.is_file() and _defines(module, "BENCHMARK")):
        raise UserError(_unknown("benchmark", benchmark_id, benchmark_ids()))
    found: Benchmark = importlib.import_module(f"benchmarks.{paper}.{name}").BENCHMARK
    if found.id != benchmark_id:
        raise UserError(f"{paper}/{name}.py: expected a benchmark with the id {benchmark_id}, found {found.id}")
    return found


def _defines(module: Path, name: str) -> bool:
    """Whether a module assigns to that name at its top level."""
    text = module.read_text(encoding="utf-8")
    if f"\n{name}" not in f"\n{text}":  # most have no such line, and parsing takes its time
        return False
    assigned = [
        target
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return any(isinstance(target, ast.Name) and target.id == name for target in assigned)


def folder_of(paper_id: str) -> Path:
    """The folder of a paper, with its committed records."""
    return _ROOT / paper_id


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


def rows_of(chosen: Benchmark, ids: list[str], scale: Scale | None = None) -> list[Row]:
    """The rows of those ids, all where none is named; those that there are at a scale, where one is given."""
    rows = chosen.rows if scale is None else chosen.rows_at(scale)
    known = {row.id: row for row in chosen.rows}
    named = [_known("method", row_id, known) for row_id in ids]
    _require_at(scale, "method", {row.id: row.scales for row in named})
    return named or list(rows)


def columns_of(chosen: Benchmark, tasks: list[str], scale: Scale | None = None) -> list[Column]:
    """The columns of those tasks, all where none is named; those that there are at a scale, where one is given."""
    columns = chosen.columns if scale is None else chosen.columns_at(scale)
    known = {column.task: column for column in chosen.columns}
    named = [_known("task", task, known) for task in tasks]
    _require_at(scale, "task", {column.task: column.scales for column in named})
    return named or list(columns)


def _require_at(scale: Scale | None, kind: str, named: Mapping[str, tuple[str, ...]]) -> None:
    """UserError where something that is named is not there at a scale. named: its name -> its scales."""
    for name, scales in named.items():
        if scale is not None and scale.id not in scales:
            raise UserError(
                f"{kind} {name!r}: expected a scale at which there is one, {', '.join(scales)}, found {scale.id}; "
                "leave it out, or choose another SCALE"
            )


def _known(kind: str, name: str, known: dict[str, T]) -> T:
    if name not in known:
        raise UserError(_unknown(kind, name, list(known)))
    return known[name]


def _unknown(kind: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"unknown {kind} {name!r}: expected one of {', '.join(known)}.{hint}"
