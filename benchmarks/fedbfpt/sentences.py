"""FedBFPT, further pre-training on sentences, cut at 128 tokens, as the authors' code has them. No table of the paper.

make fedbfpt-sentences SCALE=lite TASKS=corpus-biology-sentences DATA_DIR=<folder with corpora>
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.experiment import Column, Row, Scale
from benchmarks.fedbfpt.pretraining import BENCHMARK as PASSAGES
from benchmarks.fedbfpt.setup import BEFORE, BERT_C, BERT_FL, FEDBFPT, SCALES, SMALLER
from benchmarks.publication import Deviation
from benchmarks.run_config import RunConfig

OF = {f"{column.task}-sentences": column for column in PASSAGES.columns}  # its task -> the column of whole passages


def base_cell(row: Row, column: Column, scale: Scale, seed: int) -> RunConfig:
    """The cell of whole passages, with the settings that were chosen for it, on their sentences."""
    as_chosen = replace(scale, search=PASSAGES.scale(scale.id).search)
    return replace(PASSAGES.cell(row, OF[column.task], as_chosen, seed), task=column.task)


BENCHMARK = replace(
    PASSAGES,
    id="fedbfpt-sentences",
    place="sentences",
    title="Perplexity of held-out sentences after further pre-training, 6 clients, three domains; no table of the "
    "paper",
    rows=tuple(PASSAGES.row(row.id) for row in (BEFORE, BERT_C, BERT_FL, *SMALLER, FEDBFPT)),
    columns=tuple(replace(column, task=task, name=f"{column.name}, sentences") for task, column in OF.items()),
    scales=SCALES,
    base=base_cell,
    deviations=(
        *(entry for entry in PASSAGES.deviations if entry.id not in ("blocks", "tuning")),
        Deviation(
            "blocks",
            "Passages are split into sentences by punctuation, each cut at 128 tokens, as in the authors' code; how "
            "that splits is not known. Their perplexity is not that of whole passages, in which more context is read.",
            ("lite", "paper"),
        ),
        Deviation("tuning", "Rates are those chosen for whole passages of the same domain.", ("lite",)),
    ),
)
