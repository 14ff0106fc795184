"""Models: parts by name, and heads against their definitions."""

import pytest
import torch
from torch.nn import functional

from fedsim.errors import FederationError
from fedsim.models.model import parameter_groups
from fedsim.models.sequence import encoder_from_folder
from fedsim.objectives import Classification


def test_another_family_is_refused(tmp_path):
    with pytest.raises(FederationError, match=r"expected BERT's parameters, found 'encoder\.decoder\.x'"):
        parameter_groups(["encoder.decoder.x", "head.classifier.weight"])
    (tmp_path / "config.json").write_text('{"model_type": "opt"}')
    with pytest.raises(FederationError, match=r"expected a BERT-family encoder .*found 'opt'"):
        encoder_from_folder(tmp_path)


@pytest.mark.parametrize("name", ["psum", "hsum", "psum-copied", "hsum-copied"])
def test_four_paths_are_their_definition(deep, name):
    model = deep.load(Classification(3), name).network.eval()
    batch = deep.examples.collate(deep.clients[0].train.indices)
    outputs = model(batch)
    encoder = model.encoder(
        **{key: batch[key] for key in ("input_ids", "attention_mask", "token_type_ids")}, output_hidden_states=True
    )
    h = encoder.hidden_states  # h[0] are the embeddings
    padding = torch.where(batch["attention_mask"].bool(), 0.0, -torch.inf)[:, None, None, :]
    logits, before = [], None
    for path in range(4):
        read = h[4 - path] if before is None or name.startswith("psum") else before + h[4 - path]
        before = model.head.layers[path](read, padding)  # the library's layer
        classifier = model.head.classifiers[path]
        logits.append(before[:, 0] @ classifier.weight.T + classifier.bias)
    torch.testing.assert_close(outputs, torch.stack(logits), rtol=0, atol=1e-5)
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
    answers = resident.predict(deep.clients[0].train, 64, None)
    torch.testing.assert_close(torch.from_numpy(answers), paths.mean(0).detach(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["psum", "hsum"])
def test_a_shallow_encoder_is_refused(small, name):
    with pytest.raises(FederationError, match=f"head {name}: expected at least 4 layers in the encoder, found 3"):
        small.load(head=name)
