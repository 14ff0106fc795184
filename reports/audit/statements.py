"""Statements of an audit, read from `audit.toml` and evaluated.

A statement is a table `["Subject"."id"]` of the file:

    statement, explanation   plain English
    value, exact             expressions of the published and the recomputed number; names in other expressions
    holds                    comparisons that have to hold; without them, `value` has to equal `exact` at `places`
                             decimals by one of `rules` ("round", "truncate")
    verdict                  instead: what the text itself shows ("consistent", "inconsistent", "not derivable")
    published, recomputed    texts in place of `value` and `exact`; without other rules they have to be equal
    decided_if               a comparison without which the statement is not derivable
    let                      name -> expression, or a list of them
    each                     "a | b" -> values "1 | 2": one statement for each value, and for each combination
    headline                 id -> the finding for the first page, with {published} and {recomputed}

Texts contain {expression:format}: no format means all digits, `2` or `+2` decimals, `rows` or `sorted` the names of
rows, `named 2` names and decimals. {variable} inserts a value of `each`, {variable.name} its display name. An
expression is arithmetic (see `arithmetic`) over names and addresses: [table | rows | places] of published numbers,
where a place is "column" or "column/score", or [source | arguments] (see `sources`). Rows and places are separated by
", " and may contain "*"; @list inserts a list. Several numbers come place by place. `[shared]` has `let`, `lists` and
`names` for the whole file, and `tables`: the benchmarks that name rows and columns.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Decimal
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path
from typing import Any

from reports import ReportError
from reports.audit.arithmetic import Key, Value, evaluate, listed, several
from reports.audit.sources import SOURCES, NotAvailableError, PaperFacts
from reports.claims.hypothesis import State
from reports.claims.judge import judge_published
from reports.claims.wording import numbers
from reports.evidence.caching import once
from reports.evidence.published import places_of
from reports.evidence.statistics import RULES, printed
from reports.pages.render import escape, table_line
from reports.pages.text import number

SENTENCES = "Sentences of the text"
HEADERS = ("Statement", "Published", "Recomputed", "Verdict", "How")
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
class Finding:
    """One statement of a paper, compared with the paper's own numbers.

    Args:
        subject: The part of the audit that it belongs to.
        agrees: None if the given numbers do not decide it, such as a size that no interpretation of the method yields.
        explanation: The rule applied, and remarks for the reader.
        headline: The finding in words for the first page, with {published} and {recomputed}; "" for none.
    """

    id: str
    subject: str
    statement: str
    printed: str
    recomputed: str
    agrees: bool | None
    explanation: str = ""
    headline: str = ""

    @property
    def verdict(self) -> str:
        return {True: "consistent", False: "inconsistent", None: "not derivable"}[self.agrees]


def digits(value: Decimal) -> str:
    """A number in full, or cut after four decimals, with an ellipsis."""
    cut = value.quantize(Decimal("0.0001"), rounding=ROUND_DOWN)
    return f"{cut.normalize():f}" if cut == value else f"{cut}…"


def _combinations(each: Mapping[str, list[str]]) -> Iterator[dict[str, str]]:
    for values in product(*each.values()):
        names = " | ".join(each).split(" | ")
        yield dict(zip(names, " | ".join(values).split(" | "), strict=True) if each else ())


def _inserted(content: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(content, dict):
        return {key: _inserted(one, variables) for key, one in content.items()}
    if isinstance(content, list):
        return [_inserted(one, variables) for one in content]
    is_text = isinstance(content, str)
    return re.sub(r"\{([\w.]+)\}", lambda match: variables.get(match[1], match[0]), content) if is_text else content


class Audit:
    """One paper's file, evaluated over published and available numbers."""

    def __init__(self, path: Path, facts: PaperFacts) -> None:
        self.subjects: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        shared = self.subjects.pop("shared", {})
        self.path, self.facts = path, facts
        self.let: Mapping[str, Any] = shared.get("let", {})
        self.lists: Mapping[str, list[str]] = shared.get("lists", {})
        tables = [facts.benchmarks[name] for name in shared.get("tables", ())]
        self.names = {column.task: column.name for table in tables for column in table.columns}
        self.names |= {row.id: row.name for table in tables for row in table.rows} | shared.get("names", {})

    def findings(self) -> Iterator[Finding]:
        """Evaluate every statement whose numbers are available; ReportError names one that is wrong."""
        for subject, statements in self.subjects.items():
            for key, table in statements.items():
                for variables in _combinations(table.get("each", {})):
                    names = {f"{name}.name": self.names.get(text, text) for name, text in variables.items()}
                    content = _inserted({"id": key, **table}, variables | names)
                    content.pop("each", None)
                    try:
                        yield Statement(self, **content).finding(subject)
                    except NotAvailableError:
                        continue
                    except (ValueError, TypeError) as error:
                        raise ReportError(f"{self.path}: {content['id']}: {error}. Correct the statement.") from None

    def address(self, text: str) -> Value:
        """Published numbers at an address, or those of a source."""
        table, *parts = (part.strip() for part in text.split("|"))
        if table in SOURCES:
            return self.facts.number(table, *parts)
        rows, places = (self._listed(part) for part in parts)
        if len(rows) == len(places) == 1 and "*" not in text:
            return self.facts.numbers.at(table, rows[0], *places[0].split("/", 1))
        by_place: dict[str, dict[Key, Decimal]] = {}
        for place, row in product(places, rows):
            if "*" not in row + place + table:
                self.facts.numbers.at(table, row, *place.split("/", 1))  # names what is missing
            for (of, at, column, score), value in self.facts.numbers.values.items():
                key = of, at, f"{column}/{score}" if score else column
                if all(map(fnmatchcase, key, (table, row, place))):
                    by_place.setdefault(key[2], {})[key] = value
        return {key: value for values in by_place.values() for key, value in values.items()}

    def _listed(self, part: str) -> list[str]:
        names = part.split(", ")
        return [one for name in names for one in (self.lists[name[1:]] if name.startswith("@") else [name])]


@dataclass(frozen=True)
class Statement:
    """One statement of the file, as the module describes it; its names are evaluated when needed."""

    audit: Audit
    id: str
    statement: str
    explanation: str = ""
    value: str = ""
    exact: str = ""
    holds: tuple[str, ...] = ()
    places: int | None = None
    rules: tuple[str, ...] = ("round",)
    verdict: str = ""
    published: str = ""
    recomputed: str = ""
    decided_if: str = ""
    let: Mapping[str, Any] = field(default_factory=dict)
    headline: Mapping[str, str] = field(default_factory=dict)

    @once
    def _lookup(self, name: str) -> Value:
        content = {**self.audit.let, **self.let, "value": self.value, "exact": self.exact}.get(name, "")
        if content == "":
            raise ValueError(f"expected {name!r} in `let` or as a key of the statement, found none")
        if isinstance(content, list):
            return listed([several(self.evaluated(str(one)))[0] for one in content])
        return self.evaluated(str(content))

    def evaluated(self, expression: str) -> Value:
        """The value of an expression with names and addresses."""
        addresses = dict(enumerate(_ADDRESS.findall(expression)))
        values = {f"address_{at}": self.audit.address(address) for at, address in addresses.items()}
        names = iter(values)
        text = _ADDRESS.sub(lambda _: next(names), expression)
        return evaluate(text, lambda name: values[name] if name in values else self._lookup(name))

    def text(self, template: str) -> str:
        """A text with the values of its expressions."""
        return _TEMPLATE.sub(lambda match: self._format(self.evaluated(match[1]), match[2] or ""), template)

    def _format(self, value: Value, form: str) -> str:
        kind, _, decimals = form.rpartition(" ")
        places = decimals.lstrip("+")
        name = self.audit.names
        if not isinstance(value, Decimal) and form in ("rows", "sorted"):
            rows = [name.get(row, row) for _, row, _ in value]
            return ", ".join(sorted(rows) if form == "sorted" else rows) or "none"
        numbers = [number(one, decimals[:-1], int(places)) if places else digits(one) for one in several(value)]
        if not isinstance(value, Decimal) and kind == "named":
            labels = [(row, place.partition("/")[0]) for _, row, place in value]
            varying = [at for at in (1, 0) if len({label[at] for label in labels}) > 1] or [0]
            named = [" ".join(name.get(label[at], label[at]) for at in varying) for label in labels]
            return "; ".join(map(" ".join, zip(named, numbers, strict=True))) or "none"
        return " / ".join(numbers) or "none"

    def finding(self, subject: str) -> Finding:
        """Evaluate the statement."""
        places = str(2 if self.places is None else self.places)
        published = self.text(self.published or f"{{value:{places}}}")
        recomputed = self.text(self.recomputed or f"{{exact:{places}}}") if self.holds or not self.value else ""
        consistent, how = _VERDICTS.get(self.verdict), ""
        if self.holds:
            consistent = all(all(several(self.evaluated(comparison))) for comparison in self.holds)
        elif not self.verdict and self.value:
            consistent, published, recomputed, how = self._rounding()
        elif not self.verdict:
            consistent = published == recomputed
        if self.decided_if and not all(several(self.evaluated(self.decided_if))):
            consistent = None
        explanation = "; ".join(filter(None, (how, self.text(self.explanation))))
        texts = self.text(self.statement), published, recomputed, consistent, explanation
        return Finding(self.id, subject, *texts, self.headline.get(self.id, ""))

    def _rounding(self) -> tuple[bool, str, str, str]:
        """Whether the published number is the exact one at its decimals, both as texts, and how it was rounded."""
        value, exact = self._lookup("value"), self._lookup("exact")
        if not isinstance(value, Decimal) or not isinstance(exact, Decimal):
            raise ValueError("expected one number as value and one as exact")
        places = places_of(value) if self.places is None else self.places
        results = {rule: printed(exact, rule, places) for rule in RULES}
        giving = tuple(rule for rule in RULES if results[rule] == value)
        rule = next((rule for rule in self.rules if rule in giving), None)
        recomputed = self.text(self.recomputed) or number(results[rule or self.rules[0]], places=places)
        return (
            rule is not None,
            number(value, places=places),
            recomputed,
            f"exactly {digits(exact)}: {_ROUNDED[giving]}",
        )


def _sentences(facts: PaperFacts) -> Iterator[Finding]:
    """Every claim that published numbers decide, with all comparisons that contradict it."""
    for claim in facts.claims:
        verdict = judge_published(claim, facts.published, facts.benchmarks)
        if verdict.is_decided:
            asked = ", ".join(dict.fromkeys(one.criterion.text for one, _ in verdict.comparisons))
            statement = f"Claim {claim.id}, {claim.place}: {claim.sentence}"
            given = numbers(verdict, most=None) + claim.left_out
            agrees = verdict.state is State.YES
            yield Finding(f"claim {claim.id}", SENTENCES, statement, asked, given, agrees, claim.reading)


def findings(facts: PaperFacts) -> tuple[Finding, ...]:
    """Evaluate a paper's audit, and the claims that its published numbers decide; () without an audit.

    Statements that need shapes or records are left out if the facts has none. ReportError if a published number is
    missing or a statement is wrong.
    """
    tables = (table for table in facts.benchmarks.values() if table.paper.id == facts.paper)
    path = next(tables).published_csv.parent.with_name("audit.toml")
    return (*Audit(path, facts).findings(), *_sentences(facts)) if path.exists() else ()


def summary(findings: Iterable[Finding]) -> str:
    """The numbers of findings that agree, disagree, and cannot be derived."""
    verdicts = [finding.agrees for finding in findings]
    return (
        f"{len(verdicts)} checks of the published numbers: {verdicts.count(True)} consistent, "
        f"{verdicts.count(False)} inconsistent, {verdicts.count(None)} not derivable."
    )


def audit_markdown(findings: Sequence[Finding]) -> str:
    """The counts of verdicts and a table per subject; disagreements are bold."""
    parts = [summary(findings)]
    for subject in dict.fromkeys(finding.subject for finding in findings):
        lines = [table_line(HEADERS), table_line([":--"] * len(HEADERS))]
        for one in (finding for finding in findings if finding.subject == subject):
            verdict = one.verdict if one.agrees else f"**{one.verdict}**"
            texts = map(escape, (one.statement, one.printed, one.recomputed))
            lines.append(table_line([*texts, verdict, escape(one.explanation)]))
        parts += [f"## {escape(subject)}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"
