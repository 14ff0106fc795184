"""The view of communication costs: a paper's equations, and the bytes that cross the wire, derived and measured.

Options: baselines, the rows that gains are over. The benchmark says by `closed_forms` which equation is a row's, and
publishes the equations' terms at the row "parameters" and gains at the columns "gain_over_<row>". The bytes are those
of the benchmark's first task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import partial

from benchmarks.costs import Terms
from reports.notes import data_notes, deviation_notes, row_notes, scale_note, selection_notes
from reports.page import Page, Request
from reports.views.costs.closed import printed_terms
from reports.views.costs.frame import frame
from reports.views.costs.join import Costs, join
from reports.views.costs.plot import cost_plot
from reports.views.costs.tables import grids


def _method(found: Costs) -> Iterator[str]:
    """How the numbers came about."""
    request = found.request
    paper, backbone = request.benchmark.paper, found.paper_scale.backbone
    terms = printed_terms(request)
    named = ", ".join(f"{term.name} {getattr(terms, term.name):,.10g}" for term in fields(Terms))
    yield f"Bytes: {paper.bytes_convention}. Gain: the baseline's bytes over the method's."
    yield f"Closed forms, first line: the equation with the printed parameters ({named}; sizes in bytes)."
    yield (
        f"In consistent bytes: the same equation with sizes counted on {backbone}'s shapes, every byte alike; also "
        "where a head's SizeOf(W_s) is not printed."
    )
    if found.derived:
        yield (
            f"On the wire, derived: one round of the real channel on {backbone}'s shapes, times the rounds, with "
            f"{terms.n_s:,.0f} texts. Beside a method: how many layers' embeddings of each text it sends, all "
            "tokens' or, of one layer, [CLS] alone."
        )
    yield (
        "Measured: the ledger's bytes of all rounds, mean over n seeds. Set-up is the pre-trained model, sent to every "
        "client once; the paper leaves it out, and it is in no other number."
    )


def costs(request: Request) -> Page:
    """Equations beside print, what the paper's own encoder sends, what ours sent, and a bar plot."""
    found = join(request)
    return request.page(
        grids=grids(found),
        notes=(
            scale_note(request.scale),
            *_method(found),
            *row_notes(request.rows),
            *data_notes(request),
            *selection_notes(request),
            *deviation_notes(request),
        ),
        frame=partial(frame, found),
        figure=partial(cost_plot, found),
    )
