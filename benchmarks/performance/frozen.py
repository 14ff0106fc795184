"""Part 4: what is not computed where an encoder, or a part of it, is frozen."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.performance.section import Bar, Bench, Section, in_turn, ratio
from benchmarks.performance.workload import clients_of, setting_of, texts
from benchmarks.run_config import JSON
from fedsim.algorithms import Workload, build_algorithm
from fedsim.data import Client
from fedsim.engine import run_federation
from fedsim.wire import Channel

EXAMPLES = 768
CLIENTS = 3
REUSE: Mapping[tuple[str, str], float | None] = {  # method, head -> times as fast as without reuse, at least
    ("fedfreezebert", "average"): 10.0,
    ("fedfreezebert", "psum"): 2.0,
    ("fedfreezebert_central", "average"): None,
    ("fedfreezebert_central", "psum"): None,
}
EPOCHS = 3  # of C-'s server


def measure(bench: Bench) -> Section:
    """D- and C-FedFreezeBERT with and without reuse; unread tokens; layers below the lowest trained one."""
    rows: list[dict[str, JSON]] = []
    bars: list[Bar] = []
    for (method, head), bound in REUSE.items():
        rows.append(_reuse(bench, method, head))
        if bound is not None:
            bars.append(Bar(f"{method}, {head}: reuse", rows[-1]["times_as_fast"], bound))
    rows += [_unread(bench), *_prefix(bench)]
    for row in rows:
        bench.say(f"  {row['what']}: {row['times_as_fast']} times as fast")
    notes = (
        "Reuse: an epoch of training on features that are there, over one that computes them from token ids; computing "
        "them once is left out.",
        "Layers below the lowest trained one run without a graph. With dropout their output differs from batch to "
        "batch, so it is computed once only where the whole encoder is frozen, which runs without dropout.",
    )
    return Section("frozen", "Frozen parts", rows, bars, notes)


def _compared(bench: Bench, what: str, without: Callable[[], object], saving: Callable[[], object]) -> dict[str, JSON]:
    """A row: seconds without and with what is saved, and their ratio."""
    slow, fast = in_turn(bench.repeats, without, saving)
    return {
        "what": what,
        "without_s": round(median(slow), 2),
        "with_s": round(median(fast), 3),
        "times_as_fast": round(ratio(slow, fast), 2),
    }


def _reuse(bench: Bench, method: str, head: str) -> dict[str, JSON]:
    """A round without and with reuse of features."""
    clients = clients_of(texts(EXAMPLES), CLIENTS)
    with tempfile.TemporaryDirectory() as folder:
        setting = setting_of(head=head, folder=Path(folder), weight_decay=0.0, local_epochs=EPOCHS)
        names = setting.model.groups.head

        def reused() -> None:
            algorithm = build_algorithm(method, setting, {})
            run_federation(algorithm, clients, Channel("fp32"), lambda *_: {}, rounds=1, seed=0)

        def anew() -> None:
            for client in clients:
                _epochs(setting, client, names)

        return _compared(bench, f"{method}, {head}: features reused", anew, reused)


def _epochs(setting: Workload, client: Client, names: frozenset[str]) -> None:
    setting.training.run(setting.model, client.train, sorted(names), 1, client.id)


def _unread(bench: Bench) -> dict[str, JSON]:
    """A head that reads [CLS] alone against one that reads all tokens: of the last layer the rest is not computed."""
    (client,) = clients_of(texts(EXAMPLES // 2), 1)

    def work(head: str) -> Callable[[], object]:
        setting = setting_of(head=head)
        return partial(_epochs, setting, client, setting.model.groups.names - setting.model.groups.embeddings)

    return _compared(bench, "last layer: [CLS] alone is read", work("average"), work("ordinary"))


def _prefix(bench: Bench) -> list[dict[str, JSON]]:
    """Training the upper layers alone, against all of them."""
    (client,) = clients_of(texts(EXAMPLES // 2), 1)
    setting = setting_of()
    groups = setting.model.groups
    everything = partial(_epochs, setting, client, groups.names - groups.embeddings)
    return [
        _compared(
            bench,
            f"{frozen} of {groups.depth} layers frozen",
            everything,
            partial(_epochs, setting, client, groups.head.union(*groups.layers[frozen:])),
        )
        for frozen in (groups.depth // 2, groups.depth - 1)
    ]
