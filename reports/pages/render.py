"""A page as GitHub Markdown and on the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reports.pages.page import Grid, Group, Page

_SPECIAL = re.compile(r"([\\|<>*_`\[\]])")  # of Markdown
_NAME = 26  # characters of a method's name on one line of a page
_MARGIN = 3  # on the terminal: two spaces of padding and a line for each column


def escape(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def table_line(cells: Iterable[str]) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def markdown_table(grid: Grid, places: Sequence[int] | None = None) -> str:
    """A grid as a Markdown table, without its title; places: of the columns that it shows, None for all."""
    places = range(len(grid.headers)) if places is None else places
    headers = ["<br>".join(escape(text) for text in grid.headers[place] if text) for place in places]
    lines = [table_line([escape(grid.stub), " ", *headers]), table_line([":--", ":--", *["--:"] * len(headers)])]
    for group in grid.groups:
        for number, line in enumerate(group.lines):
            name = f"**{escape(group.name)}**" if number == 0 else " "
            texts = (escape(line.cells[place]) for place in places)
            cells = [f"**{text}**" if line.is_main else text for text in texts]
            lines.append(table_line([name, escape(line.label), *cells]))
    return "\n".join(lines)


def titled_table(grid: Grid, width: int | None = None) -> str:
    """A grid as a Markdown table under its title, cut between columns where it is wider than so many characters."""
    parts = [None] if width is None else _parts(grid, width, _NAME)
    return "\n\n".join([f"**{escape(grid.title)}**", *(markdown_table(grid, places) for places in parts)])


def markdown(page: Page, level: int = 1) -> str:
    """Tables and notes under a heading of that level."""
    parts = [f"{'#' * level} {escape(page.request.heading)}", escape(page.request.benchmark.title)]
    parts += map(titled_table, page.grids)
    parts.append("\n".join(f"- {escape(note)}" for note in page.notes))
    return "\n\n".join(parts) + "\n"


def _widths(grid: Grid) -> list[int]:
    lines = [line for group in grid.groups for line in group.lines]
    return [
        _MARGIN + max(len(text) for text in (*header, *(line.cells[place] for line in lines)))
        for place, header in enumerate(grid.headers)
    ]


def cut(widths: Sequence[int], room: int, most: int) -> list[list[int]]:
    """Places of columns in parts that fit a room, no more than so many in each."""
    parts: list[list[int]] = [[]]
    for place, needed in enumerate(widths):
        if parts[-1] and (len(parts[-1]) == most or sum(widths[p] for p in parts[-1]) + needed > room):
            parts.append([])
        parts[-1].append(place)
    return parts


def _parts(grid: Grid, width: int, longest: int | None = None) -> list[list[int]]:
    """Places of columns in parts of that width; longest: characters of a name before it wraps, None for never."""
    fixed = max((len(group.name[:longest]) for group in grid.groups), default=0) + 2 * _MARGIN
    fixed += max((len(line.label) for group in grid.groups for line in group.lines), default=0)
    widths = _widths(grid)
    fewest = len(cut(widths, width - fixed, len(widths)))
    return cut(widths, width - fixed, -(-len(widths) // fewest))


def _add(table: Table, group: Group, places: list[int]) -> None:
    for number, line in enumerate(group.lines):
        style = "bold" if line.is_main else "dim" if line.label.startswith("±") else ""
        name = group.name if number == 0 else ""
        cells = (Text(line.cells[place], style=style) for place in places)
        table.add_row(Text(name), Text(line.label, style=style), *cells)
    if len(group.lines) > 1:
        table.add_section()


def terminal_tables(page: Page, width: int) -> Iterator[Table]:
    """The tables of a page, cut between columns where the terminal is narrower than they are."""
    for grid in page.grids:
        for number, places in enumerate(_parts(grid, width)):
            title = Text(grid.title, style="bold") if number == 0 else None
            table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
            table.add_column(grid.stub, overflow="fold")
            table.add_column("", overflow="fold")
            for place in places:
                header = "\n".join(filter(None, grid.headers[place]))
                table.add_column(Text(header), justify="right", overflow="fold")
            for group in grid.groups:
                _add(table, group, places)
            yield table


def print_page(page: Page, console: Console, tables: bool = True, notes: bool = True) -> None:
    """Print the tables and the notes under them, or one of both."""
    for table in terminal_tables(page, console.width) if tables else ():
        console.print(table)
    for note in page.notes if notes else ():
        console.print(Text(f"• {note}"))
