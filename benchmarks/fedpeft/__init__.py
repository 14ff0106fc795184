"""Federated parameter-efficient fine-tuning: one suite over the papers that dispute it."""
