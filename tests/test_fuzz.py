"""Every reader of outside files, and the command line, under a few changed inputs; tools/fuzz.py tries many more."""

from __future__ import annotations

import os
import random
import runpy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FUZZ = runpy.run_path(str(Path(__file__).resolve().parent.parent / "tools" / "fuzz.py"))
TARGETS: dict[str, Any] = FUZZ["targets"]()
# The same examples every time, so that a change is judged by itself; others, and more, where they are asked for.
EXAMPLES = os.environ.get("FUZZ_EXAMPLES")
few = settings(
    max_examples=int(EXAMPLES or 20),
    derandomize=EXAMPLES is None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

# Inputs that once ended a reader in another way than by a value or a message.
FOUND = {
    "a sweep whose best has no mean": ("sweep", b'{"tunings": [{"task": "a", "method": "b", "best": {"x": 1}}]}'),
    "a sweep of no scale": (
        "sweep",
        b'{"tunings": [{"task": "a", "method": "b", "score": "f1 (%)", "best": {"values": {}, "mean": 0.5}}]}',
    ),
    "a sweep of no score": (
        "sweep",
        b'{"tunings": [{"task": "a", "method": "b", "scale": "lite", "best": {"values": {}, "mean": 0.5}}]}',
    ),
    "half of a surrogate pair": (
        "jsonl",
        b'{"title": "\\ud800", "abstract": "A", "mag_field_of_study": ["Biology"]}\n',
    ),
    "a setting that is nested too deep": ("words", b"[" * 2000),
    "a setting that is nested deep": ("words", b"[" * 900 + b"]" * 900),
    "nested too deep": ("jsonl", b"[" * 200_000),
    "a header beyond the file": ("arrays", b"\xff" * 16),
    "a sweep in a list": ("sweep", b'{"tunings": [[]]}'),
    "a manifest of lists": ("checkpoint", b"[]"),
    "a size in words": ("config", b'{"model_type": "bert", "hidden_size": "many"}'),
}


@pytest.mark.parametrize("case", FOUND)
def test_what_was_found(case: str) -> None:
    name, content = FOUND[case]
    assert FUZZ["attempt"](TARGETS[name], content) is None


@pytest.mark.parametrize("name", TARGETS)
def test_a_reads_well(name: str, tmp_path: Path) -> None:
    """Or else nothing behind the first check would be tried."""
    if name not in ("checkpoint", "predictions", "predictions.xz", "journal"):  # of which more would have to be there
        TARGETS[name].read(TARGETS[name].seeds[0], tmp_path)


@pytest.mark.parametrize("name", TARGETS)
@given(content=st.binary(max_size=200))
@few
def test_any_bytes(name: str, content: bytes) -> None:
    assert FUZZ["attempt"](TARGETS[name], content) is None


@pytest.mark.parametrize("name", TARGETS)
@given(seed=st.integers(0, 2**32))
@few
def test_changed_inputs(name: str, seed: int) -> None:
    target, draw = TARGETS[name], random.Random(seed)
    content = FUZZ["changed"](draw.choice(target.seeds), list(target.seeds), draw)
    assert FUZZ["attempt"](target, content) is None


def test_a_campaign_finds_a_crash_once_and_follows_new_lines() -> None:
    def read(content: bytes, _: Path) -> None:
        if b"\xff" in content:
            raise ZeroDivisionError

    target = FUZZ["Target"](read, (b"a\xff", b"b"))
    ((content, error),) = list(FUZZ["campaign"](target, 0.2))
    assert b"\xff" in content
    assert isinstance(error, ZeroDivisionError)
