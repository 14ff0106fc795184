"""The golden run: demo cells, one for each method, come to what they came to when the files beside this were made.

Exact on the kind of CPU (and with the libraries) that a file names, within tolerances elsewhere. To renew the files:

    python -m pytest tests/golden --renew-golden
"""

import json
from pathlib import Path

import pytest

from benchmarks.run_config import ENGINE_VERSION
from fedsim.algorithms import algorithm_names
from tests.golden.outcome import CELLS, cpu_kind, differences, outcome

FOLDER = Path(__file__).parent
ADVICE = """\
{name}: its arithmetic is not what it was ({how}):
  {lines}
If nobody meant that, it is a defect. If the change is meant, raise ENGINE_VERSION in benchmarks/run_config.py where it
changes results, renew these files with `python -m pytest tests/golden --renew-golden`, and say so in the commit."""


@pytest.mark.parametrize("name", CELLS)
def test_arithmetic_is_what_it_was(name, tmp_path, request):
    path = FOLDER / f"{name}.json"
    made_here = {"engine_version": ENGINE_VERSION, "made_on": cpu_kind()}
    result = outcome(CELLS[name], tmp_path)
    if request.config.getoption("--renew-golden"):
        path.write_text(json.dumps(made_here | result, indent=1) + "\n", encoding="utf-8")
        pytest.skip(f"renewed {path.name}")
    expected = json.loads(path.read_text(encoding="utf-8"))
    version, made_on = expected.pop("engine_version"), expected.pop("made_on")
    assert version == ENGINE_VERSION, (
        f"{path.name} was made by ENGINE_VERSION {version}, this is {ENGINE_VERSION}: "
        "renew it with `python -m pytest tests/golden --renew-golden`"
    )
    exact = made_on == made_here["made_on"]
    lines = differences(expected, result, exact)
    how = "every bit counts: this is the kind of CPU that the file names" if exact else "beyond the tolerance"
    assert not lines, ADVICE.format(name=name, how=how, lines="\n  ".join(lines))


def test_files_and_methods_are_complete():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CELLS)
    assert {cell.algorithm for cell in CELLS.values()} >= set(algorithm_names())
