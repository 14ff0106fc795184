"""Aggregators against their definitions written out in plain torch."""

import math

import pytest
import torch
from torch.nn import functional

from fedsim.errors import FederationError

HIDDEN, ATTENTION_HEADS = 16, 2


def bert_layer(p, x, mask):
    """Devlin et al.'s layer, text by text and head by head. p: parameter name -> tensor."""

    def linear(name, v):
        return v @ p[f"{name}.weight"].T + p[f"{name}.bias"]

    def norm(name, v):
        return functional.layer_norm(v, (HIDDEN,), p[f"{name}.weight"], p[f"{name}.bias"], 1e-12)

    outputs = []
    for text, kept in zip(x, mask.bool(), strict=True):
        q, k, v = (linear(f"attention.self.{name}", text) for name in ("query", "key", "value"))
        size = HIDDEN // ATTENTION_HEADS
        parts = []
        for start in range(0, HIDDEN, size):
            own = slice(start, start + size)
            scores = q[:, own] @ k[kept][:, own].T / math.sqrt(size)
            parts.append(scores.softmax(-1) @ v[kept][:, own])
        attended = norm("attention.output.LayerNorm", linear("attention.output.dense", torch.cat(parts, -1)) + text)
        inner = functional.gelu(linear("intermediate.dense", attended))
        outputs.append(norm("output.LayerNorm", linear("output.dense", inner) + attended))
    return torch.stack(outputs)


@pytest.mark.parametrize("name", ["psum", "hsum", "psum-copied", "hsum-copied"])
def test_four_paths_are_their_definition(deep, name):
    model = deep.load(head=name, outputs=3).network.eval()
    batch = deep.examples.collate(deep.clients[0].train.indices)
    found = model(batch)
    encoder = model.encoder(
        **{key: batch[key] for key in ("input_ids", "attention_mask", "token_type_ids")}, output_hidden_states=True
    )
    h = encoder.hidden_states  # h[0] are the embeddings
    logits, before = [], None
    for path in range(4):
        read = h[4 - path] if before is None or name.startswith("psum") else before + h[4 - path]
        before = bert_layer(dict(model.head.layers[path].named_parameters()), read, batch["attention_mask"])
        classifier = model.head.classifiers[path]
        logits.append(before[:, 0] @ classifier.weight.T + classifier.bias)
    torch.testing.assert_close(found, torch.stack(logits), rtol=0, atol=1e-5)
    if name.endswith("copied"):
        for path, layer in enumerate(model.head.layers):
            original = dict(model.encoder.encoder.layer[3 - path].named_parameters())
            assert all(torch.equal(tensor, original[key]) for key, tensor in layer.named_parameters())


def test_losses_of_paths_are_summed_and_logits_averaged(deep):
    resident = deep.load(head="psum")
    resident.network.eval()
    batch = deep.examples.collate(deep.clients[0].train.indices)
    paths = resident.path_logits(batch)
    assert paths.shape == (4, len(batch["labels"]), 2)
    expected = sum(functional.cross_entropy(logits, batch["labels"]) for logits in paths)
    torch.testing.assert_close(resident.loss(batch), expected)
    torch.testing.assert_close(resident.logits(batch), paths.mean(0))


@pytest.mark.parametrize("name", ["psum", "hsum"])
def test_a_shallow_encoder_is_refused(small, name):
    with pytest.raises(FederationError, match=f"head {name}: it reads the last 4 layers, and the encoder has 3"):
        small.load(head=name)
