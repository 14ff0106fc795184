"""FedBFPT's formula of a client's computation (section 4.1), and how its tables show a client's costs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.costs import ClientCosts, Costing, WorkForm


def _work(costs: ClientCosts, backward: float) -> float:
    return (costs.forward + backward) * costs.length**2 * costs.width**2


COSTING = Costing(
    baseline="bert-fl",
    forms={
        "mb trained": WorkForm(
            "(mf + mb)·S²·H² of section 4.1 without the output layer: mf layers run, the weights of mb are trained "
            "(1 for FEDBFPT)",
            lambda costs: _work(costs, costs.trained),
        ),
        "mb crossed": WorkForm(
            "the same with mb the layers that gradients go through: the trained one and all above it, mean over rounds",
            lambda costs: _work(costs, costs.backward),
        ),
    },
    timed=Path(__file__).parents[1] / "performance" / "measured" / "epyc" / "fedbfpt.json",
)
