"""All benchmarks: those that papers' modules and included folders define as BENCHMARK or BENCHMARKS."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TypeVar

from benchmarks.claims import Claim
from benchmarks.encoders.backbones import backbone_name
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Column, Row, Scale

T = TypeVar("T", Row, Column)
_ROOT = Path(__file__).parent
_TABLES = re.compile(r"^BENCHMARKS?\b[^=\n]*=", re.M)
_ANY = re.compile(r"^(BENCHMARKS?|TASKS|METHODS)\b[^=\n]*=", re.M)
_INCLUDED: dict[str, Benchmark] = {}  # tables of included folders, by id
_FILES: dict[tuple[str, str], Path] = {}  # ("BENCHMARK", "TASKS" or "METHODS", name) -> its included module
_FOLDERS: set[Path] = set()


def benchmark_ids() -> list[str]:
    """The ids of all benchmarks, sorted."""
    folders = {module.parent for module in _ROOT.glob("*/*.py") if _may_define(module)}
    return sorted(_INCLUDED.keys() | {name for folder in folders for name in _of_paper(folder)})


def ids_of(paper: str) -> list[str]:
    """The sorted ids of a paper's benchmarks, without importing other papers; empty for an unknown paper."""
    return sorted({*(name for name in _INCLUDED if name.startswith(f"{paper}-")), *_of_paper(_ROOT / paper)})


def include(folder: Path) -> None:
    """Add the tables, tasks and methods in a user's folder.

    It imports each module that defines BENCHMARK or BENCHMARKS (tables), TASKS (a tuple of tasks) or METHODS (a tuple
    of functions; the method has the function's name).

    Raises:
        UserError: The folder has no such module, a module cannot be imported, or a name is taken.
    """
    _FOLDERS.add(folder.resolve())
    modules = _modules_of(folder)
    tables = [(file, table) for file, module in modules.items() for table in _defined(module, file)]
    added = [(file, each) for file, module in modules.items() for each in getattr(module, "TASKS", ())]
    methods = [(file, each) for file, module in modules.items() for each in getattr(module, "METHODS", ())]
    if not (tables or added or methods):
        expected = "expected a folder with modules that define BENCHMARK, TASKS or METHODS"
        raise UserError(f"--include {folder}: {expected}, found none")
    for file, table in tables:
        _claim("BENCHMARK", table.id, file, benchmark_ids())
        _INCLUDED[table.id] = table
    for file, task in added:
        _add_task(task, file)
    for file, method in methods:
        _add_method(method, file)


def include_file(file: Path) -> Sequence[FunctionType]:
    """Add and return the methods in one file; UserError if it defines none."""
    if not file.is_file():
        raise UserError(f"{file}: expected a Python file that defines METHODS, found no file")
    sys.path.append(str(file.resolve().parent))
    methods: Sequence[FunctionType] = getattr(_imported(file.resolve()), "METHODS", ())
    if not methods:
        raise UserError(f"{file}: expected METHODS = (your_method,), a tuple of functions, found none")
    for method in methods:
        _add_method(method, file.resolve())
    return methods


def tables_in(folder: Path) -> dict[str, Benchmark]:
    """A folder's tables by id, without adding them to the list of all benchmarks."""
    return {table.id: table for file, module in _modules_of(folder).items() for table in _defined(module, file)}


def include_once(folders: Iterable[Path]) -> None:
    """Include each folder that this process has not included yet."""
    for folder in folders:
        if folder.resolve() not in _FOLDERS:
            include(folder)


def included_code(method: str) -> str:
    """The source code of a method from an included folder; "" for the project's methods."""
    file = _FILES.get(("METHODS", method))
    return file.read_text(encoding="utf-8") if file else ""


def _modules_of(folder: Path) -> dict[Path, ModuleType]:
    """The modules in a folder that define something, by file."""
    if str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))  # the modules can import each other
    files = [file.resolve() for file in sorted(folder.glob("*.py")) if _may_define(file, _ANY)]
    return {file: _imported(file) for file in files}


def _imported(module: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"included_{module.stem}", module)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except Exception as error:
        raise UserError(f"{module}: cannot be imported ({type(error).__name__}: {error}); fix the module") from error
    return loaded


def _claim(kind: str, name: str, file: Path, names: Collection[str]) -> None:
    """Record which module defines a name; UserError if another one does."""
    if name in names and _FILES.get((kind, name)) != file:
        raise UserError(f"{file}: the id {name} is taken; give its {kind} another one")
    _FILES[kind, name] = file


def _add_task(new: object, file: Path) -> None:
    from benchmarks.tasks import Task, add_task, tasks  # loads numpy

    if not isinstance(new, Task):
        raise UserError(f"{file}: expected TASKS to be a tuple of Task, found {type(new).__name__} in it")
    _claim("TASKS", new.id, file, [each.id for each in tasks()])
    add_task(new)


def _add_method(new: object, file: Path) -> None:
    from fedsim.algorithms import add_method, algorithm_names  # loads torch

    if not isinstance(new, FunctionType):
        raise UserError(f"{file}: expected METHODS to be a tuple of functions, found {type(new).__name__} in it")
    _claim("METHODS", new.__name__, file, algorithm_names())
    add_method(new)


def benchmark(benchmark_id: str) -> Benchmark:
    """The benchmark with that id; UserError if there is none."""
    tables = _INCLUDED if benchmark_id in _INCLUDED else _of_paper(_ROOT / benchmark_id.partition("-")[0])
    if benchmark_id not in tables:
        raise unknown("benchmark", benchmark_id, benchmark_ids())
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


def _may_define(module: Path, names: re.Pattern[str] = _TABLES) -> bool:
    """Whether a module's text suggests that it defines one of the names; only its attributes are certain."""
    return names.search(module.read_text(encoding="utf-8")) is not None


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
    scales = {scale.id: scale for scale in table.scales}
    if scale_id not in scales:
        raise unknown("scale", scale_id, scales)
    return scales[scale_id]


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

    A row without training selects the row whose answers it corrects.
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
                f"{scale.id}; leave it out, or choose another SCALE"
            )
    return [items[name] for name in names]


def unknown(kind: str, name: str, names: Collection[str]) -> UserError:
    """The error for a name outside `names`, with the closest match."""
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return UserError(f"unknown {kind} {name!r}: expected one of {', '.join(names)}.{hint}")
