"""What the run of a table says of its cells: means over seeds by task and method, and the best method of each task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean

from benchmarks.measures import metric
from benchmarks.record import RunRecord
from benchmarks.tracking.shown import About, Shown, table_values

BEST = "best/"  # tags of the table's run, by task


@dataclass
class _Finished:
    """The finished seeds of one method on one task."""

    shown: Shown
    scores: list[float] = field(default_factory=list)
    up: list[int] = field(default_factory=list)
    down: list[int] = field(default_factory=list)
    one_time: list[int] = field(default_factory=list)


class Summary:
    """Collects the records of a table as they come; cells that diverged, or that no row shows, have no score here."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._found: dict[tuple[str, str], _Finished] = {}

    def add(self, record: RunRecord, shown: Shown, about: About) -> None:
        """Take in a record; one that was taken in already counts once."""
        score = table_values(record, shown, about)["score"]
        if score is None or record.cell_id in self._seen:
            return
        self._seen.add(record.cell_id)
        entry = self._found.setdefault((record.cell.task, "+".join(shown.rows)), _Finished(shown))
        entry.scores.append(score)
        entry.up.append(sum(found.up_bytes for found in record.rounds))
        entry.down.append(sum(found.down_bytes for found in record.rounds))
        entry.one_time.append(record.setup_bytes)

    def metrics(self) -> dict[str, float]:
        """`score/mrpc/fedavg` and the like: means over seeds, in the units of records, and how many seeds."""
        values: dict[str, float] = {}
        for (task, rows), entry in self._found.items():
            place = f"{task}/{rows}"
            values |= {
                f"score/{place}": fmean(entry.scores),
                f"bytes/uplink/{place}": fmean(entry.up),
                f"bytes/downlink/{place}": fmean(entry.down),
                f"bytes/one_time_distribution/{place}": fmean(entry.one_time),
                f"seeds/{place}": len(entry.scores),
            }
        return values

    def best(self) -> dict[str, str]:
        """A tag for each task: its best method by the mean score, or those that tie, as a row of a Markdown table."""
        by_task: dict[str, list[_Finished]] = {}
        for (task, _), entry in self._found.items():
            by_task.setdefault(task, []).append(entry)
        return {BEST + task: _row(task, found) for task, found in sorted(by_task.items())}


def note(title: str, tags: Mapping[str, str]) -> str:
    """The description of a table's run, as Markdown; tags: those of the run, with the best of each task."""
    rows = [text for name, text in sorted(tags.items()) if name.startswith(BEST)]
    head = "| task | best of those run, without † | score | mean | uplink, bytes | downlink, bytes | seeds |"
    return "\n".join([title, "", head, "|---" * 7 + "|", *rows]) if rows else title


def _row(task: str, found: list[_Finished]) -> str:
    of_paper = [entry for entry in found if not entry.shown.is_reference]
    found = of_paper or found
    measured = metric(found[0].shown.score)
    top = measured.best(fmean(entry.scores) for entry in found) or 0.0
    best = [entry for entry in found if fmean(entry.scores) == top]
    cells = (
        task,
        f"{', '.join(entry.shown.method for entry in best)} (of {len(found)})",
        best[0].shown.score,
        measured.in_unit(f"{measured.shown(top):.2f}"),
        " / ".join(f"{fmean(entry.up):,.0f}" for entry in best),
        " / ".join(f"{fmean(entry.down):,.0f}" for entry in best),
        " / ".join(str(len(entry.scores)) for entry in best),
    )
    return "| " + " | ".join(text.replace("|", "/") for text in cells) + " |"
