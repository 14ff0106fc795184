"""Errors that a user can correct."""

from __future__ import annotations

import difflib
from collections.abc import Collection


class UserError(ValueError):
    """Bad input: its message states what was expected and found, and what to do; the CLI prints it and exits with 2."""


def did_you_mean(name: str, names: Collection[str]) -> str:
    """A hint at the closest of the names, for the end of a message; "" if none is close."""
    # A field is often named without its group: "rounds" for "training.rounds".
    whole = {each.rpartition(".")[2]: each for each in names} | {each: each for each in names}
    longer = sorted((each for each in whole if len(name) > 2 and each.startswith(name)), key=len)
    near = longer or difflib.get_close_matches(name, whole, n=1)
    return f" Did you mean {whole[near[0]]!r}?" if near else ""


def unknown(kind: str, name: str, names: Collection[str]) -> UserError:
    """The error for a name outside `names`, with the closest match."""
    return UserError(f"unknown {kind} {name!r}: expected one of {', '.join(names)}.{did_you_mean(name, names)}")


class NoDataError(UserError):
    """A dataset is missing from all of its places."""


class DependsOnTextsError(UserError):
    """Bytes depend on the number of texts or on the texts themselves, not only on shapes."""


class RoundRefusedError(UserError):
    """A cell has more rounds than its method allows."""
