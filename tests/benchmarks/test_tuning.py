"""Searches: the same budget for every row, on data of their own, by rungs; definitions read what was chosen."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Scale, with_settings
from benchmarks.fedsplitbert import setup, table3, table4
from benchmarks.registry import benchmark, columns_of, rows_of, scale_of
from benchmarks.results import read_results
from benchmarks.run_config import JSON
from benchmarks.sweeps.plan import trial_cell
from benchmarks.sweeps.tuning import Search, read_sweep

(MRPC,) = columns_of(table3.BENCHMARK, ["mrpc"])
FEDAVG, FP16, SPLIT, QAT = rows_of(table3.BENCHMARK, ["fedavg", "fedavg-fp16", "fedsplitbert", "fedsplitbert-qat"])
RATES = (1e-4, 1e-3, 2e-3, 5e-3, 8e-3)
SHORT = ("--set", "training.max_length=16", "--set", "training.local_epochs=1", "--set", "training.rounds=2")


def choices(path: Path, **methods: Mapping[str, JSON]) -> Path:
    """A sweep's file in which this was best on MRPC."""
    found = [{"task": "mrpc", "method": name, "best": {"values": values}} for name, values in methods.items()]
    path.write_text(json.dumps({"tunings": found}), encoding="utf-8")
    return path


def searched(search: Search) -> tuple[Benchmark, Scale]:
    """The table with that search at the demo scale."""
    demo = dataclasses.replace(scale_of(table3.BENCHMARK, "demo"), search=search)
    return dataclasses.replace(table3.BENCHMARK, scales=(demo, *table3.BENCHMARK.scales[1:])), demo


# ---- what definitions read -----------------------------------------------------------------------------------------


def test_a_row_takes_what_was_chosen_for_it_and_gives_way_to_the_user(tmp_path: Path) -> None:
    values = {"training.learning_rate": 3e-3, "options.critical_layer": 9}
    table, demo = searched(Search(chosen=choices(tmp_path / "chosen.json", fedsplitbert=values)))
    cell = table.cell(SPLIT, MRPC, demo, 0)
    assert (cell.training.learning_rate, cell.options["critical_layer"]) == (3e-3, 3)  # 9 of 12 is 3 of 4
    mine = with_settings(table, ["training.learning_rate=0.5"]).cell(SPLIT, MRPC, demo, 0)
    assert (mine.training.learning_rate, mine.options["critical_layer"]) == (0.5, 3)
    rest = table.cell(FEDAVG, MRPC, demo, 0)
    assert rest == table3.BENCHMARK.cell(FEDAVG, MRPC, demo, 0)  # nothing was chosen for it


def test_settings_of_another_row_give_way_to_a_rows_own(tmp_path: Path) -> None:
    values = {"training.learning_rate": 3e-3, "options.critical_layer": 9}
    table, demo = searched(Search(chosen=choices(tmp_path / "chosen.json", fedsplitbert=values)))
    (c4,) = rows_of(table4.BENCHMARK, ["c4"])
    cell = table.cell(c4, MRPC, demo, 0)
    assert (cell.training.learning_rate, cell.options["critical_layer"]) == (3e-3, 1)
    quantised = table.cell(QAT, MRPC, demo, 0)
    assert (quantised.codec, quantised.training.learning_rate) == ("fp16", 3e-3)


def test_every_row_that_trains_is_tuned_or_takes_over_a_tuning() -> None:
    known = setup.MINIATURE.grids
    for table in (table3.BENCHMARK, table4.BENCHMARK):
        trained = [row for row in table.rows if row.algorithm in ("fedavg", "fedsplitbert")]
        assert {row.tuned_as or row.id for row in trained} <= set(known)


def test_every_method_has_the_same_budget_and_grid_of_rates() -> None:
    search = setup.MINIATURE
    assert search.trials is not None
    for grid in search.grids.values():
        assert grid["training.learning_rate"] == setup.RATES
        assert math.prod(map(len, grid.values())) >= search.trials
    assert min(setup.RATES) == 2e-5
    assert max(setup.RATES) == 4e-4
    assert not set(search.seeds) & set(range(100))


COMMITTED = sorted((Path(__file__).parents[2] / "benchmarks").glob("*/tuned/*.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_what_is_committed_names_the_data_and_the_encoder_of_its_task(path: Path) -> None:
    """They are a column's own, where it has some: SST-2's are not the tweets'."""
    found = json.loads(path.read_text(encoding="utf-8"))
    table = benchmark(found["benchmark"])
    scale = scale_of(table, found["scale"])
    for entry in read_sweep(path):
        (column,) = columns_of(table, [entry["task"]])
        assert entry["scale"] == table.label(scale, [column]), (entry["task"], entry["method"])


def test_a_damaged_file_of_choices_is_said(tmp_path: Path) -> None:
    path = tmp_path / "chosen.json"
    path.write_text("{", encoding="utf-8")
    table, demo = searched(Search(chosen=path))
    with pytest.raises(UserError, match="found a damaged file"):
        table.cell(FEDAVG, MRPC, demo, 0)


# ---- adopting ------------------------------------------------------------------------------------------------------


def sweep(folder: Path, *words: str) -> int:
    places = ["--results-dir", str(folder), "--workers", "1", "--no-tracking"]
    return main(["sweep", table3.BENCHMARK.id, "--tasks", "mrpc", "--methods", "fedavg", *SHORT, *places, *words])


def test_what_is_adopted_is_searched_on_data_of_its_own_and_read_by_definitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search({"fedavg": {"training.learning_rate": RATES}}, 1, seeds=(77,), chosen=tmp_path / "chosen.json")
    table, demo = searched(search)
    monkeypatch.setattr(table3, "BENCHMARK", table)
    assert sweep(tmp_path) == 0
    assert not (tmp_path / "chosen.json").exists()
    assert sweep(tmp_path, "--adopt") == 0
    (record,) = read_results(tmp_path / "records")  # computed once
    assert (record.cell.seed, record.cell.holdout) == (77, "validation")
    (entry,) = read_sweep(tmp_path / "chosen.json")
    cell = table.cell(FEDAVG, MRPC, demo, 0)
    assert cell.training.learning_rate == entry["best"]["values"]["training.learning_rate"]
    assert cell.training.learning_rate == table.cell(FP16, MRPC, demo, 0).training.learning_rate


def test_seeds_and_choices_that_are_not_the_searchs_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sweep(tmp_path, "--adopt") == 2
    assert "--adopt: fedsplitbert-table3 reads no choices at the scale demo" in capsys.readouterr().err
    table, _ = searched(Search({"fedavg": {"training.learning_rate": (1e-3,)}}, seeds=(77,)))
    monkeypatch.setattr(table3, "BENCHMARK", table)
    assert sweep(tmp_path, "--seeds", "3") == 0
    assert "this search has seeds of its own, which no table uses (77)" in capsys.readouterr().err
    assert [record.cell.seed for record in read_results(tmp_path / "records")] == [77]


def test_rows_without_a_choice_are_known(tmp_path: Path) -> None:
    path = choices(tmp_path / "chosen.json", fedavg={"training.learning_rate": 3e-3})
    table, demo = searched(Search({"fedavg": {}, "fedsplitbert": {}}, chosen=path))
    assert [row.id for row in table.untuned(MRPC, demo)] == ["fedsplitbert", "fedsplitbert-chosen", "fedsplitbert-qat"]
    paper = scale_of(table, "paper")
    assert table.untuned(MRPC, paper) == ()  # where definitions read no choices, none is lacking


def test_trials_may_be_shorter_than_the_tables_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only they are; a user's own change comes after the search's, and a swept value after both."""
    search = Search({"fedavg": {"training.learning_rate": RATES}}, changes={"training.local_epochs": 3})
    plain = table3.BENCHMARK
    table = dataclasses.replace(plain, scales=(dataclasses.replace(plain.scale("demo"), search=search),))
    scale, (row,), (column,) = table.scale("demo"), rows_of(table, ["fedavg"]), columns_of(table, ["mrpc"])
    whole = table.cell(row, column, scale, 0)
    trial = trial_cell(table, row, column, scale, 0, {})
    assert (whole.training.local_epochs, trial.training.local_epochs) == (5, 3)
    assert trial_cell(table, row, column, scale, 0, {"training.local_epochs": 2}).training.local_epochs == 2
    users = dataclasses.replace(table, overrides=(("training.local_epochs", 1),))
    assert trial_cell(users, row, column, scale, 0, {}).training.local_epochs == 1
