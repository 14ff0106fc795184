"""The two studies of what embeddings reveal, in demo runs."""

import pytest

from benchmarks.experiment import Benchmark
from benchmarks.registry import benchmark, scale_of
from benchmarks.results import RunResult
from benchmarks.running.runner import run_cell

FEATURES, ACTIVATIONS = benchmark("fedfreezebert-inversion"), benchmark("fedbert-inversion")


@pytest.mark.slow
def test_features_and_activations_give_texts_away(settings):
    def attacked(study: Benchmark) -> dict[str, RunResult]:
        cells = study.cells(scale_of(study, "demo"), [0])
        return {row.id: run_cell(cell, settings, lambda _: None) for row, _, cell in cells}

    def recovered(results: dict[str, RunResult], what: str) -> dict[str, float]:
        return {name: result.score(f"test/{what}_recovery") or 0.0 for name, result in results.items()}

    features = attacked(FEATURES)
    tokens, texts = recovered(features, "token"), recovered(features, "text")
    assert tokens["token-majority"] < tokens["last-few"] < tokens["last"] < tokens["last-four"]
    assert tokens["last-four-fp16"] == pytest.approx(tokens["last-four"], abs=0.01)
    assert (texts["token-majority"], texts["last-four"] > 0.5) == (0, True)
    activations = attacked(ACTIVATIONS)
    tokens = recovered(activations, "token")
    assert tokens["token-majority"] < 0.2
    assert tokens["nearest"] == tokens["nearest-fp16"] == recovered(activations, "text")["nearest"] == 1.0
    assert min(tokens["nearest-dropout"], tokens["inverter"], tokens["inverter-fp16"]) > 0.9
