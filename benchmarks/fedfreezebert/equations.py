"""FedFreezeBERT's equations of communication cost (equation 4 is its metric, F1^PN)."""

from __future__ import annotations

from benchmarks.costs import ClosedForm, Terms

FLOAT_BYTES = 4  # "each number in the embedding is represented by 4 bytes"


def _exchanged(t: Terms, size: float) -> dict[str, float]:
    """Parameters of this size, down and up in every round for every client."""
    return {"parameters": 2 * t.T * t.n_c * size}


D_FEDFREEZEBERT = ClosedForm("1", "2·T·n_c·SizeOf(W_s)", lambda t: _exchanged(t, t.W_s))
# One embedding of every token of every text up, once, and W_s down to every client.
C_FEDFREEZEBERT = ClosedForm(
    "2",
    "(4/2^30)·n_s·n_t·dim_emb + n_c·SizeOf(W_s)",
    lambda t: {"features": FLOAT_BYTES * t.n_s * t.n_t * t.dim_emb, "parameters": t.n_c * t.W_s},
    {"features": 2**30},
)
FEDSPLITBERT = ClosedForm("3", "2·T·n_c·(c·SizeOf(BL) + SizeOf(BE))", lambda t: _exchanged(t, t.c * t.BL + t.BE))
# FedSplitBERT's quantisation sends numbers of 2 bytes, not 4.
FEDSPLITBERT_FP16 = ClosedForm(
    "3, halved", "T·n_c·(c·SizeOf(BL) + SizeOf(BE))", lambda t: _exchanged(t, (t.c * t.BL + t.BE) / 2)
)
FEDAVG = ClosedForm("5", "2·T·n_c·SizeOf(BERT)", lambda t: _exchanged(t, t.BERT))  # and of FedProx
