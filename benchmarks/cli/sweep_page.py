"""What the committed sweeps of a paper found, as a part of its page: best trials, pictures, the command again."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.cli.sweep_files import state
from benchmarks.errors import UserError
from benchmarks.measures import metric
from benchmarks.record import write_bytes
from benchmarks.registry import benchmark, folder_of
from benchmarks.spec import Benchmark, Scale
from benchmarks.tuning import read_sweep

if TYPE_CHECKING:
    from reports.pages.page import Group

STUDY = "study.json"  # the sweep's file, beside tables and pictures of it
SHOWN = 5  # whole trials of a study
_ABOUT = {"heatmap": "Validation score over critical layer and learning rate", "front": "Score against uplink bytes"}
Entry = Mapping[str, Any]


def sweeps_markdown(
    ids: Iterable[str], scale: str | None, pictures: Path | None, beside: Path, folder: Path | None = None
) -> list[str]:
    """A section for each of these benchmarks that has a committed sweep; none of the others.

    scale: that alone. pictures: where heatmaps and fronts are drawn, if anywhere. beside: the folder of the page that
    links them. folder: of sweeps, in place of the paper's own. UserError where a study is damaged.
    """
    found = []
    for table in map(benchmark, ids):
        own = folder or folder_of(table.paper.id) / "sweeps"
        for known in table.scales:
            path = own / table.id / known.id / STUDY
            entries = [entry for entry in read_sweep(path) if entry.get("metric") and entry.get("trials")]
            if not entries or scale not in (None, known.id):
                continue
            try:
                links = _pictures(entries, table, known, pictures, beside) if pictures else {}
                found.append(_section(entries, table, known, links))
            except (KeyError, TypeError, ValueError) as error:
                raise UserError(
                    f"{path}: expected whole studies, found a damaged file ({type(error).__name__}: {error}). "
                    "Restore it, or move it away."
                ) from None
    return found


def _pictures(entries: Sequence[Entry], table: Benchmark, scale: Scale, folder: Path, beside: Path) -> dict[str, str]:
    """Draw the heatmap and the front, where there is one, into a folder; name -> link."""
    from reports.pages.plots import render
    from reports.sweeps import figures

    links = {}
    for name, figure in figures(entries, table, scale).items():
        if name in _ABOUT:
            path = folder / f"{table.id}-{scale.id}-sweep-{name}.png"
            write_bytes(path, *render(figure, "png"))
            links[name] = Path(os.path.relpath(path, beside)).as_posix()
    return links


def _section(entries: Sequence[Entry], table: Benchmark, scale: Scale, links: Mapping[str, str]) -> str:
    from reports.pages.render import escape
    from reports.sweeps import heading_of, seeds_of

    parts = [f"### {escape(heading_of(entries, table, scale))}"]
    about = "Validation data alone: no test example was seen. Bold: the best trial, and what equals it."
    parts += [about, *(part for entry in entries for part in _study(entry, table, scale))]
    for name, link in links.items():
        label = f"{_ABOUT[name]}: validation data, scale {scale.id}, {seeds_of(entries)}"
        parts.append(f"![{escape(label)}]({link})")
    return "\n\n".join(parts)


def _study(entry: Entry, table: Benchmark, scale: Scale) -> Iterator[str]:
    """What a study tried, the best of it, and how to run it again."""
    from reports.pages.page import Grid
    from reports.pages.render import escape, titled_table
    from reports.sweeps import seeds_of

    by, trials = metric(entry["metric"]), entry["trials"]
    names = {column.task: column.name for column in table.columns} | {row.id: row.name for row in table.rows}
    given_up = sum("given_up_after" in trial for trial in trials)
    title = (
        f"{names.get(entry['task'], entry['task'])} · {names.get(entry['method'], entry['method'])}, "
        f"{by.label} {entry['score'].partition(' ')[2]}, {seeds_of([entry])}: {len(trials)} trials"
        f"{f', {given_up} of them given up early' if given_up else ''}"
    )
    headers = (("tried",), (by.label + (f" ({by.unit})" if by.unit else ""),), ("uplink", "all rounds"))
    yield titled_table(Grid(title, headers, tuple(_best(entry, table, scale)), stub="Trial"))
    if entry["scale"] == table.label(scale, [column for column in table.columns if column.task == entry["task"]]):
        yield f"```sh\n{command(entry, table, scale)}\n```"
    else:
        yield f"With other settings: {escape(entry['scale'])}."


def _best(entry: Entry, table: Benchmark, scale: Scale) -> Iterator[Group]:
    """The whole trials from the best on: all ties and the front, and others as far as there is room."""
    from reports.pages.page import Group, Line
    from reports.pages.text import human_bytes, number

    by, kept = metric(entry["metric"]), {*entry["ties"], *(entry["front"] or ())}
    whole = [trial for trial in entry["trials"] if "given_up_after" not in trial and trial["mean"] is not None]
    whole.sort(key=lambda trial: (-by.sign * trial["mean"], trial["number"]))
    room = {trial["number"] for trial in whole[:SHOWN]}
    for trial in (trial for trial in whole if trial["number"] in kept | room):
        tried = ", ".join(table.shown(name, value, scale) for name, value in trial["values"].items())
        sd = "" if trial["sd"] is None else f" ± {number(by.shown(trial['sd']))}"
        uplink = "" if trial["uplink_bytes"] is None else human_bytes(trial["uplink_bytes"])
        cells = (tried, f"{number(by.shown(trial['mean']))}{sd}", uplink)
        line = Line(state(entry, trial), cells, is_main=trial["number"] in entry["ties"])
        yield Group(str(trial["number"]), (line,))


def command(entry: Entry, table: Benchmark, scale: Scale) -> str:
    """The command that runs a study again, by what the study says of itself."""
    spaces = [
        ("--range", f"{name}={values['low']}:{values['high']}{':log' if values['log'] else ''}")
        if isinstance(values, Mapping)
        else ("--grid", f"{name}={','.join(map(str, values))}")
        for name, values in entry["grid"].items()
    ]
    is_drawn = any(flag == "--range" for flag, _ in spaces)
    whole = math.prod(len(values) for values in entry["grid"].values() if not isinstance(values, Mapping))
    rungs = sorted({trial["given_up_after"] for trial in entry["trials"] if "given_up_after" in trial})
    words = [word for space in spaces for word in space]
    words += ["--trials", str(entry["budget"])] if is_drawn or entry["budget"] < whole else []
    words += ["--rungs", ",".join(map(str, rungs))] if rungs else []
    words += ["--pareto"] if entry["front"] is not None else []
    named = f"SCALE={scale.id} TASKS={entry['task']} METHODS={entry['method']} DATA_DIR=/data"
    return f"make sweep-{table.id} {named} \\\n  ARGS={shlex.quote(shlex.join(words))}"
