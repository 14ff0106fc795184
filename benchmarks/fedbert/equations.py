"""FedBERT's equations of communication cost (Table 2), completed by the averaging and handing on that it leaves out."""

from __future__ import annotations

from benchmarks.costs import ClosedForm, Parts, SplitTerms


def _split(t: SplitTerms, parameters: float) -> Parts:
    """4pL in every epoch for every client: activations up and down, gradients up and down; and these parameters."""
    crossing = 2 * t.N * t.T * t.pL
    return {"activations": crossing, "gradients": crossing, "parameters": parameters}


# Table 2's equation is for a client's epoch, the text for a whole run.
FEDAVG = ClosedForm("2|W|", "2·rounds·N·|W|", lambda t: {"parameters": 2 * t.rounds * t.N * t.W})
# Embeddings and head go up after each client's turn, and down to all clients but the first.
SHARE = ClosedForm("4pL", "4·N·T·pL + (2N − 1)·(|E| + |H|)", lambda t: _split(t, (2 * t.N - 1) * (t.E + t.H)))
# Averaged parameters go down and up in every round.
EMDAVG = ClosedForm("4pL", "4·N·T·pL + 2·rounds·N·|E|", lambda t: _split(t, 2 * t.rounds * t.N * t.E))
HEAVG = ClosedForm("4pL", "4·N·T·pL + 2·rounds·N·(|E| + |H|)", lambda t: _split(t, 2 * t.rounds * t.N * (t.E + t.H)))
