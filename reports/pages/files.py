"""Pages as files: a report's own, and the README's part that says what is reproduced so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from benchmarks.record import write_bytes, write_text
from fedsim.files import FileError, read_text
from reports import ReportError
from reports.pages.latex import latex
from reports.pages.page import Page
from reports.pages.plots import render
from reports.pages.render import escape, markdown, titled_table

BEGIN, END = "<!-- reproduced:begin -->", "<!-- reproduced:end -->"


def write_report(page: Page, folder: Path) -> list[Path]:
    """Write table.md, table.tex, table.csv, and plot.png and plot.svg; each appears whole or not at all."""
    contents = {"table.md": markdown(page).encode(), "table.tex": latex(page).encode(), "table.csv": page.csv.encode()}
    if page.figure is not None:
        contents |= {f"plot.{kind}": render(page.figure, kind) for kind in ("png", "svg")}
    for name, content in contents.items():
        write_bytes(folder / name, content)
    return [folder / name for name in contents]


def _state(page: Page, picture: str | None) -> str:
    notes = "\n".join(f"- {escape(note)}" for note in page.notes)
    parts = [
        f"### {escape(page.request.heading)}",
        f"{escape(page.request.benchmark.title)}: {page.run} of {page.cells} cells run.",
        *([f"![{escape(page.request.heading)}]({picture})"] if picture else []),
        *map(titled_table, page.grids),
        f"<details><summary>Notes and deviations</summary>\n\n{notes}\n\n</details>",
    ]
    return "\n\n".join(parts)


def render_state(pages: Iterable[Page], pictures: Mapping[str, str] = MappingProxyType({}), claims: str = "") -> str:
    """Markdown of what is reproduced so far, for the part between the markers.

    pictures: benchmark id -> link to its picture. claims: Markdown of the judged claims, which comes last.
    """
    parts = [_state(page, pictures.get(page.request.benchmark.id)) for page in pages]
    return "\n\n".join([*parts, *([claims.strip()] if claims else [])]) or "Nothing has been run yet."


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
