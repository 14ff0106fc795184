"""What is read of records in passing, without the checks of who judges by them: to count, to estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from fedsim.files import read_text

T = TypeVar("T")


def glimpses(folders: Iterable[Path], read: Callable[[str], T]) -> Iterator[T]:
    """What `read` finds in the text of each record in folders; files that are no record are left to who reads them.

    A record that lies in two of the folders counts once.
    """
    seen = set()
    for path in (path for folder in dict.fromkeys(folders) for path in folder.glob("*.json")):
        if path.name in seen:
            continue
        try:
            found = read(read_text(path, "a record"))
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue
        seen.add(path.name)
        yield found
