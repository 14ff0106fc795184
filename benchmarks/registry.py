"""All benchmarks: those that papers' modules and included folders define as BENCHMARK or BENCHMARKS."""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from benchmarks.encoders.backbones import backbone_name
from benchmarks.errors import UserError, did_you_mean, unknown
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.measures import metric
from benchmarks.run_config import SCALES
from benchmarks.running.included import load_folder, modules_in, reserve
from reports import ReportError
from reports.evidence.published_files import AVERAGE, read_published

if TYPE_CHECKING:
    from benchmarks.claims import Claim

T = TypeVar("T", Row, Column)
_ROOT = Path(__file__).parent
_TABLES = re.compile(r"^BENCHMARKS?\b[^=\n]*=", re.M)
_DEFINED = ("BENCHMARK", "BENCHMARKS", "TASKS", "METHODS")
_BY_ROW = ("scores", "curves", "gains", "orders", "clients")  # views that read published values by row and task
_INCLUDED: dict[str, Benchmark] = {}  # tables of included folders, by id


def benchmark_ids() -> list[str]:
    """The ids of all benchmarks, sorted."""
    folders = {module.parent for module in _ROOT.glob("*/*.py") if _may_define(module)}
    return sorted(_INCLUDED.keys() | {name for folder in folders for name in _of_paper(folder)})


def ids_of(paper: str) -> list[str]:
    """The sorted ids of a paper's benchmarks, without importing other papers; empty for an unknown paper.

    An included table belongs to its own paper by any id, and to one of ours if its id begins with it.
    """
    ours = _of_paper(_ROOT / paper)
    of_own = {id for id, table in _INCLUDED.items() if not ours and table.paper.id == paper}
    return sorted({*(id for id in _INCLUDED if id.startswith(f"{paper}-")), *of_own, *ours})


def tables_of(name: str) -> list[str]:
    """The ids of a paper's tables, or the table's id; UserError if there is neither."""
    return ids_of(name) or [benchmark(name).id]


def tables_named(names: Iterable[str]) -> list[str]:
    """The distinct ids of the named benchmarks and papers' benchmarks; no names mean all."""
    return list(dict.fromkeys(table for name in names for table in tables_of(name))) or benchmark_ids()


def include(folder: Path) -> None:
    """Add the tables, tasks and methods in a user's folder.

    It imports each module that defines BENCHMARK or BENCHMARKS (tables), TASKS (a tuple of tasks) or METHODS (a tuple
    of functions; the method has the function's name).

    Raises:
        UserError: The folder has no such module, a module cannot be imported, or a name is taken.
    """
    modules = load_folder(folder)
    if not any(getattr(module, name, ()) for module in modules.values() for name in _DEFINED):
        expected = "expected a folder with modules that define BENCHMARK, TASKS or METHODS"
        raise UserError(f"--include {folder}: {expected}, found none")
    tables = [(file, table) for file, module in modules.items() for table in _defined(module, file)]
    for file, table in tables:
        _check(table, file)
        _check_published(table, [other.place for _, other in tables if other.published_csv == table.published_csv])
        reserve("BENCHMARK", table.id, file, benchmark_ids())
        _INCLUDED[table.id] = table


def is_included(benchmark_id: str) -> bool:
    """Whether an included folder defines a benchmark."""
    return benchmark_id in _INCLUDED


def _check(table: Benchmark, file: Path) -> None:
    """UserError for scales and scores in a user's table that other commands would not understand."""
    if others := [scale.id for scale in table.scales if scale.id not in SCALES]:
        raise UserError(f"{file}: {table.id}: expected scales from {', '.join(SCALES)}, found {', '.join(others)}")
    for column in table.columns:
        for score in filter(None, (*column.scores, *column.extra, column.averaged)):
            metric(score)


def _check_published(table: Benchmark, places: Collection[str]) -> None:
    """UserError for a user's file of published values that is missing, or has values that its tables would ignore.

    places: of the tables that read the file.
    """
    file = table.published_csv
    if file.is_relative_to(_ROOT):  # the file of a paper's table, which may have more rows and tasks
        return
    try:
        entries = read_published(file)
    except ReportError as error:
        raise UserError(str(error)) from None
    rows = [row.id for row in (*table.rows, *table.without_training)]
    expected = {"table": places, "row": rows, "column": [*(column.task for column in table.columns), AVERAGE]}
    if table.view.name == "scores":
        expected["score"] = [*dict.fromkeys(score for each in table.columns for score in each.scores + each.extra), ""]
    for entry in entries if table.view.name in _BY_ROW else ():
        for kind in expected if entry.table == table.place else ("table",):
            name, names = str(getattr(entry, kind)), expected[kind]
            if name not in names:
                found = f"found {name!r}; correct the line.{did_you_mean(name, names)}"
                expected_names = f"one of {', '.join(names)} in the column {kind!r}"
                raise UserError(f"{file}: expected {expected_names}, as {table.id} has, {found}")


def tables_in(folder: Path) -> dict[str, Benchmark]:
    """A folder's tables by id, without adding them to the list of all benchmarks."""
    return {table.id: table for file, module in modules_in(folder).items() for table in _defined(module, file)}


def benchmark(benchmark_id: str) -> Benchmark:
    """The benchmark with that id; UserError if there is none."""
    tables = _INCLUDED if benchmark_id in _INCLUDED else _of_paper(_ROOT / benchmark_id.partition("-")[0])
    if benchmark_id not in tables:
        expected = f"an id that `python -m benchmarks list` shows.{did_you_mean(benchmark_id, benchmark_ids())}"
        if of_paper := ids_of(benchmark_id):
            expected = f"a table, found a paper; name one of its tables, such as {of_paper[-1]}"
        raise UserError(f"unknown benchmark {benchmark_id!r}: expected {expected}")
    return tables[benchmark_id]


@cache
def _of_paper(folder: Path) -> dict[str, Benchmark]:
    """The benchmarks in a paper's folder by id; UserError if an id does not begin with the folder's name."""
    benchmarks: dict[str, Benchmark] = {}
    for module in filter(_may_define, sorted(folder.glob("*.py"))):
        for table in _defined(importlib.import_module(f"benchmarks.{folder.name}.{module.stem}"), module):
            if not table.id.startswith(f"{folder.name}-"):
                raise UserError(f"{module}: expected an id that begins with {folder.name}-, found {table.id}")
            benchmarks[table.id] = table
    return benchmarks


def _may_define(module: Path) -> bool:
    """Whether a module's text suggests that it defines tables; only its attributes are certain."""
    return _TABLES.search(module.read_text(encoding="utf-8")) is not None


def _defined(module: ModuleType, file: Path) -> tuple[Benchmark, ...]:
    """The benchmarks in a module's BENCHMARK or BENCHMARKS; UserError if a value is not a Benchmark."""
    benchmarks = (*([module.BENCHMARK] if hasattr(module, "BENCHMARK") else []), *getattr(module, "BENCHMARKS", ()))
    for table in benchmarks:
        if not isinstance(table, Benchmark):
            raise UserError(f"{file}: expected BENCHMARK to be a Benchmark, found {type(table).__name__}")
    return benchmarks


def folder_of(paper_id: str) -> Path:
    """A paper's folder, which has its committed records."""
    return _ROOT / paper_id


def claims_of(paper_id: str) -> tuple[Claim, ...]:
    """The claims in claims.py of a paper's folder; empty without that file."""
    if not (_ROOT / paper_id / "claims.py").is_file():
        return ()
    claims: tuple[Claim, ...] = importlib.import_module(f"benchmarks.{paper_id}.claims").CLAIMS
    return claims


def scale_of(table: Benchmark, scale_id: str) -> Scale:
    """The benchmark's scale with that id; UserError if there is none."""
    if scale_id not in table.scales_by_id:
        raise unknown("scale", scale_id, table.scales_by_id)
    return table.scale(scale_id)


def with_backbone(scale: Scale, requested: str | None) -> Scale:
    """The scale with another encoder, which its label names."""
    if requested is None or backbone_name(requested) == scale.backbone:
        return scale
    from benchmarks.encoders.files import depth  # loads numpy

    name = backbone_name(requested)
    layers, data = depth(requested), scale.material.partition(",")[0]
    material = f"{data}, {name} ({layers} layers)"
    return replace(scale, backbone=name, depth=layers, material=material, changes=(*scale.changes, f"on {name}"))


def rows_of(table: Benchmark, ids: Sequence[str], scale: Scale | None = None) -> list[Row]:
    """The rows with those ids, or all; with a scale, those that exist at it.

    A row without training selects the row whose predictions it corrects.
    """
    rows = {row.id: table.row(row.corrects or row.id) for row in (*table.rows, *table.without_training)}
    named = {row.id: row for row in _named("method", rows, ids, scale)}
    return list(named.values()) or list(table.rows if scale is None else table.rows_at(scale))


def columns_of(table: Benchmark, tasks: Sequence[str], scale: Scale | None = None) -> list[Column]:
    """The columns for those tasks, or all; with a scale, those that exist at it."""
    columns = {column.task: column for column in table.columns}
    return _named("task", columns, tasks, scale) or list(table.columns if scale is None else table.columns_at(scale))


def _named(kind: str, items: Mapping[str, T], names: Sequence[str], scale: Scale | None) -> list[T]:
    """The items with these names; UserError if one is unknown or does not exist at the scale."""
    for name in names:
        if name not in items:
            raise unknown(kind, name, items)
        if scale is not None and scale.id not in items[name].scales:
            raise UserError(
                f"{kind} {name!r}: expected one of its scales, {', '.join(items[name].scales)}, found "
                f"{scale.id}; leave out the {kind}, or choose another scale"
            )
    return [items[name] for name in dict.fromkeys(names)]
