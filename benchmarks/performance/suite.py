"""The suite: its parts in order, their results as JSON, and the page that shows them."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.errors import UserError
from benchmarks.performance.section import REPEATS, Bar, Bench, Section
from benchmarks.run_config import JSON
from benchmarks.running.environment import describe_environment
from benchmarks.running.process import hold_freed_memory, quiet_libraries
from benchmarks.running.run_options import RunOptions
from fedsim.files import read_json

# In the order of the page; each module of this package has a `measure`.
PARTS = ("training", "engine", "peers", "growth", "frozen", "gpu")
WHERE = "performance"  # folder of the results
_PADDING = 3  # characters between two columns


def run_suite(parts: Sequence[str], settings: RunOptions, repeats: int = REPEATS) -> int:
    """Measure the parts, or all, and write each one's JSON; 1 where a bar is not met.

    UserError where there is no such part.
    """
    import torch

    from fedsim.precision import resolve_precision

    if unknown := sorted(set(parts) - set(PARTS)):
        raise UserError(f"bench: expected parts of {', '.join(PARTS)}, found {', '.join(unknown)}")
    quiet_libraries()
    hold_freed_memory()  # as a cell's process does
    torch.set_num_threads(settings.threads)
    environment = describe_environment(resolve_precision("auto", settings.device), settings.threads)
    missed = 0
    for name in parts or PARTS:
        print(f"{name}: {environment['device']}, {settings.threads} threads, medians of {repeats}")
        section = measure_of(name)(Bench(settings, repeats))
        for line in (*section.bars, *(() if section.rows else section.notes)):
            print(f"  {line}")
        missed += sum(not bar.met for bar in section.bars)
        folder = settings.results_dir / WHERE
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / f"{name}.json", {
            "environment": environment, "repeats": repeats, "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            **dataclasses.asdict(section),
        })  # fmt: skip
    print(f"Results: {settings.results_dir / WHERE}")
    return int(missed > 0)


def measure_of(part: str) -> Callable[[Bench], Section]:
    """What measures a part; imported when it is asked for, as it imports PyTorch."""
    measure: Callable[[Bench], Section] = importlib.import_module(f"benchmarks.performance.{part}").measure
    return measure


def _write(path: Path, value: JSON) -> None:
    """Atomically: a part that is measured again replaces its last result whole."""
    whole = path.with_suffix(".tmp")
    whole.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    whole.replace(path)


def page(folder: Path) -> str:
    """The Markdown of a folder of results, those of former parts last; UserError where there are none."""
    found = {path.stem: read_json(path, "a part of what was measured") for path in folder.glob("*.json")}
    if not found:
        raise UserError(f"{folder}: expected results of `python -m benchmarks bench`, found none")
    lines: list[str] = []
    for name in sorted(found, key=lambda part: (PARTS.index(part) if part in PARTS else len(PARTS), part)):
        own = found[name]
        section = Section(own["id"], own["title"], own["rows"], [Bar(**bar) for bar in own["bars"]], own["notes"])
        lines += ["", f"### {section.title}", "", _machine(own), ""]
        if section.rows:
            lines += _tables(section.rows)
        lines += [f"- {'**met**' if bar.met else '**not met**'} · {bar}" for bar in section.bars]
        lines += [f"- {note}" for note in section.notes]
    return "\n".join(lines).strip() + "\n"


def _tables(rows: Sequence[dict[str, JSON]]) -> Iterator[str]:
    """Lines of Markdown tables that fit a page: cut between columns, each with the first column of all."""
    from reports.pages.files import PAGE_WIDTH
    from reports.pages.render import cut

    first, *keys = list(rows[0])
    texts = {key: " ".join([_heading(key), *(_shown(key, row.get(key)) for row in rows)]) for key in (first, *keys)}
    widths = {key: _PADDING + max(map(len, found.split())) for key, found in texts.items()}  # lines break between words
    for places in cut([widths[key] for key in keys], PAGE_WIDTH - widths[first], len(keys)):
        part = [first, *(keys[place] for place in places)]
        yield f"| {' | '.join(_heading(key) for key in part)} |"
        yield "|" + " --- |" * len(part)
        yield from (f"| {' | '.join(_shown(key, row.get(key)) for key in part)} |" for row in rows)
        yield ""


def _machine(result: JSON) -> str:
    own = result["environment"]
    return (
        f"*{own['device']}, {own['threads']} threads, PyTorch {own['versions']['torch']}, medians of "
        f"{result['repeats']}, {result['finished'][:10]}; `make bench ARGS={result['id']}`*"
    )


def _heading(key: str) -> str:
    return f"{key.removesuffix('_bytes')}, MB".replace("_", " ") if key.endswith("_bytes") else key.replace("_", " ")


def _shown(key: str, value: JSON) -> str:
    if value is None:
        return "–"
    if key.endswith("_bytes"):
        return f"{value / 1e6:.0f}"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    return str(value)
