"""The bytes that each method's client sends and receives in a round after the first, by closed forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.costs import Factor, PeftTerms, WireForm

FLOAT = 4  # bytes per value
RANK = 8
WIDTH = 16  # of a bottleneck
POSITIONS = 16  # of a prefix: 2 r, which sends as much as LoRA
RANKS = (8, 4, 2)  # of HetLoRA's clients
BUCKET, SHARE = 512, 0.1  # values of QSGD that share a norm; share of the values that top-k keeps
Values = Callable[[PeftTerms], float]


def _a(terms: PeftTerms) -> float:
    """Number of values in all A, or all B, for two square matrices per encoder layer."""
    return 2 * terms.L * terms.r * terms.d


def _form(text: str, up: Values, down: Values | None = None, head: bool = True) -> WireForm:
    """A form over the adapter's values, plus the head's if it is shared."""

    def sized(values: Values) -> Values:
        return lambda terms: FLOAT * (values(terms) + head * terms.h)

    return WireForm(f"{text} + h" if head else text, sized(up), sized(down or up))


def _coded(text: str, size: Callable[[int], int]) -> WireForm:
    """FedIT's form with a codec. size: a tensor's number of values -> coded bytes, used if fewer than in fp32."""

    def sized(t: PeftTerms) -> float:
        head = [2 * t.d, 2] if t.h else []  # two labels; an h this large includes a pooler
        pooler = [t.d**2, t.d] if t.h > 2 * t.d + 2 else []
        return sum(min(FLOAT * n, size(n)) for n in [t.r * t.d] * (4 * t.L) + head + pooler)

    return WireForm(text, sized, sized)


_ONE = _form("n", _a)
_BOTH = _form("2n", lambda t: 2 * _a(t))
_STACK = _form("2n up, 2nK down", lambda t: 2 * _a(t), lambda t: 2 * _a(t) * t.K)
_DENSE = _form("2n up, 2n + 2Ld² down", lambda t: 2 * _a(t), lambda t: 2 * _a(t) + 2 * t.L * t.d**2)
_FULL = _form("N", lambda t: t.N)
# Row -> its form; n = n_A = n_B = 2Lrd.
FORMS: Mapping[str, WireForm] = {
    **dict.fromkeys(("fedavg", "diloco"), _FULL),
    **dict.fromkeys(("fedit", "flexlora", "flexlora-both", "fedrot-lora", "fedrot-lora-soft"), _BOTH),
    **dict.fromkeys(("fedit-adam", "diloco-lora", "ditto-lora"), _BOTH),
    **dict.fromkeys(("ffa-lora", "rolora", "fedsa-lora-shared", "share-b"), _ONE),
    **dict.fromkeys(
        ("ffa-lora-frozen", "rolora-frozen", "fedsa-lora", "fedsa-lora-in-turn"), _form("n", _a, head=False)
    ),
    "fedit-int8": _coded("Σ (v + 4) bytes", lambda v: v + 4),
    "fedit-qsgd": _coded("Σ (v/2 + 4⌈v/512⌉) bytes", lambda v: -(-v // 2) + 4 * -(-v // BUCKET)),
    "fedit-topk": _coded("Σ (4·v/10 + v/8) bytes", lambda v: 4 * max(1, round(SHARE * v)) + -(-v // 8)),
    **dict.fromkeys(("fedper-lora", "fedrep-lora"), _form("2n", lambda t: 2 * _a(t), head=False)),
    "scaffold-lora": _form("4n + 2h", lambda t: 4 * _a(t) + 2 * t.h, head=False),
    "scaffold": _form("2N + 2h", lambda t: 2 * t.N + 2 * t.h, head=False),
    **dict.fromkeys(("flora", "fedex-lora"), _STACK),
    **dict.fromkeys(("fedex-lora-dense", "fedex-lora-transposed"), _DENSE),
    "fedsvd": _form("n up, 2n down", _a, lambda t: 2 * _a(t)),
    "hetlora": _form("4Ld·mean(r_k)", lambda t: 4 * t.L * t.d * sum(RANKS) / len(RANKS)),
    "fed-sb": _form("2Lr²", lambda t: 2 * t.L * t.r**2),
    "bitfit": _form("L(7d + f) + d", lambda t: t.L * (7 * t.d + t.f) + t.d),
    "bottleneck": _form("2L(2dm + m + d)", lambda t: 2 * t.L * (2 * t.d * WIDTH + WIDTH + t.d)),
    "prefix": _form("2Lpd", lambda t: 2 * t.L * POSITIONS * t.d),
    "ia3": _form("L(3d + f)", lambda t: t.L * (3 * t.d + t.f)),
}

_ALL = _form("N + E", lambda t: t.N + t.E)
_SB = FORMS["fed-sb"]
_ALONE: Mapping[str, int] = {"h": 0}  # the adapter without the head
_THREE, _FIFTY = {**_ALONE, "K": 3}, {**_ALONE, "K": 50}
# Row of `published/bytes.csv` with the factor, if it is a number -> its name, sentence and interpretations.
FACTORS: Mapping[str, tuple[str, str, tuple[Factor, ...]]] = {
    "ffa-lora": (
        "FFA-LoRA: 2 ×",
        "FFA-LoRA: “further halve the communication cost” (arXiv 2403.12313, abstract), over FedIT",
        (Factor("adapter alone", _BOTH, _ONE, _ALONE), Factor("with h", _BOTH, _ONE)),
    ),
    "fedex-lora": (
        "FedEx-LoRA",
        "FedEx-LoRA: “minimal computational and communication overhead” (arXiv 2410.09432v4): its bytes over FedIT's",
        (
            Factor("factored, K = 3", _STACK, _BOTH, _THREE),
            Factor("factored, K = 50", _STACK, _BOTH, _FIFTY),
            Factor("dense", _DENSE, _BOTH, _ALONE),
            Factor("dense, with h", _DENSE, _BOTH),
        ),
    ),
    "fedit": (
        "LoRA: 140.1 ×",
        "LoRA: full fine-tuning over LoRA in FedPETuning (figures/scripts/figure4.py at commit fb37362e; RTE)",
        (
            Factor("adapter alone", _FULL, _BOTH, _ALONE),
            Factor("with h", _FULL, _BOTH),
            Factor("with h and E", _ALL, _BOTH),
        ),
    ),
    "fed-sb": (
        "Fed-SB: 230 ×",
        "Fed-SB: “reducing communication costs by up to 230x” (arXiv 2502.15436), over methods of the same rank",
        (
            Factor("FedIT", _BOTH, _SB, _ALONE),
            Factor("FedIT (with h)", _BOTH, _SB),
            Factor("FLoRA (K = 3)", _STACK, _SB, _THREE),
            Factor("FLoRA (K = 50)", _STACK, _SB, _FIFTY),
            Factor("full, with h", _FULL, _SB),
        ),
    ),
    "florg": (
        "FLoRG: 2041 ×",
        "FLoRG, one factor per layer: “can reduce the communication overhead by up to 2041×” (arXiv 2602.17095)",
        (
            Factor("FLoRA (K = 50)", _STACK, _ONE, _FIFTY),
            Factor("FedEx-LoRA (dense)", _DENSE, _ONE, _ALONE),
            Factor("full", _FULL, _ONE, _ALONE),
            Factor("full, with E", _ALL, _ONE, _ALONE),
        ),
    ),
}
