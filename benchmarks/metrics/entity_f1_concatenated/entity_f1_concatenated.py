"""F1 of named entities as FedBFPT's code computes it, as a local `evaluate` module."""

import numpy as np

from benchmarks.metrics import IGNORED, Ids, LocalMetric, f1


class EntityF1Concatenated(LocalMetric):
    """F1 of the spans of one sequence: the tags of all sentences, end to end, as in FedBFPT's downstream_ner.py.

    A span begins with B-, continues with every I- whatever its kind, past the end of a sentence too, and has the kind
    of its last word; every other I- is a span of one word. A span that is open at the very end is dropped. Tag ids as
    for `entity_f1`.
    """

    inputs = "ids"
    url = "https://github.com/Hanzhouu/FedBFPT"

    def _compute(self, predictions: Ids, references: Ids) -> dict[str, float]:
        predictions, references = np.asarray(predictions), np.asarray(references)
        counted = references != IGNORED
        predicted, true = (_spans(tags[counted]) for tags in (predictions, references))
        return {"entity_f1_concatenated": f1(len(predicted & true), len(predicted) + len(true))}


def _spans(tags: np.ndarray) -> set[tuple[int, int, int]]:
    """(first word, last word, kind) of the spans in a sequence of tag ids [words]."""
    outside, begins = tags <= 0, (tags > 0) & (tags % 2 == 1)
    # A span is open before a word if the last tag that is not I- is B-: then an I- continues the span.
    marks = np.maximum.accumulate(np.where(outside | begins, np.arange(len(tags)), -1)) if len(tags) else tags
    is_open = np.where(marks >= 0, begins[marks], False)
    firsts = np.flatnonzero(begins)
    ends = np.flatnonzero(~is_open | begins)  # a span ends before the next word that does not continue it
    closed = np.searchsorted(ends, firsts, side="right")
    firsts = firsts[closed < len(ends)]  # the others are open at the very end
    lasts = ends[closed[closed < len(ends)]] - 1
    alone = np.flatnonzero(~outside & ~is_open)
    both = (np.concatenate([firsts, alone]), np.concatenate([lasts, alone]))
    return set(zip(*(each.tolist() for each in (*both, (tags[both[1]] - 1) // 2)), strict=True))
