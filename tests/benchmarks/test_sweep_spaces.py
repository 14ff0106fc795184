"""What sweeps try: fields that a user names, ranges for TPE, and defaults for every table with training."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cli.arguments import build_parser
from benchmarks.cli.main import main
from benchmarks.cli.select import selection
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, with_settings
from benchmarks.fedsplitbert import figure6, setup, table3, table4
from benchmarks.overrides import field_value
from benchmarks.registry import benchmark, benchmark_ids, columns_of, rows_of, scale_of
from benchmarks.running.federation import build_clients, load_inputs
from benchmarks.running.run_options import RunOptions
from benchmarks.sweeps.plan import in_rounds, trial_cell, without_fields
from benchmarks.sweeps.space import LAYER, LAYERS, RATE, read_space, spaces
from benchmarks.sweeps.tuning import Range, Search, best_values
from fedsim.algorithms import algorithm_names, trains

TABLE = table3.BENCHMARK
DEMO, PAPER = (scale_of(TABLE, name) for name in ("demo", "paper"))
(MRPC,) = columns_of(TABLE, ["mrpc"])
FEDPROX, FEDADAM, SPLIT = rows_of(TABLE, ["fedprox", "fedadam", "fedsplitbert"])


def tried(table: Benchmark, scale: str, *words: str, methods: tuple[str, ...] = ()) -> dict[str, dict[str, object]]:
    """What a sweep of a table's first task tries, by row."""
    at = scale_of(table, scale)
    space = read_space(words, ())
    found = spaces(table, at, rows_of(table, list(methods), at), table.columns_at(at)[:1], bool(methods), space)
    return {row: dict(fields) for (_, row), fields in found.items()}


# ---- fields that a user names ------------------------------------------------------------------------------------


def test_values_are_read_as_set_reads_them() -> None:
    space = read_space(["a=0,4,4", "b=longest,fixed", "c=[1, 2],[3]", "d=true,null"], ["e=1e-5:1e-3:log", "f=0:12"])
    assert space == {
        "a": [0, 4],
        "b": ["longest", "fixed"],
        "c": [[1, 2], [3]],
        "d": [True, None],
        "e": Range(1e-5, 1e-3, log=True),
        "f": Range(0, 12, whole=True),
    }


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--grid", "training.learning_rate"], "expected field=values"),
        (["--grid", "training.batch_size=16,,32"], "found an empty one"),
        (["--grid", "seed=1,2"], "a sweep decides that itself"),
        (["--grid", f"{RATE}=1e-3", "--grid", f"{RATE}=1e-4"], "expected each field once"),
        (["--grid", f"{RATE}=NaN"], "expected a finite number"),
        (["--range", f"{RATE}=1:x"], "expected low:high"),
        (["--range", f"{RATE}=0:1:log", "--trials", "2"], "expected low above 0 and below high"),
        (["--range", f"{RATE}=1e-5:1e-3"], "expected --trials"),
        (["--grid", "training.speed=1"], "no training.speed to tune in it"),
        (["--grid", f"{LAYER}=6", "--methods", "fedavg"], "no options.critical_layer to tune in fedavg"),
        (["--grid", f"{LAYER}=6,13", "--methods", "fedsplitbert"], "critical layer 13: expected 0 to 12"),
        (["--grid", f"{RATE}=1e-3", "--set", f"{RATE}=1"], "this sweep decides training.learning_rate"),
        (["--grid", f"{RATE}=1e-3", "--adopt"], "takes what the definition tunes"),
        (["--rungs", "2,1"], "expected rising numbers of rounds"),
        (["--rungs", "1", "--pareto"], "--rungs: with --pareto"),
        (["--trials", "0"], "expected a whole number above 0"),
        (["--methods", "fedavg-fp16,fedprox"], "nothing to tune in fedavg-fp16; it tunes fedavg, fedprox, fedadam"),
        (["--methods", "fedadam", "--set", "options.server={}"], "decides options.server.learning_rate"),
        (["--methods", "fedprox", "--set", "holdout=test"], "decides holdout"),
    ],
)
def test_refusals_come_before_anything_is_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: str
) -> None:
    places = ["--results-dir", str(tmp_path), "--workers", "1", "--no-tracking"]
    assert main(["sweep", TABLE.id, "--tasks", "mrpc", *places, *words]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "sweeps" / "journal.log").exists()


def test_joint_grids_are_of_the_rows_that_have_all_fields() -> None:
    rates, layers = f"{RATE}=1e-3,2e-3", f"{LAYER}=0,6"
    assert set(tried(TABLE, "demo", rates)) >= {"fedavg", "central", "fedper", "fedsplitbert", "fedavg-finetuned"}
    assert not {"linear", "local-majority", "fedavg-prior"} & set(tried(TABLE, "demo", rates))
    joint = tried(TABLE, "demo", rates, layers)
    assert joint["fedsplitbert"] == {RATE: [1e-3, 2e-3], LAYER: [0, 6]}
    # "Local only" is c = 0 of the same method, and what begins from FedAvg would hand it a critical layer.
    assert not {"local-only", "fedsplitbert-chosen", "fedavg-finetuned", "fedavg"} & set(joint)
    assert set(tried(TABLE, "demo", layers, methods=("local-only",))) == {"local-only"}
    assert set(tried(TABLE, "demo", "options.embeddings=global,frozen")) >= {"fedavg", "fedsplitbert"}


def test_whole_ranges_are_of_any_number_where_the_field_is() -> None:
    space = read_space((), [f"{RATE}=1:2", f"{LAYER}=0:12"])
    (found,) = spaces(TABLE, DEMO, [SPLIT], [MRPC], True, space).values()
    assert found == {RATE: Range(1, 2), LAYER: Range(0, 12, whole=True)}


# ---- defaults ----------------------------------------------------------------------------------------------------


def test_methods_say_themselves_that_they_are_not_trained() -> None:
    assert {name for name in algorithm_names() if not trains(name)} == {
        *("linear", "local_majority", "local_prior", "nearest_neighbour", "token_majority", "unigram", "untrained")
    }


@pytest.mark.parametrize("benchmark_id", benchmark_ids())
def test_every_table_with_training_has_something_to_tune_at_every_scale(benchmark_id: str) -> None:
    table = benchmark(benchmark_id)
    for scale in table.scales:
        column, rows = table.columns_at(scale)[0], table.rows_at(scale)
        trained = {row.id for row in rows if trains(table.cell(row, column, scale, 0).algorithm)}
        if trained:
            found = tried(table, scale.id)
            assert found
            assert set(found) <= trained
            assert all(RATE in space or "proximal" in str(space) or "server" in str(space) for space in found.values())
        else:
            with pytest.raises(UserError, match="none is trained"):
                tried(table, scale.id)


def test_defaults_are_layers_and_steps_around_the_definitions_rate() -> None:
    found = tried(figure6.BENCHMARK, "demo")
    rates = [5e-4, 1e-3, 2e-3, 4e-3, 8e-3]
    assert found["fedavg"] == {RATE: rates}
    assert found["fedsplitbert"] == {LAYER: list(LAYERS), RATE: rates}
    assert "fedsplitbert-qat" not in found  # takes over FedSplitBERT's
    assert tried(table4.BENCHMARK, "demo")["c8"] == {RATE: rates}  # its layer is what makes the row
    assert tried(TABLE, "paper")["fedsplitbert"] == setup.AS_THE_PAPER.grids["fedsplitbert"]


# ---- cells of trials -----------------------------------------------------------------------------------------------


def test_critical_layers_are_scaled_as_the_definition_does() -> None:
    def layers(scale: str) -> list[int]:
        cells = [trial_cell(TABLE, SPLIT, MRPC, scale_of(TABLE, scale), 0, {LAYER: c}) for c in (0, 4, 6, 8)]
        return [field_value(cell, LAYER) for cell in cells]

    assert layers("paper") == [0, 4, 6, 8]  # of 12
    assert layers("lite") == [0, 2, 3, 4]  # of 6
    assert layers("demo") == [0, 1, 2, 3]  # of 4: 4/3 and 8/3 to the nearest


def test_a_nested_option_changes_nothing_else() -> None:
    cell = trial_cell(TABLE, FEDADAM, MRPC, PAPER, 3, {"options.server.learning_rate": 0.032})
    assert cell.options == {"server": {"name": "adam", "learning_rate": 0.032}}
    original = TABLE.cell(FEDADAM, MRPC, PAPER, 3)
    assert replace(cell, options=original.options, holdout="test") == original


def test_the_test_part_is_never_seen() -> None:
    tried = trial_cell(TABLE, FEDPROX, MRPC, DEMO, 0, {"options.proximal": 0.1})
    settings = RunOptions()
    inputs = load_inputs(tried, settings)
    table, _ = build_clients(replace(tried, holdout="test"), inputs, settings)
    tuning, _ = build_clients(tried, inputs, settings)
    for one, other in zip(table, tuning, strict=True):
        test, train = set(one.evaluation["test"].indices), set(one.train.indices)
        validation, fitted = set(other.evaluation["test"].indices), set(other.train.indices)
        assert validation
        assert not test & (validation | fitted)
        assert validation | fitted == train
        assert not validation & fitted


def test_rungs_and_study_names() -> None:
    assert in_rounds((0.25, 2), 16) == (4, 2)
    assert in_rounds((0.25,), 1) == (1,)
    cell = {"options": {"a": 1, "b": {"c": 2}}, "x": 3, "initial": {"options": {"a": 4}, "x": 5}}
    assert without_fields(cell, ["options.a", "options.b.c", "nothing.there"]) == {
        "options": {"b": {}},
        "x": 3,
        "initial": {"options": {}, "x": 5},
    }


# ---- what was swept -------------------------------------------------------------------------------------------------


def test_the_best_of_several_studies_is_taken_under_the_same_settings_alone() -> None:
    def entry(mean: float, label: str, **values: float) -> dict:
        best = {"mean": mean, "values": values}
        return {"task": "t", "method": "m", "scale": label, "score": "perplexity on …", "grid": values, "best": best}

    entries = [entry(3.0, "a", x=1), entry(2.0, "a", y=2), entry(1.0, "b", x=3), {**entry(0, "a"), "best": None}]
    assert best_values(entries, {"t": "a"}) == {("t", "m"): {"y": 2}}  # of a perplexity the lower one
    assert best_values(entries, {"u": "a"}) == {}


@pytest.mark.parametrize("method", ["fedavg-finetuned", "fedavg", "fedsplitbert", "fedsplitbert-chosen"])
def test_what_was_swept_of_a_row_enters_its_cells_as_set_does(method: str) -> None:
    values = {RATE: 0.5, "training.batch_size": 4}
    (row,) = rows_of(TABLE, [method])
    scale = replace(DEMO, search=Search(swept={("mrpc", method): values}))
    by_hand = with_settings(TABLE, [f"{name}={value}" for name, value in values.items()])
    cell = by_hand.cell(row, MRPC, DEMO, 0)
    assert TABLE.cell(row, MRPC, scale, 0) == cell
    assert cell.initial is None or cell.initial.training.learning_rate == 0.5


def test_run_takes_the_best_as_set_would(tmp_path: Path) -> None:
    values = {LAYER: 6, RATE: 2e-3}
    found = {"task": "mrpc", "method": "fedsplitbert", "scale": DEMO.label, "score": "f1 on validation data"}
    (tmp_path / "sweeps").mkdir()
    path = tmp_path / "sweeps" / f"{TABLE.id}-demo.json"
    path.write_text(json.dumps({"tunings": [found | {"best": {"mean": 0.5, "values": values}}]}), encoding="utf-8")

    def cells(*words: str, methods: str = "fedsplitbert,fedsplitbert-qat,fedavg") -> list:
        line = ["run", TABLE.id, "--tasks", "mrpc", "--methods", methods, "--results-dir", str(tmp_path), *words]
        return [cell for _, _, cell in selection(build_parser().parse_args(line)).cells()]

    split, quantised, fedavg = cells("--from-sweep")
    by_hand = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
    assert [split] == cells(*by_hand, methods="fedsplitbert")
    assert quantised.training.learning_rate == split.training.learning_rate  # tuned as FedSplitBERT
    assert fedavg == cells(methods="fedavg")[0]
    with pytest.raises(UserError, match="with the same --set"):
        cells("--from-sweep", "--set", "training.batch_size=8")
