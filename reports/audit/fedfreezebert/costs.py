"""Sizes and counts that FedFreezeBERT's text states, and its gains in communication, from equations and from bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from benchmarks.spec import Benchmark
from reports.audit.checks import Finding, against_exact, digits, listed, show
from reports.audit.fedfreezebert.scores import TASK, TEXT
from reports.evidence.equations import BERTS_OWN, Costs
from reports.evidence.published import MEGABYTE, PARAMETERS, Numbers, places_of
from reports.pages.text import number

COSTS = "Table 4"
COSTED = {"d-fedavg-psum": "D-FedFreezeBERT", "c-psum": "C-FedFreezeBERT"}
COST_BASELINES = {"fedavg-ordinary": "FedAvg", "fedsplitbert-ordinary": "FedSplitBERT"}
SIZES = "Sizes and counts"
LABELS, PATHS = 3, 4  # sentiments; paths of P-SUM and H-SUM, each with a classifier
FLOAT_BYTES = 4
_MILLIONS = (TEXT, "bert", "parameters", "stated/millions")
EQUATIONS = "Table 4 by the paper's equations"
BYTES = "Table 4 by exact bytes"


def _parameter(numbers: Numbers, name: str) -> Decimal:
    return numbers.at(COSTS, PARAMETERS, name)


def stated(numbers: Numbers) -> Iterator[Finding]:
    """What the text says in words beside its list of parameters."""
    size, texts = _parameter(numbers, "BERT_mb"), _parameter(numbers, "n_s")
    tweets = numbers.at(TEXT, "training", TASK, "stated/thousand_tweets")
    whole, millions = numbers.at(TEXT, "bert", "size", "stated/megabytes"), numbers.at(*_MILLIONS)
    larger, exact_millions = "MARBERT's vocabulary is larger than that of a BERT of such a size", size / FLOAT_BYTES
    each = f"; {digits(size)} MB by {FLOAT_BYTES} bytes each. {larger}"
    for key, statement, value, exact, how in (
        ("tweets", "“12k tweets for training” are the n_s of the equations, in thousands", tweets, texts / 1000, ""),
        ("megabytes", "Introduction: BERT has “a total size of 651 MB”", whole, size, ""),
        ("parameters", "Introduction: BERT “consists of 110 Million parameters”", millions, exact_millions, each),
    ):
        found = against_exact(key, SIZES, statement, value, exact, places_of(value), ("truncate", "round"))
        yield replace(found, explanation=found.explanation + how)


def aggregator(numbers: Numbers) -> Iterator[Finding]:
    """SizeOf(W_s): the four layers of P-SUM or H-SUM, with a classifier for each path."""
    layer, size = _parameter(numbers, "BL_mb"), _parameter(numbers, "W_s_mb")
    classifier = (_parameter(numbers, "dim_emb") + 1) * LABELS * FLOAT_BYTES / MEGABYTE
    exact = PATHS * (layer + classifier)
    statement = f"SizeOf(W_s) is {PATHS} layers and {PATHS} classifiers, in MB"
    found = against_exact("W_s", SIZES, statement, size, exact, 2, ("round",))
    shared = show(PATHS * layer + classifier)
    yield replace(found, explanation=f"{found.explanation}; with one classifier for all paths {shared}")


def by_shapes(numbers: Numbers, table4: Costs) -> Iterator[Finding]:
    """The printed sizes beside those of the encoder's shapes."""
    own, whole = table4.sizes["psum"], table4.sizes[BERTS_OWN]
    sizes = {"W_s": own.head_bytes, "BL": own.layer_bytes, "BE": own.embeddings_bytes, "BERT": whole.model_bytes}
    for name, size in sizes.items():
        value = _parameter(numbers, f"{name}_mb")
        exact = Decimal(size) / MEGABYTE
        statement = f"SizeOf({name}) of {table4.request.scale.backbone}, in MB"
        yield against_exact(f"shape, {name}", SIZES, statement, value, exact, places_of(value), ("round", "truncate"))


def _gain(numbers: Numbers, key: str, subject: str, row: str, base: str, exact: float, how: str) -> Finding:
    value = numbers.at(COSTS, row, f"gain_over_{base}")
    statement = f"{COSTED[row]} over {COST_BASELINES[base]}: the gain {key}"
    name, places = f"gain {key}, {row}, {base}", places_of(value)
    found = against_exact(name, subject, statement, value, Decimal(str(exact)), places, ("round",))
    return replace(found, explanation=f"{found.explanation}; {how}")


def by_equations(numbers: Numbers, table4: Benchmark) -> Iterator[Finding]:
    """Equations 1 to 5 with the printed parameters, in the paper's units."""
    terms, forms = numbers.terms(COSTS), table4.closed_forms
    cost = {row: forms[row].cost_gb(terms, table4.paper.gigabyte) for row in (*COSTED, *COST_BASELINES)}
    for row in COSTED:
        for base in COST_BASELINES:
            by = f"by equations {forms[base].equation} and {forms[row].equation}"
            how = f"{number(cost[base])} / {number(cost[row])} GB {by}"
            yield _gain(numbers, "by equations", EQUATIONS, row, base, cost[base] / cost[row], how)


def by_bytes(numbers: Numbers, table4: Costs) -> Iterator[Finding]:
    """The equations with every byte counted alike, and what really crosses the wire, with the encoder's own sizes."""
    closed = {found.row.id: found for found in table4.closed}
    gains = table4.gains(table4.derived)
    for row in COSTED:
        units = closed[row].form.units
        mixed = "; the paper adds features in GB of 2^30 bytes to weights in GB of 1024 · 10^6" if units else ""
        for base in COST_BASELINES:
            how = f"equations {closed[base].form.equation} and {closed[row].form.equation}{mixed}"
            gain = closed[row].consistent_gains[base]
            yield _gain(numbers, "in consistent bytes", BYTES, row, base, gain, how)
        kinds = table4.derived[row].kinds.items()
        sent = listed([f"{kind} {number(size / MEGABYTE)} MB" for kind, size in kinds if size])
        for base in COST_BASELINES:
            yield _gain(numbers, "on the wire", BYTES, row, base, gains[row][base], f"sent: {sent}")
