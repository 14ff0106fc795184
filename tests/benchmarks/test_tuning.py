"""A sweep's trials, with one budget for all rows on separate data; definitions and --from-sweep read the choices."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import registry
from benchmarks.cli.arguments import build_parser, selection
from benchmarks.cli.main import main
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Scale
from benchmarks.fedsplitbert import tables
from benchmarks.registry import benchmark, benchmark_ids, columns_of, rows_of, scale_of
from benchmarks.results import read_results
from benchmarks.run_config import JSON
from benchmarks.selection import part_of, with_settings
from benchmarks.sweeps.space import read_grid, spaces
from benchmarks.sweeps.tuning import Search, best_values, read_sweep
from tests.conftest import ROOT

LAYER, RATE = "options.critical_layer", "training.learning_rate"
TABLE = tables.TABLE3
(MRPC,) = columns_of(TABLE, ["mrpc"])
FEDAVG, FP16, FEDPROX, SPLIT, QAT = rows_of(
    TABLE, ["fedavg", "fedavg-fp16", "fedprox", "fedsplitbert", "fedsplitbert-qat"]
)
SHORT = ("--set", "training.max_length=16", "--set", "training.local_epochs=1", "--set", "training.rounds=2")


# ---- fields that a user names ------------------------------------------------------------------------------------


def test_values_are_read_as_set_reads_them():
    space = read_grid(["a=0,4,4", "b=longest,fixed", "c=[1, 2],[3]", "d=true,null"])
    assert space == {
        "a": [0, 4],
        "b": ["longest", "fixed"],
        "c": [[1, 2], [3]],
        "d": [True, None],
    }


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--grid", "training.learning_rate"], "expected field=values"),
        (["--grid", "seed=1,2"], "a sweep decides that itself"),
        (["--grid", f"{RATE}=1e-3", "--grid", f"{RATE}=1e-4"], "expected each field once"),
        (["--grid", f"{LAYER}=6", "--methods", "fedavg"], "no options.critical_layer to tune in fedavg"),
        (["--grid", f"{LAYER}=6,13", "--methods", "fedsplitbert"], "critical layer 13: expected 0 to 12"),
        (["--grid", f"{RATE}=-1"], f"--grid {RATE}: expected a number above 0, found -1"),
        (["--grid", f"{RATE}=1e-3", "--set", f"{RATE}=1"], "the sweep tunes training.learning_rate"),
        (["--grid", f"{RATE}=1e-3", "--adopt"], "expected the definition's grid, found --grid"),
        (["--methods", "fedavg-fp16,fedprox"], "nothing to tune in fedavg-fp16 at the scale demo; the definition"),
        (["--methods", "fedadam", "--set", "options.server={}"], "tunes options.server.learning_rate"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(tmp_path, capsys, args, expected):
    places = ["--results-dir", str(tmp_path), "--workers", "1", "--no-tracking"]
    assert main(["sweep", TABLE.id, "--tasks", "mrpc", *places, *args]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "sweeps" / "journal.log").exists()


@pytest.mark.parametrize("benchmark_id", benchmark_ids())
def test_a_sweep_tunes_what_the_definition_declares(benchmark_id):
    table = benchmark(benchmark_id)
    for scale in table.scales:
        declared, columns, rows = table.search(scale).grids, table.columns_at(scale)[:1], table.rows_at(scale)
        grids = {row.id: declared[row.id] for row in rows if row.id in declared}
        if grids:
            entries = spaces(table, scale, rows, columns, False, {})
            assert {row: fields for (_, row), fields in entries.items()} == grids
        else:
            with pytest.raises(UserError, match="the definition tunes no method; --grid tunes other fields, such as"):
                spaces(table, scale, rows, columns, False, {})


# ---- choices that definitions read ---------------------------------------------------------------------------------


def choices(path: Path, task: str = "mrpc", label: str = "", **methods: Mapping[str, JSON]) -> Path:
    """A sweep's file in which these values were best on a task. label: the scale's."""
    entries = [
        {"task": task, "method": name, "scale": label, "score": "f1 on …", "best": {"mean": 0.5, "values": values}}
        for name, values in methods.items()
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"tunings": entries}), encoding="utf-8")
    return path


def searched(search: Search) -> tuple[Benchmark, Scale]:
    """The table with that search at the demo scale."""
    demo = replace(scale_of(TABLE, "demo"), search=search)
    return replace(TABLE, scales=(demo, *TABLE.scales[1:])), demo


def test_a_row_takes_its_choice_and_gives_way_to_the_user_and_to_a_rows_changes(tmp_path):
    table, demo = searched(Search(chosen=choices(tmp_path / "chosen.json", fedsplitbert={RATE: 3e-3, LAYER: 9})))
    cell = table.cell(SPLIT, MRPC, demo, 0)
    assert (cell.training.learning_rate, cell.options["critical_layer"]) == (3e-3, 3)  # 9 of 12 is 3 of 4
    changed = with_settings(table, [f"{RATE}=0.5"]).cell(SPLIT, MRPC, demo, 0)
    assert (changed.training.learning_rate, changed.options["critical_layer"]) == (0.5, 3)
    assert table.cell(FEDAVG, MRPC, demo, 0) == TABLE.cell(FEDAVG, MRPC, demo, 0)  # nothing was chosen for it
    (c4,) = rows_of(tables.TABLE4, ["c4"])
    cell = table.cell(c4, MRPC, demo, 0)
    assert (cell.training.learning_rate, cell.options["critical_layer"]) == (3e-3, 1)
    quantised = table.cell(QAT, MRPC, demo, 0)
    assert (quantised.codec, quantised.training.learning_rate) == ("fp16", 3e-3)


def test_a_rows_own_choice_overrides_that_of_the_row_it_is_tuned_as(tmp_path):
    path = choices(tmp_path / "chosen.json", **{SPLIT.id: {RATE: 3e-3, LAYER: 9}, QAT.id: {RATE: 4e-3}})
    table, demo = searched(Search(chosen=path))
    quantised = table.cell(QAT, MRPC, demo, 0)
    assert (quantised.codec, quantised.training.learning_rate) == ("fp16", 4e-3)
    assert table.cell(SPLIT, MRPC, demo, 0).training.learning_rate == 3e-3


def test_committed_choices_name_the_data_and_the_encoder_of_their_task_and_definitions_take_them():
    paths = list((ROOT / "benchmarks").glob("*/tuned/*.json"))
    assert len(paths) >= 5
    for path in paths:
        content = json.loads(path.read_text(encoding="utf-8"))
        table = benchmark(content["benchmark"])
        for entry in read_sweep(path):
            (column,), scale = columns_of(table, [entry["task"]]), scale_of(table, content["scale"])
            assert entry["scale"] == table.label(scale, [column]), path
            taken = dict(table.changes(table.row(entry["method"]), column, scale))
            assert taken == taken | entry["best"]["values"], (path, entry["method"])


def test_a_damaged_file_of_choices_is_named(tmp_path):
    path = choices(tmp_path / "chosen.json", fedavg={RATE: 3e-3})
    table, demo = searched(Search(chosen=path))
    whole = path.read_text(encoding="utf-8")
    for text in ("{", whole.replace("task", "tusk"), whole.replace("values", "value")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match="found a damaged file"):
            table.cell(FEDAVG, MRPC, demo, 0)


def sweep(folder: Path, *args: str) -> int:
    places = ["--results-dir", str(folder), "--workers", "1", "--no-tracking"]
    return main(["sweep", TABLE.id, "--tasks", "mrpc", "--methods", "fedavg", *SHORT, *places, *args])


@pytest.mark.slow
def test_adopted_choices_come_from_separate_data_and_are_read_by_definitions(tmp_path, capsys, monkeypatch):
    assert sweep(tmp_path, "--adopt") == 2
    assert "expected a definition with a file for choices, found none" in capsys.readouterr().err
    search = Search({"fedavg": {RATE: (1e-4, 1e-3, 2e-3)}}, 1, seeds=(77,), chosen=tmp_path / "chosen.json")
    table, demo = searched(search)
    monkeypatch.setattr(registry, "_of_paper", registry._of_paper.__wrapped__)  # a cached list has the other table
    monkeypatch.setattr(tables, "BENCHMARKS", (table,))
    assert sweep(tmp_path, "--seeds", "3") == 0
    assert "--seeds and --seed are ignored: this sweep uses seeds that no table uses (77)" in capsys.readouterr().err
    assert not (tmp_path / "chosen.json").exists()
    assert sweep(tmp_path, "--adopt") == 0
    (record,) = read_results(tmp_path / "records")  # computed once
    assert (record.cell.seed, record.cell.holdout) == (77, "validation")
    (entry,) = read_sweep(tmp_path / "chosen.json")
    cell = table.cell(FEDAVG, MRPC, demo, 0)
    assert cell.training.learning_rate == entry["best"]["values"][RATE]
    assert cell.training.learning_rate == table.cell(FP16, MRPC, demo, 0).training.learning_rate


def test_the_best_of_several_studies_is_taken_under_the_same_settings_alone():
    def entry(mean: float, label: str, **values: float) -> dict:
        best = {"mean": mean, "values": values}
        return {"task": "t", "method": "m", "scale": label, "score": "perplexity on …", "grid": values, "best": best}

    entries = [entry(3.0, "a", x=1), entry(2.0, "a", y=2), entry(1.0, "b", x=3), {**entry(0, "a"), "best": None}]
    assert best_values(entries, {"t": "a"}) == {("t", "m"): {"y": 2}}  # of a perplexity the lower one
    assert best_values(entries, {"u": "a"}) == {}


def test_run_takes_the_best_as_set_would(tmp_path):
    values = {LAYER: 6, RATE: 2e-3}
    choices(tmp_path / "sweeps" / f"{TABLE.id}-demo.json", label=scale_of(TABLE, "demo").label, fedsplitbert=values)

    def cells(*args: str, methods: str = "fedsplitbert,fedsplitbert-qat,fedavg") -> list:
        line = ["run", TABLE.id, "--tasks", "mrpc", "--methods", methods, "--results-dir", str(tmp_path), *args]
        return [cell for _, _, cell in selection(build_parser().parse_args(line)).cells()]

    split, quantised, fedavg = cells("--from-sweep")
    by_hand = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
    assert [split] == cells(*by_hand, methods="fedsplitbert")
    assert quantised.training.learning_rate == split.training.learning_rate  # tuned as FedSplitBERT
    assert fedavg == cells(methods="fedavg")[0]
    with pytest.raises(UserError, match="with the same --set"):
        cells("--from-sweep", "--set", "training.batch_size=8")


def test_a_table_takes_the_sweep_of_another_until_it_has_its_own(tmp_path):
    def swept(table: str, rate: float) -> None:
        path, label = tmp_path / "sweeps" / f"{table}-lite.json", benchmark(table).scale("lite").label
        choices(path, "sst2", label, fedit={RATE: rate})

    def rates(table: str, *methods: str) -> set[float]:
        chosen = part_of(table, "lite", methods, ["sst2"]).with_sweep(tmp_path)
        assert not chosen.benchmark.search(chosen.scale).is_open("sst2", "fedit")
        return {cell.training.learning_rate for _, _, cell in chosen.cells()}

    swept("fedpeft-scores", 4e-3)
    assert rates("fedpeft-onelabel", "fedit") == rates("fedpeft-localwork", "fedit-few", "fedit-many") == {4e-3}
    swept("fedpeft-onelabel", 2e-3)
    assert rates("fedpeft-onelabel", "fedit") == {2e-3}
