"""A cache of answers in the results folder; a key contains everything that determines an answer.

A damaged cache is ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from benchmarks.encoders.backbones import is_folder
from benchmarks.encoders.files import find_files
from benchmarks.results import write_text
from benchmarks.run_config import ENGINE_VERSION, JSON, RunConfig, canonical_json, digest
from benchmarks.running.included import code_of
from benchmarks.tasks import task
from fedsim.files import read_json
from fedsim.strict import to_plain

LIBRARIES = ("torch", "transformers")
Answer = TypeVar("Answer")
_file: Path | None = None  # the cache, once a results folder is known
_answers: dict[str, JSON] = {}


def keep_in(results_dir: Path) -> None:
    """From now on, cache derived answers in a results folder and use its cached ones."""
    global _file, _answers
    _file = results_dir / "cache" / "shapes.json"
    _answers = _stored()


def _stored() -> dict[str, JSON]:
    """The cache's answers; empty if the file is missing or damaged."""
    try:
        content = read_json(_file) if _file is not None and _file.is_file() else {}
    except (OSError, ValueError):
        return {}
    return dict(content) if isinstance(content, dict) else {}


def _keep(key: str, value: JSON) -> None:
    """Add an answer to those that other processes have written meanwhile; on a full disk only the cache is lost."""
    global _file
    _answers.update(_stored() | {key: value})
    if _file is not None:
        lines = (f"{json.dumps(name)}: {canonical_json(answer)}" for name, answer in sorted(_answers.items()))
        try:
            write_text(_file, "{\n" + ",\n".join(lines) + "\n}\n")
        except OSError:
            _file = None


def key_of(what: str, cell: RunConfig, examples: int | Sequence[int] | None = None) -> str:
    """The key of a run's answer with a name, such as "plan"; runs with equal shapes share it.

    examples: the number of all clients' examples, or each client's; None if unknown.
    """
    of, libraries = task(cell.task), _versions()
    training = {name: value for name, value in vars(cell.training).items() if name != "learning_rate"}
    # A folder may get other files.
    encoder = read_json(find_files(cell.backbone)[0] / "config.json") if is_folder(cell.backbone) else cell.backbone
    decisive = encoder, cell.algorithm, cell.options, cell.clients, cell.codec, cell.head, training, cell.seed
    of_task = of.objective, of.classes, of.objective_options, of.long_texts
    code = code_of(cell.algorithm)  # a user's method may change
    parts = [ENGINE_VERSION, libraries, *decisive, *of_task, examples, *([dict(code)] if code else [])]
    parts += [to_plain(cell.adapter)] if cell.adapter else []
    return f"{what}-{digest(json.loads(canonical_json(parts)))}"


@cache
def _versions() -> list[str]:
    return [metadata.version(name) for name in LIBRARIES]


def kept(key: str, derive: Callable[[], Answer], kind: Any) -> Answer:
    """An answer, from the cache or derived. kind: its type, by which pydantic reads and writes it."""
    adapter: TypeAdapter[Answer] = TypeAdapter(kind)
    with suppress(ValidationError):  # a damaged entry, or another version's
        if key in _answers:
            return adapter.validate_python(_answers[key])
    answer = derive()
    _keep(key, adapter.dump_python(answer, mode="json"))
    return answer
