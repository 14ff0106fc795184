"""The view of bytes until a target: rounds and bytes, the gain over a baseline, and what the gain comes from.

Options: targets, task -> printed target in percent; baseline, the row that gains are over and whose last round is the
scale-free target; not_derivable, rows whose printed sizes no reading of the method yields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from reports.layout import score_label
from reports.notes import data_notes, deviation_notes, row_notes, scale_note, selection_notes
from reports.page import Page, Request
from reports.views.targets.derived import Derived, derive_costs
from reports.views.targets.frame import frame
from reports.views.targets.outcomes import baseline_of, find_outcomes
from reports.views.targets.plot import target_plot
from reports.views.targets.stated import is_comparable, stated_of
from reports.views.targets.tables import grids, kind_label


def _method(request: Request) -> Iterator[str]:
    """How the numbers came about."""
    base, paper = baseline_of(request).name, request.benchmark.scale("paper")
    percent = request.benchmark.view.options["targets"]
    named = ", ".join(
        f"{column.name} {score_label(column.averaged)} {percent[column.task]:g} %" for column in request.columns
    )
    yield (
        f"Two targets: {kind_label(request, 'baseline')}, mean over its seeds, for any encoder; and the printed one "
        f"({named}), which was set for {paper.backbone} and means little for another encoder."
    )
    yield (
        "Rounds: until the first whose score, mean over clients, is at the target or above; mean over the method's n "
        "seeds. Where a seed does not reach it, the method is censored: its bytes count all rounds of that seed (>), "
        f"and it has no gain. Where {base} is censored, the gain is at least (≥) the number."
    )
    yield (
        f"Bytes: {request.benchmark.paper.bytes_convention}, as the ledger counted them; a round: mean over rounds. "
        "Set-up is all clients' pre-trained model, sent once and in no other number."
    )
    yield (
        f"Gain: {base}'s bytes over the method's, which is the product of layers (values sent a round) × rounds × "
        "precision (bytes a value)."
    )


def _in_print(request: Request, derived: Sequence[Derived]) -> Iterator[str]:
    """How what is derived and what is stated are to be read."""
    if derived:
        base = baseline_of(request).name
        yield (
            "Derived: one round of the real channel on the encoder's shapes, without training; the rounds are those "
            f"that the printed cost and size imply, {base}'s for rows that are not printed. Cost and the first gain "
            "are computed as the paper's are, from sizes rounded to two decimals; the second gain from exact bytes."
        )
    for fact in stated_of(request):
        comparable = "" if is_comparable(request) else "; not comparable with this encoder's bytes"
        yield f"Stated in the text: {fact.row.name} on {fact.column.name}: {fact.text}{comparable}."


def targets(request: Request) -> Page:
    """Bytes until both targets, the gains, what the paper's own encoder gives, and a bar plot."""
    found, derived = find_outcomes(request), derive_costs(request)
    return request.page(
        grids=grids(found, derived),
        notes=(
            scale_note(request.scale),
            *_method(request),
            *_in_print(request, derived),
            *row_notes(request.rows),
            *data_notes(request),
            *selection_notes(request),
            *deviation_notes(request),
        ),
        frame=partial(frame, found, derived),
        figure=partial(target_plot, found),
    )
