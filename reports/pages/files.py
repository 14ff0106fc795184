"""Pages as files: a report's own, and the README's part that says what is reproduced so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from benchmarks.results import write_bytes, write_text
from fedsim.files import FileError, read_text
from reports import ReportError
from reports.pages.latex import latex, latex_notes
from reports.pages.page import Page
from reports.pages.plots import KINDS, render
from reports.pages.render import escape, markdown, titled_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE_WIDTH = 92  # characters of a table, so that GitHub's 838 points hold it
BEGIN, END = "<!-- reproduced:begin -->", "<!-- reproduced:end -->"


def draw(figure: Callable[[], Figure], files: Mapping[Path, str]) -> None:
    """Write a figure as files, each of one of KINDS; each appears whole or not at all."""
    for path, content in zip(files, render(figure, *files.values()), strict=True):
        write_bytes(path, content)


def write_report(page: Page, folder: Path, draw: Callable[..., None] = draw) -> list[Path]:
    """Write table.md, table.tex, notes.tex, table.csv and the plot as PNG, SVG and PDF, each file atomically.

    draw: what writes the plots, at once or in other processes.
    """
    texts = {
        "table.md": markdown(page),
        "table.tex": latex(page),
        "notes.tex": latex_notes(page),
        "table.csv": page.csv,
    }
    for name, text in texts.items():
        write_bytes(folder / name, text.encode())
    plots = {folder / f"plot.{kind}": kind for kind in KINDS if page.figure is not None}
    if page.figure is not None:
        draw(page.figure, plots)
    return [*(folder / name for name in texts), *plots]


def _state(page: Page, picture: str | None) -> str:
    notes = "\n".join(f"- {escape(note)}" for note in page.notes)
    parts = [
        f"### {escape(page.request.heading)}",
        f"{escape(page.request.benchmark.title)}: {page.request.coverage}.",
        *([f"![{escape(page.request.heading)}]({picture})"] if picture else []),
        *(titled_table(grid, PAGE_WIDTH) for grid in page.grids),
        f"<details><summary>Notes and deviations</summary>\n\n{notes}\n\n</details>",
    ]
    return "\n\n".join(parts)


def render_state(
    pages: Iterable[Page],
    pictures: Mapping[str, str] = MappingProxyType({}),
    claims: Iterable[str] = (),
    rest: Iterable[str] = (),
) -> str:
    """Markdown of what is reproduced so far, for the part between the markers.

    It begins with its contents; then come the claims, what a reader asks for first. pictures: benchmark id -> link to
    its picture. claims, rest: Markdown of the judged claims, and of what comes after the tables, each "" left out.
    """
    shown = list(pages)
    tables = [_state(page, pictures.get(page.request.benchmark.id)) for page in shown]
    state = "\n\n".join(part.strip() for part in (*claims, *tables, *rest) if part)
    if not state:
        return "Nothing has been run yet."
    notes = {
        page.request.heading: f": {page.request.coverage}. {escape(page.request.benchmark.title)}" for page in shown
    }
    return f"{_contents(state, notes)}\n\n{state}"


def anchors(text: str) -> dict[str, str]:
    """GitHub's address of each heading of the third level within a page -> the heading, without Markdown's escapes."""
    found: dict[str, str] = {}
    for line in re.findall(r"^### (.+)$", text, re.M):
        heading = re.sub(r"\\(.)", r"\1", line)
        address = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        times = sum(re.fullmatch(re.escape(address) + r"(-\d+)?", known) is not None for known in found)
        found[f"{address}-{times}" if times else address] = heading
    return found


def _contents(state: str, notes: Mapping[str, str]) -> str:
    """A link to each heading, with what is said beside it, under the scale that a heading names after its dot."""
    links: dict[str, list[str]] = {}
    for address, heading in anchors(state).items():
        name, _, scale = heading.partition(" · ")
        title = escape(scale[:1].upper() + scale[1:] or "At every scale")
        links.setdefault(f"{title}:\n", []).append(f"- [{escape(name)}](#{address}){notes.get(heading, '')}")
    return "\n\n".join("\n".join([title, *listed]) for title, listed in links.items())


def update_readme(path: Path, text: str) -> bool:
    """Replace the part between the markers, and say whether the file changed; ReportError without markers."""
    try:
        old = read_text(path, "a Markdown file")
    except FileError as error:
        raise ReportError(f"{error}. Name a Markdown file with the markers.") from None
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    if (old.count(BEGIN), rest.count(END), old.count(END)) != (1, 1, 1):
        raise ReportError(
            f"{path}: expected the markers {BEGIN} and {END}, each once and in this order, found "
            f"{old.count(BEGIN)} and {old.count(END)}. Put them where the state belongs."
        )
    new = f"{before}{BEGIN}\n{text.strip()}\n{END}{after}"
    if new == old:
        return False
    write_text(path, new)
    return True
