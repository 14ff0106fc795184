"""The audit of FedBFPT's costs: printed seconds and sizes against its section 4, its tables and its model's shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from benchmarks.spec import Benchmark
from reports.audit.checks import Finding, Material, against_exact, digits, listed, show
from reports.evidence.published import Numbers
from reports.evidence.records import PAPER

COMPUTATION, COMMUNICATION = "computation_seconds", "communication_mb"
COSTS = {COMPUTATION: "computational cost", COMMUNICATION: "communication cost"}
UNITS = {COMPUTATION: "s", COMMUNICATION: "MB"}
PERCENT = {COMPUTATION: "computation_percent", COMMUNICATION: "communication_percent"}
RIVAL = "bert-fl"
WORK, BYTES = "Computation, section 4.1", "Communication by shapes, section 4.2"
LAYERS = 12  # of BERT-base; m^G
DEPTHS = {"fedbfpt-4": 4, "fedbfpt": 6, "fedbfpt-8": 8}
MIB = 2**20
FLOAT_BYTES = 4
WIDTH, LENGTH, WORDS = 768, 128, 30522  # H, S at which the authors' code cuts, and V
DOMAIN_TABLES = {
    "corpus-computer-science": "Table 4",
    "corpus-biology": "Appendix Table 1",
    "corpus-medicine": "Appendix Table 2",
}
VARIANTS = ("fedbfpt-no-pl", "fedbfpt-no-m", "fedbfpt-no-s", "fedbfpt-no-sp")
SAVED = ("bert-fl", "distilbert", "tinybert-6", "tinybert-4", "fedbfpt")  # Table 2
TABLE = "fedbfpt-pretraining"


def costed(numbers: Numbers) -> list[tuple[str, str, str]]:
    """Every (table, row, quantity) of a printed cost, the appendix's last."""
    found = [(table, row, column) for table, row, column, score in numbers.values if column in COSTS and not score]
    return sorted(found, key=lambda place: "Appendix" in place[0])


def _seconds(numbers: Numbers, row: str, table: str = "Table 2") -> Decimal:
    return numbers.at(table, row, COMPUTATION)


def computation(numbers: Numbers) -> Iterator[Finding]:
    """Printed seconds against each other and against the formula of section 4.1."""
    yield from (formula(numbers), gradient(numbers), sentence_length(), embedding())
    yield from (judge(numbers) for judge in (distilbert, alike, untrained, centre, domains))


def formula(numbers: Numbers) -> Finding:
    """Mf + mb layers: m^L + 1 of a local model, 2 m^G of BERT."""
    stated = {row: 100 * _seconds(numbers, row, "Table 5") / _seconds(numbers, RIVAL) for row in DEPTHS}
    given = {row: Decimal(100 * (depth + 1)) / (2 * LAYERS) for row, depth in DEPTHS.items()}
    statement = "O((mf + mb) · S² · H²): shares of BERT-FL's computation with 4, 6 and 8 local layers, in percent"
    how = f"mf = m^L and mb = 1 against mf = mb = {LAYERS}; gradients cross every layer above the trained one, too"
    agrees = all(abs(stated[row] - given[row]) < 1 for row in DEPTHS)
    texts = [" / ".join(map(show, shares.values())) for shares in (stated, given)]
    return Finding("formula", WORK, statement, texts[0], texts[1], agrees, how)


def gradient(numbers: Numbers) -> Finding:
    """What a further frozen layer costs against what one costs that is trained."""
    low, high = (_seconds(numbers, row, "Table 5") for row in ("fedbfpt-4", "fedbfpt-8"))
    frozen = (high - low) / (DEPTHS["fedbfpt-8"] - DEPTHS["fedbfpt-4"])
    trained = (_seconds(numbers, RIVAL) - _seconds(numbers, "fedbfpt-all", "Table 4")) / (LAYERS - DEPTHS["fedbfpt"])
    share = 100 * frozen / trained
    statement = "“mf = m_k^L (typically 6) and mb = 1 for the local model”: a further layer runs forward alone"
    how = (
        f"{show(frozen)} s a layer between depths 4 and 8, of {show(trained)} s a layer from 6 to {LAYERS} where all "
        "are trained. Of its three products, equal in size, forward is one, the gradient's way through a second"
    )
    return Finding("gradient", WORK, statement, "a third", f"{show(share)} %", share < 50, how)


def sentence_length() -> Finding:
    """Self-attention and feed forward in O(S² H²): twice the tokens would be four times the work."""

    def products(tokens: int) -> Decimal:
        """Of a layer: four square matrices, two of four times the width, and two products of tokens by tokens."""
        return Decimal(12 * tokens * WIDTH**2 + 2 * tokens**2 * WIDTH)

    ratio = products(2 * LENGTH) / products(LENGTH)
    statement = "Self-attention and feed forward take O(m · S² · H²): twice the tokens, four times the work"
    how = f"12 S H² + 2 S² H products a layer, H = {WIDTH}, from S = {LENGTH} to {2 * LENGTH}"
    return Finding("length", WORK, statement, "4 ×", f"{show(ratio)} ×", ratio >= 3, how)


def embedding() -> Finding:
    """What is left out of the sum: the embedding, beside FEDBFPT's layers, the fewest of all."""
    ratio = Decimal((DEPTHS["fedbfpt"] + 1) * LENGTH**2 * WIDTH) / (WORDS + LENGTH)
    statement = "Section 4.1: (V + S) · H ≪ (mf + mb) · S² · H²"
    how = f"V = {WORDS}, S = {LENGTH}, H = {WIDTH}, mf + mb = {DEPTHS['fedbfpt'] + 1}; ten times is much more"
    return Finding("embedding", WORK, statement, "much more", f"{show(ratio)} ×", ratio >= 10, how)


def distilbert(numbers: Numbers) -> Finding:
    """A model of six layers of BERT's width beside another one."""
    own, other = (_seconds(numbers, row) for row in ("distilbert", "tinybert-6"))
    sizes = [numbers.at("Table 2", row, COMMUNICATION) for row in ("distilbert", "tinybert-6")]
    statement = "Table 2: DistilBERT's seconds are those of six layers, as TinyBERT-6 has"
    how = (
        f"{numbers.at('Table 2', 'distilbert', PERCENT[COMPUTATION])} % of BERT-FL, which has twelve, at the size of "
        f"six ({digits(sizes[0])} against {digits(sizes[1])} MB); the authors' code loads it as a model of twelve"
    )
    return Finding("distilbert", WORK, statement, show(own), show(other), abs(own / other - 1) < Decimal("0.1"), how)


def alike(numbers: Numbers) -> Finding:
    """FEDBFPT-ALL trains a whole model of TinyBERT-6's shapes."""
    own, other = _seconds(numbers, "fedbfpt-all", "Table 4"), _seconds(numbers, "tinybert-6")
    statement = "FEDBFPT-ALL's seconds are TinyBERT-6's, whose shapes it trains"
    how = f"apart by {show(abs(100 * (own / other - 1)))} %: what timing alone changes"
    return Finding("alike", WORK, statement, show(own), show(other), abs(own / other - 1) < Decimal("0.01"), how)


def untrained(numbers: Numbers) -> Finding:
    """BERT is defined as never further pre-trained."""
    statement = "Table 2, costs in further pre-training: BERT, “without any further pre-training”"
    own = _seconds(numbers, "bert")
    return Finding("untrained", WORK, statement, show(own), "0", own == 0, "BERT-FL's number again")


def centre(numbers: Numbers) -> Finding:
    """BERT-C trains on all clients' data in one place."""
    clients = int(numbers.at("Text", "clients", "count", "stated/count"))
    own, client = _seconds(numbers, "bert-c"), _seconds(numbers, RIVAL)
    statement = f"Table 2: one epoch on the data of all {clients} clients takes as many times a client's"
    how = "the same seconds are printed of both: one of the two, a client's cost or the whole's, is not there"
    given = show(clients * client)
    return Finding("centre", WORK, statement, show(own), given, abs(own / client / clients - 1) < Decimal("0.1"), how)


def domains(numbers: Numbers) -> Finding:
    """Seconds of one epoch on corpora of other sizes."""
    times = {corpus: _seconds(numbers, "fedbfpt", table) for corpus, table in DOMAIN_TABLES.items()}
    sizes = {corpus: numbers.at("Appendix Table 5", "uniform", corpus, "all/megabytes") for corpus in times}
    first = next(iter(times))
    given = {corpus: times[first] * size / sizes[first] for corpus, size in sizes.items()}
    statement = "FEDBFPT's seconds of one epoch in computer science, biology and medicine"
    how = f"in proportion to {', '.join(map(digits, sizes.values()))} MB; printed is one corpus's, which is not named"
    agrees = all(abs(times[corpus] / given[corpus] - 1) < Decimal("0.1") for corpus in times)
    texts = [" / ".join(map(show, values.values())) for values in (times, given)]
    return Finding("domains", WORK, statement, texts[0], texts[1], agrees, how)


# ---- shapes -----------------------------------------------------------------------------------------------------


def by_shapes(material: Material) -> Iterator[Finding]:
    """Printed megabytes as MiB of a saved file, and section 4.2's sizes of a model's parts."""
    if material.derive is None or material.derive_client is None:
        return
    numbers, table = material.numbers, material.benchmarks[TABLE]
    scale, column, rows = table.scale(PAPER), table.columns[0], {row.id: row for row in table.rows}
    for row in (*SAVED, "fedbfpt-all"):
        found = material.derive_client(table.cell(rows[row], column, scale, 0))
        if found is not None:
            place = "Table 4" if row == "fedbfpt-all" else "Table 2"
            statement = f"{place}: {rows[row].name} uploads a file of so many MB"
            exact, raw = (Decimal(size) / MIB for size in (found.saved_bytes, found.up_bytes))
            printed = numbers.at(place, row, COMMUNICATION)
            made = against_exact(f"saved, {row}", BYTES, statement, printed, exact, 2, ("round",))
            how = f"MiB of what torch.save writes; {made.explanation}; the values alone are {show(raw)}"
            yield replace(made, explanation=how)
    yield from variants(material, table)
    plan = material.derive(table)(rows[RIVAL], column, scale)
    if plan is not None:
        sizes = plan.sizes
        yield from parts(sizes.embeddings_bytes, sizes.layer_bytes, sizes.head_bytes)
        yield whole(numbers, sizes.embeddings_bytes, sizes.layer_bytes, sizes.head_bytes)


def variants(material: Material, table: Benchmark) -> Iterator[Finding]:
    """The seconds of Table 4 that are one number: where the trained layer lies, gradients end."""
    rows = {row.id: row for row in table.rows}
    costs = {
        row: material.derive_client(table.cell(rows[row], table.columns[0], table.scale(PAPER), 0))
        for row in ("fedbfpt", *VARIANTS)
        if material.derive_client is not None
    }
    flops = {row: Decimal(found.flops) for row, found in costs.items() if found is not None}
    if len(flops) == len(costs) > 0:
        seconds = {row: _seconds(material.numbers, row, "Table 4") for row in flops}
        stated, given = ([100 * own[row] / own["fedbfpt"] for row in VARIANTS] for own in (seconds, flops))
        statement = f"Table 4: {', '.join(rows[row].name for row in VARIANTS)} compute as long as FEDBFPT, in percent"
        how = (
            "FLOPs of a client's training over all rounds, by the paper's encoder's shapes: a gradient ends at the "
            "trained layer, so the deeper it lies, the less is computed"
        )
        agrees = all(abs(own - its) < 1 for own, its in zip(stated, given, strict=True))
        texts = [" / ".join(map(show, shares)) for shares in (stated, given)]
        yield Finding("variants", WORK, statement, texts[0], texts[1], agrees, how)


def parts(embeddings: int, layer: int, head: int) -> Iterator[Finding]:
    """The output layer beside the others, and a layer's parameters by the paper's formula."""
    statement = "Section 3.1: the output layer is “much smaller than” the embedding layer and T-layers"
    given = f"{show(Decimal(head) / MIB)} of {show(Decimal(embeddings) / MIB)} and {show(Decimal(layer) / MIB)} MiB"
    how = "transform, norm and bias; the decoder's weight is the word embeddings'. Much smaller is a fifth or less"
    yield Finding("output layer", BYTES, statement, "much smaller", given, 5 * head <= min(embeddings, layer), how)
    formula, exact = 3 * WIDTH**2 + 4 * WIDTH * (2 * WIDTH + 1), layer // FLOAT_BYTES
    statement = "Section 4.2: a T-layer has 3 H² + 4 H (2 H + 1) parameters"
    left = exact - formula - WIDTH**2
    how = f"H = {WIDTH}; left out are attention's output projection, H², and {left} of biases and norms"
    yield Finding("layer", BYTES, statement, f"{formula}", f"{exact}", formula == exact, how)


def whole(numbers: Numbers, embeddings: int, layer: int, head: int) -> Finding:
    """What FEDBFPT-ALL and TinyBERT-6 upload alike."""
    own, other = numbers.at("Table 4", "fedbfpt-all", COMMUNICATION), numbers.at("Table 2", "tinybert-6", COMMUNICATION)
    sizes = [Decimal(DEPTHS["fedbfpt"] * layer + head + more) / MIB for more in (0, embeddings)]
    statement = "Section 4.2: “only these T-layers will be uploaded”; FEDBFPT-ALL, in MiB"
    how = listed([f"six layers and the output layer {show(sizes[0])}", f"with embeddings {show(sizes[1])}"])
    how += f"; TinyBERT-6's {digits(other)}: a whole model goes up, embeddings too"
    return Finding("whole", BYTES, statement, show(own), show(sizes[0]), abs(own - sizes[0]) < 1, how)
