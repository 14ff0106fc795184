"""Tokenizers: whole words, an encoder's files, or byte-level BPEs (Radford et al., 2019, section 2.2).

A byte-level BPE is GPT-2's, or trained here. Each tokenizer is checked before use: special tokens, templates,
vocabulary and case.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from benchmarks.encoders.backbones import MINI_VOCAB_SIZE
from benchmarks.encoders.fetched import source_of
from benchmarks.encoders.files import PIECES, TOKENIZERS, require_tokenizer
from benchmarks.errors import UserError
from benchmarks.results import write_text
from benchmarks.run_config import digest
from benchmarks.tasks import task
from fedsim.files import read_json, read_text, require_files
from fedsim.locks import held

BPE_FILES = (("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt"))  # in GPT-2's release and on the hub
END = "<|endoftext|>"
ROBERTA = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}
CORPUS = "wikitext"  # the task that provides the BPE's training text
CHARACTERS = 4_000_000  # from the beginning of that text
FOLDER = "tokenizers"  # of the results directory
CASED_SHARE = 0.01  # a vocabulary with fewer tokens with capital letters counts as uncased
SAMPLED = 50_000  # most tokens, evenly spaced, in the case check
_SPECIAL = ("pad", "unk", "cls", "sep", "mask")
_WITHOUT_CLS = ("gpt2",)  # families without special tokens around texts
_FLAG = "set do_lower_case in tokenizer_config.json to {value}"


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer in a folder; UserError if it is missing, or transformers cannot read it."""
    require_tokenizer(folder)
    if pieces := [name for name in PIECES if (folder / name).is_file() and not (folder / "tokenizer.json").is_file()]:
        raise UserError(
            f"{folder}: expected tokenizer.json, found only {pieces[0]}. Convert it in an environment with the package "
            f"sentencepiece: AutoTokenizer.from_pretrained(folder).save_pretrained(folder)."
        )
    require_files(
        folder, (*TOKENIZERS, "tokenizer*", "vocab*", "merges.txt", "*.json", "*.model"), "a file of a tokenizer"
    )
    try:
        return AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # noqa: BLE001 - the library raises many kinds for a damaged file
        raise UserError(f"{folder}: the tokenizer cannot be read ({error}). Fetch the encoder again.") from None


def word_tokenizer(vocabulary: Sequence[str]) -> Any:
    """A tokenizer of whole words, with BERT's special tokens and templates."""
    # The mask is last, so that other ids do not depend on it.
    ids = {word: index for index, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *vocabulary, "[MASK]"])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "pad", "cls", "sep", "mask")}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def byte_level_tokenizer(folder: Path, model_type: str) -> Any:
    """The tokenizer from a BPE's files for a model type; UserError if they are missing or unreadable.

    GPT-2's only special token is its end of text. RoBERTa's vocabulary is fairseq's version of GPT-2's: <s>, <pad>,
    </s> and <unk> are 0 to 3, then come GPT-2's tokens in order, filler words up to a multiple of eight, and the mask:
    50 265 in all.
    """
    tokens, merges = _read_bpe(folder)
    special = dict.fromkeys(("bos", "eos", "unk"), END)
    if model_type == "roberta":
        tokens, special = ["<s>", "<pad>", "</s>", "<unk>", *tokens], ROBERTA
        tokens += [*(f"madeupword{number:04}" for number in range(-len(tokens) % 8)), "<mask>"]
    ids = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(ids, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if model_type == "roberta":
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> </s>:0 $B:0 </s>:0",  # RoBERTa has one token type
            special_tokens=[("<s>", ids["<s>"]), ("</s>", ids["</s>"])],
        )
    named = {f"{name}_token": token for name, token in special.items()}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)


def trained_files(data_dir: Path | None, results_dir: Path) -> Path:
    """The folder of a byte-level BPE with MINI_VOCAB_SIZE tokens, trained once per text.

    The text is the beginning of the task `wikitext`'s training text; UserError if it is missing.
    """
    text = "".join(_beginning(data_dir, results_dir))
    folder = results_dir / FOLDER / digest({"text": text, "words": MINI_VOCAB_SIZE, "version": 1}, 24)
    folder.mkdir(parents=True, exist_ok=True)
    encoder, pairs = (folder / name for name in BPE_FILES[0])
    with held(folder / ".lock"):
        if not (encoder.is_file() and pairs.is_file()):
            tokens, merges = train_bpe(text)
            write_text(pairs, "#version: 0.2\n" + "".join(f"{one} {other}\n" for one, other in merges))
            write_text(encoder, json.dumps({token: number for number, token in enumerate(tokens)}))
    return folder


def train_bpe(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """A byte-level BPE's tokens, ordered by id, and its ordered merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=MINI_VOCAB_SIZE, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return sorted(model["vocab"], key=model["vocab"].__getitem__), [tuple(pair) for pair in model["merges"]]


def _beginning(data_dir: Path | None, results_dir: Path) -> Iterator[str]:
    left = CHARACTERS
    for (article,) in task(CORPUS).load(source_of(CORPUS, data_dir, extracts=results_dir / "corpora")).pool.texts:
        yield f"{article[:left]}\n"
        left -= len(article)
        if left <= 0:
            return


def _read_bpe(folder: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Tokens and merges, as in `train_bpe`, from a folder's files."""
    pairs_of_files = [(folder / encoder, folder / pairs) for encoder, pairs in BPE_FILES]
    files = next((names for names in pairs_of_files if names[0].is_file() and names[1].is_file()), None)
    if files is None:
        names = " or ".join(" and ".join(names) for names in BPE_FILES)
        raise UserError(f"{folder}: expected a byte-level BPE ({names}), found none")
    encoder, pairs = files
    ids = read_json(encoder, "the vocabulary of a BPE")
    if (
        not isinstance(ids, dict)
        or sorted(map(str, ids.values())) != sorted(map(str, range(len(ids))))
        or END not in ids
    ):
        raise UserError(f"{encoder}: expected ids from 0 on, each once, and {END}; get it again")
    lines = [line for line in read_text(pairs, "pairs to merge").split("\n") if line and line[:8] != "#version"]
    merges = [(one, other) for one, _, other in (line.partition(" ") for line in lines)]
    if any(one + other not in ids or not other or " " in other for one, other in merges):
        raise UserError(f"{pairs}: expected two tokens of {encoder.name} per line; get both again")
    return sorted(ids, key=ids.__getitem__), merges


# ---- checks before use -------------------------------------------------------------------------------------------


class Check(NamedTuple):
    """A tokenizer property and its problem, "" if it holds."""

    name: str
    problem: str = ""


def checks(tokenizer: Any, model_type: str, vocab_size: int) -> Iterator[Check]:
    """Check each property of a fast tokenizer. vocab_size: rows of the encoder's word embeddings."""
    yield Check("vocabulary", _vocabulary(tokenizer, vocab_size))
    yield Check("special tokens", _special_tokens(tokenizer, model_type))
    if model_type not in _WITHOUT_CLS:
        yield Check("one text", _template(tokenizer, ["a"]))
        yield Check("a pair of texts", _template(tokenizer, ["a", "a"]))
    yield Check("case", _case(tokenizer))


def require_sound(tokenizer: Any, folder: Path, model_type: str, vocab_size: int) -> None:
    """Raise UserError with the first problem in a folder's tokenizer."""
    for check in checks(tokenizer, model_type, vocab_size):
        if check.problem:
            raise UserError(f"{folder}: tokenizer, {check.name}: {check.problem}")


def _vocabulary(tokenizer: Any, vocab_size: int) -> str:
    if len(tokenizer) <= vocab_size:
        return ""
    return (
        f"expected at most {vocab_size} tokens, the encoder's vocabulary, found {len(tokenizer)}; "
        "fetch the encoder again"
    )


def _special_tokens(tokenizer: Any, model_type: str) -> str:
    needed = ("unk",) if model_type in _WITHOUT_CLS else _SPECIAL[:-1]  # not every encoder has a mask
    for name in _SPECIAL:
        token = getattr(tokenizer, f"{name}_token")
        if token is None:
            if name in needed:
                return f"expected a {name} token, found none; fetch the tokenizer's files again"
            continue
        number = tokenizer.convert_tokens_to_ids(token)
        encoded = tokenizer(token, add_special_tokens=False)["input_ids"]
        if tokenizer.convert_ids_to_tokens(number) != token or encoded != [number]:
            return f"expected {token} to be one token, found {' '.join(tokenizer.convert_ids_to_tokens(encoded))}"
    return ""


def _template(tokenizer: Any, texts: list[str]) -> str:
    ids = tokenizer(*texts)["input_ids"]
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    if ids[0] == first and ids[-1] == last and ids.count(last) >= len(texts):
        return ""
    tokens = " ".join(tokenizer.convert_ids_to_tokens(ids))
    expected = f"{tokenizer.cls_token} … {tokenizer.sep_token}" + f" … {tokenizer.sep_token}" * (len(texts) - 1)
    return f"expected {expected}, found {tokens}; convert it to tokenizer.json with its template"


def _case(tokenizer: Any) -> str:
    """The problem if the vocabulary has capital letters but texts are lower-cased, or vice versa; otherwise ""."""
    special = set(tokenizer.all_special_tokens)
    step = math.ceil(len(tokenizer) / SAMPLED)  # a quarter of a million tokens would take 0.3 s
    every = tokenizer.convert_ids_to_tokens(list(range(0, len(tokenizer), step)))
    tokens = [token for token in every if token and token not in special and not token.startswith("[")]
    capitals = [token for token in tokens if token != token.lower()]
    text = tokenizer.backend_tokenizer.normalizer
    lowers = text is not None and text.normalize_str("NF").strip("▁ ") == "nf"
    is_cased = len(capitals) > CASED_SHARE * len(tokens)
    if lowers and is_cased:
        return (
            f"its vocabulary has capital letters ({', '.join(sorted(capitals, key=len)[-3:])}), and it lower-cases "
            f"every text; {_FLAG.format(value='false')}"
        )
    if not lowers and not capitals and any(token.startswith("##") for token in tokens):  # word pieces
        return f"its vocabulary has no capital letter, and it keeps those of texts; {_FLAG.format(value='true')}"
    return ""
