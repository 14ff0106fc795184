"""From a recipe to a folder in the hub's layout: found if it is finished, gone on with if it was begun."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.environment import describe_environment
from benchmarks.errors import UserError
from benchmarks.pretraining import checkpoint
from benchmarks.pretraining.corpus import Corpus, load_corpus
from benchmarks.pretraining.model import whole_encoder
from benchmarks.pretraining.recipes import Recipe, made_folder
from benchmarks.pretraining.training import Trainer
from benchmarks.runner import quiet_libraries
from benchmarks.settings import Settings, require_writable
from benchmarks.spec import JSON, digest
from fedsim.precision import resolve_precision

RECORD = "recipe.json"


def _silent(trainer: Trainer, step: int) -> None:
    """No one watches."""


def pretrain(recipe: Recipe, settings: Settings, on_step: Callable[[Trainer, int], None] = _silent) -> Path:
    """Make the recipe's encoder, or find it; returns its folder, which is never overwritten.

    on_step: told the number of finished steps at the start, after each step, and once more after each epoch.
    UserError where the folder holds what another recipe or other data made.
    """
    import torch
    from filelock import FileLock

    quiet_libraries()
    torch.set_num_threads(settings.threads)
    folder = made_folder(recipe.id, settings.results_dir)
    require_writable(folder.parent)
    corpus = load_corpus(recipe, settings)
    identity = digest({"recipe": recipe.to_json(), "inputs": corpus.identity})
    lock = settings.results_dir / "locks" / f"pretraining-{recipe.id}.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    saved = settings.checkpoint_dir(f"pretraining-{recipe.id}")
    with FileLock(lock):
        if not folder.exists():
            _compute(recipe, corpus, identity, settings, saved, folder, on_step)
        elif made_by(folder) != identity:
            raise UserError(
                f"{folder}: expected nothing, or the encoder of this recipe and these data, found another one. "
                f"Records may name it, so it is not overwritten: move it away to make a new one."
            )
        checkpoint.remove(saved)
    return folder


def made_by(folder: Path) -> str | None:
    """The identity of the recipe and data that made an encoder's folder; None where that is not known."""
    try:
        identity: str = json.loads((folder / RECORD).read_text(encoding="utf-8"))["identity"]
        return identity
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _compute(
    recipe: Recipe,
    corpus: Corpus,
    identity: str,
    settings: Settings,
    saved: Path,
    folder: Path,
    on_step: Callable[[Trainer, int], None],
) -> None:
    started = time.perf_counter()
    trainer = Trainer(recipe, corpus, resolve_precision(recipe.precision, settings.device))
    checkpoint.restore(saved, identity, trainer)
    resumed = trainer.progress.epochs
    on_step(trainer, resumed * trainer.epoch_steps)
    while trainer.progress.epochs < recipe.epochs:
        trainer.train_epoch(lambda step: on_step(trainer, step))
        checkpoint.save(saved, identity, trainer)
        on_step(trainer, trainer.progress.epochs * trainer.epoch_steps)
    progress, encoder = trainer.progress, whole_encoder(recipe, trainer.model, corpus.vocabulary)
    record: dict[str, JSON] = {
        "identity": identity,
        "recipe": recipe.to_json(),
        "inputs": corpus.sources,
        "parameters": {
            "encoder": sum(parameter.numel() for parameter in encoder.parameters()),
            "trained": sum(parameter.numel() for parameter in trainer.parameters.values()),
        },
        "steps": trainer.steps,
        "losses": progress.losses,
        "held_out_losses": progress.held_out_losses,
        "held_out_perplexity": math.exp(progress.held_out_losses[-1]),
        "environment": describe_environment(trainer.precision, settings.threads),
        "timing": {
            "train_seconds": round(time.perf_counter() - started, 3),  # of the last start
            "epochs": recipe.epochs - resumed,  # of that start
        },
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    _write(folder, encoder, corpus.tokenizer, record)


def _write(folder: Path, encoder: Any, tokenizer: Any, record: dict[str, JSON]) -> None:
    """The folder appears whole: it is written beside its place and renamed."""
    partial = folder.with_name(f".{folder.name}.partial")
    if partial.exists():
        shutil.rmtree(partial)
    encoder.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    (partial / RECORD).write_text(text, encoding="utf-8")
    for path in partial.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    partial.rename(folder)
