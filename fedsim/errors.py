"""Errors of the simulation that a user can fix."""


class FederationError(ValueError):
    """Bad input to the simulation: says what was expected, what was found and what to do."""


class DivergedError(FederationError):
    """Training produced a loss or weights that are not finite."""


class CheckpointError(FederationError):
    """A checkpoint cannot be read or written."""
