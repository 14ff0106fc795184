"""F1 of named entities, as a local `evaluate` module."""

import datasets
import evaluate
import numpy as np
from seqeval.metrics.sequence_labeling import get_entities

IGNORED = -100  # in references: no word begins here
Ids = np.ndarray | list[list[int]]  # one row a sentence, all of one length; `evaluate` passes tables on as lists


class EntityF1(evaluate.Metric):
    """Harmonic mean of precision and recall of entities, of all kinds and sentences together."""

    def _info(self) -> evaluate.MetricInfo:
        ids = datasets.Sequence(datasets.Value("int64"))
        return evaluate.MetricInfo(
            description=(
                "Micro-averaged F1 of entities: one is right where its kind, its first and its last word are. Entities "
                "are read off the tags of each sentence by seqeval in its default mode, that of conlleval: an I- that "
                "follows no tag of its kind begins an entity, in predictions and in references. (Its strict mode would "
                "pass such entities over, and official test sets hold some.) 0 where there is no entity."
            ),
            citation=(
                "Tjong Kim Sang, E. F. and De Meulder, F. (2003). Introduction to the CoNLL-2003 shared task: "
                "language-independent named entity recognition. CoNLL 2003, 142-147. Computed by seqeval (Nakayama, "
                "2018)."
            ),
            inputs_description=(
                "predictions, references: tag ids, a row a sentence: 0 is outside, 2k + 1 and 2k + 2 are B- and I- of "
                "kind k. Positions where the reference is -100 do not count. Returns {'entity_f1': 0 to 1}."
            ),
            features=datasets.Features({"predictions": ids, "references": ids}),
            reference_urls=["https://github.com/chakki-works/seqeval", "https://aclanthology.org/W03-0419"],
        )

    def counts(self, predictions: Ids, references: Ids) -> np.ndarray:
        """Of each sentence: entities that are right, and entities named in predictions and references; [n, 2]."""
        found = np.zeros((len(references), 2), dtype=np.int64)
        for row, (predicted, true) in enumerate(zip(np.asarray(predictions), np.asarray(references), strict=True)):
            asked = true != IGNORED
            own, its = (set(get_entities([_name(tag) for tag in tags[asked].tolist()])) for tags in (predicted, true))
            found[row] = len(own & its), len(own) + len(its)
        return found

    def from_counts(self, hits: int, named: int) -> float:
        """F1 of so many entities that are right, and named in predictions and references."""
        return float(2 * hits / named) if named else 0.0

    def _compute(self, predictions: Ids, references: Ids) -> dict[str, float]:
        return {"entity_f1": self.from_counts(*self.counts(predictions, references).sum(axis=0))}


def _name(tag: int) -> str:
    return f"{'IB'[tag % 2]}-{(tag - 1) // 2}" if tag > 0 else "O"
