"""A BERT-family encoder over packed tokens, where its layers are BERT's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from fedsim.models.families import first_position
from fedsim.models.packed.layer import PackedLayer
from fedsim.models.packed.packing import Packing
from fedsim.models.packed.parts import Masks

# Shape suffixes: B texts, S tokens, T tokens of all texts, D hidden width.


class PackedEncoder:
    """Hidden states of the given encoder's own parameters, computed without padding."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self._layers = [PackedLayer(layer) for layer in encoder.encoder.layer]
        self._first_position = first_position(encoder.config.to_dict())  # 0, or behind the padding's id

    @property
    def fits(self) -> bool:
        """Whether the layers still are what they were made: no one has put modules of their own into them."""
        return all(layer.fits for layer in self._layers)

    def refresh(self, dtype: torch.dtype) -> None:
        """Take over what the parameters are now, in the element type of the arithmetic; `states` does not."""
        for layer in self._layers:
            layer.refresh(dtype)

    def states(self, batch: Mapping[str, Tensor], dtype: torch.dtype, wanted: int, first: bool) -> tuple[Tensor, ...]:
        """The last hidden states [B, S, D], the last one first, as many as are wanted.

        dtype: of the arithmetic. first: of the last one the first token of each text alone is read, [B, 1, D].
        """
        packing = Packing(batch["attention_mask"])
        encoder = self._encoder
        masks = Masks(dtype) if encoder.training else None
        hidden_TD = self._embedded(batch, packing, masks).to(dtype)
        found = []
        for number, (layer, module) in enumerate(zip(self._layers, encoder.encoder.layer, strict=True), start=1):
            for hook in module._forward_pre_hooks.values():  # what crosses the wire here, and comes back
                hidden_TD = packing.tokens(hook(module, (packing.states(hidden_TD),))[0])
            hidden_TD = layer(hidden_TD, packing, masks, first and number == len(self._layers))
            found.append(hidden_TD)
        last = found.pop()[:, None] if first else packing.states(found.pop())
        return last, *(packing.states(found.pop()) for _ in range(wanted - 1))

    def _positions(self, ids_BS: Tensor, packing: Packing) -> Tensor:
        """The position [T] of each token; where positions follow the padding, its id is not counted inside texts."""
        if not self._first_position:
            return packing.positions
        padding = self._first_position - 1
        counted_BS = ids_BS != padding
        return packing.packed(counted_BS.cumsum(1) * counted_BS) + padding

    def _embedded(self, batch: Mapping[str, Tensor], packing: Packing, masks: Masks | None) -> Tensor:
        """Embeddings [T, D] of the tokens, behind their norm and dropout (Devlin et al. 2019, figure 2)."""
        embeddings: Any = self._encoder.embeddings
        words_TD = embeddings.word_embeddings(packing.packed(batch["input_ids"]))
        positions_TD = embeddings.position_embeddings(self._positions(batch["input_ids"], packing))
        types_BS = batch.get("token_type_ids")
        types_T = torch.zeros_like(packing.places) if types_BS is None else packing.packed(types_BS)
        hidden_TD: Tensor = embeddings.LayerNorm(words_TD + embeddings.token_type_embeddings(types_T) + positions_TD)
        mask = masks.draw(hidden_TD.numel(), embeddings.dropout.p) if masks is not None else None
        return hidden_TD if mask is None else hidden_TD * mask.factor(hidden_TD)
