"""Scores of a test set through the local `evaluate` modules, and their error from the set's finite size."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tasks.base import Task

METRICS = Path(__file__).parent / "metrics"
RESAMPLES = 100


def scores(task: Task, outputs: np.ndarray, labels: np.ndarray) -> dict[str, float | None]:
    """Every metric of the task as a fraction; None where it is undefined.

    outputs: [n, task.outputs], logits or predicted scores; labels: [n]. Where the answers are tokens, ids [n, S] both.
    Undefined are all metrics of an empty test set and of outputs that are not all finite (training diverged), and
    Pearson's r of a constant.
    """
    predictions = _predictions(task, outputs, labels)
    if predictions is None:
        return dict.fromkeys(task.metrics)
    return {
        metric: _defined(_modules()[metric].compute(predictions=predictions, references=labels)[metric])
        for metric in task.metrics
    }


def sampling_error(
    task: Task, metric: str, outputs: np.ndarray, labels: np.ndarray, rng: np.random.Generator
) -> float | None:
    """Standard error of one client's score that comes from the size of its test set; None where undefined.

    Closed form (binomial) for accuracy, else the standard deviation over RESAMPLES bootstrap resamples of the
    examples. Resamples for which the metric is undefined are left out.
    """
    predictions = _predictions(task, outputs, labels)
    if predictions is None:
        return None
    n = len(labels)
    if metric == "accuracy":
        share = float(np.mean(predictions == labels))
        return math.sqrt(share * (1 - share) / n)
    # `compute` takes milliseconds to pass the arrays through Arrow, what it then calls takes microseconds.
    compute = _modules()[metric]._compute
    draws = (rng.integers(n, size=n) for _ in range(RESAMPLES))
    resampled = [compute(predictions=predictions[draw], references=labels[draw])[metric] for draw in draws]
    defined = [value for value in resampled if math.isfinite(value)]
    return float(np.std(defined, ddof=1)) if len(defined) > 1 else None


def combine_errors(errors: Sequence[float | None]) -> float | None:
    """Standard error of the plain mean over K clients, sqrt(sum of squares) / K; None where one is None."""
    known = [error for error in errors if error is not None]
    if not known or len(known) < len(errors):
        return None
    return math.hypot(*known) / len(known)


def mean_error(errors: Sequence[float | None]) -> float | None:
    """Standard error of the plain mean over clients of scores on one test set; None where one is None."""
    known = [error for error in errors if error is not None]
    return sum(known) / len(known) if known and len(known) == len(errors) else None


def _predictions(task: Task, outputs: np.ndarray, labels: np.ndarray) -> np.ndarray | None:
    """Label ids or scores [n], or token ids [n, S]; None where there are none to score."""
    expected = labels.shape if task.answers == "tokens" else (len(labels), task.outputs)
    if outputs.shape != expected:
        raise ValueError(f"expected outputs of shape {expected} for {task.id}, found {outputs.shape}")
    if len(labels) == 0 or not np.isfinite(outputs).all():
        return None
    if task.answers == "tokens":
        return outputs
    return outputs[:, 0].astype(np.float64) if task.labels is None else outputs.argmax(axis=1)


def _defined(value: float) -> float | None:
    return value if math.isfinite(value) else None


@cache
def _modules() -> dict[str, Any]:
    """Every metric of metrics/<name>/<name>.py, loaded once a process."""
    import evaluate

    # `evaluate` imports copies, by default from the home directory: that may be read-only, and processes share it.
    with tempfile.TemporaryDirectory(prefix="metrics-") as folder:
        evaluate.config.HF_MODULES_CACHE = Path(folder)
        return {
            file.stem: evaluate.load(str(file), cache_dir=folder, keep_in_memory=True)
            for file in sorted(METRICS.glob("*/*.py"))
        }
