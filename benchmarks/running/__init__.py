"""From a configuration to its result."""
