"""A checkpoint after every epoch: one file of tensors, committed by the rename of its manifest."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.pretraining.training import Progress, Trainer
from benchmarks.record import write_text
from benchmarks.spec import digest
from fedsim.store import read_tensors, write_tensors

MANIFEST = "state.json"
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what AdamW keeps of each parameter


def save(folder: Path, identity: str, trainer: Trainer) -> None:
    """Keep a trainer's state; the older one is removed when this one is whole."""
    tensors = {f"parameter/{name}": parameter for name, parameter in trainer.parameters.items()}
    for name, parameter in trainer.parameters.items():
        tensors.update({f"{moment}/{name}": trainer.optimizer.state[parameter][moment] for moment in MOMENTS})
    file = f"epoch-{trainer.progress.epochs}.safetensors"
    sha256 = write_tensors(folder / file, tensors)
    state = {
        "identity": identity,
        "tensors": [file, sha256],
        "losses": trainer.progress.losses,
        "held_out_losses": trainer.progress.held_out_losses,
        "scaler": trainer.scaler.state_dict(),
    }
    write_text(folder / MANIFEST, json.dumps({"state": state, "sha256": digest(state, 64)}))
    for path in folder.glob("*.safetensors"):
        if path.name != file:
            path.unlink()


def restore(folder: Path, identity: str, trainer: Trainer) -> None:
    """Bring a fresh trainer to the last saved epoch; nothing happens where none was saved for this identity."""
    path = folder / MANIFEST
    if not path.exists():
        return
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        state = manifest["state"]
        if digest(state, 64) != manifest["sha256"]:
            raise ValueError("its content does not have its checksum")
        progress = Progress(state["losses"], state["held_out_losses"])
        (file, sha256), scaler = state["tensors"], state["scaler"]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"checkpoint {path} is damaged ({type(error).__name__}: {error}). Remove the folder {folder} to start "
            f"this recipe from its first epoch."
        ) from None
    if state["identity"] != identity:
        raise UserError(
            f"checkpoint {path} belongs to another version of this recipe, or to other data. "
            f"Remove the folder {folder} to start from the first epoch."
        )
    tensors = read_tensors(folder / file, sha256)
    for name, parameter in trainer.parameters.items():
        parameter.data.copy_(tensors[f"parameter/{name}"])
        trainer.optimizer.state[parameter] = {
            moment: tensors[f"{moment}/{name}"].to(parameter.device) for moment in MOMENTS
        }
    if scaler:
        trainer.scaler.load_state_dict(scaler)
    trainer.progress = progress


def remove(folder: Path) -> None:
    """Remove the checkpoint, once its encoder is there."""
    (folder / MANIFEST).unlink(missing_ok=True)  # first: without it the rest is no checkpoint
    if folder.exists():
        shutil.rmtree(folder)
