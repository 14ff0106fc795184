"""A page as GitHub Markdown and on the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from reports.pages.page import Grid, Page

_SPECIAL = re.compile(r"([\\|<>*_`\[\]])")  # of Markdown
_NAME = 26  # characters of a method's name on one line of a page
_MARGIN = 3  # on the terminal: two spaces of padding and a line for each column


def escape(text: str) -> str:
    """Text that Markdown shows unchanged."""
    return _SPECIAL.sub(r"\\\1", text)


def table_line(cells: Iterable[str]) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def markdown_table(grid: Grid, places: Sequence[int]) -> str:
    """Some columns of a grid as a Markdown table, without the title."""
    headers = ["<br>".join(escape(text) for text in grid.headers[place] if text) for place in places]
    lines = [table_line([escape(grid.stub), " ", *headers]), table_line([":--", ":--", *["--:"] * len(headers)])]
    for group in grid.groups:
        for number, line in enumerate(group.lines):
            name = f"**{escape(group.name)}**" if number == 0 else " "
            cells = (line.text(place, escape, "**{}**".format) for place in places)
            lines.append(table_line([name, escape(line.label), *cells]))
    return "\n".join(lines)


def titled_table(grid: Grid, width: int | None = None) -> str:
    """A grid as Markdown under its title, split between columns if it is wider than `width` characters."""
    parts = [list(range(len(grid.headers)))] if width is None or grid.is_whole else _parts(grid, width, _NAME)
    return "\n\n".join([f"**{escape(grid.title)}**", *(markdown_table(grid, places) for places in parts)])


def markdown(page: Page) -> str:
    """Tables and notes under a heading."""
    parts = [f"# {escape(page.request.heading)}", escape(page.request.benchmark.title)]
    parts += filter(None, [" ".join(map(escape, page.conclusions)), *map(titled_table, page.grids)])
    parts.append("\n".join(f"- {escape(note)}" for note in page.notes))
    return "\n\n".join(parts) + "\n"


def cut(widths: Sequence[int], room: int, most: int) -> list[list[int]]:
    """Columns in parts that fit a width, with a limited number in each; a part is a list of column numbers."""
    parts: list[list[int]] = [[]]
    for place, needed in enumerate(widths):
        if parts[-1] and (len(parts[-1]) == most or sum(widths[p] for p in parts[-1]) + needed > room):
            parts.append([])
        parts[-1].append(place)
    return parts


def _parts(grid: Grid, width: int, longest: int | None = None) -> list[list[int]]:
    """Columns in parts of this width; longest: characters of a name before it wraps; None: never."""
    fixed = max((len(group.name[:longest]) for group in grid.groups), default=0) + 2 * _MARGIN
    room = width - fixed - max((len(line.label) for line in grid.lines), default=0)
    widths = [_MARGIN + needed for needed in grid.widths()]
    fewest = len(cut(widths, room, len(widths)))
    return cut(widths, room, -(-len(widths) // fewest))


def terminal_tables(page: Page, width: int) -> Iterator[Table]:
    """The tables of a page, split between columns if they are wider than the terminal."""

    def plain(text: str) -> str:
        return text.replace("[", r"\[")

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
                for line, name in zip(group.lines, [group.name, *[""] * len(group.lines)], strict=False):
                    style = "dim" if line.label.startswith("±") else ""
                    cells = (
                        Text.from_markup(line.text(place, plain, "[bold]{}[/bold]".format), style=style)
                        for place in places
                    )
                    table.add_row(Text(name), Text(line.label, style=style), *cells)
                if len(group.lines) > 1:
                    table.add_section()
            yield table


def print_page(page: Page, console: Console, tables: bool = True, notes: bool = True) -> None:
    """Print the tables, the notes under them, or both."""
    if tables and page.conclusions:
        console.print(Text(" ".join(page.conclusions)))
    for table in terminal_tables(page, console.width) if tables else ():
        console.print(table)
    for note in page.notes if notes else ():
        console.print(Text(f"• {note}"))
