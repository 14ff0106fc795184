"""What sweeps try: fields that a user names, ranges for TPE, and defaults for every table with training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Column, Row
from benchmarks.fedsplitbert import paper, tables
from benchmarks.registry import benchmark, benchmark_ids, columns_of, rows_of, scale_of
from benchmarks.run_config import RunConfig
from benchmarks.running.federation import build_clients, load_inputs
from benchmarks.running.run_options import RunOptions
from benchmarks.sweeps.space import LAYER, LAYERS, RATE, Tuning, planned, read_space, spaces, without_fields
from benchmarks.sweeps.tuning import Range, Values
from fedsim.algorithms import trains

TABLE = tables.TABLE3
(MRPC,) = columns_of(TABLE, ["mrpc"])
FEDPROX, FEDADAM, SPLIT = rows_of(TABLE, ["fedprox", "fedadam", "fedsplitbert"])


def tried(table: Benchmark, scale: str, *args: str, methods: tuple[str, ...] = ()) -> dict[str, dict[str, object]]:
    """What a sweep of a table's first task tries, by row."""
    at = scale_of(table, scale)
    rows, columns = rows_of(table, list(methods), at), table.columns_at(at)[:1]
    entries = spaces(table, at, rows, columns, bool(methods), read_space(args, ()))
    return {row: dict(fields) for (_, row), fields in entries.items()}


def trial_cell(row: Row, scale: str, seed: int, values: Values, column: Column = MRPC) -> RunConfig:
    (cell,) = Tuning(TABLE, scale_of(TABLE, scale), row, column, (seed,), {}).cells(values)
    return cell


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
    ("args", "expected"),
    [
        (["--grid", "training.learning_rate"], "expected field=values"),
        (["--grid", "seed=1,2"], "a sweep decides that itself"),
        (["--grid", f"{RATE}=1e-3", "--grid", f"{RATE}=1e-4"], "expected each field once"),
        (["--range", f"{RATE}=0:1:log", "--trials", "2"], "expected low above 0 and below high"),
        (["--range", f"{RATE}=1e-5:1e-3"], "expected --trials"),
        (["--grid", f"{LAYER}=6", "--methods", "fedavg"], "no options.critical_layer to tune in fedavg"),
        (["--grid", f"{LAYER}=6,13", "--methods", "fedsplitbert"], "critical layer 13: expected 0 to 12"),
        (["--grid", f"{RATE}=1e-3", "--set", f"{RATE}=1"], "this sweep decides training.learning_rate"),
        (["--grid", f"{RATE}=1e-3", "--adopt"], "takes what the definition tunes"),
        (["--rungs", "1", "--pareto"], "--rungs: with --pareto"),
        (["--methods", "fedavg-fp16,fedprox"], "nothing to tune in fedavg-fp16; it tunes fedavg, fedprox, fedadam"),
        (["--methods", "fedadam", "--set", "options.server={}"], "decides options.server.learning_rate"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], expected: str
) -> None:
    places = ["--results-dir", str(tmp_path), "--workers", "1", "--no-tracking"]
    assert main(["sweep", TABLE.id, "--tasks", "mrpc", *places, *args]) == 2
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "sweeps" / "journal.log").exists()


def test_joint_grids_are_tried_on_the_rows_that_have_all_fields() -> None:
    rates, layers = f"{RATE}=1e-3,2e-3", f"{LAYER}=0,6"
    assert set(tried(TABLE, "demo", rates)) >= {"fedavg", "central", "fedper", "fedsplitbert", "fedavg-finetuned"}
    assert not {"linear", "local-majority", "fedavg-prior"} & set(tried(TABLE, "demo", rates))
    joint = tried(TABLE, "demo", rates, layers)
    assert joint["fedsplitbert"] == {RATE: [1e-3, 2e-3], LAYER: [0, 6]}
    # "Local only" is c = 0 of the same method, and a row that begins from FedAvg would hand it a critical layer.
    assert not {"local-only", "fedsplitbert-chosen", "fedavg-finetuned", "fedavg"} & set(joint)
    assert set(tried(TABLE, "demo", layers, methods=("local-only",))) == {"local-only"}
    assert set(tried(TABLE, "demo", "options.embeddings=global,frozen")) >= {"fedavg", "fedsplitbert"}


# ---- defaults ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("benchmark_id", benchmark_ids())
def test_every_table_with_training_has_something_to_tune_at_every_scale(benchmark_id: str) -> None:
    table = benchmark(benchmark_id)
    for scale in table.scales:
        column, rows = table.columns_at(scale)[0], table.rows_at(scale)
        trained = {row.id for row in rows if trains(table.cell(row, column, scale, 0).algorithm)}
        if not trained:
            with pytest.raises(UserError, match="none is trained"):
                tried(table, scale.id)
            continue
        entries = tried(table, scale.id)
        assert entries.keys() <= trained
        assert all(RATE in space or "proximal" in str(space) or "server" in str(space) for space in entries.values())


def test_defaults_are_layers_and_steps_around_the_definitions_rate() -> None:
    entries = tried(tables.FIGURE6, "demo")
    rates = [5e-4, 1e-3, 2e-3, 4e-3, 8e-3]
    assert entries["fedavg"] == {RATE: rates}
    assert entries["fedsplitbert"] == {LAYER: list(LAYERS), RATE: rates}
    assert "fedsplitbert-qat" not in entries  # takes over FedSplitBERT's
    assert tried(tables.TABLE4, "demo")["c8"] == {RATE: rates}  # its layer is what makes the row
    assert tried(TABLE, "paper")["fedsplitbert"] == paper.AS_THE_PAPER.grids["fedsplitbert"]


# ---- cells of trials -----------------------------------------------------------------------------------------------


def test_critical_layers_are_scaled_as_the_definition_does() -> None:
    """To 12, 6 and 4 layers: 4/3 and 8/3 to the nearest."""
    for scale, expected in {"paper": [0, 4, 6, 8], "lite": [0, 2, 3, 4], "demo": [0, 1, 2, 3]}.items():
        assert [trial_cell(SPLIT, scale, 0, {LAYER: c}).options["critical_layer"] for c in (0, 4, 6, 8)] == expected


def test_the_test_part_is_never_seen() -> None:
    trial = trial_cell(FEDPROX, "demo", 0, {"options.proximal": 0.1})
    settings = RunOptions()
    inputs = load_inputs(trial, settings)
    table, _ = build_clients(replace(trial, holdout="test"), inputs, settings)
    tuning, _ = build_clients(trial, inputs, settings)
    for one, other in zip(table, tuning, strict=True):
        test, train = set(one.evaluation["test"].indices), set(one.train.indices)
        validation, fitted = set(other.evaluation["test"].indices), set(other.train.indices)
        assert validation | fitted == train
        assert validation
        assert not test & train
        assert not validation & fitted


def test_rungs_and_study_names() -> None:
    tuning = Tuning(TABLE, TABLE.scale("demo"), SPLIT, MRPC, (0,), {RATE: (1e-3, 2e-3)})
    rounds = tuning.cells({})[0].training.rounds
    first = planned(tuning, (0.25, 2), RunOptions())
    assert first.rungs == (round(rounds / 4), 2)
    assert first.study.startswith("fedsplitbert-table3/demo/mrpc/fedsplitbert/")
    further = planned(replace(tuning, space={RATE: (5e-3,)}), (0.25, 2), RunOptions())
    assert further.study == first.study  # further values extend the study
    assert planned(tuning, (1,), RunOptions()).study != first.study
    cell = {"options": {"a": 1, "b": {"c": 2}}, "x": 3, "initial": {"options": {"a": 4}, "x": 5}}
    left = {"options": {"b": {}}, "x": 3, "initial": {"options": {}, "x": 5}}
    assert without_fields(cell, ["options.a", "options.b.c", "nothing.there"]) == left
