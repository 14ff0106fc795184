"""A run's configuration: identity, rejected values, later fields; rows, sweeps and --set change it by one function."""

import dataclasses
import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.fedsplitbert.paper import FEDAVG, FEDSPLITBERT
from benchmarks.overrides import LayerUnit, field_value
from benchmarks.registry import benchmark
from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.selection import with_settings
from fedsim.adapter_config import AdapterConfig
from fedsim.errors import FederationError

pytestmark = pytest.mark.usefixtures("untuned")

INPUTS = {"data": "d1", "backbone": "b1"}
CELL = RunConfig(
    scale="lite",
    task="mrpc",
    task_version=1,
    source="glue",
    backbone="all-MiniLM-L6-v2",
    clients=2,
    partition={"scheme": "label-table", "shares": ((5, 95), (25, 75), (75, 25)), "size": None},
    algorithm="fedsplitbert",
    options={"critical_layer": 3},
    training=TrainConfig(rounds=2, learning_rate=5e-5, batch_size=16),
    seed=0,
)
# A field -> another value of it.
LATER: dict[str, Any] = {
    "head": "psum", "validation_share": 0.1, "data_seed": 0, "grouped": True, "central_share": 0.5, "initial": CELL,
    "adapter": AdapterConfig("lora"), "independent": True,
}  # fmt: skip
LATER_TRAINING: dict[str, Any] = {
    "schedule": "linear", "warmup": 0.1, "clip_norm": 1.0, "decayed": "matrices", "optimizer": "kept", "decay": 0.7,
    "beta2": 0.98, "epsilon": 1e-6, "kernels": "reference", "stop": 1, "clip_scope": "model",
}  # fmt: skip
FIRST: dict[str, Any] = {
    "scale": "demo", "task": "rte", "task_version": 2, "source": "generated", "backbone": "tiny", "clients": 3,
    "partition": {"scheme": "equal"}, "algorithm": "fedavg", "options": {}, "seed": 1, "codec": "fp16",
    "training": replace(CELL.training, rounds=3), "test_share": 0.5, "holdout": "validation",
    "engine_version": 3,
}  # fmt: skip
FIRST_TRAINING: dict[str, Any] = {
    "rounds": 3, "learning_rate": 1e-5, "batch_size": 8, "local_epochs": 2, "weight_decay": 0.0, "max_length": 64,
    "padding": "fixed", "precision": "fp32", "participation": 0.5,
}  # fmt: skip


def names_of(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def test_ids_are_cut_hashes_of_canonical_json_without_the_fields_that_came_later():
    value = dataclasses.asdict(CELL)
    for name in LATER:
        del value[name]
    for name in LATER_TRAINING:
        del value["training"][name]

    def cut_hash(value: Any) -> str:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    assert CELL.spec_id == cut_hash(value)
    assert CELL.cell_id(INPUTS) == cut_hash({"cell": value, "inputs": INPUTS})
    assert CELL.definition_id == cut_hash({name: inner for name, inner in value.items() if name != "engine_version"})


def test_every_field_decides_the_ids():
    assert names_of(RunConfig) == FIRST.keys() | LATER.keys()
    assert names_of(TrainConfig) == FIRST_TRAINING.keys() | LATER_TRAINING.keys()
    cells = [CELL, *(replace(CELL, **{name: value}) for name, value in (FIRST | LATER).items())]
    for name, value in (FIRST_TRAINING | LATER_TRAINING).items():
        cells.append(replace(CELL, training=replace(CELL.training, **{name: value})))
    cells.remove(replace(CELL, training=FIRST["training"]))  # which comes twice
    assert len({cell.spec_id for cell in cells}) == len({cell.cell_id(INPUTS) for cell in cells}) == len(cells)
    for cell in cells:
        again = RunConfig.from_json(json.loads(json.dumps(cell.to_json())))
        assert (again.spec_id, again.to_json()) == (cell.spec_id, cell.to_json())
    assert CELL.cell_id({**INPUTS, "data": "d2"}) != CELL.cell_id(INPUTS)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("scale", "../up", "scale: expected a name of at most 64 letters, .*, found '../up'"),
        ("seed", -1, "seed: expected a number of at least 0, found -1"),
        ("clients", 0, "clients: expected a number above 0, found 0"),
        ("test_share", 1.0, "test_share: expected a number below 1, found 1.0"),
        ("validation_share", float("nan"), "validation_share: expected a finite number, found nan"),
        ("grouped", 1, "grouped: expected a valid boolean, found 1"),
        ("holdout", "dev", "holdout: expected 'test' or 'validation', found 'dev'"),
        ("training", {"rounds": 1}, "training: expected a group of fields, found"),
        ("options", [1], r"options: expected a group of fields, found \[1\]"),
    ],
)
def test_a_wrong_field_is_one_sentence(field, value, message):
    with pytest.raises(UserError, match=message):
        replace(CELL, **{field: value})


def test_a_wrong_training_is_refused_and_whole_numbers_become_floats():
    assert repr(TrainConfig(1, 2, 16).learning_rate) == "2.0"
    for name, value in {"rounds": 0, "local_epochs": -1, "participation": 1.5, "beta2": 1.0, "epsilon": 0.0}.items():
        with pytest.raises(FederationError, match=f"{name}: expected a number .*, found {value}"):
            replace(CELL.training, **{name: value})
    with pytest.raises(FederationError, match="batch_size: expected a value, found nothing"):
        TrainConfig(rounds=1, learning_rate=1e-3)  # type: ignore[call-arg]
    with pytest.raises(FederationError, match=r"mood: expected one of rounds, .*, found an unknown field"):
        TrainConfig(1, 1e-3, 16, mood="good")  # type: ignore[call-arg]
    value = CELL.to_json()
    value["training"]["mood"] = "good"
    with pytest.raises(ValueError, match=r"^training\.mood: found an unknown field$"):
        RunConfig.from_json(value)


# ---- changes to fields -------------------------------------------------------------------------------------------

TABLE = benchmark("fedsplitbert-table3")
LITE = TABLE.scale("lite")
UNIT = LayerUnit("local layers", of=12, symbol="m^L", least=1)


def cell_of(row: Row, table: Benchmark = TABLE, scale: Scale = LITE) -> RunConfig:
    return table.cell(row, table.columns[0], scale, 0)


def staged() -> Benchmark:
    """The table with runs that start from FedSplitBERT's."""

    def base(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
        first = TABLE.cell(FEDSPLITBERT, column, scale, 7)
        return replace(TABLE.base(row, column, scale, seed), initial=first)

    units = {"initial.options.critical_layer": UNIT}
    return replace(TABLE, base=base, paper=replace(TABLE.paper, units=units))


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
        assert new_scale.label == f"{scale.label}; changed: codec=bf16, training.rounds=7"
        chosen = changed.cells(new_scale, [0, 1])
        assert {(cell.training.rounds, cell.codec) for row, _, cell in chosen if not row.fixed} == {(7, "bf16")}
        assert {(cell.training.rounds, cell.codec) for row, _, cell in chosen if row.fixed} == {(1, "bf16")}
        earlier = [cell.initial for _, _, cell in chosen if cell.initial is not None]
        assert {(cell.training.rounds, cell.codec) for cell in earlier} == {(7, "bf16")}
        ids = {cell.spec_id for _, _, cell in chosen}
        assert not ids & {cell.spec_id for _, _, cell in TABLE.cells(scale, [0, 1])}
    assert with_settings(TABLE, []) is TABLE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["codec=bf16", "training.rounds=2"], ["training.rounds=2", "codec=bf16"]),
        (["training.rounds=1", "clients=2", "training.rounds=2"], ["training.rounds=2", "clients=2"]),
        (["partition.size=9", 'partition={"scheme":"equal"}'], ['partition={"scheme":"equal"}']),
    ],
)
def test_equal_settings_in_another_order_are_the_same_table(one, other):
    first, second = with_settings(TABLE, one), with_settings(TABLE, other)
    assert first.scales == second.scales
    assert first.overrides == second.overrides


WRONG = {
    "training.rounds=1.5": "--set training.rounds: expected a valid integer, found 1.5",
    "training.rounds=0": "--set training.rounds: expected a number above 0, found 0",
    "training.learning_rate=fast": "--set training.learning_rate: expected a valid number, found 'fast'",
    "training.learning_rate=NaN": "--set training.learning_rate: expected a finite number, found NaN",
    "training.padding=widest": "--set training.padding: expected 'longest' or 'fixed', found 'widest'",
    "options=x": "--set options: expected a group of fields, found 'x'",
    "options.server=adam options.server.tau=1": "expected a group of options at server, found 'adam'",
    "partition.size=": '--set partition.size: expected an integer of at least 1, found ""',
    "partition.alpha=": "--set partition.alpha: partition scheme 'label-table': expected fields among shares, size, ",
    "initial.seed=1": "--set initial.seed: expected a cell with initial, .* found one without it",
    "rounds=2": "unknown field; .* Did you mean 'training.rounds'",
    "training.round=2": "unknown field; expected one of .*options.<name>, .* Did you mean 'training.rounds'",
    "training.rounds": "--set training.rounds: expected field=value, such as",
    **{f"{name}=x": f"--set {name}: unknown field; .*training.rounds" for name in (
        "mood", "training", "training.rounds.x", "head.x", "scale", "task", "source", "backbone", "initial.scale",
    )},
}  # fmt: skip


@pytest.mark.parametrize("assignment", WRONG, ids=lambda text: text[:40])
def test_a_wrong_setting_is_one_sentence(assignment):
    table = staged() if assignment == "initial.scale=x" else TABLE
    with pytest.raises(UserError, match=WRONG[assignment]):
        cell_of(FEDAVG, with_settings(table, assignment.split()))
