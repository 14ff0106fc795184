"""Arithmetic of audits: operators, comparisons and a few named functions, over decimals and series of them."""

from __future__ import annotations

import ast
import math
import operator
import statistics
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import reduce
from itertools import pairwise

from reports.evidence.published import places_of
from reports.evidence.statistics import welch_test

Key = tuple[str, str, str]  # table, row, place: "column" or "column/score"
Operator = Callable[[Decimal, Decimal], Decimal]
Aggregate = Callable[[tuple[Decimal, ...]], Decimal | int]
Series = dict[Key, Decimal]  # several numbers, each with its table, row and place
Value = Decimal | Series


def listed(numbers: Iterable[Decimal]) -> Series:
    """Numbers without a table, in their order."""
    return {("", "", str(place)): number for place, number in enumerate(numbers)}


def several(value: Value) -> tuple[Decimal, ...]:
    """The numbers of a value."""
    return (value,) if isinstance(value, Decimal) else tuple(value.values())


def combine(operation: Operator, left: Value, right: Value) -> Value:
    """Combine two values. Series of equal length combine in order, others by the place of each number on the left."""
    if isinstance(left, Decimal):
        if isinstance(right, Decimal):
            return operation(left, right)
        return {key: operation(left, value) for key, value in right.items()}
    if isinstance(right, Decimal):
        others = [right] * len(left)
    elif len(left) == len(right):
        others = list(right.values())
    else:
        by_place = {place: value for (_, _, place), value in right.items()}
        others = [by_place[place] for _, _, place in left]
    return dict(zip(left, map(operation, left.values(), others), strict=True))


def _each(function: Callable[[Decimal], Decimal]) -> Callable[[Value], Value]:
    return lambda value: combine(lambda number, _: function(number), value, Decimal(0))


def _all(function: Aggregate) -> Callable[..., Value]:
    """One number from all numbers of the arguments; not a number (NaN) if there are none."""

    def applied(*arguments: Value) -> Value:
        numbers = tuple(number for argument in arguments for number in several(argument))
        return Decimal(function(numbers)) if numbers else Decimal("NaN")

    return applied


def _grouped(function: Aggregate, by_column: bool) -> Callable[[Series], Series]:
    """One number for each row, or for each row and column."""

    def applied(values: Series) -> Series:
        groups: dict[Key, tuple[Decimal, ...]] = {}
        for (_, row, place), number in values.items():
            key = ("", row, place.partition("/")[0] if by_column else "")
            groups[key] = (*groups.get(key, ()), number)
        return {key: Decimal(function(numbers)) for key, numbers in groups.items()}

    return applied


def _where(values: Series, condition: Series) -> Series:
    return {key: number for (key, number), holds in zip(values.items(), condition.values(), strict=True) if holds}


def _copies(values: Series) -> Series:
    """The numbers of every row that repeats all numbers of an earlier one."""
    rows: dict[str, list[Decimal]] = {}
    for (_, row, _), number in values.items():
        rows.setdefault(row, []).append(number)
    every = list(rows.values())
    repeated = {row for place, row in enumerate(rows) if every[place] in every[:place]}
    return {key: number for key, number in values.items() if key[1] in repeated}


def _student(probability: Decimal, freedom: Decimal) -> Decimal:
    from scipy.special import stdtrit  # scipy takes long to import

    return Decimal(str(float(stdtrit(float(freedom), float(probability)))))


def _welch_p(difference: Decimal, sds: Series, runs: Series) -> Decimal:
    """Two-sided p of Welch's t test."""
    deviations, counts = (list(map(float, series.values())) for series in (sds, runs))
    return Decimal(str(welch_test(float(difference), deviations, counts)[2]))


def _normal_shares(parts: Decimal, width: Decimal) -> Series:
    """Percent of a normal distribution in intervals around its mean, each `width` standard deviations wide."""
    count, normal = int(parts), statistics.NormalDist()
    cuts = [normal.cdf(float(width) * (at - count / 2)) for at in range(1, count)]
    return listed([Decimal(str(100 * (high - low))) for low, high in pairwise([0.0, *cuts, 1.0])])


_AGGREGATES: Mapping[str, Aggregate] = {
    "sum": lambda numbers: sum(numbers, Decimal(0)),
    "mean": lambda numbers: sum(numbers, Decimal(0)) / len(numbers),
    "min": min,
    "max": max,
    "median": statistics.median,
    "count": len,
}
FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    **{name: _all(function) for name, function in _AGGREGATES.items()},
    **{f"row_{name}": _grouped(function, by_column=False) for name, function in _AGGREGATES.items()},
    **{f"cell_{name}": _grouped(function, by_column=True) for name, function in _AGGREGATES.items()},
    "count": lambda values: Decimal(len(values)),
    "abs": _each(abs),
    "sqrt": _each(Decimal.sqrt),
    "half_unit": _each(lambda value: Decimal(1).scaleb(-places_of(value)) / 2),  # of the last published digit
    "where": _where,
    "copies": _copies,
    "student": _student,  # quantile of Student's t: probability, degrees of freedom
    "welch_p": _welch_p,
    "normal_shares": _normal_shares,
}
_OPERATORS: Mapping[type[ast.AST], Operator] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.Lt: lambda left, right: Decimal(left < right),
    ast.LtE: lambda left, right: Decimal(left <= right),
    ast.Gt: lambda left, right: Decimal(left > right),
    ast.GtE: lambda left, right: Decimal(left >= right),
    ast.Eq: lambda left, right: Decimal(left == right),
    ast.NotEq: lambda left, right: Decimal(left != right),
}


def evaluate(expression: str, lookup: Callable[[str], Value]) -> Value:
    """The value of an expression of numbers, names, operators, comparisons (1 or 0) and FUNCTIONS.

    Raises ValueError if it contains anything else, or if its numbers do not fit a function.
    """
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body, lookup)
    except (SyntaxError, TypeError, ArithmeticError, AttributeError, KeyError) as error:
        raise ValueError(f"cannot evaluate {expression!r}: {error}") from None


def _value(node: ast.expr, lookup: Callable[[str], Value]) -> Value:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool) and math.isfinite(number):
            return Decimal(str(number))
        case ast.Name(id=name):
            return lookup(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return combine(operator.sub, Decimal(0), _value(operand, lookup))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return combine(_OPERATORS[type(sign)], _value(left, lookup), _value(right, lookup))
        case ast.Compare(left=left, ops=signs, comparators=others) if all(type(one) in _OPERATORS for one in signs):
            values = pairwise([_value(one, lookup) for one in (left, *others)])
            compared = [combine(_OPERATORS[type(one)], *pair) for one, pair in zip(signs, values, strict=True)]
            return reduce(lambda first, second: combine(operator.mul, first, second), compared)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(argument, lookup) for argument in arguments))
    raise TypeError(f"expected numbers, names, operators or one of {', '.join(FUNCTIONS)}")
