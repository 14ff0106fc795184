"""Which parameter belongs to which part of a BERT-family model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fedsim.errors import FederationError

LAYER = re.compile(r"\.(?:layer|h)\.(\d+)\.")  # BERT's family, GPT-2
_EMBEDDINGS = ("encoder.embeddings", "encoder.wte.", "encoder.wpe.")  # and ELECTRA's embeddings_project
_LAST = "encoder.ln_f."  # GPT-2's norm behind its last layer


@dataclass(frozen=True)
class ParameterGroups:
    """Parameter names by part: embeddings, encoder layers from the bottom, and the head (pooler, classifier)."""

    embeddings: frozenset[str]
    layers: tuple[frozenset[str], ...]
    head: frozenset[str]

    @property
    def depth(self) -> int:
        """Number of encoder layers."""
        return len(self.layers)

    @property
    def names(self) -> frozenset[str]:
        """All parameters."""
        return self.embeddings.union(*self.layers, self.head)

    def up_to(self, layer: int) -> frozenset[str]:
        """Encoder layers 1 … `layer`, counted from 1 as the papers do."""
        if not isinstance(layer, int) or not 0 <= layer <= self.depth:
            raise FederationError(f"critical layer {layer}: expected 0 to {self.depth}, the encoder's number of layers")
        return frozenset().union(*self.layers[:layer])

    def view(self, layers: Sequence[int]) -> dict[str, str]:
        """A sub-model's names -> the names here: its i-th layer is the one numbered `layers[i]`, the rest is the same.

        Layers are counted from 0; one may stand at several places.
        """
        view = {name: name for name in self.names if not LAYER.search(name)}
        for own, target in enumerate(layers):
            for name in self.layers[target]:
                if number := LAYER.search(name):
                    view[f"{name[: number.start(1)]}{own}{name[number.end(1) :]}"] = name
        return view


def parameter_groups(names: Iterable[str]) -> ParameterGroups:
    """Sort the parameters of a SequenceModel ("encoder.…", "head.…") into parts."""
    embeddings, head, last = set(), set(), set()
    layers: dict[int, set[str]] = {}
    for name in names:
        match = LAYER.search(name)
        if name.startswith("head."):
            head.add(name)
        elif match:
            layers.setdefault(int(match[1]), set()).add(name)
        elif name.startswith(_EMBEDDINGS):
            embeddings.add(name)
        elif name.startswith(_LAST):
            last.add(name)
        else:
            raise FederationError(f"not a BERT-family encoder: the parameter {name!r} is in no known part")
    if sorted(layers) != list(range(len(layers))) or not layers:
        raise FederationError(f"not a BERT-family encoder: found the layers {sorted(layers)}")
    layers[len(layers) - 1] |= last
    return ParameterGroups(frozenset(embeddings), tuple(frozenset(layers[i]) for i in sorted(layers)), frozenset(head))
