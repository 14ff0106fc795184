"""Share of texts that are recovered, as a local `evaluate` module."""

import numpy as np

from benchmarks.metrics import IGNORED, Ids, LocalMetric


class TextRecovery(LocalMetric):
    """The share of the texts whose every token is predicted at its own position; NaN without any text.

    As in the attack of Song and Raghunathan (2020), who count tokens as sets.
    Padding, special tokens and texts without other tokens do not count.
    """

    inputs = "ids"
    url = "https://doi.org/10.1145/3372297.3417270"

    def _compute(self, predictions: Ids, references: Ids) -> dict[str, float]:
        predictions, references = np.asarray(predictions), np.asarray(references)
        counted = references != IGNORED
        texts = counted.any(axis=1)
        whole = ((predictions == references) | ~counted).all(axis=1)
        return {"text_recovery": float(whole[texts].mean()) if texts.any() else float("nan")}
