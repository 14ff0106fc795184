"""The evidence campaign: its protocol as data, and its committed results."""
