"""Memory by shapes: it equals a CPU allocator's, and parts of a batch fit a GPU."""

from dataclasses import replace

import pytest
import torch

from benchmarks.dry_run import rounds
from benchmarks.dry_run.memory import RESERVED, Memory, fit
from benchmarks.errors import UserError
from benchmarks.performance.memory import first_rounds
from benchmarks.registry import benchmark
from benchmarks.run_config import RunConfig
from fedsim.precision import Precision

GIB = 2**30


def cell_of(table: str, row: str, clients: int, batch: int, scale: str = "demo") -> RunConfig:
    bench = benchmark(table)
    cell = bench.cell(bench.row(row), bench.columns[0], bench.scale(scale), 0)
    config = replace(cell.training, batch_size=batch, rounds=clients, local_epochs=1, padding="fixed", precision="fp32")
    # Moments that are kept between rounds are in the memory of the CPU, which is the device here.
    return replace(cell, clients=clients, training=replace(config, kernels="reference", optimizer="fresh"))


@pytest.mark.parametrize(
    ("table", "row", "clients", "batch", "texts"),
    [
        ("fedsplitbert-table3", "fedavg", 2, 32, 32),  # texts with a label
        ("fedbert-pretraining", "fedavg", 2, 32, 8),  # masked tokens, in parts
        ("fedbert-table8", "emdavg", 3, 24, 24),  # next words, split, clients that meet at one transformer
        ("fedbert-pretraining", "heavg-own", 3, 32, 8),  # a transformer for each client, in parts
        ("fedsplitbert-table3", "fedsplitbert", 2, 32, 16),  # lower layers exchanged, the others kept
    ],
)
def test_estimates_are_what_the_allocator_hands_out(table, row, clients, batch, texts):
    cell = cell_of(table, row, clients, batch)
    estimate = Memory(cell, "cpu").of(texts)
    peak, _ = first_rounds(cell, texts, Precision(torch.device("cpu"), "fp32"))
    assert estimate.client + estimate.server == pytest.approx(peak, rel=0.25)


def test_parts_fit_and_are_even():
    cell = cell_of("fedbert-pretraining", "fedavg", 1, 32)
    needed = Memory(cell)
    room = needed.of(11).training
    fitted = fit(cell, round(room / (1 - RESERVED)) + 9)
    assert (fitted.part, fitted.held, fitted.whole) == (11, needed.of(11), needed.of(32))
    assert fit(cell, 10 * GIB).part == 32
    with pytest.raises(UserError, match=r"expected a GPU with 0\.0 GiB for one text at a time, found 0\.0 GiB"):
        fit(cell, needed.of(1).training)


def test_checkpoints_save_activations_and_what_does_not_fit_says_so():
    cell = cell_of("fedbert-pretraining", "fedavg", 1, 32)
    plain, checkpointed = Memory(cell).of(32), Memory(cell, checkpoints=True).of(32)
    assert checkpointed.training < 0.8 * plain.training
    room = round(plain.training / (1 - RESERVED)) - 9
    assert fit(cell, room).part < 32 == fit(cell, room, checkpoints=True).part


def test_scored_batches_are_cut_where_they_do_not_fit():
    cell = cell_of("fedbert-table8", "central", 1, 2)
    held = Memory(cell).of(2)
    room = held.scoring_of(40)
    assert room > held.training  # a vocabulary's logits for 64 texts need more than training on two
    fitted = fit(cell, round(room / (1 - RESERVED)) + 9)
    assert (fitted.part, fitted.scored, fitted.total) == (2, 40, room)


@pytest.mark.parametrize(("codec", "copies"), [("fp32", 0), ("int8", 1), ("topk:0.1", 2)])
def test_what_a_codec_remembers_of_each_client_is_on_the_host(codec, copies):
    """What a client received, and what its last upload dropped."""
    cell = replace(cell_of("fedpeft-bytes", "fedit", 3, 4), codec=codec)
    sent = rounds.wire_plan(replace(cell, codec="fp32")).rounds[0].down_bytes
    assert Memory(cell).of(4).host == copies * sent
