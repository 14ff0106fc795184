"""Rows that need no run: another row's stored predictions, corrected with the clients' label statistics."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.experiment import Row


@dataclass(frozen=True)
class Correction:
    """A correction of predictions, computed by `reports.evidence.corrections`. name, note: {} is the row's name."""

    name: str
    note: str


PRIOR, STRENGTH, THRESHOLD = "prior", "prior-strength", "threshold"
CORRECTIONS = {
    PRIOR: Correction(
        "{} + prior (strength 1)",
        "adds log p(label | client) − log p(label) to {}'s logits (logit adjustment, Menon et al. 2021); needs label "
        "counts, plus one each, and no training; 4 bytes per label",
    ),
    STRENGTH: Correction(
        "{} + prior",
        "adds s · (log p(label | client) − log p(label)) to {}'s logits (logit adjustment, Menon et al. 2021); one "
        "strength s for all clients, which maximises mean accuracy on their validation examples (0 to 8 in quarters; "
        "the smallest of ties)",
    ),
    THRESHOLD: Correction(
        "{} + one threshold per client",
        "each client moves the threshold between two labels to maximise accuracy on its validation examples (the "
        "smallest move of ties), without information about other clients",
    ),
}


def without_training(row: Row, *corrections: str) -> tuple[Row, ...]:
    """The rows that correct a row's stored predictions; all corrections if none is given."""
    return tuple(
        replace(
            row,
            id=f"{row.id}-{id}",
            name=CORRECTIONS[id].name.format(row.name),
            note=f"{CORRECTIONS[id].note.format(row.name)}; scored at {row.name}'s rounds. Predictions "
            "are stored only for the chosen round and at most the last three",
            printed=False,
            corrects=row.id,
            correction=id,
        )
        for id in corrections or CORRECTIONS
    )
