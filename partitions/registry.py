"""Partitioners to and from plain data, so that they can be part of an experiment's identity."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from partitions.checks import PartitionError
from partitions.dirichlet import Dirichlet
from partitions.label_table import LabelTable
from partitions.report import LATER, Partitioner, lists, tuples
from partitions.sizes import Equal, Sizes, SortedByScore

_SCHEMES: dict[str, type[Partitioner]] = {
    cls.scheme: cls for cls in (Dirichlet, Equal, LabelTable, Sizes, SortedByScore)
}


def describe(partitioner: Partitioner) -> dict[str, Any]:
    """The scheme's name and fields in plain JSON types: {"scheme": "dirichlet", "alpha": 1.0, …}.

    LATER fields that have their default are left out.
    """
    own = {field: getattr(partitioner, field.name) for field in fields(partitioner)}  # type: ignore[arg-type]
    values = {
        field.name: lists(value) for field, value in own.items() if field.metadata != LATER or value != field.default
    }
    return {"scheme": partitioner.scheme, **values}


def from_description(description: Mapping[str, Any]) -> Partitioner:
    """The partitioner that `describe` described; fields with a default may be left out."""
    given = dict(description)
    scheme = given.pop("scheme", None)
    if scheme not in _SCHEMES:
        raise PartitionError(f"unknown partition scheme {scheme!r}, known are {', '.join(sorted(_SCHEMES))}")
    known = {field.name: field for field in fields(_SCHEMES[scheme])}  # type: ignore[arg-type]
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise PartitionError(
            f"partition scheme {scheme!r} has no field {', '.join(unknown)}, known are {', '.join(known) or 'none'}"
        )
    missing = [name for name, field in known.items() if field.default is MISSING and name not in given]
    if missing:
        raise PartitionError(f"partition scheme {scheme!r} also needs {', '.join(missing)}")
    return _SCHEMES[scheme](**{name: tuples(value) for name, value in given.items()})
