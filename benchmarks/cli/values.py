"""What the command line's words may be: each function takes a text and gives its value, or refuses it."""

from __future__ import annotations

import argparse
import math
import os
import re
from pathlib import Path

from benchmarks.running.run_options import MOST_SEEDS

MOST_PATH_BYTES = 3000  # systems refuse one of 4096; what is written below it needs some


def positive(text: str) -> int:
    """A whole number above 0."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, found {text!r}")
    return number


def hours(text: str) -> float:
    """A positive number of hours."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of hours above 0, such as 2 or 0.5, found {text!r}")
    return number


def seeds(text: str) -> range:
    """Seeds by their number, "3" for 0, 1 and 2, or from the first to the last, "5-10"."""
    match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", text, re.ASCII)
    numbers = [int(number) for number in match.groups() if number is not None] if match else [0]
    first, last = numbers if len(numbers) == 2 else (0, numbers[0] - 1)
    if not first <= last <= MOST_SEEDS or last - first >= MOST_SEEDS:
        expected = f"a number of seeds from 1 to {MOST_SEEDS:,}, or the first and the last, such as 5-10"
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
    return range(first, last + 1)


def seed(text: str) -> int:
    """A seed by its number."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= MOST_SEEDS:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0 to {MOST_SEEDS:,}, found {text!r}")
    return number


def rungs(text: str) -> list[int]:
    """Numbers of rounds between commas, in rising order; "none" for no such."""
    found = [] if text == "none" else [positive(part) for part in text.split(",")]
    if found != sorted(set(found)):
        raise argparse.ArgumentTypeError(f"expected rising numbers of rounds, such as 1,2, found {text!r}")
    return found


def names(text: str) -> list[str]:
    """Names between commas."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError(f"expected names between commas, found {text!r}; leave it out for all")
    return found


def filled(text: str) -> str:
    """A text that says something."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"expected something, found {text!r}; leave it out for what is usual")
    return text


def place(text: str) -> Path:
    """A path; an empty one would be the folder in which one happens to be."""
    if len(os.fsencode(filled(text))) > MOST_PATH_BYTES or "\0" in text:
        raise argparse.ArgumentTypeError(f"expected a path of at most {MOST_PATH_BYTES} bytes, found {text[:40]!r}…")
    return Path(text)
