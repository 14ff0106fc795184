"""Audits: whether a paper's published numbers agree with each other and with its text."""
