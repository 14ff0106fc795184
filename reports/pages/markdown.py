"""A page as GitHub Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reports.pages.page import Grid, Page

_SPECIAL = re.compile(r"([\\|<>*_`\[\]])")


def escape(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def table_line(cells: Iterable[str]) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def markdown_table(grid: Grid) -> str:
    """A grid as a Markdown table, without its title."""
    headers = ["<br>".join(escape(text) for text in header if text) for header in grid.headers]
    lines = [table_line([escape(grid.stub), " ", *headers]), table_line([":--", ":--", *["--:"] * len(headers)])]
    for group in grid.groups:
        for number, line in enumerate(group.lines):
            name = f"**{escape(group.name)}**" if number == 0 else " "
            cells = [f"**{escape(text)}**" if line.is_main else escape(text) for text in line.cells]
            lines.append(table_line([name, escape(line.label), *cells]))
    return "\n".join(lines)


def titled_table(grid: Grid) -> str:
    """A grid as a Markdown table under its title."""
    return f"**{escape(grid.title)}**\n\n{markdown_table(grid)}"


def markdown(page: Page, level: int = 1) -> str:
    """Tables and notes under a heading of that level."""
    parts = [f"{'#' * level} {escape(page.request.heading)}", escape(page.request.benchmark.title)]
    parts += map(titled_table, page.grids)
    parts.append("\n".join(f"- {escape(note)}" for note in page.notes))
    return "\n\n".join(parts) + "\n"
