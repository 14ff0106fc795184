"""The golden run: demo cells, one for each method, come to what they came to when the files beside this were made.

Exact on the kind of CPU (and with the libraries) that a file names, within tolerances elsewhere. To renew the files:

    python -m pytest tests/golden --renew-golden
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).parent
ADVICE = """\
{name}: its arithmetic is not what it was ({how}):
  {lines}
If nobody meant that, it is a defect. If the change is meant, raise ENGINE_VERSION in benchmarks/run_config.py where it
changes results, renew these files with `python -m pytest tests/golden --renew-golden`, and say so in the commit."""


def test_arithmetic_is_what_it_was(golden_name, golden_cells, made_here, outcome_of, differing, request):
    path = FOLDER / f"{golden_name}.json"
    found = outcome_of(golden_cells[golden_name])
    if request.config.getoption("--renew-golden"):
        path.write_text(json.dumps(made_here | found, indent=1) + "\n", encoding="utf-8")
        pytest.skip(f"renewed {path.name}")
    expected = json.loads(path.read_text(encoding="utf-8"))
    version, made_on = expected.pop("engine_version"), expected.pop("made_on")
    assert version == made_here["engine_version"], (
        f"{path.name} was made by ENGINE_VERSION {version}, this is {made_here['engine_version']}: "
        "renew it with `python -m pytest tests/golden --renew-golden`"
    )
    exact = made_on == made_here["made_on"]
    lines = differing(expected, found, exact)
    how = "every bit counts: this is the kind of CPU that the file names" if exact else "beyond the tolerance"
    assert not lines, ADVICE.format(name=golden_name, how=how, lines="\n  ".join(lines))


def test_every_file_is_of_a_cell(golden_cells):
    assert {path.stem for path in FOLDER.glob("*.json")} == set(golden_cells)
    assert all(path.stat().st_size < 8192 for path in FOLDER.glob("*.json"))


def test_every_method_is_among_them(golden_cells):
    from fedsim.algorithms import algorithm_names

    assert {cell.algorithm for cell in golden_cells.values()} >= set(algorithm_names())


def test_the_least_change_is_noticed(golden_cells, outcome_of, differing, monkeypatch):
    """An epsilon of AdamW that is 1e-9 larger."""
    cell = golden_cells["c-fedfreezebert-average"]
    before = outcome_of(cell)
    assert differing(before, outcome_of(cell), exact=True) == []
    adamw = torch.optim.AdamW
    monkeypatch.setattr(torch.optim, "AdamW", lambda *words, **options: adamw(*words, **(options | {"eps": 1.1e-8})))
    lines = differing(before, outcome_of(cell), exact=True)
    assert any("sha256" in line for line in lines)


def test_a_real_change_is_noticed_on_any_cpu(golden_cells, outcome_of, differing):
    """A learning rate that is 5 % higher."""
    cell = golden_cells["c-fedfreezebert-average"]
    training = replace(cell.training, learning_rate=1.05 * cell.training.learning_rate)
    lines = differing(outcome_of(cell), outcome_of(replace(cell, training=training)), exact=False)
    assert any("lengths" in line for line in lines)
