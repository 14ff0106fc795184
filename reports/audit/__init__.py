"""Audits: what a paper's own printed numbers imply, held against what it prints and says; a module a paper."""
