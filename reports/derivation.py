"""Derivations: how a number follows from printed ones, as arithmetic that is computed and never typed in."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

_NAME = re.compile(r"\{([^{}]+)\}")
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def names(derivation: str) -> tuple[str, ...]:
    """The rows whose values a derivation uses, which stand in braces."""
    return tuple(dict.fromkeys(_NAME.findall(derivation)))


def evaluate(derivation: str, values: Mapping[str, float]) -> float:
    """The number that a derivation gives: sums, differences, products and quotients of numbers and named values.

    ValueError where it is anything else.
    """
    text = _NAME.sub(lambda found: f"({values[found[1]]!r})", derivation)
    try:
        return _value(ast.parse(text, mode="eval").body)
    except (SyntaxError, TypeError, ZeroDivisionError) as error:
        raise ValueError(f"expected arithmetic over numbers and {{rows}}, found {derivation!r} ({error})") from None


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_value(left), _value(right))
    raise TypeError("neither a number nor one of + - * /")
