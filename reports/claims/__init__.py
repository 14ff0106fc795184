"""Claims: sentences of a paper, judged on printed numbers and on records."""
