"""Audits: whether the numbers that a paper publishes agree with each other and with its text."""
