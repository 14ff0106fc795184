"""What an audit may ask for and what it finds, also as Markdown; and checks of any paper's claims."""

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
    """One statement of a paper, compared with what the paper's own numbers give.

    Args:
        subject: The part of the audit that it belongs to.
        agrees: None if nothing that is given decides it, such as a size that no reading of the method yields.
        explanation: The rule applied, and what else a reader should know.
        headline: Whether the first page shows it.
    """

    id: str
    subject: str
    statement: str
    printed: str
    recomputed: str
    agrees: bool | None
    explanation: str = ""
    headline: bool = False

    @property
    def verdict(self) -> str:
        return {True: "consistent", False: "inconsistent", None: "not derivable"}[self.agrees]


@dataclass(frozen=True)
class Material:
    """A paper's numbers and sentences, and what else is known.

    published, benchmarks: by id, of this paper and of others that its claims speak of. derive, derive_client: costs by
    shapes; without them, findings that need them are left out.
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
    """Every claim that published numbers decide, with all comparisons that contradict it."""
    for claim in material.claims:
        verdict = judge_published(claim, material.published, material.benchmarks)
        if verdict.is_decided:
            asked = ", ".join(dict.fromkeys(one.criterion.text for one, _ in verdict.comparisons))
            statement, given = f"Claim {claim.id}, {claim.place}: “{claim.quotation}”", numbers(verdict, most=None)
            if claim.is_source:
                given += "; what is derived from this very sentence is left out"
            agrees = verdict.state is State.YES
            yield Finding(f"claim {claim.id}", SENTENCES, statement, asked, given, agrees, claim.reading)


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
