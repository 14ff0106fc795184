"""The audit of FedBERT's budgets and costs: updates against its corpus, Table 2 and parameters by shapes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from benchmarks.costs import ModelSizes
from reports.audit.checks import Finding, Material, against_exact, digits, listed, show
from reports.evidence.published import Numbers
from reports.evidence.records import PAPER

TEXT, MODELS, TRAINING, TUNING = "Text", "Table 3", "Table 4", "Table 5"
BUDGETS, COSTS, SIZES = "Budgets", "Table 2 and section 3", "Sizes by shapes"
# WikiText-103's training text (Merity et al. 2017, table 1); a word is a token of BPE, or several.
CORPUS_WORDS = 103_227_021
LENGTH = 512  # tokens of a block: fairseq's recipe
# GLUE's training examples (Wang et al. 2019, table 1; to the example, the data's own).
EXAMPLES = {
    "rte-central": ("RTE", 2490),
    "mrpc-central": ("MRPC", 3668),
    "mnli-central": ("MNLI", 392702),
    "qnli-central": ("QNLI", 104743),
    "qqp-central": ("QQP", 363846),
    "stsb-central": ("STS-B", 5749),
    "sst2-whole-central": ("SST-2", 67349),
}
RECIPE = {"rte-central": 16, "mrpc-central": 16, "stsb-central": 16}  # fairseq's batches for GLUE; of the others 32
FLOAT_BYTES, MILLION = 4, 10**6
MASKED = Decimal("0.15")
MUCH_LESS = Decimal("0.1")
ENCODERS = {
    "small": ("RoBERTa-small", "fedbert-pretraining", "fedbert-table6"),
    "base": ("RoBERTa-base", "fedbert-pretraining", "fedbert-table7"),
    "gpt2": ("GPT-2", "fedbert-table8", "fedbert-table8"),
}


# ---- budgets -----------------------------------------------------------------------------------------------------


def budgets(numbers: Numbers) -> Iterator[Finding]:
    """Updates, epochs and batches against each other and the corpus."""
    batch, total, warmup = (int(numbers.at(TRAINING, "pretraining", of)) for of in ("batch", "updates", "warmup"))
    of = {
        model: {what: int(numbers.at(TEXT, model, what, "stated")) for what in ("clients", "epochs")}
        for model in ("roberta", "gpt2")
    }
    least = {model: CORPUS_WORDS * own["epochs"] // (own["clients"] * LENGTH * batch) for model, own in of.items()}
    how = f"{CORPUS_WORDS:,} words of WikiText-103 are as many tokens or more, in blocks of {LENGTH}, {batch} a batch"
    clients = of["roberta"]["clients"]
    statement = f"Head-Emd Share: {total} updates in all are {clients} clients of {of['roberta']['epochs']} epochs each"
    ends = -(-total // least["roberta"])
    given = f"at least {clients * least['roberta']}"
    found = Finding("share, updates", BUDGETS, statement, f"{total}", given, total >= clients * least["roberta"], how)
    late = f"; the rate reaches 0 in the training of client {ends} of {clients}, or sooner"
    yield replace(found, explanation=how + late)
    statement = (
        f"FedAvg, EmdAvg, Head-Emd Avg: a client's {of['roberta']['epochs']} epochs are Table 4's {total} updates"
    )
    given = f"at least {least['roberta']}, at most {total // 2}"
    low = least["roberta"] * 2 >= total
    left = f"{how}; under twice as many by GPT-2's BPE, so with Table 4's schedule their rates end well above 0"
    yield Finding("client, updates", BUDGETS, statement, f"{total}", given, low, left)
    statement = f"GPT: a client's {of['gpt2']['epochs']} epochs reach the peak rate, {warmup} warm-up updates"
    given = f"at least {least['gpt2']}"
    left = f"{how}; under twice as many by its BPE. The text prints no other warm-up for GPT"
    yield Finding("gpt, warm-up", BUDGETS, statement, f"{warmup}", given, 2 * least["gpt2"] >= warmup, left)
    central, shared = int(numbers.at(TEXT, "gpt2", "updates", "stated")), of["gpt2"]["clients"] * least["gpt2"]
    statement = "GPT: Head-Emd Share, “equal to the centralized training logically”, has as many updates"
    left = f"{of['gpt2']['clients']} × {of['gpt2']['epochs']} epochs of a client; {how}; under twice as many by its BPE"
    yield Finding("gpt, updates", BUDGETS, statement, f"{central}", f"at least {shared}", 2 * shared >= central, left)
    stated, period = numbers.at(TEXT, "gpt2", "averages", "stated"), numbers.at(TEXT, "gpt2", "period", "stated")
    statement = "GPT: trained with 20 epochs, averaged every 5: “thus average 4 times”"
    yield against_exact("gpt, averages", BUDGETS, statement, stated, of["gpt2"]["epochs"] / period, 0, ("round",))
    yield from tuning(numbers)


def tuning(numbers: Numbers) -> Iterator[Finding]:
    """Table 5: batch size × updates over the training examples are the epochs."""
    shares = {}
    for task, (name, examples) in EXAMPLES.items():
        batch, updates, epochs, warmup = (
            numbers.at(TUNING, task, of) for of in ("batch", "updates", "epochs", "warmup")
        )
        shares[name] = 100 * warmup / updates
        given, recipe = batch * updates / examples, RECIPE.get(task, 32)
        statement = f"Table 5, {name}: {updates} updates of {batch} examples are {epochs} epochs"
        how = (
            f"of {examples} training examples; with batches of {recipe} they are {show(recipe * updates / examples, 1)}"
        )
        agrees = abs(given / epochs - 1) < Decimal("0.1")
        yield Finding(f"epochs, {task}", BUDGETS, statement, show(epochs, 0), show(given, 1), agrees, how)
    common = sorted(shares.values())[len(shares) // 2]
    off = [f"{name} {show(share, 1)} %" for name, share in shares.items() if abs(share - common) > 1]
    statement = "Table 5: warm-up is the same share of every task's updates"
    yield Finding(
        "warm-up", BUDGETS, statement, f"{show(common, 1)} %", listed(off, "all"), not off, "those that differ"
    )


# ---- Table 2 and section 3 ---------------------------------------------------------------------------------------


def table2() -> Iterator[Finding]:
    """Statements of section 3 that its own algorithms and tables contradict."""
    statement = "Table 2: FedAvg's communication cost at the server"
    how = "each of N clients takes and sends |W|; of split learning the same table counts N · 4pL"
    yield Finding("server", COSTS, statement, "2|W|", "N · 2|W|", False, how)
    statement = "Section 3.3.2: in sequential training “there is no aggregation time”"
    how = "Algorithm 3, lines 4 and 7, copies the transformer for each client and averages the copies, as Algorithm 2"
    yield Finding("aggregation", COSTS, statement, "none", "line 7", False, how)
    statement = "Section 3.4: “For all three patterns, there is only one set of Transformer blocks”"
    how = "section 3.3.1 has N + 1 of them for parallel training, to which two of the patterns belong"
    yield Finding("transformers", COSTS, statement, "1", "N + 1", False, how)
    statement = "Table 2: a client of split learning sends and takes 4pL, whatever is averaged or handed on"
    how = "2|E| or 2(|E| + |H|) an averaging, or a hand-over, are left out, and attention masks, which the server needs"
    yield Finding("averaging", COSTS, statement, "4pL", "4pL + 2|E|", False, how)


# ---- shapes ------------------------------------------------------------------------------------------------------


def by_shapes(material: Material) -> Iterator[Finding]:
    """Parameters, what crosses the wire, and the work at the client, of the paper's three encoders."""
    if material.derive is None:
        return
    for key, (name, benchmark, scales) in ENCODERS.items():
        table, scale = material.benchmarks[benchmark], material.benchmarks[scales].scale(PAPER)
        plan = material.derive(table)(table.row("fedavg"), table.columns[0], scale)
        if plan is not None:
            yield from of_encoder(material.numbers, key, name, plan.sizes)


def of_encoder(numbers: Numbers, key: str, name: str, sizes: ModelSizes) -> Iterator[Finding]:
    """One encoder of Table 3."""
    stated = numbers.at(MODELS, key, "parameters_millions")
    layers, hidden = (int(numbers.at(MODELS, key, of)) for of in ("layers", "hidden"))
    exact = Decimal(sizes.model_bytes) / FLOAT_BYTES / MILLION
    statement = f"Table 3: {name} has so many million parameters, with GPT-2's BPE and a tied head"
    found = against_exact(f"parameters, {key}", SIZES, statement, stated, exact, 0, ("round", "truncate"))
    why = {"base": "; 110 is BERT-base's, of 30 522 words", "gpt2": "; 117 is GPT's in Table 1, of 40 478 words"}
    yield replace(found, explanation=found.explanation + why.get(key, ""))
    is_gpt = key == "gpt2"
    batch = int(numbers.at(TRAINING, "pretraining", "batch"))
    clients = int(numbers.at(TEXT, "gpt2" if is_gpt else "roberta", "clients", "stated"))
    tokens = CORPUS_WORDS // clients
    crossing, whole = 4 * tokens * hidden * FLOAT_BYTES, 2 * sizes.model_bytes
    statement = f"Conclusion, {name}: split learning comes with “additional communication cost”"
    given = f"{show(Decimal(crossing) / 10**9)} GB of {show(Decimal(whole) / 10**9)} GB"
    how = (
        f"4pL of a client's epoch, at least {tokens:,} tokens in batches of {batch} blocks, against 2|W| of FedAvg: "
        f"{crossing // whole} times as much, and {crossing // whole * 50 if not is_gpt else crossing // whole * 5} "
        "times where FedAvg averages once a period"
    )
    yield Finding(f"crossing, {key}", COSTS, statement, "more", given, crossing > whole, how)
    words = Decimal(sizes.embeddings_bytes // FLOAT_BYTES)
    share = Decimal(1) if is_gpt else MASKED
    head, transformer = share * words, Decimal(layers * (12 * hidden**2 + 2 * LENGTH * hidden))
    ratio = head / transformer
    statement = f"Section 3.5, {name}: T(W^E) + T(W^H) ≪ T(W^T)"
    how = (
        "products a token: the head's with every word of the vocabulary, for "
        f"{'each token' if is_gpt else '15 % of the tokens'}, against {layers} layers' 12 H² + 2 S H; much less is a "
        "tenth or less. Nothing measured is printed"
    )
    yield Finding(f"work, {key}", COSTS, statement, "≪", f"{show(100 * ratio, 1)} %", ratio <= MUCH_LESS, how)
    if is_gpt:
        statement = "GPT-2's head, which Head-Emd Avg averages and EmdAvg does not, in parameters of its own"
        given = digits(Decimal(sizes.head_bytes) / FLOAT_BYTES)
        yield Finding("head, gpt2", SIZES, statement, "some", given, sizes.head_bytes > 0, "tied to the embeddings")
