"""A run's bytes, memory and operations, derived from shapes."""
