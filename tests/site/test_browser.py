"""The site in headless Chromium, opened from its files: no error, no request outside, sorting, filters, a phone."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.costs.networks import DEVICES, NETWORKS, Deployment, Turn

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[browser]'")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH")]
LOCAL = ("file:", "data:", "blob:", "about:")
DRAWN = "document.querySelectorAll('.drawing').length === document.querySelectorAll('.drawing[data-drawn] svg').length"
TABLE = "tables/fedsplitbert-table3-lite.html"


class Tab:
    """A page that collects all errors and all requests outside the folder."""

    def __init__(self, browser: Any, width: int = 1300) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 860})
        self.wrong: list[str] = []
        self.page.on("console", lambda said: self._note(said.text, said.type in ("error", "warning")))
        self.page.on("pageerror", lambda error: self._note(str(error), True))
        self.page.on("request", lambda asked: self._note(asked.url, not asked.url.startswith(LOCAL)))

    def _note(self, text: str, is_wrong: bool) -> None:
        if is_wrong:
            self.wrong.append(f"{self.page.url}: {text}")

    def open(self, path: Path) -> Any:
        self.page.goto(path.as_uri())
        self.page.wait_for_function(DRAWN)
        return self.page


@pytest.fixture(scope="module")
def wide() -> Iterator[Tab]:
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield Tab(browser)
        browser.close()


def test_no_page_has_an_error_a_request_or_scrolls_sideways(site, wide):
    """Every page but cells, and some of these, at the width of a screen and of a phone."""
    cells = sorted(site.glob("cells/*.html"))
    phone = Tab(wide.page.context.browser, width=390)
    for path in [*(path for path in site.rglob("*.html") if path not in cells), *cells[::6]]:
        for tab in (wide, phone):
            assert not tab.open(path).evaluate("document.documentElement.scrollWidth > window.innerWidth"), path.name
    assert wide.wrong + phone.wrong == []
    assert not wide.page.evaluate("'broken' in window")


def test_tables_sort_by_number_and_lead_to_their_runs(site, wide):
    page = wide.open(site / TABLE)
    column = "Array.from(document.querySelectorAll('table.compact tbody tr')).map(row => row.cells[4].dataset.sort)"
    header = page.locator("table.compact thead th").nth(4)
    header.click()
    falling = [float(text) for text in page.evaluate(column) if text]
    assert falling == sorted(falling, reverse=True)
    assert len(set(falling)) > 3
    header.click()
    assert [float(text) for text in page.evaluate(column) if text] == falling[::-1]
    assert header.get_attribute("aria-sort") == "ascending"
    bytes_column = page.locator("table.compact thead th").nth(1).bounding_box()
    assert bytes_column["x"] + bytes_column["width"] < 1300  # visible without scrolling
    page.locator("td.num a").first.click()
    page.wait_for_url("**/cells/*.html")
    assert page.locator("nav.seeds a").count() == 5


def test_lists_are_filtered_and_come_in_pages(site, wide):
    page = wide.open(site / "papers" / "fedbfpt-claims.html")
    page.select_option("select[data-filter=verdict]", "contradicted")
    seen = page.locator("article.claim:visible .verdict").all_inner_texts()
    assert seen
    assert all(text.startswith("contradicted") for text in seen)
    page = wide.open(site / "records.html")
    assert page.locator("tbody tr:visible").count() == 100
    page.locator("[data-step='1']").click()
    assert page.locator("tbody tr:visible").count() < 100
    page.select_option("select[data-filter=paper]", "FedFreezeBERT")
    assert set(page.locator("tbody tr:visible td:nth-child(2)").all_inner_texts()) == {"FedFreezeBERT"}


def test_the_front_shows_eight_methods_that_a_reader_picks(site, wide):
    page = wide.open(site / "index.html")
    figure = page.locator("figure[data-chart=front]")
    figure.locator("select").nth(0).select_option("FedSplitBERT, Table III: MRPC, F1")
    boxes = figure.locator("input[type=checkbox]")
    assert figure.locator("input:checked").count() == 8
    assert figure.locator("input:disabled").count() == boxes.count() - 8
    first = figure.locator("label:has(input:checked)").first
    name = first.inner_text().strip()
    assert name in figure.locator(".drawing svg text").all_text_contents()
    first.click()
    page.wait_for_function("document.querySelectorAll('figure[data-chart=front] input:checked').length === 7")
    figure.locator("select").nth(1).select_option("up")
    page.wait_for_function("document.querySelector('.drawing svg').textContent.includes('whole run')")
    assert name not in figure.locator(".drawing svg text").all_text_contents()
    assert wide.wrong == []


def test_times_are_those_of_the_tables_and_follow_the_readers_choice(site, wide):
    """One seed of two rounds on LTE: the script and `Deployment` agree, with stragglers and a busy server."""
    turns = [[(1e6, 2e6, 2, 3e12, 4e13), (2e6, 1e6, 4, 9e12, 5e13)], [(1e6, 2e6, 2, 0, 0)]]
    at = Deployment(NETWORKS["lte"], DEVICES["laptop"], stragglers=0.2)
    page = wide.open(site / "index.html")
    minutes = page.evaluate(
        """([runs, share]) => {
        const known = site.data.front.presets;
        return site.minutes(runs, {network: known.networks.lte, rate: known.devices.laptop.rate, server: known.server,
                                   slowdown: known.slowdown, stragglers: share});
        }""",
        [[[[1, each] for each in turns]], 0.2],
    )
    assert minutes == pytest.approx(at.run_seconds([[Turn(*turn) for turn in each] for each in turns]) / 60)
    figure = page.locator("figure[data-chart=front]")
    assert not figure.locator("input[type=range]").is_visible()
    figure.locator("select").nth(1).select_option("time")
    page.wait_for_function("document.querySelector('.drawing svg').textContent.includes('computed minutes')")
    before = figure.locator(".drawing svg").inner_html()
    figure.locator("select").nth(2).select_option("datacentre")
    page.wait_for_function("text => document.querySelector('.drawing svg').innerHTML !== text", arg=before)
    figure.locator("input[type=range]").fill("20")
    assert "20 % of clients 4 times as slow" in figure.inner_text()
    assert wide.wrong == []
