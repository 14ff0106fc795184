"""A page as LaTeX: floats over both columns of a paper, which need booktabs and adjustbox."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation

from reports.pages.page import Grid, Group, Line, Page
from reports.pages.render import cut
from reports.pages.text import DAGGER, NOTHING, REPORTED, REPRODUCED

_TEXT_COMMANDS = "textbackslash textasciitilde textasciicircum textless textgreater textbar ldots"
_MATH_COMMANDS = "cdot pm times dagger approx equiv le ge to Vert Delta Sigma"
_LATEX = {
    **{character: f"\\{name}{{}}" for character, name in zip("\\~^<>|…", _TEXT_COMMANDS.split(), strict=True)},
    **{character: f"$\\{name}$" for character, name in zip("·±×†≈≡≤≥→‖ΔΣ", _MATH_COMMANDS.split(), strict=True)},
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_LATEX |= {
    "–": "--",
    "—": "---",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "−": "$-$",
    "²": "$^2$",
    "½": r"$\frac{1}{2}$",
}
_HAS_GLYPH = 0x17F  # Latin letters up to here are in every LaTeX font
_ROOM, _TALL = 120, 50  # characters of a line, and lines of a float
_LONG = 36  # characters of a label that is set as a paragraph
_SEEDS = re.compile(r" \((\d+)\)$")  # behind a standard deviation, where numbers of seeds differ


def _character(character: str) -> str:
    """One character as LaTeX; one that common fonts lack as its code point, so that every text compiles."""
    if character in _LATEX:
        return _LATEX[character]
    if "α" <= character <= "ω" and character not in "ος":
        letter = unicodedata.name(character).rsplit(" ", 1)[-1].lower()
        return f"$\\{letter.replace('lamda', 'lambda')}$"
    if ord(character) < ord(" ") or character.isspace():
        return " "
    return character if ord(character) <= _HAS_GLYPH else f"[U+{ord(character):04X}]"


def latex_escape(text: str) -> str:
    """Text that LaTeX sets as it is."""
    return "".join(map(_character, text))


def _line(cells: Sequence[str]) -> str:
    """One line of a table; a leading [ or * would be read as part of the line break before it."""
    return " & ".join(f"{{{cell}}}" if cell.startswith(("[", "*")) else cell for cell in cells) + r" \\"


def _of(group: Group, label: str) -> Line | None:
    """A group's line of that label, whatever stands behind it in brackets."""
    return next((line for line in group.lines if line.label.partition(" (")[0] == label), None)


def _numbers(text: str) -> list[Decimal | None]:
    """The numbers of a cell, between slashes; None of what is none."""

    def number(part: str) -> Decimal | None:
        try:
            return Decimal(part.replace("−", "-"))
        except InvalidOperation:
            return None

    return [number(part) for part in text.split("/")]


def _best(groups: Sequence[Group], label: str, place: int, signs: Sequence[int]) -> list[Decimal | None]:
    """The best number of each score in a column, of the methods that the paper prints."""
    lines = [_of(group, label) for group in groups if not group.name.endswith(DAGGER)]
    rows = [_numbers(line.cells[place]) for line in lines if line is not None]
    rows = [row for row in rows if len(row) == len(signs)]
    found = []
    for number, sign in enumerate(signs):
        known = [row[number] for row in rows]
        found.append(max((value for value in known if value is not None), key=lambda value: sign * value, default=None))
    return found


def _score(text: str, sd: str, best: Sequence[Decimal | None]) -> str:
    """Numbers between slashes, each with its standard deviation over seeds as an index, the best ones bold."""
    numbers, spreads = _numbers(text), _numbers(_SEEDS.sub("", sd))
    if not any(value is not None for value in numbers):
        return latex_escape(text)
    parts = []
    for number, value in enumerate(numbers):
        if value is None:
            parts.append(latex_escape(text.split("/")[number]))
            continue
        is_best = number < len(best) and value == best[number]
        spread = spreads[number] if len(spreads) == len(numbers) else None
        index = "" if spread is None else f"_{{\\pm {spread}}}"
        parts.append(f"$\\mathbf{{{value}}}{index}$" if is_best else f"${value}{index}$")
    return "/".join(parts)


def _scores_body(grid: Grid) -> Iterator[str]:
    """A line a method: what is reproduced, and in a column beside it what is reported, where something is."""
    has_print = any(_of(group, REPORTED) for group in grid.groups)
    wide = 2 if has_print else 1
    for texts in _stacked(grid.headers):
        yield _line(["", *(f"\\multicolumn{{{wide}}}{{c}}{{{latex_escape(text)}}}" for text in texts)])
    if has_print:
        yield _line([latex_escape(grid.stub), *[REPRODUCED, REPORTED] * len(grid.headers)])
    yield r"\midrule"
    signs = grid.signs or ((),) * len(grid.headers)
    best = {
        label: [_best(grid.groups, label, place, sign) for place, sign in enumerate(signs)]
        for label in (REPRODUCED, REPORTED)
    }
    for group in grid.groups:
        own, sd, printed = _of(group, REPRODUCED), _of(group, "± sd"), _of(group, REPORTED)
        is_extra = group.name.endswith(DAGGER)
        cells = [latex_escape(group.name)]
        for place in range(len(grid.headers)):
            spread = sd.cells[place] if sd else ""
            cells.append(_score(own.cells[place], spread, () if is_extra else best[REPRODUCED][place]) if own else "")
            if has_print:
                text = printed.cells[place] if printed else NOTHING
                cells.append(_score(text, "", best[REPORTED][place]))
        yield _line(cells)


def _plain_body(grid: Grid) -> Iterator[str]:
    """A line for each line of the grid."""
    for number, texts in enumerate(_stacked(grid.headers)):
        yield _line([latex_escape(grid.stub) if number == 0 else "", "", *map(latex_escape, texts)])
    for group in grid.groups:
        yield r"\midrule"
        for number, line in enumerate(group.lines):
            name = latex_escape(group.name) if number == 0 else ""
            yield _line([name, latex_escape(line.label), *map(latex_escape, line.cells)])


def _stacked(headers: Sequence[tuple[str, ...]]) -> Iterator[list[str]]:
    for number in range(max(map(len, headers))):
        texts = [header[number] if number < len(header) else "" for header in headers]
        if any(texts):
            yield texts


def _has_scores(grid: Grid) -> bool:
    return any(_of(group, REPRODUCED) for group in grid.groups)


def tabular(grid: Grid) -> str:
    """A grid as one tabular environment, without its title: of scores a line a method, else line by line."""
    if _has_scores(grid):
        wide = 2 if any(_of(group, REPORTED) for group in grid.groups) else 1
        columns, body = f"l{'r' * wide * len(grid.headers)}", _scores_body(grid)
    else:
        labels = [line.label for group in grid.groups for line in group.lines]
        label = r"p{0.36\textwidth}" if max(map(len, labels), default=0) > _LONG else "l"
        columns, body = f"l{label}{'r' * len(grid.headers)}", _plain_body(grid)
    return "\n".join([f"\\begin{{tabular}}{{{columns}}}", r"\toprule", *body, r"\bottomrule", r"\end{tabular}"])


def _widths(grid: Grid) -> list[int]:
    """Characters that each column takes."""
    is_of_scores, widths = _has_scores(grid), []
    for place, header in enumerate(grid.headers):
        lines = [line for group in grid.groups for line in group.lines]
        if not is_of_scores:
            widths.append(2 + max(map(len, (*header, *(line.cells[place] for line in lines)))))
            continue
        kept = {label: [line.cells[place] for g in grid.groups if (line := _of(g, label))] for label in _KEPT}
        own, sd, printed = (max(map(len, kept[label]), default=0) for label in _KEPT)
        widths.append(max(*map(len, header), 2 + own + (2 * sd) // 3 + (2 + max(printed, 8) if printed else 0)))
    return widths


_KEPT = (REPRODUCED, "± sd", REPORTED)


def _parts(grid: Grid) -> Iterator[Grid]:
    """A grid in parts that are no wider and no taller than a page, as equal in columns as they can be."""
    is_of_scores = _has_scores(grid)
    name = max((len(group.name) for group in grid.groups), default=0)
    label = 0 if is_of_scores else max((len(line.label) for g in grid.groups for line in g.lines), default=0)
    widths, room = _widths(grid), _ROOM - name - min(label, _LONG)
    fewest = len(cut(widths, room, len(widths)))
    for places in cut(widths, room, -(-len(widths) // fewest)):
        headers = tuple(grid.headers[place] for place in places)
        signs = tuple(grid.signs[place] for place in places) if grid.signs else ()
        groups: list[Group] = []
        lines = 0
        for group in grid.groups:
            tall = 1 if is_of_scores else 1 + sum(1 + len(line.label) // _LONG for line in group.lines)
            if groups and lines + tall > _TALL:
                yield replace(grid, headers=headers, groups=tuple(groups), signs=signs)
                groups, lines = [], 0
            own = (replace(line, cells=tuple(line.cells[place] for place in places)) for line in group.lines)
            groups.append(replace(group, lines=tuple(own)))
            lines += tall
        yield replace(grid, headers=headers, groups=tuple(groups), signs=signs)


def latex(page: Page) -> str:
    """Floats with captions and labels, then the notes, as part of a document that loads booktabs and adjustbox."""
    name = f"tab:{page.request.benchmark.id}-{page.request.scale.id}"
    parts = [r"% Needs \usepackage{booktabs} and \usepackage{adjustbox}."]
    number = 0
    for grid in page.grids:
        for place, part in enumerate(_parts(grid)):
            number += 1
            more = " (continued)" if place else ""
            about = ""
            if _has_scores(grid) and not place:
                about = " Index: standard deviation over seeds. Bold: best of the paper's methods."
            caption = f"{latex_escape(grid.title + more)}.{about}"
            parts.append(
                f"\\begin{{table*}}\n\\centering\n\\small\n\\caption{{{caption}}}\n\\label{{{name}-{number}}}\n"
                f"\\begin{{adjustbox}}{{max width=\\textwidth}}\n{tabular(part)}\n\\end{{adjustbox}}\n\\end{{table*}}"
            )
    notes = "\n".join(f"\\item {{}}{latex_escape(note)}" for note in page.notes)
    parts.append(f"{{\\footnotesize\\sloppy\\emergencystretch=4em\n\\begin{{itemize}}\n{notes}\n\\end{{itemize}}\n}}")
    return "\n\n".join(parts) + "\n"
