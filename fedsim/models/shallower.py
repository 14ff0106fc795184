"""A client's model with fewer layers than the server's."""

from __future__ import annotations

import copy
from collections.abc import Set

from torch import nn

from fedsim.errors import FederationError
from fedsim.models.groups import LAYER
from fedsim.models.model import Model


def shallower(model: Model, names: Set[str]) -> Model:
    """A model of these parameters alone: the given one's with its first layers, as many as the names have.

    Which of the server's layers a client's layer stands for is said by the view of its plan, not here.
    FederationError where the names are not those of such a model.
    """
    depth = len({match[1] for name in names if (match := LAYER.search(name))})
    made = copy.deepcopy(model.network)
    for module in list(made.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.ModuleList) and name in ("layer", "h"):
                setattr(module, name, child[:depth])
    cut = Model(made, model.precision, model.objective, model.kernels)
    if cut.parameters.keys() != names:
        odd = sorted(cut.parameters.keys() ^ names)
        raise FederationError(
            f"exchange plan: its view names {len(names)} parameters; expected those of the server's model, or of its "
            f"first layers with everything around them. The first that differ: {', '.join(odd[:3])}"
        )
    return cut
