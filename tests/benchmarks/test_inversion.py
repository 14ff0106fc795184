"""The two studies of what embeddings reveal: expected tokens, attacked runs, and demo runs."""

import pytest

from benchmarks.experiment import Benchmark
from benchmarks.registry import benchmark, scale_of
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell

FEATURES, ACTIVATIONS = benchmark("fedfreezebert-inversion"), benchmark("fedbert-inversion")


def runs(study: Benchmark, scale: str) -> dict[str, RunConfig]:
    return {row.id: run for row, _, run in study.cells(scale_of(study, scale), [0])}


@pytest.mark.slow
def test_features_and_activations_give_texts_away_and_again_alike(tmp_path):
    def attacked(study: Benchmark, folder: str) -> dict[str, RunResult]:
        options = RunOptions(results_dir=tmp_path / folder, device="cpu")
        return {name: run_cell(run, options, lambda _: None) for name, run in runs(study, "demo").items()}

    def recovered(results: dict[str, RunResult], what: str) -> dict[str, float]:
        return {name: result.score(f"test/{what}_recovery") or 0.0 for name, result in results.items()}

    features = attacked(FEATURES, "features")
    tokens, texts = recovered(features, "token"), recovered(features, "text")
    assert tokens["token-majority"] < tokens["last-few"] < tokens["last"] < tokens["last-four"]
    assert tokens["last-four-fp16"] == pytest.approx(tokens["last-four"], abs=0.01)
    assert (texts["token-majority"], texts["last-four"] > 0.5) == (0, True)
    activations = attacked(ACTIVATIONS, "activations")
    tokens = recovered(activations, "token")
    assert tokens["token-majority"] < 0.2
    assert tokens["nearest"] == tokens["nearest-fp16"] == recovered(activations, "text")["nearest"] == 1.0
    assert min(tokens["nearest-dropout"], tokens["inverter"], tokens["inverter-fp16"]) > 0.9
    again = attacked(ACTIVATIONS, "again")["nearest-dropout"]
    assert again.outcome == activations["nearest-dropout"].outcome
