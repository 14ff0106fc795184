"""Perplexity of a language model, as a local `evaluate` module."""

import math

import numpy as np

from benchmarks.metrics import LocalMetric


class Perplexity(LocalMetric):
    """The exponential of the mean negative log-likelihood, in nats, of all tokens of all texts together.

    The tokens are the masked ones for a masked language model, and all but the first for a causal one (Jelinek et al.
    1977). NaN without any token, infinite beyond the largest float.
    """

    inputs = "likelihoods"
    url = "https://doi.org/10.1121/1.2016299"

    def _compute(self, predictions: np.ndarray, references: np.ndarray) -> dict[str, float]:
        tokens = int(np.sum(references))
        loss = -float(np.sum(predictions)) / tokens if tokens else math.nan
        return {"perplexity": math.inf if loss >= math.log(np.finfo(np.float64).max) else math.exp(loss)}
