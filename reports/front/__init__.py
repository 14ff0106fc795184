"""The first page: the state of each paper's reproduction, and the findings."""
