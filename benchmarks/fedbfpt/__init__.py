"""FedBFPT: its tables as benchmarks."""
