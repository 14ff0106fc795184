"""Answers that are computed once for an object and kept with it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


def once(method: Method) -> Method:
    """Keep the answers with the first argument, which may be frozen: a method's object, or a record."""

    @wraps(method)
    def answer(self: Any, *arguments: Any) -> Any:
        answers = self.__dict__.setdefault(f"_{method.__name__}_answers", {})
        if arguments not in answers:
            answers[arguments] = method(self, *arguments)
        return answers[arguments]

    return cast("Method", answer)
