"""A masked language model from a text file: one passage a line, long ones in blocks."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from benchmarks.backbones import KNOWN, build_tokenizer, locate
from benchmarks.dry_run import wire_plan
from benchmarks.encoding import encode
from benchmarks.federation import build_clients, load_inputs
from benchmarks.runner import run_cell
from benchmarks.spec import Cell, Training
from benchmarks.tasks import DataSource, Examples, Task, TaskData
from benchmarks.tasks.words import ADJECTIVES, ARTICLES, NOUNS, VERBS

LENGTH = 16  # tokens of a block, [CLS] and [SEP] among them
WORDS = KNOWN["tiny"].config["vocab_size"]


def load(source: DataSource) -> TaskData:
    """One passage a line of passages.txt; empty lines are left out."""
    lines = (source.folder / "passages.txt").read_text(encoding="utf-8").splitlines()
    return passages([line.strip() for line in lines if line.strip()], "folder: passages.txt")


def generate(seed: int, count: int = 50) -> TaskData:
    """Passages of 2 to 60 words, in which each kind of word follows another."""
    rng = np.random.default_rng(seed)
    kinds = (ARTICLES, ADJECTIVES[:8], NOUNS[:12], VERBS[:8])
    lengths = rng.integers(2, 61, count)
    texts = [" ".join(str(rng.choice(kinds[place % 4])) for place in range(length)) for length in lengths]
    return passages(texts, "generated")


def passages(texts: list[str], origin: str) -> TaskData:
    return TaskData(Examples(tuple((text,) for text in texts), np.zeros(len(texts), dtype=np.int64)), origin)


PASSAGES = Task(
    id="passages",
    name="Passages",
    family="text",
    labels=None,
    metrics=("perplexity",),
    load=load,
    generate=generate,
    objective="masked_lm",
    objective_options={"share": 0.2},
    long_texts="blocks",
)
CELL = Cell(
    scale="demo",
    task=PASSAGES.id,
    task_version=PASSAGES.version,
    source=PASSAGES.family,
    backbone="tiny",
    clients=2,
    partition={"scheme": "sizes", "sizes": [0.6, 0.4]},
    algorithm="fedavg",
    options={"embeddings": "global"},
    training=Training(rounds=4, learning_rate=3e-3, batch_size=8, local_epochs=2, max_length=LENGTH, precision="fp32"),
    seed=0,
    head="masked-lm",
)


@pytest.fixture
def corpus(known_task, settings):
    """The settings of a run on a file of passages."""
    known_task(PASSAGES)
    texts = [text for (text,) in generate(0).pool.texts]
    (settings.data_dir / "passages.txt").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    return settings


def test_perplexity_falls_far_below_the_size_of_the_vocabulary(corpus):
    record = run_cell(CELL, corpus, lambda event: None)
    found = [entry.scores["test"]["perplexity"] for entry in record.rounds]
    assert found == sorted(found, reverse=True)
    assert found[-1] < WORDS / 10
    assert {entry.up_bytes for entry in record.rounds} == {wire_plan(CELL).up_bytes}
    losses = [entry.train_loss for entry in record.rounds]  # of a token, as the perplexity is
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == pytest.approx(np.log(found[-1]), rel=0.2)


def test_blocks_cover_a_passage_once(corpus):
    tokenizer, pool = build_tokenizer(locate("tiny")), PASSAGES.load(DataSource(corpus.data_dir)).pool
    encoded = encode(pool, tokenizer, LENGTH, PASSAGES)
    examples = encoded.examples
    assert len(examples) == encoded.starts[-1] > len(pool)
    for text, blocks in enumerate(encoded.subset(np.array([number])).indices for number in range(len(pool))):
        spans = [examples.tokens[examples.offsets[block] : examples.offsets[block + 1]] for block in blocks]
        assert max(map(len, spans)) <= LENGTH
        assert {(span[0], span[-1]) for span in spans} == {(tokenizer.cls_token_id, tokenizer.sep_token_id)}
        whole = tokenizer(*pool.texts[text], add_special_tokens=False).input_ids
        assert np.concatenate([span[1:-1] for span in spans]).tolist() == whole
        assert all(len(span) == LENGTH for span in spans[:-1])


def test_a_passage_has_one_owner_and_is_trained_on_or_scored(corpus):
    inputs = load_inputs(CELL, corpus)
    clients, _ = build_clients(CELL, inputs, corpus)
    encoded = encode(inputs.data.pool, build_tokenizer(inputs.backbone), LENGTH, PASSAGES)
    passage_of = np.repeat(np.arange(len(inputs.data.pool)), np.diff(encoded.starts))
    parts = [part for client in clients for part in (client.train, client.evaluation["test"])]
    assert sorted(np.concatenate([part.indices for part in parts])) == list(range(len(passage_of)))
    owners = Counter(passage for part in parts for passage in np.unique(passage_of[part.indices]))
    assert owners == Counter(range(len(inputs.data.pool)))
    sizes = [sum(len(np.unique(passage_of[part.indices])) for part in parts[at : at + 2]) for at in (0, 2)]
    assert sizes == [30, 20]  # shares are of passages, whatever their length


def test_its_decoder_is_the_embeddings_and_crosses_once(known_task):
    known_task(PASSAGES)
    names = ("hidden_size", "num_hidden_layers", "intermediate_size", "max_position_embeddings")
    width, depth, inner, positions = (KNOWN["tiny"].config[name] for name in names)
    embeddings = (WORDS + positions + 2) * width + 2 * width
    layer = 4 * (width * width + width) + 2 * (width * inner) + inner + width + 4 * width
    head = width * width + width + 2 * width + WORDS  # dense, LayerNorm, a bias for each word
    assert wire_plan(CELL).up_bytes == 2 * 4 * (embeddings + depth * layer + head)
