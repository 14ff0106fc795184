"""Every benchmark: a module of a paper's folder that defines BENCHMARK. Adding a table is adding a file."""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from benchmarks.claims import Claim
from benchmarks.encoders.backbones import backbone_name, depth
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Column, Row, Scale

T = TypeVar("T")
_ROOT = Path(__file__).parent
_INCLUDED: dict[str, Benchmark] = {}  # a user's own, by id
_FILES: dict[str, Path] = {}  # in which they stand


def benchmark_ids() -> list[str]:
    """All ids, "<paper>-<module>", of the modules that define BENCHMARK, none imported; and what was included."""
    own = (f"{module.parent.name}-{module.stem}" for module in _ROOT.glob("*/*.py") if _defines(module, "BENCHMARK"))
    return sorted({*own, *_INCLUDED})


def include(folder: Path) -> None:
    """Make the tables of a user's folder known, each by the id of its BENCHMARK, whatever its file is called.

    UserError where the folder holds none, where a module cannot be imported, and where an id is taken.
    """
    modules = [module for module in sorted(folder.glob("*.py")) if _defines(module, "BENCHMARK")]
    if not modules:
        raise UserError(f"--include {folder}: expected a folder of modules that define BENCHMARK, found none there")
    if str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))  # for modules that import others beside them
    for module in modules:
        spec = importlib.util.spec_from_file_location(f"included_{module.stem}", module)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(loaded)
        except Exception as error:
            raise UserError(f"{module}: cannot be imported ({type(error).__name__}: {error}); mend it") from error
        found = loaded.BENCHMARK
        if not isinstance(found, Benchmark):
            raise UserError(f"{module}: expected BENCHMARK to be a Benchmark, found {type(found).__name__}")
        if found.id in benchmark_ids() and _FILES.get(found.id) != module.resolve():
            raise UserError(f"{module}: the id {found.id} is taken; give its BENCHMARK another one")
        _INCLUDED[found.id], _FILES[found.id] = found, module.resolve()


def benchmark(benchmark_id: str) -> Benchmark:
    """The benchmark of that id; UserError where there is none."""
    if benchmark_id in _INCLUDED:
        return _INCLUDED[benchmark_id]
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


def with_backbone(scale: Scale, requested: str | None) -> Scale:
    """The scale on another encoder, labelled so."""
    if requested is None or backbone_name(requested) == scale.backbone:
        return scale
    name = backbone_name(requested)
    return replace(scale, backbone=name, depth=depth(requested), changes=(*scale.changes, f"on {name}"))


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
