"""Runnable definitions of the papers' tables and figures: what to run, how it is tracked, what was published."""
