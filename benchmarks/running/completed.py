"""Finished cells: their records and weights, and the cells that start from these."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.encoders.backbones import BACKBONES
from benchmarks.errors import UserError
from benchmarks.results import Find, RunResult, read_result, write_text
from benchmarks.run_config import RunConfig
from benchmarks.running.run_options import RunOptions
from fedsim.files import read_file, read_json, write_bytes

IsFinished = Callable[[RunConfig, bool], bool]  # (cell, whether its weights are needed) -> whether it is finished

# ---- earlier runs ------------------------------------------------------------------------------------------------


def initial_of(cell: RunConfig) -> RunConfig | None:
    """The cell whose weights a cell starts from: its `initial`, or the cell that trained its backbone."""
    backbone = BACKBONES.get(cell.backbone)
    if cell.initial is not None or backbone is None or not backbone.made_by:
        return cell.initial
    from benchmarks.registry import benchmark  # loads the definitions, which a run does not need otherwise

    made_by, scale = backbone.made_by
    definition = benchmark(made_by)
    ((_, _, earlier),) = definition.cells(definition.scale(scale), [0])
    return earlier


def earlier_stages(cell: RunConfig) -> list[RunConfig]:
    """All cells that must run before this one, in order."""
    return chain_of(cell)[:-1]


def _never(cell: RunConfig, with_weights: bool) -> bool:
    return False


def chain_of(cell: RunConfig, is_finished: IsFinished = _never) -> list[RunConfig]:
    """A cell, preceded by the cells that it still needs; only the cell if it is finished."""
    chain = [cell]
    while (before := initial_of(chain[0])) is not None and not is_finished(chain[0], len(chain) > 1):
        chain.insert(0, before)
    return chain


def by_stage(cells: Sequence[RunConfig], is_finished: IsFinished = _never) -> list[list[RunConfig]]:
    """Distinct cells and the cells that they need, in lists to run in sequence."""
    added = {cell.spec_id for cell in cells}
    lists: list[list[RunConfig]] = []
    for cell in cells:
        for depth, stage in enumerate(chain_of(cell, is_finished)):
            lists += [[] for _ in range(depth + 1 - len(lists))]
            if stage is cell or stage.spec_id not in added:
                added.add(stage.spec_id)
                lists[depth].append(stage)
    return [stage for stage in lists if stage]


# ---- weights -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeptWeights:
    """A finished cell's weights: all parameters of the server's model, as safetensors."""

    cell: RunConfig
    cell_id: str
    sha256: str  # of the file
    path: Path

    def content(self) -> bytes:
        """The file's content; UserError if it is damaged."""
        content = read_file(self.path, "the weights of an earlier run")
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise UserError(
                f"{self.path}: expected the SHA-256 {self.sha256[:12]}…, found another: the weights are damaged. "
                f"Remove the file, and its run starts again."
            )
        return content


def stopped_by(record: RunResult) -> str:
    """The reason why no cell can start from a diverged cell."""
    return f"its parent run {record.cell.label} {record.divergence}: {record.diverged['reason']}"


def find_weights(settings: RunOptions, cell: RunConfig, cell_id: str) -> KeptWeights | None:
    """A cell's stored weights; None if they are missing. Reading them checks their content."""
    path, note = _weights_files(settings, cell, cell_id)
    if not (path.exists() and note.exists()):
        return None
    try:
        return KeptWeights(cell, cell_id, str(read_json(note)["sha256"]), path)
    except (ValueError, KeyError, TypeError):
        return None  # the cell runs again and writes both files


def keep_weights(settings: RunOptions, cell: RunConfig, cell_id: str, content: bytes) -> KeptWeights:
    """Store a finished cell's weights; they are valid once the note with their digest is written."""
    path, note = _weights_files(settings, cell, cell_id)
    sha256 = hashlib.sha256(content).hexdigest()
    write_bytes(path, content)
    write_text(note, json.dumps({"cell": cell.to_json(), "cell_id": cell_id, "sha256": sha256}, indent=1) + "\n")
    return KeptWeights(cell, cell_id, sha256, path)


def _weights_files(settings: RunOptions, cell: RunConfig, cell_id: str) -> tuple[Path, Path]:
    """The paths of the weights and of the note with their digest."""
    stem = str(settings.results_dir / "weights" / f"{cell.label}-{cell_id}")
    return Path(f"{stem}.safetensors"), Path(f"{stem}.json")


# ---- records -----------------------------------------------------------------------------------------------------


def finished_result(cell: RunConfig, cell_id: str, records_dir: Path) -> RunResult | None:
    """A finished cell's record; None without one, UserError if its file is damaged."""
    path = records_dir / f"{cell.label}-{cell_id}.json"
    return read_result(path) if path.exists() else None


def in_folder(folder: Path) -> Find:
    """A function that finds earlier runs by cell_id in a folder of records."""

    def find(cell_id: str, spec_id: str) -> RunResult | None:
        path = next(folder.glob(f"*-{cell_id}.json"), None) if cell_id else None
        return read_result(path) if path is not None else None

    return find


def with_other_inputs(cell: RunConfig, records_dir: Path) -> str:
    """A remark if the cell has a record with other data, encoder or method; otherwise ""."""
    for record in _of_label(cell, records_dir):
        if record.cell.spec_id == cell.spec_id:
            return f"data, encoder or method differ from those of {record.file_name}: the cell is computed again"
    return ""


def _of_label(cell: RunConfig, records_dir: Path) -> Iterator[RunResult]:
    """The records of cells with a cell's label, without damaged ones, which their cells report when they start."""
    for path in sorted(records_dir.glob(f"{cell.label}-*.json")):
        with suppress(UserError):
            yield read_result(path)


class Completed:
    """Whether cells have a record in the results folder; it reads each file once.

    A cell still counts as finished if its data, encoder or method changed; `run_cell` then computes it again.
    """

    def __init__(self, settings: RunOptions) -> None:
        self._settings = settings
        self._records: dict[str, RunResult] = {}  # spec_id -> record
        self._read: set[str] = set()  # labels of cells whose files were read

    def __call__(self, cell: RunConfig, with_weights: bool) -> bool:
        """Whether a cell has a record and, if requested, weights that another cell can start from."""
        record = self._record(cell)
        if record is None or not with_weights or record.diverged:
            return record is not None
        return find_weights(self._settings, record.cell, record.cell_id) is not None

    def _record(self, cell: RunConfig) -> RunResult | None:
        if cell.label not in self._read:
            self._read.add(cell.label)
            self._records |= {each.cell.spec_id: each for each in _of_label(cell, self._settings.records_dir)}
        return self._records.get(cell.spec_id)

    def said(self, cells: Sequence[RunConfig]) -> str:
        """A phrase with the number of finished earlier runs."""
        finished = [cell for cell in cells if self(cell, with_weights=False)]
        if not finished:
            return "not run yet"
        count = "finished" if len(finished) == len(cells) else f"{len(finished)} of {len(cells)} finished"
        if all(self(cell, with_weights=True) for cell in finished):
            return count
        return f"{count}; without weights on this machine, it runs again for the runs that start from it"
