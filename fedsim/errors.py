"""Errors of the simulation that a user can fix, and plurals in messages."""

from collections.abc import Sequence


class FederationError(ValueError):
    """Bad input to the simulation: says what was expected, what was found and what to do."""


class DivergedError(FederationError):
    """Training produced a loss or weights that are not finite."""


class CheckpointError(FederationError):
    """A checkpoint cannot be read or written."""


def plural(number: int, noun: str) -> str:
    """The number and the noun, such as "1 example" or "2 examples"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def named(noun: str, names: Sequence[str]) -> str:
    """The noun and the names, such as "option a" or "options a, b"."""
    return f"{noun}{'' if len(names) == 1 else 's'} {', '.join(names)}"
