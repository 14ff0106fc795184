"""Facts: one value for each key. How they are written, read and compared, independent of the project."""

import csv
import gzip
import io
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

TOLERANCE = 1e-9  # relative, of numbers in frames that are not exact
NOISE = 1e-12  # absolute: a difference of two equal floats may be 0 or 1e-17
SHOWN = 20  # differences in a message
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?inf|nan")

Key = tuple[str, ...]
Facts = dict[Key, str]


@dataclass(frozen=True)
class Frame:
    """One file of expected facts. keys: the columns that identify a line; exact: values are compared as text."""

    path: Path
    keys: Key
    exact: bool = True

    @property
    def name(self) -> str:
        return self.path.name.partition(".")[0]


def text_of(value: object) -> str:
    """A value as text: floats with 12 significant digits, whole numbers as integers; "" for no value."""
    if value is None or value != value or type(value).__name__ == "NAType":
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    if math.isfinite(number) and number == int(number) and abs(number) < 2**53:
        return str(int(number))
    return f"{number:.12g}"


def collect(lines: Iterable[tuple[Key, object]]) -> Facts:
    """Facts from keys and values; empty values are left out. ValueError if two lines have one key."""
    facts: Facts = {}
    for key, value in lines:
        text = text_of(value)
        if key in facts:
            raise ValueError(f"two facts have the key {show(key)}")
        if text:
            facts[key] = text
    return facts


def show(key: Key) -> str:
    return " ".join(part for part in key if part)


def write(frame: Frame, facts: Mapping[Key, str]) -> None:
    """Write a frame, sorted by key. The same facts give the same bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*frame.keys, "value"])
    writer.writerows([*key, facts[key]] for key in sorted(facts))
    content = text.getvalue().encode()
    is_compressed = frame.path.suffix == ".gz"
    frame.path.write_bytes(gzip.compress(content, compresslevel=9, mtime=0) if is_compressed else content)


def read(frame: Frame) -> Facts:
    opened = gzip.open if frame.path.suffix == ".gz" else open
    with opened(frame.path, "rt", encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    assert tuple(header) == (*frame.keys, "value")
    return {tuple(line[:-1]): line[-1] for line in lines}


def same(old: str, new: str, exact: bool) -> bool:
    if old == new:
        return True
    if exact or not (NUMBER.fullmatch(old) and NUMBER.fullmatch(new)):
        return False
    return math.isclose(float(old), float(new), rel_tol=TOLERANCE, abs_tol=NOISE)


def difference(frame: Frame, old: Mapping[Key, str], new: Mapping[Key, str]) -> str:
    """The differences: counts, then the first lines as "key: old -> new"; "" without differences."""
    lines, added, removed, changed = [], 0, 0, 0
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key), new.get(key)
        if before is not None and after is not None and same(before, after, frame.exact):
            continue
        added += before is None
        removed += after is None
        changed += before is not None and after is not None
        lines.append(f"  {show(key)}: {before or '(none)'} -> {after or '(none)'}")
    if not lines:
        return ""
    more = [f"  … and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    counts = f"{frame.path.name}: {changed} changed, {added} added, {removed} removed of {len(old)} facts"
    return "\n".join([counts, *lines[:SHOWN], *more])
