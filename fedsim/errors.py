"""The errors of the simulation that a user can mend."""


class FederationError(ValueError):
    """Bad input to the simulation: says what was expected, what was found and what to do."""


class DivergedError(FederationError):
    """Training left the finite numbers."""


class CheckpointError(FederationError):
    """A checkpoint cannot be read or written."""
