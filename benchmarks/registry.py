"""Every benchmark: a module of a paper's folder that defines BENCHMARK. Adding a table is adding a file."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from benchmarks.claims import Claim
from benchmarks.encoders.backbones import backbone_name, depth
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Column, Row, Scale

T = TypeVar("T", Row, Column)
_ROOT = Path(__file__).parent
_INCLUDED: dict[str, Benchmark] = {}  # a user's own, by id
_FILES: dict[str, Path] = {}  # their modules


def benchmark_ids() -> list[str]:
    """All ids, "<paper>-<module>", of the modules that define BENCHMARK, without importing them; and included ones."""
    modules = (f"{module.parent.name}-{module.stem}" for module in _ROOT.glob("*/*.py") if _defines_benchmark(module))
    return sorted({*modules, *_INCLUDED})


def include(folder: Path) -> None:
    """Register the tables of a user's folder, each by the id of its BENCHMARK.

    UserError where the folder defines none, a module cannot be imported, or an id is taken.
    """
    modules = [module for module in sorted(folder.glob("*.py")) if _defines_benchmark(module)]
    if not modules:
        raise UserError(f"--include {folder}: expected a folder of modules that define BENCHMARK, found none there")
    if str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))  # for modules that import their neighbours
    for module in modules:
        spec = importlib.util.spec_from_file_location(f"included_{module.stem}", module)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(loaded)
        except Exception as error:
            raise UserError(f"{module}: cannot be imported ({type(error).__name__}: {error}); mend it") from error
        table = loaded.BENCHMARK
        if not isinstance(table, Benchmark):
            raise UserError(f"{module}: expected BENCHMARK to be a Benchmark, found {type(table).__name__}")
        if table.id in benchmark_ids() and _FILES.get(table.id) != module.resolve():
            raise UserError(f"{module}: the id {table.id} is taken; give its BENCHMARK another one")
        _INCLUDED[table.id], _FILES[table.id] = table, module.resolve()


def benchmark(benchmark_id: str) -> Benchmark:
    """The benchmark of that id; UserError where there is none."""
    if benchmark_id in _INCLUDED:
        return _INCLUDED[benchmark_id]
    paper, _, name = benchmark_id.partition("-")
    module = _ROOT / paper / f"{name}.py"
    if not (module.is_file() and _defines_benchmark(module)):
        raise unknown("benchmark", benchmark_id, benchmark_ids())
    table: Benchmark = importlib.import_module(f"benchmarks.{paper}.{name}").BENCHMARK
    if table.id != benchmark_id:
        raise UserError(f"{paper}/{name}.py: expected a benchmark with the id {benchmark_id}, found {table.id}")
    return table


def _defines_benchmark(module: Path) -> bool:
    """Whether a module assigns to BENCHMARK at its top level."""
    return re.search(r"^BENCHMARK\b[^=\n]*=", module.read_text(encoding="utf-8"), re.MULTILINE) is not None


def folder_of(paper_id: str) -> Path:
    """The folder of a paper, with its committed records."""
    return _ROOT / paper_id


def claims_of(paper_id: str) -> tuple[Claim, ...]:
    """The claims of a paper, as its folder's claims.py states them; empty without that file."""
    if not (_ROOT / paper_id / "claims.py").is_file():
        return ()
    claims: tuple[Claim, ...] = importlib.import_module(f"benchmarks.{paper_id}.claims").CLAIMS
    return claims


def scale_of(table: Benchmark, scale_id: str) -> Scale:
    """The benchmark's scale of that id; UserError where there is none."""
    scales = {scale.id: scale for scale in table.scales}
    if scale_id not in scales:
        raise unknown("scale", scale_id, scales)
    return scales[scale_id]


def with_backbone(scale: Scale, requested: str | None) -> Scale:
    """The scale on another encoder, with a label that says so."""
    if requested is None or backbone_name(requested) == scale.backbone:
        return scale
    name = backbone_name(requested)
    return replace(scale, backbone=name, depth=depth(requested), changes=(*scale.changes, f"on {name}"))


def rows_of(table: Benchmark, ids: Sequence[str], scale: Scale | None = None) -> list[Row]:
    """The rows of those ids, or all; with a scale, those that exist at it."""
    rows = {row.id: row for row in table.rows}
    return _named("method", rows, ids, scale) or list(table.rows if scale is None else table.rows_at(scale))


def columns_of(table: Benchmark, tasks: Sequence[str], scale: Scale | None = None) -> list[Column]:
    """The columns of those tasks, or all; with a scale, those that exist at it."""
    columns = {column.task: column for column in table.columns}
    return _named("task", columns, tasks, scale) or list(table.columns if scale is None else table.columns_at(scale))


def _named(kind: str, items: Mapping[str, T], names: Sequence[str], scale: Scale | None) -> list[T]:
    """The items of these names; UserError where one is unknown or does not exist at the scale."""
    for name in names:
        if name not in items:
            raise unknown(kind, name, items)
        if scale is not None and scale.id not in items[name].scales:
            raise UserError(
                f"{kind} {name!r}: expected a scale at which there is one, {', '.join(items[name].scales)}, found "
                f"{scale.id}; leave it out, or choose another SCALE"
            )
    return [items[name] for name in names]


def unknown(kind: str, name: str, names: Collection[str]) -> UserError:
    """The error for a name that is not among `names`, with the closest of them."""
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UserError(f"unknown {kind} {name!r}: expected one of {', '.join(names)}.{hint}")
