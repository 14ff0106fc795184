"""Counts clients' texts: as rows of files, or as blocks if long texts are split or texts are packed."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from benchmarks.dry_run.stand_ins import Texts
from benchmarks.encoders.encoding import Encoded
from benchmarks.encoders.loading import build_tokenizer, locate
from benchmarks.errors import UserError
from benchmarks.run_config import RunConfig
from benchmarks.running.data_split import split_data
from benchmarks.running.federation import build_clients, load_inputs, task_data
from benchmarks.running.run_options import RunOptions
from benchmarks.tasks import task
from benchmarks.tasks.base import TaskData, TextExamples
from fedsim.data import Client, packed

WHOLE_CHARACTERS = 100_000_000  # of longer corpora only a sample is tokenised
SHARE = 0.05  # of the articles are in the sample


def count(cell: RunConfig, settings: RunOptions) -> tuple[list[int], int, float]:
    """Each client's training texts, all evaluation texts, and their relative error; see `Counted`.

    UserError if data are missing or malformed.
    """
    clients, error = _clients(cell, settings)
    scored = {id(part): len(part) for client in clients for part in client.evaluation.values()}
    return [len(client.train) for client in clients], sum(scored.values()), error


def _clients(cell: RunConfig, settings: RunOptions) -> tuple[list[Client], float]:
    of, loaded = task(cell.task), task_data(cell.task, cell.source, settings)
    if of.long_texts == "cut":
        return _rows(cell, loaded), 0.0
    try:
        return _blocks(cell, loaded, settings)
    except UserError:  # no tokenizer
        if of.long_texts == "packed":
            raise
        return _rows(cell, loaded), 0.0


def _rows(cell: RunConfig, loaded: TaskData) -> list[Client]:
    """Clients whose examples are the rows of the data's files."""
    texts: defaultdict[str, Encoded] = defaultdict(lambda: Encoded(Texts()))
    return split_data(cell, task(cell.task), loaded, texts)[0]


def _blocks(cell: RunConfig, loaded: TaskData, settings: RunOptions) -> tuple[list[Client], float]:
    """Clients whose examples are blocks of tokens."""
    of = task(cell.task)
    if sum(sum(map(len, text)) for text in loaded.pool.texts) <= WHOLE_CHARACTERS:
        return build_clients(cell, load_inputs(cell, settings), settings)[0], 0.0
    tokenizer = build_tokenizer(locate(cell.backbone, False, settings.data_dir, settings.results_dir))
    sets = {"pool": loaded.pool, **{f"central {name}": each for name, each in loaded.central.items()}}
    is_packed = of.long_texts == "packed"
    sampled = {
        name: _sample(examples, tokenizer, cell.training.max_length, is_packed) for name, examples in sets.items()
    }
    blocks = {name: blocks for name, (blocks, _) in sampled.items()}
    return split_data(cell, of, loaded, blocks)[0], sampled["pool"][1]


def _sample(examples: TextExamples, tokenizer: Any, length: int, is_packed: bool) -> tuple[Encoded, float]:
    """Blocks estimated from characters, by a sample's tokens per character, and the relative error at 95 %.

    is_packed: whether blocks join texts; otherwise each text has blocks with special tokens.
    """
    sizes = np.array([len(text) for (text,) in examples.texts])
    drawn = np.sort(np.random.default_rng(0).permutation(len(sizes))[: max(30, round(SHARE * len(sizes)))])
    rows = tokenizer([examples.texts[number][0] for number in drawn.tolist()], add_special_tokens=False, verbose=False)
    tokens, sampled = np.array([len(row) + 1 for row in rows["input_ids"]]), sizes[drawn]
    rate = tokens.sum() / sampled.sum()
    spread = np.sqrt(((tokens - rate * sampled) ** 2).sum() / max(1, len(drawn) - 1) / len(drawn))
    offsets = np.concatenate([[0], np.cumsum(np.round(rate * sizes).astype(np.int64))])
    error = float(1.96 * spread / tokens.mean() * np.sqrt(1 - len(drawn) / len(sizes)))
    if not is_packed:
        of_text = np.ceil(np.diff(offsets) / (length - tokenizer.num_special_tokens_to_add()))
        return Encoded(Texts(), np.concatenate([[0], np.cumsum(np.maximum(1, of_text), dtype=np.int64)])), error
    nothing = np.broadcast_to(np.int32(0), offsets[-1])
    return Encoded(packed(nothing, offsets, length, 0, tokenizer.cls_token_id)), error
