"""MLflow shows runs while they compute, and can be filled from their records at any time."""
