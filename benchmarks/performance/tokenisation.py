"""Time and memory of tokenising a large task, cold and from the cache, and of reading a large corpus."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.performance.population import Cost
from benchmarks.performance.section import seconds
from benchmarks.runner import peak_memory_bytes
from benchmarks.settings import Settings
from benchmarks.tasks import DataSource
from benchmarks.tasks import task as task_of
from benchmarks.tasks.base import Examples
from benchmarks.tasks.words import VOCABULARY
from benchmarks.token_cache import TokenCache
from fedsim.data import training_batches

MAX_LENGTH = 128
BATCH = 256
PASSAGE_WORDS = 150
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


def read_through(settings: Settings, megabytes: int) -> Cost:
    """What a corpus of that size takes in this process: found, tokenised into a file, and read in an epoch's batches.

    Seconds are of these three.
    """
    tokenizer, task = word_pieces(), task_of("corpus-biology")
    settings.results_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="growth-", dir=settings.results_dir) as name:
        folder = Path(name)
        write_corpus(folder / "biology.txt", megabytes * 10**6)
        begun = time.perf_counter()
        data = task.load(DataSource(folder))
        found = time.perf_counter()
        encoded = TokenCache(folder).encode(data.pool, tokenizer, MAX_LENGTH, task)
        tokenised = time.perf_counter()
        everything = encoded.subset(np.arange(len(data.pool)))
        for _ in training_batches(everything, BATCH, None, np.random.default_rng(0)):
            pass
        taken = (found - begun, tokenised - found, time.perf_counter() - tokenised)
        return Cost(taken, peak_memory_bytes(), sum(path.stat().st_size for path in folder.iterdir()))


def write_corpus(file: Path, size: int, seed: int = 0) -> None:
    """A text of at least so many bytes: passages of random words, one a line."""
    rng, vocabulary = np.random.default_rng(seed), np.array(VOCABULARY)
    with file.open("w", encoding="utf-8") as output:
        while output.tell() < size:
            for words in vocabulary[rng.integers(0, len(vocabulary), (100, PASSAGE_WORDS))]:
                output.write(" ".join(words) + "\n")


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
