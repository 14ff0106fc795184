"""The one error of this package."""


class PartitionError(ValueError):
    """A partition that was asked for is ill-defined, or the data cannot provide it."""
