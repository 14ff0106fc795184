"""Growth with clients, model and texts: what is measured, on federations that train in milliseconds."""

from pathlib import Path

import pytest
import torch

from benchmarks.performance import growth
from benchmarks.performance.exchange import fixed_cost
from benchmarks.performance.growth import Sizes, measure
from benchmarks.performance.population import Population, cost_of
from benchmarks.performance.section import Bench
from benchmarks.performance.tokenisation import pairs_of_words, read_through, tokenised, word_pieces
from benchmarks.runner import MANY_CLIENTS, peak_memory_bytes
from benchmarks.settings import Settings

CONFIG = {"vocab_size": 1200, "hidden_size": 32, "intermediate_size": 32, "max_position_embeddings": 128}


@pytest.fixture
def settings(tmp_path):
    return Settings(results_dir=tmp_path / "results")


@pytest.fixture(autouse=True)
def ordinary_memory(monkeypatch):
    """How this process gets its memory is left as it is."""
    for module in ("population", "exchange"):
        monkeypatch.setattr(f"benchmarks.performance.{module}.hold_freed_memory", lambda: None)


def left_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize(("algorithm", "options"), [("fedavg", {}), ("fedsplitbert", {"critical_layer": 2})])
@pytest.mark.parametrize("clients", [3, MANY_CLIENTS + 1])
def test_a_population_costs_time_memory_and_disk_and_leaves_nothing(settings, algorithm, options, clients):
    cost = cost_of(Population(clients, algorithm, options, "tiny", CONFIG), settings)
    assert len(cost.seconds) == 2
    assert min(cost.seconds) > 0
    assert cost.peak_bytes > 0
    assert left_in(settings.results_dir) == []


def test_what_clients_keep_grows_on_disk_with_their_number(settings):
    few, many = (
        cost_of(Population(clients, "fedsplitbert", {"critical_layer": 2}, "tiny", CONFIG), settings).disk_bytes
        for clients in (2, 12)
    )
    alone = cost_of(Population(2, "fedavg", {}, "tiny", CONFIG), settings).disk_bytes
    assert many > 3 * few
    assert alone < few


def test_the_fixed_cost_leaves_out_the_first_round(settings):
    cost = fixed_cost(Population(2, "fedavg", {}, "tiny", CONFIG), settings, rounds=3)
    assert len(cost.seconds) == 3
    assert left_in(settings.results_dir) == []


def test_pairs_are_cut_into_pieces_that_are_known():
    tokenizer, pairs = word_pieces(), pairs_of_words(20)
    assert len(pairs) == 20
    assert {len(texts) for texts in pairs.texts} == {2}
    ids = tokenizer([" ".join(texts) for texts in pairs.texts])["input_ids"]
    assert all(tokenizer.unk_token_id not in row for row in ids)
    assert pairs_of_words(20).texts == pairs.texts


def test_tokens_are_measured_cold_and_cached(settings):
    found = tokenised(settings, pairs=30, repeats=2)
    assert {what: len(cost.seconds) for what, cost in found.items()} == {"cold": 1, "cached": 2}
    assert found["cold"].disk_bytes == found["cached"].disk_bytes > 0
    assert left_in(settings.results_dir) == []


def test_a_corpus_is_found_tokenised_and_read(settings):
    cost = read_through(settings, megabytes=1)
    assert len(cost.seconds) == 3
    assert min(cost.seconds) > 0
    assert cost.disk_bytes > 1e6
    assert left_in(settings.results_dir) == []


def test_the_section_has_rows_of_one_kind_and_a_bar_for_each_promise(settings, monkeypatch):
    monkeypatch.setattr(growth, "in_process", lambda work, *arguments: work(*arguments))
    said = []
    sizes = Sizes(clients=(2, 3), members=2, pairs=10, megabytes=(1, 2), backbone="tiny", large="tiny", config=CONFIG)
    section = measure(Bench(settings, repeats=1, say=said.append), sizes)
    assert len({tuple(row) for row in section.rows}) == 1
    assert [row["clients"] for row in section.rows] == [2, 3, 2, 2, 3, 2, 2, 1, 1, 1, 1]
    assert [(bar.bound, bar.at_least) for bar in section.bars] == [
        (1.2, False),
        (1.3, False),
        (0.25, False),
        (1.1, False),
    ]
    assert "6 layers" in section.rows[0]["on"]
    assert "2 layers" in section.rows[4]["on"]
    assert len(said) == len(section.rows)  # the suite says the bars


def test_a_peak_is_at_least_what_is_held():
    held = torch.ones(30_000_000)
    assert peak_memory_bytes() > held.nbytes
