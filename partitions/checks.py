"""Argument checks for all schemes, and this package's only error."""

import json
import math
from numbers import Integral, Real

import numpy as np


class PartitionError(ValueError):
    """A requested partition is ill-defined, or the data cannot provide it."""


def plural(number: int, noun: str) -> str:
    """The number and the noun, such as "1 example" or "2 examples"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def in_json(value: object) -> str:
    """A value from a description as it is written there, in JSON; a list of numbers without brackets."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    is_flat = isinstance(value, tuple | list) and all(isinstance(item, Real) for item in value)
    return text[1:-1] if value and is_flat else text


def require_integer(value: object, name: str, minimum: int) -> int:
    """`value` as an int of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise PartitionError(f"{name}: expected an integer of at least {minimum}, found {in_json(value)}")
    return int(value)


def require_number(value: object, name: str) -> float:
    """`value` as a finite float."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise PartitionError(f"{name}: expected a finite number, found {in_json(value)}")
    return float(value)


def require_share(value: object, name: str, whole: bool = True) -> float:
    """`value` as a float in (0, 1], or in (0, 1) if not `whole`."""
    share = require_number(value, name)
    if not 0 < share <= 1 or (share == 1 and not whole):
        expected = "above 0 and at most 1" if whole else "above 0 and below 1"
        raise PartitionError(f"{name}: expected a number {expected}, found {share:g}")
    return share


def require_labels(labels: np.ndarray) -> np.ndarray:
    """`labels` as a vector of int64 classes or of finite float64 scores."""
    labels = np.asarray(labels)
    if labels.ndim != 1:
        raise PartitionError(f"labels: expected a vector, one label per example, found shape {labels.shape}")
    if labels.dtype.kind in "iu":
        return labels.astype(np.int64)
    if labels.dtype.kind != "f":
        raise PartitionError(
            f"labels: expected integers (classes) or floats (scores), found {labels.dtype}; encode them"
        )
    bad = np.flatnonzero(~np.isfinite(labels))
    if bad.size:
        raise PartitionError(
            f"scores: expected finite numbers, found {labels[bad[0]]} at position {bad[0]}"
            f"{f' and {bad.size - 1} more' if bad.size > 1 else ''}; remove these examples"
        )
    return labels.astype(np.float64)


def require_classes(labels: np.ndarray, place: str, remedy: str = "choose another scheme") -> np.ndarray:
    """`labels` as a vector of int64 classes. place, remedy: what needs classes, and what to do without them."""
    labels = require_labels(labels)
    if labels.dtype.kind != "i":
        raise PartitionError(f"{place}: expected integer labels (classes), found floats (scores); {remedy}")
    return labels


def require_clients(n_clients: int, n_examples: int, of: int = 0) -> int:
    """`n_clients` as an int between 1 and the number of examples. of: the number of examples before sampling."""
    n_clients = require_integer(n_clients, "n_clients", minimum=1)
    if n_clients > n_examples:
        drawn, instead = (f", drawn from {of}", ", a larger share or more data") if of > n_examples else ("", "")
        raise PartitionError(
            f"{n_clients} clients: expected at least one example for each, found "
            f"{plural(n_examples, 'example')}{drawn}; use fewer clients{instead}"
        )
    return n_clients
