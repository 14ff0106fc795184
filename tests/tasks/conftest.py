"""GLUE's nine tasks as small files: in the download's layout and in that of the hub's repository."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

# Whatever might be taken for a quote, a blank to strip or the end of a line, and is text.
ODD_TEXTS = (
    'He said " nothing .',
    '"quoted"',
    "it ended . ",
    "one\u2028line",
    "still\u0085one\x0cline\x1c",
    "'' \N{SNOWMAN} naïve ''",
)


@dataclass(frozen=True)
class Layout:
    """How one task's files are laid out. columns: the download's, with {0}, {1} and {label} to be filled in."""

    folder: str
    header: str
    row: str
    codes: tuple[str, ...]
    hub_texts: tuple[str, ...]
    files: tuple[tuple[str, str], ...] = (("train.tsv", "train"), ("dev.tsv", "validation"))


PAIR = ("sentence1", "sentence2")
ENTAILMENT = ("entailment", "not_entailment")
LAYOUTS = {
    "cola": Layout("CoLA", "", "gj04|{label}|*|{0}", ("0", "1"), ("sentence",)),
    "sst2": Layout("SST-2", "sentence|label", "{0}|{label}", ("0", "1"), ("sentence",)),
    "mrpc": Layout("MRPC", "Quality|#1 ID|#2 ID|#1 String|#2 String", "{label}|7|8|{0}|{1}", ("0", "1"), PAIR),
    "qqp": Layout(
        "QQP",
        "id|qid1|qid2|question1|question2|is_duplicate",
        "1|2|3|{0}|{1}|{label}",
        ("0", "1"),
        ("question1", "question2"),
    ),
    "stsb": Layout(
        "STS-B",
        "index|genre|filename|year|old_index|source1|source2|sentence1|sentence2|score",
        "0|main|f|2012|1|none|none|{0}|{1}|{label}",
        ("0.000", "3.800", "4.333", "5.000"),
        PAIR,
    ),
    "mnli": Layout(
        "MNLI",
        "index|promptID|pairID|genre|sentence1_binary_parse|sentence2_binary_parse|sentence1_parse"
        "|sentence2_parse|sentence1|sentence2|label1|gold_label",
        "0|1|1n|fiction|( a )|( b )|(ROOT a)|(ROOT b)|{0}|{1}|neutral|{label}",
        ("entailment", "neutral", "contradiction"),
        ("premise", "hypothesis"),
        (
            ("train.tsv", "train"),
            ("dev_matched.tsv", "validation_matched"),
            ("dev_mismatched.tsv", "validation_mismatched"),
        ),
    ),
    "rte": Layout("RTE", "index|sentence1|sentence2|label", "0|{0}|{1}|{label}", ENTAILMENT, PAIR),
    "qnli": Layout("QNLI", "index|question|sentence|label", "0|{0}|{1}|{label}", ENTAILMENT, ("question", "sentence")),
    "wnli": Layout("WNLI", "index|sentence1|sentence2|label", "0|{0}|{1}|{label}", ("0", "1"), PAIR),
}
Row = tuple[tuple[str, ...], str]  # texts, and the label as the download codes it


def rows_of(layout: Layout) -> list[list[Row]]:
    """Rows for each file: every odd text and every label occurs, and no two files are alike."""
    width = len(layout.hub_texts)
    return [
        [
            (tuple(ODD_TEXTS[(start + place + column) % len(ODD_TEXTS)] for column in range(width)), code)
            for place, code in enumerate((layout.codes * 3)[: 5 + start])
        ]
        for start in range(len(layout.files))
    ]


@pytest.fixture(params=LAYOUTS)
def task_id(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def layout(task_id: str) -> Layout:
    return LAYOUTS[task_id]


@pytest.fixture
def rows(layout: Layout) -> list[list[Row]]:
    return rows_of(layout)


@pytest.fixture
def write_download(tmp_path: Path) -> Callable[..., Path]:
    """Writes a task's TSV files into <tmp_path>/download and returns that folder."""

    def write(layout: Layout, rows: Sequence[Sequence[Row]], end: str = "\n", bom: bool = False) -> Path:
        place = tmp_path / "download" / "glue_data" / layout.folder
        place.mkdir(parents=True, exist_ok=True)
        for (file, _), part in zip(layout.files, rows, strict=True):
            lines = [layout.header] if layout.header else []
            lines += [layout.row.format(*texts, label=code) for texts, code in part]
            text = "".join(line.replace("|", "\t") + end for line in lines)
            (place / file).write_bytes(text.encode("utf-8-sig" if bom else "utf-8"))
        return tmp_path / "download"

    return write


@pytest.fixture
def write_hub(tmp_path: Path) -> Callable[..., Path]:
    """Writes a task's parquet files and a README with its configuration, as in the hub's repository."""

    def write(task_id: str, layout: Layout, rows: Sequence[Sequence[Row]]) -> Path:
        repository = tmp_path / "hub"
        (repository / task_id).mkdir(parents=True, exist_ok=True)
        listed = []
        for (_, split), part in zip(layout.files, rows, strict=True):
            columns = {
                name: pa.array([texts[place] for texts, _ in part]) for place, name in enumerate(layout.hub_texts)
            }
            if task_id == "stsb":
                labels = pa.array([float(code) for _, code in part], pa.float32())
            else:
                labels = pa.array([layout.codes.index(code) for _, code in part], pa.int64())
            idx = pa.array(range(len(part)), pa.int32())
            table = pa.table({**columns, "label": labels, "idx": idx})
            pq.write_table(table, repository / task_id / f"{split}-00000-of-00001.parquet")
            listed.append(f"  - split: {split}\n    path: {task_id}/{split}-*\n")
        card = f"---\nconfigs:\n- config_name: {task_id}\n  data_files:\n{''.join(listed)}---\n"
        (repository / "README.md").write_text(card)
        return repository

    return write
