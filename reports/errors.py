"""The errors that a report raises."""


class ReportError(ValueError):
    """Records, published values or a README that a report cannot be drawn from: says what to do."""
