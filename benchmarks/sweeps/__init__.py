"""Sweeps: one Optuna study per method and task, scored on validation data."""
