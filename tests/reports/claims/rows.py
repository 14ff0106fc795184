"""The rows that the claims of these tests compare, and their score."""

from benchmarks.claims import At

ACC, TABLE = "test/accuracy", "fedsplitbert-table3"
SPLIT, QAT, FEDAVG, FEDPROX = (At(TABLE, row) for row in ("fedsplitbert", "fedsplitbert-qat", "fedavg", "fedprox"))
