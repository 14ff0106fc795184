"""The site as files: links resolve, nothing is fetched, nobody's words leave their place, what is said is there."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from benchmarks.cli.main import main
from reports.site.templates import data_script, script_json

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
VOID = {"meta", "link", "img", "br", "input", "hr"}


class Page(HTMLParser):
    """What a page loads, links to and names; elements that are not closed in their order."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if (tag, name) in LOADED:
                self.loaded.append(value or "")
            elif (tag, name) == ("a", "href"):
                self.links.append(value or "")
            elif name == "id":
                self.ids.append(value or "")
            elif name.startswith("on"):
                self.handlers.append(name)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    return {path.relative_to(site).as_posix(): Page(path) for path in sorted(site.rglob("*.html"))}


def cell_of(site: Path, record: str) -> Path:
    path = min(site.glob(f"records/{record}*.json"))
    return site / "cells" / f"{json.loads(path.read_text(encoding='utf-8'))['cell_id']}.html"


# ---- what holds of every page ------------------------------------------------------------------------------------


def test_every_link_leads_to_a_page_and_its_place(site: Path, pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        for link in page.links:
            path, place = urldefrag(link)
            target = (site / name).parent / unquote(path) if path else site / name
            assert target.resolve().is_file(), (name, link)
            if place:
                assert place in pages[target.resolve().relative_to(site.resolve()).as_posix()].ids, (name, link)


def test_nothing_is_loaded_from_outside(site: Path, pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        for loaded in page.loaded:
            assert loaded == "data:," or ((site / name).parent / loaded).resolve().is_file(), (name, loaded)
    assert not re.search(r"@import|url\(", (site / "assets" / "site.css").read_text(encoding="utf-8"))
    scripts = "".join(path.read_text(encoding="utf-8") for path in (site / "assets").glob("[ds]*.js"))
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|\.innerHTML|document\.write", scripts)


def test_names_of_places_are_not_used_twice(pages: dict[str, Page]) -> None:
    for name, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), name
        assert page.open == [], name


def test_words_of_records_stay_words(site: Path, pages: dict[str, Page]) -> None:
    shown = [path for path in site.rglob("*.html") if "window.broken" in path.read_text(encoding="utf-8")]
    assert shown, "the hostile record is on no page"
    for path in shown:
        page = pages[path.relative_to(site).as_posix()]
        assert "img" not in page.tags or path.parent.name == "sweeps"  # whose pictures are files of its own
        assert page.handlers == []
    for script in site.glob("data/*.js"):
        assert "</script" not in script.read_text(encoding="utf-8").lower()


def test_the_scale_stands_with_every_result(site: Path, pages: dict[str, Page]) -> None:
    for name in pages:
        if name.startswith(("tables/", "cells/", "papers/")) and not name.endswith("-audit.html"):
            assert "scale lite" in (site / name).read_text(encoding="utf-8"), name


def test_what_is_not_data_is_small(site: Path) -> None:
    data = ("data", "cells", "records")
    sizes = [path.stat().st_size for path in site.rglob("*.*") if path.relative_to(site).parts[0] not in data]
    assert sum(sizes) < 5_000_000


# ---- single pages ------------------------------------------------------------------------------------------------


def test_a_table_has_compact_cells_that_lead_to_their_runs(site: Path) -> None:
    text = (site / "tables" / "fedsplitbert-table3-lite.html").read_text(encoding="utf-8")
    assert re.search(r'<a href="\.\./cells/[0-9a-f]{16}\.html">\d+\.\d ± \d+\.\d \(5\)</a>', text)
    assert "<small>79.97</small>" in text  # FedSplitBERT's printed F1 on MRPC
    assert "not run<small>" in text
    assert "Deviation " not in text  # they stand once, on the paper's page
    paper = (site / "papers" / "fedsplitbert.html").read_text(encoding="utf-8")
    assert paper.count("Client sizes: the paper") == 1


def test_a_cells_page_has_its_ledger_settings_and_command(site: Path) -> None:
    text = cell_of(site, "lite-mrpc-fedsplitbert-s0").read_text(encoding="utf-8")
    for part in (
        "one-time model distribution",
        "training.learning_rate",
        "inputs.data.digest",
        "versions.torch",
        "Repeat it",
    ):
        assert part in text
    assert re.search(r"python -m benchmarks run \S+ --scale lite --tasks mrpc --methods \S+ --seed 0", text)


def test_record_copies_are_the_records(site: Path) -> None:
    for path in site.glob("records/*.json"):
        value = json.loads(path.read_text(encoding="utf-8"))
        assert (site / "cells" / f"{value['cell_id']}.html").is_file()
        assert "sha256" in value


def test_what_speaks_against_comes_first(site: Path) -> None:
    order = {"contradicted": 0, "fails by derivation": 1, "supported": 2, "holds by derivation": 3, "undecided": 4}
    for paper in ("fedbfpt", "fedsplitbert"):
        text = (site / "papers" / f"{paper}-claims.html").read_text(encoding="utf-8")
        ranks = [order.get(verdict, 5) for verdict in re.findall(r'data-verdict="([^"]+)"', text)]
        assert ranks == sorted(ranks)
        text = (site / "papers" / f"{paper}-audit.html").read_text(encoding="utf-8")
        verdicts = re.findall(r'data-verdict="([^"]+)"', text)
        assert verdicts.index("consistent") > max(n for n, word in enumerate(verdicts) if word == "inconsistent")


def test_the_front_has_both_kinds_of_marks(site: Path) -> None:
    text = (site / "data" / "front.js").read_text(encoding="utf-8")
    chart = json.loads(text.removeprefix('site.put("front", ').removesuffix(");\n"))
    values = [value for value in chart["values"] if value["panel"] == "MRPC · F1"]
    assert chart["choices"]["panel"][0][0] == "MRPC · F1"
    assert {value["reported"] for value in values} == {True, False}
    assert {value["total"] == 0 for value in values} == {True, False}
    assert all(value["scale"] != "" for value in values)


def test_rows_never_run_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "records").mkdir()
    assert main(["site", "--records", str(tmp_path / "records"), "--out", str(tmp_path / "site")]) == 0
    assert "of 0 records" in capsys.readouterr().out
    text = (tmp_path / "site" / "tables" / "fedsplitbert-table5-lite.html").read_text(encoding="utf-8")
    assert text.count("not run") > 40
    assert not (tmp_path / "site" / "cells").exists()


# ---- wrong words -------------------------------------------------------------------------------------------------


def test_another_folder_is_never_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "records").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear", encoding="utf-8")
    assert main(["site", "--records", str(tmp_path / "records"), "--out", str(tmp_path / "mine")]) == 2
    assert "expected an empty folder, or one with a site" in capsys.readouterr().err
    assert (tmp_path / "mine" / "letter.txt").read_text(encoding="utf-8") == "dear"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--records", "nowhere"], "nowhere: expected a folder of records"),
        (["--scale", "huge"], "expected one of demo"),
    ],
)
def test_wrong_words_are_one_message(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["site", *words]) == 2
    assert message in capsys.readouterr().err


def test_data_end_no_script() -> None:
    hostile = "</script>\u2028<!-- & 'x'"
    text = data_script("a", {"b": hostile})
    assert not set("<>\u2028") & set(text)
    assert json.loads(script_json(hostile)) == hostile


def test_what_sweeps_tried_has_a_page_that_its_table_links(site: Path) -> None:
    table = (site / "tables" / "fedsplitbert-table3-lite.html").read_text(encoding="utf-8")
    assert 'href="../sweeps/fedsplitbert-table3-lite.html"' in table
    swept = (site / "sweeps" / "fedsplitbert-table3-lite.html").read_text(encoding="utf-8")
    assert 'src="../sweeps/fedsplitbert-table3-lite/heatmap.svg"' in swept
    assert (site / "sweeps" / "fedsplitbert-table3-lite" / "heatmap.svg").is_file()
    assert "front.svg" not in swept  # what a sweep did not leave
    best, first = swept.index("75.00"), swept.index("50.00")
    assert best < first
    assert "100 %" in swept
    other = (site / "tables" / "fedsplitbert-table4-lite.html").read_text(encoding="utf-8")
    assert "sweeps/" not in other


def test_a_study_stands_on_the_first_page_with_a_link_to_its_table(site: Path) -> None:
    index = (site / "index.html").read_text(encoding="utf-8")
    assert '<a href="tables/fedsplitbert-personalisation-lite.html">the study</a>' in index
    assert "What FedAvg + local label prior gains over FedAvg, and FedSplitBERT beyond that" in index
