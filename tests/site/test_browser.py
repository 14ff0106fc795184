"""The site in headless Chromium, opened from its files: no error, no request outside, sorting, filters, a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[browser]'")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH")]
LOCAL = ("file:", "data:", "blob:", "about:")
DRAWN = "document.querySelectorAll('.drawing').length === document.querySelectorAll('.drawing[data-drawn] svg').length"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with sync_api.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


class Tab:
    """A page that keeps every complaint, and every request that leaves the folder."""

    def __init__(self, browser: Any, width: int = 1280, scheme: str = "light") -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 860}, color_scheme=scheme)
        self.wrong: list[str] = []
        self.page.on("console", lambda said: self._note(f"{said.type}: {said.text}", said.type in ("error", "warning")))
        self.page.on("pageerror", lambda error: self._note(str(error), True))
        self.page.on("request", lambda asked: self._note(asked.url, not asked.url.startswith(LOCAL)))

    def _note(self, text: str, is_wrong: bool) -> None:
        if is_wrong:
            self.wrong.append(f"{self.page.url}: {text}")

    def open(self, path: Path) -> Any:
        self.page.goto(path.as_uri())
        self.page.wait_for_function(DRAWN)
        return self.page

    @property
    def scrolls_sideways(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


def every_kind(site: Path) -> list[Path]:
    """Every page but cells, and some of these."""
    cells = sorted(site.glob("cells/*.html"))
    return [*sorted(path for path in site.rglob("*.html") if path not in cells), *cells[::6]]


def test_every_page_without_error_request_or_sideways_scrolling(site: Path, chromium: Any) -> None:
    wide, phone = Tab(chromium), Tab(chromium, width=390)
    for path in every_kind(site):
        wide.open(path)
        phone.open(path)
        assert not phone.scrolls_sideways, path.name
        assert not wide.scrolls_sideways, path.name
    assert wide.wrong + phone.wrong == []
    assert not wide.page.evaluate("'broken' in window")


def test_tables_sort_by_number_and_by_name(site: Path, chromium: Any) -> None:
    page = Tab(chromium).open(site / "tables" / "fedsplitbert-table3-lite.html")
    column = "Array.from(document.querySelectorAll('table.compact tbody tr')).map(row => row.cells[{}].dataset.sort)"
    header = page.locator("table.compact thead th").nth(1)
    header.click()
    falling = [float(text) for text in page.evaluate(column.format(1)) if text]
    assert falling == sorted(falling, reverse=True)
    assert len(set(falling)) > 3
    header.click()
    assert [float(text) for text in page.evaluate(column.format(1)) if text] == falling[::-1]
    assert header.get_attribute("aria-sort") == "ascending"


def test_claims_are_filtered_by_verdict(site: Path, chromium: Any) -> None:
    page = Tab(chromium).open(site / "papers" / "fedbfpt-claims.html")
    page.select_option("select[data-filter=verdict]", "contradicted")
    seen = page.locator("article.claim:visible .verdict").all_inner_texts()
    assert seen
    assert all(text.startswith("contradicted") for text in seen)
    page.select_option("select[data-filter=verdict]", "")
    assert page.locator("article.claim:visible").count() > len(seen)


def test_the_front_follows_the_reader(site: Path, chromium: Any) -> None:
    tab = Tab(chromium)
    page = tab.open(site / "index.html")
    figure = page.locator("figure[data-chart=front]")
    labels = figure.locator(".drawing svg").text_content()
    assert "MRPC, F1" in labels
    assert "uplink and downlink bytes" in labels
    figure.locator("select").nth(1).select_option("round")
    page.wait_for_function("document.querySelector('.drawing svg').textContent.includes('per round')")
    figure.locator("select").nth(0).select_option("RTE · Acc")
    page.wait_for_function("document.querySelector('.drawing svg').textContent.includes('RTE, Acc')")
    assert tab.wrong == []


def test_a_click_leads_from_a_cell_to_its_run(site: Path, chromium: Any) -> None:
    page = Tab(chromium).open(site / "tables" / "fedsplitbert-table3-lite.html")
    page.locator("td.num a").first.click()
    page.wait_for_url("**/cells/*.html")
    assert page.locator("h2", has_text="Ledger").count() == 1
    assert page.locator("nav.seeds a").count() == 5
