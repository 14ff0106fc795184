"""Federated simulation of torch models: one engine, exchange plans, and a channel that counts every byte."""
