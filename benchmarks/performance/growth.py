"""Growth: what more clients, a larger model and more texts cost beside the training itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from benchmarks.performance.exchange import fixed_cost
from benchmarks.performance.population import ROUNDS, Cost, Population, cost_of, in_process, typical
from benchmarks.performance.section import Bar, Bench, Section
from benchmarks.performance.tokenisation import read_through, tokenised
from benchmarks.performance.workload import BACKBONE
from benchmarks.spec import JSON

FEW, *_, MANY = CLIENTS = (3, 10, 100, 1000)
LARGE = "bert-base-uncased"
MEMBERS = 10  # clients of the large model: what a round costs once is shared by as many
PAIRS = 363_849  # QQP's training pairs
MEGABYTES = (20, 200)  # of a corpus
CORPUS_RATIO = 1.1  # at most, of a large corpus's peak memory over a small one's
MEMORY_RATIO = {"fedavg": 1.2, "fedsplitbert": 1.3}  # at most, of many clients over few
FIXED_SECONDS = 0.25  # at most, a client and round of FedAvg
METHODS = {"fedavg": "FedAvg", "fedsplitbert": "FedSplitBERT"}
# Layers and critical layer: FedSplitBERT's clients keep 22 MB each of six layers, in two versions while a round runs.
# A thousand of them would take 44 GB of disk, so they are measured on two layers, beside as few on the same.
DEEP, SHALLOW = (6, 3), (2, 1)


@dataclass(frozen=True)
class Sizes:
    """How large the measurements are; a test makes them small. config: changes to the encoders' configurations."""

    clients: Sequence[int] = CLIENTS
    members: int = MEMBERS
    pairs: int = PAIRS
    megabytes: Sequence[int] = MEGABYTES
    backbone: str = BACKBONE
    large: str = LARGE
    config: Mapping[str, JSON] | None = None


def measure(bench: Bench, sizes: Sizes = Sizes()) -> Section:
    """Memory, time and disk by the number of clients; a client's fixed cost; tokens cold and cached; corpora."""
    by_clients, bars = _by_clients(bench, sizes)
    beside_training, bar = _beside_training(bench, sizes)
    bars.append(bar)
    tokens = [
        _row(f"tokens, {what}", f"{sizes.pairs} pairs", 1, cost)
        for what, cost in in_process(tokenised, bench.settings, sizes.pairs, bench.repeats).items()
    ]
    corpora, of_corpora = _by_corpus(bench, sizes)
    bars.append(of_corpora)
    rows = [*by_clients, *beside_training, *tokens, *corpora]
    for row in (*tokens, *corpora):
        bench.say(_said(row))
    notes = (
        f"Peak memory is that of a fresh process each, its libraries included; {ROUNDS} rounds of two short texts a "
        f"client, with checkpoint, store and scores. Seconds are of the median round.",
        "FedSplitBERT with the most clients is measured on two layers, as with the fewest on the same: on six, what "
        "its clients keep would take 44 GB of disk.",
        f"The fixed cost is that of rounds in which nobody trains, {sizes.members} clients, all tensors in fp32; a "
        f"checkpoint follows each. FedSplitBERT's clients each write what they keep, through to the disk: its bar "
        f"would be the disk's, so it has none.",
    )
    return Section("growth", "Growth with clients, model and texts", rows, bars, notes)


def _by_clients(bench: Bench, sizes: Sizes) -> tuple[list[dict[str, JSON]], list[Bar]]:
    few, many = sizes.clients[0], sizes.clients[-1]
    asked = [("fedavg", clients, DEEP) for clients in sizes.clients]
    asked += [("fedsplitbert", clients, DEEP) for clients in sizes.clients[:-1]]
    asked += [("fedsplitbert", clients, SHALLOW) for clients in (few, many)]
    rows, peaks = [], {}
    for algorithm, clients, (layers, critical) in asked:
        config = {**(sizes.config or {}), "num_hidden_layers": layers}
        options = {"critical_layer": critical} if algorithm == "fedsplitbert" else {}
        cost = in_process(cost_of, Population(clients, algorithm, options, sizes.backbone, config), bench.settings)
        peaks[algorithm, clients, layers] = cost.peak_bytes
        encoder = f"{sizes.backbone}, {layers} layers"
        rows.append(_row(f"{METHODS[algorithm]}: trained rounds", encoder, clients, cost))
        bench.say(_said(rows[-1]))
    compared = {"fedavg": DEEP[0], "fedsplitbert": SHALLOW[0]}
    bars = [
        Bar(
            f"{METHODS[algorithm]}: peak memory of {many} clients over {few}",
            peaks[algorithm, many, compared[algorithm]] / peaks[algorithm, few, compared[algorithm]],
            bound,
            at_least=False,
        )
        for algorithm, bound in MEMORY_RATIO.items()
    ]
    return rows, bars


def _beside_training(bench: Bench, sizes: Sizes) -> tuple[list[dict[str, JSON]], Bar]:
    rows, found = [], {}
    for algorithm in METHODS:
        options = {"critical_layer": 1 if sizes.config else 6} if algorithm == "fedsplitbert" else {}
        population = Population(sizes.members, algorithm, options, sizes.large, sizes.config or {})
        cost = in_process(fixed_cost, population, bench.settings, bench.repeats)
        found[algorithm] = typical(cost) / sizes.members
        rows.append(_row(f"{METHODS[algorithm]}: rounds without training", sizes.large, sizes.members, cost))
        bench.say(_said(rows[-1]))
    what = f"FedAvg: fixed cost of a client and round, {sizes.large}"
    return rows, Bar(what, found["fedavg"], FIXED_SECONDS, at_least=False, unit="s")


def _by_corpus(bench: Bench, sizes: Sizes) -> tuple[list[dict[str, JSON]], Bar]:
    costs = [in_process(read_through, bench.settings, megabytes) for megabytes in sizes.megabytes]
    rows = [
        _row("a corpus, tokenised and read", f"{megabytes} MB", 1, replace(cost, seconds=(sum(cost.seconds),)))
        for megabytes, cost in zip(sizes.megabytes, costs, strict=True)
    ]
    small, large = sizes.megabytes[0], sizes.megabytes[-1]
    what = f"Corpus: peak memory of {large} MB of text over {small} MB"
    return rows, Bar(what, costs[-1].peak_bytes / costs[0].peak_bytes, CORPUS_RATIO, at_least=False)


def _row(what: str, on: str, clients: int, cost: Cost) -> dict[str, JSON]:
    return {
        "what": what,
        "on": on,
        "clients": clients,
        "seconds": typical(cost),
        "seconds_a_client": typical(cost) / clients,
        "peak_memory_bytes": cost.peak_bytes,
        "disk_bytes": cost.disk_bytes,
    }


def _said(row: Mapping[str, JSON]) -> str:
    return (
        f"  {row['what']}, {row['on']}, {row['clients']} clients: {row['seconds']:.2f} s, "
        f"peak memory {row['peak_memory_bytes'] / 1e6:.0f} MB, {row['disk_bytes'] / 1e6:.0f} MB on disk"
    )
