"""Models: BERT-family encoders with a head, and what their parameters are called."""
