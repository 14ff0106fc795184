"""Errors that a user can correct."""


class UserError(ValueError):
    """Bad input: its message states what was expected and found, and what to do; the CLI prints it and exits with 2."""


class NoDataError(UserError):
    """A dataset is missing from all of its places."""


class DependsOnTextsError(UserError):
    """Bytes depend on the number of texts or on the texts themselves, not only on shapes."""


class RoundRefusedError(UserError):
    """A cell has more rounds than its method allows."""
