"""The README's part that says what is reproduced so far."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from benchmarks.record import write_text
from reports.comparison import Comparison
from reports.errors import ReportError
from reports.layout import grids
from reports.render.markdown import escape, titled_table

BEGIN, END = "<!-- reproduced:begin -->", "<!-- reproduced:end -->"


def _state(comparison: Comparison) -> str:
    """One comparison: how much of it was run, its tables, and its notes folded away."""
    run = sum(cell.is_run for cell in comparison.cells)
    notes = "\n".join(f"- {escape(note)}" for note in comparison.notes)
    return "\n\n".join(
        [
            f"### {escape(comparison.heading)}",
            f"{escape(comparison.title)}: {run} of {len(comparison.cells)} cells run.",
            *map(titled_table, grids(comparison)),
            f"<details><summary>Notes and deviations</summary>\n\n{notes}\n\n</details>",
        ]
    )


def render_state(comparisons: Iterable[Comparison]) -> str:
    """Markdown of what is reproduced so far, for the part between the README's markers."""
    return "\n\n".join(map(_state, comparisons)) or "Nothing has been run yet."


def update_readme(path: Path, text: str) -> bool:
    """Replace the part between the markers, and say whether the file changed; ReportError without markers."""
    try:
        old = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ReportError(
            f"{path}: cannot be read ({error.strerror}). Name a Markdown file with the markers."
        ) from None
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
