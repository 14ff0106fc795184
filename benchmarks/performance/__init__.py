"""`bench`: speed and memory, measured as ratios within one run."""
