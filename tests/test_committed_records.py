"""Committed records have the closed form's bytes and their answers, and every page shows them."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cli.main import main
from benchmarks.costs import WirePlan
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.errors import DependsOnTextsError
from benchmarks.predictions import has_predictions
from benchmarks.results import RunResult, read_result

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = sorted(ROOT.glob("benchmarks/*/records"))
PATHS = [path for folder in FOLDERS for path in sorted(folder.glob("*.json"))]
WITH_RECORDS = [word for folder in FOLDERS for word in ("--records", str(folder))]
PLANS: dict[str, WirePlan] = {}  # of cells whose bytes depend on no examples


def planned(record: RunResult, **options: Any) -> WirePlan:
    """The bytes of a record's run by shapes and its clients' numbers of training examples, with other options."""
    cell = replace(record.cell, options={**record.cell.options, **options})  # by its seed: sub-models are drawn
    examples = [client["train"] for client in record.clients]
    try:
        if cell.spec_id not in PLANS:
            PLANS[cell.spec_id] = wire_plan(cell)
        return PLANS[cell.spec_id]
    except DependsOnTextsError:
        return wire_plan(cell, examples=examples)


def check_bytes(record: RunResult) -> None:
    """Compare every round's bytes and the ledger's sum with the closed form; trimmed texts have only a bound."""
    try:
        plan = planned(record)
        counted = [(entry.up_bytes, entry.down_bytes) for entry in record.rounds]
        assert counted == [(each.up_bytes, each.down_bytes) for each in plan.rounds][: len(counted)]
        assert record.diverged or len(counted) == len(plan.rounds)
    except DependsOnTextsError:
        if not record.ledger:  # it counts what stands in texts, and sends nothing
            assert not any((record.setup_bytes, *(entry.up_bytes + entry.down_bytes for entry in record.rounds)))
            return
        plan = planned(record, features="padded")
        (only,) = record.rounds
        assert 0 < only.up_bytes < plan.up_bytes
        assert only.down_bytes == plan.down_bytes
    assert record.setup_bytes == plan.setup_bytes
    sent = sum(entry.up_bytes + entry.down_bytes for entry in record.rounds)
    assert sum(row.bytes for row in record.ledger) == plan.setup_bytes + sent
    assert all(row.bytes > 0 for row in record.ledger)  # so nothing stands in it where nothing was sent


SLOW = ("-fedbert_sequential-", "-fedbert_parallel-")  # whose shapes are followed through every batch


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] * any(name in path.stem for name in SLOW), id=path.stem)
        for path in PATHS
    ],
)
def test_a_record_is_of_committed_code_with_its_answers_and_the_bytes_of_the_closed_form(path):
    record = read_result(path)
    assert path.name == record.file_name
    assert record.environment["modified"] is False
    assert has_predictions(path.parent, record)
    check_bytes(record)


PAGES = {f"benchmarks/{folder.parent.name}/README.md": folder.parent.name for folder in FOLDERS}


@pytest.fixture(scope="module", params=PAGES)
def reported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A page, and the folder with its fresh rendering as by `make readme`, its pictures and its tables' files."""
    folder = tmp_path_factory.mktemp("reported")
    page = folder / request.param
    page.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / request.param, page)
    places = ["--readme", str(page), "--pictures", str(folder / "docs" / "pictures"), "--results-dir", str(folder)]
    assert main(["report", PAGES[request.param], "--scale", "lite", *WITH_RECORDS, *places]) == 0
    return request.param, folder


@pytest.mark.slow
def test_pages_show_what_the_records_say(reported):
    readme, folder = reported
    pages = {path.relative_to(folder).as_posix() for path in (folder / readme).parent.glob("pages/*.md")}
    for page in (readme, *pages):
        assert (folder / page).read_text(encoding="utf-8") == (ROOT / page).read_text(encoding="utf-8")  # make readme
    assert pages == {path.relative_to(ROOT).as_posix() for path in (ROOT / readme).parent.glob("pages/*.md")}
    shown = {path.name for path in (folder / "docs" / "pictures").iterdir()}
    assert shown <= {path.name for path in (ROOT / "docs" / "pictures").iterdir()}


@pytest.mark.slow
def test_every_table_compiles_without_an_overfull_box(reported, latex_complaints):
    files = sorted((reported[1] / "reports").glob("*/lite/table.tex"))
    assert files
    assert latex_complaints({file.parts[-3]: file.read_text(encoding="utf-8") for file in files}) == []


@pytest.mark.slow
def test_the_first_page_and_the_study_say_what_the_records_say(tmp_path):
    pages = "README.md", "docs/label-prior.md"
    (tmp_path / "docs").mkdir()
    for page in pages:
        shutil.copy(ROOT / page, tmp_path / page)
    places = ["--readme", str(tmp_path / "README.md"), "--picture", str(tmp_path / "docs" / "pictures" / "front.png")]
    assert main(["front", "--scale", "lite", *WITH_RECORDS, *places]) == 0
    for page in pages:
        assert (tmp_path / page).read_text(encoding="utf-8") == (ROOT / page).read_text(encoding="utf-8")  # make readme
