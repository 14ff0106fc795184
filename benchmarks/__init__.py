"""Runnable definitions of the papers' tables and figures: runs, tracking and published numbers."""
