"""The audit of FedBERT: what its tables and its text print, held against each other; budgets and sizes beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import chain, combinations

from reports.audit.checks import Finding, Material, against_exact, digits, listed, sentences, show
from reports.audit.fedbert_costs import budgets, by_shapes, table2
from reports.evidence.published import Numbers

TEXT, SMALL, BASE, GPT, PERIODS = "Text", "Table 6", "Table 7", "Table 8", "Figure 9"
ACCURACY, PEARSON, MISMATCHED = "test/accuracy", "test/pearson", "mismatched/accuracy"
SCORES = {
    "rte-central": (ACCURACY,),
    "mrpc-central": (ACCURACY,),
    "mnli-central": (ACCURACY, MISMATCHED),
    "qnli-central": (ACCURACY,),
    "qqp-central": (ACCURACY,),
    "stsb-central": (PEARSON,),
    "sst2-whole-central": (ACCURACY,),
}
NAMES = {"rte-central": "RTE", "stsb-central": "STS-B", "mnli-central": "MNLI"}
REPEATED, WORDS, RANKS = "Numbers that are printed more than once", "Words", "Averages and ranks"
PERPLEXITY = ("wikitext-causal", "test/perplexity")
GPT_WORDS = 50257  # of GPT-2's vocabulary
THREE = ("fedavg", "emdavg", "heavg")


def findings(material: Material) -> tuple[Finding, ...]:
    """Hold the paper's printed values against each other, and its budgets against its corpus.

    Asks for what the cells of pre-training send; without it the findings by shapes are left out. ReportError where a
    printed value is missing.
    """
    numbers = material.numbers
    names = {row.id: row.name for row in material.benchmarks["fedbert-table6"].rows}
    found = [
        *(every_fifty(numbers, names), differences(numbers), twins(numbers, names)),
        *(percents(numbers), second(numbers), best(numbers, names), gpt(numbers), questions()),
        *(table2(), budgets(numbers), by_shapes(material), sentences(material)),
    ]
    return tuple(chain.from_iterable(found))


# ---- what is printed twice ---------------------------------------------------------------------------------------


def every_fifty(numbers: Numbers, names: Mapping[str, str]) -> Iterator[Finding]:
    """Section 5.4's period of 50 epochs is that of Table 6 (section 4.2.1)."""
    for row, task in (("fedavg", "rte-central"), ("fedavg", "stsb-central"), ("emdavg", "rte-central")):
        score = SCORES[task][0]
        own, printed = (numbers.at(table, row, task, score) for table in (PERIODS, SMALL))
        same = [
            names[place[1]]
            for place, value in numbers.values.items()
            if place[0] == SMALL and place[2:] == (task, score) and value == own
        ]
        statement = f"Section 5.4, averaged every 50 epochs: {names[row]} on {NAMES[task]} is that of Table 6"
        how = f"in Table 6 it is the number of: {listed(same)}"
        yield Finding(f"period 50, {row}, {task}", REPEATED, statement, show(own), show(printed), own == printed, how)
    task, score = "rte-central", ACCURACY
    own, single = numbers.at(PERIODS, "fedavg-every-100", task, score), numbers.at(SMALL, "single", task, score)
    statement = "Section 5.4, averaged every 100 epochs: FedAvg on RTE is a number of its own"
    how = (
        "Single Client's in Table 6; FedAvg's every 50 epochs is Parallel FedAvg's, so both may be other rows' numbers"
    )
    yield Finding("period 100, fedavg", REPEATED, statement, show(own), show(single), own != single, how)


def differences(numbers: Numbers) -> Iterator[Finding]:
    """The differences that section 5.4 states beside the numbers of which they are."""
    for row in ("fedavg", "emdavg"):
        long, short = (numbers.at(PERIODS, f"{row}{of}", "rte-central", ACCURACY) for of in ("-every-100", ""))
        stated = numbers.at(TEXT, f"{row}-every-100", "rte-central", "stated/difference")
        statement = f"Section 5.4: the “biggest difference value” on RTE, {digits(short)} and {digits(long)}"
        yield against_exact(f"difference, {row}", REPEATED, statement, stated, abs(short - long), 1, ("round",))


def twins(numbers: Numbers, names: Mapping[str, str]) -> Iterator[Finding]:
    """Two runs that agree to four digits on both of MNLI's sets."""
    for table in (SMALL, BASE):
        pairs = {
            row: tuple(numbers.at(table, row, "mnli-central", score) for score in (ACCURACY, MISMATCHED))
            for row in dict.fromkeys(place[1] for place in numbers.values if place[0] == table)
        }
        equal = [
            f"{names[first]} and {names[second]} {digits(pairs[first][0])}/{digits(pairs[first][1])}"
            for first, second in combinations(pairs, 2)
            if pairs[first] == pairs[second]
        ]
        statement = f"{table}: no two rows have the same two numbers on MNLI"
        how = "9815 and 9832 examples: two runs rarely agree on both to the last digit; one cell may be another's copy"
        yield Finding(f"twins, {table}", REPEATED, statement, "none", listed(equal), not equal, how)


# ---- words -------------------------------------------------------------------------------------------------------


def percents(numbers: Numbers) -> Iterator[Finding]:
    """Section 5.1's decrease on STS-B: points, or percent of the score."""
    task, score = "stsb-central", PEARSON
    low = numbers.at(SMALL, "emdavg", task, score)
    for rival, of in (("central", "centralized"), ("share", "sharing")):
        high, stated = (
            numbers.at(SMALL, rival, task, score),
            numbers.at(TEXT, "emdavg", task, f"stated/percent_below_{rival}"),
        )
        exact = 100 * (high - low) / high
        statement = f"Section 5.1: EmdAvg on STS-B “decreases” so many percent, against the {of} pattern"
        found = against_exact(f"percent, {rival}", WORDS, statement, stated, exact, 1, ("round",))
        how = f"({digits(high)} − {digits(low)}) / {digits(high)}; {show(high - low)} are points"
        yield replace(found, explanation=how)


def questions() -> Iterator[Finding]:
    """Section 4 numbers its questions, and section 5 answers them."""
    statement = "Section 4: RQ3 is the average period, RQ4 the number of clients"
    yield Finding("questions", WORDS, statement, "RQ3, RQ4", "RQ4, RQ3", False, "as sections 5.3 and 5.4 head them")


# ---- averages and ranks ------------------------------------------------------------------------------------------


def _average(numbers: Numbers, table: str, row: str) -> Decimal:
    values = [numbers.at(table, row, task, score) for task, scores in SCORES.items() for score in scores]
    return sum(values, Decimal(0)) / len(values)


def second(numbers: Numbers) -> Iterator[Finding]:
    """Section 5.1: FedAvg is the suboptimal model among three FSL models by average."""
    for table in (SMALL, BASE):
        means = {row: _average(numbers, table, row) for row in THREE}
        place = sorted(means, key=means.__getitem__, reverse=True).index("fedavg") + 1
        statement = f"{table}: “FedAvg is the suboptimal model among three FSL models by average”"
        how = f"means of eight numbers: FedAvg, EmdAvg, Head-Emd Avg {', '.join(map(show, means.values()))}"
        yield Finding(f"second, {table}", RANKS, statement, "2nd of 3", f"{place}. of 3", place == 2, how)


def best(numbers: Numbers, names: Mapping[str, str]) -> Iterator[Finding]:
    """Section 5.1 calls Head-Emd Avg the best of the split modes, section 5.2 Head-Emd Share."""
    for table, modes in (
        (SMALL, ("share", "emdavg", "heavg", "parallel-fedavg")),
        (BASE, ("share", "emdavg", "heavg")),
    ):
        means = {row: _average(numbers, table, row) for row in modes}
        first = max(means, key=means.__getitem__)
        statement = f"{table}: of the split modes, “Head-Emd Avg achieves the best performance” (5.1), on average"
        given = ", ".join(f"{names[row]} {show(mean)}" for row, mean in means.items())
        how = f"the best is {names[first]}, as section 5.2 says"
        yield Finding(f"best, {table}", RANKS, statement, names["heavg"], given, first == "heavg", how)


def gpt(numbers: Numbers) -> Iterator[Finding]:
    """Table 8: what share loses, what a model that knows nothing has, and two rows that a tied head makes one."""
    value = {row: numbers.at(GPT, row, *PERPLEXITY) for row in ("central", "fedavg", "share", "emdavg", "heavg")}
    stated = numbers.at(TEXT, "share", "decrease", "stated/perplexity")
    statement = "Section 5.1: share's perplexity against centralised training, as a loss in performance"
    how = "a “negligible decrease” in a row of losses; of perplexity less is better, so share is the better one"
    given = show(value["share"] - value["central"], sign="+")
    yield Finding("decrease", WORDS, statement, show(stated, sign="+"), given, value["share"] > value["central"], how)
    statement = "Table 8: FedAvg “dose not converge”: worse than answering every token alike"
    how = "perplexity of the uniform answer is the number of tokens of GPT-2's vocabulary"
    agrees = value["fedavg"] > GPT_WORDS
    yield Finding("diverged", RANKS, statement, digits(value["fedavg"]), f"{GPT_WORDS}", agrees, how)
    statement = "Table 8: EmdAvg and Head-Emd Avg with GPT-2, whose head is its word embeddings"
    how = (
        "a tied head has no parameters of its own, so both average the same tensors: one algorithm, run twice or with "
        "heads that are not tied; the paper does not say"
    )
    same = value["emdavg"] == value["heavg"]
    yield Finding(
        "tied", RANKS, statement, f"{digits(value['emdavg'])} / {digits(value['heavg'])}", "one number", same, how
    )
