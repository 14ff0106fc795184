"""Arithmetic of audits: operators, comparisons and a few named functions, over decimals and series of them."""

from __future__ import annotations

import ast
import math
import operator
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from reports.evidence.published import places_of
from reports.evidence.statistics import welch_test

Key = tuple[str, str, str]  # table, row, place: "column" or "column/score"


@dataclass(frozen=True)
class Series:
    """Several numbers, each with the table, row and place that it is from."""

    keys: tuple[Key, ...]
    values: tuple[Decimal, ...]

    @classmethod
    def of(cls, numbers: Mapping[Key, Decimal]) -> Series:
        return cls(tuple(numbers), tuple(numbers.values()))

    def items(self) -> list[tuple[Key, Decimal]]:
        return list(zip(self.keys, self.values, strict=True))


Value = Decimal | Series


def truth(value: Value) -> bool:
    """Whether a comparison holds, for a series for each of its numbers."""
    return all(value.values) if isinstance(value, Series) else bool(value)


def several(value: Value) -> tuple[Decimal, ...]:
    return value.values if isinstance(value, Series) else (value,)


def combine(combined: Callable[[Decimal, Decimal], Decimal], left: Value, right: Value) -> Value:
    """Combine two values. Series of one length combine in order, others by the place of each number on the left."""
    if isinstance(left, Decimal):
        if isinstance(right, Decimal):
            return combined(left, right)
        return Series(right.keys, tuple(combined(left, value) for value in right.values))
    if isinstance(right, Decimal):
        others: tuple[Decimal, ...] = (right,) * len(left.values)
    elif len(left.values) == len(right.values):
        others = right.values
    else:
        by_place = {place: value for (_, _, place), value in right.items()}
        others = tuple(by_place[place] for _, _, place in left.keys)
    return Series(left.keys, tuple(map(combined, left.values, others)))


def _each(function: Callable[[Decimal], Decimal]) -> Callable[[Value], Value]:
    def applied(value: Value) -> Value:
        return Series(value.keys, tuple(map(function, value.values))) if isinstance(value, Series) else function(value)

    return applied


def _all(function: Callable[[tuple[Decimal, ...]], Decimal | int]) -> Callable[..., Value]:
    """One number from all numbers of the arguments; not a number if there are none."""

    def applied(*arguments: Value) -> Value:
        numbers = tuple(number for argument in arguments for number in several(argument))
        return Decimal(function(numbers)) if numbers else Decimal("NaN")

    return applied


def _grouped(function: Callable[[tuple[Decimal, ...]], Decimal | int], by_column: bool) -> Callable[[Series], Series]:
    """One number for each row, or for each row and column."""

    def applied(values: Series) -> Series:
        groups: dict[Key, list[Decimal]] = {}
        for (_, row, place), number in values.items():
            groups.setdefault(("", row, place.partition("/")[0] if by_column else ""), []).append(number)
        return Series.of({key: Decimal(function(tuple(numbers))) for key, numbers in groups.items()})

    return applied


def _where(values: Series, condition: Series) -> Series:
    return Series.of({key: number for (key, number), holds in zip(values.items(), condition.values, strict=True) if holds})


def _copies(values: Series) -> Series:
    """The numbers of every row that repeats all numbers of an earlier one."""
    rows: dict[str, tuple[Decimal, ...]] = {}
    for (_, row, _), number in values.items():
        rows[row] = (*rows.get(row, ()), number)
    known = list(rows.values())
    repeated = {row for at, row in enumerate(rows) if known[at] in known[:at]}
    return Series.of({key: number for key, number in values.items() if key[1] in repeated})


def _half_unit(value: Decimal) -> Decimal:
    return Decimal(1).scaleb(-places_of(value)) / 2


def _student(probability: Decimal, freedom: Decimal) -> Decimal:
    from scipy.special import stdtrit  # scipy takes long to import

    return Decimal(str(float(stdtrit(float(freedom), float(probability)))))


def _welch_p(difference: Decimal, sds: Series, runs: Series) -> Decimal:
    """Two-sided p of Welch's t test."""
    deviations, counts = (list(map(float, series.values)) for series in (sds, runs))
    return Decimal(str(welch_test(float(difference), deviations, counts)[2]))


def _normal_shares(parts: Decimal, width: Decimal) -> Series:
    """Percent of a normal distribution in parts that are cut around its mean, each `width` standard deviations wide."""
    count, normal = int(parts), statistics.NormalDist()
    cuts = [normal.cdf(float(width) * (at - count / 2)) for at in range(1, count)]
    shares = [100 * (high - low) for low, high in pairwise([0.0, *cuts, 1.0])]
    return Series.of({("", "", str(at)): Decimal(str(share)) for at, share in enumerate(shares)})


_AGGREGATES: Mapping[str, Callable[[tuple[Decimal, ...]], Decimal | int]] = {
    "sum": lambda numbers: sum(numbers, Decimal(0)),
    "mean": lambda numbers: sum(numbers, Decimal(0)) / len(numbers),
    "min": min,
    "max": max,
    "median": statistics.median,
    "count": len,
}
FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    **{name: _all(function) for name, function in _AGGREGATES.items()},
    "count": lambda values: Decimal(len(values.values)),
    **{f"row_{name}": _grouped(function, by_column=False) for name, function in _AGGREGATES.items()},
    **{f"cell_{name}": _grouped(function, by_column=True) for name, function in _AGGREGATES.items()},
    "abs": _each(abs),
    "sqrt": _each(Decimal.sqrt),
    "half_unit": _each(_half_unit),  # half a unit of the last published digit
    "where": _where,
    "copies": _copies,
    "student": _student,  # quantile of Student's t: probability, degrees of freedom
    "welch_p": _welch_p,
    "normal_shares": _normal_shares,
}
_OPERATORS: Mapping[type[ast.AST], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_COMPARISONS: Mapping[type[ast.AST], Callable[[Decimal, Decimal], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def evaluate(expression: str, lookup: Callable[[str], Value]) -> Value:
    """The value of an expression of numbers, names, operators, comparisons (1 or 0) and FUNCTIONS.

    Raises ValueError if it contains anything else, or if numbers do not fit its functions.
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
            return combine(operator.mul, _value(operand, lookup), Decimal(-1))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return combine(_OPERATORS[type(sign)], _value(left, lookup), _value(right, lookup))
        case ast.Compare(left=left, ops=signs, comparators=others) if all(type(sign) in _COMPARISONS for sign in signs):
            values = [_value(one, lookup) for one in (left, *others)]
            held: Value = Decimal(1)
            for sign, (low, high) in zip(signs, pairwise(values), strict=True):
                compared = _COMPARISONS[type(sign)]
                one = combine(lambda a, b, compared=compared: Decimal(compared(a, b)), low, high)  # type: ignore[misc]
                held = combine(operator.mul, one, held)
            return held
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(argument, lookup) for argument in arguments))
    raise TypeError(f"expected numbers, names, operators or one of {', '.join(FUNCTIONS)}")
