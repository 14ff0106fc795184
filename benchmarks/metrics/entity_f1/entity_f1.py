"""F1 of named entities, as a local `evaluate` module."""

import numpy as np
from seqeval.metrics.sequence_labeling import get_entities

from benchmarks.metrics import IGNORED, Ids, LocalMetric, f1


class EntityF1(LocalMetric):
    """Micro-averaged F1 of entities: one is right if its kind, its first and its last word are right.

    Tag ids: 0 is outside, 2k + 1 and 2k + 2 are B- and I- of kind k. seqeval reads the entities of each sentence in its
    default mode, that of conlleval: an I- that follows no tag of its kind begins an entity, in predictions and in
    references. (Its strict mode would ignore such entities, and official test sets hold some.) 0 without any entity.
    """

    inputs = "ids"
    url = "https://aclanthology.org/W03-0419"

    def counts(self, predictions: Ids, references: Ids) -> np.ndarray:
        """For each sentence: right entities, and entities named in predictions and references; [n, 2]."""
        counts = np.zeros((len(references), 2), dtype=np.int64)
        for row, (predicted, true) in enumerate(zip(np.asarray(predictions), np.asarray(references), strict=True)):
            counted = true != IGNORED
            sides = [set(get_entities([_name(tag) for tag in tags[counted].tolist()])) for tags in (predicted, true)]
            counts[row] = len(sides[0] & sides[1]), len(sides[0]) + len(sides[1])
        return counts

    def from_counts(self, hits: int, named: int) -> float:
        """F1 of so many right entities, and entities named in predictions and references."""
        return f1(hits, named)

    def _compute(self, predictions: Ids, references: Ids) -> dict[str, float]:
        return {"entity_f1": f1(*self.counts(predictions, references).sum(axis=0))}


def _name(tag: int) -> str:
    return f"{'IB'[tag % 2]}-{(tag - 1) // 2}" if tag > 0 else "O"
