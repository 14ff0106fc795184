"""Checks that any paper's tables and sentences can be put to, and the words in which they answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_DOWN, Decimal

from reports.audit.finding import Finding, Material
from reports.claims.cases import State
from reports.claims.judge import judge_in_print, printed_numbers
from reports.evidence.published import AVERAGE, Numbers
from reports.evidence.statistics import RULES, printed

SENTENCES = "Sentences of the text"

_GIVEN_BY = {
    ("truncate", "round"): "rounded and truncated alike",
    ("truncate",): "truncated, not rounded",
    ("round",): "rounded, not truncated",
    (): "neither rounded nor truncated",
}


def show(value: Decimal, places: int = 2, sign: str = "") -> str:
    """A number with so many decimals; sign "+" also marks positive ones."""
    return f"{printed(value, 'round', places):{sign}}".replace("-", "−")


def digits(value: Decimal, places: int = 4) -> str:
    """A number in full, or cut after so many decimals, with an ellipsis."""
    cut = value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_DOWN)
    return f"{cut.normalize():f}" if cut == value else f"{cut}…"


def listed(texts: Sequence[str], none: str = "none") -> str:
    """Texts as a list in a sentence."""
    return "; ".join(texts) or none


def against_exact(
    key: str, subject: str, statement: str, value: Decimal, exact: Decimal, places: int, rules: Sequence[str]
) -> Finding:
    """A printed number beside the exact one: it agrees where one of the rules gives it at its decimals."""
    results = {rule: printed(exact, rule, places) for rule in RULES}
    giving = tuple(rule for rule in RULES if results[rule] == value)
    agreeing = [rule for rule in rules if rule in giving]
    given = show(results[agreeing[0] if agreeing else rules[0]], places)
    how = f"exactly {digits(exact)}: {_GIVEN_BY[giving]}"
    return Finding(key, subject, statement, show(value, places), given, bool(agreeing), how)


def average_finding(
    numbers: Numbers, table: str, row: tuple[str, str], places: Sequence[tuple[str, str]], rules: Sequence[str]
) -> Finding:
    """A row's printed average beside the mean of its numbers.

    row: id and name; places: (column, score) of the numbers that enter, each once.
    """
    row_id, name = row
    exact = sum((numbers.at(table, row_id, *place) for place in places), Decimal(0)) / len(places)
    key = f"average, {table}, {row_id}"
    value = numbers.at(table, row_id, AVERAGE)
    return against_exact(key, "Averages", f"{table}: average of {name}", value, exact, 2, rules)


def differing(
    numbers: Numbers, first: tuple[str, str], second: tuple[str, str], columns: Mapping[str, str]
) -> tuple[int, list[str]]:
    """Two rows (table, row) on the scores of the second: how many numbers were compared, and those that differ."""
    different, compared = [], 0
    for column, name in columns.items():
        own = numbers.scores(*first, column)
        for score, value in numbers.scores(*second, column).items():
            compared += 1
            if own.get(score) != value:
                found = "none" if score not in own else digits(own[score])
                different.append(f"{name}: {found} against {digits(value)}")
    return compared, different


def uneven_sums(
    numbers: Numbers, table: str, prefix: str, total: int, names: Mapping[str, str]
) -> tuple[int, list[str]]:
    """Cells whose scores starting with `prefix` should sum to `total`: how many there are, and those that do not."""
    sums: dict[tuple[str, str], Decimal] = {}
    for (of, row, column, score), value in numbers.values.items():
        if of == table and score.startswith(prefix):
            sums[row, column] = sums.get((row, column), Decimal(0)) + value
    uneven = [f"{names[column]} {row}: {digits(found)}" for (row, column), found in sums.items() if found != total]
    return len(sums), uneven


def sentences(_: Numbers, material: Material) -> Iterator[Finding]:
    """Every claim that printed numbers decide, with all comparisons that speak against it."""
    for claim in material.claims:
        found = judge_in_print(claim, material.published, material.benchmarks)
        if found.state in (State.YES, State.NO):
            asked = dict.fromkeys(case.asked.text for case in found.cases)
            statement = f"Claim {claim.id}, {claim.place}: “{claim.quotation}”"
            given = printed_numbers(found, most=None)
            agrees = found.state is State.YES
            yield Finding(f"claim {claim.id}", SENTENCES, statement, ", ".join(asked), given, agrees, claim.reading)
