"""One contract for all families: positions, poolers, heads, padding and kernels equal the transformers library's."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from fedsim.data import IGNORED
from fedsim.errors import FederationError
from fedsim.models.families import FAMILIES, STORED_AS, has_packed_layers, longest_text
from fedsim.models.heads import HEADS
from fedsim.models.pretrained import read_ledger
from fedsim.models.sequence import encoder_from_folder, with_head
from fedsim.split import crossing
from tests.fedsim.conftest import CONFIG, VOCABULARY, Small

STORED = [(name, kind) for name, family in FAMILIES.items() for kind in family.stored_heads]


def config_of(family: str) -> dict[str, Any]:
    return {**CONFIG, "model_type": family}


def library(family: str, head: str = "") -> Any:
    """The library's model of a random small configuration, with a language model's head or its pooler."""
    config = transformers.AutoConfig.for_model(**config_of(family))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        kind = transformers.AutoModelForMaskedLM if head == "masked-lm" else transformers.AutoModel
        return kind.from_config(config).eval()


def batch(family: str, *texts: list[int]) -> dict[str, Tensor]:
    """Texts of token ids as a padded batch."""
    padding = transformers.AutoConfig.for_model(family).pad_token_id or 0
    width = max(map(len, texts))
    ids = torch.tensor([text + [padding] * (width - len(text)) for text in texts])
    mask = torch.tensor([[1] * len(text) + [0] * (width - len(text)) for text in texts])
    labels = torch.zeros(len(texts), dtype=torch.int64)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": torch.zeros_like(ids), "labels": labels}


@pytest.mark.parametrize("family", FAMILIES)
def test_an_encoder_has_as_many_positions_as_it_says(family):
    model, longest = library(family), longest_text(config_of(family))
    with torch.no_grad():
        assert model(torch.full((1, longest), 7)).last_hidden_state.shape == (1, longest, 16)
        with pytest.raises((IndexError, RuntimeError)):
            model(torch.full((1, longest + 1), 7))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_gives_the_librarys_states_in_fp32(family, tmp_path):
    """Of weights in half precision, as on the hub."""
    model = library(family).half()
    model.save_pretrained(tmp_path)
    network = with_head(encoder_from_folder(tmp_path), 3, 0, tmp_path, "ordinary").eval()
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}
    model = model.float()
    texts = batch(family, [2, 9, 11, 3], [2, 30, 3])
    with torch.no_grad():
        expected = model(texts["input_ids"], attention_mask=texts["attention_mask"]).last_hidden_state
        (states,) = network.states(texts)
    for number, length in enumerate((4, 3)):
        torch.testing.assert_close(states[number, :length], expected[number, :length])


@pytest.mark.parametrize(("family", "kind"), STORED)
def test_a_head_of_a_checkpoint_gives_the_librarys_answers(family, kind, tmp_path):
    model = library(family, kind)
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # the library draws biases as 0
            if name.endswith("bias"):
                parameter.normal_()
    model.save_pretrained(tmp_path)
    encoder = encoder_from_folder(tmp_path)
    texts = batch(family, [2, 9, 11, 3], [2, 30, 3])
    inputs = (texts["input_ids"], texts["attention_mask"])
    ledger = read_ledger(tmp_path, config_of(family), [name for name, _ in encoder.named_parameters()])
    assert set(ledger.heads) == {kind}
    with torch.no_grad():
        if kind == "masked-lm":
            network = with_head(encoder, VOCABULARY, 0, tmp_path, "masked-lm").eval()
            labels = texts["input_ids"].masked_fill(texts["attention_mask"] == 0, IGNORED)
            (logits,) = network(texts | {"labels": labels})
            torch.testing.assert_close(logits, model(*inputs).logits[texts["attention_mask"].bool()])
        else:
            network = with_head(encoder, 3, 0, tmp_path, "pooled").eval()
            pooled = torch.tanh(network.head.pooler(network.states(texts)[0][:, 0]))
            torch.testing.assert_close(pooled, model(*inputs).pooler_output)


@pytest.mark.parametrize("family", [name for name in FAMILIES if has_packed_layers({"model_type": name})])
def test_both_kernels_give_the_same_answers_to_odd_texts(family):
    padding = transformers.AutoConfig.for_model(family).pad_token_id
    empty, unknown, special = [2, 3], [2, 4, 4, 4, 3], [2, 3, padding, 2, 9, padding, 3]
    texts = batch(family, empty, unknown, special, [2, 9, 10, 11, 12, 3])
    packed, reference = (Small(model_type=family).load(kernels=kernels) for kernels in ("packed", "reference"))
    for model in (packed, reference):
        model.network.eval()
    assert packed.packed
    torch.testing.assert_close(packed.path_logits(texts), reference.path_logits(texts))


@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_sorted_into_parts_and_federated(family):
    small = Small(model_type=family)
    workload = small.workload()
    parts = workload.model.groups
    groups = [parts.embeddings, *parts.layers, parts.head]
    assert sum(map(len, groups)) == len(parts.names) == len(workload.model.parameters)
    assert all(groups)
    assert parts.depth == 3
    assert len(parts.layers[2]) - len(parts.layers[0]) == (2 if family == "gpt2" else 0)  # a norm behind the last layer
    assert len(parts.head) == 4
    if family == "gpt2":
        assert parts.embeddings == {"encoder.wte.weight", "encoder.wpe.weight"}
    else:
        assert all("embeddings" in name or "relative_attention" in name for name in parts.embeddings)
    run = small.run(small.algorithm("fedsplitbert", workload, critical_layer=1), rounds=1)
    assert run.state.shared.keys() == parts.layers[0]
    assert all(".layer.0." in name or ".h.0." in name for name in run.state.shared)


@pytest.mark.parametrize("layer", [0, 1, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_cut_sends_the_librarys_states_and_takes_what_comes_back(family, layer):
    crossed = []

    def through(hidden):
        crossed.append(hidden)
        return hidden * 0 if len(crossed) == 2 else hidden

    model, texts = Small(model_type=family).load(), batch(family, [2, 9, 11, 3], [2, 30, 3])
    model.network.eval()
    inputs = {name: texts[name] for name in ("input_ids", "attention_mask")}
    states = model.network.encoder(**inputs, output_hidden_states=True).hidden_states
    before = model.path_logits(texts)
    with crossing(model, layer, through):
        torch.testing.assert_close(model.path_logits(texts), before)
        assert not torch.allclose(model.path_logits(texts), before)
    assert crossed[0].shape == (2, 4, 16)
    if (family, layer) != ("gpt2", 3):  # whose last states are normalised
        mask = texts["attention_mask"].bool()
        torch.testing.assert_close(crossed[0][mask], states[layer][mask])


# ---- what a checkpoint may not have ------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    library("bert").save_pretrained(tmp_path)
    return tmp_path


def changed(folder: Path, name: str, value: Tensor) -> Path:
    path = folder / "model.safetensors"
    save_file({**load_file(path), name: value}, path, {"format": "pt"})
    return folder


QUERY = "encoder.layer.0.attention.self.query.weight"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("encoder.layer.1.attention.self.distance_embedding.weight", torch.ones(5), "distance_embedding"),
        ("lora.weight", torch.ones(5), r"found lora\.weight, which the transformers library does not use"),
        (QUERY, torch.ones(16, 16, dtype=torch.int8), f"{QUERY}: expected floats .* found I8"),
        (QUERY, torch.full((16, 16), float("nan")), f"{QUERY}: expected finite numbers"),
        ("embeddings.LayerNorm.bias", torch.full((16,), float("inf")), "LayerNorm.bias: expected finite"),
    ],
)
def test_a_tensor_that_would_change_the_model_is_refused_by_name(saved, name, value, message):
    with pytest.raises(FederationError, match=message):
        encoder_from_folder(changed(saved, name, value))


@pytest.mark.parametrize(
    ("file", "entry", "message"),
    [
        ("config.json", '"quantization_config": {"load_in_8bit": true}', "float weights, found quantization_config"),
        ("config.json", '"position_embedding_type": "relative_key"', "expected absolute, found relative_key"),
        ("adapter_config.json", '"peft_type": "LORA"', "Merge it into its encoder first"),
    ],
)
def test_an_adapter_a_quantised_encoder_and_relative_positions_are_refused(saved, file, entry, message):
    path = saved / file
    content = path.read_text() if path.exists() else '{"": 0}'
    path.write_text(content.replace("{", f"{{{entry},", 1))
    with pytest.raises(FederationError, match=message):
        encoder_from_folder(saved)


def test_another_models_file_in_the_folder_is_not_read(tmp_path):
    library("bert", "masked-lm").save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file({name: torch.zeros_like(value) for name, value in tensors.items()}, tmp_path / "teacher.safetensors")
    network: Any = with_head(encoder_from_folder(tmp_path), VOCABULARY, 0, tmp_path, "masked-lm")
    assert torch.equal(network.head.transform.weight, tensors["cls.predictions.transform.dense.weight"])


def test_an_index_without_one_of_its_files_is_refused(tmp_path):
    library("bert").save_pretrained(tmp_path, max_shard_size="5KB")
    assert encoder_from_folder(tmp_path) is not None
    sorted(tmp_path.glob("model-*.safetensors"))[-1].unlink()
    with pytest.raises(FederationError, match=r"expected the files listed in model\.safetensors\.index\.json"):
        encoder_from_folder(tmp_path)


def test_every_head_that_checkpoints_have_is_in_the_table():
    assert STORED_AS.keys() <= HEADS.keys()
    assert set(STORED_AS.values()) == {kind for _, kind in STORED}
