"""The view of label distributions, on records of clients that the project's own partitioners made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.record import RoundRecord, RunRecord
from benchmarks.registry import benchmark
from partitions import from_description, split_train_test
from reports import ReportError
from reports.evidence.labels import distribution, label1_ranges
from reports.evidence.records import request_for
from reports.pages.page import Group, Page
from reports.pages.plots import render
from reports.views import page

TABLES = {3: benchmark("fedsplitbert-table1"), 10: benchmark("fedsplitbert-table2")}
MRPC = np.repeat([0, 1], [1323, 2753])  # as many as in train and dev
COLA = np.repeat([0, 1], [300, 700])
STSB = np.linspace(0, 5, 90)
MNLI = np.arange(3300) % 3
RecordOf = Callable[..., RunRecord]


@pytest.fixture(scope="module")
def labelled() -> RecordOf:
    """A local majority's record of examples with these labels, shared out and split as the definition says."""

    def build(
        task: str, labels: np.ndarray, *, clients: int = 3, seed: int = 0, scale: str = "literal", digest: str = "d0"
    ) -> RunRecord:
        table = TABLES[clients]
        column = next(column for column in table.columns if column.task == task)
        cell = table.cell(table.rows[0], column, table.scale(scale), seed)
        partition = from_description(cell.partition)(labels, clients, np.random.default_rng(seed))
        sizes, scores = [], []
        for client, indices in enumerate(partition.indices):
            own = labels[indices]
            train, test = split_train_test(
                own, cell.test_share, np.random.default_rng(client), stratify=labels.dtype.kind == "i"
            )
            answer = np.bincount(own[train].astype(int)).argmax()
            sizes.append({"client": client, "train": train.size, "test": test.size})
            accuracy = float((own[test] == answer).mean())
            scores.append(
                {"test": {"matthews_correlation": 0.0} if task in ("cola", "stsb") else {"accuracy": accuracy}}
            )
        entry = RoundRecord(1, tuple(range(clients)), None, (), {"test": {}}, tuple(scores), 0, 0)
        inputs = {"data": {"digest": digest}, "backbone": {"digest": "b0"}}
        return RunRecord(
            cell=cell,
            cell_id=cell.cell_id({"data": digest, "backbone": "b0"}),
            inputs=inputs,
            partition=partition.report.to_json(),
            clients=tuple(sizes),
            rounds=(entry,),
            sampling_errors={},
            setup_bytes=0,
            ledger=(),
            environment={},
            timing={},
            finished=f"2025-01-01T00:00:0{seed}+00:00",
        )

    return build


def page_of(records: Sequence[RunRecord], clients: int = 3, scale: str = "literal", tasks: Sequence[str] = ()) -> Page:
    table = TABLES[clients]
    return page(
        request_for(
            table, table.scale(scale), records, (), [column for column in table.columns if column.task in tasks]
        )
    )


def lines_of(group: Group) -> dict[str, tuple[str, ...]]:
    return {line.label: line.cells for line in group.lines}


def note_with(shown: Page, start: str) -> str:
    (note,) = (note for note in shown.notes if note.startswith(start))
    return note


def test_what_is_held_back_for_validation_is_held(labelled: RecordOf) -> None:
    whole = labelled("mrpc", MRPC)
    held = replace(
        whole, clients=tuple(each | {"train": each["train"] - 100, "validation": 100} for each in whole.clients)
    )
    (before,), (grid,) = page_of([whole]).grids, page_of([held]).grids
    assert lines_of(grid.groups[0])["train + validation + test"] == ("908 + 100 + 252",)
    assert lines_of(grid.groups[3]) == lines_of(before.groups[3])


def test_a_client_has_what_was_requested_obtained_and_printed(labelled: RecordOf) -> None:
    shown = page_of([labelled("mrpc", MRPC)])
    (grid,) = shown.grids
    assert (grid.stub, [group.name for group in grid.groups]) == ("Client", ["1", "2", "3", "all"])
    assert grid.headers == (("MRPC", "label 1/label 0"),)
    # The largest size is 1323 / (0.05 + 0.25 + 0.75) = 1260; a test part is a fifth.
    assert lines_of(grid.groups[0]) == {
        "requested": ("95/5",),
        "obtained": ("95.00/5.00",),
        "reported": ("95/5",),
        "difference": ("+0.00/+0.00",),
        "train + test": ("1008 + 252",),
    }
    assert lines_of(grid.groups[2])["obtained"] == ("25.00/75.00",)
    # Used: 3 * 1260 of 4076. Label 1: 1260 * (0.95 + 0.75 + 0.25) = 2457 are used, 296 of either label are not.
    assert lines_of(grid.groups[3]) == {
        "mean over clients": ("65.00/35.00",),
        "first label in the data, between": (f"{100 * 2457 / 4076:.2f}–{100 * 2753 / 4076:.2f}",),
        "examples in the data": ("4076",),
        "used": ("3780",),
        "unused": ("296 (7.26 %)",),
    }
    assert (shown.run, shown.cells) == (1, 9)
    assert note_with(shown, "Not run:").startswith("Not run: CoLA, SST-2")


def test_a_normalised_row_differs_from_print(labelled: RecordOf) -> None:
    shown = page_of([labelled("mrpc", MRPC, clients=10)], 10)
    last = lines_of(shown.grids[0].groups[9])
    # 51/48 scaled by 100/99; 1323 / 4.6448 = 284 examples a client, of which round(284 * 51 / 99) = 146.
    assert last["requested"] == ("51.52/48.48",)
    assert last["reported"] == ("51/48",)
    assert last["obtained"] == (f"{100 * 146 / 284:.2f}/{100 * 138 / 284:.2f}",)
    assert last["difference"] == ("+0.41/+0.59",)
    assert "client 10" in note_with(shown, "Deviation client-10")


def test_scores_have_a_mean_and_a_range(labelled: RecordOf) -> None:
    shown = page_of([labelled("stsb", STSB)])
    lines = lines_of(shown.grids[0].groups[1])
    middle = STSB[30:60]
    assert lines["requested"] == ("part 2 of 3",)
    assert lines["obtained"] == (f"{middle.mean():.2f} ({middle.min():.2f}–{middle.max():.2f})",)
    assert lines["reported"] == ("2.90",)
    assert lines["difference"] == ("−0.40",)
    assert lines_of(shown.grids[0].groups[3])["first label in the data, between"] == ("–",)
    assert "STS-B" in note_with(shown, "Labels or scores of the test parts")


def test_labels_stand_in_the_order_of_print(labelled: RecordOf) -> None:
    shown = page_of([labelled("mnli", MNLI)])
    assert shown.grids[0].headers == (("MNLI", "entailment/neutral/contradiction"),)
    assert [lines_of(group)["requested"] for group in shown.grids[0].groups[:3]] == [
        ("86/5/9",),
        ("5/90/5",),
        ("5/5/90",),
    ]


def test_the_demo_shows_no_published_number(labelled: RecordOf) -> None:
    shown = page_of([labelled("mrpc", MRPC, scale="demo")], scale="demo")
    assert not {"reported", "difference"} & set(lines_of(shown.grids[0].groups[0]))
    assert shown.frame()["published"].isna().all()
    assert not [note for note in shown.notes if note.startswith(("Label order", "Difference"))]


def test_real_data_settle_the_label_order(labelled: RecordOf) -> None:
    shown = page_of([labelled("mrpc", MRPC), labelled("rte", np.repeat([0, 1], [500, 501]))])
    settled, level = (note for note in shown.notes if note.startswith("Label order"))
    assert "MRPC (65.0 against 35.0; data 60.3 to 67.5)" in settled
    assert level.endswith(": RTE.")
    # Mirrored data leave so much unused that nothing is settled: 1323 of label 1, 195 % of a size wanted.
    assert not [n for n in page_of([labelled("mrpc", 1 - MRPC)]).notes if n.startswith("Label order")]


def test_test_parts_agree_with_their_client_to_within_one_example(labelled: RecordOf) -> None:
    record = labelled("mrpc", MRPC)
    assert note_with(page_of([record]), "The most frequent label").endswith("to within one example: MRPC.")
    scores = [
        {"test": {"accuracy": (entry["test"]["accuracy"] or 0) - 5 / 252}} for entry in record.rounds[0].client_scores
    ]
    skewed = replace(record, rounds=(replace(record.rounds[0], client_scores=tuple(scores)),))
    assert "not so: MRPC (by 5." in note_with(page_of([skewed]), "The most frequent label")


def test_the_lowest_seed_is_shown(labelled: RecordOf) -> None:
    records = [labelled("mrpc", MRPC, seed=seed) for seed in (2, 0, 1)]
    shown = page_of(records)
    assert note_with(shown, "MRPC: seed") == "MRPC: seed 0 shown; seeds 1, 2 have the same numbers."
    report = {**records[0].partition, "obtained_counts": [[60, 1200], [315, 945], [945, 315]]}
    other = replace(records[0], partition=report)
    assert "differ by up to 3 in" in note_with(page_of([other, *records[1:]]), "MRPC: seed")


def test_nothing_run_is_a_page_too() -> None:
    shown = page_of([])
    assert [group.name for group in shown.grids[0].groups] == ["1", "2", "3"]
    assert set(lines_of(shown.grids[0].groups[0])["obtained"]) == {"not run"}
    assert set(shown.frame()["status"]) == {"not run"}
    assert shown.run == 0
    assert shown.figure is not None
    assert render(shown.figure, "png")[0].startswith(b"\x89PNG")


def test_long_form_holds_every_number(labelled: RecordOf) -> None:
    table = page_of([labelled("mrpc", MRPC), labelled("stsb", STSB)], tasks=("mrpc", "stsb")).frame()
    # MRPC 3 clients × 2 labels and 2 means, STS-B 3 means and the mean of them.
    assert len(table) == 6 + 2 + 3 + 1
    clients = table[(table.column == "mrpc") & (table.client != "all")]
    assert (clients.obtained - clients.requested).abs().max() < 1e-9
    assert set(clients.examples) == {1260}
    assert (clients.train + clients.test == clients.examples).all()
    (whole,) = table[(table.column == "mrpc") & (table.client == "all") & (table.score == "share/label1")].itertuples()
    assert (whole.examples, whole.available) == (3780, 4076)
    assert whole.data_low < 100 * 2753 / 4076 <= whole.data_high
    scores = table[(table.column == "stsb") & (table.client == "1")]
    assert scores[["lowest", "highest"]].to_numpy().tolist() == [[STSB[0], STSB[29]]]


@pytest.mark.parametrize("tasks", [("mrpc",), ("mrpc", "mnli", "stsb", "cola")])
def test_the_figure_is_drawn_the_same_twice(labelled: RecordOf, tasks: Sequence[str]) -> None:
    data = {"mrpc": MRPC, "mnli": MNLI, "stsb": STSB, "cola": COLA}
    shown = page_of([labelled(task, data[task]) for task in tasks])
    assert shown.figure is not None
    assert len([axes for axes in shown.figure().axes if axes.axison]) == len(tasks)
    assert render(shown.figure, "svg") == render(shown.figure, "svg")


def test_a_record_with_other_labels_is_refused(labelled: RecordOf) -> None:
    record = labelled("mrpc", MRPC)
    column = TABLES[3].columns[0]
    for wrong in ((), ((1, "label 1"),), ((2, "a"), (1, "b"), (0, "c"))):
        with pytest.raises(ReportError, match=r"mrpc.*labels \[0, 1\]"):
            distribution(record, column, wrong, {})
    with pytest.raises(ReportError, match=record.file_name):
        distribution(replace(record, partition={}), column, ((1, "x"), (0, "y")), {})


def test_a_partition_without_requested_shares(labelled: RecordOf) -> None:
    """A scheme such as Dirichlet requests none."""
    record = labelled("mrpc", MRPC)
    record = replace(record, partition={**record.partition, "requested_shares": None})
    shown = page_of([record])
    assert lines_of(shown.grids[0].groups[0])["requested"] == ("–",)
    assert shown.figure is not None
    assert render(shown.figure, "png")


def test_ranges_of_label_1_are_as_narrow_as_all_records_allow(labelled: RecordOf) -> None:
    three, ten = labelled("mrpc", MRPC), labelled("mrpc", MRPC, clients=10)
    true = 100 * 2753 / 4076
    ((low_3, high_3),) = label1_ranges([three]).values()
    ((low_10, high_10),) = label1_ranges([ten]).values()
    assert low_10 < low_3 < true
    both = label1_ranges([ten, three, labelled("stsb", STSB), labelled("cola", COLA, scale="demo")])
    assert both == {"mrpc": (low_3, min(high_3, high_10))}
    assert both["mrpc"][1] >= true
    # Another data set's record is newer: the older ones speak of other data.
    newer = labelled("mrpc", MRPC[1000:], seed=1, digest="d1")
    assert label1_ranges([three, newer]) == label1_ranges([newer])
