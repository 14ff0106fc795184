"""Share of tokens recovered, as a local `evaluate` module."""

import datasets
import evaluate
import numpy as np

IGNORED = -100  # in references: no token that has to be recovered stands here
Ids = np.ndarray | list[list[int]]  # one row a text, all of one length; `evaluate` passes tables on as lists


class TokenRecovery(evaluate.Metric):
    """Share of the tokens of all texts whose id is recovered at its position."""

    def _info(self) -> evaluate.MetricInfo:
        ids = datasets.Sequence(datasets.Value("int64"))
        return evaluate.MetricInfo(
            description=(
                "Of the tokens of all texts together, the share whose id is predicted at its own position. Positions "
                "where the reference is -100 (padding, special tokens) do not count. Undefined (NaN) without any token."
            ),
            citation=(
                "Song, C. and Raghunathan, A. (2020). Information leakage in embedding models. CCS 2020, 377-390: the "
                "attack; there tokens are counted as sets, here by position."
            ),
            inputs_description="predictions, references: token ids, a row a text. Returns {'token_recovery': 0 to 1}.",
            features=datasets.Features({"predictions": ids, "references": ids}),
            reference_urls=["https://doi.org/10.1145/3372297.3417270"],
        )

    def _compute(self, predictions: Ids, references: Ids) -> dict[str, float]:
        predictions, references = np.asarray(predictions), np.asarray(references)
        asked = references != IGNORED
        hits = (predictions == references) & asked
        return {"token_recovery": float(hits.sum() / asked.sum()) if asked.any() else float("nan")}
