"""FedFreezeBERT's definitions against the paper, and its label table on data with a central test set."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.planning import wire_plan
from benchmarks.record import RunRecord
from benchmarks.registry import benchmark, scale_of
from benchmarks.runner import run_cell
from benchmarks.settings import Settings
from reports.page import request_for
from reports.published import read_published
from reports.views import page

TABLE1, TABLE2 = benchmark("fedfreezebert-table1"), benchmark("fedfreezebert-table2")
ORIGINAL = benchmark("fedsplitbert-table4")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    ((_, _, cell),) = TABLE1.cells(scale_of(TABLE1, "demo"), [0])
    return run_cell(cell, Settings(results_dir=tmp_path_factory.mktemp("results")), lambda _: None)


def test_clients_share_out_every_tweet_and_no_test_tweet(record: RunRecord) -> None:
    shown = page(request_for(TABLE1, scale_of(TABLE1, "demo"), [record])).frame()
    clients = shown[shown["client"] != "all"].drop_duplicates("client")
    assert len(clients) == 5
    assert clients["test"].sum() == 0
    assert clients["train"].sum() == record.inputs["data"]["examples"]
    together = shown[shown["client"] == "all"]
    assert set(together["examples"]) == {record.inputs["data"]["examples"]}


def test_the_test_set_is_not_taken_for_a_clients_part(record: RunRecord) -> None:
    notes = " ".join(page(request_for(TABLE1, scale_of(TABLE1, "demo"), [record])).notes)
    assert "most frequent label's share" not in notes
    assert "not in the records" not in notes


def test_fedsplitbert_is_the_originals_with_exchanged_embeddings() -> None:
    paper = scale_of(TABLE2, "paper")
    ours = {row.id: cell for row, _, cell in TABLE2.cells(paper, [0])}["fedsplitbert-c8"]
    theirs = next(cell for row, column, cell in ORIGINAL.cells(paper, [0]) if (row.id, column.task) == ("c8", "sst2"))
    assert {**theirs.options, "embeddings": "global"} == ours.options
    assert (theirs.partition, theirs.training, theirs.clients) == (ours.partition, ours.training, ours.clients)
    embeddings = 768 * (30522 + 512 + 2 + 2)  # words, positions, types, LayerNorm
    assert wire_plan(ours).up_bytes - wire_plan(theirs).up_bytes == 3 * 4 * embeddings


def test_the_original_accuracy_is_quoted_alike_in_both_papers() -> None:
    (ours,) = read_published(TABLE2.published_csv)
    theirs = {(p.row, p.column, p.score): p.value for p in read_published(ORIGINAL.published_csv)}
    assert ours.value == theirs["c8", "sst2", "test/accuracy"]


def test_a_gigabyte_is_1024_megabytes_of_a_million_bytes() -> None:
    assert TABLE1.paper.gigabyte == 1024 * 10**6
    assert Path(TABLE1.published_csv).is_file()
