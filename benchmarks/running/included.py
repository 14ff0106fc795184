"""Modules from files outside the checkout, and the tasks and methods that they add."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from benchmarks.errors import UserError

_PREFIX = "included_"  # of the names of imported modules
_ANY = re.compile(r"^(BENCHMARKS?|TASKS|METHODS)\b[^=\n]*=", re.M)
_FILES: dict[tuple[str, str], Path] = {}  # ("BENCHMARK", "TASKS" or "METHODS", name) -> the module that defines it
_LOADED: set[Path] = set()  # folders
_ON_PATH: list[str] = []  # folders whose modules can import each other, the current one first
_CODE: dict[str, Mapping[str, str]] = {}  # method -> its files, by name, as they were imported


def load_folder(folder: Path) -> Mapping[Path, ModuleType]:
    """Import a folder's modules and add their tasks and methods; returns the modules by file.

    UserError if there is no such folder, a module cannot be imported, a value has the wrong type, or a name is taken.
    """
    if folder.is_file():
        raise UserError(f"--include {folder}: expected a folder, found a file; give its folder, {folder.parent}")
    if not folder.is_dir():
        raise UserError(f"--include {folder}: expected a folder, found no such folder; correct the path")
    _LOADED.add(folder.resolve())
    modules = modules_in(folder)
    for file, module in modules.items():
        for task in _listed(module, "TASKS", file):
            _add_task(task, file)
        for method in _listed(module, "METHODS", file):
            _add_method(method, file)
    return modules


def load_once(folders: Iterable[Path]) -> None:
    """Load each folder that this process has not loaded yet."""
    for folder in folders:
        if folder.resolve() not in _LOADED:
            load_folder(folder)


def load_file(file: Path) -> Sequence[FunctionType]:
    """Add and return the methods in one file; UserError if it defines none."""
    if not file.is_file():
        raise UserError(f"{file}: expected a Python file that defines METHODS, found no file")
    _enter(file.resolve().parent)
    methods = _listed(_imported(file.resolve()), "METHODS", file)
    if not methods:
        raise UserError(f"{file}: expected METHODS = (your_method,), a tuple of functions, found none")
    for method in methods:
        _add_method(method, file.resolve())
    return methods


def modules_in(folder: Path) -> dict[Path, ModuleType]:
    """A folder's modules that define tables, tasks or methods, by file."""
    _enter(folder.resolve())
    files = (file.resolve() for file in sorted(folder.glob("*.py")))
    return {file: _imported(file) for file in files if _ANY.search(_text(file))}


def code_of(method: str) -> Mapping[str, str]:
    """A method's source: its file's name -> content, with the files that it imports from its folder.

    Empty for the project's methods, which have versions.
    """
    return _CODE.get(method, {})


def place_in(folder: Path, error: BaseException) -> str:
    """The last line of a folder's modules that an error passed, such as "mine.py, line 31"; "" if it passed none."""
    lines = [each for each in traceback.extract_tb(error.__traceback__) if Path(each.filename).parent == folder]
    return f"{Path(lines[-1].filename).name}, line {lines[-1].lineno}" if lines else ""


def reserve(kind: str, name: str, file: Path, names: Collection[str]) -> None:
    """Record which module defines a name; UserError if the name is one of `names` by another module."""
    if name in names and _FILES.get((kind, name)) != file:
        raise UserError(f"{file}: {kind}: expected a new id, found {name}, which is defined elsewhere; rename it")
    _FILES[kind, name] = file


def _enter(folder: Path) -> None:
    """Let this folder's modules import each other: before other folders' modules, and again if they were edited."""
    if str(folder) not in sys.path or str(folder) in _ON_PATH:
        sys.path[:] = [each for each in sys.path if each not in _ON_PATH]
        _ON_PATH[:] = [str(folder), *(each for each in _ON_PATH if each != str(folder))]
        sys.path += _ON_PATH
    for name, module in list(sys.modules.items()):
        is_other = "." in name or name == "__main__" or name.startswith(_PREFIX)
        if not is_other and str(Path(getattr(module, "__file__", None) or "").parent) in {str(folder), *_ON_PATH}:
            del sys.modules[name]


def _listed(module: ModuleType, name: str, file: Path) -> Sequence[Any]:
    """The module's METHODS or TASKS; () if it has none."""
    listed = getattr(module, name, ())
    if not isinstance(listed, tuple | list):
        found = f"found {type(listed).__name__}; a tuple of one ends in a comma"
        raise UserError(f"{file}: expected {name} to be a tuple, such as (yours,), {found}")
    return listed


def _source(file: Path) -> dict[str, str]:
    """A module's source by file name, with the modules that it imports from its folder.

    UserError if Python has imported another file under the name of one of them.
    """
    folder, sources, files = file.parent, dict[str, str](), [file]
    while files:
        text = _text(path := files.pop())
        module = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        used = getattr(sys.modules.get(module), "__file__", None)
        if path != file and used and Path(used).resolve() != path.resolve():
            raise UserError(f"{path}: expected to be imported as {module}, found {used}; rename the file")
        sources[str(path.relative_to(folder))] = text
        imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {str(getattr(node, "module", None) or alias.name) for node in imports for alias in node.names}
        for name in sorted({name.partition(".")[0] for name in names}):
            imported = [folder / f"{name}.py", *sorted((folder / name).rglob("*.py"))]
            files += [each for each in imported if each.is_file() and str(each.relative_to(folder)) not in sources]
    return sources


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"{file}, line {line}: expected UTF-8, found other bytes; save the file as UTF-8") from None


def _imported(module: Path) -> ModuleType:
    folder = hashlib.sha256(str(module.parent).encode()).hexdigest()[:8]  # two folders may have modules of one name
    spec = importlib.util.spec_from_file_location(f"{_PREFIX}{folder}_{module.stem}", module)
    if spec is None or spec.loader is None:
        raise UserError(f"{module}: expected a Python file, found another kind of file; its name must end in .py")
    loaded = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    try:
        spec.loader.exec_module(loaded)
    except Exception as error:
        del sys.modules[spec.name]
        raise UserError(f"{module}: cannot be imported ({type(error).__name__}: {error}); fix the module") from error
    _source(module)  # refuses another folder's modules in a table, too
    return loaded


def _add_task(new: object, file: Path) -> None:
    from benchmarks.tasks import Task, add_task, tasks  # loads numpy

    if not isinstance(new, Task):
        raise UserError(f"{file}: expected TASKS to be a tuple of Task, found {type(new).__name__} in it")
    reserve("TASKS", new.id, file, [each.id for each in tasks()])
    add_task(new)


def _add_method(new: object, file: Path) -> None:
    if not isinstance(new, FunctionType):
        raise UserError(f"{file}: expected METHODS to be a tuple of functions, found {type(new).__name__} in it")
    if new.__name__ == "<lambda>":
        raise UserError(f"{file}: expected METHODS to be a tuple of functions with names, found a lambda; use def")
    from fedsim.algorithms import add_method, algorithm_names  # loads torch

    reserve("METHODS", new.__name__, file, algorithm_names())
    add_method(_checked(new, file))
    _CODE[new.__name__] = _source(file)


def _checked(method: Callable[..., object], file: Path) -> Callable[..., Any]:
    """A user's method, whose failures and wrong values are UserErrors."""
    from fedsim.engine import FederatedAlgorithm
    from fedsim.errors import FederationError

    @wraps(method)
    def build(*args: Any, **options: Any) -> FederatedAlgorithm:
        try:
            built = method(*args, **options)
        except (UserError, FederationError, OSError):
            raise
        except Exception as error:
            where = place_in(file.parent, error) or file.name
            kind = type(error).__name__
            raise UserError(f"{where}: {kind}: {error}; fix the method or its options") from error
        if not isinstance(built, FederatedAlgorithm):
            name = "None" if built is None else type(built).__name__
            expected = f"expected {method.__name__} to return a FederatedAlgorithm"
            raise UserError(f"{file.name}: {expected}, found {name}; return averaging(…)")
        return built

    return build
