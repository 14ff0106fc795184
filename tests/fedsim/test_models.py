"""Parts of a model by name, the paper's sizes on the meta device, and encoders from a folder."""

import json

import pytest
import torch
from safetensors.torch import load_file

from fedsim.errors import FederationError
from fedsim.models.model import Model, parameter_groups
from fedsim.models.sequence import SequenceModel, encoder_from_config, encoder_from_folder, with_head
from fedsim.objectives import Classification
from fedsim.precision import resolve_precision

NARROW = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
}
RELATIVES = {
    "bert": NARROW,
    "roberta": {**NARROW, "type_vocab_size": 1, "pad_token_id": 1},
    "xlm-roberta": {**NARROW, "type_vocab_size": 1, "pad_token_id": 1},
    "camembert": {**NARROW, "type_vocab_size": 1, "pad_token_id": 1},
    "electra": {**NARROW, "embedding_size": 8},
    "distilbert": {"vocab_size": 60, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
    "gpt2": {"vocab_size": 60, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_inner": 24, "n_positions": 20},
}
BEHIND = {"gpt2": 2}  # parameters of a norm behind the last layer, which belongs to that layer
EMBEDDINGS = {"gpt2": {"encoder.wte.weight", "encoder.wpe.weight"}}


@pytest.fixture(scope="module")
def bert_base() -> SequenceModel:
    """bert-base-uncased (its configuration is BertConfig's default) with two labels, without memory."""
    with torch.device("meta"):
        return with_head(encoder_from_config({"model_type": "bert"}), outputs=2, seed=0)


def test_bert_base_has_the_published_sizes(bert_base):
    parameters = dict(bert_base.named_parameters())
    assert all(parameter.is_meta for parameter in parameters.values())
    parts = parameter_groups(parameters)

    def values(names):
        return sum(parameters[name].numel() for name in names)

    assert parts.depth == 12
    # 4 (768² + 768) + 768 · 3072 + 3072 + 3072 · 768 + 768 + 4 · 768
    assert [values(layer) for layer in parts.layers] == [7_087_872] * 12
    assert values(parts.head) == 768 * 768 + 768 + 768 * 2 + 2
    # 30522 word pieces, 512 positions, 2 types, a normalisation: with the pooler Devlin et al.'s "110M"
    assert values(parts.embeddings) == (30_522 + 512 + 2 + 2) * 768
    assert values(parts.names) == 109_482_240 + 768 * 2 + 2


@pytest.mark.parametrize("model_type", RELATIVES)
def test_relatives_are_sorted_into_parts_and_federated(small, model_type):
    def load():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            encoder = encoder_from_config({"model_type": model_type, **RELATIVES[model_type]})
        return Model(with_head(encoder, 2, seed=0), resolve_precision("fp32", "cpu"), Classification(2))

    workload = small.workload(load)
    parts = workload.model.groups
    groups = [parts.embeddings, *parts.layers, parts.head]
    assert sum(map(len, groups)) == len(parts.names) == len(workload.model.parameters)
    assert all(groups)
    assert parts.depth == 2
    assert len(parts.layers[1]) - len(parts.layers[0]) == BEHIND.get(model_type, 0)
    assert all(name.startswith("head.") for name in parts.head)
    assert len(parts.head) == 4
    if model_type in EMBEDDINGS:
        assert parts.embeddings == EMBEDDINGS[model_type]
    else:
        assert all("embeddings" in name for name in parts.embeddings)

    run = small.run(small.algorithm("fedsplitbert", workload, critical_layer=1), rounds=1)
    assert run.state.shared.keys() == parts.layers[0]
    assert all(".layer.0." in name or ".h.0." in name for name in run.state.shared)


def test_another_family_is_refused(tmp_path):
    from transformers import OPTConfig, OPTModel

    with torch.device("meta"):
        model = OPTModel(
            OPTConfig(num_hidden_layers=1, hidden_size=8, num_attention_heads=1, vocab_size=10, word_embed_proj_dim=8)
        )
    with pytest.raises(FederationError, match="not a BERT-family encoder"):
        parameter_groups(dict(SequenceModel(model, torch.nn.Identity()).named_parameters()))
    (tmp_path / "config.json").write_text('{"model_type": "opt"}')
    with pytest.raises(FederationError, match=r"expected a BERT-family encoder .*found 'opt'"):
        encoder_from_folder(tmp_path)


@pytest.fixture
def folder(small, tmp_path):
    """An encoder as the hub has it: in half precision and with a pooler."""
    from transformers import BertConfig, BertModel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        values = {name: value for name, value in small.config.items() if name != "model_type"}
        BertModel(BertConfig(**values)).half().save_pretrained(tmp_path)
    return tmp_path


def test_folder_is_loaded_in_fp32(folder):
    encoder = encoder_from_folder(folder)
    stored = load_file(folder / "model.safetensors")
    parameters = dict(encoder.named_parameters())
    assert json.loads((folder / "config.json").read_text())["dtype"] == "float16"
    assert parameters.keys() == {name for name in stored if not name.startswith("pooler.")}
    for name, parameter in parameters.items():
        assert parameter.dtype == torch.float32
        assert torch.equal(parameter, stored[name].float())


@pytest.mark.parametrize("kept", [0, 4, 200, -1])
def test_truncated_weights_are_refused(folder, kept):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    with pytest.raises(FederationError, match="the weights cannot be read"):
        encoder_from_folder(folder)
