"""FedSplitBERT: Li et al., "Federated Split BERT for Heterogeneous Text Classification" (IJCNN 2022)."""
