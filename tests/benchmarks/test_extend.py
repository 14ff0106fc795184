"""A user's methods, tasks and tables: docs/extend.md followed literally."""

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import benchmarks.tasks
import fedsim.algorithms
from benchmarks import api, registry
from benchmarks.cli import pages
from benchmarks.cli.main import main
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.papers import published_of
from benchmarks.tasks.base import DataSource
from fedsim.server import ServerOptimizer
from reports.site.cells import cell_pages
from reports.site.overview import overview
from reports.site.site_data import SiteData
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(nothing_included: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder "mine" with the page's files under the page's names, and a file of reviews."""
    blocks = re.findall(r"`(mine/\w+\.py)`.*?```python\n(.*?)```", PAGE, re.DOTALL)
    assert [name for name, _ in blocks] == ["mine/fedbias.py", "mine/reviews.py", "mine/table.py"]
    blocks += [("mine/published.csv", text) for text in re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)]
    (tmp_path / "mine").mkdir()
    for name, text in blocks:
        (tmp_path / name).write_text(text, encoding="utf-8")
    lines = [f"{word} film number {number}\t{word}" for number in range(60) for word in ("good", "bad")]
    (tmp_path / "data" / "reviews").mkdir(parents=True)
    (tmp_path / "data" / "reviews" / "reviews.tsv").write_text("\n".join(["text\tverdict", *lines]), encoding="utf-8")
    monkeypatch.setattr(fedsim.algorithms, "ADDED", {})
    yield tmp_path
    benchmarks.tasks._registry.cache_clear()


@pytest.mark.slow
def test_the_pages_lora_method_stands_next_to_the_suites(nothing_included, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fedsim.algorithms, "ADDED", {})
    for name in ("my_method", "my_table"):
        (text,) = re.findall(rf"`elsewhere/{name}\.py`.*?```python\n(.*?)```", PAGE, re.DOTALL)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "published.csv").write_text("table,row,column,score,value\n", encoding="utf-8")
    places = ["--include", str(tmp_path), "--results-dir", str(tmp_path / "results")]
    options = ["--scale", "demo", "--methods", "fedit,b-first", "--seeds", "1", "--no-tracking"]
    assert main(["run", "mine-scores", *places, *options]) == 0, capsys.readouterr().err
    by_row = {record.cell.algorithm: record for record in api.load(tmp_path / "results" / "records")}
    assert set(by_row) == {"fedavg", "b_first"}
    sent = {row: [entry.up_bytes for entry in record.rounds] for row, record in by_row.items()}
    assert sent["b_first"][0] == sent["b_first"][1] < sent["fedavg"][0] == sent["b_first"][2]


@pytest.fixture
def arguments(folder: Path) -> list[str]:
    """The page's command, on the smallest encoder and without MLflow."""
    (command,) = re.findall(r"python -m benchmarks (run ours-reviews .*)", PAGE)
    places = {"mine": folder / "mine", "/data": folder / "data"}
    arguments = [str(places.get(argument, argument)) for argument in command.split()]
    arguments += ["--results-dir", str(folder / "results"), "--backbone", "tiny", "--no-tracking"]
    return [*arguments, "--set=training.rounds=1", "--set=training.max_length=16", "--seeds", "1"]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_page_adds_a_method_a_task_and_a_table(folder, arguments, workers, capsys):
    """In this process, or in worker processes that include the folder."""
    assert main([*arguments, "--workers", str(workers)]) == 0, capsys.readouterr().err
    finished = api.load(folder / "results" / "records")
    records = {(record.cell.algorithm, record.cell.options.get("head")): record for record in finished}
    assert set(records) == {("local_majority", None), ("fedavg", None), ("fedbias", None), ("fedbias", "local")}
    sent = {name: record.rounds[0].up_bytes for name, record in records.items()}
    assert 0 < sent["fedbias", "local"] < sent["fedbias", None] < sent["fedavg", None] / 10
    for record in records.values():
        plan = wire_plan(record.cell)
        assert (plan.up_bytes, plan.down_bytes) == (record.rounds[0].up_bytes, record.rounds[0].down_bytes)


def test_an_edited_method_runs_again_and_its_old_record_is_left_out(folder, arguments, capsys):
    arguments += ["--methods", "fedavg,fedbias"]
    assert main(arguments) == 0, capsys.readouterr().err
    before = {record.cell_id: record for record in api.load(folder / "results" / "records")}
    file = folder / "mine" / "fedbias.py"
    edited = file.read_text(encoding="utf-8").replace("from fedsim.plan", "from shared import BIAS\nfrom fedsim.plan")
    file.write_text(edited.replace('".bias"', "BIAS"), encoding="utf-8")
    for ending in (".bias", ".weight"):  # an imported module counts, too
        (folder / "mine" / "shared.py").write_text(f'BIAS = "{ending}"\n', encoding="utf-8")
        assert main(arguments) == 0, capsys.readouterr().err
        new = [one for one in api.load(folder / "results" / "records") if one.cell_id not in before]
        assert [record.cell.algorithm for record in new] == ["fedbias"]
        assert new[0].inputs["code"]["files"] == ["fedbias.py", "shared.py"]
        before |= {record.cell_id: record for record in new}
    sent = [record.rounds[0].up_bytes for record in before.values() if record.cell.algorithm == "fedbias"]
    assert sent[0] == sent[1] < sent[2]
    assert "2 records not shown: their data, weights or methods differ from this run's" in capsys.readouterr().err


def test_the_sites_command_of_an_own_run_includes_its_folder(folder, arguments):
    module = folder / "mine" / "table.py"
    text = module.read_text(encoding="utf-8").replace('"all-MiniLM-L6-v2", 6', '"tiny", 4')
    module.write_text(text.replace("batch_size=16)", "batch_size=16, max_length=16)"), encoding="utf-8")
    unchanged = [argument for argument in arguments if not argument.startswith("--set")]
    assert main([*unchanged, "--methods", "majority", "--workers", "1"]) == 0
    records, tables = api.load(folder / "results" / "records"), {"ours": [registry.benchmark("ours-reviews")]}
    (shown,) = [page for path, page in cell_pages(pages.site_data(records, tables, "lite", {}, [folder / "mine"]))]
    assert f"--methods majority --seed 0 --include {folder / 'mine'} --data-dir /data</code>" in shown


def test_missing_data_and_names_that_are_taken_are_refused(folder, arguments, capsys):
    (folder / "data" / "reviews" / "reviews.tsv").unlink()
    assert main(arguments) == 2
    assert "put reviews/reviews.tsv, with the columns text and verdict, there" in capsys.readouterr().err
    for file, old, new, kind in (
        ("fedbias.py", "fedbias", "fedavg", "METHODS"),
        ("reviews.py", 'id="reviews"', 'id="mrpc"', "TASKS"),
    ):
        path = folder / "mine" / file
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace(old, new), encoding="utf-8")
        assert main(arguments) == 2
        assert f"{kind}: expected a new id, found " in capsys.readouterr().err
        path.write_text(text, encoding="utf-8")


def test_the_pages_central_sets_are_read_from_csv(folder):
    (block,) = re.findall(r"```python\n(FILES = .*?)```", PAGE, re.DOTALL)
    (rows,) = re.findall(r"```text\n(text,verdict\n.*?)```", PAGE, re.DOTALL)
    module = folder / "mine" / "reviews.py"
    text = re.sub(r"^FILES = .*?^\)\n", lambda _: block, module.read_text(), flags=re.DOTALL | re.MULTILINE)
    module.write_text(text)
    for part in ("train", "dev", "test"):
        (folder / "data" / "reviews" / f"{part}.csv").write_text(rows)
    registry.include(folder / "mine")
    data = benchmarks.tasks.task("reviews").load(DataSource(folder / "data"))
    assert data.pool.texts == (("a warm, funny film",), ("far too long",))
    assert list(data.pool.labels) == [1, 0]
    assert set(data.central) == {"test", "validation"}


def test_the_pages_server_step_exists():
    (server,) = re.findall(r"server=(\{.*?\})\)`", PAGE)
    assert ServerOptimizer.from_options(ast.literal_eval(server)).name == "adam"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (None, "published.csv: expected the published values, found no such file; restore it, or write"),
        (
            "Table 1,fedavgg,reviews,test/f1,90",
            "in the column 'row', as ours-reviews has, found 'fedavgg'.* mean 'fedavg'",
        ),
        (
            "Table 1,fedavg,review,test/f1,90",
            "expected one of reviews, average in the column 'column', .* found 'review'",
        ),
        ("Table 1,fedavg,reviews,f1,90", "in the column 'score', .* found 'f1'; correct the line"),
        ("Table I,fedavg,reviews,test/f1,90", "expected one of Table 1 in the column 'table', .* found 'Table I'"),
        ("Table 1,fedavg,reviews,test/f1,many", "published.csv:2: expected table,row,column,score,value with a number"),
    ],
)
def test_wrong_published_values_are_named_before_a_run(folder, line, message):
    path = folder / "mine" / "published.csv"
    path.unlink() if line is None else path.write_text(f"{path.read_text()}{line}\n")
    with pytest.raises(api.UserError, match=message):
        api.select("ours-reviews", "lite", include=folder / "mine")
    path.write_text("table,row,column,score,value\nTable 1,fedavg,reviews,test/f1,90\n")
    (folder / "mine" / "data.csv").write_text("text,verdict\n")  # of no table
    table = api.select("ours-reviews", "lite", include=folder / "mine").benchmark
    assert published_of([table])["ours"].at("Table 1", "fedavg", "reviews", "test/f1") == 90


def test_own_tasks_are_in_the_list_of_data_and_own_tables_on_the_site(folder, monkeypatch, capsys):
    included = ["--include", str(folder / "mine"), "--results-dir", str(folder / "results")]
    assert main(["data", *included, "--data-dir", str(folder / "data")]) == 0
    assert "ok   reviews: 120 examples" in capsys.readouterr().out
    shown: list[SiteData] = []
    monkeypatch.setattr(pages, "build", lambda site, out: (shown.append(site), (out, 0, 0))[1])
    monkeypatch.setattr(pages, "tables_by_paper", lambda: {"ours": [registry.benchmark("ours-reviews")]})
    monkeypatch.setattr(pages, "read_folders", lambda folders: [])
    assert main(["site", *included]) == 0
    assert [request.benchmark.id for request in shown[0].requests] == ["ours-reviews"]


def test_own_tables_with_the_same_title_are_both_on_the_sites_first_page(folder):
    registry.include(folder / "mine")
    first = registry.benchmark("ours-reviews")
    site = pages.site_data([], {"ours": [first, replace(first, id="ours-again")]}, "lite", {})
    shown = dict(overview(site))["index.html"]
    for id in ("ours-reviews", "ours-again"):
        assert f'<a href="tables/{id}-lite.html"><span>Table 1 ({id})</span>' in shown


def test_the_list_fits_a_terminal_and_counts_cells_that_have_a_record(capsys, tmp_path):
    counts = {}
    for scale in ("lite", "demo"):
        assert main(["list", "--scale", scale, "--results-dir", str(tmp_path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].endswith(f"at scale {scale}, from the committed records ({tmp_path} has none)")
        assert max(map(len, lines[1:])) <= 80
        counts[scale] = {line.split()[0]: line.split()[1] for line in lines[1:] if line.count("/")}
    assert counts["lite"]["fedsplitbert-table1"] == "9/9"
    assert counts["demo"]["fedsplitbert-table1"] == "0/9"
    tables = map(registry.benchmark, registry.benchmark_ids())
    assert counts["demo"].keys() == {table.id for table in tables if "demo" in {scale.id for scale in table.scales}}
