"""The first page: how far every paper is reproduced, and what was found."""
