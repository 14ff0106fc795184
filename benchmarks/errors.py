"""The errors that a user can mend."""


class UserError(ValueError):
    """Bad input: says what was expected, what was found and what to do; the CLI prints it and exits with 2."""


class NoDataError(UserError):
    """A dataset is in none of the places where it was looked for."""


class DependsOnTextsError(UserError):
    """Bytes that shapes alone do not give: they depend on the number of texts, or on the texts themselves."""


class RoundRefusedError(UserError):
    """A cell has more rounds than its method has."""
