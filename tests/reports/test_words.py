"""What people read says the field's words: a majority-class baseline, centralised training, uplink, reproduced."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.registry import benchmark, benchmark_ids, claims_of
from reports.pages.files import BEGIN
from reports.pages.styles import colour_of

ROOT = Path(__file__).resolve().parents[2]
PAPERS = [path.parent.name for path in sorted(ROOT.glob("benchmarks/*/summary.toml"))]
# Not the field's word -> the word in its place.
WORDS = {
    r"\b(local|overall) majority\b|\bmajority[ -]class(es)?\b(?! baselines?)": "majority-class baseline",
    r"\bcentral training\b|\bcentralized training\b": "centralised training",
    r"\b(bytes|megabytes|MB) (uploaded|up|sent up)\b|\buploaded bytes\b|\bsent (up|down)\b": "uplink, downlink",
    r"^(the )?set-up$|\bset-up (bytes|traffic)\b": "one-time model distribution",
    r"\bconfidence interval": "95 % CI",
    r"\bour (score|value|number)s?\b": "reproduced",
}


def words_beside(text: str) -> list[str]:
    """Each wrong word of a text, with the right one; a paper's own words, in quotation marks, are its own."""
    own = re.sub(r"“[^”]*”", "", text)
    found = ((match.group(), right) for wrong, right in WORDS.items() for match in re.finditer(wrong, own, re.I))
    return [f"{word!r}: {right}" for word, right in found]


def of_definitions() -> Iterator[str]:
    """Names, notes and deviations of every table, and how claims are read."""
    for table in map(benchmark, benchmark_ids()):
        yield from (table.title, table.paper.bytes_convention, *table.yardstick.rivals.values())
        yield from (text for row in table.rows for text in (row.name, row.note))
        yield from (text for deviation in table.deviations for text in (deviation.id, deviation.text))
    yield from (claim.reading for paper in PAPERS for claim in claims_of(paper))
    for paper in PAPERS:
        summary = tomllib.loads((ROOT / "benchmarks" / paper / "summary.toml").read_text(encoding="utf-8"))
        yield from (text for texts in summary.values() for text in texts)


def of_code() -> Iterator[str]:
    """Texts in what renders pages, without docstrings."""
    for path in [*sorted(ROOT.glob("reports/**/*.py")), *sorted(ROOT.glob("benchmarks/cli/*.py"))]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            shown = not isinstance(node, ast.Expr)
            yield from (
                part.value
                for part in (ast.iter_child_nodes(node) if shown else ())
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def of_files() -> Iterator[str]:
    """Templates of the site, and what of the documentation is typed in by hand."""
    for path in sorted(ROOT.glob("reports/site/templates/*.html")):
        yield path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("benchmarks/*/README.md"))]:
        yield path.read_text(encoding="utf-8").partition(BEGIN)[0]


@pytest.mark.parametrize("texts", [of_definitions, of_code, of_files])
def test_the_fields_words_are_said(texts: object) -> None:
    assert callable(texts)
    every = list(texts())
    assert len(every) > 10
    assert [found for text in every for found in words_beside(text)] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("the local majority", 1),
        ("Majority class, by client", 1),
        ("Majority-class baseline, by client", 0),
        ("as “central training” says", 0),
        ("Central training: central training", 2),
        ("MB uploaded until the target", 1),
    ],
)
def test_wrong_words_are_found(text: str, count: int) -> None:
    assert len(words_beside(text)) == count


def test_references_have_colours_of_their_own() -> None:
    """A row that is named otherwise than its colour would be drawn in one of the colours for unknown methods."""
    names = {row.name for table in map(benchmark, benchmark_ids()) for row in table.rows}
    found = {name: colour_of(name) for name in names if name.startswith("Majority") or name == "Centralised training"}
    assert len(found) >= 4
    assert set(found.values()) == {"#868686", "#BDBDBD", "#5F86A6"}
