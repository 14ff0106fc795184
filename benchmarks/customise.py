"""A user's changes to a benchmark: another backbone, other settings. Changed cells are cells of their own."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.backbones import backbone_name, depth
from benchmarks.errors import UserError
from benchmarks.spec import JSON, Benchmark, Cell, Column, Row, Scale, Training, canonical_json

_NUMBER = (int, float)


def with_backbone(scale: Scale, requested: str | None) -> Scale:
    """The scale on another encoder, labelled so."""
    if requested is None or backbone_name(requested) == scale.backbone:
        return scale
    name = backbone_name(requested)
    return dataclasses.replace(
        scale, backbone=name, depth=depth(requested), label=f"{scale.label}; on {name}", changed=True
    )


def with_settings(benchmark: Benchmark, assignments: Sequence[str]) -> Benchmark:
    """The benchmark with "field=value" applied to every cell; its scales are labelled with the changes."""
    if not assignments:
        return benchmark
    changes = [_parse(assignment) for assignment in assignments]

    def cell(row: Row, column: Column, scale: Scale, seed: int) -> Cell:
        return with_changes(benchmark.cell(row, column, scale, seed), changes)

    scales = tuple(
        dataclasses.replace(scale, label=f"{scale.label}; changed: {', '.join(assignments)}", changed=True)
        for scale in benchmark.scales
    )
    return dataclasses.replace(benchmark, cell=cell, scales=scales)


def with_changes(cell: Cell, changes: Iterable[tuple[str, JSON]]) -> Cell:
    """The cell with each field set to its value; UserError where there is no such field or the type is another."""
    for name, value in changes:
        cell = _changed(cell, name, value)
    return cell


def with_option(options: Mapping[str, JSON], name: str, value: JSON) -> dict[str, JSON]:
    """The options with one set, "server.learning_rate" inside its group, which is made where it is missing."""
    key, _, inner = name.partition(".")
    if not inner:
        return {**options, key: value}
    group = options.get(key, {})
    if not isinstance(group, Mapping):
        raise UserError(f"--set options: {name}: expected a group of options at {key}, found {group!r}")
    return {**options, key: with_option(group, inner, value)}


def field_value(cell: Cell, name: str) -> JSON:
    """What a cell has at a field of `with_changes`; KeyError where it has none."""
    value = cell.to_json()
    for key in name.split("."):
        value = value[key]
    return value


def _parse(assignment: str) -> tuple[str, JSON]:
    name, equals, text = assignment.partition("=")
    if not equals or not name:
        raise UserError(f"--set {assignment}: expected field=value, such as training.learning_rate=3e-5")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    try:
        canonical_json(value)
    except ValueError:
        raise UserError(f"--set {name}: expected a finite number, found {text}") from None
    return name, value


def _changed(cell: Cell, name: str, value: JSON) -> Cell:
    group, _, key = name.partition(".")
    if group == "options" and key:
        return dataclasses.replace(cell, options=with_option(cell.options, key, value))
    if group == "training" and key in _fields(Training):
        expected = getattr(cell.training, key)
        return dataclasses.replace(
            cell, training=dataclasses.replace(cell.training, **{key: _typed(name, value, expected)})
        )
    if name in _fields(Cell) and name not in ("training", "options", "task", "scale", "backbone", "source"):
        return dataclasses.replace(cell, **{name: _typed(name, value, getattr(cell, name))})
    known = [f"training.{field}" for field in _fields(Training)] + ["options.<name>", "codec", "clients", "partition"]
    raise UserError(f"--set {name}: unknown field; expected one of {', '.join([*known, 'test_share', 'holdout'])}")


def _typed(name: str, value: JSON, expected: JSON) -> JSON:
    """The value in the type of what it replaces; a whole number may stand for a float, never the reverse."""
    if isinstance(expected, float) and isinstance(value, _NUMBER) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(expected):
        raise UserError(f"--set {name}: expected {type(expected).__name__} such as {expected!r}, found {value!r}")
    return value


def _fields(kind: type) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]
