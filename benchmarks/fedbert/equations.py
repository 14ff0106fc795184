"""FedBERT's equations of communication cost (Table 2), completed by the averaging and handing on that it leaves out."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.costs import ClosedForm, Parts, SplitTerms


def fedavg(t: SplitTerms) -> Parts:
    """2|W|: the whole model down and up, in every round, for every client."""
    return {"parameters": 2 * t.rounds * t.N * t.W}


def crossing(t: SplitTerms) -> Parts:
    """4pL in every epoch, for every client: activations up and down, gradients up and down."""
    each = 2 * t.N * t.T * t.pL
    return {"activations": each, "gradients": each}


def _averaging(of: Callable[[SplitTerms], float]) -> Callable[[SplitTerms], Parts]:
    """4pL, and the averaged parameters down and up in every round."""
    return lambda t: {**crossing(t), "parameters": 2 * t.rounds * t.N * of(t)}


def share(t: SplitTerms) -> Parts:
    """4pL, and embeddings and head up after each client's turn, and down to all clients but the first."""
    return {**crossing(t), "parameters": (2 * t.N - 1) * (t.E + t.H)}


# The equation is Table 2's, of a client's epoch; the text that of a whole run.
FEDAVG = ClosedForm("2|W|", "2·rounds·N·|W|", fedavg)
SHARE = ClosedForm("4pL", "4·N·T·pL + (2N − 1)·(|E| + |H|)", share)
EMDAVG = ClosedForm("4pL", "4·N·T·pL + 2·rounds·N·|E|", _averaging(lambda t: t.E))
HEAVG = ClosedForm("4pL", "4·N·T·pL + 2·rounds·N·(|E| + |H|)", _averaging(lambda t: t.E + t.H))
