"""How pages are made: addresses, tables of entries, and templates that escape every value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from benchmarks.measures import metric
from benchmarks.run_config import JSON
from reports.evidence.records import Request
from reports.front.state import AGAINST, FOR, MEASURED
from reports.pages.plots import colour_of
from reports.pages.text import NOTHING, human_bytes, number

SITE_NAME = "Federated BERT, reproduced"
INDEX, PROFILES, RECORDS = "index.html", "profiles.html", "records.html"
# A script must not contain the end of a script element, nor two line ends of old parsers.
_ESCAPED = {ord(one): f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}


# ---- addresses, from the site's folder -----------------------------------------------------------------------------


def table_page(request: Request) -> str:
    """A table's page at a scale."""
    return f"tables/{request.benchmark.id}-{request.scale.id}.html"


def sweep_page(request: Request) -> str:
    """The page of a table's sweeps at a scale; its files lie in the folder of that name."""
    return f"sweeps/{request.benchmark.id}-{request.scale.id}.html"


def paper_page(paper: str, part: str = "") -> str:
    """A paper's page; part: "claims" or "audit"."""
    return f"papers/{paper}-{part}.html" if part else f"papers/{paper}.html"


def cell_page(cell_id: str) -> str:
    """The page of a cell's record."""
    return f"cells/{cell_id}.html"


def anchor(identity: str) -> str:
    """The anchor of a finding or claim: letters, digits and dashes."""
    return "-".join(re.findall(r"[^\W_]+", identity))


# ---- tables --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A cell of a table.

    Args:
        sort: The sort key of a number; "" for a text.
        note: Small text below, such as the published value.
        kind: "best", "open" (not run, diverged), "wrap" (a long text), "row" (a method's name with its colour), "code".
    """

    text: str
    sort: str = ""
    link: str = ""
    note: str = ""
    title: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table. headers: each with a second line or ""; filters: the headers with choices that hide lines."""

    headers: tuple[tuple[str, str], ...]
    lines: tuple[tuple[Entry, ...], ...]
    filters: tuple[str, ...] = ()

    @property
    def is_number(self) -> list[bool]:
        """Whether each column has numbers."""
        return [any(line[place].sort for line in self.lines) for place in range(len(self.headers))]

    @property
    def options(self) -> dict[str, list[tuple[str, int]]]:
        """Filter -> (text, number of lines) of each choice."""
        texts = {name: [line[self.place(name)].text for line in self.lines] for name in self.filters}
        return {name: [(text, column.count(text)) for text in sorted(set(column))] for name, column in texts.items()}

    def place(self, name: str) -> int:
        """The place of a header."""
        return [header for header, _ in self.headers].index(name)


def sheet(
    headers: Iterable[str | tuple[str, str]], lines: Iterable[Sequence[Entry | str]], filters: Sequence[str] = ()
) -> Sheet:
    """A table of entries or plain texts."""
    entries = (tuple(one if isinstance(one, Entry) else Entry(one) for one in line) for line in lines)
    titles = ((header, "") if isinstance(header, str) else header for header in headers)
    return Sheet(tuple(titles), tuple(entries), tuple(filters))


def count(value: int) -> Entry:
    """A whole number with thin spaces between thousands."""
    return Entry(f"{value:,}".replace(",", "\u202f"), str(value))


def size(value: float) -> Entry:
    """Bytes in readable units."""
    return Entry(human_bytes(value), repr(value))


def compact(value: float, unit: str) -> str:
    """A score in about three digits: 75.3 for percent, 0.812 or 123.4 for plain numbers."""
    return number(value, places=1 if unit == "%" or abs(value) >= 10 else 3)


def scored(score: str, value: float | None, label: bool = False) -> Entry:
    """A score as recorded, in its unit. label: with its name."""
    if value is None:
        return Entry(NOTHING)
    by = metric(score)
    text = compact(by.shown(value), by.unit)
    return Entry(f"{by.label} {text}" if label else text, repr(value))


# ---- templates and scripts -----------------------------------------------------------------------------------------


def script_json(value: JSON) -> str:
    """JSON that is safe inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(_ESCAPED)


def script(name: str, value: JSON) -> str:
    """A script that gives the page a value under a name."""
    return f"site.put({script_json(name)}, {script_json(value)});\n"


def _kind(word: str) -> str:
    """The colour of a verdict."""
    kinds = {"for": FOR, "against": AGAINST, "plain": (MEASURED,)}
    return next((kind for kind, verdicts in kinds.items() if word.startswith(verdicts)), "open")


@cache
def environment() -> Environment:
    """Jinja2 with every value escaped; unknown names are errors."""
    loader = PackageLoader("reports.site", "templates")
    options = {"autoescape": True, "undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    templates = Environment(loader=loader, **options)  # type: ignore[arg-type]
    templates.filters |= {"kind": _kind, "data": script_json}
    templates.globals |= {each.__name__: each for each in (anchor, colour_of, paper_page, table_page, sweep_page)}
    templates.globals["site_name"] = SITE_NAME
    return templates


def rendered(template: str, path: str, **values: object) -> str:
    """A page by its template. path: where it will lie; its links follow from it."""
    root = "../" * path.count("/")
    return environment().get_template(f"{template}.html").render(root=root, **{"here": "", **values})
