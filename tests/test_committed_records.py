"""The committed records: whole, as defined, with the bytes of the closed form; and every page shows them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cli.main import main
from benchmarks.costs import WirePlan
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.errors import DependsOnTextsError
from benchmarks.predictions import has_predictions
from benchmarks.registry import benchmark, rows_of, scale_of
from benchmarks.results import RunResult, read_result
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = sorted(ROOT.glob("benchmarks/*/records"))
PATHS = [path for folder in FOLDERS for path in sorted(folder.glob("*.json"))]
TABLE = benchmark("fedsplitbert-table3")
LITE = scale_of(TABLE, "lite")
FROZEN = benchmark("fedfreezebert-table3")


@pytest.fixture(scope="module")
def records() -> list[RunResult]:
    return [read_result(path) for path in PATHS]


# ---- bytes -------------------------------------------------------------------------------------------------------


PLANS: dict[str, WirePlan] = {}  # of cells whose bytes depend on no examples


def foretold(record: RunResult, **options: Any) -> WirePlan:
    """What shapes and the clients' numbers of training examples say of a record's cell, with other options."""
    cell = replace(record.cell, options={**record.cell.options, **options})  # by its seed: sub-models are drawn
    examples = [client["train"] for client in record.clients]
    try:
        if cell.spec_id not in PLANS:
            PLANS[cell.spec_id] = wire_plan(cell)
        return PLANS[cell.spec_id]
    except DependsOnTextsError:
        return wire_plan(cell, examples=examples)


def check_bytes(record: RunResult) -> None:
    """Every round's bytes, and the ledger's sum; where texts were trimmed, a bound of them."""
    try:
        plan = foretold(record)
        counted = [(entry.up_bytes, entry.down_bytes) for entry in record.rounds]
        assert counted == [(each.up_bytes, each.down_bytes) for each in plan.rounds][: len(counted)]
        assert record.diverged or len(counted) == len(plan.rounds)
    except DependsOnTextsError:
        if not record.ledger:  # it counts what stands in texts, and sends nothing
            assert not any((record.setup_bytes, *(entry.up_bytes + entry.down_bytes for entry in record.rounds)))
            return
        plan = foretold(record, features="padded")
        (only,) = record.rounds
        assert 0 < only.up_bytes < plan.up_bytes
        assert only.down_bytes == plan.down_bytes
    assert record.setup_bytes == plan.setup_bytes
    sent = sum(entry.up_bytes + entry.down_bytes for entry in record.rounds)
    assert sum(row.bytes for row in record.ledger) == plan.setup_bytes + sent
    assert all(row.bytes > 0 for row in record.ledger)  # so nothing stands in it where nothing was sent


def is_slow(path: Path) -> bool:
    """Where turns are handed from client to client, shapes are followed through every round."""
    return "-fedbert_sequential-" in path.stem


@pytest.mark.parametrize(
    "path", [pytest.param(path, marks=[pytest.mark.slow] * is_slow(path), id=path.stem) for path in PATHS]
)
def test_bytes_are_those_of_the_closed_form(path: Path) -> None:
    record = read_result(path)
    assert path.name == record.file_name
    check_bytes(record)


@pytest.mark.parametrize(
    ("row", "options"),
    [
        ("c-average", {}),
        ("c-average", {"features": "trimmed"}),
        ("c-ordinary", {"features": "trimmed"}),
        ("central-ordinary", {}),
    ],
)
def test_the_closed_form_knows_what_depends_on_data(row: str, options: Mapping[str, Any], tmp_path: Path) -> None:
    """Records of the demo scale, of methods that send a round's bytes by example, by text or not at all."""
    (method,) = rows_of(FROZEN, [row])
    cell = FROZEN.cell(method, FROZEN.columns[0], scale_of(FROZEN, "demo"), 0)
    cell = replace(
        cell, options={**cell.options, **options}, training=replace(cell.training, local_epochs=1, max_length=16)
    )
    record = run_cell(cell, RunOptions(results_dir=tmp_path, device="cpu"), lambda _: None)
    check_bytes(record)
    assert bool(record.ledger) == (row != "central-ordinary")
    if not record.ledger:
        return
    more = record.ledger[0]._replace(bytes=record.ledger[0].bytes + 1)
    with pytest.raises(AssertionError):
        check_bytes(replace(record, ledger=(more, *record.ledger[1:])))


# ---- what is there -----------------------------------------------------------------------------------------------


def test_references_that_train_no_encoder_are_there_with_five_seeds(records: list[RunResult]) -> None:
    rows = rows_of(TABLE, ["overall-majority", "local-majority", "linear"])
    wanted = {cell.definition_id for _, _, cell in TABLE.cells(LITE, range(5), rows)}
    assert wanted <= {record.cell.definition_id for record in records}


def test_answers_are_there_where_a_record_names_them() -> None:
    for path in PATHS:
        assert has_predictions(path.parent, read_result(path)), path


def test_results_came_from_committed_code(records: list[RunResult]) -> None:
    assert {record.environment["modified"] for record in records} == {False}


# ---- pages -------------------------------------------------------------------------------------------------------


PAGES = {f"benchmarks/{folder.parent.name}/README.md": [folder.parent.name] for folder in FOLDERS}


def report(page: Path, words: Sequence[str], folder: Path) -> None:
    """What `make readme` does to a page, with pictures and files into a folder."""
    found = [word for records in FOLDERS for word in ("--records", str(records))]
    places = ["--readme", str(page), "--pictures", str(folder / "docs" / "pictures"), "--results-dir", str(folder)]
    assert main(["report", *words, "--scale", "lite", *found, *places]) == 0


@pytest.fixture(scope="module", params=PAGES)
def reported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A page, and the folder in which it was rendered anew with all of its tables' files."""
    folder = tmp_path_factory.mktemp("reported")
    copy = folder / request.param
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / request.param, copy)
    report(copy, PAGES[request.param], folder)
    return request.param, folder


@pytest.mark.slow
def test_pages_show_what_the_records_say(reported: tuple[str, Path]) -> None:
    page, folder = reported
    assert (folder / page).read_text(encoding="utf-8") == (ROOT / page).read_text(encoding="utf-8")  # else: make readme
    shown = {path.name for path in (folder / "docs" / "pictures").iterdir()}
    assert shown <= {path.name for path in (ROOT / "docs" / "pictures").iterdir()}


@pytest.mark.slow
def test_every_table_compiles_without_an_overfull_box(
    reported: tuple[str, Path], latex_complaints: Callable[[dict[str, str]], list[str]]
) -> None:
    files = sorted((reported[1] / "reports").glob("*/lite/table.tex"))
    assert files
    assert latex_complaints({file.parts[-3]: file.read_text(encoding="utf-8") for file in files}) == []


@pytest.mark.slow
def test_the_first_page_says_what_the_records_say(tmp_path: Path) -> None:
    for name in ("benchmarks", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    copy = tmp_path / "README.md"
    shutil.copy(ROOT / "README.md", copy)
    found = [word for records in FOLDERS for word in ("--records", str(records))]
    assert main(["front", "--scale", "lite", *found, "--readme", str(copy)]) == 0
    assert copy.read_text(encoding="utf-8") == (ROOT / "README.md").read_text(encoding="utf-8")  # else: make readme
