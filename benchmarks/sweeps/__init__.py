"""Sweeps: an Optuna study for each method and task, scored on validation data."""
