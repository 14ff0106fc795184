"""The parts of README files that are rendered from records, and a page for each table, the claims and the audit."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from benchmarks.results import write_text
from fedsim.files import FileError, read_text
from reports import ReportError
from reports.audit.statements import Finding, audit_markdown
from reports.audit.statements import summary as audit_summary
from reports.claims.judge import CONTRADICTED, DEPENDS, PARTLY, SUPPORTED, Judgement, tally
from reports.claims.tables import anchor, claims_markdown
from reports.evidence.gate import gates, home
from reports.front.state import deviations_of, questions
from reports.pages.page import Page, deviation_name
from reports.pages.render import escape, table_line, titled_table
from reports.pages.text import NOTHING, human_seconds

PAGE_WIDTH = 92  # characters of a table that fit into GitHub's 838 points
REPRODUCED = "reproduced"  # the block of a README
BEGIN, END = f"<!-- {REPRODUCED}:begin -->", f"<!-- {REPRODUCED}:end -->"
FOLDER = "pages"  # next to a paper's README
DOCS = "../../../docs"  # from there
GENERATED = "<!-- written by `make readme` -->"
_HEADINGS = {
    "Supported": SUPPORTED,
    "Partly supported": PARTLY,
    "Depending on the interpretation": DEPENDS,
    "Contradicted": CONTRADICTED,
}
OTHER_RUNS = (
    "Claims about this table are judged on other runs, fixed in [the protocol](../../../docs/protocol.md). This table "
    "does not include them."
)
_FEWEST = 3  # seeds of two methods, for a column to count in a table's sentence


def update_readme(path: Path, text: str, block: str = REPRODUCED) -> None:
    """Replace the part between a block's markers; ReportError without markers."""
    begin, end = (f"<!-- {block}:{side} -->" for side in ("begin", "end"))
    try:
        old = read_text(path, "a Markdown file")
    except FileError as error:
        raise ReportError(f"{error}. Name a Markdown file with the markers.") from None
    before, _, rest = old.partition(begin)
    _, _, after = rest.partition(end)
    if (old.count(begin), rest.count(end), old.count(end)) != (1, 1, 1):
        raise ReportError(
            f"{path}: expected the markers {begin} and {end}, each once and in this order, found "
            f"{old.count(begin)} and {old.count(end)}. Put them where the text belongs."
        )
    write_text(path, f"{before}{begin}\n{text.strip()}\n{end}{after}")


def write_paper(
    readme: Path,
    pages: Sequence[Page],
    pictures: Mapping[str, Path],
    claims: Sequence[Sequence[Judgement]],
    findings: Sequence[Finding],
    sweeps: Iterable[str] = (),
) -> None:
    """Write a paper's state into its README, and a page for each table, the claims, the audit and the sweeps.

    Args:
        readme: With the markers.
        pages: Of the paper's tables and figures.
        pictures: Benchmark id -> its figure.
        claims: The judged claims of each scale.
        findings: Of the audit.
        sweeps: Sections whose links start from the README's folder.
    """
    folder = readme.parent / FOLDER
    judged = [each for judgements in claims for each in judgements]
    leads = [lead(page, judged) for page in pages]
    elsewhere = {table for each in judged for table in {*each.claim.benchmarks} - each.judged_on}
    texts = {
        f"{table}.md": _table_page(page, shown, pictures.get(table), folder, table in elsewhere)
        for page, shown in zip(pages, leads, strict=True)
        for table in [page.request.benchmark.id]
    }
    if any(claims):
        texts["claims.md"] = "\n\n".join(claims_markdown(judged, level=1, docs=DOCS) for judged in claims if judged)
        texts["claims.md"] += "\n\nNumbers of the papers' other tables and sentences: [consistency](consistency.md)."
    if findings:
        texts["consistency.md"] = f"# Consistency of the published numbers\n\n{audit_markdown(findings)}"
    scales = {scale.id for page in pages for scale in page.request.benchmark.scales}
    deviations = deviations_of(page.request.benchmark for page in pages)
    listed = (
        f"- **{deviation_name(d.id)}.** {escape(d.text)} ({_where(places, len(pages))}; "
        f"{', '.join(at for at in d.scales if at in scales)})"
        for d, places in deviations.items()
    )
    texts["deviations.md"] = "\n".join(["# Deviations, and choices where the paper is silent\n", *listed])
    if sections := [re.sub(r"\]\((?=\.\./|sweeps/)", "](../", section) for section in sweeps]:
        texts["sweeps.md"] = "\n\n".join(["# Sweeps", *sections])
    for name, text in texts.items():
        write_text(folder / name, f"{GENERATED}\n{text.strip()}\n")
    for path in folder.glob("*.md"):
        if path.name not in texts and path.read_text(encoding="utf-8").startswith(GENERATED):
            path.unlink()
    update_readme(readme, _state(list(zip(pages, leads, strict=True)), judged, findings, texts))


def _where(places: Sequence[str], tables: int) -> str:
    """The tables that a deviation holds for, by place."""
    return "all tables" if len(places) == tables > 1 else ", ".join(places)


def _table_page(page: Page, shows: str, picture: Path | None, folder: Path, judged_elsewhere: bool) -> str:
    """A table's sentence, figure, numbers and notes. judged_elsewhere: whether other runs judge claims about it."""
    heading, notes = escape(page.request.heading), "\n".join(f"- {escape(note)}" for note in page.notes)
    shown = "" if shows.startswith(page.request.coverage) else f"**{escape(shows)}**"
    link = Path(os.path.relpath(picture, folder)).as_posix() if picture else ""
    parts = [
        f"# {heading}",
        escape(" ".join(page.conclusions)) or shown,
        OTHER_RUNS if judged_elsewhere else "",
        f"{escape(page.request.benchmark.title)}: {page.request.coverage}. [Back](../README.md)",
        f"![{heading}]({link})" if picture else "",
        *(titled_table(grid, PAGE_WIDTH) for grid in page.grids),
        f"<details><summary>Notes and deviations</summary>\n\n{notes}\n\n</details>",
    ]
    return "\n\n".join(filter(None, parts))


def lead(page: Page, judgements: Iterable[Judgement] = ()) -> str:
    """A table's result in one sentence.

    Its finding; or its first conclusion; or the number of tasks on which each method is among the best; or a claim
    that it decides, rather by runs than by arithmetic.
    """
    if page.finding:
        return f"{page.finding[0]}; {page.finding[1]}."
    if page.conclusions:
        return page.conclusions[0]
    if best := _best(page):
        places = {place for places in best.values() for place in places}
        columns, where = len(places), page.grids[0].headers[min(places)][0]
        if columns == 1:
            return f"{'Tied for best' if len(best) > 1 else 'Best'} on {where}: {', '.join(best)}."
        if len(best) > 1 and {len(places) for places in best.values()} == {columns}:
            return f"Best, or not significantly worse than the best, on all {columns} tasks: {', '.join(best)}."
        ranked = sorted(best.items(), key=lambda entry: -len(entry[1]))
        named = ", ".join(f"{name} on {len(places)}" for name, places in ranked)
        return f"Best, or not significantly worse than the best, of {columns} tasks: {named}."
    about = [each for each in judgements if page.request.benchmark.id in each.claim.benchmarks]
    decided = [each for each in about if each.measured.is_decided and page.request.benchmark.id in each.judged_on]
    if decided:
        judged = min(decided, key=lambda each: (each.measured.is_derived, len(each.claim.benchmarks)))
        test = f" ({_test(judged)})" if _test(judged) else ""
        return f"{judged.claim.sentence}{test}: {judged.verdict}; {judged.effect}."
    are_open = about and not any(each.measured.is_decided for each in about)
    few = "its claim is not decided" if len(about) == 1 else f"none of its {len(about)} claims is decided"
    return f"{page.request.coverage}{f'; {few}' if are_open else ''}."


def _best(page: Page) -> dict[str, list[int]]:
    """Method -> the columns in which it is among the best, of those that are evidence and have enough seeds.

    Only for tables whose columns are tasks.
    """
    request, best = page.request, dict[str, list[int]]()
    references = home(request.benchmark).yardstick.rows
    checks, columns = gates(request), {column.name: column for column in request.columns}
    for grid in page.grids[:1]:
        for place, (name, *_) in enumerate(grid.headers):
            column = columns.get(name)
            if column is None or (column.task in checks and checks[column.task].why):
                continue
            compared = [
                request.name_of(row)
                for row in request.rows
                if row.printed and row.id not in references and len(request.records_of(row, column)) >= _FEWEST
            ]
            if len(compared) < 2:
                continue
            scored = column.scores.index(column.averaged) if column.averaged in column.scores else 0
            for group in grid.groups:
                marks = next((line.best[place] for line in group.lines if line.best), ())
                if group.name in compared and marks[scored : scored + 1] == (True,):
                    best.setdefault(group.name, []).append(place)
    return best


def _state(
    tables: Sequence[tuple[Page, str]], judged: Sequence[Judgement], findings: Sequence[Finding], files: Iterable[str]
) -> str:
    """The paper's state, and a line for each table. tables: with their sentences."""
    if not tables:
        return "Nothing has been run yet."
    parts = []
    for title, verdict in _HEADINGS.items():
        if judgements := [each for each in judged if each.word == verdict]:
            parts += [f"**{title}**", "\n".join(map(_decided, judgements))]
    readings: dict[str, list[str]] = {}
    for each in judged:
        for name, word, _ in () if each.measured.is_decided else each.readings:
            readings.setdefault(f"{word}, {name}", []).append(each.claim.id)
    if readings:
        listed = "\n".join(f"- {', '.join(ids)}: {escape(reading)}" for reading, ids in readings.items())
        parts += ["**Undecided claims that another interpretation or scored round decides**", listed]
    if judged:
        parts.append(f"All [{len(judged)} claims]({FOLDER}/claims.md): {tally(judged)}{questions(judged)}.")
    if findings:
        parts.append(f"[Consistency]({FOLDER}/consistency.md): {audit_summary(findings)}")
    headers = "Table", "Cells run", "Training time", "Main result"
    lines = [table_line(headers), table_line((":--", "--:", "--:", ":--"))]
    for page, shows in tables:
        name = f"[{escape(page.request.benchmark.place)}]({FOLDER}/{page.request.benchmark.id}.md)"
        lines.append(table_line((name, "{} of {}".format(*page.request.run), _trained(page), escape(shows))))
    labelled = {(page.request.scale.id, label) for page, _ in tables for label in page.request.label.split("; ")}
    scales = groupby(sorted(labelled), lambda pair: pair[0])
    labels = "; ".join(f"{scale} scale: {'; '.join(label for _, label in group)}" for scale, group in scales)
    parts += [f"{labels[:1].upper()}{labels[1:]}.", "\n".join(lines)]
    parts.append(f"[Deviations]({FOLDER}/deviations.md) from published settings, and choices where these are silent.")
    parts += [f"[Sweeps]({FOLDER}/sweeps.md): settings tried on validation data."] if "sweeps.md" in files else []
    return "\n\n".join(parts)


def _decided(one: Judgement) -> str:
    """A decided claim in Markdown, with its effect, its other interpretations if the verdict depends on them, and
    caveats.
    """
    readings = one.elsewhere if one.word == DEPENDS else ""
    texts = "; ".join(escape(text) for text in (one.verdict, _test(one), one.effect, readings, one.caveat) if text)
    link = f"[claim {one.claim.id}]({FOLDER}/claims.md#{anchor(one.claim)})"
    place = "" if one.claim.is_question else f" ({escape(one.claim.place)})"
    return f"- {escape(one.claim.sentence)}{place}: {texts} ({link})"


def _test(one: Judgement) -> str:
    """What runs had to show, by the claim's interpretation; "" if arithmetic decides the claim."""
    first = re.split(r"(?<=[^.;])[.;](?:\s|$)", one.claim.reading)[0]
    return f"the test: {first}" if first and not one.measured.is_derived else ""


def _trained(page: Page) -> str:
    """The training time of all runs of a table, without parent runs."""
    records = [record for selection in page.request.selections.values() for record in selection.records]
    seconds = sum(record.timing.get("train_seconds", 0.0) for record in records)
    return human_seconds(seconds) if seconds else NOTHING
