"""Adapters in a whole run: record, ledger, planned bytes, earlier weights, and changes of the id."""

from dataclasses import replace

import pytest

from benchmarks.dry_run.cache import key_of
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.results import read_results
from benchmarks.running.runner import run_cell
from fedsim.adapter_config import FIELDS, AdapterConfig
from fedsim.models.model import PACKED
from tests.benchmarks.conftest import DEMO
from tests.fedsim.test_lora import METHODS as LORA_METHODS

SHORT = replace(DEMO, training=replace(DEMO.training, rounds=2))
LORA = replace(SHORT, adapter=AdapterConfig("lora", r=4))
CELLS = [
    *(replace(LORA, algorithm=name, options=options) for name, options, *_ in LORA_METHODS.values()),
    *(replace(LORA, algorithm=name) for name in ("fedper", "central")),
    replace(LORA, algorithm="hetlora", options={"ranks": [1, 2, 4]}),
    *(replace(LORA, adapter=AdapterConfig(kind)) for kind in FIELDS),
]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.algorithm}-{cell.adapter.kind}")
def test_bytes_sent_are_the_bytes_planned(settings, cell):
    record, plan = run_cell(cell, settings, lambda _: None), wire_plan(cell)
    sent = [(entry.up_bytes, entry.down_bytes) for entry in record.rounds]
    assert sent == [(each.up_bytes, each.down_bytes) for each in plan.rounds]
    assert record.setup_bytes == plan.setup_bytes
    assert record.environment["kernels"] == ("packed" if cell.adapter.kind in PACKED else "reference")
    (read,) = read_results(settings.records_dir)
    assert read.cell.adapter == cell.adapter


def test_a_run_with_an_adapter_starts_from_weights_without_one(settings):
    record = run_cell(replace(LORA, initial=SHORT), settings, lambda _: None)
    fresh = run_cell(LORA, settings, lambda _: None)
    assert record.rounds[0].train_loss < fresh.rounds[0].train_loss


def test_the_adapter_decides_the_shapes():
    other = replace(LORA, adapter=AdapterConfig("lora", r=8))
    assert len({key_of("plan", cell) for cell in (SHORT, LORA, other)}) == 3
