"""The view of split learning's costs: a client's epoch by closed form, on the wire, and in seconds where measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from benchmarks.run_config import JSON
from reports.evidence.split import SHARED, WAYS, Compared, Split
from reports.pages.page import KEYS, Grid, Group, Line, keys_of, long_form
from reports.pages.text import NOT_RUN, NOTHING, human_bytes, notes_under, number, row_name

TIMED = ("client", "server", "whole")
HOUR = 3600
EXACT, DIFFERS = "to the byte", "differs"
RANKS = False
FIELDS = [*KEYS, "encoder", "counted", "quantity", "value", "n_seeds"]
_OTHERS = ("masks",)

join = Split


def _bytes(size: float) -> str:
    return human_bytes(size) if size else NOTHING


def _cells(found: Compared, base: Compared | None) -> tuple[str, ...]:
    parts = found.closed
    times = f"{number(found.total / base.total)} ×" if base is not None and base.total else NOTHING
    own = (_bytes(sum(parts.get(kind, 0) for kind in SHARED[:2])), _bytes(parts.get("parameters", 0)))
    others = tuple(_bytes(found.counted.get(kind, 0)) for kind in _OTHERS)
    return (*own, _bytes(found.total), times, _verdict(found), *others)


def _verdict(found: Compared) -> str:
    return NOTHING if not found.seeds else EXACT if found.agrees else DIFFERS


def grids(found: Split) -> tuple[Grid, ...]:
    """A table for the paper's encoders where their bytes are derived, one for the records, and one of seconds."""
    request, baseline = found.request, found.request.benchmark.view.options["baseline"]
    name = f"{request.benchmark.paper.name}, {request.benchmark.place}"
    headers = (
        *(
            ("Table 2",),
            ("closed form", "of a run"),
            ("crossing", "closed form"),
            ("averaged, handed on", "closed form"),
        ),
        *(("together",), ("over FedAvg's",), ("on the wire",), ("masks", "apart")),
    )
    empty = (NOT_RUN, *[""] * (len(headers) - 3))
    tables = []
    for title, lines in (
        *((f"{name} · {encoder}, derived: the same at every scale", own) for encoder, own in found.derived.items()),
        (f"{request.heading}: measured", found.measured),
    ):
        if not lines and "derived" in title:
            continue
        forms = request.benchmark.closed_forms
        groups = tuple(
            Group(
                row_name(row),
                (
                    Line(
                        "",
                        (
                            *(forms[row.id].equation, forms[row.id].text),
                            *(_cells(lines[row.id], lines.get(baseline)) if row.id in lines else empty),
                        ),
                    ),
                ),
            )
            for row in found.rows
        )
        tables.append(Grid(f"{title}; one client's epoch", headers, groups))
    return (*tables, *_seconds(found, name))


def _seconds(found: Split, name: str) -> Iterator[Grid]:
    if found.timed:
        headers = (("T(E) + T(H)", "client"), ("T(T)", "server"), ("T(W)", "unsplit"), ("client's share", "of T(T)"))
        groups = tuple(
            Group(model, (Line("", (*(number(own[of]) for of in TIMED), f"{number(_share(own))} %")),))
            for model, own in found.timed.items()
        )
        yield Grid(
            f"{name} · seconds of a batch, measured in one run of `make bench ARGS=split`", headers, groups, "Model"
        )

    if found.modelled:
        models = tuple(
            Group(f"{model}, {bandwidth}", (Line("", tuple(f"{number(own[way] / HOUR)} h" for way in WAYS)),))
            for (model, bandwidth), own in found.modelled.items()
        )
        title = f"{name} · modelled, not measured: hours until every client's text has been trained on once"
        yield Grid(title, tuple((way, "modelled") for way in WAYS), models, "Model, bandwidth")


def _share(own: Mapping[str, float]) -> float:
    return 100 * own["client"] / own["server"]


def _method(found: Split) -> Iterator[str]:
    yield (
        "One client's epoch: bytes of the whole run, in both directions, over clients and a client's epochs. Crossing: "
        "4pL over the true batches, activations up and down and gradients up and down; averaged and handed on: the "
        "closed form's second term. Table 2 prints the first term alone, and N times it at the server."
    )
    yield (
        f"On the wire: the channel's own count, {EXACT} where activations, gradients and parameters are the closed "
        "form's; masks are beside it. Set-up, embeddings and head (or the whole model) sent to each client once, is in "
        "no number."
    )
    if found.modelled:
        yield (
            "Modelled: each party's seconds a token as measured on one machine, client and server alike, in blocks of "
            "128; every client has the bandwidth to itself, for one message after the other; FedAvg exchanges models "
            "once. Parallel: a client's own batches and bytes, or all clients' batches at the one server where that "
            "takes longer. No latency, and no client computes while it sends."
        )
    if found.derived:
        blocks = found.request.benchmark.view.options["blocks"]
        yield f"Derived: closed forms with the paper's encoders' sizes and {blocks:,} blocks of all clients together."


def notes(found: Split) -> Iterator[str]:
    """Every note under the tables."""
    return notes_under(found.request, _method(found))


def _lines(found: Split) -> Iterator[dict[str, JSON]]:
    ways = {("derived", name): own for name, own in found.derived.items()}
    ways["measured", found.request.scale.backbone] = found.measured
    for (counted, encoder), lines in ways.items():
        for own in lines.values():
            common = keys_of(found.request, own.row, found.request.columns[0]) | {"encoder": encoder}
            for how, parts in (("closed form", own.closed), (f"wire, {counted}", own.counted)):
                for kind, size in parts.items():
                    yield common | {"counted": how, "quantity": f"{kind}_bytes", "value": size, "n_seeds": own.seeds}
    for model, seconds in found.timed.items():
        for of in TIMED:
            yield (
                keys_of(found.request)
                | {"encoder": model, "counted": "timed", "quantity": f"{of}_seconds"}
                | {"value": seconds[of]}
            )
    for (model, bandwidth), times in found.modelled.items():
        for way, value in times.items():
            common = keys_of(found.request) | {"encoder": model, "counted": f"modelled, {bandwidth}"}
            yield common | {"quantity": f"{way}_epoch_seconds", "value": value}


def frame(found: Split) -> pd.DataFrame:
    """All numbers as a data frame of FIELDS: bytes of one client's epoch, and seconds of one batch."""
    return long_form(_lines(found), FIELDS, {"Int64": ("n_seeds",), "Float64": ("value",)})
