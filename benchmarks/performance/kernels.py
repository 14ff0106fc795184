"""Part 1, too: the choices inside a packed layer, each against what it replaced, on a batch of MRPC's size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

import torch
from torch.nn import functional

from benchmarks.performance.section import Bench, Section, in_turn, ratio
from benchmarks.performance.workload import BACKBONE, clients_of, setting_of, texts
from benchmarks.spec import JSON
from fedsim.models.packed.dropout import Masks

TOKENS, TEXTS, LONGEST, HEADS, HIDDEN, WIDE = 848, 16, 56, 12, 384, 1536
CALLS = 5  # of what is timed at once
SCORING = (64, 256)  # texts of a batch
Work = Callable[[], object]


def measure(bench: Bench) -> Section:
    """Milliseconds of a call, before and after."""
    rows: list[dict[str, JSON]] = []
    for what, (before, after) in {**_choices(), **_left()}.items():
        slow, fast = in_turn(bench.repeats, _several(before), _several(after))
        rows.append(
            {
                "what": what,
                "before_ms": round(1e3 * median(slow) / CALLS, 3),
                "after_ms": round(1e3 * median(fast) / CALLS, 3),
                "times_as_fast": round(ratio(slow, fast), 2),
            }
        )
        bench.say(f"  {what}: {rows[-1]['times_as_fast']} times as fast")
    notes = (
        f"bf16, {TOKENS} tokens of {TEXTS} texts, {BACKBONE}'s sizes; a call alone, its data in the cache: within a "
        "layer, gains are larger where a pass over memory is saved.",
        "Rows that begin with `not taken` were tried and left.",
    )
    return Section("kernels", "Choices inside a layer", rows, (), notes)


def _several(work: Work) -> Work:
    def several() -> None:
        for _ in range(CALLS):
            work()

    return several


def _choices() -> Mapping[str, tuple[Work, Work]]:
    """What a layer does now, behind what PyTorch's own layers do."""
    half = torch.bfloat16
    x, wide = torch.randn(TOKENS, HIDDEN).to(half), torch.randn(TOKENS, WIDE).to(half)
    weight, bias = torch.randn(WIDE, HIDDEN).to(half), torch.randn(WIDE).to(half)
    master = weight.float()
    three = [torch.randn(HIDDEN, HIDDEN).to(half) for _ in range(3)]
    joined = torch.cat(three)
    scores = torch.randn(TEXTS * HEADS, LONGEST, LONGEST).to(half)
    linear = torch.ops.mkldnn._linear_pointwise
    masks = Masks(half)
    return {
        "dropout of a hidden state": (
            lambda: functional.dropout(x, 0.1, training=True),
            lambda: _mask(masks, x),
        ),
        "weights cast on every call, against once a step": (
            lambda: x @ master.to(half).t(),
            lambda: x @ weight.t(),
        ),
        "query, key, value: three products, against one": (
            lambda: [x @ own.t() for own in three],
            lambda: x @ joined.t(),
        ),
        "bias added by addmm, against within the product": (
            lambda: torch.addmm(bias, x, weight.t()),
            lambda: linear(x, weight, bias, "none", [], None),
        ),
        "a weight's gradient, against with the narrower factor turned": (
            lambda: (wide.t() @ x).float(),
            lambda: (x.t().contiguous() @ wide).t().to(torch.float32, memory_format=torch.contiguous_format),
        ),
        "softmax in bf16, against with sums in fp32": (
            lambda: scores.softmax(-1),
            lambda: torch.softmax(scores, -1, dtype=torch.float32).to(half),
        ),
    }


def _mask(masks: Masks, values: torch.Tensor) -> torch.Tensor:
    mask = masks.draw(values.numel(), 0.1)
    assert mask is not None
    return mask.of(values)


def _left() -> Mapping[str, tuple[Work, Work]]:
    """What was tried and not taken: before is what a layer does."""
    half = torch.bfloat16
    query, key, value = (torch.randn(TEXTS, HEADS, LONGEST, HIDDEN // HEADS).to(half) for _ in range(3))
    setting = setting_of()
    (client,) = clients_of(texts(256), 1)

    def attention() -> torch.Tensor:
        scores = torch.bmm(query.flatten(0, 1), key.flatten(0, 1).transpose(1, 2))
        return torch.bmm(torch.softmax(scores, -1, dtype=torch.float32).to(half), value.flatten(0, 1))

    def scored(size: int) -> Work:
        return lambda: setting.model.predict(client.train, size, None)

    return {
        "not taken: PyTorch's flash attention, forward (it has no dropout)": (
            attention,
            lambda: functional.scaled_dot_product_attention(query, key, value),
        ),
        f"not taken: scoring in batches of {SCORING[1]} in place of {SCORING[0]}": (
            scored(SCORING[0]),
            scored(SCORING[1]),
        ),
    }
