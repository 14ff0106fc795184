"""The figures' definitions: the tables' own cells, in the paper's order, with the score that is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.spec import SCALES, Benchmark
from reports.evidence.published import by_place, read_published

TABLE_OF = {"figure3": "table3", "figure4": "table3", "figure5": "table4"}
FIGURES = {name: benchmark(f"fedsplitbert-{name}") for name in TABLE_OF}
TABLES = {name: benchmark(f"fedsplitbert-{name}") for name in set(TABLE_OF.values())}
ALIKE = "fedsplitbert-alike"
PUBLISHED = Path(__file__).resolve().parents[2] / "benchmarks" / "fedsplitbert" / "published"


def spec_ids(found: Benchmark, scale: str) -> dict[tuple[str, str, int], str]:
    """(row id, task, seed) -> identity of the cell."""
    cells = found.cells(found.scale(scale), [0, 1])
    return {(row.id, column.task, cell.seed): cell.spec_id for row, column, cell in cells}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", TABLE_OF)
def test_cells_are_those_of_the_table(name: str, scale: str) -> None:
    """So they are computed once, and the figure is drawn from the table's records."""
    figure, table = spec_ids(FIGURES[name], scale), spec_ids(TABLES[TABLE_OF[name]], scale)
    shared = {place: cell for place, cell in figure.items() if place[0] != ALIKE}
    assert shared == {place: table[place] for place in shared}


def test_at_fedavgs_rate_fedsplitbert_learns_with_the_papers_c() -> None:
    """Another rate would lower the loss by itself. The paper's own scale has one rate for all."""
    lite, rates = FIGURES["figure4"].scale("lite"), set()
    for row, column, cell in FIGURES["figure4"].cells(lite, [0]):
        if row.id in (ALIKE, "fedavg") and column.task not in ("rte", "wnli"):
            rates.add((column.task, cell.training.learning_rate))
        if row.id == ALIKE:
            assert cell.options["critical_layer"] == 3
    assert len(rates) == 4  # one a task
    assert ALIKE not in {row.id for row in FIGURES["figure4"].rows_at(FIGURES["figure4"].scale("paper"))}


@pytest.mark.parametrize("name", TABLE_OF)
def test_figures_are_listed_and_complete(name: str) -> None:
    figure = FIGURES[name]
    assert figure.id in benchmark_ids()
    assert figure.place == f"Figure {name[-1]}"
    assert [scale.id for scale in figure.scales] == list(SCALES)
    ids = [deviation.id for deviation in figure.deviations]
    assert len(set(ids)) == len(ids)
    assert {"client-size", "rounds", "embeddings", "critical-layer"} <= set(ids)
    assert "mismatched" not in ids  # no MNLI in the figures


def test_curves_have_the_texts_tasks_and_methods() -> None:
    figure3, figure4 = FIGURES["figure3"], FIGURES["figure4"]
    # "across 6 datasets: RTE, MRPC, STSB, WNLI, QNLI and COLA"; "the baseline methods and FedSplitBERT without
    # quantization"
    for figure in (figure3, figure4):
        assert [column.name for column in figure.columns] == ["RTE", "MRPC", "STS-B", "WNLI", "QNLI", "CoLA"]
        assert [row.id for row in figure.rows if row.printed] == ["fedavg", "fedprox", "fedadam", "fedsplitbert"]
    assert [row.id for row in figure3.rows if not row.printed] == ["local-majority"]
    assert [row.id for row in figure4.rows if not row.printed] == [ALIKE]
    assert figure3.view.options["references"] == ("local-majority",)
    assert figure4.view.options["quantity"] == "train_loss"


def test_the_axis_is_accuracy_where_there_is_one() -> None:
    drawn = {column.task: column.averaged for name in ("figure3", "figure5") for column in FIGURES[name].columns}
    assert drawn == {
        **dict.fromkeys(("rte", "mrpc", "wnli", "qnli"), "test/accuracy"),
        "stsb": "test/pearson",
        "cola": "test/matthews_correlation",
    }


def test_figure5_names_c_of_every_row_that_has_one() -> None:
    figure = FIGURES["figure5"]
    layers = figure.view.options["critical_layers"]
    assert set(layers) == {row.id for row in figure.rows if row.algorithm != "local_majority"}
    paper = figure.scale("paper")
    for row, _, cell in figure.cells(paper, [0]):
        if row.id in layers:
            assert cell.options.get("critical_layer", paper.depth) == layers[row.id]


def test_what_is_published_of_the_figures() -> None:
    """Two facts of the text; Figure 4 has none; every score of Figure 5 is Table IV's."""
    figure3 = FIGURES["figure3"]
    published = by_place(read_published(figure3.published_csv), figure3.place)
    assert {place: entry.value for place, entry in published.items()} == {
        ("fedsplitbert", "rte", "test/accuracy"): 64,
        ("fedsplitbert", "rte", "rounds"): 3,
    }
    assert FIGURES["figure4"].published_csv == PUBLISHED / "figure4.csv"
    assert read_published(PUBLISHED / "figure4.csv") == ()
    figure5 = FIGURES["figure5"]
    values = by_place(read_published(figure5.published_csv), figure5.view.options["printed_in"])
    printed = [row.id for row in figure5.rows if row.printed]
    assert {(row, column.task, column.averaged) for row in printed for column in figure5.columns} <= set(values)
