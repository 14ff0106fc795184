"""The texts of a recipe, tokenised, and the few of them that are held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.backbones import TOKENIZER_FILES, fetch, load_tokenizer
from benchmarks.encoding import encode
from benchmarks.errors import UserError
from benchmarks.pretraining.recipes import Recipe
from benchmarks.settings import Settings
from benchmarks.spec import JSON, digest
from benchmarks.tasks import DataSource, Examples, task
from fedsim.data import Part
from fedsim.rng import SERVER, numpy_generator


@dataclass(frozen=True)
class Corpus:
    """Texts to train on and texts to score, with the tokenizer that read them.

    A token's number is its place in `vocabulary`: the ids, in their order, that occur in the texts or are special.
    The tokenizer's other tokens are neither read nor asked for, so they cost nothing.
    sources: digests of what was read and where it came from, for the recipe's record.
    """

    train: Part
    held_out: Part
    tokenizer: Any
    vocabulary: np.ndarray  # int64 [V]
    sources: dict[str, JSON]

    def place(self, token_id: int) -> int:
        """The number of a token."""
        return int(np.searchsorted(self.vocabulary, token_id))

    @property
    def identity(self) -> dict[str, JSON]:
        """What of the sources decides the result."""
        return {"data": self.sources["data"]["digest"], "tokenizer": self.sources["tokenizer"]["digest"]}


def load_corpus(recipe: Recipe, settings: Settings) -> Corpus:
    """Read a recipe's texts. Each counts once, so that none of those held out is trained on under another number."""
    tokenizer, origin = _tokenizer(recipe, settings)
    data = task(recipe.task).load(DataSource(settings.data_dir, settings.lenient))
    texts = tuple(dict.fromkeys(data.pool.texts))
    examples = encode(Examples(texts, np.zeros(len(texts), dtype=np.int64)), tokenizer, recipe.max_length).examples
    ordinary = ~np.isin(examples.tokens, tokenizer.all_special_ids)
    words = np.diff(np.concatenate([[0], np.cumsum(ordinary)])[examples.offsets])
    order = numpy_generator(recipe.seed, 0, SERVER, "held-out").permutation(np.flatnonzero(words))
    vocabulary = np.union1d(examples.tokens, tokenizer.all_special_ids).astype(np.int64)
    examples = replace(
        examples,
        tokens=np.searchsorted(vocabulary, examples.tokens).astype(np.int32),
        padding_id=int(np.searchsorted(vocabulary, examples.padding_id)),
    )
    held_out = max(1, round(recipe.held_out_share * len(order)))
    if len(order) <= held_out:
        raise UserError(f"recipe {recipe.id}: expected two texts or more in {data.origin}, found {len(order)}")
    return Corpus(
        train=Part(examples, np.sort(order[held_out:])),
        held_out=Part(examples, np.sort(order[:held_out])),
        tokenizer=tokenizer,
        vocabulary=vocabulary,
        sources={
            "data": {
                "digest": data.digest,
                "origin": data.origin,
                "texts": len(order) - held_out,
                "held_out": held_out,
                "tokens": int(examples.lengths[order[held_out:]].sum()),
                "distinct_tokens": len(vocabulary),
                "skipped": [f"{row.file}:{row.line}: {row.reason}" for row in data.skipped],
                "notes": list(data.notes),
            },
            "tokenizer": {"digest": digest(tokenizer.backend_tokenizer.to_str(), 64), **origin},
        },
    )


def _tokenizer(recipe: Recipe, settings: Settings) -> tuple[Any, dict[str, str]]:
    folder = settings.data_dir / "vocab" / recipe.tokenizer if settings.data_dir else None
    if folder is not None and folder.is_dir():
        origin = {"from": f"folder vocab/{recipe.tokenizer}"}
    else:
        try:
            folder, origin = fetch(recipe.hub, recipe.revision, files=TOKENIZER_FILES)
        except UserError:
            raise UserError(
                f"recipe {recipe.id}: expected a tokenizer in {folder or 'the data directory'} or on the Hugging Face "
                f"hub as {recipe.hub}, found none. Put vocab.txt and tokenizer_config.json of {recipe.hub} into "
                f"vocab/{recipe.tokenizer} of your data directory."
            ) from None
    tokenizer = load_tokenizer(folder)
    if len(tokenizer) != recipe.config["vocab_size"] or tokenizer.mask_token_id is None:
        raise UserError(
            f"{folder}: expected a tokenizer of {recipe.config['vocab_size']} tokens with a mask among them, found "
            f"{len(tokenizer)} tokens and the mask {tokenizer.mask_token}. Get the files of {recipe.hub} again."
        )
    return tokenizer, origin
