"""Time and memory of tokenising a large task, cold and from the cache."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.performance.population import Cost
from benchmarks.performance.section import seconds
from benchmarks.runner import peak_memory_bytes
from benchmarks.settings import Settings
from benchmarks.tasks.base import Examples
from benchmarks.tasks.words import VOCABULARY
from benchmarks.token_cache import TokenCache

MAX_LENGTH = 128
WORDS = (4, 18)  # of a question, fewest and most: 11 in the mean, as in QQP


def tokenised(settings: Settings, pairs: int, repeats: int) -> dict[str, Cost]:
    """What tokenising so many pairs takes in this process: "cold", once, and "cached", by caches that know nothing."""
    examples, tokenizer = pairs_of_words(pairs), word_pieces()
    settings.results_dir.mkdir(parents=True, exist_ok=True)
    found = {}
    with tempfile.TemporaryDirectory(prefix="growth-", dir=settings.results_dir) as name:
        folder = Path(name)

        def tokenise() -> None:
            TokenCache(folder).encode(examples, tokenizer, MAX_LENGTH)

        for what, times in (("cold", 1), ("cached", repeats)):
            taken = tuple(seconds(tokenise) for _ in range(times))
            disk_bytes = sum(path.stat().st_size for path in folder.iterdir())
            found[what] = Cost(taken, peak_memory_bytes(), disk_bytes)
    return found


def pairs_of_words(count: int, seed: int = 0) -> Examples:
    """Pairs of questions of random words."""
    rng = np.random.default_rng(seed)
    fewest, most = WORDS
    lengths = rng.integers(fewest, most, 2 * count, endpoint=True)
    words = [VOCABULARY[index] for index in rng.integers(0, len(VOCABULARY), lengths.sum())]
    ends = np.cumsum(lengths).tolist()
    questions = [" ".join(words[end - length : end]) for end, length in zip(ends, lengths.tolist(), strict=True)]
    return Examples(tuple(zip(questions[::2], questions[1::2], strict=True)), rng.integers(0, 2, count))


def word_pieces() -> Any:
    """A tokenizer that does BERT's work: words are cut into the longest pieces known, here into halves and letters."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = sorted({letter for word in VOCABULARY for letter in word.lower()})
    halves = sorted({word.lower()[: (len(word) + 1) // 2] for word in VOCABULARY})
    rests = sorted({word.lower()[(len(word) + 1) // 2 :] for word in VOCABULARY} - {""})
    pieces = [*letters, *halves, *(f"##{piece}" for piece in (*letters, *rests))]
    known = {piece: number for number, piece in enumerate(dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *pieces]))}
    tokenizer = Tokenizer(models.WordPiece(known, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", known["[SEP]"]), ("[CLS]", known["[CLS]"]))
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
