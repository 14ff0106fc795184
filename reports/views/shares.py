"""The view of each client's label distribution: requested, obtained and published.

Option: labels, task -> its labels as (id, name) in the paper's order; a task with scores has no labels. The numbers
come from any record's partition report, so the rows cost nothing to run; their scores are not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product, zip_longest

from matplotlib.figure import Figure

from benchmarks.experiment import Column
from benchmarks.results import RunResult
from benchmarks.run_config import JSON, VALIDATION
from reports.evidence.labels import label_range
from reports.evidence.published import published_for
from reports.evidence.records import DEMO
from reports.evidence.statistics import mean, printed
from reports.frame import TableView
from reports.pages.page import Grid, Group, Line, keys_of
from reports.pages.plots import HOLLOW, Dots, Panel, dot_plot, mark, with_points
from reports.pages.text import NOT_RUN, NOTHING, data_notes, joined, number, scale_note
from reports.views.comparison import difference

_TICK = {"marker": "|", "markersize": 13, "markeredgewidth": 1.6, "color": "black"}
WHOLE = "all"  # all clients together
Lines = list[dict[str, JSON]]


def _short(value: float | None) -> str:
    return NOTHING if value is None else f"{printed(value).normalize():f}"


class Shares(TableView):
    """Lines by client. by_cell: (row id, task) -> lines in the order of clients; [] without a report."""

    ranks = False

    @cached_property
    def published(self) -> Mapping[tuple[str, str, str], float]:
        return {place: entry.value for place, entry in published_for(self.request).items()}

    @cached_property
    def clients(self) -> list[str]:
        request, cells = self.request, product(self.request.rows, self.request.columns)
        most = max(request.benchmark.cell(row, column, request.scale, 0).clients for row, column in cells)
        return [str(client + 1) for client in range(most)]

    def grid(self, about: str, headers: Iterable[tuple[str, str]], groups: Iterable[Group]) -> Grid:
        """Groups are clients, columns tasks."""
        return Grid(f"{self.request.heading}: {about}", tuple(headers), tuple(groups), stub="Client")

    def series(self, column: Column) -> Mapping[str, Lines]:
        """Lines of single clients, by the meaning of a colour."""
        raise NotImplementedError

    def plot(self) -> Figure:
        """A panel for each task: a line for each client, a colour for each label or way to partition the task."""
        panels = []
        columns, left_out = with_points(
            self.request.columns, lambda at: any(_by_client(lines, "obtained") for lines in self.series(at).values())
        )
        series = [self.series(column) for column in columns]
        labels = zip_longest(*series, fillvalue="")  # of one colour, such as "label 1 / entailment"
        names_at = [" / ".join(filter(None, dict.fromkeys(names))) for names in labels]
        for column, by_label in zip(columns, series, strict=True):
            dots = []
            for place, lines in enumerate(by_label.values()):
                ends = {
                    f"client {line['client']}": (line["lowest"], line["highest"]) for line in lines if "lowest" in line
                }
                dots += [
                    Dots(names_at[place], _by_client(lines, "obtained"), mark(place), ends),
                    Dots("requested", _by_client(lines, "requested"), _TICK),
                    Dots("reported", _by_client(lines, "published"), HOLLOW | {"markersize": 9, "color": "black"}),
                ]
            is_score = any(each.whiskers for each in dots)
            title = f"{column.name}: mean score, lowest to highest" if is_score else f"{column.name}: share (%)"
            panels.append(Panel(title, [f"client {client}" for client in self.clients], dots))
        caption = f"Full marks: obtained, training and held-out examples together.{left_out}"
        return dot_plot(self.request.heading, panels, "", caption)


def _by_client(lines: Lines, name: str) -> dict[str, float]:
    return {f"client {line['client']}": line[name] for line in lines if line.get(name) is not None}


class LabelShares(Shares):
    """Lines by client and label, or mean score, from the record of the lowest seed.

    The last lines of a task are those of all clients together: means over clients, and the label's percentage in the
    whole data, at least and at most. A task without a record has no lines.
    """

    def labels_of(self, column: Column) -> Sequence[tuple[int, str]]:
        """A task's labels by the view's option; empty for a task with scores."""
        named: Mapping[str, Sequence[tuple[int, str]]] = self.options.get("labels", {})
        return named.get(column.task, ())

    def records_of(self, column: Column) -> list[RunResult]:
        """A task's records in the order of seeds."""
        records = (record for row in self.request.rows for record in self.request.records_of(row, column))
        return sorted(records, key=lambda record: record.cell.seed)

    @cached_property
    def by_task(self) -> dict[str, Lines]:
        """Task -> its lines."""
        by_task = {}
        for column in self.columns_of_records:
            record, labels = self.records_of(column)[0], self.labels_of(column)
            lines = self._lines_of(record, column)
            n, report = max(1, len(labels)), record.partition
            whole = {"client": WHOLE, "examples": sum(line["examples"] for line in lines[::n])}
            whole["available"] = report["n_examples"]
            for place, line in enumerate(lines[:n]):
                values = [entry["obtained"] for entry in lines if entry["score"] == line["score"]]
                low, high = label_range(report, labels[place][0]) if labels else (None, None)
                about = {"obtained": mean(values), "data_low": low, "data_high": high}
                lines.append(whole | {"score": line["score"], "label": line["label"]} | about)
            by_task[column.task] = lines
        return by_task

    @cached_property
    def columns_of_records(self) -> list[Column]:
        return [column for column in self.request.columns if self.records_of(column)]

    def _lines_of(self, record: RunResult, column: Column) -> Lines:
        report, labels, lines = record.partition, self.labels_of(column), Lines()
        for client, n_test in enumerate(record.held_out_counts(column.evaluation)):
            held = record.clients[client]
            sizes = {"train": held["train"], "validation": held.get(VALIDATION, 0), "test": n_test}
            common: dict[str, JSON] = {"client": str(client + 1), **sizes, "examples": sum(sizes.values())}
            values: Lines = []
            if report["scores"] is not None:
                low, centre, high = report["scores"][client]
                line = {"score": "mean_score", "label": "mean score", "obtained": centre}
                values.append(line | {"lowest": low, "highest": high})
            else:
                counts, requested = report["obtained_counts"][client], report["requested_shares"]
                for label, name in labels:
                    place = report["label_ids"].index(label)
                    line = {"score": f"share/label{label}", "label": name}
                    line |= {"obtained": 100 * counts[place] / sum(counts)}
                    values.append(line | {"requested": requested and 100 * requested[client][place]})
            for line in values:
                published = self.published.get((f"client{client + 1}", column.task, str(line["score"])))
                lines.append(
                    common | line | {"published": published, "difference": difference(line["obtained"], published)}
                )
        return lines

    def lines(self) -> Iterator[dict[str, JSON]]:
        """Shares in percent; client "all" has the means over clients."""
        for column in self.request.columns:
            of_task = self.by_task.get(column.task)
            common = keys_of(self.request, column=column) | {"status": "run" if of_task else NOT_RUN}
            yield from (common | line for line in of_task or [{}])

    def notes(self) -> Iterator[str]:
        """Every note under the tables."""
        request = self.request
        if request.scale.id == DEMO:
            yield scale_note(request)
        else:
            yield f"{request.scale.id.capitalize()} scale: {request.label}. The numbers do not depend on the encoder."
        yield (
            "Obtained: all parts of each client together; shares in percent, in the paper's order (each column's "
            "header); for scores the mean (lowest–highest). Difference: obtained - reported, in points. In the data, "
            "between: the first label's percentage if no unused example has it, and if all have it."
        )
        for column in request.columns:
            records = self.records_of(column)
            if len(records) > 1:
                held = [record.partition["obtained_counts"] or record.partition["scores"] for record in records]
                others = "differ" if any(one != held[0] for one in held) else "are the same"
                seeds = ", ".join(str(record.cell.seed) for record in records[1:])
                yield f"{column.name}: seed {records[0].cell.seed} shown; seeds {seeds} {others}."
        yield from data_notes(request)

    def grids(self) -> tuple[Grid, ...]:
        """Lines are requested, obtained, published; the last group is for all clients together."""
        columns, groups = self.columns_of_records or self.request.columns, []
        for client in [*self.clients, *([WHOLE] if self.by_task else [])]:
            parts = [self._of(column, client) for column in columns]
            lines = [line for part in parts for line in part]
            held = ["train", *(name for name in ("validation", "test") if any(line.get(name) for line in lines))]
            texts = [self._texts(part, held) if part else {} for part in parts]
            labels = ["requested", "obtained", " + ".join(held)]
            if client == WHOLE:
                labels = list(next(filter(None, texts)))
            elif any(line["published"] is not None for line in lines):
                labels[2:2] = ["reported", "difference"]
            group = []
            for label in labels:
                missing = NOT_RUN if label == "obtained" else NOTHING
                group.append(Line(label, tuple(text.get(label, missing) for text in texts), label == "obtained"))
            groups.append(Group(client, tuple(group)))
        names = ("/".join(name for _, name in self.labels_of(column)) for column in columns)
        headers = ((column.name, name or "mean score") for column, name in zip(columns, names, strict=True))
        return (self.grid("label distributions", headers, groups),)

    def _of(self, column: Column, client: str) -> Lines:
        return [line for line in self.by_task.get(column.task, []) if line["client"] == client]

    def _texts(self, lines: Lines, held: Sequence[str]) -> dict[str, str]:
        """Lines of a client, or of all together: a label's shares, or a mean score with the lowest and highest."""
        first = lines[0]
        if first["client"] == WHOLE:
            unused, ends = first["available"] - first["examples"], (first["data_low"], first["data_high"])
            return {
                "mean over clients": "/".join(number(line["obtained"]) for line in lines),
                "first label in the data, between": "–".join(dict.fromkeys(map(number, ends))),
                "examples in the data": str(first["available"]),
                "used": str(first["examples"]),
                "unused": f"{unused} ({number(100 * unused / first['available'])} %)",
            }
        text: Callable[[float | None], str] = number if "lowest" in first else _short
        requested, span = joined(_short(line.get("requested")) for line in lines), ""
        if "lowest" in first:
            requested = f"part {first['client']} of {len(self.clients)}"
            span = f" ({_short(first['lowest'])}–{_short(first['highest'])})"
        return {
            "requested": requested,
            "obtained": joined(number(line["obtained"]) for line in lines) + span,
            "reported": joined(text(line["published"]) for line in lines),
            "difference": joined(number(line["difference"], "+") for line in lines),
            " + ".join(held): " + ".join(str(first[part]) for part in held),
        }

    def series(self, column: Column) -> Mapping[str, Lines]:
        """Labels; of two, the first one says all."""
        lines = [line for line in self.by_task.get(column.task, []) if line["client"] != WHOLE]
        labels = list(dict.fromkeys(line["label"] for line in lines))
        shown = labels[:1] if len(labels) == 2 else labels
        return {label: [line for line in lines if line["label"] == label] for label in shown}
