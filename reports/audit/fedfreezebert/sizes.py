"""Sizes and counts that the text states: of the data, the model and the aggregation architecture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from reports.audit.checks import against_exact, digits, show
from reports.audit.fedfreezebert.names import COSTS, TASK, TEXT
from reports.audit.finding import Finding, Numbers
from reports.page import Request
from reports.printed_costs import MEGABYTE, PARAMETERS, places_of
from reports.views.costs.closed import BERTS_OWN, sizes_by_head

SIZES = "Sizes and counts"
LABELS, PATHS = 3, 4  # sentiments; paths of P-SUM and H-SUM, each with a classifier
FLOAT_BYTES = 4


def _parameter(numbers: Numbers, name: str) -> Decimal:
    return numbers.at(COSTS, PARAMETERS, name)


def stated(numbers: Numbers) -> Iterator[Finding]:
    """What the text says in words beside its list of parameters."""
    size = _parameter(numbers, "BERT_mb")
    for key, statement, value, exact, how in (
        (
            "tweets",
            "“12k tweets for training” are the n_s of the equations, in thousands",
            numbers.at(TEXT, "training", TASK, "stated/thousand_tweets"),
            _parameter(numbers, "n_s") / 1000,
            "",
        ),
        (
            "megabytes",
            "Introduction: BERT has “a total size of 651 MB”",
            numbers.at(TEXT, "bert", "size", "stated/megabytes"),
            size,
            "",
        ),
        (
            "parameters",
            "Introduction: BERT “consists of 110 Million parameters”",
            numbers.at(TEXT, "bert", "parameters", "stated/millions"),
            size / FLOAT_BYTES,
            f"; {digits(size)} MB by {FLOAT_BYTES} bytes each. MARBERT's vocabulary is larger than that of a BERT of "
            "such a size",
        ),
    ):
        found = against_exact(key, SIZES, statement, value, exact, places_of(value), ("truncate", "round"))
        yield replace(found, explanation=found.explanation + how)


def aggregator(numbers: Numbers) -> Iterator[Finding]:
    """SizeOf(W_s): the four layers of P-SUM or H-SUM, with a classifier for each path."""
    layer, size = _parameter(numbers, "BL_mb"), _parameter(numbers, "W_s_mb")
    classifier = (_parameter(numbers, "dim_emb") + 1) * LABELS * FLOAT_BYTES / MEGABYTE
    exact = PATHS * (layer + classifier)
    found = against_exact(
        "W_s", SIZES, f"SizeOf(W_s) is {PATHS} layers and {PATHS} classifiers, in MB", size, exact, 2, ("round",)
    )
    shared = show(PATHS * layer + classifier)
    yield replace(found, explanation=f"{found.explanation}; with one classifier for all paths {shared}")


def by_shapes(numbers: Numbers, table4: Request) -> Iterator[Finding]:
    """The printed sizes beside those of the encoder's shapes."""
    sizes = sizes_by_head(table4)
    own, whole = sizes["psum"], sizes[BERTS_OWN]
    for name, size in (
        ("W_s", own.head_bytes),
        ("BL", own.layer_bytes),
        ("BE", own.embeddings_bytes),
        ("BERT", whole.model_bytes),
    ):
        value = _parameter(numbers, f"{name}_mb")
        exact = Decimal(size) / MEGABYTE
        statement = f"SizeOf({name}) of {table4.scale.backbone}, in MB"
        yield against_exact(f"shape, {name}", SIZES, statement, value, exact, places_of(value), ("round", "truncate"))
