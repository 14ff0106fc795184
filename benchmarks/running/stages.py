"""Stages: a cell may begin from another cell's outcome, whose weights are kept under its id."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.encoders.backbones import KNOWN
from benchmarks.errors import UserError
from benchmarks.results import RunResult, write_bytes, write_text
from benchmarks.run_config import RunConfig
from benchmarks.running.run_options import RunOptions
from fedsim.files import read_file, read_json

if TYPE_CHECKING:
    from torch import Tensor


def initial_of(cell: RunConfig) -> RunConfig | None:
    """The cell from whose outcome another begins: its own `initial`, or the one that made its backbone."""
    if cell.initial is not None:
        return cell.initial
    known = KNOWN.get(cell.backbone)
    if known is None or not known.made_by:
        return None
    from benchmarks.registry import benchmark

    made_by, scale = known.made_by
    definition = benchmark(made_by)
    (found,) = definition.cells(definition.scale(scale), [0])
    return found[-1]


def earlier_stages(cell: RunConfig) -> list[RunConfig]:
    """Every cell that has to be run before this one, the first one first."""
    return chain_of(cell, _never)[:-1]


IsFinished = Callable[[RunConfig, bool], bool]  # a cell, whether its weights are needed


def _never(cell: RunConfig, with_weights: bool) -> bool:
    return False


def chain_of(cell: RunConfig, is_finished: IsFinished) -> list[RunConfig]:
    """A cell, and before it what has to be run, or found, so that it can begin: nothing where it is finished."""
    chain = [cell]
    while (before := initial_of(chain[0])) is not None and not is_finished(chain[0], len(chain) > 1):
        chain.insert(0, before)
    return chain


def by_stage(cells: Sequence[RunConfig], is_finished: IsFinished = _never) -> list[list[RunConfig]]:
    """Cells, and all that has to be run before them, in lists that are run one after the other."""
    given = {cell.spec_id for cell in cells}
    lists: list[list[RunConfig]] = []
    added: set[str] = set()
    for cell in cells:
        for depth, stage in enumerate(chain_of(cell, is_finished)):
            lists += [[] for _ in range(depth + 1 - len(lists))]
            if stage is cell or stage.spec_id not in given | added:
                added.add(stage.spec_id)
                lists[depth].append(stage)
    return [found for found in lists if found]


@dataclass(frozen=True)
class Outcome:
    """The weights that a finished cell left: every parameter of the server's model, as safetensors."""

    cell: RunConfig
    cell_id: str
    sha256: str  # of the file
    path: Path

    def tensors(self) -> dict[str, Tensor]:
        """The parameters by name; UserError where the file is damaged."""
        import safetensors.torch

        content = read_file(self.path, "the weights of a stage")
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise UserError(
                f"{self.path}: expected the SHA-256 {self.sha256[:12]}…, found another: the weights are damaged. "
                f"Remove the file, and the stage that made it is run again."
            )
        try:
            return safetensors.torch.load(content)
        except (safetensors.SafetensorError, KeyError, ValueError, RuntimeError) as error:
            raise UserError(f"{self.path}: expected weights, found none ({error}). Remove the file.") from None


def stopped_by(record: RunResult) -> str:
    """Why nothing begins from a cell whose training diverged, in words."""
    return f"{record.cell.label}, from which it begins, {record.divergence}: {record.diverged['reason']}"


def _places(settings: RunOptions, cell: RunConfig, cell_id: str) -> tuple[Path, Path]:
    stem = settings.results_dir / "weights" / f"{cell.label}-{cell_id}"
    return stem.with_name(f"{stem.name}.safetensors"), stem.with_name(f"{stem.name}.json")


def find_outcome(settings: RunOptions, cell: RunConfig, cell_id: str) -> Outcome | None:
    """The kept weights of a cell, None where they are not there; their content is checked when they are read."""
    path, note = _places(settings, cell, cell_id)
    if not (os.path.lexists(path) and note.exists()):
        return None
    try:
        sha256 = str(read_json(note)["sha256"])
    except (ValueError, KeyError, TypeError):
        return None  # written anew
    return Outcome(cell, cell_id, sha256, path)


def keep_outcome(settings: RunOptions, cell: RunConfig, cell_id: str, parameters: Mapping[str, Tensor]) -> Outcome:
    """Keep a finished cell's weights; the note with their digest, written last, makes them count."""
    import safetensors.torch

    path, note = _places(settings, cell, cell_id)
    content = safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in parameters.items()})
    sha256 = hashlib.sha256(content).hexdigest()
    write_bytes(path, content)
    write_text(note, json.dumps({"cell": cell.to_json(), "cell_id": cell_id, "sha256": sha256}, indent=1) + "\n")
    return Outcome(cell, cell_id, sha256, path)
