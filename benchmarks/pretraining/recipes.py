"""What is pre-trained, on what and how: pure data. Imports nothing heavy."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.spec import JSON


@dataclass(frozen=True)
class Recipe:
    """Masked language modelling of a task's texts (Devlin et al. 2019, section 3.1, without the next sentence).

    task: its pool's distinct texts are the corpus; no test set is. tokenizer: a folder of the data directory's
    `vocab`, else files of a hub repository. config: the encoder's, in transformers' terms.
    """

    id: str
    task: str
    tokenizer: str
    hub: str  # repository of the tokenizer
    revision: str
    config: Mapping[str, JSON]
    epochs: int
    batch_size: int
    learning_rate: float  # at its peak, between linear warm-up and linear decay to 0
    warmup_share: float = 0.1  # of all steps
    weight_decay: float = 0.01
    gradient_norm: float = 1.0  # longer gradients are shortened to it
    max_length: int = 128  # tokens; what is longer is cut
    dropout: float = 0.0  # of so few epochs none is needed; the encoder's own rate is for those who train it further
    masked_share: float = 0.15  # of a batch's tokens: 80 % become [MASK], 10 % any token, 10 % stay
    held_out_share: float = 0.05  # of the texts: never trained on, scored after each epoch
    precision: str = "auto"
    seed: int = 0

    def to_json(self) -> dict[str, JSON]:
        """The recipe as plain JSON values."""
        return asdict(self)


ARABIC_MINI = Recipe(
    id="arabic-mini",
    task="arsarcasm",
    tokenizer="marbertv2",  # MARBERT's vocabulary
    hub="UBC-NLP/MARBERTv2",
    revision="6f218da63c9249f14dedc87cde07fdb374bf7094",
    config={
        "model_type": "bert",
        "vocab_size": 100_000,
        "hidden_size": 256,
        "num_hidden_layers": 4,  # P-SUM and H-SUM read the last four
        "num_attention_heads": 4,
        "intermediate_size": 1024,
        "max_position_embeddings": 128,
    },
    epochs=10,
    batch_size=32,
    learning_rate=5e-4,
)
RECIPES = {recipe.id: recipe for recipe in (ARABIC_MINI,)}


def recipe(recipe_id: str) -> Recipe:
    """The recipe of that id; UserError where there is none."""
    if recipe_id not in RECIPES:
        near = difflib.get_close_matches(recipe_id, RECIPES, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UserError(f"unknown recipe {recipe_id!r}: expected one of {', '.join(RECIPES)}.{hint}")
    return RECIPES[recipe_id]


def made_folder(recipe_id: str, results_dir: Path) -> Path:
    """Where the finished encoder of a recipe is kept."""
    return results_dir / "backbones" / recipe_id
