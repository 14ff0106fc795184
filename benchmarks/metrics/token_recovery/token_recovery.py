"""Share of tokens that are recovered, as a local `evaluate` module."""

import numpy as np

from benchmarks.metrics import IGNORED, Ids, LocalMetric


class TokenRecovery(LocalMetric):
    """The share of the tokens of all texts whose id is predicted at its own position; NaN without any token.

    As in the attack of Song and Raghunathan (2020), who count tokens as sets.
    Padding and special tokens do not count.
    """

    inputs = "ids"
    url = "https://doi.org/10.1145/3372297.3417270"

    def _compute(self, predictions: Ids, references: Ids) -> dict[str, float]:
        predictions, references = np.asarray(predictions), np.asarray(references)
        counted = references != IGNORED
        hits = (predictions == references) & counted
        return {"token_recovery": float(hits.sum() / counted.sum()) if counted.any() else float("nan")}
