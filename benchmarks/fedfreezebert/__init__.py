"""FedFreezeBERT: its tables as benchmarks."""
