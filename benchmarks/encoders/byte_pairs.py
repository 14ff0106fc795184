"""Byte-level BPE tokenizers (Radford et al., 2019, section 2.2): GPT-2's own, or one that is trained here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.encoders.known_backbones import MINI_WORDS
from benchmarks.errors import UserError
from benchmarks.results import write_text
from benchmarks.run_config import digest
from fedsim.files import read_json, read_text
from fedsim.locks import held

FILES = (("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt"))  # as GPT-2 was released, and as the hub has it
END = "<|endoftext|>"
CORPUS = "wikitext"  # the task whose training text is read
CHARACTERS = 4_000_000  # of it, from its beginning
FOLDER = "tokenizers"  # of the results directory


def byte_level_tokenizer(folder: Path, model_type: str) -> Any:
    """The tokenizer of a BPE's files for a type of model; UserError where they are not there or cannot be read.

    GPT-2's has its end of text and no other special token. RoBERTa's is GPT-2's vocabulary as fairseq has it: <s>,
    <pad>, </s> and <unk> are 0 to 3, GPT-2's tokens follow in their order, then words made up to a multiple of eight,
    and the mask: 50 265 in all.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words, merges = _read(folder)
    if model_type == "roberta":
        words = ["<s>", "<pad>", "</s>", "<unk>", *words]
        words += [f"madeupword{number:04}" for number in range(-len(words) % 8)]
        words.append("<mask>")
    ids = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(ids, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if model_type != "roberta":
        return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=END, eos_token=END, unk_token=END)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s>:0 $B:0 </s>:0",  # RoBERTa has one type of token
        special_tokens=[("<s>", ids["<s>"]), ("</s>", ids["</s>"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token="<mask>",
    )


def has_byte_pairs(folder: Path) -> bool:
    """Whether a folder holds the files of a BPE."""
    return any(all((folder / name).is_file() for name in names) for names in FILES)


def trained_files(data_dir: Path | None, results_dir: Path) -> Path:
    """The folder of the BPE that is trained on the beginning of the Wikipedia text: found, or made and kept.

    MINI_WORDS tokens, of the first CHARACTERS characters of the training text that the task `wikitext` has. The
    folder's name says what they are of, so another text has another one. UserError where there is no text.
    """
    text = "".join(_beginning(data_dir, results_dir))
    folder = results_dir / FOLDER / digest({"text": text, "words": MINI_WORDS, "version": 1}, 24)
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder / ".lock"):
        if not has_byte_pairs(folder):
            words, merges = _trained(text)
            encoder, pairs = FILES[0]
            write_text(folder / pairs, "#version: 0.2\n" + "".join(f"{one} {other}\n" for one, other in merges))
            write_text(folder / encoder, json.dumps({word: number for number, word in enumerate(words)}))
    return folder


def _trained(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=MINI_WORDS, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return sorted(model["vocab"], key=model["vocab"].__getitem__), [tuple(pair) for pair in model["merges"]]


def _beginning(data_dir: Path | None, results_dir: Path) -> Iterator[str]:
    from benchmarks.encoders.fetched import source_of
    from benchmarks.tasks import task

    left = CHARACTERS
    for (article,) in task(CORPUS).load(source_of(CORPUS, data_dir, extracts=results_dir / "corpora")).pool.texts:
        yield f"{article[:left]}\n"
        left -= len(article)
        if left <= 0:
            return


def _read(folder: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Tokens in the order of their ids, and the pairs that are merged, the first ones first."""
    for names in FILES:
        encoder, pairs = (folder / name for name in names)
        if encoder.is_file() and pairs.is_file():
            break
    else:
        found = " or ".join(" and ".join(names) for names in FILES)
        raise UserError(f"{folder}: expected a byte-level BPE ({found}), found none")
    try:
        ids = read_json(encoder)
        words = sorted(ids, key=ids.__getitem__)
        whole = [ids[word] for word in words] == list(range(len(words))) and END in ids
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise UserError(f"{encoder}: the vocabulary cannot be read ({error}); get it again") from None
    if not whole:
        raise UserError(f"{encoder}: expected ids from 0 on, each once, and {END}; get it again")
    lines = [
        line for line in read_text(pairs, "pairs to merge").split("\n") if line and not line.startswith("#version")
    ]
    merges = [tuple(line.split(" ")) for line in lines]
    if any(len(pair) != 2 or "".join(pair) not in ids for pair in merges):
        raise UserError(f"{pairs}: expected two tokens of {encoder.name} a line; get both again")
    return words, [(one, other) for one, other in merges]
