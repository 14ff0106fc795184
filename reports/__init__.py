"""Reports: records joined with published values, as tables, plots and files. Imports no torch.

The arrow: evidence (what is printed, recorded and counted), pages (how anything is shown), then views, claims and,
last, audits.
"""


class ReportError(ValueError):
    """Records, published values or a README that a report cannot be drawn from: says what to do."""
