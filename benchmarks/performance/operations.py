"""Part 1, too: where the time of training goes, by operation, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch.profiler import ProfilerActivity, profile

from benchmarks.performance.section import Bench, Section
from benchmarks.performance.workload import clients_of, setting_of, texts
from benchmarks.spec import JSON

EXAMPLES = 16 * 16
# What an operation's name holds -> what it is for; the first that fits counts.
KINDS: Mapping[str, Sequence[str]] = {
    "products with weights": ("aten::mm", "addmm", "_linear_pointwise"),
    "attention's products": ("bmm", "scaled_dot_product", "flash_attention"),
    "softmax": ("softmax",),
    "dropout": ("bernoulli", "dropout", "lt_", "random"),
    "GELU": ("gelu",),
    "LayerNorm": ("layer_norm",),
    "casts and copies": ("copy_", "_to_copy", "contiguous", "clone", "index_select", "index_copy", "cat"),
    "optimiser": ("adam", "Optimizer"),
    "sums, masks, scales": ("aten::add", "aten::mul", "aten::sum", "aten::where", "aten::div", "isneginf", "aten::all"),
}
OTHER = "the rest, Python included"


def measure(bench: Bench) -> Section:
    """Milliseconds an example, of training with the library's layers (before) and with the packed ones (after)."""
    found = {kernels: shares(kernels) for kernels in ("reference", "packed")}
    rows: list[dict[str, JSON]] = [
        {
            "operation": kind,
            "reference_ms": found["reference"].get(kind, 0.0),
            "packed_ms": found["packed"].get(kind, 0.0),
        }
        for kind in (*KINDS, OTHER)
    ]
    totals = {kernels: round(sum(own.values()), 2) for kernels, own in found.items()}
    rows.append({"operation": "all", "reference_ms": totals["reference"], "packed_ms": totals["packed"]})
    bench.say(f"  a text takes {totals['reference']} ms with the library's layers, {totals['packed']} ms packed")
    notes = ("Milliseconds a text under PyTorch's profiler, which slows small operations down: read the shares.",)
    return Section("operations", "Where the time goes", rows, (), notes)


def shares(kernels: str) -> dict[str, float]:
    """Milliseconds a text by kind of operation, of one epoch."""
    setting = setting_of(kernels=kernels)
    (client,) = clients_of(texts(EXAMPLES), 1)
    names = sorted(setting.model.groups.names - setting.model.groups.embeddings)
    setting.training.run(setting.model, client.train, names, 1, 0)
    with profile(activities=[ProfilerActivity.CPU]) as measured:
        setting.training.run(setting.model, client.train, names, 2, 0)
    found: dict[str, float] = {}
    for event in measured.key_averages():
        kind = next((kind for kind, parts in KINDS.items() if any(part in event.key for part in parts)), OTHER)
        found[kind] = found.get(kind, 0.0) + event.self_cpu_time_total / 1e3 / EXAMPLES
    return {kind: round(milliseconds, 3) for kind, milliseconds in found.items()}
