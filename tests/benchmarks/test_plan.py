"""`plan` counts examples where bytes depend on them and the data are at hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.federation import build_clients, load_inputs, training_examples
from benchmarks.planning import wire_plan
from benchmarks.registry import benchmark, rows_of, scale_of
from benchmarks.settings import Settings
from benchmarks.spec import Cell

TABLE3 = benchmark("fedfreezebert-table3")
GIGABYTE = TABLE3.paper.gigabyte


def cell_of(row: str, scale: str = "demo") -> Cell:
    (method,) = rows_of(TABLE3, [row])
    return TABLE3.cell(method, TABLE3.columns[0], scale_of(TABLE3, scale), 0)


def shown(capsys: pytest.CaptureFixture[str], results: Path, *words: str) -> str:
    assert main(["plan", "fedfreezebert-table3", "--results-dir", str(results), *words]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("holdout", ["test", "validation"])
def test_counts_are_those_of_the_clients_that_are_built(holdout: str) -> None:
    for cell in (cell_of("c-psum"), benchmark("fedsplitbert-table3").cells(TABLE3.scale("demo"), [3])[4][2]):
        held = replace(cell, holdout=holdout)
        clients, _ = build_clients(held, load_inputs(held, Settings()), Settings())
        assert training_examples(held, Settings()) == [len(client.train) for client in clients]


def test_generated_data_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, tmp_path, "--methods", "c-psum,c-average,d-fedavg-psum")
    total = sum(training_examples(cell_of("c-psum"), Settings()))
    assert (
        f"Counted on ArSarcasm-v2's {total} training examples: C-FedFreezeBERT · P-SUM, C-FedFreezeBERT · average."
        in out
    )
    plan = wire_plan(cell_of("c-psum"), examples=[total, 1, 1, 1, 1])
    assert f"{(plan.up_bytes + plan.down_bytes) / GIGABYTE:.3f} GB" in out
    assert "– C-FedFreezeBERT" not in out


def test_real_data_are_counted_without_the_encoder(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shown(capsys, tmp_path, "--scale", "paper", "--methods", "c-average", "--data-dir", str(data_dir))
    assert "Counted on ArSarcasm-v2's 12,548 training examples: C-FedFreezeBERT · average." in out  # n_s of the paper
    features, masks, labels, head = 4 * 12548 * 128 * 768, 12548 * 128, 12548 * 8, 5 * 4 * 3 * (768 + 1)
    assert f"{(features + masks + labels + head) / GIGABYTE:.3f} GB" in out


def test_without_data_plan_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, tmp_path, "--scale", "lite", "--methods", "c-psum,c-hsum", "--tasks", "arsarcasm")
    assert (
        "– C-FedFreezeBERT · P-SUM, C-FedFreezeBERT · H-SUM: bytes that depend on the number of examples: "
        "name the folder of the data with --data-dir" in out
    )
    elsewhere = shown(capsys, tmp_path, "--scale", "lite", "--methods", "c-psum", "--data-dir", str(tmp_path / "none"))
    assert "– C-FedFreezeBERT · P-SUM: the data directory" in elsewhere


def test_trimmed_texts_are_not_guessed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, tmp_path, "--methods", "c-psum", "--set", "options.features=trimmed")
    assert "– C-FedFreezeBERT · P-SUM: bytes that depend on the texts themselves" in out
    assert "Counted on" not in out
