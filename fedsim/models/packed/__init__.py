"""BERT's layers over packed tokens: texts end to end, without padding, forward and backward in few passes."""
