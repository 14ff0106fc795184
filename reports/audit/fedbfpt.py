"""The audit of FedBFPT: what its tables print, held against each other, its text, its formulas and its model's shapes.

Costs are of one client: seconds of one epoch, and MiB of a file of what it uploads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import chain, pairwise

from benchmarks.claims import P_VALUE
from reports.audit.checks import Finding, Material, against_exact, digits, listed, sentences, show
from reports.audit.fedbfpt_costs import COMMUNICATION, COSTS, PERCENT, RIVAL, UNITS, by_shapes, computation, costed
from reports.evidence.inference import estimate
from reports.evidence.published import Numbers
from reports.evidence.statistics import Component
from reports.pages.text import number

TEXT = "Text"
SCORES = {"jnlpba": "test/entity_f1", "scierc": "test/entity_f1", "rct20k": "test/accuracy"}
NAMES = {"jnlpba": "JNLPBA", "scierc": "SciERC", "rct20k": "Rct-20k"}
DOMAINS = {"corpus-biology": "Biology", "corpus-computer-science": "CS", "corpus-medicine": "Medicine"}
SHARES, REPEATED, WORDS = "Shares of costs", "Numbers that are printed more than once", "Words and marks"
SIZES, DISTRIBUTIONS = "Appendix Table 5", ("uniform", "skewed")
SPREAD = "The t-test, and what seeds change"
HALF = Decimal("0.005")  # of the last printed digit
MARGIN = 2.0  # points: claim 1a's
FREEDOM_LOST = 2  # by the two means of a t test


def findings(material: Material) -> tuple[Finding, ...]:
    """Hold the paper's printed values, its appendix's and its text's against each other.

    Asks for what the cells of further pre-training send and what their clients compute; without it the findings by
    shapes are left out. ReportError where a printed value is missing.
    """
    numbers = material.numbers
    rows = (row for table in ("fedbfpt-pretraining", "fedbfpt-table3") for row in material.benchmarks[table].rows)
    names = {row.id: row.name for row in rows}
    found = [
        *(shares(numbers, names), repeated(numbers, names), reduced(numbers), caption(numbers), accuracy(numbers)),
        *(marks(numbers, names), iterations(numbers)),
        *(sums(numbers), unchanged(numbers), evenly(numbers), normal(numbers), large(numbers)),
        *(computation(numbers), comparable(numbers), resolved(numbers, names)),
        *(by_shapes(material), sentences(material)),
    ]
    return tuple(chain.from_iterable(found))


# ---- costs and scores -------------------------------------------------------------------------------------------


def shares(numbers: Numbers, names: Mapping[str, str]) -> Iterator[Finding]:
    """Every share of BERT-FL's cost; where later tables print the same cost and share again, it is one finding."""
    seen = set()
    for table, row, quantity in costed(numbers):
        share = numbers.values.get((table, row, PERCENT[quantity], ""))
        cost, whole = numbers.at(table, row, quantity), numbers.at("Table 2", RIVAL, quantity)
        if share is None or (cost, share) in seen:
            continue
        seen.add((cost, share))
        statement = f"{table}: {names[row]}'s {COSTS[quantity]} in percent of BERT-FL's"
        found = against_exact(
            f"share, {table}, {row}, {quantity}", SHARES, statement, share, 100 * cost / whole, 2, ("round",)
        )
        yield replace(found, explanation=f"{digits(cost)} / {digits(whole)} {UNITS[quantity]}; {found.explanation}")


def repeated(numbers: Numbers, names: Mapping[str, str]) -> Iterator[Finding]:
    """What stands in several tables: scores task by task, costs one by one."""
    columns = {(task, score): f"scores on {NAMES[task]}" for task, score in SCORES.items()}
    columns |= {(quantity, ""): name.replace("cost", "costs") for quantity, name in COSTS.items()}
    for column, name in columns.items():
        values: dict[str, dict[str, Decimal]] = {}
        for table, row, *of in numbers.values:
            if tuple(of) == column:
                values.setdefault(row, {})[table] = numbers.at(table, row, *of)
        several = {row: own for row, own in values.items() if len(own) > 1}
        differing = [
            f"{names[row]}: {', '.join(f'{digits(value)} in {table}' for table, value in own.items())}"
            for row, own in several.items()
            if len(set(own.values())) > 1
        ]
        statement = f"Rows that stand in several tables have one number there: {name}"
        stated, given = f"{len(several)} rows", f"{len(several) - len(differing)} have"
        how = f"{', '.join(names[row] for row in several)}; others: {listed(differing)}"
        yield Finding(f"repeated, {column[0]}", REPEATED, statement, stated, given, not differing, how)


# ---- words and marks --------------------------------------------------------------------------------------------


def reduced(numbers: Numbers) -> Iterator[Finding]:
    """The abstract's "reducing by" against "using … of" in the introduction and section 5.2."""
    for quantity, name in COSTS.items():
        stated = numbers.at(TEXT, "reduced", quantity, "stated/percent")
        own, whole = (numbers.at("Table 2", row, quantity) for row in ("fedbfpt", RIVAL))
        saved = 100 - 100 * own / whole
        statement = f"Abstract: “reducing” {name} “by” so many percent"
        found = against_exact(f"reduced, {quantity}", WORDS, statement, stated, saved, 2, ("round",))
        how = f"100 − 100 · {digits(own)} / {digits(whole)}: what is left is {show(100 - saved)} %, as section 5.2 says"
        yield replace(found, explanation=how)


def caption(numbers: Numbers) -> Iterator[Finding]:
    """Table 5 varies the local depth: every row sends one trained layer."""
    rows = ("fedbfpt-4", "fedbfpt", "fedbfpt-8")
    sent = [numbers.at("Table 5", row, COMMUNICATION) for row in rows]
    statement = "Table 5: “Effect of Varying the Number of Trained T-layers”"
    given = " / ".join(f"{show(size)} MB" for size in sent)
    varies = len(set(sent)) == len(sent)
    how = "what 4, 6 and 8 trained layers would send differs; one layer is trained in each, of local models so deep"
    yield Finding("caption", WORDS, statement, "4 / 6 / 8 trained", given, varies, how)


def accuracy(numbers: Numbers) -> Iterator[Finding]:
    """The appendix calls every last column accuracy."""
    for table in ("Appendix Table 1", "Appendix Table 3"):
        own, f1 = (numbers.at(place, "fedbfpt", "jnlpba", SCORES["jnlpba"]) for place in (table, "Table 3"))
        statement = f"{table}: its last column is “Accuracy”"
        how = "FEDBFPT's number there is the F1 of Table 3, as the text says of NER"
        given = f"F1 of Table 3: {show(f1)}"
        yield Finding(f"accuracy, {table}", WORDS, statement, show(own), given, False if own == f1 else None, how)


def marks(numbers: Numbers, names: Mapping[str, str]) -> Iterator[Finding]:
    """Section 5.2: “the best and the second best measures in tables are bold and underlined, respectively”."""
    marked: dict[tuple[str, str], dict[int, list[str]]] = {}
    for (table, row, column, mark), rank in numbers.values.items():
        if table == TEXT and mark.endswith("/rank"):
            marked.setdefault((mark.removesuffix("/rank"), column), {1: [], 2: []})[int(rank)].append(row)
    for (table, column), stated in marked.items():
        score, name = (SCORES[column], NAMES[column]) if column in SCORES else ("", COSTS[column])
        values = {at[1]: value for at, value in numbers.values.items() if (at[0], *at[2:]) == (table, column, score)}
        best = [*sorted(set(values.values()), reverse=bool(score)), None]
        ranked = {rank: [row for row in values if values[row] == best[rank - 1]] for rank in stated}
        printed, given = (
            "; ".join(", ".join(names[row] for row in values if row in found[rank]) or "none" for rank in found)
            for found in (stated, ranked)
        )
        statement = f"{table}, {name}: the best is bold, the second best underlined"
        how = "as section 5.2 says of its tables; marks are those of the extracted text at hand"
        yield Finding(f"marks, {table}, {column}", WORDS, statement, printed, given, printed == given, how)


def iterations(numbers: Numbers) -> Iterator[Finding]:
    r"""How many iterations I there are: ⌈I/2⌉ train layer 0, half of the rest layer 1, and so on."""
    layers, local = 3, int(numbers.at(TEXT, "local", "layers", "stated/count"))
    least = next(total for total in range(1, 64) if len(_halves(total)) >= layers)
    statement = r"The number I of iterations, by Figures 1 and 2 (ℓ = 2) and \SP (i ≤ m^L)"
    how = f"three layers need {least} iterations: {' + '.join(map(str, _halves(least)))}; the authors' code has 5"
    yield Finding("iterations", WORDS, statement, "none", f"{least} to {local}", None, how)


def _halves(total: int) -> list[int]:
    """Iterations of each layer."""
    parts = []
    while total:
        parts.append((total + 1) // 2)
        total -= parts[-1]
    return parts


# ---- sizes ------------------------------------------------------------------------------------------------------


def _sizes(numbers: Numbers, row: str, corpus: str) -> list[Decimal]:
    return [numbers.at(SIZES, row, corpus, f"client{client}/megabytes") for client in range(1, 7)]


def sums(numbers: Numbers) -> Iterator[Finding]:
    """The line "Center": what the clients hold together; each number rounded by itself."""
    for row in DISTRIBUTIONS:
        for corpus, name in DOMAINS.items():
            sizes, centre = _sizes(numbers, row, corpus), numbers.at(SIZES, row, corpus, "all/megabytes")
            total, most = sum(sizes, Decimal(0)), (len(sizes) + 1) * HALF
            how = f"apart by {show(total - centre, sign='+')}; roundings allow {digits(most)}"
            statement = f"{SIZES}, {row}, {name}: the six clients sum to “Center”, in MB"
            agrees = abs(total - centre) <= most
            yield Finding(f"sum, {row}, {corpus}", SIZES, statement, show(centre), show(total), agrees, how)


def unchanged(numbers: Numbers) -> Iterator[Finding]:
    """Section 5.4: the total sum of the partitioned datasets remains unchanged."""
    for corpus, name in DOMAINS.items():
        uniform, skewed = (sum(_sizes(numbers, row, corpus), Decimal(0)) for row in DISTRIBUTIONS)
        statement = f"Section 5.4, {name}: “the total sum of the partitioned datasets remains unchanged”, in MB"
        how = f"sums of the clients, uniform and skewed; roundings allow {digits(12 * HALF)}"
        agrees = abs(uniform - skewed) <= 12 * HALF
        yield Finding(f"unchanged, {corpus}", SIZES, statement, show(uniform), show(skewed), agrees, how)


def evenly(numbers: Numbers) -> Iterator[Finding]:
    """Section 5.1: the dataset is evenly partitioned."""
    off = {}
    for corpus, name in DOMAINS.items():
        sizes = _sizes(numbers, "uniform", corpus)
        mean = sum(sizes, Decimal(0)) / len(sizes)
        off[name] = max(abs(100 * (size / mean - 1)) for size in sizes)
    worst = max(off, key=off.__getitem__)
    statement, given = "Section 5.1: the dataset is “evenly partitioned”", f"within {show(off[worst])} % of the mean"
    how = f"of the uniform clients; farthest in {worst}; within 5 % counts as even"
    yield Finding("evenly", SIZES, statement, "even", given, off[worst] <= 5, how)


def normal(numbers: Numbers) -> Iterator[Finding]:
    """Section 5.4: a normal distribution determines the skewed sizes."""
    width = 5 / 6

    def below(z: float) -> float:
        return 50 * (1 + math.erf(z / math.sqrt(2)))

    bounds = [0.0, *(below(width * cut) for cut in (-2, -1, 0, 1, 2)), 100.0]
    wanted = [high - low for low, high in pairwise(bounds)]
    for corpus, name in DOMAINS.items():
        sizes = _sizes(numbers, "skewed", corpus)
        given = [float(100 * size / sum(sizes, Decimal(0))) for size in sizes]
        statement = f"Section 5.4, {name}: a normal distribution determines the skewed sizes, in percent"
        how = "six parts, cut every 5/6 of its standard deviation around its mean; that width is fitted, not printed"
        agrees = all(abs(own - its) < 0.1 for own, its in zip(given, wanted, strict=True))
        stated, fitted = (" / ".join(map(number, values)) for values in (given, wanted))
        yield Finding(f"normal, {corpus}", SIZES, statement, stated, fitted, agrees, how)


def large(numbers: Numbers) -> Iterator[Finding]:
    """The appendix: large differences in size between the clients' datasets."""
    ratios = {
        name: max(own) / min(own) for corpus, name in DOMAINS.items() for own in [_sizes(numbers, "skewed", corpus)]
    }
    statement = "Appendix 1.3: skewed clients show “large differences in size”"
    given = listed([f"{name} {show(ratio)} ×" for name, ratio in ratios.items()])
    how = "the largest client over the smallest; twice is large"
    yield Finding("large", SIZES, statement, "large", given, min(ratios.values()) >= 2, how)


# ---- seeds ------------------------------------------------------------------------------------------------------


def _error(numbers: Numbers, task: str) -> tuple[float, float, int]:
    """Difference to BERT-FL in Table 3, its standard error by the printed p, and the seeds of each method."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    seeds = int(numbers.at(TEXT, "t_test", "seeds", "stated/count"))
    difference, p = (
        float(numbers.at("Table 3", "fedbfpt", task, SCORES[task]) - numbers.at("Table 3", RIVAL, task, SCORES[task])),
        float(numbers.at(TEXT, "fedbfpt", task, P_VALUE)),
    )
    t = float(stdtrit(2 * seeds - FREEDOM_LOST, 1 - p / 2))
    return difference, abs(difference) / t, seeds


def comparable(numbers: Numbers) -> Iterator[Finding]:
    """Footnote 3: p-values above 0.05 show that FEDBFPT and BERT-FL are comparable; two one-sided tests would."""
    for task, name in NAMES.items():
        difference, error, seeds = _error(numbers, task)
        components = [Component(error, 2 * seeds - FREEDOM_LOST)]
        low, high = estimate(difference, components, seeds).interval or (-math.inf, math.inf)
        p = numbers.at(TEXT, "fedbfpt", task, P_VALUE)
        statement = f"Footnote 3, {name}: the t-test shows that “the two methods are comparable”"
        given = f"90 % interval {number(low, '+')} to {number(high, '+')} points"
        how = (
            f"p > 0.05 shows no equality; an interval within ± {MARGIN:g} points would. Were Table 3's difference, "
            f"{number(difference, '+')}, that of the means over {seeds} seeds, its error would be {number(error)}"
        )
        agrees = low > -MARGIN and high < MARGIN
        yield Finding(f"comparable, {task}", SPREAD, statement, f"p = {digits(p)}", given, agrees, how)


def resolved(numbers: Numbers, names: Mapping[str, str]) -> Iterator[Finding]:
    """Whether the ablations differ by more than seeds, one seed a row as the appendix has it."""
    tables = {"scierc": "Table 4", "jnlpba": "Appendix Table 1", "rct20k": "Appendix Table 2"}
    for task, table in tables.items():
        _, error, seeds = _error(numbers, task)
        single = error * math.sqrt(seeds)  # of the difference of two runs
        components = [Component(single, 2 * seeds - FREEDOM_LOST)]
        bound = estimate(0.0, components, seeds, level=0.025).interval or (0.0, math.inf)
        own = numbers.at(table, "fedbfpt", task, SCORES[task])
        others = {
            place[1]: own - value
            for place, value in numbers.values.items()
            if (place[0], *place[2:]) == (table, task, SCORES[task]) and place[1] != "fedbfpt"
        }
        statement = f"{table}: each variant is below FEDBFPT by more than seeds change"
        stated = listed([f"{names[row]} {show(gap)}" for row, gap in others.items()])
        how = (
            f"two runs that differ by chance alone, in 19 of 20 cases: ± {number(bound[1])} points, from the error "
            "that footnote 3 implies if Table 3's difference is that of the means; the tables have one seed"
        )
        agrees = all(float(gap) > bound[1] for gap in others.values())
        yield Finding(f"resolved, {task}", SPREAD, statement, stated, f"± {number(bound[1])}", agrees, how)
