"""Rows, sweeps and --set change a cell through one function, which reaches every field; units are converted once."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from benchmarks.changes import ByScale, LayerUnit, field_value, with_changes
from benchmarks.cli.main import main
from benchmarks.customise import with_settings
from benchmarks.errors import UserError
from benchmarks.fedsplitbert.setup import FEDAVG, FEDSPLITBERT, LAYERS_IN_PRINT
from benchmarks.plain import LATER, built, plain
from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.spec import Benchmark, Cell, Column, Row, Scale, Training

pytestmark = pytest.mark.usefixtures("untuned")

TABLE = benchmark("fedsplitbert-table3")
LITE = TABLE.scale("lite")
CellsOf = Callable[..., list[Cell]]

CHANGES: dict[str, Any] = {
    "task_version": 2,
    "clients": 7,
    "partition": {"scheme": "equal"},
    "partition.size": 9,
    "algorithm": "central",
    "options.server.tau": 0.5,
    "training.rounds": 9,
    "training.learning_rate": 0.25,
    "training.participation": 0.5,
    "training.padding": "fixed",
    "training.decay": 0.7,
    "codec": "fp16",
    "test_share": 0.5,
    "holdout": "validation",
    "engine_version": 3,
    "head": "psum",
    "validation_share": 0.2,
    "data_seed": 4,
    "grouped": True,
}


def cell_of(row: Row, table: Benchmark = TABLE, scale: Scale = LITE) -> Cell:
    return table.cell(row, table.columns[0], scale, 0)


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_and_a_user_reach_the_same_fields(name: str) -> None:
    value = CHANGES[name]
    by_row = cell_of(FEDAVG.changed({name: value}))
    text = value if isinstance(value, str) else json.dumps(value)
    by_user = cell_of(FEDAVG, with_settings(TABLE, [f"{name}={text}"]))
    assert by_row == by_user
    assert field_value(by_row, name) == value
    assert type(field_value(by_row, name)) is type(value)
    assert by_row.spec_id != cell_of(FEDAVG).spec_id


def test_a_users_change_comes_after_the_rows() -> None:
    row = FEDAVG.changed({"training.rounds": 2, "head": "psum"})
    assert cell_of(row, with_settings(TABLE, ["training.rounds=5"])).training.rounds == 5
    assert cell_of(row, with_settings(TABLE, ["training.rounds=5"])).head == "psum"


@pytest.mark.parametrize("benchmark_id", benchmark_ids())
def test_no_table_ignores_what_a_row_changes(benchmark_id: str) -> None:
    """As FedSplitBERT's did with `head`."""
    table = benchmark(benchmark_id)
    for scale in table.scales:
        changed = cell_of(table.rows[0].changed({"head": "hsum", "codec": "bf16", "clients": 4}), table, scale)
        assert (changed.head, changed.codec, changed.clients) == ("hsum", "bf16", 4)


def test_all_options_at_once_are_each_of_them() -> None:
    whole = Row("x", "X", {"algorithm": "fedsplitbert", "options": {"critical_layer": 6, "server": {"tau": 1.0}}})
    each = Row("x", "X", {"algorithm": "fedsplitbert", "options.critical_layer": 6, "options.server.tau": 1.0})
    assert cell_of(whole) == cell_of(each)
    assert cell_of(whole).options == {"critical_layer": 3, "server": {"tau": 1.0}}
    assert whole.options == each.options == {"critical_layer": 6, "server": {"tau": 1.0}}
    fewer = FEDSPLITBERT.changed({"options": {"embeddings": "global"}})
    assert (
        cell_of(fewer).options == cell_of(each.changed({"options": fewer.options})).options == {"embeddings": "global"}
    )
    assert each.changed({"options.server": {"tau": 2.0}}).options == {"critical_layer": 6, "server": {"tau": 2.0}}


def test_a_value_may_depend_on_the_scale() -> None:
    row = FEDAVG.changed({"training.rounds": ByScale({"demo": 1}, otherwise=8)})
    rounds = [cell_of(row, scale=scale).training.rounds for scale in TABLE.scales]
    assert rounds == [1, 8, 8, 8]
    layers = {"options.critical_layer": ByScale({"demo": 12}, otherwise=6)}
    found = [cell_of(FEDSPLITBERT.changed(layers), scale=scale).options["critical_layer"] for scale in TABLE.scales]
    assert found == [4, 3, 3, 6]
    (value,) = layers.values()
    assert TABLE.shown("options.critical_layer", value, LITE) == "c = 6 of 12 (3 of 6 layers)"
    assert TABLE.shown("options.critical_layer", value) == "critical_layer=6 (12 at demo)"


@pytest.mark.parametrize(
    "name", ["training.round", "mood", "training.rounds.x", "head.x", "scale", "backbone", "seed.x"]
)
def test_an_unknown_field_is_refused_with_all_that_are_known(name: str) -> None:
    expected = rf"--set {name}: unknown field; expected one of .*clients, .*options\.<name>, training\.rounds, .*head"
    with pytest.raises(UserError, match=expected):
        cell_of(FEDAVG.changed({name: 1}))


# ---- fields that come later ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Steps:
    """A group of settings, one of which it got later."""

    rounds: int
    schedule: str = field(default="constant", metadata=LATER)
    clip_norm: float | None = field(default=None, metadata=LATER)


@dataclass(frozen=True)
class Stage:
    """A cell that may begin from another."""

    task: str
    training: Steps
    options: dict[str, Any] = field(default_factory=dict)
    initial: Stage | None = field(default=None, metadata=LATER)


def test_later_fields_at_their_default_are_left_out_at_every_depth() -> None:
    first = Stage("mlm", Steps(3))
    assert plain(first) == {"task": "mlm", "training": {"rounds": 3}, "options": {}}
    second = Stage("mrpc", Steps(2, clip_norm=1.0), initial=first)
    assert plain(second) == {
        "task": "mrpc",
        "training": {"rounds": 2, "clip_norm": 1.0},
        "options": {},
        "initial": plain(first),
    }
    for stage in (first, second, Stage("x", Steps(1, "linear"), {"server": {"tau": 1.0}}, second)):
        assert built(Stage, json.loads(json.dumps(plain(stage)))) == stage
    with pytest.raises(TypeError, match="mood"):
        built(Stage, {**plain(first), "mood": 1})


def test_later_fields_can_be_set_at_every_depth() -> None:
    stage = Stage("mrpc", Steps(2), initial=Stage("mlm", Steps(3)))
    changed = with_changes(
        stage,
        [("training.clip_norm", 1), ("initial.training.schedule", "linear"), ("initial.options.a", 5)],
    )
    assert changed == Stage("mrpc", Steps(2, clip_norm=1.0), initial=Stage("mlm", Steps(3, "linear"), {"a": 5}))
    assert with_changes(changed, [("training.clip_norm", None), ("initial", None)]) == Stage("mrpc", Steps(2))
    with pytest.raises(UserError, match=r"--set training\.clip_norm: expected float or null such as None, found 'x'"):
        with_changes(stage, [("training.clip_norm", "x")])


def test_a_cells_own_later_fields_decide_its_id_only_when_they_are_set() -> None:
    cell = cell_of(FEDAVG, scale=TABLE.scale("literal"))
    assert "head" not in cell.to_json()
    assert Cell.from_json(cell.to_json()) == dataclasses.replace(cell, partition=cell.to_json()["partition"])
    assert Cell.from_json({**cell.to_json(), "head": "psum"}).head == "psum"
    assert isinstance(Cell.from_json(cell.to_json()).training, Training)


# ---- the critical layer's unit -----------------------------------------------------------------------------------


def test_a_critical_layer_is_converted_in_one_place_for_rows_and_users() -> None:
    for scale, expected in (("demo", 3), ("lite", 4), ("paper", 8)):
        at = TABLE.scale(scale)
        by_row = cell_of(FEDSPLITBERT.changed({"options.critical_layer": 8}), scale=at)
        changed = with_settings(TABLE, ["options.critical_layer=8"])
        assert by_row.options == cell_of(FEDSPLITBERT, changed, at).options == {"critical_layer": expected}
    by_task = FEDSPLITBERT.changed({"options.critical_layer": LAYERS_IN_PRINT})
    paper = TABLE.scale("paper")
    found = {column.task: TABLE.cell(by_task, column, paper, 0).options["critical_layer"] for column in TABLE.columns}
    assert found == LAYERS_IN_PRINT


def test_both_units_are_shown() -> None:
    unit = LayerUnit("critical layer", of=12)
    assert unit.shown(6) == unit.shown(6, 12) == "c = 6 of 12"
    assert unit.shown(6, 6) == "c = 6 of 12 (3 of 6 layers)"
    assert unit.shown({"rte": 8, "cola": 6}) == "c of 12 by task: rte 8, cola 6"
    changed = with_settings(TABLE, ["options.critical_layer=8", "codec=fp16"]).scale("lite")
    assert changed.label.endswith("; changed: options.critical_layer=8 (c = 8 of 12 (4 of 6 layers)), codec=fp16")


@pytest.mark.parametrize("value", [13, -1, 1.5, "six", True, None, {"other-task": 6}])
def test_what_is_no_layer_of_the_paper_is_refused(value: Any) -> None:
    with pytest.raises(UserError, match=r"critical layer .*: expected 0 to 12, of the paper's 12 layers"):
        cell_of(FEDSPLITBERT.changed({"options.critical_layer": value}))


def test_show_and_plan_name_the_papers_unit(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    assert main(["show", TABLE.id]) == 0
    assert "FedSplitBERT: fedsplitbert, c = 6 of 12\n" in capsys.readouterr().out
    words = ["--scale", "lite", "--tasks", "mrpc", "--methods", "fedavg,fedsplitbert,fedsplitbert-qat"]
    assert main(["plan", TABLE.id, *words, "--results-dir", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "Critical layer c = 6 of 12 (3 of 6 layers): FedSplitBERT, FedSplitBERT + qat." in said


def test_a_column_and_a_row_of_a_users_own() -> None:
    column = Column("rte", "RTE", ("test/accuracy",), "test/accuracy")
    row = Row("mine", "Mine", {"algorithm": "fedsplitbert", "options.critical_layer": 12, "head": "average"})
    cell = TABLE.cell(row, column, LITE, 4)
    assert (cell.task, cell.head, cell.options, cell.seed) == ("rte", "average", {"critical_layer": 6}, 4)
    assert (row.algorithm, row.options, row.codec, row.head) == (
        "fedsplitbert",
        {"critical_layer": 12},
        "fp32",
        "average",
    )
