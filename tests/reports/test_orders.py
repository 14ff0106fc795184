"""Methods ordered by several criteria: on which seeds, with which worst client, and in which round."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.corrections import without_training
from benchmarks.publication import View
from benchmarks.registry import benchmark
from benchmarks.results import RunResult
from reports.evidence.budgets import chosen_within, on_front
from reports.evidence.records import comparable, request_for
from reports.views import page
from reports.views.orders import Orders

ACC = "test/accuracy"
OPTIONS = {"megabytes": 1, "front": (1,), "networks": ("3g", "datacentre")}


@pytest.fixture
def orders(table3):
    """The view of some records."""

    def shown(records, **options) -> Orders:
        table = replace(table3, view=View("orders", OPTIONS | options))
        return Orders(request_for(table, table.scale("lite"), records))

    return shown


def column_of(view: Orders, task: str):
    return next(column for column in view.request.columns if column.task == task)


def test_bytes_of_the_directions_that_the_view_names(orders, record_of):
    """A client sends 1 000 B and then 1 667 B, and receives 233 B and 300 B."""
    record, within = record_of("fedavg", "qqp", {ACC: 0.8}), {}
    for ways in (("up",), ("up", "down")):
        view = orders([record], megabytes=2.7e-3, front=(), directions=ways)
        within[view.link] = view.curves(column_of(view, "qqp"), [view.budget])["FedAvg"].item()
    assert within == {"uplink": pytest.approx(60), "uplink and downlink": pytest.approx(40)}


# ---- the same seeds for all methods ---------------------------------------------------------------------------------


def test_a_method_that_is_better_with_each_seed_is_the_best_in_each_resample():
    level = np.array([[60.0], [70.0], [80.0], [90.0]])
    front = on_front({"worse": level - 0.5, "better": level, "too dear": np.full((4, 1), np.nan)})
    assert {name: band.ravel().tolist() for name, band in front.items()} == {
        "worse": [0, 0, 0],
        "better": [1, 1, 1],
        "too dear": [0, 0, 0],
    }
    assert on_front({"two": level[:2], "seeds": level[2:]}) == {}


@pytest.mark.parametrize(
    ("seeds", "expected"),
    [
        ({"a": (0, 1, 2, 3, 4), "b": (0, 3, 4), "c": (0,)}, {"a": [0, 3, 4], "b": [0, 3, 4]}),
        ({"a": (0, 1, 2), "b": (0, 1, 2, 3), "c": (2, 3, 4)}, {"a": [0, 1, 2], "b": [0, 1, 2]}),
        ({"a": (0,), "b": (0, 1)}, {}),
        ({"a": (0,), "b": (0,)}, {"a": [0], "b": [0]}),
        ({"a": (0, 1, 2), "b": (3, 4, 5)}, {}),
        ({}, {}),
    ],
)
def test_the_seeds_on_which_methods_are_compared(record_of, seeds, expected):
    runs = {name: [record_of("fedavg", "qqp", {ACC: 0.5}, seed=seed) for seed in of] for name, of in seeds.items()}
    compared = comparable(runs)
    assert {name: [record.cell.seed for record in records] for name, records in compared.items()} == expected


def test_runs_on_other_data_are_not_compared(record_of):
    runs = {
        digest: [record_of("fedavg", "qqp", {ACC: 0.5}, seed=seed, data={"digest": digest}) for seed in range(3)]
        for digest in ("d0", "d1")
    }
    assert comparable(runs) == {}


def test_ranks_are_of_common_seeds(orders, record_of):
    """Over all its seeds FedAvg is better than FedProx; with seeds 0, 3 and 4 it is worse."""
    scores = {"fedavg": (0.7, 0.9, 0.9, 0.7, 0.7), "fedprox": (0.75, None, None, 0.75, 0.75), "fedadam": (0.95,)}
    records = [
        record_of(row, "qqp", {ACC: score}, seed=seed)
        for row, of in scores.items()
        for seed, score in enumerate(of)
        if score is not None
    ]
    view = orders(records)
    assert view.seeds(column_of(view, "qqp")) == (0, 3, 4)
    table, best, _ = view.grids()
    assert table.groups[0].name == "QQP, Acc (seeds 0, 3, 4)"
    assert [(line.label, line.cells[0]) for line in table.groups[0].lines] == [
        ("FedProx", "1. 75.00"),
        ("FedAvg", "2. 70.00"),
        ("FedAdam", "95.00 (n = 1)"),
    ]
    assert best.groups[0].lines[0].cells == ("FedProx 100% [100%, 100%]",)
    assert "mean: FedProx" in view.finding()[1]
    assert "(n = 3)" in view.finding()[1]
    assert any("too few seeds are shared with the other methods: FedAdam." in note for note in view.method())
    assert {(line["row"], line["quantity"]): line["rank"] for line in view.lines() if "rank" in line}[
        "fedadam", "mean"
    ] is None


def test_pairs_without_a_number_and_equal_times_are_no_changes(orders, record_of, monkeypatch):
    """FedAvg exceeds the budget. Times of 10 and 10.05 minutes are the same; 20 minutes are longer."""
    sent, levels = {"fedavg": 10**7, "fedprox": 1000, "fedadam": 900}, {"fedavg": 0.9, "fedprox": 0.7, "fedadam": 0.6}
    minutes = {10**7: 10.05, 1000: 10.0, 900: 20.0}  # by uplink of a round
    records = [
        record_of(row, "qqp", {ACC: level * (1 + seed / 100)}, seed=seed, up=(sent[row],) * 2)
        for row, level in levels.items()
        for seed in range(3)
    ]
    score = Orders._number

    def number(view: Orders, record, column, order):
        minute = minutes[record.rounds[0].up_bytes] + record.cell.seed / 1000
        return score(view, record, column, order) if order.deployment is None else minute

    monkeypatch.setattr(Orders, "_number", number)
    view = orders(records)
    counts = {group.name: group.lines[0].cells for group in [*view.grids()][2].groups}
    assert counts["mean"][0] == "3"
    assert counts["within 1 MB"] == ("1", "1", "0", "0", "2", "0")
    times = view.ranked["qqp", "datacentre"]
    assert [(id, rank) for id, (rank, _) in times.items()] == [("fedprox", 1), ("fedavg", 1), ("fedadam", 3)]
    assert counts["V100 (data centre)"] == ("2", "2", "0", "1", "0", "0")


def test_a_number_of_fewer_seeds_says_so_and_has_no_rank(orders, record_of):
    pearson = {"fedavg": (0.3, 0.3, 0.3), "fedadam": (0.5, None, 0.5)}
    records = [
        record_of(row, "stsb", {"test/pearson": score}, seed=seed)
        for row, of in pearson.items()
        for seed, score in enumerate(of)
    ]
    view = orders(records)
    cells = {line.label: line.cells[0] for line in next(iter(view.grids())).groups[0].lines}
    assert cells == {"FedAvg": "1. 30.00", "FedAdam": "50.00 (n = 2)"}
    assert list(view.fronts["stsb", "FedAdam"][0]) == [0, 0, 0]


@pytest.mark.parametrize(("scale", "seeds"), [("lite", 1), ("lite", 2), ("demo", 2)])
def test_neither_generated_data_nor_one_seed_make_a_finding(table3, record_of, scale, seeds):
    table = replace(table3, view=View("orders", OPTIONS))
    records = [
        record_of(row, task, {ACC: 0.7}, seed=seed, scale=scale)
        for row in ("fedavg", "fedprox")
        for task, count in (("qqp", seeds), ("qnli", 1))
        for seed in range(count)
    ]
    shown = page(request_for(table, table.scale(scale), records))
    if scale == "demo" or seeds == 1:
        assert shown.finding is None
        assert "all five criteria" not in " ".join(shown.conclusions)
    else:  # one task is compared on one seed and does not count
        assert "(n = 2): mean: FedAvg and FedProx" in shown.finding[1]
        assert "all five criteria" in shown.conclusions[0]


def test_a_single_method_has_a_page_without_an_order(record_of):
    fronts = benchmark("fedpeft-fronts")
    (column,), scale = fronts.columns_at(fronts.scale("demo")), fronts.scale("demo")
    run = record_of("fedavg", "mrpc", {"test/accuracy": 0.7})
    record = replace(run, cell=fronts.cell(fronts.row("fedit"), column, scale, 0))
    shown = page(request_for(fronts, scale, [record]))
    assert shown.finding is None
    assert shown.figure is None or shown.figure()


# ---- the worst client, and the chosen round -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "label", "says"),
    [
        ("label-table", "worst client", "the client that scores worst in the method's other seeds"),
        ("equal", "worst client within a run", "the worst client is the minimum in each scored round, and a run"),
    ],
)
def test_the_page_says_what_the_worst_client_is(orders, record_of, scheme, label, says):
    def run(row: str, seed: int) -> RunResult:
        record = record_of(row, "qqp", {ACC: 0.5}, seed=seed)
        clients = tuple({"test": {"accuracy": 0.5 + client / 10}} for client in range(3))
        rounds = tuple(replace(entry, client_scores=clients) for entry in record.rounds)
        return replace(record, rounds=rounds)

    records = [run(row, seed) for row in ("fedavg", "fedprox") for seed in range(3)]
    view = orders(records)
    view.worst.update(
        {
            cell: ([replace(one, cell=replace(one.cell, partition={"scheme": scheme})) for one in runs], score)
            for cell, (runs, score) in view.worst.items()
        }
    )
    assert next(iter(view.grids())).headers[1][0] == label
    notes = " ".join(view.method())
    assert says in notes
    assert ("minimum in each scored round" in notes) == (scheme == "equal")


def test_corrected_answers_have_the_round_that_their_run_chose(record_of):
    """Validation data choose the first of two rounds; the corrected record alone knows no chosen round."""
    record = record_of("fedavg", "qqp", {ACC: 0.8})

    def with_rounds(*scores: tuple[float | None, float]) -> RunResult:
        rounds = tuple(
            replace(entry, scores={"test": {"accuracy": test}, "validation": {"accuracy": held}})
            for entry, (test, held) in zip(record.rounds, scores, strict=True)
        )
        return replace(record, rounds=rounds, chosen_by="validation/accuracy")

    run = with_rounds((0.6, 0.9), (0.7, 0.1))
    corrected = replace(with_rounds((0.65, 0.5), (0.75, 0.5)), chosen_by="")
    lost = replace(with_rounds((None, 0.5), (0.75, 0.5)), chosen_by="")
    at = (ACC, 1e6, lambda *_: None, ("up",))
    assert chosen_within(run, *at, by=run) == pytest.approx(60)
    assert chosen_within(corrected, *at, by=run) == pytest.approx(65)
    assert chosen_within(lost, *at, by=run) is None
    assert chosen_within(run, ACC, 10, lambda *_: None, ("up",), by=run) is None  # no round fits


def test_a_row_that_corrects_answers_shows_the_round_of_their_run(table3, record_of, monkeypatch):
    def run(seed: int) -> RunResult:
        record = record_of("fedavg", "qqp", {ACC: 0.8}, seed=seed)
        held = ({"accuracy": 0.9}, {"accuracy": 0.1})
        rounds = tuple(
            replace(entry, scores={**entry.scores, "validation": scores})
            for entry, scores in zip(record.rounds, held, strict=True)
        )
        return replace(record, rounds=rounds, chosen_by="validation/accuracy")

    monkeypatch.setattr("reports.evidence.records.corrected", lambda record, _: replace(record, chosen_by=""))
    rows = without_training(table3.row("fedavg"), "prior")
    table = replace(table3, view=View("orders", OPTIONS), without_training=rows)
    view = Orders(request_for(table, table.scale("lite"), [run(seed) for seed in range(3)]))
    assert view.chosen(rows[0], column_of(view, "qqp")).value == pytest.approx(40)  # the first round's; the last has 80
