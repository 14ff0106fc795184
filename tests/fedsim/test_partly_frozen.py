"""One layer is trained and the others are frozen: what packed layers compute for that, and what they cast."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from fedsim.models.encoder import encoder_from_config
from fedsim.models.model import Model
from fedsim.models.sequence import with_head
from fedsim.objectives import Classification
from fedsim.precision import resolve_precision

L, D, F, C = 4, 16, 24, 3
CONFIG = {
    "model_type": "bert", "vocab_size": 60, "hidden_size": D, "num_hidden_layers": L, "num_attention_heads": 2,
    "intermediate_size": F, "max_position_embeddings": 20,
}  # fmt: skip
TEXTS, TOKENS = 4, 8  # 32 rows: there is neither padding nor filling
ROWS = TEXTS * TOKENS
PRODUCTS = 2 * ROWS * (4 * D * D + 2 * D * F)  # of a layer with its weights; two FLOPs a product and its sum
QUERY_KEY_VALUE = 2 * ROWS * 3 * D * D
ATTENTION = 2 * 2 * TEXTS * TOKENS * TOKENS * D  # scores and contexts
HEAD = 2 * TEXTS * D * C


@pytest.fixture
def resident():
    def load(precision="fp32"):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            encoder = encoder_from_config(CONFIG)
        network = with_head(encoder, C, 0, head="average")
        return Model(network, resolve_precision(precision, "cpu"), Classification(C))

    return load


@pytest.fixture
def batch():
    ids = torch.from_numpy(np.random.default_rng(0).integers(2, 60, (TEXTS, TOKENS)))
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.zeros_like(ids),
        "labels": torch.zeros(TEXTS, dtype=torch.int64),
    }


@pytest.mark.parametrize("layer", range(L))
def test_below_the_layer_nothing_goes_back_and_above_it_no_weight_has_a_gradient(resident, batch, layer):
    model = resident()
    model.set_trained(model.groups.layers[layer] | model.groups.head)
    model.network.train()
    with FlopCounterMode(display=False) as forth:
        loss = model.loss(batch)
    with FlopCounterMode(display=False) as back:
        loss.backward()
    assert model.packed
    assert forth.get_total_flops() == L * (PRODUCTS + ATTENTION) + HEAD
    above = (L - 1 - layer) * (PRODUCTS + 2 * ATTENTION)
    trained = 2 * PRODUCTS - QUERY_KEY_VALUE + 2 * ATTENTION  # weights and inputs, but for what the layer itself read
    assert back.get_total_flops() == above + trained + 2 * HEAD
