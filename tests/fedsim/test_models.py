"""Parts of a model by name, the paper's sizes on the meta device, and encoders from a folder."""

import copy
import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from fedsim.errors import FederationError
from fedsim.models.encoder import FAMILY, encoder_from_config, encoder_from_folder, read_config
from fedsim.models.groups import parameter_groups
from fedsim.models.model import Model
from fedsim.models.pretrained import POOLER, pretrained_head
from fedsim.models.sequence import SequenceModel, with_head
from fedsim.objectives import Classification
from fedsim.precision import resolve_precision
from fedsim.wire import Channel

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


# ---- anatomy ---------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("critical_layer", "codec", "gigabytes"), [(12, "fp32", 1.03), (6, "fp32", 0.51), (6, "fp16", 0.26)]
)
def test_paper_sizes_of_a_round(bert_base, critical_layer, codec, gigabytes):
    """FedSplitBERT, Table VI: one direction, 3 clients, 10⁹ bytes."""
    parameters = dict(bert_base.named_parameters())
    parts = parameter_groups(parameters)
    shared = parts.up_to(critical_layer) | (parts.head if critical_layer == parts.depth else frozenset())
    channel = Channel(codec)
    channel.round = 1
    for client in range(3):
        channel.to_server(client, {name: parameters[name] for name in shared})
    values = critical_layer * 7_087_872 + (592_130 if critical_layer == 12 else 0)
    sent = channel.ledger.total_bytes("up", 1)
    assert sent == 3 * values * (2 if codec == "fp16" else 4)
    assert round(sent / 1e9, 2) == gigabytes


@pytest.mark.parametrize("model_type", RELATIVES)
def test_relatives_are_sorted_into_parts_and_federated(small, model_type):
    def load():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            encoder = encoder_from_config({"model_type": model_type, **RELATIVES[model_type]})
        return Model(with_head(encoder, 2, seed=0), resolve_precision("fp32", "cpu"), Classification(2))

    setting = small.setting(load)
    parts = setting.model.groups
    groups = [parts.embeddings, *parts.layers, parts.head]
    assert sum(map(len, groups)) == len(parts.names) == len(setting.model.parameters)
    assert all(groups)
    assert parts.depth == 2
    assert len(parts.layers[1]) - len(parts.layers[0]) == BEHIND.get(model_type, 0)
    assert all(name.startswith("head.") for name in parts.head)
    assert len(parts.head) == 4
    if model_type in EMBEDDINGS:
        assert parts.embeddings == EMBEDDINGS[model_type]
    else:
        assert all("embeddings" in name for name in parts.embeddings)

    run = small.run(small.algorithm("fedsplitbert", setting, critical_layer=1), rounds=1)
    assert run.state.shared.keys() == parts.layers[0]
    assert all(".layer.0." in name or ".h.0." in name for name in run.state.shared)


def test_every_relative_is_tried():
    assert set(RELATIVES) == set(FAMILY)


def test_embedding_projection_of_electra_belongs_to_the_embeddings():
    with torch.device("meta"):
        encoder = encoder_from_config({"model_type": "electra", **RELATIVES["electra"]})
    parts = parameter_groups(dict(SequenceModel(encoder, torch.nn.Identity()).named_parameters()))
    assert "encoder.embeddings_project.weight" in parts.embeddings


def test_layers_are_counted_from_one_and_end_at_the_depth(small):
    parts = small.load().groups
    assert parts.up_to(0) == frozenset()
    assert parts.up_to(1) == parts.layers[0]
    assert parts.up_to(3) == parts.names - parts.embeddings - parts.head
    for layer in (-1, 4):
        with pytest.raises(FederationError, match=f"critical layer {layer}: expected 0 to 3"):
            parts.up_to(layer)


def test_layers_are_sorted_by_number_and_not_by_name():
    parts = parameter_groups(f"encoder.layer.{layer}.weight" for layer in range(12))
    assert [set(layer) for layer in parts.layers] == [{f"encoder.layer.{layer}.weight"} for layer in range(12)]


@pytest.mark.parametrize(
    "names", [["encoder.embeddings.w"], ["encoder.layer.1.w"], ["encoder.layer.0.w", "encoder.layer.2.w"]]
)
def test_missing_layers_are_refused(names):
    with pytest.raises(FederationError, match="not a BERT-family encoder: found the layers"):
        parameter_groups(names)


def test_gpt2_comes_from_a_folder_as_it_was_saved(tmp_path):
    from transformers import GPT2Config, GPT2Model

    model = GPT2Model(GPT2Config(**RELATIVES["gpt2"]))
    model.save_pretrained(tmp_path)
    loaded = dict(encoder_from_folder(tmp_path).named_parameters())
    assert loaded.keys() == dict(model.named_parameters()).keys()
    assert all(torch.equal(loaded[name], value) for name, value in model.named_parameters())


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


# ---- the head --------------------------------------------------------------------------------------------------


def test_head_is_drawn_from_its_seed(small):
    encoder = small.load().network.encoder
    before = torch.get_rng_state()

    def head(seed, outputs=2):
        return with_head(encoder, outputs, seed).head

    assert torch.equal(head(0).classifier.weight, head(0).classifier.weight)
    assert not torch.equal(head(0).classifier.weight, head(1).classifier.weight)
    assert head(0, outputs=3).classifier.weight.shape == (3, 16)
    assert not head(0).classifier.bias.any()
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(("classifier_dropout", "expected"), [(None, 0.1), (0.3, 0.3), (0.0, 0.0)])
def test_dropout_of_the_head_is_the_configurations(small, classifier_dropout, expected):
    encoder = copy.deepcopy(small.load().network.encoder)
    encoder.config.classifier_dropout = classifier_dropout
    assert with_head(encoder, 2, 0).head.dropout.p == expected


def test_one_output_is_a_score_to_be_regressed(small):
    setting = small.setting(outputs=1)
    batch = small.examples.collate(small.clients[0].train.indices)
    batch["labels"] = batch["labels"].float()
    setting.model.network.eval()
    expected = (setting.model.logits(batch)[:, 0] - batch["labels"]).square().mean()
    torch.testing.assert_close(setting.model.loss(batch), expected)


# ---- folders ---------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("width", [128, 130])  # with it changes where the file's header ends
def test_weights_are_copied_out_of_the_file_into_aligned_memory(small, tmp_path, width):
    """Mapped, they lie anywhere; on some CPUs a matrix product has other last bits then."""
    made = encoder_from_config({**small.config, "intermediate_size": width})
    made.save_pretrained(tmp_path)
    loaded = encoder_from_folder(tmp_path)
    assert all(parameter.data_ptr() % 64 == 0 for parameter in loaded.parameters())
    found, expected = (dict(encoder.named_parameters()) for encoder in (loaded, made))
    assert found.keys() == expected.keys()
    assert all(torch.equal(parameter, expected[name]) for name, parameter in found.items())


def test_pretrained_pooler_is_taken_over(folder):
    stored = load_file(folder / "model.safetensors")
    head = with_head(encoder_from_folder(folder), 2, seed=0, folder=folder).head
    assert torch.equal(head.pooler.weight, stored["pooler.dense.weight"].float())
    assert torch.equal(head.pooler.bias, stored["pooler.dense.bias"].float())


def test_a_head_is_found_under_a_prefix_and_may_be_absent(tmp_path):
    path = tmp_path / "model.safetensors"
    pooler = {"bert.pooler.dense.bias": torch.ones(2), "bert.pooler.dense.weight": torch.eye(2)}
    save_file({**pooler, "cls.dense.bias": torch.zeros(2)}, path)
    found = pretrained_head(tmp_path, POOLER)
    assert {name: tensor.tolist() for name, tensor in found.items()} == {
        "pooler.weight": [[1.0, 0.0], [0.0, 1.0]],
        "pooler.bias": [1.0, 1.0],
    }
    save_file({"cls.dense.bias": torch.zeros(2)}, path)
    assert pretrained_head(tmp_path, POOLER) == {}
    save_file({"bert.pooler.dense.bias": torch.ones(2)}, path)
    with pytest.raises(FederationError, match=r"whole head or none, found one that lacks pooler\.dense\.weight"):
        pretrained_head(tmp_path, POOLER)


BERT_HEAD = ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias")
DISTILBERT_HEAD = ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias")
ROBERTA_HEAD = ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias")


def checkpoint_with_head(folder, config, names, parts=("weight", "bias"), outputs=None):
    """An encoder's folder with a masked-LM head of random weights under these names; returns the head's tensors."""
    made = encoder_from_config(config)
    made.save_pretrained(folder)
    hidden, outputs = made.config.hidden_size, outputs or made.config.vocab_size
    (dense, norm, bias), rng = names, torch.Generator().manual_seed(7)

    def drawn(*shape):
        return torch.randn(*shape, generator=rng)

    head = {
        "transform.weight": (f"{dense}.weight", drawn(hidden, hidden)),
        "transform.bias": (f"{dense}.bias", drawn(hidden)),
        "norm.weight": (f"{norm}.{parts[0]}", drawn(hidden)),
        "norm.bias": (f"{norm}.{parts[1]}", drawn(hidden)),
        "bias": (bias, drawn(outputs)),
    }
    stored = load_file(folder / "model.safetensors")
    save_file(stored | dict(head.values()), folder / "model.safetensors", metadata={"format": "pt"})
    return {name: tensor for name, (_, tensor) in head.items()}


@pytest.mark.parametrize(
    ("model_type", "names", "parts"),
    [
        ("bert", BERT_HEAD, ("weight", "bias")),
        ("bert", BERT_HEAD, ("gamma", "beta")),  # as bert-base-uncased has them
        ("bert", (*BERT_HEAD[:2], "cls.predictions.decoder.bias"), ("weight", "bias")),
        ("distilbert", DISTILBERT_HEAD, ("weight", "bias")),
        ("roberta", ROBERTA_HEAD, ("weight", "bias")),
    ],
)
def test_a_checkpoints_masked_lm_head_is_taken_over(tmp_path, model_type, names, parts):
    kept = checkpoint_with_head(tmp_path, {"model_type": model_type, **RELATIVES[model_type]}, names, parts)
    encoder = encoder_from_folder(tmp_path)
    head = with_head(encoder, 60, seed=0, folder=tmp_path, head="masked-lm").head
    assert all(torch.equal(head.get_parameter(name), tensor) for name, tensor in kept.items())
    assert head.decoder is encoder.get_input_embeddings().weight  # tied, whatever the checkpoint has


def test_without_a_masked_lm_head_one_is_drawn(folder):
    encoder = encoder_from_folder(folder)
    words = encoder.config.vocab_size
    fresh, found = (
        with_head(encoder, words, seed=0, folder=at, head="masked-lm").head.state_dict() for at in (None, folder)
    )
    assert all(torch.equal(fresh[name], tensor) for name, tensor in found.items())


def test_a_head_of_another_vocabulary_is_refused(tmp_path):
    checkpoint_with_head(tmp_path, {"model_type": "bert", **NARROW}, BERT_HEAD, outputs=7)
    encoder = encoder_from_folder(tmp_path)
    with pytest.raises(FederationError, match=r"head whose bias has the shape \[60\], found \[7\]"):
        with_head(encoder, encoder.config.vocab_size, seed=0, folder=tmp_path, head="masked-lm")


def test_pickles_are_not_read(folder):
    (folder / "model.safetensors").rename(folder / "kept")
    torch.save(load_file(folder / "kept"), folder / "pytorch_model.bin")
    with pytest.raises(FederationError, match=r"expected weights as model.safetensors, found none"):
        encoder_from_folder(folder)


@pytest.mark.parametrize("kept", [0, 4, 200, -1])
def test_truncated_weights_are_refused(folder, kept):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    with pytest.raises(FederationError, match="the weights cannot be read"):
        encoder_from_folder(folder)


def test_truncated_weights_are_refused_where_the_pooler_is_looked_for(folder):
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(FederationError, match="cannot be read"):
        pretrained_head(folder, POOLER)


@pytest.mark.parametrize("change", ["missing", "shape"])
def test_weights_that_do_not_fit_are_refused(folder, change):
    """Not filled up with random values, as transformers would with a mere warning."""
    weights = load_file(folder / "model.safetensors")
    name = "encoder.layer.1.output.dense.weight"
    if change == "missing":
        del weights[name]
    else:
        weights[name] = torch.zeros(3, 3)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(FederationError, match=r"encoder\.layer\.1\.output\.dense\.weight|cannot be read"):
        encoder_from_folder(folder)


def test_folder_without_configuration_is_refused(tmp_path):
    for missing in (tmp_path, tmp_path / "none"):
        with pytest.raises(FederationError, match=r"no encoder in .*expected config.json"):
            encoder_from_folder(missing)


@pytest.mark.parametrize("text", ["{", "", '{"hidden_size": 3}', "[]", '"bert"'])
def test_configuration_that_is_none_is_refused(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(FederationError, match=r"config.json: expected"):
        read_config(tmp_path)
