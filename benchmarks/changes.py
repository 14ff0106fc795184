"""Changes to a cell's fields, the same for a table's rows, for a sweep's values and for a user's --set. Pure data."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from benchmarks.errors import UserError

T = TypeVar("T")
JSON = Any
# The options of a cell, or of one from which it begins.
_OPTIONS = re.compile(r"(initial\.)*options")
FIXED = {"fixed": True}  # the metadata of a field that makes the cell one of its table: no change reaches it


@dataclasses.dataclass(frozen=True)
class ByScale:
    """A change that is another one at some scales. at: scale -> value, elsewhere `otherwise`."""

    at: Mapping[str, JSON]
    otherwise: JSON

    def of(self, scale: str) -> JSON:
        """The value at a scale."""
        return self.at.get(scale, self.otherwise)

    def __str__(self) -> str:
        return f"{self.otherwise} ({', '.join(f'{value} at {scale}' for scale, value in self.at.items())})"


@dataclasses.dataclass(frozen=True)
class ByTask:
    """A change that is another one for each task. at: task -> value."""

    at: Mapping[str, JSON]

    def of(self, task: str) -> JSON:
        """The value for a task; KeyError where it has none."""
        return self.at[task]

    def __str__(self) -> str:
        return "by task"


@dataclasses.dataclass(frozen=True)
class LayerUnit:
    """The unit of an option that counts encoder layers: the paper's for who writes it, the encoder's own for a cell.

    of: layers of the paper's encoder. In another one a layer is taken at the same share of the depth.
    least: the fewest there may be, in either unit.
    """

    name: str  # "critical layer"
    of: int
    symbol: str = "c"
    least: int = 0

    def in_cell(self, value: JSON, task: str, depth: int) -> JSON:
        """The value, or what a dict has for the task, in the encoder's own layers, each of a list by itself.

        UserError where it is no layer.
        """
        layer = value[task] if isinstance(value, Mapping) and task in value else value
        if isinstance(layer, list | tuple):
            return [self.in_cell(each, task, depth) for each in layer]
        if not isinstance(layer, int) or isinstance(layer, bool) or not self.least <= layer <= self.of:
            raise UserError(
                f"{self.name} {layer!r}: expected {self.least} to {self.of}, of the paper's {self.of} layers"
            )
        return max(self.least, (2 * layer * depth + self.of) // (2 * self.of))  # nearest, a half goes up

    def shown(self, value: JSON, depth: int | None = None) -> str:
        """Both units in words: "c = 6 of 12 (3 of 6 layers)"; the paper's alone where the encoder has as many."""
        if isinstance(value, Mapping):
            return f"{self.symbol} of {self.of} by task: " + ", ".join(f"{task} {c}" for task, c in value.items())
        own = "" if depth in (None, self.of) else f" ({_listed(self.in_cell(value, '', depth or 0))} of {depth} layers)"
        return f"{self.symbol} = {_listed(value)} of {self.of}{own}"


def _listed(value: JSON) -> str:
    return ", ".join(str(each) for each in value) if isinstance(value, list | tuple) else str(value)


def expanded(changes: Iterable[tuple[str, JSON]]) -> list[tuple[str, JSON]]:
    """The changes with all options at once, {"options": {...}} or {"initial.options": {...}}, as those of each."""
    found: list[tuple[str, JSON]] = []
    for name, value in changes:
        if _OPTIONS.fullmatch(name) and isinstance(value, Mapping):
            found += [(name, {}), *((f"{name}.{key}", inner) for key, inner in value.items())]
        else:
            found.append((name, value))
    return found


def options_in(changes: Mapping[str, JSON], group: str = "options") -> dict[str, JSON]:
    """The options that changes set, as a cell has them. group: "initial.options" for those of the cell before."""
    options: dict[str, JSON] = {}
    for name, value in expanded(changes.items()):
        if name == group:
            options = {}
        elif name.startswith(f"{group}."):
            options = with_option(options, name.removeprefix(f"{group}."), value, group)
    return options


def with_changes(cell: T, changes: Iterable[tuple[str, JSON]]) -> T:
    """The cell with each field set to its value; UserError where there is no such field or the type is another."""
    for name, value in changes:
        cell = _changed(cell, name, name, value, cell)
    return cell


def with_option(options: Mapping[str, JSON], name: str, value: JSON, group: str = "options") -> dict[str, JSON]:
    """The options with one set, "server.learning_rate" inside its group, which is made where it is missing."""
    key, _, inner = name.partition(".")
    if not inner:
        return {**options, key: value}
    found = options.get(key, {})
    if not isinstance(found, Mapping):
        raise UserError(f"--set {group}: {name}: expected a group of options at {key}, found {found!r}")
    return {**options, key: with_option(found, inner, value, group)}


def field_value(cell: Any, name: str) -> JSON:
    """What a cell has at a field of `with_changes`; KeyError where it has none."""
    value = cell
    for key in name.split("."):
        value = vars(value)[key] if dataclasses.is_dataclass(value) else (value or {})[key]
    return value


_HINTS: dict[type, dict[str, Any]] = {}  # read once, as tables make thousands of cells


def _hints(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields."""
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    return _HINTS[kind]


def _changed(target: Any, path: str, name: str, value: JSON, cell: Any) -> Any:
    """A dataclass with the field at a path changed. name: the whole path, from the cell on, for messages."""
    key, dot, inner = path.partition(".")
    if key in {field.name for field in dataclasses.fields(target) if not field.metadata.get("fixed")}:
        current, hint = getattr(target, key), _hints(type(target))[key]
        if inner and current is None and any(dataclasses.is_dataclass(kind) for kind in get_args(hint)):
            raise UserError(
                f"--set {name}: expected a cell with {key}, whose fields can be changed, found one without it: "
                f"choose rows that have it (--methods)"
            )
        if inner and dataclasses.is_dataclass(current):
            return dataclasses.replace(target, **{key: _changed(current, inner, name, value, cell)})
        if inner and isinstance(current, Mapping):
            return dataclasses.replace(target, **{key: with_option(current, inner, value, key)})
        whole = isinstance(value, Mapping) if key == "options" else not dataclasses.is_dataclass(current)
        if not dot and (whole or type(value) is type(current) or (value is None and NoneType in get_args(hint))):
            return dataclasses.replace(target, **{key: _typed(name, value, hint, current)})
    raise UserError(f"--set {name}: unknown field; expected one of {', '.join(changeable(cell))}")


def changeable(target: Any, prefix: str = "") -> list[str]:
    """The names of all fields that can be changed."""
    names: list[str] = []
    for field in dataclasses.fields(target):
        value = getattr(target, field.name)
        if field.metadata.get("fixed"):
            continue
        if dataclasses.is_dataclass(value):
            names += changeable(value, f"{prefix}{field.name}.")
        else:
            names.append(f"{prefix}{field.name}" + (".<name>" if field.name == "options" else ""))
    return names


def _typed(name: str, value: JSON, hint: Any, current: JSON) -> JSON:
    """The value in a field's type; a whole number may stand for a float, never the reverse."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for kind in (get_origin(kind) or kind for kind in kinds):
        if kind is float and type(value) in (int, float):
            return float(value)
        if kind is Any or type(value) is kind or (kind is Mapping and isinstance(value, Mapping)):
            return value
    expected = " or ".join("null" if kind is NoneType else getattr(kind, "__name__", str(kind)) for kind in kinds)
    expected = expected.replace("Mapping", "dict")
    raise UserError(f"--set {name}: expected {expected} such as {current!r}, found {value!r}")
