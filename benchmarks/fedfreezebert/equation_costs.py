"""Table 4: communication by the paper's equations, and the bytes on the wire, derived and measured.

Option: baselines, the rows that gains refer to. The benchmark's `closed_forms` give each row's equation; its published
CSV has the equations' terms in the row "parameters" and gains in the columns "gain_over_<row>". Bytes are for the
benchmark's first task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from decimal import Decimal
from functools import cached_property

from matplotlib.figure import Figure

from benchmarks.costs import Terms, byte_unit
from benchmarks.experiment import Row
from benchmarks.run_config import JSON
from fedsim.errors import plural
from reports.evidence.equations import Costs, Equation
from reports.evidence.published import AS_PUBLISHED, DIFFERS, MEGABYTE, is_printed_as, places_of
from reports.evidence.records import Request
from reports.evidence.statistics import printed
from reports.evidence.traffic import Cost
from reports.frame import Place, Quantities, Shown
from reports.pages.page import Grid, Group, Line, keys_of
from reports.pages.plots import HOLLOW, Dots, Panel, digits, dot_plot
from reports.pages.text import NOTHING, ONE_TIME, dagger_note, human_bytes, not_run, number

DEPENDS = "depends on texts"
KINDS = {"features": "features", "masks": "masks", "labels": "labels", "parameters": "weights"}  # and their names
PRINTED, CONSISTENT = "equation, as printed", "equation, consistent bytes"
DERIVED, MEASURED = "wire, derived", "wire, measured"


class CostTables(Quantities):
    """Bytes over all rounds, clients and, unless stated otherwise, both directions."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.costs = Costs(request)
        self.gigabyte = request.benchmark.paper.gigabyte

    @cached_property
    def wires(self) -> Mapping[str, Mapping[str, Cost]]:
        """How bytes on the wire are counted -> row id -> its cost; derived ones only if there are any."""
        derived = {DERIVED: self.costs.derived} if self.costs.derived else {}
        return derived | {MEASURED: self.costs.measured}

    def lines(self) -> Iterator[dict[str, JSON]]:
        """Each row's equation, then its bytes on the wire."""
        request, equations = self.request, {equation.row.id: equation for equation in self.costs.equations}
        for row in request.rows:
            common = keys_of(request, row, request.columns[0]) | {"encoder": request.paper_scale.backbone}
            if row.id in equations:
                yield from (common | line for line in _equation_lines(equations[row.id]))
            for counted, costs in self.wires.items():
                cost, base = costs.get(row.id), common | {"counted": counted}
                base |= {"encoder": request.scale.backbone} if counted == MEASURED else {}
                if cost is None:
                    yield base | {"quantity": self._unknown(row, counted)}
                    continue
                sizes = {"bytes": cost.total_bytes, "up_bytes": cost.up_bytes, "down_bytes": cost.down_bytes}
                sizes |= {f"{name}_bytes": cost.kinds.get(kind, 0) for kind, name in KINDS.items()}
                base |= {"n_seeds": cost.seeds or None}
                for name, size in (sizes | {"setup_bytes": cost.setup_bytes}).items():
                    yield base | {"quantity": name, "value": size}
                for over, gain in self.costs.gains(costs)[row.id].items():
                    yield base | {"quantity": "gain", "over": over, "value": gain}

    def _unknown(self, row: Row, counted: str) -> str:
        return not_run(self.request, row, self.request.columns[0]) if counted == MEASURED else DEPENDS

    # ---- tables ----------------------------------------------------------------------------------------------------

    def _gains(self, counted: str) -> list[Shown]:
        headers = (("gain over", *base.name.split(" · ")) for base in self.costs.baselines)
        places = ((counted, "gain", base.id) for base in self.costs.baselines)
        return [Shown(*column) for column in zip(headers, places, strict=True)]

    def _gb(self, size: float) -> str:
        return number(size / self.gigabyte) if size >= 0.005 * self.gigabyte else "<0.01"

    def _equation_group(self, equation: Equation) -> Group:
        row, lines = equation.row, []

        def add(label: str, size: Place) -> None:
            if self.value(row, size) is not None:
                lines.append(Line(label, self.cells(row, (Shown((), size, self._gb), *self._gains(size[0])))))

        printed_gains, published = equation.printed_gains, equation.published
        places = {base: places_of(published[base]) if base in published else 1 for base in printed_gains}
        gains = (str(printed(gain, places=places[base])) for base, gain in printed_gains.items())
        label = f"eq. {equation.form.equation}: {equation.form.text}"
        lines.append(Line(label, (self._gb(equation.printed_gb * self.gigabyte), *gains), is_main=True))
        if published:
            same = {base: is_printed_as(Decimal(str(printed_gains[base])), gain) for base, gain in published.items()}
            texts = {base: f"{gain.normalize():f}" for base, gain in published.items()}
            verdicts = {base: AS_PUBLISHED if same[base] else DIFFERS for base in published}
            for label, cells in (("reported", texts), ("verdict", verdicts)):
                lines.append(Line(label, ("", *(cells.get(base, "") for base in printed_gains))))
        add("in consistent bytes", (CONSISTENT, "bytes"))
        add("on the wire", (DERIVED, "bytes"))
        return Group(self.request.name_of(row), tuple(lines))

    def _features_sent(self, row: Row) -> str:
        """How many layers' embeddings a method sends per text, or [CLS] for one token of one layer; "" if unknown.

        Bytes that do not follow from shapes depend on the texts, so they include embeddings.
        """
        derived, sizes = self.costs.derived.get(row.id), self.costs.sizes.get(row.head)
        if sizes is None:
            return ""
        if derived is not None and "features" not in derived.kinds:
            return NOTHING
        return plural(sizes.layers_read, "layer") if sizes.all_tokens else "[CLS]"

    def _bytes_grid(self, title: str, counted: str) -> Grid:
        """Rows are methods: bytes by direction and kind, with gains."""

        def size(name: str, *header: str) -> Shown:
            return Shown(header, (counted, name), lambda size: human_bytes(size, self.gigabyte) if size else NOTHING)

        columns = [size("up_bytes", "uplink"), size("down_bytes", "downlink"), size("bytes", "both")]
        columns += [*self._gains(counted), *(size(f"{name}_bytes", "including", name) for name in KINDS.values())]
        columns += [size("setup_bytes", *ONE_TIME)]
        if counted == MEASURED:
            columns = [Shown(("n", "seeds"), (counted, "bytes"), str, "n_seeds"), *columns]
        groups = []
        for row in self.request.rows:
            has_bytes = self.value(row, (counted, "bytes")) is not None
            missing = (self._unknown(row, counted), *[""] * (len(columns) - 1))
            cells = self.cells(row, columns) if has_bytes else missing
            groups.append(Group(self.request.name_of(row), (Line(self._features_sent(row), cells),)))
        return Grid(title, tuple(column.header for column in columns), tuple(groups))

    def grids(self) -> Iterator[Grid]:
        """Equations (groups are methods, lines the ways to count), then the wire, derived and measured."""
        label = self.request.paper_scale.label
        for_paper = f"for the paper's encoder ({label}), without training: the same at every scale"
        headers = (("cost", "GB"), *(column.header for column in self._gains(PRINTED)))
        groups = tuple(map(self._equation_group, self.costs.equations))
        yield Grid(self.title(f"closed forms {for_paper}"), headers, groups)
        titles = {DERIVED: self.title(f"bytes on the wire, derived {for_paper}")}
        titles[MEASURED] = f"{self.request.heading}: bytes on the wire, measured"
        shown = [wire for wire in self.wires if wire != MEASURED or self.values(self.request.rows, (wire, "bytes"))]
        yield from (self._bytes_grid(titles[counted], counted) for counted in shown)

    def method(self) -> Iterator[str]:
        """Conventions, the equations' parameters, and how bytes are derived and measured."""
        paper, backbone, terms = self.request.benchmark.paper, self.request.paper_scale.backbone, self.costs.terms
        named = ", ".join(f"{term.name} {getattr(terms, term.name):,.10g}" for term in fields(Terms))
        yield (
            f"Bytes: {paper.bytes_convention}, without the one-time model distribution. Gain: the baseline's bytes "
            "over the method's."
        )
        yield (
            f"Closed forms, first line: the equation with the printed parameters ({named}; sizes in bytes). In "
            f"consistent bytes: the same equation with sizes counted on {backbone}'s shapes, every byte alike."
        )
        if self.costs.derived:
            head = [row.head for row in self.request.benchmark.rows if row.printed][-1]
            sizes = self.costs.term_bytes(head).items()
            named = ", ".join(f"SizeOf({term}) {number(size / MEGABYTE)} MB" for term, size in sizes)
            yield f"Sizes by {backbone}'s shapes, W_s of the paper's last method: {named}."
            yield (
                f"On the wire, derived: one round of the real channel on {backbone}'s shapes, times the rounds, with "
                f"{terms.n_s:,.0f} texts. Next to a method: how many layers' embeddings it sends per text."
            )
        yield "Measured: the ledger's bytes of all rounds, mean over n seeds."

    def plot(self) -> Figure:
        """Measured bytes on the left; bytes derived for the paper's encoder, if known, on the right."""
        request, rows, panels = self.request, self.request.rows, []
        wires = (self.values(rows, (counted, "bytes")) for counted in (MEASURED, DERIVED))
        unit, name = byte_unit(max((size for sizes in wires for size in sizes.values()), default=0), self.gigabyte)

        def dots(label: str, counted: str, **style: object) -> Dots:
            sizes = self.values(rows, (counted, "bytes"))
            return Dots(label, {method: size / unit for method, size in sizes.items()}, style)

        def text(row: Row, counted: str) -> str:
            size = self.value(row, (counted, "bytes"))
            if size is None:
                return "not run" if counted == MEASURED else DEPENDS
            gains = (self.value(row, column.place) for column in self._gains(counted))
            over = " and ".join(f"{digits(gain)}×" for gain in gains if gain is not None)
            return ", ".join(filter(None, (human_bytes(size, self.gigabyte), over)))

        drawn = [counted for counted in (MEASURED, DERIVED) if self.values(rows, (counted, "bytes"))] or [MEASURED]
        for counted in drawn:
            encoder = request.scale.backbone if counted == MEASURED else request.paper_scale.backbone
            equations = [dots("the paper's equation", CONSISTENT, **HOLLOW, markersize=8)] if counted == DERIVED else []
            texts = {self.request.name_of(row): text(row, counted) for row in rows}
            title = f"{counted.removeprefix('wire, ')}, {encoder}"
            panels.append(Panel(title, list(texts), [dots("on the wire", counted), *equations], texts))
        baselines = " and ".join(row.name for row in self.costs.baselines)
        caption = (
            "Bytes of all clients, without the one-time model distribution; next to each mark its gains over "
            f"{baselines}. Diamonds: the paper's equations in consistent bytes.{dagger_note(self.request, rows)}"
        )
        return dot_plot(request.heading, panels, f"{name}, all rounds, both directions", caption, across=2)


def _equation_lines(equation: Equation) -> Iterator[dict[str, JSON]]:
    yield {"counted": PRINTED, "quantity": "cost_gb", "value": equation.printed_gb}
    for base, gain in equation.printed_gains.items():
        reported = equation.published.get(base)
        published = None if reported is None else float(reported)
        yield {"counted": PRINTED, "quantity": "gain", "over": base, "value": gain, "published": published}
    if equation.consistent_bytes is not None:
        yield {"counted": CONSISTENT, "quantity": "bytes", "value": equation.consistent_bytes}
        for base, gain in equation.consistent_gains.items():
            yield {"counted": CONSISTENT, "quantity": "gain", "over": base, "value": gain}
