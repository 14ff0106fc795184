"""Reports: records joined with published values, as tables, plots and files. Imports no torch."""
