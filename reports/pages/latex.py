"""A page as LaTeX: the notes, and tables across both columns, which need booktabs and adjustbox."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace

from reports.pages.page import Grid, Group, Line, Page
from reports.pages.text import MEASURED, NOT_RUN, NOTHING, REPORTED

_TEXT_COMMANDS = "textbackslash textasciitilde textasciicircum textless textgreater textbar ldots"
_MATH_COMMANDS = "cdot pm times dagger approx equiv le ge to Vert Delta Sigma"
_LATEX = {
    **{character: f"\\{name}{{}}" for character, name in zip("\\~^<>|…", _TEXT_COMMANDS.split(), strict=True)},
    **{character: f"$\\{name}$" for character, name in zip("·±×†≈≡≤≥→‖ΔΣ", _MATH_COMMANDS.split(), strict=True)},
    **{character: f"\\{character}" for character in "&%$#_{}"},
    **dict(zip("–—“”‘’", ("--", "---", "``", "''", "`", "'"), strict=True)),
    **dict(zip("−²½", ("$-$", "$^2$", r"$\frac{1}{2}$"), strict=True)),
}
_HAS_GLYPH = 0x17F  # Latin letters up to here are in every LaTeX font
_LONG = 36  # longer labels are set as paragraphs
_POWER = re.compile(r"\b(F1|10)\^(\w+)")
_SEEDS = re.compile(r" \((\d+)\)$")  # after a standard deviation, if numbers of seeds differ
_BOX = r"max width=\textwidth, max totalheight=0.85\textheight"


def _character(character: str) -> str:
    """One character as LaTeX; as its code point if common fonts lack it, so every text compiles."""
    if character in _LATEX:
        return _LATEX[character]
    if "α" <= character <= "ω" and character not in "ος":
        letter = unicodedata.name(character).rsplit(" ", 1)[-1].lower()
        return f"$\\{letter.replace('lamda', 'lambda')}$"
    if ord(character) < ord(" ") or character.isspace():
        return " "
    return character if ord(character) <= _HAS_GLYPH else f"[U+{ord(character):04X}]"


def latex_escape(text: str) -> str:
    """Text escaped for LaTeX; powers and F1^PN become formulas."""
    parts = _POWER.split(text)  # text, base, exponent, text, …
    texts = ["".join(map(_character, part)) for part in parts[::3]]
    powers = [
        f"${'F_1' if base == 'F1' else base}^{{{power}}}$" for base, power in zip(parts[1::3], parts[2::3], strict=True)
    ]
    return "".join(piece for pair in zip(texts, [*powers, ""], strict=True) for piece in pair)


def _filled(grid: Grid) -> Grid:
    """The grid without lines and columns that lack numbers; a method's scores are one line."""
    empty = {"", NOTHING, NOT_RUN}
    lines = {group.name: [line for line in group.lines if not empty.issuperset(line.cells)] for group in grid.groups}
    filled = (group for group in grid.groups if lines[group.name])
    groups = [group if _has_scores(grid) else replace(group, lines=tuple(lines[group.name])) for group in filled]
    columns = [[line.cells[place] for group in groups for line in group.lines] for place in range(len(grid.headers))]
    places = [place for place, cells in enumerate(columns) if not empty.issuperset(cells)]
    if not places:
        return grid

    def line_of(line: Line) -> Line:
        best = tuple(line.best[place] for place in places) if line.best else ()
        return replace(line, cells=tuple(line.cells[place] for place in places), best=best)

    kept = tuple(Group(group.name, tuple(map(line_of, group.lines))) for group in groups)
    return replace(grid, headers=tuple(grid.headers[place] for place in places), groups=kept)


def _row(cells: Sequence[str]) -> str:
    """One line of a table; LaTeX would read a leading [ or * as part of the line break before it."""
    return " & ".join(f"{{{cell}}}" if cell.startswith(("[", "*")) else cell for cell in cells) + r" \\"


def _labelled(group: Group, label: str) -> Line | None:
    """A group's line with that label, ignoring brackets after it."""
    return next((line for line in group.lines if line.label.partition(" (")[0] == label), None)


def _score(line: Line, spread: Line | None, place: int) -> str:
    """Numbers between slashes, the best bold, each with its standard deviation over seeds as an index."""
    values = line.text(place, lambda text: latex_escape(text).replace("$-$", "-"), r"\mathbf{{{}}}".format)
    sds = _SEEDS.sub("", spread.cells[place]).split("/") if spread else []
    parts = values.split("/")
    entries = []
    for number, value in enumerate(parts):
        is_number = re.fullmatch(r"(\\mathbf\{)?-?[\d.]+\}?", value)
        has_sd = len(sds) == len(parts) and sds[number] != NOTHING
        index = f"_{{\\pm {sds[number]}}}" if has_sd else ""
        entries.append(f"${value}{index}$" if is_number else value)
    return "/".join(entries)


def _of_scores(grid: Grid) -> Iterator[str]:
    """A line per method: our number, and next to it the reported one in columns that have one."""
    wide = _wide(grid)
    for texts in _stacked(grid.headers):
        headers = zip(wide, map(latex_escape, texts), strict=True)
        yield _row(["", *(f"\\multicolumn{{2}}{{c}}{{{text}}}" if is_wide else text for is_wide, text in headers)])
    if any(wide):
        yield _row([latex_escape(grid.stub), *(name for each in wide for name in (MEASURED, REPORTED)[: 1 + each])])
    yield r"\midrule"
    for group in grid.groups:
        main, spread, reported = (_labelled(group, label) for label in (MEASURED, "± sd", REPORTED))
        cells = [latex_escape(group.name)]
        for place, is_wide in enumerate(wide):
            cells.append(_score(main, spread, place) if main else "")
            if is_wide:
                cells.append(_score(reported, None, place) if reported else latex_escape(NOTHING))
        yield _row(cells)


def _wide(grid: Grid) -> list[bool]:
    """Whether each column has a reported value."""
    lines = [line for group in grid.groups if (line := _labelled(group, REPORTED))]
    return [any(line.cells[place] not in ("", NOTHING) for line in lines) for place in range(len(grid.headers))]


def _line_by_line(grid: Grid) -> Iterator[str]:
    for number, texts in enumerate(_stacked(grid.headers)):
        yield _row([latex_escape(grid.stub) if number == 0 else "", "", *map(latex_escape, texts)])
    for group in grid.groups:
        yield r"\midrule"
        for number, line in enumerate(group.lines):
            cells = (line.text(place, latex_escape, r"\textbf{{{}}}".format) for place in range(len(line.cells)))
            yield _row([latex_escape(group.name) if number == 0 else "", latex_escape(line.label), *cells])


def _stacked(headers: Sequence[tuple[str, ...]]) -> Iterator[list[str]]:
    for number in range(max(map(len, headers))):
        texts = [header[number] if number < len(header) else "" for header in headers]
        if any(texts):
            yield texts


def _has_scores(grid: Grid) -> bool:
    return any(_labelled(group, MEASURED) for group in grid.groups)


def tabular(grid: Grid) -> str:
    """A grid as one tabular environment without its title: one line per method for scores, else line by line."""
    if _has_scores(grid):
        columns, body = f"l{'r' * (len(grid.headers) + sum(_wide(grid)))}", _of_scores(grid)
    else:
        is_long = max((len(line.label) for line in grid.lines), default=0) > _LONG
        label = r"p{0.36\textwidth}" if is_long else "l"
        columns = f"l{label}{'r' * len(grid.headers)}"
        body = _line_by_line(grid)
    return "\n".join([f"\\begin{{tabular}}{{{columns}}}", r"\toprule", *body, r"\bottomrule", r"\end{tabular}"])


def latex(page: Page) -> str:
    """The tables alone, each with a caption and a label, for a document that loads booktabs and adjustbox."""
    name = f"tab:{page.request.benchmark.id}-{page.request.scale.id}"
    parts = [r"% Needs \usepackage{booktabs} and \usepackage{adjustbox}."]
    for number, grid in enumerate(map(_filled, page.grids), start=1):
        about = " Index: standard deviation over seeds. Bold: best of the paper's methods, or not distinguishable."
        caption = f"{latex_escape(grid.title)}.{about if _has_scores(grid) else ''}"
        parts.append(
            f"\\begin{{table*}}\n\\centering\n\\small\n\\caption{{{caption}}}\n\\label{{{name}-{number}}}\n"
            f"\\begin{{adjustbox}}{{{_BOX}}}\n{tabular(grid)}\n\\end{{adjustbox}}\n\\end{{table*}}"
        )
    return "\n\n".join(parts) + "\n"


def latex_notes(page: Page) -> str:
    """The notes under the tables as a list."""
    notes = "\n".join(f"\\item {{}}{latex_escape(note)}" for note in page.notes)
    return f"{{\\footnotesize\\sloppy\\emergencystretch=4em\n\\begin{{itemize}}\n{notes}\n\\end{{itemize}}\n}}\n"
