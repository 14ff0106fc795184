"""The site's files: links resolve, nothing is fetched, hostile texts are escaped, all content exists."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from benchmarks.cli.main import main

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}


class Page(HTMLParser):
    """A page's resources, links, anchors and event handlers."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded, self.links, self.ids, self.handlers = ([] for _ in range(4))
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if (tag, name) in LOADED:
                self.loaded.append(value or "")
            elif (tag, name) == ("a", "href"):
                self.links.append(value or "")
            elif name == "id":
                self.ids.append(value or "")
            elif name.startswith("on"):
                self.handlers.append(name)


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {path.relative_to(site).as_posix(): Page(path) for path in sorted(site.rglob("*.html"))}


def test_every_link_leads_to_a_page_and_its_place(site, pages):
    for name, page in pages.items():
        for link in page.links:
            path, place = urldefrag(link)
            target = (site / name).parent / unquote(path) if path else site / name
            assert target.resolve().is_file(), (name, link)
            if place:
                assert place in pages[target.resolve().relative_to(site.resolve()).as_posix()].ids, (name, link)


def test_nothing_is_loaded_from_outside(site, pages):
    for name, page in pages.items():
        for loaded in page.loaded:
            assert loaded == "data:," or ((site / name).parent / loaded).resolve().is_file(), (name, loaded)
    assert not re.search(r"@import|url\(", (site / "assets" / "site.css").read_text(encoding="utf-8"))
    scripts = "".join(path.read_text(encoding="utf-8") for path in (site / "assets").glob("[ds]*.js"))
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|\.innerHTML|document\.write", scripts)


def test_words_of_records_stay_words(site, pages):
    shown = [path for path in site.rglob("*.html") if "window.broken" in path.read_text(encoding="utf-8")]
    assert shown, "the hostile record is on no page"
    for path in shown:
        page = pages[path.relative_to(site).as_posix()]
        assert page.handlers == []
        assert "http://x.invalid/a" not in page.loaded
    for path in site.glob("data/*.js"):
        assert "</script" not in path.read_text(encoding="utf-8").lower()


def test_a_table_has_bytes_next_to_the_method_and_cells_that_lead_to_their_runs(site):
    text = (site / "tables" / "fedsplitbert-table3-lite.html").read_text(encoding="utf-8")
    assert re.search(r'<a href="\.\./cells/[0-9a-f]{16}\.html">\d+\.\d ± \d+\.\d \(5\)</a>', text)
    assert "<small>79.97</small>" in text  # FedSplitBERT's printed F1 on MRPC
    headers = re.findall(r'<th scope="col"[^>]*>([^<]+)<br>', text)
    assert headers[:4] == ["uplink", "downlink", "one-time model", "MRPC"]
    # FedAvg + prior has the bytes of FedAvg, whose predictions it corrects.
    uplink = dict(re.findall(r'<th scope="row">([^<]+)</th><td>1 of 9 tasks</td><td class="num">([^<]+)</td>', text))
    assert uplink["FedAvg"] == uplink["FedAvg + prior (strength 1) †"] == "0.13 GB"
    assert "Deviation: " not in text  # they are listed once, on the paper's page
    paper = (site / "papers" / "fedsplitbert.html").read_text(encoding="utf-8")
    assert paper.count("<li><b>Client size</b>") == 1


def test_a_cells_page_has_its_ledger_settings_and_what_repeats_it(site):
    path = min(site.glob("records/lite-mrpc-fedsplitbert-s0*.json"))
    record = json.loads(path.read_text(encoding="utf-8"))
    text = (site / "cells" / f"{record['cell_id']}.html").read_text(encoding="utf-8")
    assert f'href="../records/{path.name}"' in text
    for part in ("one-time model distribution", "&#34;learning_rate&#34;", "&#34;torch&#34;"):
        assert part in text
    run = r"python -m benchmarks run \S+ --scale lite --tasks mrpc --methods \S+ --seed 0 --data-dir /data</code>"
    assert re.search(rf"git checkout {record['environment']['revision']}\n{run}", text)
    assert f"digest <code>{record['inputs']['data']['digest']}</code>" in text


def test_another_folder_is_never_replaced(tmp_path, capsys):
    (tmp_path / "records").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear", encoding="utf-8")
    assert main(["site", "--records", str(tmp_path / "records"), "--out", str(tmp_path / "mine")]) == 2
    assert "expected an empty folder, or one with a site" in capsys.readouterr().err
    assert (tmp_path / "mine" / "letter.txt").read_text(encoding="utf-8") == "dear"
