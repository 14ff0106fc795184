"""What a sweep leaves next to its file: a table of trials, pictures, and a section that its paper's page shows."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path
from typing import Any

from benchmarks.cli.arguments import build_parser
from benchmarks.cli.report import sweep_sections
from benchmarks.cli.sweep import command, write_sweeps
from benchmarks.registry import benchmark, folder_of
from benchmarks.sweeps.tuning import read_sweep

TABLE = benchmark("fedsplitbert-table3")
LITE = TABLE.scale("lite")
LAYER, RATE = "options.critical_layer", "training.learning_rate"


def trial(number: int, layer: int, rate: float, mean: float | None, **more: Any) -> dict[str, Any]:
    known = {"number": number, "values": {LAYER: layer, RATE: rate}, "mean": mean, "sd": None, "scores": [mean]}
    return known | {"uplink_bytes": 1e6 * layer} | more


def study(**more: Any) -> dict[str, Any]:
    trials = [trial(0, 6, 1e-4, 0.75), trial(1, 12, 1e-4, 0.75), trial(2, 0, 1e-4, 0.5, given_up_after=1)]
    known: dict[str, Any] = {"task": "mrpc", "method": "fedsplitbert", "scale": LITE.label, "seeds": [1000]}
    known |= {"score": "f1 on validation data after the best round", "metric": "f1", "study": "a/b"}
    known |= {"grid": {LAYER: [0, 6, 12], RATE: [1e-4]}, "budget": 3, "trials": trials, "best": trials[0]}
    return known | {"ties": [0, 1], "front": None, "importances": {}} | more


def asked(text: str) -> Any:
    """What the command line makes of a `make` command's sweep and ARGS."""
    words = shlex.split(text.replace("\\\n", ""))
    given = dict(word.split("=", 1) for word in words[2:])
    flags = ["--tasks", given["TASKS"], "--methods", given["METHODS"], *shlex.split(given["ARGS"])]
    return build_parser().parse_args(["sweep", words[1].removeprefix("sweep-"), "--scale", given["SCALE"], *flags])


def test_files_hold_every_trial_the_pictures_and_a_section(tmp_path: Path) -> None:
    paths = write_sweeps([study(front=[0], importances={LAYER: 1.0, RATE: 0.0})], TABLE, LITE, tmp_path)
    assert {path.name for path in paths} == {path.name for path in tmp_path.iterdir()}
    for name in ("history", "heatmap", "front"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader((tmp_path / "trials.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["state"] for row in rows] == ["best, tie of 2, front", "tie of 2", "pruned after round 1"]
    assert [row[LAYER] for row in rows] == ["6", "12", "0"]
    text = (tmp_path / "section.md").read_text(encoding="utf-8")
    assert "after the best round, seed 1000: 3 trials, 1 of them pruned" in text
    assert text.count("| **c = ") == 2
    assert "50.00" not in text  # after fewer rounds than the others
    assert "(sweeps/fedsplitbert-table3/lite/heatmap.png)" in text


def test_the_command_asks_for_the_same_study() -> None:
    words = asked(command(study(), TABLE, LITE))
    assert (words.id, words.grid) == (TABLE.id, [f"{LAYER}=0,6,12", f"{RATE}=0.0001"])
    assert (list(words.rungs), words.pareto, words.trials) == ([1], False, 3)
    drawn = {LAYER: [0, 6], RATE: {"low": 1e-5, "high": 1e-3, "log": True}}
    words = asked(command(study(grid=drawn, budget=8, front=[0], trials=[trial(0, 6, 1e-4, 0.7)]), TABLE, LITE))
    assert words.range == [f"{RATE}=1e-05:0.001:log"]
    assert (words.trials, words.pareto, words.rungs) == (8, True, None)


def test_the_committed_sweep_has_a_section() -> None:
    (text,) = sweep_sections([TABLE.id, "fedbert-table6"], "lite")
    entries = read_sweep(folder_of("fedsplitbert") / "sweeps" / TABLE.id / "lite" / "study.json")
    assert text.count("make sweep-") == len(entries) >= 2
    assert sweep_sections([TABLE.id], "demo") == []
