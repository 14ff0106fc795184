"""The suite's methods, clients, budgets and scales: one protocol for all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.corrections import PRIOR, STRENGTH, without_training
from benchmarks.experiment import BaseFn, Column, Row, Scale, with_lite
from benchmarks.fedpeft.forms import BUCKET, POSITIONS, RANK, RANKS, SHARE, WIDTH
from benchmarks.fedsplitbert import paper as fedsplitbert
from benchmarks.publication import Paper, deviations
from benchmarks.run_config import JSON, RunConfig
from benchmarks.sweeps.tuning import Grid, Search

PAPER = Paper(
    id="fedpeft",
    name="Federated PEFT",
    citation="a suite over FedIT, FFA-LoRA, RoLoRA, FedSA-LoRA, Fed-ALoRA, FLoRA, FlexLoRA, HetLoRA, FedEx-LoRA, "
    "FedRot-LoRA, FedSVD, Fed-SB and FedPETuning, whose tables are not comparable with each other",
    bytes_convention="one client in one round, uplink + downlink, payloads alone",
    per_client=True,
    directions=("up", "down"),
)
CLIENTS = 3
ROUNDS, STEPS = 12, 10  # at the lite scale; steps of a client per round (pilots: docs/protocol.md)

# ---- methods -----------------------------------------------------------------------------------------------------

LORA: Mapping[str, JSON] = {"kind": "lora", "r": RANK, "alpha": 16.0, "targets": ("query", "value")}


def _row(
    id: str, name: str, algorithm: str, note: str = "", adapter: Mapping[str, JSON] | None = LORA, **options: JSON
) -> Row:
    changes: dict[str, JSON] = {"algorithm": algorithm}
    changes |= {"adapter": adapter} if adapter else {}
    changes |= {f"options.{option}": value for option, value in options.items()}
    return Row(id, name, changes, printed=False, note=note)


DILOCO: Mapping[str, JSON] = {"name": "sgd", "learning_rate": 0.7, "momentum": 0.9, "nesterov": True}
FULL = _row("fedavg", "FedAvg (full model)", "fedavg", adapter=None)
FEDIT = _row("fedit", "FedIT", "fedavg", "FedAvg on LoRA: factors are averaged one by one")


def with_detail(name: str, detail: str) -> str:
    """A method's name with a further detail in its brackets, such as "FedIT (r = 16)"."""
    return f"{name.removesuffix(')')}, {detail})" if name.endswith(")") else f"{name} ({detail})"


def _coded(id: str, name: str, codec: str) -> Row:
    """FedIT with a codec in both directions, and with its tuned settings."""
    return FEDIT.changed(
        {"codec": codec}, id=f"{FEDIT.id}-{id}", name=with_detail("FedIT", name), note="", tuned_as=FEDIT.id
    )


METHODS = (
    FULL,
    FEDIT,
    _row("ffa-lora", "FFA-LoRA (head shared)", "ffa_lora"),
    _row("ffa-lora-frozen", "FFA-LoRA (head frozen)", "ffa_lora", head="frozen"),
    _row("rolora", "RoLoRA (head trained)", "rolora"),
    _row("rolora-frozen", "RoLoRA (head frozen)", "rolora", head="frozen"),
    _row("fedsa-lora", "FedSA-LoRA (local B and head)", "fedsa_lora"),
    _row("fedsa-lora-shared", "FedSA-LoRA (local B, head shared)", "fedsa_lora", head="shared"),
    _row(
        "fedsa-lora-in-turn",
        "FedSA-LoRA (one B in turn)",
        "fedsa_lora",
        "what the authors' code at commit fc276b5e computes, as its settings share one model object",
        in_turn=True,
    ),
    _row("share-b", "Share B (Fed-ALoRA)", "share_b"),
    _row(
        "flora",
        "FLoRA",
        "flora",
        "all clients draw the same new A; each draws its own in the authors' code at commit 0912cd33",
    ),
    _row("flexlora", "FlexLoRA (Σ on B)", "flexlora"),
    _row("flexlora-both", "FlexLoRA (√Σ on each)", "flexlora", values="both"),
    _row("fedex-lora", "FedEx-LoRA (factored)", "fedex_lora"),
    _row("fedex-lora-dense", "FedEx-LoRA (dense)", "fedex_lora", residual="dense"),
    _row(
        "fedex-lora-transposed",
        "FedEx-LoRA (transposed)",
        "fedex_lora",
        "the residual is added transposed, as the authors' code at commit 683a3f30 does to RoBERTa's weights",
        residual="transposed",
    ),
    _row("fedrot-lora", "FedRot-LoRA (λ = 1)", "fedrot_lora"),
    _row("fedrot-lora-soft", "FedRot-LoRA (λ tuned)", "fedrot_lora", strength=0.3),
    _row("fedsvd", "FedSVD", "fedsvd"),
    _row("hetlora", "HetLoRA (r = 8, 4, 2)", "hetlora", "by padding, without pruning", ranks=list(RANKS)),
    _row(
        "fed-sb",
        "Fed-SB (r = 8)",
        "fedavg",
        "B and A are the weight's singular vectors, not a first gradient's",
        {**LORA, "kind": "core"},
    ),
    _row("bitfit", "BitFit", "fedavg", adapter={"kind": "bitfit"}, embeddings="global"),
    _row("bottleneck", f"Adapter (m = {WIDTH})", "fedavg", adapter={"kind": "bottleneck", "r": WIDTH}),
    _row("prefix", f"Prefix (p = {POSITIONS})", "fedavg", adapter={"kind": "prefix", "r": POSITIONS}),
    _row("ia3", "(IA)³", "fedavg", adapter={"kind": "ia3"}),
    _row(
        "fedit-adam",
        "FedIT (server Adam)",
        "fedavg",
        "τ is 1e-8, as in FedRot-LoRA's optimiser; β₂ is 0.99 (theirs 0.999), and moments have no bias correction, as "
        "in FedOpt",
        server={"name": "adam", "learning_rate": 0.01, "tau": 1e-8},
    ),
    _coded("int8", "int8", "int8"),
    _coded("qsgd", f"QSGD, 7 levels, buckets of {BUCKET}", f"qsgd:7:{BUCKET}"),
    _coded("topk", f"top-k, {100 * SHARE:.0f} %", f"topk:{SHARE}"),
    _row("diloco-lora", "DiLoCo's outer step (LoRA)", "fedavg", server=DILOCO),
    _row("diloco", "DiLoCo's outer step (full model)", "fedavg", adapter=None, server=DILOCO),
    _row("fedper-lora", "FedPer-LoRA", "fedper"),
    _row("fedrep-lora", "FedRep-LoRA", "fedrep", "a round's local epochs for the head, then as many for LoRA"),
    _row("ditto-lora", "Ditto-LoRA", "ditto", "trains twice per round: the shared and the local model"),
    _row(
        "scaffold-lora", "SCAFFOLD-LoRA", "scaffold", "c_i is the mean of a round's gradients, corrected before AdamW"
    ),
    _row("scaffold", "SCAFFOLD (full model)", "scaffold", adapter=None),
)
LOCAL = _row("local-lora", "Local only (LoRA)", "fedsplitbert", "each client trains alone", critical_layer=0)
CENTRAL_LORA = _row("central-lora", "Centralised training (LoRA)", "central")
REFERENCES = (*fedsplitbert.REFERENCES[:-1], CENTRAL_LORA, LOCAL)  # LoRA replaces full local training

CORRECTED = tuple(each for row in (FULL, FEDIT) for each in without_training(row, PRIOR, STRENGTH))

# ---- settings ----------------------------------------------------------------------------------------------------

# Pilots of FedIT, FFA-LoRA, FedSA-LoRA and centralised training gave the ranges (docs/protocol.md). They are a decade
# higher for rows that train few values or no A, and a decade lower for full models.
RATES = (1e-4, 2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3, 7e-3, 1e-2)
HIGH_RATES = (1e-3, 2.5e-3, 5e-3, 1e-2, 2e-2, 4e-2, 7e-2, 1e-1)
FULL_RATES = (1e-5, 2.5e-5, 5e-5, 1e-4, 2e-4, 4e-4, 7e-4, 1e-3)
_FULL_MODEL = (FULL.id, "diloco", "scaffold", "central")
_HIGH = ("ffa-lora", "ffa-lora-frozen", "fedsvd", "ia3", "fed-sb")
_TUNED = (*(row.id for row in METHODS if not row.tuned_as), "central", CENTRAL_LORA.id, LOCAL.id)


def _rates(row: str) -> Grid:
    rates = FULL_RATES if row in _FULL_MODEL else HIGH_RATES if row in _HIGH else RATES
    return {"training.learning_rate": rates}


_ROW_GRIDS: Mapping[str, Grid] = {
    "fedrot-lora-soft": {
        "training.learning_rate": (4e-3, 7e-3),  # FedRot-LoRA's best with λ = 1, and the next
        "options.strength": (0.1, 0.3, 0.5, 1.0),  # the authors'
    },
    "fedit-adam": {
        "training.learning_rate": (1e-3, 4e-3),
        "options.server.learning_rate": (1e-3, 3e-3, 1e-2, 3e-2),  # the authors' are the first and the third
    },
    "ditto-lora": {"training.learning_rate": (1e-3, 2e-3, 4e-3, 7e-3), "options.pull": (0.1, 1.0)},
}
SWEEPS = Path(__file__).parents[1] / "campaign" / "results" / "sweeps"  # they tune the definitions, too
MINIATURE = Search(
    {row: {**_rates(row), **_ROW_GRIDS.get(row, {})} for row in _TUNED},
    trials=8,
    rungs=(ROUNDS // 2,),  # by the second round most rows still predict a single class
    seeds=(1002,),  # the first from 1000 with 10 to 90 % of each label on every client: docs/protocol.md
    last_rounds=3,  # as tables score
    chosen=SWEEPS / f"{PAPER.id}-scores-lite.json",
)
SCALES = with_lite(fedsplitbert.SCALES, ("demo", "lite", "paper"), search=MINIATURE)
COLUMNS = tuple(
    Column(
        task,
        name,
        ("test/accuracy",),
        "test/accuracy",
        {"test": "local", "independent": "balanced"},
        extra=("independent/accuracy", "pooled/accuracy"),
        scales=scales,
    )
    for task, name, scales in (
        ("mrpc", "MRPC", ("demo", "lite", "paper")),
        ("sst2", "SST-2", ("lite", "paper")),
        ("qnli", "QNLI", ("lite", "paper")),
    )
)

# ---- clients -----------------------------------------------------------------------------------------------------


BALANCE = 20  # points; otherwise all clients may have the same majority class
_LEARNED = round(fedsplitbert.LITE_LEARNED * 0.9)  # texts of a large task that all clients train on in a round


def drawn(concentration: float, of: Sequence[float] = (0.5, 0.5)) -> dict[str, JSON]:
    """Label distributions from a Dirichlet distribution, drawn for each seed.

    Args:
        concentration: The sum of the distribution's parameters.
        of: The labels' mean shares, in the parameters' ratio.

    Returns:
        The partition, without its size.
    """
    return {"scheme": "drawn-shares", "concentration": concentration, "of": list(of), "balance": BALANCE / 100}


def one_label(clients: int) -> list[list[float]]:
    """Percentages of two labels: clients alternately have only one or the other."""
    return [[100.0, 0.0] if client % 2 == 0 else [0.0, 100.0] for client in range(clients)]


def base_over(clients: int, shares: Sequence[Sequence[float]] | None = None) -> BaseFn:
    """Base runs, before row changes, over clients of equal size.

    Args:
        clients: Their number.
        shares: Each client's label percentages; None draws them.

    Returns:
        The table's base function.
    """

    def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
        base = fedsplitbert.base_cell(row, column, scale, seed)
        training = base.training
        if row.changes.get("adapter"):
            training = replace(training, learning_rate=1e-2 if scale.id == "demo" else 1e-3)
        if scale.id == "lite":
            training = replace(training, rounds=ROUNDS, batch_size=_LEARNED // (clients * STEPS))
        size = fedsplitbert.subset_size(column.task, scale, clients)
        scheme = drawn(1.0) if shares is None else {"scheme": "label-table", "shares": shares}
        partition = {**scheme, "size": size}
        return replace(base, clients=clients, training=training, partition=partition, independent=True)

    return base_cell


drawn_shares = base_over(CLIENTS)


def two_rounds(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """A run that shows what a round sends: two rounds on a few examples, as bytes do not depend on them."""
    base = replace(drawn_shares(row, column, scale, seed), independent=False)
    share = 0.2 if scale.id == "demo" else 0.03  # of the examples
    training = replace(base.training, rounds=2, local_epochs=1, batch_size=16)
    return replace(base, partition={"scheme": "equal", "share": share}, training=training)


DEVIATIONS = deviations(f"""
- clients: {CLIENTS} clients of equal size with Dirichlet label skew: each seed draws their label distributions with α =
  0.5, and draws again if a label's share over all clients is more than {BALANCE} points from 50 %. Every client keeps a
  fifth of its examples for testing; on SST-2 at the lite scale, half of its examples.
- protocol: All rows share one protocol, which no paper uses: the same encoder, clients, rounds and optimiser (AdamW,
  fresh in every round), and 8 trials for each tuned row. Codecs and rank 16 take the tuned settings of their method.
  Learning-rate grids are a decade higher for FFA-LoRA, FedSVD, (IA)³ and Fed-SB, and a decade lower for full models.
  FedIT with server Adam tries two client and four server learning rates, FedRot-LoRA with a tuned λ two learning rates
  and four λ. One learning rate trains the adapter and the head, so FFA-LoRA's head has a higher learning rate than
  FedIT's. Learning rates are chosen on one draw of the label distributions, in which every client has at least 10 % of
  each label; some of the scored draws are more skewed.
- scores: Local accuracy is on test examples with a client's own training label distribution, which rewards knowing it.
  Balanced accuracy is on class-balanced test examples of all clients. Pooled accuracy is over the test examples of all
  clients: for a shared model, its global accuracy. Scores are means of the last three rounds, or of all if there are
  fewer.
- training-length (lite): {ROUNDS} rounds of about {STEPS} steps per client, except in fedpeft-localwork. With six
  rounds of 45 steps, as in FedSplitBERT's tables, FedIT is hardly better than predicting a single class under such
  label skew (pilots in docs/protocol.md).
- adapters: LoRA has r = {RANK} and α = 16 on queries and values, B = 0 and no dropout. The head is trained with
  it, unless the row freezes it.
- rank: HetLoRA only pads: it does not prune ranks, and it weights clients by size.
- codecs: FedIT's changes in int8, in QSGD's naive code and as top-k with error feedback, in both directions, with
  FedIT's tuned settings. QSGD's downloads are damped, so that the error left for the next download does not grow.
- fed-sb: A and B are the singular vectors of each weight, sent once, and R starts at 0. LoRA-XS multiplies A by the
  singular values and draws R near 0. Fed-SB's paper takes the singular vectors and values of a gradient over pooled
  texts.
- ia3: As peft selects modules by the end of their names, (IA)³ also rescales the attention's output, which the paper
  does not.
- diloco: Clients start each round with a new AdamW and take about {STEPS} steps. In DiLoCo they keep its state and take
  500.
""")
