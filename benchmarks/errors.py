"""Errors that a user can correct."""


class UserError(ValueError):
    """Bad input: says what was expected, what was found and what to do; the CLI prints it and exits with 2."""


class NoDataError(UserError):
    """A dataset was not found in any of its places."""


class DependsOnTextsError(UserError):
    """Bytes that depend on the number of texts, or on the texts themselves, and not on shapes alone."""


class RoundRefusedError(UserError):
    """A cell has more rounds than its method has."""
