"""Pretrained encoders: where they come from, their tokens and their vocabularies."""
