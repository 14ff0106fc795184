"""What leaves a layer and crosses: the same model in parts, for every family."""

import pytest
import torch

from fedsim.models.model import Model
from fedsim.models.sequence import encoder_from_config, with_head
from fedsim.objectives import Classification
from fedsim.precision import resolve_precision
from fedsim.split import crossing, encoder_layers

BERT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
CONFIGS = {
    "bert": BERT,
    "roberta": BERT,
    "electra": {**BERT, "embedding_size": 8},
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
    "gpt2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64},
}


def resident(family: str, objective, head: str) -> Model:
    encoder = encoder_from_config({"model_type": family, "vocab_size": 60, **CONFIGS[family]})
    return Model(with_head(encoder, objective.outputs, 0, head=head), resolve_precision("fp32", "cpu"), objective)


def batch():
    ids = torch.randint(2, 60, (3, 7), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[0, 4:] = 0
    labels = torch.tensor([0, 1, 1])
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids), "labels": labels}


class Cut:
    """A graph cut at the wire, and the gradient that is carried back by hand."""

    def __call__(self, sent):
        self.sent, self.received = sent, sent.detach().clone().requires_grad_()
        return self.received

    def back(self):
        self.sent.backward(self.received.grad)


def gradients(model):
    found = {name: parameter.grad for name, parameter in model.parameters.items() if parameter.grad is not None}
    for parameter in model.parameters.values():
        parameter.grad = None
    return found


@pytest.mark.parametrize("family", CONFIGS)
def test_the_cut_model_has_the_gradients_of_the_whole(family):
    model = resident(family, Classification(2), "average")
    model.network.eval()
    whole = model.loss(batch())
    whole.backward()
    expected = gradients(model)
    assert len(encoder_layers(model)) == 2
    for layer in range(3):
        cut = Cut()
        with crossing(model, layer, cut):
            loss = model.loss(batch())
        loss.backward()
        below = model.groups.embeddings | model.groups.up_to(layer)
        assert all(model.parameters[name].grad is None for name in below)
        cut.back()
        found = gradients(model)
        assert torch.equal(loss, whole)
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert torch.equal(model.loss(batch()), whole)  # nothing is left behind
