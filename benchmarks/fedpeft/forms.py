"""The bytes that each method's client sends and receives in a round after the first, by closed forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.costs import PeftTerms, WireForm

FLOAT = 4  # bytes of a value
RANK = 8
WIDTH = 16  # of a bottleneck
POSITIONS = 16  # of a prefix: 2 r, which sends as much as LoRA
RANKS = (8, 4, 2)  # of HetLoRA's clients
Values = Callable[[PeftTerms], float]


def _a(terms: PeftTerms) -> float:
    """Values of all A, and of all B: of two square layers in each encoder layer."""
    return 2 * terms.L * RANK * terms.d


def _form(text: str, up: Values, down: Values | None = None, head: bool = True) -> WireForm:
    """A form over the adapter's values, to which the head's come where it is shared."""

    def sized(values: Values) -> Values:
        return lambda terms: FLOAT * (values(terms) + head * terms.h)

    return WireForm(f"{text} + h" if head else text, sized(up), sized(down or up))


_ONE = _form("n", _a)
_BOTH = _form("2n", lambda t: 2 * _a(t))
_STACK = _form("2n up, 2nK down", lambda t: 2 * _a(t), lambda t: 2 * _a(t) * t.K)
_DENSE = _form("2n up, 2n + 2Ld² down", lambda t: 2 * _a(t), lambda t: 2 * _a(t) + 2 * t.L * t.d**2)
_FULL = _form("N", lambda t: t.N)
# Row -> its form; n = n_A = n_B = 2Lrd.
FORMS: Mapping[str, WireForm] = {
    **dict.fromkeys(("fedavg", "diloco"), _FULL),
    **dict.fromkeys(("fedit", "flexlora", "flexlora-both", "fedrot-lora", "fedrot-lora-soft"), _BOTH),
    **dict.fromkeys(("fedit-adam", "diloco-lora"), _BOTH),
    **dict.fromkeys(("ffa-lora", "rolora", "fedsa-lora-shared", "share-b"), _ONE),
    **dict.fromkeys(
        ("ffa-lora-frozen", "rolora-frozen", "fedsa-lora", "fedsa-lora-in-turn"), _form("n", _a, head=False)
    ),
    "fedper-lora": _form("2n", lambda t: 2 * _a(t), head=False),
    **dict.fromkeys(("flora", "fedex-lora"), _STACK),
    "fedex-lora-dense": _DENSE,
    "fedex-lora-transposed": _DENSE,
    "fedsvd": _form("n up, 2n down", _a, lambda t: 2 * _a(t)),
    "hetlora": _form("4Ld·mean(r_k)", lambda t: 2 * _a(t) * sum(RANKS) / len(RANKS) / RANK),
    "fed-sb": _form("2Lr²", lambda t: 2 * t.L * RANK**2),
    "bitfit": _form("L(7d + f) + d", lambda t: t.L * (7 * t.d + t.f) + t.d),
    "bottleneck": _form("2L(2dm + m + d)", lambda t: 2 * t.L * (2 * t.d * WIDTH + WIDTH + t.d)),
    "prefix": _form("2Lpd", lambda t: 2 * t.L * POSITIONS * t.d),
    "ia3": _form("L(3d + f)", lambda t: t.L * (3 * t.d + t.f)),
}
