"""BERT's layers over packed tokens: concatenated texts without padding, with few passes over memory."""
