"""What an audit may ask for, what it finds (in Markdown too), and checks for any paper's tables and sentences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal

from benchmarks.claims import Claim
from benchmarks.record import RunRecord
from benchmarks.spec import Benchmark
from reports.claims.decide import State
from reports.claims.judge import judge_in_print
from reports.claims.wording import printed_numbers
from reports.evidence.published import AVERAGE, Numbers
from reports.evidence.records import PAPER, Derive, DeriveClient, Request, request_for
from reports.evidence.statistics import RULES, printed
from reports.pages.render import escape, table_line

SENTENCES = "Sentences of the text"
HEADERS = ("Statement", "Printed", "Recomputed", "Verdict", "How")
_GIVEN_BY = {
    ("truncate", "round"): "rounded and truncated alike",
    ("truncate",): "truncated, not rounded",
    ("round",): "rounded, not truncated",
    (): "neither rounded nor truncated",
}


@dataclass(frozen=True)
class Finding:
    """One statement of a paper beside what the paper's own numbers give.

    agrees: None where nothing that is given decides it, such as a size that no reading of the method yields.
    """

    id: str
    subject: str  # the part of the audit that it belongs to
    statement: str
    printed: str
    recomputed: str
    agrees: bool | None
    explanation: str = ""  # the rule applied, and what else a reader should know
    headline: bool = False  # whether the first page tells it

    @property
    def verdict(self) -> str:
        return {True: "agrees", False: "does not agree", None: "not derivable"}[self.agrees]


@dataclass(frozen=True)
class Material:
    """A paper's numbers and sentences, and what is known beside them.

    published: a paper's id -> its numbers; benchmarks: by id. Of this paper, and of others that its claims speak of.
    derive: what the rounds of a benchmark's cells send; without it, findings by exact bytes are left out.
    derive_client: what one client's training costs; without it, findings by that are.
    """

    paper: str
    published: Mapping[str, Numbers]
    benchmarks: Mapping[str, Benchmark]
    claims: tuple[Claim, ...] = ()
    records: tuple[RunRecord, ...] = ()
    derive: Callable[[Benchmark], Derive] | None = None
    derive_client: DeriveClient | None = None

    @property
    def numbers(self) -> Numbers:
        return self.published[self.paper]

    def request(self, benchmark_id: str, row_ids: Collection[str]) -> Request:
        whole = self.benchmarks[benchmark_id]
        table = replace(whole, rows=tuple(row for row in whole.rows if row.id in row_ids))
        return request_for(table, table.scale(PAPER), (), derive=self.derive(table) if self.derive else None)


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


def sentences(material: Material) -> Iterator[Finding]:
    """Every claim that printed numbers decide, with all comparisons that speak against it."""
    for claim in material.claims:
        found = judge_in_print(claim, material.published, material.benchmarks)
        if found.state in (State.YES, State.NO):
            asked = dict.fromkeys(case.asked.text for case in found.cases)
            statement = f"Claim {claim.id}, {claim.place}: “{claim.quotation}”"
            given = printed_numbers(found, most=None)
            agrees = found.state is State.YES
            yield Finding(f"claim {claim.id}", SENTENCES, statement, ", ".join(asked), given, agrees, claim.reading)


def summary(findings: Iterable[Finding]) -> str:
    """How many findings agree, do not, and cannot be derived."""
    verdicts = [finding.agrees for finding in findings]
    return (
        f"{len(verdicts)} checks of the paper's own numbers: {verdicts.count(True)} agree, "
        f"{verdicts.count(False)} do not, {verdicts.count(None)} are not derivable."
    )


def audit_markdown(findings: Sequence[Finding], level: int = 2) -> str:
    """A count of the verdicts and a table for each subject, under headings of that level; what disagrees is bold."""
    parts = [summary(findings)]
    for subject in dict.fromkeys(finding.subject for finding in findings):
        lines = [table_line(HEADERS), table_line([":--"] * len(HEADERS))]
        for found in (finding for finding in findings if finding.subject == subject):
            verdict = found.verdict if found.agrees else f"**{found.verdict}**"
            texts = map(escape, (found.statement, found.printed, found.recomputed))
            lines.append(table_line([*texts, verdict, escape(found.explanation)]))
        parts += [f"{'#' * level} {escape(subject)}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"
