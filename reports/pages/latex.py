"""A page as LaTeX: tables over both columns of a paper, which need booktabs and adjustbox, and the notes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from reports.pages.page import Grid, Group, Line, Page
from reports.pages.text import NOT_RUN, NOTHING, REPORTED, REPRODUCED

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
_LONG = 36  # characters of a label that is set as a paragraph
_POWER = re.compile(r"\b(F1|10)\^(\w+)")
_SEEDS = re.compile(r" \((\d+)\)$")  # behind a standard deviation, where numbers of seeds differ
_BOX = r"max width=\textwidth, max totalheight=0.85\textheight"


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
    """Text that LaTeX sets unchanged; powers and F1^PN as formulas."""
    parts = _POWER.split(text)  # text, base, exponent, text, …
    found = ["".join(map(_character, part)) for part in parts[::3]]
    powers = [
        f"${'F_1' if base == 'F1' else base}^{{{power}}}$" for base, power in zip(parts[1::3], parts[2::3], strict=True)
    ]
    return "".join(piece for pair in zip(found, [*powers, ""], strict=True) for piece in pair)


def _filled(grid: Grid) -> Grid:
    """The grid without rows and columns that have no number."""
    empty = {"", NOTHING, NOT_RUN}
    groups = [group for group in grid.groups if not all(empty.issuperset(line.cells) for line in group.lines)]
    columns = [[line.cells[place] for group in groups for line in group.lines] for place in range(len(grid.headers))]
    places = [place for place, cells in enumerate(columns) if not empty.issuperset(cells)]
    if not places:
        return grid

    def line_of(line: Line) -> Line:
        best = tuple(line.best[place] for place in places) if line.best else ()
        return replace(line, cells=tuple(line.cells[place] for place in places), best=best)

    kept = tuple(Group(group.name, tuple(map(line_of, group.lines))) for group in groups)
    return replace(grid, headers=tuple(grid.headers[place] for place in places), groups=kept)


def _bold(text: str) -> str:
    return f"\\textbf{{{text}}}"


def _row(cells: Sequence[str]) -> str:
    """One line of a table; LaTeX would read a leading [ or * as part of the line break before it."""
    return " & ".join(f"{{{cell}}}" if cell.startswith(("[", "*")) else cell for cell in cells) + r" \\"


def _labelled(group: Group, label: str) -> Line | None:
    """A group's line of that label, whatever follows it in brackets."""
    return next((line for line in group.lines if line.label.partition(" (")[0] == label), None)


def _of_scores(group: Group) -> Iterator[tuple[str, list[str]]]:
    """The two lines of a method's scores: reproduced, with the deviation over seeds as an index, and reported."""
    main, spread, reported = (_labelled(group, label) for label in (REPRODUCED, "± sd", REPORTED))
    for line, sds in ((main, spread), (reported, None)):
        if line is not None:
            yield line.label.partition(" (")[0], [_score(line, sds, place) for place in range(len(line.cells))]


def _score(line: Line, spread: Line | None, place: int) -> str:
    """Numbers between slashes, the best bold, each with its standard deviation over seeds as an index."""
    values = line.text(place, lambda text: latex_escape(text).replace("$-$", "-"), lambda text: f"\\mathbf{{{text}}}")
    sds = _SEEDS.sub("", spread.cells[place]).split("/") if spread else []
    parts = values.split("/")
    shown = []
    for number, value in enumerate(parts):
        is_number = re.fullmatch(r"(\\mathbf\{)?-?[\d.]+\}?", value)
        has_sd = len(sds) == len(parts) and sds[number] != NOTHING
        index = f"_{{\\pm {sds[number]}}}" if has_sd else ""
        shown.append(f"${value}{index}$" if is_number else value)
    return "/".join(shown)


def _has_scores(grid: Grid) -> bool:
    return any(_labelled(group, REPRODUCED) for group in grid.groups)


def _rows(grid: Grid) -> Iterator[str]:
    stub = latex_escape(grid.stub)
    for texts in filter(any, zip_longest(*grid.headers, fillvalue="")):
        yield _row([stub, "", *map(latex_escape, texts)])
        stub = ""
    for group in grid.groups:
        yield r"\midrule"
        name, every = latex_escape(group.name), range(len(grid.headers))
        lines: Iterable[tuple[str, list[str]]] = _of_scores(group)
        if not _has_scores(grid):
            lines = ((line.label, [line.text(place, latex_escape, _bold) for place in every]) for line in group.lines)
        for label, cells in lines:
            yield _row([name, latex_escape(label), *cells])
            name = ""


def tabular(grid: Grid) -> str:
    """A grid as one tabular environment, without its title; of scores, only what is reproduced and reported."""
    is_long = max((len(line.label) for line in grid.lines), default=0) > _LONG
    label = r"p{0.36\textwidth}" if is_long else "l"
    begin = f"\\begin{{tabular}}{{l{label}{'r' * len(grid.headers)}}}"
    return "\n".join([begin, r"\toprule", *_rows(grid), r"\bottomrule", r"\end{tabular}"])


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
