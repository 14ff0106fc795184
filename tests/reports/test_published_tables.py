"""FedSplitBERT's other printed tables: every place once, and the numbers that another source also gives."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from benchmarks.fedsplitbert.setup import LABEL_SHARES_3, ROUNDS
from benchmarks.spec import Published
from reports.evidence.published import by_place, read_published

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "fedsplitbert" / "published"
ACC = "test/accuracy"
BINARY = ("share/label1", "share/label0")
METHODS = ("fedavg", "fedprox", "fedadam", "fedsplitbert", "fedsplitbert-qat")
Values = dict[tuple[str, str, str], float]


def _values(entries: Iterable[Published], table: str) -> Values:
    return {place: entry.value for place, entry in by_place(entries, table).items()}


def _table(number: int, name: str) -> Values:
    entries = read_published(FOLDER / f"table{number}.csv")
    assert {entry.table for entry in entries} == {name}
    return _values(entries, name)


def test_table1_holds_three_clients_of_nine_tasks() -> None:
    values = _table(1, "Table I")
    # "Other" stands for SST-2, RTE, QNLI, WNLI. 3 clients × (7 tasks with 2 labels + MNLI with 3 + one mean).
    assert len(values) == 3 * (7 * 2 + 3 + 1)
    for task, clients in LABEL_SHARES_3.items():
        for number, shares in enumerate(clients, start=1):
            printed = tuple(values[f"client{number}", task, f"share/label{label}"] for label in range(len(shares)))
            assert printed == shares, task
    assert [values[f"client{k}", "stsb", "mean_score"] for k in (1, 2, 3)] == [0.93, 2.90, 4.26]


def test_table2_holds_ten_clients_of_four_tasks() -> None:
    values = _table(2, "Table II")
    assert len(values) == 10 * 4 * 2
    steps = [*range(90, 0, -10), 2]  # "from approximately 90% to 0% with a step-size of 10%"
    for number, share in enumerate(steps, start=1):
        for task in ("sst2", "qqp", "qnli"):
            assert [values[f"client{number}", task, score] for score in BINARY] == [share, 100 - share]
    mrpc = [92, 86, 71, 66, 50, 44, 35, 28, 12]
    for number, share in enumerate(mrpc, start=1):
        assert [values[f"client{number}", "mrpc", score] for score in BINARY] == [share, 100 - share]
    assert [values["client10", "mrpc", score] for score in BINARY] == [51, 48]  # as printed


def test_table4_holds_six_layers_of_nine_tasks() -> None:
    values = _table(4, "Table IV")
    places = {
        ("mrpc", "test/f1"),
        ("cola", "test/matthews_correlation"),
        ("mnli", "mismatched/accuracy"),
        ("stsb", "test/pearson"),
        ("average", ""),
        *((task, ACC) for task in ("mrpc", "sst2", "qqp", "mnli", "rte", "qnli", "wnli")),
    }
    assert set(values) == {(f"c{layer}", *place) for layer in (0, 4, 6, 8, 10, 12) for place in places}
    # FedAvg is c = 12; Table III prints F1 for SST-2 and RTE too, which Table IV does not.
    fedavg = _values(read_published(FOLDER / "table3.csv"), "Table III")
    assert {place: values["c12", *place] for place in places} == {place: fedavg["fedavg", *place] for place in places}
    assert values["c0", "mrpc", ACC] == 86.21
    assert values["c8", "wnli", ACC] == 71.31


def test_table5_holds_five_methods_of_four_tasks() -> None:
    values = _table(5, "Table V")
    places = {*((task, ACC) for task in ("mrpc", "sst2", "qqp", "qnli")), ("average", "")}
    assert set(values) == {(method, *place) for method in METHODS for place in places}
    # A mean of four printed numbers, rounded or cut at two decimals, is less than 0.01 away from its printed form.
    for method in METHODS:
        mean = sum(values[method, *place] for place in places if place[0] != "average") / 4
        assert mean == pytest.approx(values[method, "average", ""], abs=0.01)


def test_table6_holds_sizes_costs_and_gains() -> None:
    values = _table(6, "Table VI")
    columns = ("parameter_gb", "cost_gb", "gain")
    assert set(values) == {(method, column, "") for method in METHODS for column in columns}
    # FedAvg and FedProx share a line of print; 6 rounds are also what Table V's caption gives MRPC.
    for method in ("fedavg", "fedprox"):
        assert [values[method, column, ""] for column in columns] == [1.03, 6.18, 1]
        assert values[method, "cost_gb", ""] == pytest.approx(ROUNDS["mrpc"] * 1.03)
    assert [values["fedadam", column, ""] for column in columns] == [1.7, 3.4, 1.8]
    assert [values["fedsplitbert", column, ""] for column in columns] == [0.51, 1.02, 6.1]
    assert [values["fedsplitbert-qat", column, ""] for column in columns] == [0.26, 0.52, 11.9]


def test_figure6_holds_what_the_text_states() -> None:
    """ "3 communication rounds which costs nearly 1000 MBits", "at least 5000 MBits", "less than 1GB"."""
    entries = read_published(FOLDER / "figure6.csv")
    assert {entry.table for entry in entries} == {"Figure 6"}
    assert _values(entries, "Figure 6") == {
        ("fedsplitbert", "rte", "stated/megabytes_nearly"): 1000,
        **{(row, "rte", "stated/megabytes_at_least"): 5000 for row in ("fedavg", "fedprox", "fedadam")},
        **{("fedsplitbert", task, "stated/megabytes_below"): 1000 for task in ("mrpc", "wnli")},
    }
