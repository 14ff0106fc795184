"""A paper's page names what there is: its benchmarks, its commands, the hyper-parameters of its definitions."""

import re
import shlex
from pathlib import Path

import pytest

from benchmarks.cli.arguments import build_parser, selection
from benchmarks.registry import benchmark_ids
from reports.front.readme import BEGIN, END

PAGES = sorted((Path(__file__).resolve().parents[2] / "benchmarks").glob("*/README.md"))


def text(page: Path) -> str:
    """The page without what is rendered into it."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    return before + rest.partition(END)[2]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_its_commands_are_understood(page):
    commands = re.findall(r"(?:^|`)python -m benchmarks ([^`#\n]+)", text(page), re.M)
    assert commands
    for command in commands:
        words = build_parser().parse_args(shlex.split(command))
        if words.command in ("plan", "run", "sweep") and not getattr(words, "claims", False):  # of a whole paper
            assert selection(words).cells()
    for made in re.findall(r"`make (?:sweep-)?([a-z]+-[a-z0-9]+)", text(page)):
        assert made in benchmark_ids()
