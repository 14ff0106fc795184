"""Changes reach the cell from which a cell begins, too: its fields, its options and their units."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from benchmarks.changes import ByScale, LayerUnit, field_value, options_in
from benchmarks.customise import with_settings
from benchmarks.errors import UserError
from benchmarks.fedsplitbert.setup import FEDAVG, FEDSPLITBERT
from benchmarks.registry import benchmark
from benchmarks.spec import Benchmark, Cell, Column, Row, Scale

TABLE = benchmark("fedsplitbert-table3")
LITE = TABLE.scale("lite")
UNIT = LayerUnit("local layers", of=12, symbol="m^L", least=1)


def cell_of(row: Row, table: Benchmark = TABLE) -> Cell:
    return table.cell(row, table.columns[0], table.scale("lite"), 0)


def staged() -> Benchmark:
    """The table with cells that begin from FedSplitBERT's."""

    def base(row: Row, column: Column, scale: Scale, seed: int) -> Cell:
        first = TABLE.cell(FEDSPLITBERT, column, scale, 7)
        return dataclasses.replace(TABLE.base(row, column, scale, seed), initial=first)

    units = {"initial.options.critical_layer": UNIT}
    return dataclasses.replace(TABLE, base=base, paper=dataclasses.replace(TABLE.paper, units=units))


def first_of(row: Row, table: Benchmark) -> Cell:
    first = cell_of(row, table).initial
    assert first is not None
    return first


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("initial.algorithm", "central"),
        ("initial.training.rounds", 4),
        ("initial.training.decay", 0.5),
        ("initial.options.embeddings", "global"),
        ("initial.seed", 3),
        ("initial.head", "psum"),
    ],
)
def test_changes_reach_the_cell_before(name: str, value: Any) -> None:
    row = FEDAVG.changed({name: value})
    text = value if isinstance(value, str) else json.dumps(value)
    assert cell_of(row, staged()) == cell_of(FEDAVG, with_settings(staged(), [f"{name}={text}"]))
    assert field_value(cell_of(row, staged()), name) == value
    assert dataclasses.replace(cell_of(row, staged()), initial=None) == cell_of(FEDAVG, TABLE)


def test_options_of_the_cell_before_are_set_at_once_or_each() -> None:
    whole = FEDAVG.changed({"initial.options": {"critical_layer": 8, "embeddings": "global"}})
    each = FEDAVG.changed({"initial.options.critical_layer": 8, "initial.options.embeddings": "global"})
    assert first_of(whole, staged()).options == {"critical_layer": 4, "embeddings": "global"}
    assert cell_of(whole, staged()) == cell_of(each, staged())
    assert options_in(whole.changes, "initial.options") == {"critical_layer": 8, "embeddings": "global"}
    assert whole.options == FEDAVG.options
    by_scale = FEDAVG.changed({"initial.options": {"critical_layer": ByScale({"lite": 4}, otherwise=6)}})
    assert first_of(by_scale, staged()).options == {"critical_layer": 2}


def test_a_cell_may_begin_from_none_or_from_another() -> None:
    alone = FEDAVG.changed({"initial": None})
    assert cell_of(alone, staged()) == cell_of(FEDAVG)
    other = cell_of(FEDSPLITBERT)
    assert cell_of(FEDAVG.changed({"initial": other})).initial == other
    assert cell_of(FEDAVG, with_settings(staged(), ["initial=null"])).initial is None
    with pytest.raises(UserError, match=r"--set initial.seed: expected a cell with initial, .* found one without it"):
        cell_of(alone.changed({"initial.seed": 1}), TABLE)
    with pytest.raises(KeyError):
        field_value(cell_of(alone), "initial.seed")
    fixed = FEDAVG.changed({"initial": None}, fixed=("initial",))  # no --set on stages is for it
    assert cell_of(fixed, with_settings(staged(), ["initial.seed=1", "training.rounds=9"])).initial is None
    assert first_of(FEDAVG, with_settings(staged(), ["initial.seed=1"])).seed == 1


@pytest.mark.parametrize("name", ["scale", "task", "source", "backbone"])
def test_what_makes_the_cell_before_is_no_setting(name: str) -> None:
    with pytest.raises(UserError, match=rf"--set initial.{name}: unknown field; .*initial\.training\.rounds"):
        cell_of(FEDAVG.changed({f"initial.{name}": "x"}), staged())


def test_changes_to_the_cell_before_are_shown_in_words() -> None:
    table = staged()
    assert table.shown("initial.options.critical_layer", 6, LITE) == "m^L = 6 of 12 (3 of 6 layers)"
    assert table.shown("initial.options.schedule", "first") == "initial schedule=first"
    assert table.shown("initial.training.rounds", 4) == "initial rounds=4"
    assert table.shown("initial.algorithm", "fedavg") == "initial algorithm=fedavg"
    assert table.shown("initial", None) == "initial=None"
    assert table.shown("initial", cell_of(FEDAVG)) == "initial=lite-mrpc-fedavg-s0"
    assert table.shown("options.proximal", 0.1) == "proximal=0.1"


def test_a_unit_may_have_a_minimum_and_lists() -> None:
    assert [UNIT.in_cell(layers, "", 4) for layers in (1, 2, 3, 6, 12)] == [1, 1, 1, 2, 4]
    assert LayerUnit("critical layer", of=12).in_cell(1, "", 4) == 0
    assert UNIT.in_cell([4, 6, 8], "", 6) == [2, 3, 4]
    assert UNIT.in_cell({"rte": [6, 12]}, "rte", 6) == [3, 6]
    assert UNIT.shown([4, 6], 6) == "m^L = 4, 6 of 12 (2, 3 of 6 layers)"
    for wrong in (0, 13, [6, 0], True, "6"):
        with pytest.raises(UserError, match=r"local layers .*: expected 1 to 12, of the paper's 12 layers"):
            UNIT.in_cell(wrong, "", 6)
