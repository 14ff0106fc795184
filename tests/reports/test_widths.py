"""Pages as GitHub shows them, in headless Chromium: contents whose links lead somewhere, tables that fit the column."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.record import read_records
from benchmarks.registry import benchmark
from reports.evidence.records import request_for
from reports.pages.files import anchors, render_state
from reports.views import page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
markdown_it = pytest.importorskip("markdown_it", reason="markdown-it-py is not installed: it comes with rich")
ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path.relative_to(ROOT) for name in ("*.md", "docs/*.md", "benchmarks/*/*.md") for path in ROOT.glob(name)
)
COLUMN = 838  # points of a file's text on GitHub
# What decides widths of GitHub's style sheet for Markdown.
STYLE = """
body { width: 838px; margin: 0; font: 16px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif }
table { display: block; width: max-content; max-width: 100%; overflow: auto; border-collapse: collapse }
th, td { padding: 6px 13px; border: 1px solid #d1d9e0 }
th { font-weight: 600 }
code { padding: .2em .4em; font-size: 85%; white-space: break-spaces; font-family: ui-monospace, monospace }
img { max-width: 100% }
"""
WIDE = f"""[...document.querySelectorAll('table')].filter(table => table.scrollWidth > {COLUMN})
    .map(table => `${{table.scrollWidth}}: ${{table.innerText.slice(0, 80)}}`)"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install -e '.[browser]'"
    )
    if CHROMIUM is None:
        pytest.skip("no Chromium on PATH")
    with sync_api.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def state() -> str:
    """The rendered part of a paper's page, of two of its tables with committed records."""
    records = read_records(ROOT / "benchmarks" / "fedsplitbert" / "records")
    tables = [benchmark(f"fedsplitbert-{name}") for name in ("figure3", "table3")]
    shown = [page(request_for(table, table.scale("lite"), records)) for table in tables]
    return render_state(shown, claims=["### FedSplitBERT, claims · scale lite"], rest=["### Twice", "", "### Twice"])


def too_wide(chromium: Any, text: str) -> list[str]:
    """Tables that would have to be scrolled sideways: their widths and beginnings."""
    tab = chromium.new_page(viewport={"width": 1000, "height": 900})
    body = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    tab.set_content(f"<style>{STYLE}</style><body>{body}</body>")
    assert tab.locator("table").count() == len(re.findall(r"^\|\s*:?--", text, re.M))
    tab.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    found: list[str] = tab.evaluate(WIDE)
    tab.close()
    return found


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_no_table_of_a_committed_page_is_wider_than_its_column(chromium: Any, path: Path) -> None:
    assert too_wide(chromium, (ROOT / path).read_text(encoding="utf-8")) == []


def test_no_table_of_a_papers_page_is_wider_than_its_column(chromium: Any, state: str) -> None:
    assert too_wide(chromium, state) == []


def test_a_table_that_does_not_fit_is_found(chromium: Any) -> None:
    words = " | ".join(["Pneumonoultramicroscopicsilicovolcanoconiosis"] * 4)
    assert len(too_wide(chromium, f"| {words} |\n|{' -- |' * 4}\n| {words} |")) == 1


def test_a_papers_page_begins_with_contents_and_claims(state: str) -> None:
    contents, _, rest = state.partition("### ")
    said = [line for line in contents.splitlines() if line]
    lines = [line for line in said if not line.endswith(":")]
    assert all(line.startswith("- [") for line in lines)
    assert len(lines) == 5
    assert "FedSplitBERT, claims" in lines[0]
    assert "FedSplitBERT, Table III" in lines[2]
    assert " of 135 cells run. " in lines[2]
    links = [line.partition("](#")[2].partition(")")[0] for line in lines]
    assert links == list(anchors(f"### {rest}"))
    assert links[-2:] == ["twice", "twice-1"]
    # as GitHub makes it: punctuation goes, each blank becomes a hyphen
    assert links[0] == "fedsplitbert-claims--scale-lite"


def test_contents_name_each_scale_once(state: str) -> None:
    titles = [line for line in state.partition("### ")[0].splitlines() if line.endswith(":")]
    assert titles[0] == "Scale lite:"
    assert titles[1].startswith("Scale lite: real data")
    assert titles[2:] == ["At every scale:"]
