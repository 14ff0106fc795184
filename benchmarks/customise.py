"""A user's changes to a benchmark: another backbone, other settings. Changed cells are cells of their own."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

from benchmarks.backbones import backbone_name, depth
from benchmarks.errors import UserError
from benchmarks.spec import JSON, Benchmark, Scale, canonical_json

DEEPEST = 20  # lists or groups in each other: no field has as many


def with_backbone(scale: Scale, requested: str | None) -> Scale:
    """The scale on another encoder, labelled so."""
    if requested is None or backbone_name(requested) == scale.backbone:
        return scale
    name = backbone_name(requested)
    return dataclasses.replace(scale, backbone=name, depth=depth(requested), changes=(*scale.changes, f"on {name}"))


def with_settings(benchmark: Benchmark, assignments: Sequence[str]) -> Benchmark:
    """The benchmark with "field=value" applied to every cell; its scales are labelled with the changes."""
    if not assignments:
        return benchmark
    changes = [_parse(assignment) for assignment in assignments]

    def label(scale: Scale) -> str:
        written = zip(assignments, changes, strict=True)
        return ", ".join(
            f"{text} ({benchmark.shown(*change, scale)})" if change[0] in benchmark.units else text
            for text, change in written
        )

    scales = tuple(
        dataclasses.replace(scale, changes=(*scale.changes, f"changed: {label(scale)}")) for scale in benchmark.scales
    )
    return dataclasses.replace(benchmark, overrides=(*benchmark.overrides, *changes), scales=scales)


def _parse(assignment: str) -> tuple[str, JSON]:
    name, equals, text = assignment.partition("=")
    if not equals or not name:
        raise UserError(f"--set {assignment}: expected field=value, such as training.learning_rate=3e-5")
    return name, read_value("--set", name, text)


def read_value(flag: str, name: str, text: str) -> JSON:
    """A field's value as it is written on the command line: JSON, or else the text itself; UserError if not finite."""
    value = parsed(flag, name, text, text)
    try:
        canonical_json(value)
    except ValueError:
        raise UserError(f"{flag} {name}: expected a finite number, found {text}") from None
    return value


def parsed(flag: str, name: str, text: str, otherwise: JSON) -> JSON:
    """What a text on the command line says in JSON, or something else where it is none."""
    try:
        value = json.loads(text)
        if _depth(value) <= DEEPEST:
            return value
    except ValueError:
        return otherwise
    except RecursionError:
        pass
    raise UserError(f"{flag} {name}: expected at most {DEEPEST} lists or groups in each other, found more")


def _depth(value: JSON) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_depth, inner), default=0)
