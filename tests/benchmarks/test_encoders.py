"""Encoders: identity, files, vocabularies, and tests of tokenizers before use."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import processors

from benchmarks.cli.main import main
from benchmarks.encoders import tokenization
from benchmarks.encoders.backbones import BACKBONES, backbone_name, requested_backbone
from benchmarks.encoders.files import architecture, depth
from benchmarks.encoders.loading import build_tokenizer, drawn_parts, locate
from benchmarks.encoders.tokenization import checks, load_tokenizer, require_sound, word_tokenizer
from benchmarks.errors import UserError
from benchmarks.overrides import with_changes
from benchmarks.registry import benchmark, with_backbone
from benchmarks.running.counts import counted
from benchmarks.running.run_options import RunOptions
from fedsim.models.families import longest_text
from fedsim.models.pretrained import has_head
from fedsim.models.sequence import encoder_from_config, with_head

TABLE = benchmark("fedsplitbert-table3")


def test_doctor_prints_what_an_encoders_files_have(tiny_encoder, tmp_path, capsys):
    assert main(["doctor", "--backbone", str(tiny_encoder), "--results-dir", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"ok   encoder: {tiny_encoder.name} (bert): ")
    assert any(line.startswith("ok   tensors: ") and " used" in line for line in lines)
    assert any(line.startswith("ok   randomly initialised: a task's classifier") for line in lines)
    assert sum(line.startswith("ok   tokenizer, ") for line in lines) == 5


def test_parts_that_are_drawn_are_named(tiny_encoder):
    built_in, folder = locate("tiny"), locate(str(tiny_encoder))
    assert drawn_parts(built_in, "pooled") == ("encoder", "pooler")
    assert drawn_parts(built_in, "average") == ("encoder",)
    assert drawn_parts(folder, "average") == ()
    assert drawn_parts(folder, "masked-lm") == ("masked-lm",)
    has_pooler = has_head(tiny_encoder, folder.config, "pooler")
    assert drawn_parts(folder, "pooled") == (() if has_pooler else ("pooler",))
    assert drawn_parts(replace(folder, heads=False), "pooled") == ("pooler",)


def test_show_names_what_a_scale_draws(capsys):
    assert main(["show", "fedsplitbert-table3"]) == 0
    scales = capsys.readouterr().out.partition("\nScales\n")[2].partition("\n\n")[0].splitlines()
    drawn = {line: scales[place - 1].split()[0] for place, line in enumerate(scales) if "randomly initialised" in line}
    assert {scale: line.rpartition(": ")[2] for line, scale in drawn.items()} == {
        "demo": "all weights",
        "literal": "pooler",  # MiniLM was trained without its pooler; at lite the head is the average
    }


def test_a_definitions_encoder_is_never_a_folder_of_that_name(tiny_encoder, tmp_path, monkeypatch):
    shutil.copytree(tiny_encoder, tmp_path / "bert-base-uncased")
    monkeypatch.chdir(tmp_path)
    assert backbone_name("bert-base-uncased") == "bert-base-uncased"
    with pytest.raises(UserError, match=r"BACKBONE bert-base-uncased: expected one encoder, found two: .*\./bert-base"):
        requested_backbone("bert-base-uncased")
    shutil.copytree(tiny_encoder, tmp_path / "mine")
    assert requested_backbone("mine") == "./mine"
    assert locate("./mine").folder == tmp_path / "mine"


def test_another_encoder_is_named_in_every_caption(tiny_encoder, tmp_path):
    folder = tmp_path / "bert-base-uncased"
    shutil.copytree(tiny_encoder, folder)
    scale = with_backbone(TABLE.scale("paper"), str(folder))
    assert scale.backbone == "folder-bert-base-uncased"
    assert scale.changed
    assert "on folder-bert-base-uncased" in scale.label
    for other in TABLE.scales:
        assert other.backbone not in with_backbone(other, str(tiny_encoder)).label


def test_a_folder_with_the_pinned_content_is_the_pinned_encoder(encoder_dir, tmp_path):
    pinned = locate("all-MiniLM-L6-v2")
    assert pinned.digest == BACKBONES["all-MiniLM-L6-v2"].digest
    assert pinned.folder is not None
    shutil.copytree(pinned.folder, tmp_path / "all-MiniLM-L6-v2")
    lite = TABLE.scale("lite")
    assert with_backbone(lite, str(tmp_path / "all-MiniLM-L6-v2")) is lite


@pytest.mark.parametrize(
    ("backbone", "head", "outputs", "millions"),
    [
        ("MARBERT", {}, 3, 651.37 / 4),  # FedFreezeBERT prints 651.37 MB
        ("roberta-small-fresh", {"head": "masked-lm"}, 50265, 22.6),  # FedBERT's Table 3
        ("roberta-base-fresh", {"head": "masked-lm"}, 50265, 124.7),
        ("gpt2-fresh", {"head": "causal-lm"}, 50257, 124.4),
    ],
)
def test_sizes_are_the_published_ones(backbone, head, outputs, millions):
    config = architecture(backbone)
    with torch.device("meta"):
        model = with_head(encoder_from_config(config), outputs, seed=0, **head)
    assert sum(parameter.numel() for parameter in model.parameters()) / 1e6 == pytest.approx(millions, abs=0.05)
    assert depth(backbone) == 12
    assert longest_text(config) >= 512


def test_gpt2s_vocabulary_has_the_released_ids_and_robertas_has_fairseqs_around_it(data_dir):
    tokenizer = build_tokenizer(locate("gpt2-fresh", data_dir=data_dir))
    assert len(tokenizer) == 50257
    assert tokenizer("Hello world").input_ids == [15496, 995]
    assert (tokenizer.eos_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id) == (50256, None, None)
    tokenizer = build_tokenizer(locate("roberta-small-fresh", data_dir=data_dir))
    assert len(tokenizer) == 50265
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "!", "madeupword0002", "<mask>"]
    assert tokenizer.convert_tokens_to_ids(tokens) == [0, 1, 2, 3, 4, 50263, 50264]
    pair = tokenizer("Hello", " world", return_token_type_ids=True)
    assert pair.input_ids == [0, 15496 + 4, 2, 2, 995 + 4, 2]
    assert not any(pair.token_type_ids)
    assert tokenizer.decode(tokenizer("naïve — ☃\n").input_ids, skip_special_tokens=True) == "naïve — ☃\n"


def test_a_vocabulary_is_trained_once_and_its_text_decides_the_identity(tmp_path, monkeypatch):
    monkeypatch.setattr(tokenization, "MINI_VOCAB_SIZE", 300)
    (tmp_path / "data" / "corpora").mkdir(parents=True)
    files = [tmp_path / "data" / "corpora" / f"wikipedia.{part}.txt" for part in ("train", "valid")]
    for file in files:
        file.write_text(" = A =\n" + "".join(f"the theatre of theory number {number} — ü\n" for number in range(200)))

    def located(name, results="results"):
        locate.cache_clear()
        return locate(name, True, tmp_path / "data", tmp_path / results)

    mini = located("gpt2-mini-fresh")
    tokenizer = build_tokenizer(mini)
    assert len(tokenizer) <= 300
    assert len(tokenizer(" theatre theory").input_ids) < 15
    assert located("gpt2-mini-fresh", "elsewhere").digest == mini.digest
    with monkeypatch.context() as patch:
        patch.setattr(tokenization, "train_bpe", None)  # it is not trained again
        assert located("gpt2-mini-fresh").digest == mini.digest
        roberta = located("roberta-mini-fresh")
    assert roberta.bpe == mini.bpe
    assert len(build_tokenizer(roberta)) % 8 == 1
    table = benchmark("fedbert-pretraining")
    cell = next(cell for _, _, cell in table.cells(table.scale("lite"), [0]) if cell.backbone == roberta.id)
    one = with_changes(cell, [("clients", 1), ("partition", {"scheme": "equal"})])
    settings = RunOptions(data_dir=tmp_path / "data", results_dir=tmp_path / "results")
    assert counted(one, settings).examples[0] > 0  # for `plan`, without files of the encoder
    files[0].write_text(files[0].read_text() + "another ending of another text\n" * 50)
    assert located("gpt2-mini-fresh").digest != mini.digest


def test_a_vocabulary_without_its_text_says_what_is_missing(tmp_path):
    for folder, reason in ((tmp_path, "looked in .*wiki.train.raw"), (None, "the data directory is not set")):
        with pytest.raises(UserError, match=f"'gpt2-mini-fresh': its vocabulary is trained here .*{reason}"):
            locate("gpt2-mini-fresh", True, folder, tmp_path)


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CASED = [*SPECIAL, "IL", "NF", "kappa", "B", "-", "2", "a", *(f"##{letter}" for letter in "abcABC")]
UNCASED = [*SPECIAL, "il", "nf", "kappa", "-", "2", "a", *(f"##{letter}" for letter in "abc")]


def vocabulary(folder: Path, tokens: list[str], **options: Any) -> Path:
    """A folder with vocab.txt, and a configuration if options are given."""
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "vocab_size": len(tokens)}))
    if options:
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **options}))
    return folder


def problems(tokenizer: Any, size: int = 10**6) -> dict[str, str]:
    return {check.name: check.problem for check in checks(tokenizer, "bert", size) if check.problem}


def test_a_sound_vocabulary_has_no_problem(tmp_path):
    for tokens, lower in ((CASED, False), (UNCASED, True)):
        tokenizer = load_tokenizer(vocabulary(tmp_path, tokens, do_lower_case=lower))
        assert problems(tokenizer, len(tokens)) == {}
        assert tokenizer.tokenize("NF-kappa B")[0] == ("nf" if lower else "NF")


FLAG = "; set do_lower_case in tokenizer_config.json to "


@pytest.mark.parametrize(
    ("tokens", "options", "size", "problem"),
    [
        (CASED, {}, len(CASED), f"case: its vocabulary has capital letters .*{FLAG}false"),
        (UNCASED, {"do_lower_case": False}, len(UNCASED), f"case: its vocabulary has no capital letter.*{FLAG}true"),
        (
            UNCASED,
            {"do_lower_case": True},
            len(UNCASED) - 1,
            "vocabulary: expected at most .* tokens, .* found .*; fetch the encoder again",
        ),
    ],
)
def test_an_unsound_vocabulary_is_refused(tokens, options, size, problem, tmp_path):
    folder = vocabulary(tmp_path, tokens, **options)
    with pytest.raises(UserError, match=f"tokenizer, {problem}"):
        require_sound(load_tokenizer(folder), folder, "bert", size)


def test_texts_without_their_special_tokens_are_refused():
    tokenizer = word_tokenizer(["A", "a"])
    assert problems(tokenizer) == {}
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", pair="[CLS] $A $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    assert problems(tokenizer) == {
        "one text": "expected [CLS] … [SEP], found [CLS] a; convert it to tokenizer.json with its template",
        "a pair of texts": "expected [CLS] … [SEP] … [SEP], found [CLS] a a [SEP]; convert it to tokenizer.json with "
        "its template",
    }


def test_a_special_token_that_is_cut_is_refused(tmp_path):
    tokenizer = load_tokenizer(vocabulary(tmp_path, UNCASED, do_lower_case=True))
    tokenizer.sep_token = "kappa il"
    assert "expected kappa il to be one token" in problems(tokenizer)["special tokens"]
