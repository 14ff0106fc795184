"""Every benchmark: what modules of papers and of included folders define as BENCHMARK or BENCHMARKS."""

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
    """The ids of a paper's benchmarks, sorted; empty if there is no such paper. Other papers are not imported."""
    return sorted({*(name for name in _INCLUDED if name.startswith(f"{paper}-")), *_of_paper(_ROOT / paper)})


def include(folder: Path) -> None:
    """Add the tables, tasks and methods of a user's folder.

    Each module of the folder that defines BENCHMARK or BENCHMARKS (tables), TASKS (a tuple of tasks) or METHODS (a
    tuple of functions, each the method of its name) is imported, and adds them.

    Raises:
        UserError: The folder has no such module, a module cannot be imported, or a name is taken.
    """
    _FOLDERS.add(folder.resolve())
    modules = _modules_of(folder)
    tables = [(file, table) for file, module in modules.items() for table in _defined(module, file)]
    added = [(file, each) for file, module in modules.items() for each in getattr(module, "TASKS", ())]
    methods = [(file, each) for file, module in modules.items() for each in getattr(module, "METHODS", ())]
    if not (tables or added or methods):
        expected = "expected a folder of modules that define BENCHMARK, TASKS or METHODS"
        raise UserError(f"--include {folder}: {expected}, found none there")
    for file, table in tables:
        _claim("BENCHMARK", table.id, file, benchmark_ids())
        _INCLUDED[table.id] = table
    for file, task in added:
        _add_task(task, file)
    for file, method in methods:
        _add_method(method, file)


def include_file(file: Path) -> Sequence[FunctionType]:
    """Add the methods of one file, and return them; UserError if it defines none."""
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
    """The tables of a folder, by id, which no list of all benchmarks gets."""
    return {table.id: table for file, module in _modules_of(folder).items() for table in _defined(module, file)}


def include_once(folders: Iterable[Path]) -> None:
    """Include the folders that this process has not included yet."""
    for folder in folders:
        if folder.resolve() not in _FOLDERS:
            include(folder)


def included_code(method: str) -> str:
    """The source of a method of an included folder; "" for the project's."""
    file = _FILES.get(("METHODS", method))
    return file.read_text(encoding="utf-8") if file else ""


def _modules_of(folder: Path) -> dict[Path, ModuleType]:
    """The modules of a folder that define something, by file."""
    if str(folder.resolve()) not in sys.path:
        sys.path.append(str(folder.resolve()))  # so that the modules can import each other
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
    """Note which module defines a name; UserError if another one does."""
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
    """The benchmark of that id; UserError if there is none."""
    tables = _INCLUDED if benchmark_id in _INCLUDED else _of_paper(_ROOT / benchmark_id.partition("-")[0])
    if benchmark_id not in tables:
        raise unknown("benchmark", benchmark_id, benchmark_ids())
    return tables[benchmark_id]


@cache
def _of_paper(folder: Path) -> dict[str, Benchmark]:
    """The benchmarks of a paper's folder, by id; UserError if an id does not begin with the folder's name."""
    benchmarks: dict[str, Benchmark] = {}
    for module in filter(_may_define, sorted(folder.glob("*.py"))):
        for table in _defined(importlib.import_module(f"benchmarks.{folder.name}.{module.stem}"), module):
            if not table.id.startswith(f"{folder.name}-"):
                raise UserError(f"{module}: expected an id that begins with {folder.name}-, found {table.id}")
            benchmarks[table.id] = table
    return benchmarks


def _may_define(module: Path, names: re.Pattern[str] = _TABLES) -> bool:
    """Whether a module may define one of some names, by its text; whether it does, its attributes say."""
    return names.search(module.read_text(encoding="utf-8")) is not None


def _defined(module: ModuleType, file: Path) -> tuple[Benchmark, ...]:
    """The benchmarks that a module defines, one as BENCHMARK or several as BENCHMARKS; UserError if one is not one."""
    benchmarks = (*([module.BENCHMARK] if hasattr(module, "BENCHMARK") else []), *getattr(module, "BENCHMARKS", ()))
    for table in benchmarks:
        if not isinstance(table, Benchmark):
            raise UserError(f"{file}: expected BENCHMARK to be a Benchmark, found {type(table).__name__}")
    return benchmarks


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
    from benchmarks.encoders.files import depth  # loads numpy

    name = backbone_name(requested)
    layers, data = depth(requested), scale.material.partition(",")[0]
    material = f"{data}, {name} ({layers} layers)"
    return replace(scale, backbone=name, depth=layers, material=material, changes=(*scale.changes, f"on {name}"))


def rows_of(table: Benchmark, ids: Sequence[str], scale: Scale | None = None) -> list[Row]:
    """The rows of those ids, or all; with a scale, those that exist at it.

    A row without training stands for the row whose answers it corrects.
    """
    rows = {row.id: table.row(row.corrects or row.id) for row in (*table.rows, *table.without_training)}
    named = {row.id: row for row in _named("method", rows, ids, scale)}
    return list(named.values()) or list(table.rows if scale is None else table.rows_at(scale))


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
