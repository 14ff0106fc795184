"""Rows that need no run: another row's stored answers, corrected with the clients' label statistics."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.experiment import Row


@dataclass(frozen=True)
class Correction:
    """A correction of stored answers; `reports.evidence.corrections` computes it. name, note: {} is the row's name."""

    name: str
    note: str


PRIOR, STRENGTH, THRESHOLD = "prior", "prior-strength", "threshold"
CORRECTIONS = {
    PRIOR: Correction(
        "{} + prior",
        "each client's label shares correct {}'s answers: log p(label at the client) − log p(label over all clients), "
        "from counts of training labels, is added to the logits (Menon et al. 2021); no training, 4 bytes a label",
    ),
    STRENGTH: Correction(
        "{} + prior, strength chosen",
        "as + prior, times one strength for all clients, the best for the mean accuracy on their validation examples "
        "(0 to 8 in quarters; of equals the smallest)",
    ),
    THRESHOLD: Correction(
        "{} + one threshold a client",
        "each client moves the threshold between two labels to where its own validation examples are answered best (of "
        "equals the smallest move); it knows nothing of other clients",
    ),
}


def without_training(row: Row, *corrections: str) -> tuple[Row, ...]:
    """The rows that correct a row's answers, scored at the last rounds; all corrections if none is given."""
    return tuple(
        replace(
            row,
            id=f"{row.id}-{id}",
            name=CORRECTIONS[id].name.format(row.name),
            note=f"{CORRECTIONS[id].note.format(row.name)}; scored at the last round",
            printed=False,
            corrects=row.id,
            correction=id,
        )
        for id in corrections or CORRECTIONS
    )
