"""Counts the texts of a run's clients, once per state of the data files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dry_run import shapes
from benchmarks.dry_run.stand_ins import Texts
from benchmarks.encoders.encoding import Encoded
from benchmarks.encoders.fetched import source_of
from benchmarks.encoders.files import find_files
from benchmarks.encoders.loading import build_tokenizer, locate
from benchmarks.errors import UserError
from benchmarks.publication import SCALES
from benchmarks.run_config import JSON, RunConfig, digest
from benchmarks.running.data_split import split_data
from benchmarks.running.federation import build_clients, load_inputs, stand_in_at, task_data
from benchmarks.running.run_options import RunOptions
from benchmarks.tasks import task
from benchmarks.tasks.base import TextExamples
from benchmarks.tasks.passages import stamp
from fedsim.data import Client, Subset, packed

WHOLE_CHARACTERS = 100_000_000  # up to this much text is tokenised for counting; larger texts are sampled
SHARE = 0.05  # of the articles, in a sample


@dataclass(frozen=True)
class Counted:
    """Clients with counted texts. error: the counts' relative error at 95 %; 0 if all texts are counted."""

    clients: list[Client]
    error: float = 0.0

    @property
    def examples(self) -> list[int]:
        """The number of each client's training texts."""
        return [len(client.train) for client in self.clients]


def counted(cell: RunConfig, settings: RunOptions) -> Counted:
    """A run's clients with their numbers of texts; it tokenises texts only to pack them into blocks.

    UserError if data are missing or malformed.
    """
    if not (key := _key(cell, settings)):
        return _count(cell, settings)
    clients = shapes.kept(key, lambda: _count(cell, settings), _to_json, _from_json)
    assert clients is not None
    return clients


def stand_ins(stages: Sequence[RunConfig], settings: RunOptions) -> list[str]:
    """The data in the data directory that replace published data for the given paper-scale runs."""
    texts: dict[str, None] = {}
    for stage in stages if stages[-1].scale == SCALES[-1] and settings.data_dir else ():
        with suppress(UserError):  # missing or malformed, which `run` reports
            key = f"stand-in-{digest([stage.task, _stamps(_files(stage, settings)), settings.lenient])}"
            texts[shapes.kept(key, partial(stand_in_at, stage, settings), str, str) or ""] = None
    return [*filter(None, texts)]


def _count(cell: RunConfig, settings: RunOptions) -> Counted:
    of, loaded = task(cell.task), task_data(cell.task, cell.source, settings)
    if of.long_texts != "packed":
        texts: defaultdict[str, Encoded] = defaultdict(lambda: Encoded(Texts()))
        return Counted(split_data(cell, of, loaded, texts)[0])
    if sum(len(text) for (text,) in loaded.pool.texts) <= WHOLE_CHARACTERS:
        return Counted(build_clients(cell, load_inputs(cell, settings), settings)[0])
    tokenizer = build_tokenizer(locate(cell.backbone, False, settings.data_dir, settings.results_dir))
    sets = {"pool": loaded.pool, **{f"central {name}": each for name, each in loaded.central.items()}}
    sampled = {name: _sample(examples, tokenizer, cell.training.max_length) for name, examples in sets.items()}
    blocks = {name: blocks for name, (blocks, _) in sampled.items()}
    return Counted(split_data(cell, of, loaded, blocks)[0], sampled["pool"][1])


def _sample(examples: TextExamples, tokenizer: Any, length: int) -> tuple[Encoded, float]:
    """Blocks estimated from the texts' characters and a sample's tokens per character; the relative error at 95 %."""
    sizes = np.array([len(text) for (text,) in examples.texts])
    drawn = np.sort(np.random.default_rng(0).permutation(len(sizes))[: max(30, round(SHARE * len(sizes)))])
    rows = tokenizer([examples.texts[number][0] for number in drawn.tolist()], add_special_tokens=False, verbose=False)
    tokens, sampled = np.array([len(row) + 1 for row in rows["input_ids"]]), sizes[drawn]
    rate = tokens.sum() / sampled.sum()
    spread = np.sqrt(((tokens - rate * sampled) ** 2).sum() / max(1, len(drawn) - 1) / len(drawn))
    offsets = np.concatenate([[0], np.cumsum(np.round(rate * sizes).astype(np.int64))])
    nothing = np.broadcast_to(np.int32(0), offsets[-1])
    blocks = packed(nothing, offsets, length, 0, tokenizer.cls_token_id)
    return Encoded(blocks), float(1.96 * spread / tokens.mean() * np.sqrt(1 - len(drawn) / len(sizes)))


# ---- kept counts -------------------------------------------------------------------------------------------------


def _key(cell: RunConfig, settings: RunOptions) -> str:
    """A key for everything that determines a run's numbers of texts; "" if the data directory has no data files."""
    files, packed_texts = _files(cell, settings), task(cell.task).long_texts == "packed"
    if not files:
        return ""
    if packed_texts:
        files += sorted(find_files(cell.backbone, True, settings.data_dir)[0].glob("*"))
    seed = cell.seed if cell.data_seed is None else cell.data_seed
    split = (cell.clients, cell.partition, seed, cell.test_share, cell.holdout, cell.validation_share, cell.grouped)
    texts = cell.central_share, settings.lenient, cell.training.max_length, cell.backbone if packed_texts else ""
    return f"counts-{digest([cell.task, cell.task_version, *split, *texts, _stamps(files)])}"


def _files(cell: RunConfig, settings: RunOptions) -> list[Path]:
    """A run's data files in the data directory; may be []."""
    find = task(cell.task).find
    if cell.source == "generated" or find is None or settings.data_dir is None:
        return []
    return [*_paths(find(source_of(cell.task, settings.data_dir, settings.lenient, None)))]


def _stamps(files: Sequence[Path]) -> list[JSON]:
    return [stamp(file, str(file)) for file in files]


def _paths(found: Any) -> Iterator[Path]:
    """The paths in the result of a task's `find`."""
    if isinstance(found, Path):
        yield found
    elif isinstance(found, Mapping):
        yield from _paths(list(found.values()))
    elif isinstance(found, Sequence) and not isinstance(found, str):
        for each in found:
            yield from _paths(each)


def _to_json(of: Counted) -> JSON:
    """Counts by client; a set that scores all clients appears once."""
    first = of.clients[0].evaluation
    common = {name for name, part in first.items() if all(each.evaluation.get(name) is part for each in of.clients)}
    clients = [[len(each.train), {name: len(part) for name, part in each.evaluation.items()}] for each in of.clients]
    return {"clients": clients, "common": sorted(common), "error": of.error}


def _from_json(value: JSON) -> Counted:
    def texts(count: int) -> Subset:
        return Subset(Texts(), np.zeros(count, dtype=np.int64))

    common = {name: texts(value["clients"][0][1][name]) for name in value["common"]}
    clients = [
        Client(number, texts(train), {name: common.get(name) or texts(count) for name, count in parts.items()})
        for number, (train, parts) in enumerate(value["clients"])
    ]
    return Counted(clients, value["error"])
