"""An audit as GitHub Markdown and on the terminal: a short table for each subject."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reports.audit.checks import Finding
from reports.pages.markdown import escape, table_line

HEADERS = ("Statement", "Printed", "Recomputed", "Verdict", "How")
_STYLES = {True: "", False: "bold", None: "italic"}


def summary(findings: Iterable[Finding]) -> str:
    """How many findings agree, do not, and cannot be derived."""
    verdicts = [finding.agrees for finding in findings]
    return (
        f"{len(verdicts)} checks of the paper's own numbers: {verdicts.count(True)} agree, "
        f"{verdicts.count(False)} do not, {verdicts.count(None)} are not derivable."
    )


def by_subject(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """The findings of each subject, in the order of the audit."""
    subjects: dict[str, list[Finding]] = {}
    for finding in findings:
        subjects.setdefault(finding.subject, []).append(finding)
    return subjects


def _cells(finding: Finding) -> tuple[str, ...]:
    return finding.statement, finding.printed, finding.recomputed, finding.verdict, finding.explanation


def audit_markdown(findings: Sequence[Finding], level: int = 2) -> str:
    """A count of the verdicts and a table for each subject, under headings of that level; what disagrees is bold."""
    parts = [summary(findings)]
    for subject, group in by_subject(findings).items():
        lines = [table_line(HEADERS), table_line([":--"] * len(HEADERS))]
        for finding in group:
            cells = [escape(text) for text in _cells(finding)]
            cells[3] = cells[3] if finding.agrees else f"**{cells[3]}**"
            lines.append(table_line(cells))
        parts += [f"{'#' * level} {escape(subject)}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def print_audit(findings: Sequence[Finding], console: Console | None = None) -> None:
    """Print a table for each subject and a count of the verdicts."""
    console = console or Console()
    for subject, group in by_subject(findings).items():
        table = Table(title=Text(subject, style="bold"), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
        for header in HEADERS:
            table.add_column(header, no_wrap=header == "Verdict")
        for finding in group:
            table.add_row(*(Text(cell, style=_STYLES[finding.agrees]) for cell in _cells(finding)))
        console.print(table)
    console.print(Text(summary(findings)))
