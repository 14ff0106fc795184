"""FedBERT's closed forms, by hand: 4pL of a client's epoch, and what is averaged or handed on."""

from __future__ import annotations

import pytest

from benchmarks.costs import ClosedForm, SplitTerms
from benchmarks.fedbert import equations
from benchmarks.fedbert.table2 import BENCHMARK as TABLE2

# Two clients, four epochs in two rounds, 100 bytes across a cut an epoch; a model of 50, embeddings 20, head 5.
TERMS = SplitTerms(rounds=2, N=2, T=4, pL=100, W=50, E=20, H=5)
CROSSING = 4 * 2 * 4 * 100


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (equations.FEDAVG, 2 * 2 * 2 * 50),
        (equations.SHARE, CROSSING + 2 * 25 + 25),  # up after each turn, down to the second client
        (equations.EMDAVG, CROSSING + 2 * 2 * 2 * 20),
        (equations.HEAVG, CROSSING + 2 * 2 * 2 * 25),
    ],
)
def test_bytes_of_a_run(form: ClosedForm, expected: int) -> None:
    assert form.cost_bytes(TERMS) == expected


def test_half_of_what_crosses_are_gradients() -> None:
    parts = equations.EMDAVG.parts(TERMS)
    assert parts["activations"] == parts["gradients"] == CROSSING / 2


def test_every_row_of_table_2_has_its_equation() -> None:
    printed = {row.id: TABLE2.closed_forms[row.id].equation for row in TABLE2.rows}
    assert printed.pop("fedavg") == "2|W|"
    assert set(printed.values()) == {"4pL"}
