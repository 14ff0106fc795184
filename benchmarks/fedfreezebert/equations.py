"""FedFreezeBERT's equations of communication cost (equation 4 is its metric, F1^PN)."""

from __future__ import annotations

from benchmarks.costs import ClosedForm, Parts, Terms

FLOAT_BYTES = 4  # "each number in the embedding is represented by 4 bytes"


def d_fedfreezebert(t: Terms) -> Parts:
    """Equation 1: W_s down and up, in every round, for every client."""
    return {"parameters": 2 * t.T * t.n_c * t.W_s}


def c_fedfreezebert(t: Terms) -> Parts:
    """Equation 2: one embedding of every token of every text up, once, and W_s down to every client."""
    return {"features": FLOAT_BYTES * t.n_s * t.n_t * t.dim_emb, "parameters": t.n_c * t.W_s}


def fedsplitbert(t: Terms) -> Parts:
    """Equation 3: c layers and the embeddings down and up, in every round, for every client."""
    return {"parameters": 2 * t.T * t.n_c * (t.c * t.BL + t.BE)}


def fedsplitbert_fp16(t: Terms) -> Parts:
    """Equation 3 with numbers of 2 bytes in place of 4, as FedSplitBERT quantises them."""
    return {"parameters": t.T * t.n_c * (t.c * t.BL + t.BE)}


def fedavg(t: Terms) -> Parts:
    """Equation 5, of FedAvg and FedProx: the whole model down and up, in every round, for every client."""
    return {"parameters": 2 * t.T * t.n_c * t.BERT}


D_FEDFREEZEBERT = ClosedForm("1", "2·T·n_c·SizeOf(W_s)", d_fedfreezebert)
C_FEDFREEZEBERT = ClosedForm("2", "(4/2^30)·n_s·n_t·dim_emb + n_c·SizeOf(W_s)", c_fedfreezebert, {"features": 2**30})
FEDSPLITBERT = ClosedForm("3", "2·T·n_c·(c·SizeOf(BL) + SizeOf(BE))", fedsplitbert)
FEDSPLITBERT_FP16 = ClosedForm("3, halved", "T·n_c·(c·SizeOf(BL) + SizeOf(BE))", fedsplitbert_fp16)
FEDAVG = ClosedForm("5", "2·T·n_c·SizeOf(BERT)", fedavg)
