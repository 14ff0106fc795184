"""The audit of FedFreezeBERT: what its text states, held against itself, its equations and its model's shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from itertools import chain

from benchmarks.spec import Benchmark
from reports.audit.checks import Finding, Material, against_exact, digits, listed, sentences, show
from reports.evidence.equations import Costs
from reports.evidence.published import MEGABYTE, PARAMETERS, Numbers, places_of
from reports.evidence.records import Request
from reports.evidence.statistics import NORMAL_975, welch_test
from reports.pages.text import number

TEXT, SCORES = "Text", "Table 3"  # "Text": stated there, and of no table
TASK, F1 = "arsarcasm", "test/f1_pn"

CENTRALISED = {"c-psum": "C-FedFreezeBERT with P-SUM", "c-hsum": "C-FedFreezeBERT with H-SUM"}
SPLIT, SPLIT_HSUM = "fedsplitbert-ordinary", "fedsplitbert-hsum"
BASELINES = {"fedavg-ordinary": "FedAvg/FedProx", "central-ordinary": "centralised training", SPLIT: "FedSplitBERT"}
GAINS = "Relative gains of Table 3"
SPREAD = "The relevant improvement"
LEVEL = 0.05
COSTS = "Table 4"
COSTED = {"d-fedavg-psum": "D-FedFreezeBERT", "c-psum": "C-FedFreezeBERT"}
COST_BASELINES = {"fedavg-ordinary": "FedAvg", "fedsplitbert-ordinary": "FedSplitBERT"}
SIZES = "Sizes and counts"
LABELS, PATHS = 3, 4  # sentiments; paths of P-SUM and H-SUM, each with a classifier
FLOAT_BYTES = 4
_CHAIN = (TEXT, "hsum", "chain", "stated/layers")
_MILLIONS = (TEXT, "bert", "parameters", "stated/millions")
EQUATIONS = "Table 4 by the paper's equations"
BYTES = "Table 4 by exact bytes"


def findings(material: Material) -> tuple[Finding, ...]:
    """Hold the paper's stated numbers (its Tables 3 and 4 were not at hand) against each other.

    Asks for what the cells of Table 4 send; without it the findings by exact bytes are left out. ReportError where a
    stated value is missing.
    """
    table4 = material.request("fedfreezebert-table4", (*COSTED, *COST_BASELINES))
    numbers = material.numbers
    found = [
        *(both_statements(numbers), between_runs(numbers), of_the_test_set(numbers), stated(numbers)),
        *(
            aggregator(numbers),
            chain_of_layers(numbers, table4),
            by_equations(numbers, table4.benchmark),
            sentences(material),
        ),
    ]
    if material.derive is not None:
        derived = Costs(table4)
        found += [by_shapes(numbers, derived), by_bytes(numbers, derived)]
    return tuple(chain.from_iterable(found))


def f1(numbers: Numbers, row: str) -> Decimal:
    """F1^PN of a row of Table 3, in percent."""
    return numbers.at(SCORES, row, TASK, F1)


def gain_percent(numbers: Numbers, row: str, over: str) -> Decimal:
    """By how many percent a row is above a baseline, as the text states."""
    return numbers.at(TEXT, row, over, "stated/percent_over")


def _implied(numbers: Numbers, row: str, baseline: str) -> tuple[Decimal, Decimal]:
    """The least and the largest score of the baseline over which the row's gain rounds to the stated one."""
    gain = gain_percent(numbers, row, baseline)
    half = Decimal(1).scaleb(-places_of(gain)) / 2
    low, high = (f1(numbers, row) / (1 + (gain + end) / 100) for end in (half, -half))
    return low, high


def _from_to(low: Decimal, high: Decimal) -> str:
    return f"{show(low, 3)} to {show(high, 3)}"


def both_statements(numbers: Numbers) -> Iterator[Finding]:
    """Both gains over a baseline have to give one value of it."""
    for baseline, name in BASELINES.items():
        ranges = {row: _implied(numbers, row, baseline) for row in CENTRALISED}
        low, high = max(low for low, _ in ranges.values()), min(high for _, high in ranges.values())
        stated = " and ".join(f"{digits(gain_percent(numbers, row, baseline))} %" for row in CENTRALISED)
        common = _from_to(low, high) if low <= high else "none"
        statement = f"{' and '.join(CENTRALISED.values())} give one value of {name}"
        given = " and ".join(_from_to(*implied) for implied in ranges.values())
        how = (
            f"values over which {' and '.join(show(f1(numbers, row)) for row in CENTRALISED)} are so much higher, "
            f"rounded; common to both: {common}"
        )
        yield Finding(f"gains, {baseline}", GAINS, statement, stated, given, low <= high, how)


def _difference(numbers: Numbers) -> float:
    return float(f1(numbers, SPLIT_HSUM) - f1(numbers, SPLIT))


def between_runs(numbers: Numbers) -> Iterator[Finding]:
    """Welch's t test on the stated deviations."""
    sds, runs = (
        [float(numbers.at(TEXT, row, TASK, f"stated/{what}")) for row in (SPLIT_HSUM, SPLIT)] for what in ("sd", "runs")
    )
    t, freedom, p = welch_test(_difference(numbers), sds, runs)
    gain = digits(gain_percent(numbers, SPLIT_HSUM, SPLIT))
    statement = f"FedSplitBERT gains {gain} % by H-SUM, more than runs differ by chance"
    stated = f"sd {sds[1]:g} and {sds[0]:g} over {runs[0]:g} runs"
    how = (
        f"Welch's t test of {number(_difference(numbers), '+')} points, {number(freedom)} degrees of freedom, "
        f"two-sided at {LEVEL:g}; scores derived from the text, sd read as points"
    )
    given = f"t = {number(t)}, p = {number(p, places=4)}"
    yield Finding("relevant, runs", SPREAD, statement, stated, given, p < LEVEL, how)


def of_the_test_set(numbers: Numbers) -> Iterator[Finding]:
    """What another draw of test tweets would change, as a plain estimate."""
    tweets = 1000 * float(numbers.at(TEXT, "test", TASK, "stated/thousand_tweets"))
    shares = [float(f1(numbers, row)) / 100 for row in (SPLIT, SPLIT_HSUM)]
    errors = [100 * math.sqrt(share * (1 - share) / tweets) for share in shares]
    half = NORMAL_975 * math.hypot(*errors)
    difference = _difference(numbers)
    statement = "the gain is more than the test set's own sampling error"
    stated = f"{number(difference, '+')} points"
    how = (
        f"{NORMAL_975} × √2 × {number(errors[0])}, the standard error of a share of {tweets:.0f} tweets: a plain "
        "estimate, as if F1^PN were such a share and both models erred apart from each other. On the same tweets it is "
        "less, by an agreement that is not printed; five runs on one test set do not show it"
    )
    given, agrees = f"± {number(half)} points", abs(difference) > half
    yield Finding("relevant, test set", SPREAD, statement, stated, given, agrees, how)


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


def chain_of_layers(numbers: Numbers, table4: Request) -> Iterator[Finding]:
    """The layers that a token crosses on H-SUM's longest way: the encoder's, and one of each path."""
    value, depth = numbers.at(*_CHAIN), table4.scale.depth
    statement = "H-SUM “has a long chain of 14 BERT layers to be fine-tuned”".replace("14", digits(value))
    how = (
        f"the encoder's {depth} and then the {PATHS} of the paths, each of which adds its output to the next one's "
        f"input; the shortest way, into the last path, has {depth - PATHS + 1} + 1"
    )
    given = f"{depth} + {PATHS} = {depth + PATHS}"
    yield Finding("chain", SIZES, statement, digits(value), given, value == depth + PATHS, how)


def by_shapes(numbers: Numbers, table4: Costs) -> Iterator[Finding]:
    """The printed sizes beside those of the encoder's shapes."""
    for name, size in table4.term_bytes("psum").items():
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
