"""Models: BERT-family encoders with a head, and their parameters' names."""
