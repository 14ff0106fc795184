"""Changes to fields of a run's configuration, from rows, sweeps and --set."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from benchmarks.errors import UserError, did_you_mean
from benchmarks.run_config import JSON, RunConfig, canonical_json

FIXED = frozenset({"scale", "task", "task_version", "source", "backbone", "engine_version"})  # of the table or the code
_OPTIONS = re.compile(r"(initial\.)*options")  # of a run, or of an earlier run


@dataclasses.dataclass(frozen=True)
class ByScale:
    """A value per scale. at: scale -> value; other scales take `otherwise`."""

    at: Mapping[str, JSON]
    otherwise: JSON

    def of(self, scale: str) -> JSON:
        return self.at.get(scale, self.otherwise)

    def __str__(self) -> str:
        return f"{self.otherwise} ({', '.join(f'{value} at {scale}' for scale, value in self.at.items())})"


@dataclasses.dataclass(frozen=True)
class LayerUnit:
    """The unit of an option that counts layers: tables count the paper's layers, runs those of their encoder.

    Conversion to another encoder keeps the share of its depth.
    """

    name: str  # such as "critical layer"
    of: int  # layers of the paper's encoder
    symbol: str = "c"
    least: int = 0  # the smallest value, in both units

    def in_cell(self, value: JSON, task: str, depth: int) -> JSON:
        """A number or list in the encoder's layers; a mapping has one per task. UserError for an invalid value."""
        layer = value[task] if isinstance(value, Mapping) and task in value else value
        if isinstance(layer, list | tuple):
            return [self.in_cell(each, task, depth) for each in layer]
        if not isinstance(layer, int) or isinstance(layer, bool) or not self.least <= layer <= self.of:
            raise UserError(
                f"{self.name} {layer!r}: expected {self.least} to {self.of}, as the paper's model has {self.of} layers"
            )
        return max(self.least, (2 * layer * depth + self.of) // (2 * self.of))  # nearest, halves round up

    def shown(self, value: JSON, depth: int | None = None) -> str:
        """Both units, "c = 6 of 12 (3 of 6 layers)"; one unit if the encoder is as deep as the paper's."""
        if isinstance(value, Mapping):
            return f"{self.symbol} of {self.of} by task: " + ", ".join(f"{task} {c}" for task, c in value.items())
        paper = f"{self.symbol} = {_listed(value)} of {self.of}"
        if depth is None or depth == self.of:
            return paper
        return f"{paper} ({_listed(self.in_cell(value, '', depth))} of {depth} layers)"


def _listed(value: JSON) -> str:
    return ", ".join(str(each) for each in value) if isinstance(value, list | tuple) else str(value)


def is_within(name: str, group: str) -> bool:
    """Whether a field is another one or inside it, as "training.rounds" is within "training"."""
    return f"{name}.".startswith(f"{group}.")


def expanded(changes: Iterable[tuple[str, JSON]]) -> list[tuple[str, JSON]]:
    """The changes with {"options": {…}} and {"initial.options": {…}} split into one change per option."""
    single: list[tuple[str, JSON]] = []
    for name, value in changes:
        if _OPTIONS.fullmatch(name) and isinstance(value, Mapping):
            single += [(name, {}), *((f"{name}.{key}", inner) for key, inner in value.items())]
        else:
            single.append((name, value))
    return single


def options_in(changes: Mapping[str, JSON]) -> dict[str, JSON]:
    """The options that changes set."""
    options: dict[str, JSON] = {}
    for name, value in expanded(changes.items()):
        if name == "options":
            options = {}
        elif name.startswith("options."):
            options = with_option(options, name.removeprefix("options."), value)
    return options


def with_option(options: Mapping[str, JSON], name: str, value: JSON, group: str = "options") -> dict[str, JSON]:
    """The options with one option set; "server.learning_rate" sets it inside its group."""
    key, _, inner = name.partition(".")
    if not inner:
        return {**options, key: value}
    current = options.get(key, {})
    if not isinstance(current, Mapping):
        raise UserError(f"--set {group}: {name}: expected a group of options at {key}, found {current!r}")
    return {**options, key: with_option(current, inner, value, group)}


def with_changes(config: RunConfig, changes: Iterable[tuple[str, JSON]]) -> RunConfig:
    """The configuration with each field set; UserError for an unknown field or invalid value."""
    try:
        return cast(RunConfig, _changed(config, [(name, value, name) for name, value in changes]))
    except KeyError as unknown:
        name, names = unknown.args[0], changeable(config)
        expected = f"expected one of {', '.join(names)}.{did_you_mean(name, names)}"
        raise UserError(f"--set {name}: unknown field; {expected}") from None


def _changed(group: Any, changes: Iterable[tuple[str, JSON, str]]) -> Any:
    """Set fields of a strict dataclass, in order; the result is built and checked once.

    Args:
        group: The strict dataclass.
        changes: A field's path in the group, its value, and its whole path.

    Raises:
        KeyError: A field is unknown; the argument is its whole path.
    """
    before = {name: getattr(group, name) for name in group.__dataclass_fields__}
    values: dict[str, Any] = {}
    inside: dict[str, list[tuple[str, JSON, str]]] = {}  # changes of a nested dataclass
    names: dict[str, str] = {}
    for path, value, name in changes:
        key, dot, inner = path.partition(".")
        if key not in before or key in FIXED:
            raise KeyError(name)
        names[key] = name
        current = values.get(key, before[key])
        if dot and isinstance(current, Mapping) and inner:
            values[key] = with_option(current, inner, value, key)
        elif dot and dataclasses.is_dataclass(current):
            inside.setdefault(key, []).append((inner, value, name))
        elif dot and key == "initial":
            raise UserError(
                f"--set {name}: expected a cell with {key}, whose fields can be changed, found one without it: "
                f"choose rows that have it (--methods)"
            )
        elif dot or key == "training":
            raise KeyError(name)
        else:
            values[key] = value
            inside.pop(key, None)
    for key, ones in inside.items():
        values[key] = _changed(values.get(key, before[key]), ones)
    if not values:
        return group
    try:
        return type(group)(**(before | values))  # `dataclasses.replace` takes three times as long
    except ValueError as error:
        place, _, problem = str(error).partition(": ")
        raise UserError(f"--set {names.get(place.partition('.')[0], place)}: {problem}") from None


def check_partition(config: RunConfig, names: Iterable[str]) -> None:
    """UserError if no scheme reads a partition in which one of these fields was set."""
    for name in names:
        place, is_partition, _ = f"{name}.".partition("partition.")
        if not is_partition or place.replace("initial.", ""):
            continue
        from partitions import PartitionError, from_description  # loads NumPy

        try:
            from_description(field_value(config, f"{place}partition"))
        except PartitionError as error:
            problem = str(error).removeprefix(f"{name.rpartition('.')[2]}: ")
            raise UserError(f"--set {name}: {problem}") from None


def field_value(config: Any, name: str) -> JSON:
    """The value of a field of `with_changes`; KeyError for an unknown field."""
    value = config
    for key in name.split("."):
        value = vars(value)[key] if dataclasses.is_dataclass(value) else (value or {})[key]
    return value


def changeable(config: Any, prefix: str = "") -> list[str]:
    """The names of all fields that can be changed."""
    names: list[str] = []
    for field in dataclasses.fields(config):
        value, name = getattr(config, field.name), f"{prefix}{field.name}"
        if dataclasses.is_dataclass(value):
            names += changeable(value, f"{name}.")
        elif field.name not in FIXED:
            names.append(f"{name}.<name>" if field.name == "options" else name)
    return names


def read_assignment(assignment: str) -> tuple[str, JSON]:
    """Field and value of --set's "field=value"; UserError if it is malformed."""
    name, equals, text = assignment.partition("=")
    if not equals or not name:
        raise UserError(f"--set {assignment}: expected field=value, such as training.learning_rate=3e-5")
    return name, read_value("--set", name, text)


def read_value(flag: str, name: str, text: str) -> JSON:
    """A value from the command line: JSON, or the text itself; UserError if it is not finite."""
    value = parsed(text, text)
    try:
        canonical_json(value)
    except ValueError:
        raise UserError(f"{flag} {name}: expected a finite number, found {text}") from None
    return value


def parsed(text: str, otherwise: JSON) -> JSON:
    """A text from the command line as JSON, or `otherwise` if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise
