"""FedBERT: its tables as benchmarks."""
