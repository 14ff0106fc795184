"""Share of texts recovered whole, as a local `evaluate` module."""

import datasets
import evaluate
import numpy as np

IGNORED = -100  # in references: no token that has to be recovered stands here
Ids = np.ndarray | list[list[int]]  # one row a text, all of one length; `evaluate` passes tables on as lists


class TextRecovery(evaluate.Metric):
    """Share of the texts of which every token is recovered at its position."""

    def _info(self) -> evaluate.MetricInfo:
        ids = datasets.Sequence(datasets.Value("int64"))
        return evaluate.MetricInfo(
            description=(
                "The share of the texts of which every token's id is predicted at its own position. Positions where "
                "the reference is -100 (padding, special tokens) do not count, and neither do texts without any other "
                "position. Undefined (NaN) without any text."
            ),
            citation=(
                "Song, C. and Raghunathan, A. (2020). Information leakage in embedding models. CCS 2020, 377-390: the "
                "attack; there tokens are counted as sets, here whole texts by position."
            ),
            inputs_description="predictions, references: token ids, a row a text. Returns {'text_recovery': 0 to 1}.",
            features=datasets.Features({"predictions": ids, "references": ids}),
            reference_urls=["https://doi.org/10.1145/3372297.3417270"],
        )

    def _compute(self, predictions: Ids, references: Ids) -> dict[str, float]:
        predictions, references = np.asarray(predictions), np.asarray(references)
        asked = references != IGNORED
        texts = asked.any(axis=1)
        whole = ((predictions == references) | ~asked).all(axis=1)
        return {"text_recovery": float(whole[texts].mean()) if texts.any() else float("nan")}
