"""What an audit may ask for, what it finds (in Markdown too), and checks for any paper's tables and sentences."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal

from benchmarks.claims import Claim
from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.claims.hypothesis import State
from reports.claims.judge import judge_published
from reports.claims.wording import numbers
from reports.evidence.published import Numbers
from reports.evidence.records import PAPER, Derive, DeriveClient, Request, request_for
from reports.evidence.statistics import printed
from reports.pages.render import escape, table_line

SENTENCES = "Sentences of the text"
HEADERS = ("Statement", "Published", "Recomputed", "Verdict", "How")


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
        return {True: "consistent", False: "inconsistent", None: "not derivable"}[self.agrees]


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
    records: tuple[RunResult, ...] = ()
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


def sentences(material: Material) -> Iterator[Finding]:
    """Every claim that printed numbers decide, with all comparisons that speak against it."""
    for claim in material.claims:
        found = judge_published(claim, material.published, material.benchmarks)
        if found.state in (State.YES, State.NO):
            asked = dict.fromkeys(one.criterion.text for one, _ in found.comparisons)
            statement = f"Claim {claim.id}, {claim.place}: “{claim.quotation}”"
            given = numbers(found, most=None)
            agrees = found.state is State.YES
            yield Finding(f"claim {claim.id}", SENTENCES, statement, ", ".join(asked), given, agrees, claim.reading)


def summary(findings: Iterable[Finding]) -> str:
    """How many findings agree, do not, and cannot be derived."""
    verdicts = [finding.agrees for finding in findings]
    return (
        f"{len(verdicts)} checks of the published numbers: {verdicts.count(True)} consistent, "
        f"{verdicts.count(False)} inconsistent, {verdicts.count(None)} not derivable."
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
