"""Encoders that the project pre-trains itself: a recipe, and a folder in the hub's layout that it makes."""
