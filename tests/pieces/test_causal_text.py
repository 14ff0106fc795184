"""A causal language model: a GPT-2 of two layers, whose decoder is its word embeddings."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from benchmarks.backbones import depth
from benchmarks.federation import longest_text
from fedsim.algorithms import build_algorithm
from fedsim.data import Client, Examples, Subset
from fedsim.objectives import Vocabulary, build_objective

V = 40
GPT2 = {"model_type": "gpt2", "vocab_size": V, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 16}


@pytest.fixture
def texts() -> Subset:
    """Texts that count upwards from anywhere: the next token follows from the one before."""
    rng = np.random.default_rng(0)
    lengths, starts = rng.integers(4, 12, 48), rng.integers(0, V, 48)
    tokens = np.concatenate([np.arange(first, first + size) % V for first, size in zip(starts, lengths, strict=True)])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Subset(
        Examples(tokens.astype(np.int32), np.zeros_like(tokens), offsets, np.zeros(48, dtype=np.int64), 0),
        np.arange(48),
    )


def perplexity(answers: np.ndarray, subset: Subset) -> dict[str, float]:
    return {"perplexity": math.exp(-answers[:, 0].sum() / answers[:, 1].sum())}


def setting(small, **training):
    objective = build_objective("causal_lm", vocabulary=Vocabulary(V))
    return small.setting(objective, "causal-lm", GPT2, batch_size=8, **training)


def test_it_begins_at_the_logarithm_of_the_vocabulary(small, texts):
    model = setting(small).model
    (log_likelihood, tokens), lengths = model.predict(texts, 16, None).sum(0), texts.examples.lengths
    assert tokens == (lengths - 1).sum()  # all but each text's first
    assert -log_likelihood / tokens == pytest.approx(math.log(V), rel=0.05)
    assert len(model.groups.head) == 0  # the decoder is the embeddings' own parameter, counted once


def test_a_token_sees_none_of_those_behind_it(small, texts):
    model = setting(small).model
    model.network.eval()
    batch = model.objective.prepare(texts.examples.collate(np.arange(3)), np.random.default_rng(0))
    changed = {**batch, "input_ids": batch["input_ids"].clone()}
    changed["input_ids"][0, 3:] = 0
    assert torch.equal(model.logits(batch)[:3], model.logits(changed)[:3])  # of the first text's first three tokens
    assert not torch.equal(model.logits(batch)[3], model.logits(changed)[3])


def test_padding_changes_no_answer(small, texts):
    model = setting(small).model
    ours, padded = (model.predict(texts, size, width) for size, width in ((1, None), (16, 16)))
    np.testing.assert_allclose(ours, padded, rtol=1e-5)


def test_perplexity_falls(small, texts):
    test = {"test": Subset(texts.examples, np.arange(40, 48))}
    clients = [Client(number, Subset(texts.examples, np.arange(number, 40, 2)), test) for number in range(2)]
    algorithm = build_algorithm("fedavg", setting(small, epochs=3, learning_rate=1e-2), {"embeddings": "global"})
    run = small.run(algorithm, clients=clients, rounds=4, score=perplexity)
    found = [result.client_scores[0]["test"]["perplexity"] for result in run.results]
    assert found == sorted(found, reverse=True)
    assert found[-1] < V / 4


def test_a_folder_of_gpt2_says_how_deep_and_how_long_it_is(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(GPT2), encoding="utf-8")
    assert depth(str(tmp_path)) == 2
    assert longest_text(GPT2) == 16
