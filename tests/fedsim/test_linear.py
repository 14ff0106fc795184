"""The linear model on TF-IDF: what it reads off token ids, what it learns, and that it is fitted once."""

from __future__ import annotations

import numpy as np
import pytest

from fedsim.data import Client, Examples, Subset

CLS, SEP, WORDS = 1, 2, range(5, 40)


def examples_of(pairs, labels) -> Examples:
    """Texts of one or two parts, with special tokens as BERT's tokenizer sets them."""
    ids, types = [], []
    for parts in pairs:
        ids.append([CLS, *(token for part in parts for token in (*part, SEP))])
        types.append([0, *(segment for segment, part in enumerate(parts) for _ in (*part, SEP))])
    offsets = np.concatenate([[0], np.cumsum([len(own) for own in ids])])
    tokens, segments = (np.concatenate(values).astype(np.int32) for values in (ids, types))
    return Examples(tokens, segments, offsets, np.asarray(labels), padding_id=0)


def clients_of(examples: Examples, count: int = 3) -> list[Client]:
    """Two thirds to train on, one third to be scored on."""
    parts = np.array_split(np.arange(len(examples)), count)
    cuts = [2 * len(part) // 3 for part in parts]
    return [
        Client(number, Subset(examples, part[:cut]), {"test": Subset(examples, part[cut:])})
        for number, (part, cut) in enumerate(zip(parts, cuts, strict=True))
    ]


def drawn(kind: str, count: int = 240):
    """Texts whose class is told by a word, by the order of two words, or by what a pair shares."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, count)
    pairs = []
    for label in labels:
        filler = [list(rng.choice(WORDS, 6)) for _ in range(2)]
        if kind == "word":
            pairs.append([[*filler[0], 50 + label]])
        elif kind == "order":
            pairs.append([[*filler[0], *((50, 51) if label else (51, 50))]])
        else:
            pairs.append([filler[0], list(rng.permutation(filler[0])) if label else filler[1]])
    return pairs, labels


def accuracy(run) -> float:
    return float(np.mean([scores["test"]["accuracy"] for scores in run.results[-1].client_scores]))


@pytest.mark.parametrize("kind", ["word", "order", "pair"])
def test_it_learns_words_their_order_and_what_a_pair_shares(small, kind):
    clients = clients_of(examples_of(*drawn(kind)))
    linear, majority = (
        small.run(small.algorithm(name, **options), rounds=1, clients=clients)
        for name, options in (("linear", {}), ("local_majority", {"whose": "all"}))
    )
    assert accuracy(linear) > 0.95
    assert accuracy(majority) < 0.65
