"""F1 of named entities as FedBFPT's code has it, as a local `evaluate` module."""

import datasets
import evaluate
import numpy as np

IGNORED = -100  # in references: no word begins here
Ids = np.ndarray | list[list[int]]  # one row a sentence, all of one length; `evaluate` passes tables on as lists


class EntityF1Concatenated(evaluate.Metric):
    """Harmonic mean of precision and recall of spans in the tags of all sentences, end to end."""

    def _info(self) -> evaluate.MetricInfo:
        ids = datasets.Sequence(datasets.Value("int64"))
        return evaluate.MetricInfo(
            description=(
                "F1 of the spans of one sequence, that of all sentences' tags end to end. A span begins with B-, goes "
                "on with every I- whatever its kind, past the end of a sentence too, and has the kind of its last "
                "word; every other I- is a span of one word. A span that is open at the very end is dropped. 0 where "
                "no span is right."
            ),
            citation=(
                "Wang, X. et al. (2023). FedBFPT: an efficient federated learning framework for BERT further "
                "pre-training. IJCAI 2023; the function of their code (github.com/Hanzhouu/FedBFPT, downstream_ner.py)."
            ),
            inputs_description=(
                "predictions, references: tag ids, a row a sentence: 0 is outside, 2k + 1 and 2k + 2 are B- and I- of "
                "kind k. Positions where the reference is -100 do not count. "
                "Returns {'entity_f1_concatenated': 0 to 1}."
            ),
            features=datasets.Features({"predictions": ids, "references": ids}),
            reference_urls=["https://github.com/Hanzhouu/FedBFPT"],
        )

    def _compute(self, predictions: Ids, references: Ids) -> dict[str, float]:
        predictions, references = np.asarray(predictions), np.asarray(references)
        asked = references != IGNORED
        own, its = (_spans(tags[asked]) for tags in (predictions, references))
        hits, named = len(own & its), len(own) + len(its)
        return {"entity_f1_concatenated": 2 * hits / named if hits else 0.0}


def _spans(tags: np.ndarray) -> set[tuple[int, int, int]]:
    """(first word, last word, kind) of the spans in a sequence of tag ids [words]."""
    outside, begins = tags <= 0, (tags > 0) & (tags % 2 == 1)
    # Whether the last tag before a word that is not I- is B-: then the I- there go on with a span.
    marks = np.maximum.accumulate(np.where(outside | begins, np.arange(len(tags)), -1)) if len(tags) else tags
    is_open = np.where(marks >= 0, begins[marks], False)
    firsts = np.flatnonzero(begins)
    ends = np.flatnonzero(~is_open | begins)  # a span ends before the next word that does not go on with it
    closed = np.searchsorted(ends, firsts, side="right")
    firsts = firsts[closed < len(ends)]  # the others are open at the very end
    lasts = ends[closed[closed < len(ends)]] - 1
    alone = np.flatnonzero(~outside & ~is_open)
    both = (np.concatenate([firsts, alone]), np.concatenate([lasts, alone]))
    return set(zip(*(each.tolist() for each in (*both, (tags[both[1]] - 1) // 2)), strict=True))
