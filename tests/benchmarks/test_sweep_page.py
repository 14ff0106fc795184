"""A paper's page shows its committed sweeps: best trials, ties, pictures, and the command that repeats them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cli.arguments import build_parser
from benchmarks.cli.sweep_page import STUDY, command, sweeps_markdown
from benchmarks.errors import UserError
from benchmarks.registry import benchmark, folder_of
from benchmarks.tuning import read_sweep

TABLE = "fedsplitbert-table3"
LABEL = benchmark(TABLE).scale("lite").label
LAYER, RATE = "options.critical_layer", "training.learning_rate"


def trial(number: int, layer: int, rate: float, mean: float | None, **more: Any) -> dict[str, Any]:
    known = {"number": number, "values": {LAYER: layer, RATE: rate}, "mean": mean, "sd": None, "scores": [mean]}
    return known | {"uplink_bytes": 1e6 * layer} | more


def study(**more: Any) -> dict[str, Any]:
    trials = [trial(0, 6, 1e-4, 0.75), trial(1, 12, 1e-4, 0.75), trial(2, 0, 1e-4, 0.5, given_up_after=1)]
    known: dict[str, Any] = {"task": "mrpc", "method": "fedsplitbert", "scale": LABEL, "seeds": [1000]}
    known |= {"score": "f1 on validation data after the best round", "metric": "f1", "study": "a/b"}
    known |= {"grid": {LAYER: [0, 6, 12], RATE: [1e-4]}, "budget": 3, "trials": trials, "best": trials[0]}
    return known | {"ties": [0, 1], "front": None, "importances": {}} | more


def shown(folder: Path, *studies: dict[str, Any], pictures: bool = False) -> str:
    place = folder / TABLE / "lite"
    place.mkdir(parents=True)
    (place / STUDY).write_text(json.dumps({"tunings": list(studies)}), encoding="utf-8")
    (text,) = sweeps_markdown([TABLE], "lite", folder / "drawn" if pictures else None, folder, folder)
    return text


def asked(text: str) -> Any:
    """What the command line makes of a `make` command's sweep and ARGS."""
    words = shlex.split(text.replace("\\\n", ""))
    given = dict(word.split("=", 1) for word in words[2:])
    flags = ["--tasks", given["TASKS"], "--methods", given["METHODS"], *shlex.split(given["ARGS"])]
    return build_parser().parse_args(["sweep", words[1].removeprefix("sweep-"), "--scale", given["SCALE"], *flags])


def test_ties_are_shown_as_ties_and_what_was_given_up_is_counted(tmp_path: Path) -> None:
    text = shown(tmp_path, study())
    assert "**MRPC · FedSplitBERT, F1 on validation data after the best round, seed 1000: 3 trials, 1 of them" in text
    assert text.count("| best tie | **c = ") == 2
    assert "no test example was seen" in text
    assert "| 50.00 |" not in text  # after fewer rounds than the others
    assert "**6.00 MB**" in text


def test_the_command_asks_for_the_same_study() -> None:
    table, scale = benchmark(TABLE), benchmark(TABLE).scale("lite")
    found = asked(command(study(), table, scale))
    assert found.id == TABLE
    assert found.grid == [f"{LAYER}=0,6,12", f"{RATE}=0.0001"]
    assert (list(found.rungs), found.pareto, found.trials) == ([1], False, None)
    drawn = {LAYER: [0, 6], RATE: {"low": 1e-5, "high": 1e-3, "log": True}}
    found = asked(command(study(grid=drawn, budget=8, front=[0], trials=[trial(0, 6, 1e-4, 0.7)]), table, scale))
    assert found.range == [f"{RATE}=1e-05:0.001:log"]
    assert (found.trials, found.pareto, found.rungs) == (8, True, None)


def test_pictures_are_drawn_and_labelled(tmp_path: Path) -> None:
    text = shown(tmp_path, study(front=[0]), pictures=True)
    for name in ("heatmap", "front"):
        link = f"drawn/{TABLE}-lite-sweep-{name}.png"
        assert f"validation data, scale lite, seed 1000]({link})" in text
        assert (tmp_path / link).read_bytes().startswith(b"\x89PNG")


def test_without_a_sweep_nothing_is_shown(tmp_path: Path) -> None:
    assert sweeps_markdown([TABLE], None, None, tmp_path, tmp_path) == []
    assert "make " not in shown(tmp_path, study(scale="other settings"))  # no command can be said to repeat it


def test_a_damaged_study_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"{STUDY}: expected whole studies, found a damaged file"):
        shown(tmp_path, {name: value for name, value in study().items() if name != "ties"})


def test_the_committed_sweep_has_a_section() -> None:
    folder = folder_of("fedsplitbert") / "sweeps" / TABLE / "lite"
    (text,) = sweeps_markdown([TABLE, "fedbert-table6"], "lite", None, folder)
    entries = read_sweep(folder / STUDY)
    assert text.count("make sweep-") == len(entries) >= 2
    for entry in entries:
        assert asked(command(entry, benchmark(TABLE), benchmark(TABLE).scale("lite"))).tasks
