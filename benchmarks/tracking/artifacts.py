"""Small files that MLflow shows next to a run's record: each client's scores, and a confusion matrix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.predictions import predictions_file, read_predictions
from benchmarks.results import RunResult
from benchmarks.tasks import task


def clients_csv(record: RunResult) -> str:
    """Each client's numbers of examples, and its scores at the chosen round; "" for a record without clients."""
    scores = record.rounds[record.chosen_round - 1].client_scores if record.rounds else ()
    rows = [
        client | {f"{part}/{name}": value for part, values in parts.items() for name, value in values.items()}
        for client, parts in zip(map(dict, record.clients), scores, strict=bool(scores))
    ]
    return str(pd.DataFrame(rows).to_csv(index=False)) if rows else ""


def answers_file(record: RunResult, records_dir: Path) -> Path | None:
    """The file with a run's predictions, next to its record or in the results folder; None if there is no such file."""
    folders = [folder for folder in (record.folder, records_dir) if folder is not None and record.predictions]
    return next((path for path in (predictions_file(folder, record) for folder in folders) if path.is_file()), None)


def confusion_csv(record: RunResult, answers: Path) -> str:
    """Test examples by label and prediction at the chosen round; "" for a task without one label for each text."""
    labels = task(record.cell.task).labels
    parts = [entry for (_, part), entry in read_predictions(answers.parent, record).items() if part == "test"]
    if not labels or not parts or any(entry.chosen.shape != (len(entry.gold), len(labels)) for entry in parts):
        return ""
    gold, answered = (
        pd.Categorical.from_codes(np.concatenate(codes), list(labels))
        for codes in zip(*((entry.gold, entry.chosen.argmax(axis=1)) for entry in parts), strict=True)
    )
    counts = pd.crosstab(gold, answered, rownames=["label"], colnames=["answer"], dropna=False)
    return str(counts.to_csv())
