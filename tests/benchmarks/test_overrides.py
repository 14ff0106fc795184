"""Rows, sweeps and --set change a run by one function, which reaches every field; units are converted once."""

import dataclasses
import json
from typing import Any

import pytest

from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.fedsplitbert.paper import FEDAVG, FEDSPLITBERT
from benchmarks.overrides import LayerUnit, field_value
from benchmarks.registry import benchmark
from benchmarks.run_config import RunConfig
from benchmarks.selection import with_settings

pytestmark = pytest.mark.usefixtures("untuned")

TABLE = benchmark("fedsplitbert-table3")
LITE = TABLE.scale("lite")
UNIT = LayerUnit("local layers", of=12, symbol="m^L", least=1)


def cell_of(row: Row, table: Benchmark = TABLE, scale: Scale = LITE) -> RunConfig:
    return table.cell(row, table.columns[0], scale, 0)


def staged() -> Benchmark:
    """The table with runs that start from FedSplitBERT's."""

    def base(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
        first = TABLE.cell(FEDSPLITBERT, column, scale, 7)
        return dataclasses.replace(TABLE.base(row, column, scale, seed), initial=first)

    units = {"initial.options.critical_layer": UNIT}
    return dataclasses.replace(TABLE, base=base, paper=dataclasses.replace(TABLE.paper, units=units))


CHANGES: dict[str, Any] = {
    "partition": {"scheme": "equal"}, "partition.size": 9, "algorithm": "central", "options.server.tau": 0.5,
    "training.rounds": 9, "training.padding": "fixed", "training.clip_norm": None, "grouped": True,
    "initial.training.decay": 0.5, "initial.options.embeddings": "global", "initial.seed": 3,
}  # fmt: skip


def test_a_row_and_a_user_reach_the_same_field():
    for name, value in CHANGES.items():
        table = staged() if "initial" in name else TABLE
        text = value if isinstance(value, str) else json.dumps(value)
        by_row = cell_of(FEDAVG.changed({name: value}), table)
        assert by_row == cell_of(FEDAVG, with_settings(table, [f"{name}={text}"]))
        assert repr(field_value(by_row, name)) == repr(value)
        assert by_row.spec_id != cell_of(FEDAVG, table).spec_id


def test_a_setting_labels_every_scale_changes_every_cell_and_comes_last():
    changed = with_settings(TABLE, ["training.rounds=3", "training.rounds=7", "codec=bf16"])
    for scale, new_scale in zip(TABLE.scales, changed.scales, strict=True):
        assert new_scale.label == f"{scale.label}; changed: training.rounds=3, training.rounds=7, codec=bf16"
        chosen = changed.cells(new_scale, [0, 1])
        assert {(cell.training.rounds, cell.codec) for row, _, cell in chosen if not row.fixed} == {(7, "bf16")}
        assert {(cell.training.rounds, cell.codec) for row, _, cell in chosen if row.fixed} == {(1, "bf16")}
        earlier = [cell.initial for _, _, cell in chosen if cell.initial is not None]
        assert {(cell.training.rounds, cell.codec) for cell in earlier} == {(7, "bf16")}
        ids = {cell.spec_id for _, _, cell in chosen}
        assert not ids & {cell.spec_id for _, _, cell in TABLE.cells(scale, [0, 1])}
    assert with_settings(TABLE, []) is TABLE


WRONG = {
    "training.rounds=1.5": "--set training.rounds: expected a valid integer, found 1.5",
    "training.rounds=0": "--set training.rounds: expected a number above 0, found 0",
    "training.learning_rate=fast": "--set training.learning_rate: expected a valid number, found 'fast'",
    "training.learning_rate=NaN": "--set training.learning_rate: expected a finite number, found NaN",
    "training.padding=widest": "--set training.padding: expected 'longest' or 'fixed', found 'widest'",
    "options=x": "--set options: expected a group of fields, found 'x'",
    "options.server=adam options.server.tau=1": "expected a group of options at server, found 'adam'",
    "initial.seed=1": "--set initial.seed: expected a cell with initial, .* found one without it",
    "training.round=2": "unknown field; expected one of .*options.<name>, .* Did you mean 'training.rounds'",
    "training.rounds": "--set training.rounds: expected field=value, such as",
    f"options.a={'[' * 99999}": "found too many nested lists and groups",
    **{f"{name}=x": f"--set {name}: unknown field; .*training.rounds" for name in (
        "mood", "training", "training.rounds.x", "head.x", "scale", "task", "source", "backbone", "initial.scale",
    )},
}  # fmt: skip


@pytest.mark.parametrize("assignment", WRONG, ids=lambda text: text[:40])
def test_a_wrong_setting_is_one_sentence(assignment):
    table = staged() if assignment == "initial.scale=x" else TABLE
    with pytest.raises(UserError, match=WRONG[assignment]):
        cell_of(FEDAVG, with_settings(table, assignment.split()))
