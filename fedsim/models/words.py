"""Word embeddings in training: of a client's own words alone, which is exact and costs a fraction of the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from fedsim.data import Batch, Examples, Subset
from fedsim.models.model import Model
from fedsim.wire import Params


@dataclass(frozen=True)
class Words:
    """How batches and tensors look while the embeddings hold the words met alone. name: of the embeddings."""

    name: str
    places: Tensor  # of each token id among the words met, [V]
    met: Tensor  # the ids of the words met, [W]

    def batch(self, batch: Batch) -> Batch:
        """The batch with places in place of ids."""
        return {**batch, "input_ids": self.places[batch["input_ids"]]}

    def anchor(self, anchor: Params) -> Params:
        """The tensors with the rows of the words met alone."""
        if self.name not in anchor:
            return anchor
        whole = anchor[self.name]
        return {**anchor, self.name: whole[self.met.to(whole.device)]}


@contextmanager
def only_words_of(subset: Subset, model: Model) -> Iterator[Words | None]:
    """Give the resident model embeddings of the subset's words while it trains on the subset; then write them back.

    Rows of other words get no gradient: without weight decay AdamW leaves them as they are, so this changes no bit of
    the outcome. None where examples are no token ids.
    """
    encoder: Any = model.network.encoder
    whole: nn.Embedding = encoder.get_input_embeddings()
    name = model.word_embeddings
    if not isinstance(subset.examples, Examples):
        yield None
        return
    # Ids up to the padding's keep their places: RoBERTa's family counts positions from there.
    met = np.union1d(subset.examples.words(subset.indices), np.arange((whole.padding_idx or 0) + 1)).astype(np.int64)
    places = np.zeros(whole.num_embeddings, dtype=np.int64)
    places[met] = np.arange(len(met))
    rows = torch.from_numpy(met).to(model.device)
    compact = nn.Embedding.from_pretrained(whole.weight.detach()[rows], freeze=False, padding_idx=whole.padding_idx)
    encoder.set_input_embeddings(compact)
    model.parameters[name] = cast(nn.Parameter, compact.weight)
    try:
        yield Words(name, torch.from_numpy(places), torch.from_numpy(met))
    finally:
        with torch.no_grad():
            whole.weight[rows] = compact.weight
        encoder.set_input_embeddings(whole)
        model.parameters[name] = cast(nn.Parameter, whole.weight)
