"""Audits: whether the numbers that a paper publishes agree with each other and with its text.

The statements are data, in `audit.toml` of a paper's folder; `statements` describes that file and evaluates it.
"""

from __future__ import annotations

from reports.audit.checks import Finding, Material, sentences
from reports.audit.statements import Audit


def findings(material: Material) -> tuple[Finding, ...]:
    """Evaluate a paper's audit, and the claims that published numbers decide; () without an audit.

    Statements that need shapes or records are left out if the material has none. ReportError if a published number
    is missing or a statement is wrong.
    """
    tables = (table for table in material.benchmarks.values() if table.paper.id == material.paper)
    path = next(tables).published_csv.parent.with_name("audit.toml")
    if not path.exists():
        return ()
    return (*Audit(path, material).findings(), *sentences(material))
