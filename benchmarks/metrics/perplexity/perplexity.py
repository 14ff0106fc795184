"""Perplexity of a language model, as a local `evaluate` module."""

import math

import datasets
import evaluate
import numpy as np


class Perplexity(evaluate.Metric):
    """The exponential of the mean negative log-likelihood of a token."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=(
                "The exponential of the mean negative log-likelihood, in nats, of all tokens of all texts together: of "
                "masked tokens for a masked language model, of every token but the first for a causal one. Undefined "
                "(NaN) without any token, infinite beyond the largest float."
            ),
            citation=(
                "Jelinek, F., Mercer, R. L., Bahl, L. R. and Baker, J. K. (1977). Perplexity: a measure of the "
                "difficulty of speech recognition tasks. Journal of the Acoustical Society of America 62, S63."
            ),
            inputs_description=(
                "predictions: a text's summed log-likelihood; references: how many tokens it is of. "
                "Returns {'perplexity': 1 to infinity}."
            ),
            features=datasets.Features(
                {"predictions": datasets.Value("float64"), "references": datasets.Value("int64")}
            ),
            reference_urls=["https://doi.org/10.1121/1.2016299"],
        )

    def _compute(self, predictions: np.ndarray, references: np.ndarray) -> dict[str, float]:
        tokens = int(np.sum(references))
        loss = -float(np.sum(predictions)) / tokens if tokens else math.nan
        return {"perplexity": math.inf if loss >= math.log(np.finfo(np.float64).max) else math.exp(loss)}
