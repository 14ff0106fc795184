"""Bytes, memory and operations of a run, by shapes alone."""
