"""The unigram model: shares of tokens by hand, and the same tokens asked for as of a model."""

import math

import numpy as np
import pytest
import torch

from fedsim.algorithms.central import pooled
from fedsim.objectives import CausalLM, MaskedLM, Vocabulary

WORDS, SPECIAL, MASK = 60, 10, 3
MASKED, CAUSAL = MaskedLM(WORDS, Vocabulary(WORDS, np.arange(SPECIAL, WORDS), MASK)), CausalLM(WORDS)


def answered(small, objective, head):
    setting = small.setting(objective=objective, head=head)
    algorithm = small.algorithm("unigram", setting)
    run = small.run(algorithm, rounds=1)
    subset = small.clients[1].evaluation["test"]
    return algorithm.predict(run.state, None, subset), subset, run


def counts_of(small):
    """Each token of the clients' training texts, and once more."""
    train = pooled(small.clients)
    offsets, tokens = train.examples.offsets, train.examples.tokens
    counts = np.ones(WORDS)
    for index in train.indices:
        np.add.at(counts, tokens[offsets[index] : offsets[index + 1]], 1)
    return counts


def test_each_token_has_its_share_of_the_training_texts(small):
    answers, subset, run = answered(small, CAUSAL, "causal-lm")
    counts = counts_of(small)
    offsets, tokens = subset.examples.offsets, subset.examples.tokens
    for place, index in enumerate(subset.indices):
        asked = tokens[offsets[index] + 1 : offsets[index + 1]]
        expected = sum(math.log(counts[token] / counts.sum()) for token in asked)
        assert answers[place] == pytest.approx([expected, len(asked)], rel=1e-5)
    assert run.channel.ledger.total_bytes("up") == run.channel.ledger.total_bytes("down") == 0


def test_masked_tokens_are_those_that_a_model_is_asked_for(small):
    answers, subset, run = answered(small, MASKED, "masked-lm")
    model = small.load(objective=MASKED, head="masked-lm").predict(subset, 64, None)
    assert answers[:, 1].tolist() == model[:, 1].tolist()
    shares = run.state.shared["shares"].float()
    assert not shares[:SPECIAL].any()  # never asked for
    assert float(shares.sum()) == pytest.approx(1)
    counts = torch.from_numpy(counts_of(small)).float()
    torch.testing.assert_close(shares[SPECIAL:], counts[SPECIAL:] / counts[SPECIAL:].sum())
