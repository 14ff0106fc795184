"""What the suite counts, and how its results are kept and shown. Nothing here is timed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.cli.main import main
from benchmarks.errors import UserError
from benchmarks.performance import suite, workload
from benchmarks.performance.products import Encoder, matrix_rate
from benchmarks.performance.section import Bar, Section, in_turn, ratio
from benchmarks.performance.suite import PARTS, page, run_suite
from benchmarks.running.run_options import RunOptions
from fedsim.models.encoder import encoder_from_config

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 48}


@pytest.mark.parametrize("tokens", [1, 7, 12])
def test_operations_are_those_that_pytorch_counts(tokens):
    encoder = encoder_from_config({"model_type": "bert", "vocab_size": 50, **SIZES, "attn_implementation": "eager"})
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        encoder(input_ids=torch.ones(4, tokens, dtype=torch.int64))
    assert Encoder(3, 32, 48).forward_flops([tokens] * 4, unread=True) == counter.get_total_flops()


def test_what_nobody_reads_is_not_counted():
    encoder = Encoder(1, 32, 48)
    D, F, tokens = 32, 48, 9
    expected = 2 * tokens * 2 * D * D + 2 * 2 * D * D + 2 * 2 * D * F + 2 * 2 * tokens * D
    assert encoder.forward_flops([tokens]) == expected
    assert encoder.forward_flops([tokens], unread=True) > expected
    assert Encoder(2, 32, 48).training_flops([tokens]) < 3 * Encoder(2, 32, 48).forward_flops([tokens])


def test_a_rate_is_a_rate():
    assert matrix_rate(torch.float32, 1) > 1e8


def test_texts_have_the_lengths_that_were_asked_for():
    lengths = workload.texts(5000).lengths
    assert np.quantile(lengths, [0, 0.5, 1]) == pytest.approx([19, 53, 103], abs=2)
    clients = workload.clients_of(workload.texts(40), 4, tested=3)
    assert [len(client.train) for client in clients] == [7] * 4
    held = np.concatenate([[*client.train.indices, *client.evaluation["test"].indices] for client in clients])
    assert sorted(held) == list(range(40))


def test_works_are_timed_in_turn_and_compared_in_pairs():
    calls = []
    one, other = in_turn(3, lambda: calls.append("a"), lambda: calls.append("b"))
    assert calls == ["a", "b"] * 4  # once to warm up
    assert (len(one), len(other)) == (3, 3)
    assert ratio([2, 30, 4], [1, 10, 4]) == 2


@pytest.mark.parametrize(("value", "at_least", "met"), [(3, True, True), (2, True, False), (2, False, True)])
def test_a_bar_says_whether_it_holds(value, at_least, met):
    bar = Bar("speed", value, 2.5, at_least)
    assert bar.met is met
    assert ("NOT met" in str(bar)) is not met


@pytest.mark.parametrize(
    ("value", "bound", "at_least", "shown"),
    [
        (1.1004, 1.1, False, "1.1004 × (bar ≤ 1.1: NOT met)"),
        (1.0996, 1.1, False, "1.1 × (bar ≤ 1.1: met)"),
        (0.24999, 0.25, True, "0.24999 × (bar ≥ 0.25: NOT met)"),
        (3.678, 3, True, "3.68 × (bar ≥ 3: met)"),
    ],
)
def test_a_bar_is_not_rounded_onto_the_other_side_of_its_bound(value, bound, at_least, shown):
    assert str(Bar("speed", value, bound, at_least)) == f"speed: {shown}"


def section(value):
    return Section("engine", "The engine", [{"way": "a", "s": 1.5}, {"way": "b", "s": None}], [Bar("speed", value, 2)])


def test_results_are_kept_and_make_a_page(tmp_path, monkeypatch, capsys):
    def measured(value):
        monkeypatch.setattr(suite, "measure_of", lambda name: lambda bench: section(value))
        return run_suite(["engine"], RunOptions(results_dir=tmp_path), repeats=2)

    assert measured(3) == 0
    assert measured(1) == 1  # and the page shows the newest
    assert "NOT met" in capsys.readouterr().out
    found = json.loads((tmp_path / "performance" / "engine.json").read_text())
    assert found["repeats"] == 2
    assert {"device", "threads", "versions"} <= found["environment"].keys()
    text = page(tmp_path / "performance")
    assert "### The engine" in text
    assert "| b | – |" in text
    assert "**not met** · speed: 1 × (bar ≥ 2: NOT met)" in text
    assert main(["bench", "--page", str(tmp_path / "performance")]) == 0
    assert capsys.readouterr().out == text


def test_a_part_that_measures_nothing_says_why(tmp_path, monkeypatch, capsys):
    nothing = Section("gpu", "On a GPU", [], (), ("This machine has no GPU.",))
    monkeypatch.setattr(suite, "measure_of", lambda name: lambda bench: nothing)
    assert run_suite(["gpu"], RunOptions(results_dir=tmp_path)) == 0
    assert "  This machine has no GPU.\n" in capsys.readouterr().out


def test_wrong_requests_are_told(tmp_path, capsys):
    with pytest.raises(UserError, match="expected results of `python -m benchmarks bench`, found none"):
        page(tmp_path)
    assert main(["bench", "enigne", "--results-dir", str(tmp_path)]) == 2
    assert f"expected parts of {', '.join(PARTS)}, found enigne" in capsys.readouterr().err


def test_the_document_shows_what_was_measured():
    shown = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    folders = sorted(path for path in (ROOT / "benchmarks" / "performance" / "measured").iterdir() if path.is_dir())
    assert folders
    for folder in folders:
        assert page(folder) in shown, f"render it anew: python -m benchmarks bench --page {folder.relative_to(ROOT)}"
