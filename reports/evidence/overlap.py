"""Overlap: how much of what is scored has its first text in training too, as the records' partitions say."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.results import RunResult


def overlap_note(name: str, evaluation: str, records: Sequence[RunResult]) -> str:
    """A column's overlap in words, over the records that have some; "" where there is none, or none was measured.

    name: of the column. A record's `partition["overlap"][evaluation]` holds numbers of examples: "examples" that are
    scored, "shared" with the first text of an example on which some client trains, and "opposite", those of them to
    whose text training mostly gives another label (None of scores).
    """
    found = [entry for record in records if (entry := record.partition.get("overlap", {}).get(evaluation))]
    if not found:
        return ""
    examples = sum(int(entry["examples"]) for entry in found)
    shared = sum(int(entry["shared"]) for entry in found)
    text = (
        f"{name}: {_percent(shared / examples)} of the {evaluation} examples have the first text of a training example"
    )
    if all(entry["opposite"] is not None for entry in found):
        opposite = sum(int(entry["opposite"]) for entry in found)
        text += f"; in {_percent(opposite / shared)} of these cases training mostly gives that text another label"
    return f"{text}. The setting grouped = true keeps such examples on one side."


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
