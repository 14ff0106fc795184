"""What the suite varies: the number of clients, their label distributions, and the work between two aggregations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from benchmarks.experiment import BaseFn, Benchmark, Column, Row, another
from benchmarks.fedpeft import paper
from benchmarks.fedpeft.forms import RANK
from benchmarks.fedpeft.paper import DEVIATIONS, METHODS, with_detail
from benchmarks.fedpeft.tables import ONE_LABEL, SCORES
from benchmarks.publication import View

_LITE = tuple(scale for scale in paper.SCALES if scale.id != "demo")
_STUDY = replace(SCORES, gate=SCORES, swept_as=SCORES.id)
_TEST_COLUMNS = tuple(replace(column, evaluations={"test": "local"}, extra=()) for column in SCORES.columns)


def _over(name: str, place: str, clients: int, labels: str, base: BaseFn, **fields: Any) -> Benchmark:
    """The scores over other clients, with the settings that were tuned for three clients. labels: a description."""
    return another(
        _STUDY,
        name,
        place,
        f"Accuracy of federated parameter-efficient fine-tuning over {clients} clients {labels}",
        also=f"- clients: {clients} clients of equal size {labels}. Settings are those of fedpeft-scores.",
        base=base,
        scales=_LITE,
        without_training=paper.CORRECTED,
        deviations=tuple(entry for entry in DEVIATIONS if entry.id != "clients"),
        **fields,
    )


_DIRICHLET = "with Dirichlet label skew (α = 0.5)"
TEN = _over("ten", "10 clients", 10, _DIRICHLET, paper.base_over(10))
FIFTY = _over(
    *("fifty", "50 clients", 50, "with one label each", paper.base_over(50, paper.one_label(50))),
    columns=SCORES.columns[1:],
)
EVEN = _over(
    *("even", "balanced labels", 3, "with balanced labels"),
    paper.base_over(paper.CLIENTS, [[50.0, 50.0]] * paper.CLIENTS),
)

_STEPS = {
    "few": ("5 steps a round", {"training.rounds": 24, "training.batch_size": 144}),
    "many": ("45 steps a round", {"training.rounds": 3, "training.batch_size": 16}),
}
LOCAL_WORK = another(
    _STUDY,
    "localwork",
    "local work",
    f"Accuracy of FLoRA and FedIT by the steps between two aggregations, over 3 clients {_DIRICHLET}",
    rows=tuple(
        row.changed(changes, id=f"{row.id}-{id}", name=with_detail(row.name, name), tuned_as=row.id)
        for row in map(SCORES.row, ("fedit", "flora"))
        for id, (name, changes) in _STEPS.items()
    ),
    columns=SCORES.columns[1:],
    scales=_LITE,
    view=View("scores", {"at": "last"}),  # 45 steps a round leave three rounds
    also="""
- steps (lite): 5, 10 (fedpeft-scores) and 45 steps per round: 24 rounds of one epoch with 144 texts per batch, 12 with
  72, and three with 16. Each makes 120 to 135 steps in all, so the first sees each text eight times as often as the
  last. All use the learning rate tuned for 10.
""",
)

# ---- where a personalised method's gain comes from ---------------------------------------------------------------


_CORRECTION = "label-prior correction"


def _parts(table: Benchmark, name: str, place: str, skew: str) -> Benchmark:
    """FedSA-LoRA's gain over FedIT in parts: the label-prior correction, the head, and the rest."""
    return another(
        replace(_STUDY, base=table.base),
        name,
        place,
        f"FedSA-LoRA's gain over FedIT, over 3 clients {skew}, decomposed: {_CORRECTION}, local head and local B",
        also="""
- parts: Label-prior correction (logit adjustment, Menon et al. 2021): (FedIT + prior) − FedIT. Local head: FedPer-LoRA
  − (FedIT + prior); the table shows it with the opposite sign. Local B: FedSA-LoRA − FedPer-LoRA. A part whose interval
  lies within 1 point of 0 is said to add less than 1 point. The correction and the head overlap: in the sum the
  correction comes first, and the table shows what each gains alone.
- labels: Test texts have a client's training label distribution. The authors' validation texts are a separate draw
  (commit fc276b5e), so a client's training label distribution does not predict that of its validation texts.
""",
        rows=(*map(SCORES.row, ("fedit", "fedper-lora", "fedsa-lora", "fedsa-lora-shared", "share-b")), paper.LOCAL),
        columns=_TEST_COLUMNS,
        view=View(
            "gains",
            {
                "reference": "fedit",
                "part": "fedper-lora",
                "headline": "fedsa-lora",
                "at": "late",
                "is": "what a local B adds to a local head",
                "kind": "described in the protocol before the runs",
                "sum": {
                    _CORRECTION: ("fedit-prior-strength", "fedit"),
                    "local head": ("fedper-lora", "fedit-prior-strength"),
                    "local B": ("fedsa-lora", "fedper-lora"),
                },
                "within": 1.0,  # docs/protocol.md
                "alone": {
                    f"{_CORRECTION} (logit adjustment) of FedIT": "fedit-prior-strength",
                    "local head (FedPer-LoRA)": "fedper-lora",
                    "local training (no communication)": paper.LOCAL.id,
                },
                "local": paper.LOCAL.id,
                "called": "local accuracy",
                "elsewhere": ("independent/accuracy", "balanced accuracy"),
            },
        ),
        without_training=tuple(row for row in paper.CORRECTED if row.corrects == "fedit"),
        average="",
    )


PARTS = (
    _parts(SCORES, "parts", "gain decomposition", _DIRICHLET),
    _parts(ONE_LABEL, "onelabelparts", "gain decomposition, one label", "with one label each"),
)

# ---- what aggregation makes of low-rank updates ------------------------------------------------------------------


def _measured(*names: str) -> tuple[Column, ...]:
    """The suite's tasks, scored by measures of a round's aggregation."""
    scores = tuple(f"round/{name}" for name in names)
    return tuple(
        replace(column, scores=scores, averaged=scores[0], evaluations={"round": ""}, extra=())
        for column in SCORES.columns
    )


_LORA = (
    *("fedit", "ffa-lora", "rolora", "fedsa-lora", "flora", "flexlora", "fedex-lora", "fedex-lora-dense"),
    *("fedex-lora-transposed", "fedrot-lora", "fedsvd"),
)
_AT_FEDITS_RATE = SCORES.row("fedrot-lora").changed(
    {}, id="fedrot-lora-same-rate", name="FedRot-LoRA (λ = 1, FedIT's learning rate)", tuned_as="fedit"
)
AGGREGATION = another(
    _STUDY,
    "aggregation",
    "aggregation",
    "How far the aggregate of a round is from the mean of the clients' products B A, over 3 clients",
    also="""
- error: The norm of the difference between the clients' products B A at the start of the next round and the mean of
  their trained products, over the norm of that mean. A local B is the client's; merged weights count if the method
  changes them. Means weight clients by examples, over all layers together. Exact methods reach fp32's rounding: 1e-7,
  or 1e-6 if products are merged into weights, which are larger.
- rates: FedRot-LoRA has its tuned learning rate in one row and FedIT's in another. Where these are equal, the rows are
  the same runs.
""",
    rows=(*map(SCORES.row, _LORA), _AT_FEDITS_RATE),
    columns=_measured("aggregation_error"),
    view=View("curves", {"quantity": "score"}),
    average="",
)
AGGREGATION_ONE_LABEL = another(
    AGGREGATION,
    "aggregation-onelabel",
    "aggregation, one label",
    "How far a round's aggregate is from the mean of the clients' products B A, over 3 clients with one label each",
    base=ONE_LABEL.base,
)


def _with_own_draws(row: Row) -> Row:
    """The row with another initial A for each client."""
    return row.changed(
        {"adapter": {**paper.LORA, "draws": "own"}},
        id=f"{row.id}-own-draws",
        name=with_detail(row.name, "separate initial A per client"),
        note="each client starts with an A from a different seed",
        tuned_as=row.id,
    )


_SHARE_B = SCORES.row("share-b")
SIMILARITY = another(
    _STUDY,
    "similarity",
    "similarity",
    "Similarity of two clients' factors A and B by the initialisation of A, over 3 clients",
    also="""
- cosine: Between two clients' factors after training, mean over pairs, layers and the last three rounds. It depends on
  the basis: with different initial A it is near 0, even if both A have the same row space.
- overlap: The mean squared cosine of the principal angles between two clients' row spaces of A: 1 for the same space,
  rank ÷ width for independent draws before training. It does not depend on the basis.
""",
    rows=(
        *(paper.LOCAL, _with_own_draws(paper.LOCAL), _SHARE_B, _with_own_draws(_SHARE_B)),
        *map(SCORES.row, ("fedsa-lora", "fedit")),
    ),
    columns=_measured("cosine_a", "cosine_b", "overlap_a"),
    average="",
)

# ---- scores against communication cost ---------------------------------------------------------------------------

_EQUAL_BYTES = tuple(
    row.changed(
        {"adapter": {**paper.LORA, "r": 2 * RANK, "alpha": 32.0}},
        id=f"{row.id}-r16",
        name=with_detail(row.name, f"r = {2 * RANK}"),
        note=f"sends as many factor values as FedIT at r = {RANK}",
        tuned_as=row.id,
    )
    for row in map(SCORES.row, ("ffa-lora", "rolora", "fedsa-lora", "fedsa-lora-shared"))  # send one of two factors
)
FRONTS = another(
    SCORES,
    "fronts",
    "Pareto fronts",
    "Accuracy against one client's uplink and downlink, over 3 clients; methods that send one factor also with r = 16",
    also=f"""
- constant: Predicting each client's majority class needs no communication; fedpeft-guide compares the best methods
  with it.
- equal-bytes: Methods that send one factor also have a row with r = {2 * RANK}, with the same scale α / r and the
  learning rate that was tuned for r = {RANK}.
""",
    rows=(*METHODS, *_EQUAL_BYTES, paper.LOCAL),
    columns=_TEST_COLUMNS,
    view=View(
        "orders",
        {
            "megabytes": 8,
            "front": (1, 2, 4, 8, 40, 1000),
            "directions": ("up", "down"),
            "networks": ("3g", "datacentre"),
        },
    ),
    without_training=paper.CORRECTED,
    swept_as=SCORES.id,
    average="",
)

GUIDE = another(
    SCORES,
    "guide",
    "recommendations",
    "Which method for which communication budget, number of clients and label distribution",
    columns=_TEST_COLUMNS,
    view=View(
        "benchmarks.fedpeft.guide.Guide",
        {
            "tables": {
                SCORES.id: "3 clients, Dirichlet label skew",
                ONE_LABEL.id: "3 clients, one label each",
                EVEN.id: "3 clients, balanced labels",
                TEN.id: "10 clients, Dirichlet label skew",
                FIFTY.id: "50 clients, one label each",
            },
            "megabytes": (4, 8, 40, 1200),
            "without": tuple(row.id for row in paper.REFERENCES if row is not paper.LOCAL),
            "alone": paper.LOCAL.id,
            "constant": "local-majority",
            "named": 3,
            "scores": {
                "test/accuracy": "local accuracy",
                "independent/accuracy": "balanced accuracy",
            },
        },
    ),
    swept_as=SCORES.id,
    without_training=paper.CORRECTED,
    average="",
)

BENCHMARKS = (GUIDE, *PARTS, FRONTS, TEN, FIFTY, EVEN, LOCAL_WORK, AGGREGATION, AGGREGATION_ONE_LABEL, SIMILARITY)
