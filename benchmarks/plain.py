"""Dataclasses as plain JSON values and back, and the digest that identifies a value."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

T = TypeVar("T")
JSON = Any
# The metadata of a field that cells got later: at its default it is left out of what identifies a cell, which is then
# still the cell that it was.
LATER = {"later": True}

_SCALARS = (str, int, float)


def canonical_json(value: JSON) -> str:
    """One text for one value: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: JSON, length: int = 16) -> str:
    """Hexadecimal SHA-256 of the canonical JSON, cut to `length` digits."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:length]


def plain(value: JSON, omit: Collection[str] = ()) -> JSON:
    """A value with dataclasses as dicts, those without LATER fields that have their default.

    omit: names that are left out, in nested groups too.
    """
    if value is None or isinstance(value, _SCALARS):  # first, as most are: every record is asked for its identity
        return value
    if isinstance(value, Mapping):
        return {key: plain(inner, omit) for key, inner in value.items() if key not in omit}
    if isinstance(value, list | tuple):
        return [plain(inner, omit) for inner in value]
    if not dataclasses.is_dataclass(value):
        return value
    said, kind = {}, value.__class__
    for name, unsaid in _fields_of(kind):
        own = getattr(value, name)
        if name not in omit and own != unsaid:
            said[name] = plain(own, omit)
    return said


_SAID = object()  # equals no value


@cache
def _fields_of(kind: type) -> tuple[tuple[str, JSON], ...]:
    """A dataclass's fields, each with the value at which it is left out."""
    return tuple(
        (field.name, _default(field) if field.metadata == LATER else _SAID) for field in dataclasses.fields(kind)
    )


def _default(field: dataclasses.Field[JSON]) -> JSON:
    """What a dataclass's field has where nothing is said."""
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


_HINTS: dict[type, Mapping[str, Any]] = {}


def hints_of(kind: type) -> Mapping[str, Any]:
    """The types of a dataclass's fields; asked once, as that compiles every annotation."""
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    return _HINTS[kind]


def built(kind: type[T], value: Mapping[str, JSON]) -> T:
    """The dataclass that `plain` wrote, and those in its fields; TypeError where it is not one."""
    fields = dict(value)
    for name, hint in hints_of(kind).items():
        for inner in (hint, *get_args(hint)):  # "Training", or "Cell | None"
            if isinstance(inner, type) and dataclasses.is_dataclass(inner) and isinstance(fields.get(name), Mapping):
                fields[name] = built(inner, fields[name])
    return kind(**fields)
