"""One cell of each committed column on the real files with the real encoder, cut so short that it takes seconds."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.fedsplitbert.setup import LABEL_SHARES_3
from benchmarks.results import RunResult, read_results
from benchmarks.running.data_split import VALIDATION_SHARE
from benchmarks.tasks import DataSource, task
from partitions import PartitionReport

# Of a client's 1260 examples 95 % are put aside, of the 63 left 95 % are scored: 3 to train, 60 to score.
SHORT = ("training.rounds=1", "test_share=0.95", "holdout=validation", "options.critical_layer=6")
COLUMNS = {
    "mrpc": ("MRPC", "Quality", {"0": 0, "1": 1}),
    "rte": ("RTE", "label", {"entailment": 0, "not_entailment": 1}),
}


@pytest.fixture(scope="module", params=COLUMNS)
def column(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def record(
    column: str,
    data_dir: Path,
    encoder_dir: Path,
    run_words: Callable[..., list[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> RunResult:
    results = tmp_path_factory.mktemp("real")
    words = run_words(results, "fedsplitbert", *SHORT)
    words[words.index("mrpc")] = column
    assert main([*words, "--scale", "lite", "--data-dir", str(data_dir)]) == 0
    (found,) = read_results(results / "records")
    return found


def label_counts(column: str, data_dir: Path) -> Counter[int]:
    """Labels of train and dev, counted in the files themselves."""
    folder, name, ids = COLUMNS[column]
    counts: Counter[int] = Counter()
    for part in ("train.tsv", "dev.tsv"):
        with (data_dir / "glue_data" / folder / part).open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            counts.update(ids[row[name]] for row in rows)
    return counts


def test_clients_have_the_largest_equal_size_that_the_labels_allow(
    column: str, record: RunResult, data_dir: Path
) -> None:
    counts = label_counts(column, data_dir)
    shares = [sum(row[label] for row in LABEL_SHARES_3[column]) / 100 for label in (0, 1)]
    size = int(min(sum(counts.values()) / 3, counts[0] / shares[0], counts[1] / shares[1]))
    if column == "mrpc":
        assert size == 1260  # 1323 examples of label 0, of which the three clients want 105 % of a size
    report = PartitionReport.from_json(record.partition)
    assert report.sizes == (size, size, size)
    assert report.n_examples == sum(counts.values())
    for client, obtained in enumerate(report.obtained_counts or ()):
        assert obtained[1] == pytest.approx(size * LABEL_SHARES_3[column][client][1] / 100, abs=1)
    left = size - round(0.95 * size)
    assert [client["test"] for client in record.clients] == 3 * [round(VALIDATION_SHARE * left)]


def test_bytes_are_the_closed_form(record: RunResult) -> None:
    hidden, inner = 384, 1536
    layer = 4 * (hidden**2 + hidden) + 2 * hidden * inner + inner + hidden + 4 * hidden
    expected = 3 * 3 * layer * 4  # 3 clients, 3 of 6 layers, 4 bytes a value
    assert record.rounds[0].up_bytes == record.rounds[0].down_bytes == expected
    head = 2 * hidden + 2  # one linear layer over the mean of the tokens
    embeddings = (30522 + 512 + 2 + 2) * hidden
    assert record.setup_bytes == 3 * 4 * (embeddings + 6 * layer + head)
    plan = wire_plan(record.cell)
    assert (plan.up_bytes, plan.down_bytes, plan.setup_bytes) == (expected, expected, record.setup_bytes)


def test_a_record_names_its_data_by_content(column: str, record: RunResult, data_dir: Path, tmp_path: Path) -> None:
    folder = COLUMNS[column][0]
    shutil.copytree(data_dir / "glue_data" / folder, tmp_path / folder)  # another place, the other layout
    elsewhere = task(column).load(DataSource(tmp_path))
    assert record.inputs["data"]["digest"] == elsewhere.digest
    assert record.inputs["data"]["origin"] == f"folder: {folder}/train.tsv, {folder}/dev.tsv"
    assert record.inputs["data"]["skipped"] == []
    assert str(data_dir) not in json.dumps(record.to_json())


def test_the_encoder_is_pre_trained_and_learns(record: RunResult) -> None:
    assert record.inputs["backbone"]["config"]["num_hidden_layers"] == 6
    (entry,) = record.rounds
    assert entry.train_loss is not None
    assert 0 < entry.train_loss < 2
    for scores in entry.client_scores:
        assert 0 <= scores["test"]["accuracy"] <= 1
