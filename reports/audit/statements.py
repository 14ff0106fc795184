"""Statements of an audit, read from `audit.toml` and evaluated.

A statement is a table `["Subject"."id"]` of the file:

    statement, explanation   plain English
    let                      name -> expression, or a list of numbers
    value, exact             expressions: the published value equals the exact one at `places` decimals by one of `rules`
    holds                    or: one or several comparisons, all of which have to hold
    verdict                  or: what reading the text says ("consistent", "inconsistent", "not derivable");
                             without any of these, the published and the recomputed text have to be equal
    decided_if               a comparison without which the statement is not derivable
    published, recomputed    texts; with `exact` they follow from the numbers
    each                     variable -> values, or "a, b" -> pairs of values: one statement for each combination
    headline                 ids of those that the first page shows

Texts contain {expression:format}: no format means all digits; `2` or `+2` decimals; `rows` or `sorted` the rows' names;
`named 2` names and decimals. {variable} inserts a value of `each`, {variable.name} its display name. An expression is
arithmetic (see `arithmetic`) over names and addresses: [table | rows | places] of published numbers, where a place is
"column" or "column/score", or [source | arguments] (see `sources`). Rows and places are separated by ", ", may contain
"*", and @list inserts a list. Several numbers come place by place. `[shared]` has `names`, `lists`, `let` for the whole
file, and `rows_of`: benchmarks whose rows are named.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

from reports import ReportError
from reports.audit.arithmetic import Series, Value, evaluate, several, truth
from reports.audit.checks import Finding, Material, digits, show
from reports.audit.sources import NotAvailableError, Sources
from reports.evidence.published import places_of
from reports.evidence.statistics import RULES, printed

_ADDRESS = re.compile(r"\[([^\]]+)\]")
_TEMPLATE = re.compile(r"\{([^{}:]+)(?::([^{}]*))?\}")
_VERDICTS = {"consistent": True, "inconsistent": False, "not derivable": None}
_ROUNDED = {
    ("truncate", "round"): "rounded and truncated alike",
    ("truncate",): "truncated, not rounded",
    ("round",): "rounded, not truncated",
    (): "neither rounded nor truncated",
}


@dataclass(frozen=True)
class Statement:
    """One statement of the file, as the module describes it."""

    id: str
    subject: str
    statement: str
    published: str = ""
    recomputed: str = ""
    explanation: str = ""
    let: Mapping[str, Any] = field(default_factory=dict)
    value: str = ""
    exact: str = ""
    places: int | None = None
    rules: tuple[str, ...] = ("round",)
    holds: str | list[str] = ""
    verdict: str = ""
    decided_if: str = ""
    headline: tuple[str, ...] = ()


def _combinations(each: Mapping[str, list[Any]]) -> Iterator[dict[str, str]]:
    for values in product(*each.values()):
        chosen: dict[str, str] = {}
        for names, value in zip(each, values, strict=True):
            chosen.update(zip(names.split(", "), [value] if isinstance(value, str) else value, strict=True))
        yield chosen


def _inserted(content: Any, variables: Mapping[str, str]) -> Any:
    match content:
        case str():
            for name, text in variables.items():
                content = content.replace(f"{{{name}}}", text)
            return content
        case list():
            return [_inserted(one, variables) for one in content]
        case dict():
            return {key: _inserted(one, variables) for key, one in content.items()}
    return content


class Audit:
    """One paper's file, evaluated over what is published and known."""

    def __init__(self, path: Path, material: Material) -> None:
        self.subjects: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        shared = self.subjects.pop("shared", {})
        self.path, self.material, self.sources = path, material, Sources(material)
        self.let: Mapping[str, Any] = shared.get("let", {})
        self.lists: Mapping[str, list[str]] = shared.get("lists", {})
        rows = (row for table in shared.get("rows_of", ()) for row in material.benchmarks[table].rows)
        self.names: dict[str, str] = {row.id: row.name for row in rows} | shared.get("names", {})

    def findings(self) -> Iterator[Finding]:
        """Evaluate every statement whose numbers are available; ReportError names one that is wrong."""
        for subject, statements in self.subjects.items():
            for key, table in statements.items():
                for variables in _combinations(table.get("each", {})):
                    names = {f"{name}.name": self.names.get(text, text) for name, text in variables.items()}
                    content = _inserted({"id": key, **table}, variables | names)
                    content.pop("each", None)
                    try:
                        yield Evaluation(self, Statement(subject=subject, **content)).finding()
                    except NotAvailableError:
                        continue
                    except (ValueError, TypeError) as error:
                        raise ReportError(f"{self.path}: {content['id']}: {error}. Correct the statement.") from None

    def address(self, text: str) -> Value:
        """Published numbers at an address, or those of a source."""
        first, *parts = (part.strip() for part in text.split("|"))
        if first in self.sources.by_name:
            return self.sources.by_name[first](*parts)
        rows, places = (self._listed(part) for part in parts)
        numbers = self.material.numbers
        if len(rows) == len(places) == 1 and "*" not in first + text:
            column, _, score = places[0].partition("/")
            return numbers.at(first, rows[0], column, score)
        found = {}
        for place, row in product(places, rows):
            matching = {
                (table, at, f"{column}/{score}" if score else column): value
                for (table, at, column, score), value in numbers.values.items()
                if fnmatchcase(table, first) and fnmatchcase(at, row)
                and fnmatchcase(f"{column}/{score}" if score else column, place)
            }
            if not matching and "*" not in row + place:
                column, _, score = place.partition("/")
                numbers.at(first, row, column, score)  # says what is missing
            found.update(matching)
        return Series.of(found)

    def _listed(self, part: str) -> list[str]:
        names = part.split(", ")
        return [one for name in names for one in (self.lists[name[1:]] if name.startswith("@") else [name])]


class Evaluation:
    """One statement, whose names are evaluated when they are needed."""

    def __init__(self, audit: Audit, statement: Statement) -> None:
        self.audit, self.statement = audit, statement
        self._known: dict[str, Value] = {}

    def _lookup(self, name: str) -> Value:
        if name not in self._known:
            content = self.statement.let.get(name, self.audit.let.get(name))
            if content is None:
                raise ValueError(f"expected a name of `let`, found {name!r}")
            if isinstance(content, list):
                numbers = [several(self.value(str(one)))[0] for one in content]
                self._known[name] = Series.of({("", "", str(at)): number for at, number in enumerate(numbers)})
            else:
                self._known[name] = self.value(str(content))
        return self._known[name]

    def value(self, expression: str) -> Value:
        """The value of an expression with names and addresses."""
        addresses: list[str] = []

        def named(found: re.Match[str]) -> str:
            addresses.append(found[1])
            return f"address_{len(addresses) - 1}"

        text = _ADDRESS.sub(named, expression)
        values = {f"address_{at}": self.audit.address(address) for at, address in enumerate(addresses)}
        return evaluate(text, lambda name: values[name] if name in values else self._lookup(name))

    def text(self, template: str) -> str:
        """A text with the values of its expressions."""
        return _TEMPLATE.sub(lambda found: self._format(self.value(found[1]), found[2] or ""), template)

    def _format(self, value: Value, form: str) -> str:
        kind, _, digits_after = form.rpartition(" ")
        if isinstance(value, Series) and form in ("rows", "sorted"):
            names = [self.audit.names.get(row, row) for _, row, _ in value.keys]
            return ", ".join(sorted(names) if form == "sorted" else names) or "none"

        def one(number: Decimal) -> str:
            places = digits_after.lstrip("+")
            return show(number, int(places), digits_after.removesuffix(places)) if places else digits(number)

        if isinstance(value, Series) and kind == "named":
            return "; ".join(f"{name} {one(number)}" for name, number in self._named(value)) or "none"
        return " / ".join(map(one, several(value))) or "none"

    def _named(self, value: Series) -> Iterator[tuple[str, Decimal]]:
        """Each number with its column's name, its row's name, or both, as far as they differ."""
        by_column = len({place.partition("/")[0] for _, _, place in value.keys}) > 1
        by_row = len({row for _, row, _ in value.keys}) > 1 or not by_column
        for (_, row, place), number in value.items():
            parts = [place.partition("/")[0]] * by_column + [row] * by_row
            yield " ".join(self.audit.names.get(part, part) for part in parts), number

    def finding(self) -> Finding:
        """Evaluate the statement."""
        of = self.statement
        published, recomputed, how = of.published, of.recomputed, []
        if of.exact:
            value, exact = (self._known.setdefault(name, self.value(getattr(of, name))) for name in ("value", "exact"))
            if isinstance(value, Series) or isinstance(exact, Series):
                raise ValueError("expected one number as value and as exact")
            places = places_of(value) if of.places is None else of.places
            results = {rule: printed(exact, rule, places) for rule in RULES}
            giving = tuple(rule for rule in RULES if results[rule] == value)
            agreeing = [rule for rule in of.rules if rule in giving]
            consistent: bool | None = bool(agreeing)
            published = published or show(value, places)
            recomputed = recomputed or show(results[agreeing[0] if agreeing else of.rules[0]], places)
            how = [f"exactly {digits(exact)}: {_ROUNDED[giving]}"]
        elif of.holds:
            conditions = [of.holds] if isinstance(of.holds, str) else of.holds
            consistent = all(truth(self.value(condition)) for condition in conditions)
        elif of.verdict:
            consistent = _VERDICTS[of.verdict]
        else:
            consistent = self.text(published) == self.text(recomputed)
        if of.decided_if and not truth(self.value(of.decided_if)):
            consistent = None
        how += [self.text(of.explanation)] if of.explanation else []
        texts = (self.text(text) for text in (of.statement, published, recomputed))
        return Finding(of.id, of.subject, *texts, consistent, "; ".join(how), of.id in of.headline)
