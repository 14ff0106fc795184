"""An encoder under BERT's head for masked tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.pretraining.recipes import Recipe
from fedsim.data import Batch
from fedsim.models.encoder import encoder_from_config
from fedsim.rng import SERVER, torch_seeded

# Shape suffixes: B batch, S tokens, M hidden tokens, D hidden width, V vocabulary.


class MaskedLanguageModel(nn.Module):
    """Encoder, then dense, GELU, LayerNorm, and the word embeddings as decoder (Devlin et al. 2019, appendix A.1).

    The decoder's weight is the embeddings' own parameter and not a second one, so it is trained and counted once.
    """

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        config: Any = encoder.config
        self.encoder = encoder
        self.transform = nn.Linear(config.hidden_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.bias = nn.Parameter(torch.zeros(len(self.word_embeddings)))
        nn.init.normal_(self.transform.weight, std=config.initializer_range)
        nn.init.zeros_(self.transform.bias)

    def forward(self, batch: Batch, positions_M: Tensor) -> Tensor:
        """Logits [M, V] of the tokens at these positions of the flattened batch; the others cost nothing."""
        inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids")}
        hidden_BSD = self.encoder(**inputs).last_hidden_state
        hidden_MD = hidden_BSD.flatten(0, 1)[positions_M]
        return functional.linear(self.norm(functional.gelu(self.transform(hidden_MD))), self.word_embeddings, self.bias)

    @property
    def word_embeddings(self) -> Tensor:
        """The encoder's word embeddings."""
        encoder: Any = self.encoder
        weight: Tensor = encoder.get_input_embeddings().weight
        return weight


def fresh_model(recipe: Recipe, vocabulary: np.ndarray) -> MaskedLanguageModel:
    """The recipe's model with weights drawn from its seed, and word embeddings of these tokens alone."""
    encoder = _fresh_encoder(recipe, dropout=recipe.dropout)
    words = encoder.get_input_embeddings()
    kept = nn.Embedding.from_pretrained(
        words.weight.detach()[torch.from_numpy(vocabulary)], freeze=False, padding_idx=words.padding_idx
    )
    encoder.set_input_embeddings(kept)
    with torch_seeded(recipe.seed, 0, SERVER, "head"):
        return MaskedLanguageModel(encoder)


def whole_encoder(recipe: Recipe, model: MaskedLanguageModel, vocabulary: np.ndarray) -> Any:
    """The trained encoder with word embeddings of the whole vocabulary: those it never met are as they were drawn."""
    encoder = _fresh_encoder(recipe)
    weight = encoder.get_input_embeddings().weight
    trained = {name: tensor.cpu() for name, tensor in model.encoder.state_dict().items()}
    with torch.no_grad():
        weight[torch.from_numpy(vocabulary)] = model.word_embeddings.detach().cpu()
    for name, tensor in encoder.state_dict().items():
        if tensor.data_ptr() != weight.data_ptr():
            tensor.copy_(trained[name])
    return encoder


def _fresh_encoder(recipe: Recipe, dropout: float | None = None) -> Any:
    changed = {} if dropout is None else {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    with torch_seeded(recipe.seed, 0, SERVER, "initialisation"):
        return encoder_from_config({**recipe.config, **changed})
