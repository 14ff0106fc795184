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

LORA = replace(DEMO, adapter=AdapterConfig("lora", r=4))
SHORT = replace(DEMO.training, rounds=2)


def sent(record):
    return [(entry.up_bytes, entry.down_bytes) for entry in record.rounds]


METHODS = [*((name, options) for name, options, *_ in LORA_METHODS.values()), ("fedper", {}), ("central", {})]


@pytest.mark.parametrize(("algorithm", "options"), [*METHODS, ("hetlora", {"ranks": [1, 2, 4]})])
def test_bytes_sent_are_the_bytes_planned(settings, algorithm, options):
    cell = replace(LORA, algorithm=algorithm, options=options, training=SHORT, adapter=AdapterConfig("lora", r=4))
    record, plan = run_cell(cell, settings, lambda _: None), wire_plan(cell)
    assert sent(record) == [(each.up_bytes, each.down_bytes) for each in plan.rounds]
    assert record.setup_bytes == plan.setup_bytes
    assert record.environment["kernels"] == "packed"
    (read,) = read_results(settings.records_dir)
    assert read.cell.adapter == cell.adapter


@pytest.mark.parametrize("kind", FIELDS)
def test_bytes_of_every_kind_are_the_bytes_planned(settings, kind):
    cell = replace(LORA, adapter=AdapterConfig(kind), training=SHORT)
    record, plan = run_cell(cell, settings, lambda _: None), wire_plan(cell)
    assert sent(record) == [(each.up_bytes, each.down_bytes) for each in plan.rounds]
    assert record.environment["kernels"] == ("packed" if kind in PACKED else "reference")


def test_a_run_with_an_adapter_starts_from_weights_without_one(settings):
    before = replace(DEMO, training=SHORT)
    record = run_cell(replace(LORA, training=SHORT, initial=before), settings, lambda _: None)
    fresh = run_cell(replace(LORA, training=SHORT), settings, lambda _: None)
    assert record.rounds[0].train_loss < fresh.rounds[0].train_loss


def test_the_adapter_decides_the_shapes():
    other = replace(LORA, adapter=AdapterConfig("lora", r=8))
    assert len({key_of("plan", cell) for cell in (DEMO, LORA, other)}) == 3
