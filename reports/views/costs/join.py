"""Everything that a page of costs shows, of one benchmark at one scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.costs import ModelSizes
from benchmarks.spec import Row, Scale
from reports.layout import NOTHING
from reports.page import Request
from reports.views.costs.closed import Closed, baselines_of, closed_forms, sizes_by_head
from reports.views.costs.traffic import Traffic, derived_traffic, measured_traffic


@dataclass(frozen=True)
class Costs:
    """Equations, and by row id what the paper's own encoder sends and what our records say was sent.

    sizes: head -> the paper's own encoder under it. It and derived are empty where nothing is derived.
    """

    request: Request
    closed: tuple[Closed, ...]
    sizes: Mapping[str, ModelSizes]
    derived: Mapping[str, Traffic]
    measured: Mapping[str, Traffic]

    @property
    def baselines(self) -> tuple[Row, ...]:
        """The rows that gains are over."""
        return baselines_of(self.request)

    @property
    def paper_scale(self) -> Scale:
        """The scale of the paper's own encoder."""
        return self.request.benchmark.scale("paper")

    def sent_of_a_text(self, row: Row) -> str:
        """How many layers' embeddings a method sends of each text, or [CLS] for one token's of one layer.

        Nothing where it is not known. What shapes alone do not give depends on the texts: it holds embeddings of them.
        """
        known = self.derived.get(row.id)
        if row.head not in self.sizes:
            return ""
        if known is not None and "features" not in known.kinds:
            return NOTHING
        if not self.sizes[row.head].all_tokens:
            return "[CLS]"
        layers = self.sizes[row.head].layers_read
        return f"{layers} layer{'s' if layers > 1 else ''}"


def join(request: Request) -> Costs:
    """Equations, shapes and records; ReportError where a record or the published values are damaged."""
    return Costs(
        request, closed_forms(request), sizes_by_head(request), derived_traffic(request), measured_traffic(request)
    )
