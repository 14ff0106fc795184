"""Tracking in MLflow: live for running cells, and at any time from records."""
