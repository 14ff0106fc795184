"""A page on the terminal, by rich."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reports.pages.page import Grid, Group, Page

_MARGIN = 3  # two spaces of padding and a line for each column


def _widths(grid: Grid) -> list[int]:
    lines = [line for group in grid.groups for line in group.lines]
    return [
        _MARGIN + max(len(text) for text in (*header, *(line.cells[place] for line in lines)))
        for place, header in enumerate(grid.headers)
    ]


def _cut(widths: list[int], room: int, most: int) -> list[list[int]]:
    parts: list[list[int]] = [[]]
    for place, needed in enumerate(widths):
        if parts[-1] and (len(parts[-1]) == most or sum(widths[p] for p in parts[-1]) + needed > room):
            parts.append([])
        parts[-1].append(place)
    return parts


def _parts(grid: Grid, width: int) -> list[list[int]]:
    fixed = max((len(group.name) for group in grid.groups), default=0) + 2 * _MARGIN
    fixed += max((len(line.label) for group in grid.groups for line in group.lines), default=0)
    widths = _widths(grid)
    fewest = len(_cut(widths, width - fixed, len(widths)))
    return _cut(widths, width - fixed, -(-len(widths) // fewest))


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


def print_page(page: Page, console: Console | None = None) -> None:
    """Print the tables and the notes under them."""
    console = console or Console()
    for table in terminal_tables(page, console.width):
        console.print(table)
    for note in page.notes:
        console.print(Text(f"• {note}"))
