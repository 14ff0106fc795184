"""Pretrained encoders: their sources, tokens and vocabularies."""
