"""Frozen dataclasses with pydantic's strict types and limits, and one plain sentence as error message."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from functools import cache, wraps
from typing import Any, TypeVar, cast, dataclass_transform

import pydantic.dataclasses
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

T = TypeVar("T")
EXPECTED = {  # pydantic's error type -> the expected value; {…}: pydantic's limit
    "missing": "a value",
    "dict_type": "a group of fields",
    "dataclass_type": "a group of fields",
    "dataclass_exact_type": "a group of fields",
    "string_pattern_mismatch": "a text like {pattern}",
    "greater_than": "a number above {gt:g}",
    "greater_than_equal": "a number of at least {ge:g}",
    "less_than": "a number below {lt:g}",
    "less_than_equal": "a number of at most {le:g}",
}
UNKNOWN = "unexpected_keyword_argument"  # pydantic's error type
LONGEST = 80  # characters of an invalid value shown in a message


class UnknownFieldError(ValueError):
    """A JSON value fits a strict dataclass but for fields that it lacks; names: their paths."""

    def __init__(self, message: str, names: list[str]) -> None:
        super().__init__(message)
        self.names = names


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, Field))
def strict(error: type[Exception]) -> Callable[[type[T]], type[T]]:
    """Make a frozen dataclass that checks its fields at construction, also by `dataclasses.replace`.

    An integer is accepted for a float; no other type is converted. NaN and infinities are rejected.

    Args:
        error: The exception for an invalid field, raised with one sentence.
    """

    def decorate(kind: type[T]) -> type[T]:
        config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
        made: Any = pydantic.dataclasses.dataclass(frozen=True, config=config)(kind)
        check = made.__init__

        @wraps(check)
        def init(self: Any, *values: Any, **fields: Any) -> None:
            try:
                check(self, *values, **fields)
            except ValidationError as wrong:
                raise error(first_problem(wrong, made)) from None

        made.__init__ = init
        return cast(type[T], made)

    return decorate


def later(default: Any, **limits: Any) -> Any:
    """A field added later: `to_plain` omits it at its default, so that existing ids stay the same."""
    return Field(default=default, exclude_if=lambda value: value == default, **limits)


def first_problem(wrong: ValidationError, kind: type) -> str:
    """The first validation error as one sentence: field, expected value and found value."""
    problem = wrong.errors(include_url=False)[0]
    names = [field.name for field in dataclasses.fields(kind)]
    first, *rest = problem["loc"] or ("the whole",)
    place = _path((names[first] if isinstance(first, int) else first, *rest))
    if problem["type"] == UNKNOWN:
        known = "" if rest else f"expected one of {', '.join(names)}, "
        return f"{place}: {known}found an unknown field"
    default = problem["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    if problem["type"] == "value_error" and "expected" in default:  # the message from a field's validator
        return f"{place}: {default}" if problem["loc"] else default
    expected = EXPECTED.get(problem["type"], default).format(**problem.get("ctx", {}))
    given = problem["input"]
    value = json.dumps(given, default=repr, skipkeys=True) if isinstance(given, dict | list | tuple) else repr(given)
    shown = value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
    return f"{place}: expected {expected}, found {'nothing' if problem['type'] == 'missing' else shown}"


def _path(keys: Iterable[int | str]) -> str:
    return ".".join(map(str, keys))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def to_plain(value: Any) -> Any:
    """A strict dataclass as plain JSON values, without `later` fields at their default."""
    return _adapter(cast(Any, type(value))).dump_python(value, mode="json")


def from_json(kind: type[T], text: str | bytes) -> T:
    """Parse a strict dataclass from JSON.

    Raises ValueError with one sentence if the text does not fit; UnknownFieldError if it only has unknown fields.
    """
    try:
        return cast(T, _adapter(cast(Any, kind)).validate_json(text))
    except ValidationError as wrong:
        problems, message = wrong.errors(include_url=False), first_problem(wrong, kind)
        if all(problem["type"] == UNKNOWN for problem in problems):
            raise UnknownFieldError(message, [_path(problem["loc"]) for problem in problems]) from None
        raise ValueError(message) from None
