"""A page as LaTeX: tabular environments to input, which need the package booktabs alone."""

from __future__ import annotations

import unicodedata

from reports.pages.page import Grid, Page

_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "—": "---",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "…": r"\ldots{}",
    "·": r"$\cdot$",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "†": r"$\dagger$",
    "≈": r"$\approx$",
    "≡": r"$\equiv$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "→": r"$\to$",
    "‖": r"$\Vert$",
    "²": "$^2$",
    "½": r"$\frac{1}{2}$",
    "Δ": r"$\Delta$",
    "Σ": r"$\Sigma$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_HAS_GLYPH = 0x17F  # Latin letters up to here are in every LaTeX font


def _character(character: str) -> str:
    """One character as LaTeX; one that common fonts lack as its code point, so that every text compiles."""
    if character in _ESCAPES:
        return _ESCAPES[character]
    if "α" <= character <= "ω" and character not in "ος":
        letter = unicodedata.name(character).rsplit(" ", 1)[-1].lower()
        return f"$\\{letter.replace('lamda', 'lambda')}$"
    if ord(character) < ord(" ") or character.isspace():
        return " "
    return character if ord(character) <= _HAS_GLYPH else f"[U+{ord(character):04X}]"


def escape(text: str) -> str:
    """Text that LaTeX sets as it is."""
    return "".join(map(_character, text))


def _line(cells: list[str]) -> str:
    """One line of a table; a leading [ or * would be read as part of the line break before it."""
    return " & ".join(f"{{{cell}}}" if cell.startswith(("[", "*")) else cell for cell in cells) + r" \\"


def latex_table(grid: Grid) -> str:
    """A grid as one tabular environment, without its title."""
    lines = [f"\\begin{{tabular}}{{ll{'r' * len(grid.headers)}}}", r"\toprule"]
    for number in range(max(map(len, grid.headers))):
        texts = [header[number] if number < len(header) else "" for header in grid.headers]
        lines.append(_line([escape(grid.stub) if number == 0 else "", "", *map(escape, texts)]))
    for group in grid.groups:
        lines.append(r"\midrule")
        for number, line in enumerate(group.lines):
            name = escape(group.name) if number == 0 else ""
            lines.append(_line([name, escape(line.label), *map(escape, line.cells)]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def latex(page: Page) -> str:
    """Titles, tabular environments and notes, as paragraphs of a document that loads booktabs."""
    parts = ["% Needs \\usepackage{booktabs}."]
    for grid in page.grids:
        parts.append(
            f"\\noindent\\textbf{{{escape(grid.title)}}}\\par\\smallskip\n\\noindent\n{latex_table(grid)}\n\\par"
        )
    notes = "\n".join(f"\\item {{}}{escape(note)}" for note in page.notes)
    parts.append(f"\\begin{{footnotesize}}\n\\begin{{itemize}}\n{notes}\n\\end{{itemize}}\n\\end{{footnotesize}}")
    return "\n\n".join(parts) + "\n"
