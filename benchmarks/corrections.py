"""Rows that need no run: another row's stored answers, corrected with the clients' label statistics."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.experiment import Row


@dataclass(frozen=True)
class Correction:
    """A correction of stored answers, computed by `reports.evidence.corrections`. name, note: {} is the row's name."""

    name: str
    note: str


PRIOR, STRENGTH, THRESHOLD = "prior", "prior-strength", "threshold"
CORRECTIONS = {
    PRIOR: Correction(
        "{} + prior (strength 1)",
        "each client's label shares correct {}'s answers: log p(label at the client) − log p(label over all clients), "
        "from counts of training labels, is added to the logits (Menon et al. 2021); no training, 4 bytes per label",
    ),
    STRENGTH: Correction(
        "{} + prior",
        "as with strength 1, times one strength for all clients, which maximises mean accuracy on their validation "
        "examples (0 to 8 in quarters; the smallest of ties)",
    ),
    THRESHOLD: Correction(
        "{} + one threshold per client",
        "each client moves the threshold between two labels to maximise accuracy on its validation examples (the "
        "smallest move of ties), without information about other clients",
    ),
}


def without_training(row: Row, *corrections: str) -> tuple[Row, ...]:
    """The rows that correct a row's kept answers; all corrections if none is given."""
    return tuple(
        replace(
            row,
            id=f"{row.id}-{id}",
            name=CORRECTIONS[id].name.format(row.name),
            note=f"{CORRECTIONS[id].note.format(row.name)}; scored at {row.name}'s rounds. Answers are stored "
            "only for the chosen round and the last ones",
            printed=False,
            corrects=row.id,
            correction=id,
        )
        for id in corrections or CORRECTIONS
    )
