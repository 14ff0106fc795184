"""Reports: records joined with published values, as tables, plots and files. Imports no torch.

Order of imports: evidence (printed, recorded and counted numbers), pages (their presentation), then views, claims and
audits.
"""


class ReportError(ValueError):
    """Records, published values or a README that are unusable for a report; the message says what to do."""
