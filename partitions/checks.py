"""Argument checks for all schemes, and this package's only error."""

import math
from numbers import Integral, Real

import numpy as np


class PartitionError(ValueError):
    """A requested partition is ill-defined, or the data cannot provide it."""


def require_integer(value: object, name: str, minimum: int) -> int:
    """`value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise PartitionError(f"{name} must be an integer of at least {minimum}, found {value!r}")
    return int(value)


def require_number(value: object, name: str) -> float:
    """`value` as a finite float."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise PartitionError(f"{name} must be a finite number, found {value!r}")
    return float(value)


def require_share(value: object, name: str, whole: bool = True) -> float:
    """`value` as a float in (0, 1], or in (0, 1) if not `whole`."""
    share = require_number(value, name)
    if not 0 < share <= 1 or (share == 1 and not whole):
        expected = "above 0 and at most 1" if whole else "between 0 and 1, both excluded"
        raise PartitionError(f"{name} must be {expected}, found {share:g}")
    return share


def require_labels(labels: np.ndarray) -> np.ndarray:
    """`labels` as a vector of int64 classes or of finite float64 scores."""
    labels = np.asarray(labels)
    if labels.ndim != 1:
        raise PartitionError(f"labels must be a vector, one per example; found shape {labels.shape}")
    if labels.dtype.kind in "iu":
        return labels.astype(np.int64)
    if labels.dtype.kind != "f":
        raise PartitionError(
            f"labels must be integers (classes) or floats (scores), found {labels.dtype}: encode them so"
        )
    bad = np.flatnonzero(~np.isfinite(labels))
    if bad.size:
        raise PartitionError(
            f"scores must be finite, found {bad.size} that are not, the first ({labels[bad[0]]}) at "
            f"position {bad[0]}: remove those examples"
        )
    return labels.astype(np.float64)


def require_classes(labels: np.ndarray, purpose: str) -> np.ndarray:
    """`labels` as a vector of int64 classes."""
    labels = require_labels(labels)
    if labels.dtype.kind != "i":
        raise PartitionError(f"{purpose} needs integer labels (classes), found floats (scores)")
    return labels


def require_clients(n_clients: int, n_examples: int, of: int = 0) -> int:
    """`n_clients` as an int between 1 and the number of examples. of: the number of examples before sampling."""
    n_clients = require_integer(n_clients, "n_clients", minimum=1)
    if n_clients > n_examples:
        drawn, instead = (f", drawn from {of}", ", a larger share or more data") if of > n_examples else ("", "")
        raise PartitionError(
            f"{n_clients} clients cannot share {n_examples} examples{drawn}: every client needs at least one, "
            f"use fewer clients{instead}"
        )
    return n_clients
