"""Claims: sentences of a paper, judged on published numbers and on records."""
