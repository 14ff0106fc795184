"""FedBERT's definitions against the paper: cells, budgets, what they begin from and share, and what is printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.fedbert import finetuning, setup
from benchmarks.registry import benchmark, benchmark_ids, columns_of
from benchmarks.spec import Benchmark, Cell
from benchmarks.stages import by_stage
from reports.evidence.published import read_published

PRETRAINING, TABLE2, TABLE8 = (benchmark(f"fedbert-{name}") for name in ("pretraining", "table2", "table8"))
TABLE6, TABLE7 = benchmark("fedbert-table6"), benchmark("fedbert-table7")
FIGURE8, FIGURE9 = benchmark("fedbert-figure8"), benchmark("fedbert-figure9")
FINE_TUNED = (TABLE6, TABLE7, FIGURE8, FIGURE9)
MODES = ("central", "fedavg", "share", "emdavg", "heavg", "parallel-fedavg", "single")
OURS = ("emdavg-own", "heavg-own", "diloco")
SCALES = ("demo", "lite", "paper")


def cell_of(table: Benchmark, row: str, task: str = "wikitext", scale: str = "paper", seed: int = 0) -> Cell:
    (column,) = columns_of(table, [task])
    return table.cell(table.row(row), column, table.scale(scale), seed)


def pretrained(scale: str = "paper") -> dict[str, Cell]:
    """Row id -> its pre-training cell of RoBERTa."""
    return {row.id: cell for row, _, cell in PRETRAINING.cells(PRETRAINING.scale(scale), [0])}


# ---- what there is -----------------------------------------------------------------------------------------------


def test_every_table_and_figure_of_the_four_papers_has_its_benchmark() -> None:
    extra = {"pretraining", "general", "inversion", "iid", "personalisation", "sensitivity", "sentences"}
    found = [name for name in benchmark_ids() if name.split("-")[1] not in extra]
    assert len([name for name in found if name.startswith("fedbert-")]) == 6
    assert len(found) == 31


def test_rows_are_the_papers() -> None:
    assert [row.id for row in TABLE6.rows] == ["majority", "scratch", *MODES, *OURS]
    assert [row.id for row in TABLE6.rows if row.printed] == list(MODES)
    without = [row for row in MODES if row != "parallel-fedavg"]  # in Tables 7 and 8
    assert [row.id for row in TABLE7.rows if row.printed] == [row.id for row in TABLE8.rows if row.printed] == without
    assert [row.id for row in TABLE8.rows] == ["before", "unigram", *MODES, *OURS]
    clients = ["fedavg-5", "fedavg", "fedavg-20", "emdavg-5", "emdavg", "emdavg-20"]
    assert [row.id for row in FIGURE8.rows] == ["central", *clients]
    assert [row.id for row in FIGURE9.rows] == ["fedavg", "fedavg-every-100", "emdavg", "emdavg-every-100"]
    known = {row.id for row in PRETRAINING.rows}
    assert {row.id for table in FINE_TUNED for row in table.rows} - {"majority", "scratch"} == known - {
        "before",
        "unigram",
    }
    assert {row.id for row in TABLE2.rows} == TABLE2.closed_forms.keys() < known
    assert not any(row.printed for row in PRETRAINING.rows)


@pytest.mark.parametrize("table", [*FINE_TUNED, TABLE8], ids=lambda table: table.id)
def test_every_printed_score_is_published(table: Benchmark) -> None:
    found = {(entry.row, entry.column, entry.score) for entry in read_published(table.published_csv)}
    printed = {
        (row.id, column.task, score)
        for row in table.rows
        if row.printed
        for column in table.columns_at(table.scale("paper"))
        for score in column.scores
    }
    stated = {("fedavg", "rte-central"), ("fedavg", "stsb-central"), ("emdavg", "rte-central")}
    long = {(f"{row}-every-100", task) for row, task in stated}
    if table is FIGURE8:
        assert found == set()
    elif table is FIGURE9:
        assert {place[:2] for place in found} == stated | long
        assert found < printed
    else:
        assert found == printed


# ---- pre-training ------------------------------------------------------------------------------------------------


def test_pre_training_is_the_papers() -> None:
    for row, cell in pretrained().items():
        training = cell.training
        assert (training.batch_size, training.learning_rate, training.max_length) == (256, 5e-4, 512)
        constants = training.beta2, training.epsilon, training.weight_decay, training.warmup
        assert constants == (0.98, 1e-6, 0.1, 10_000 / 125_000)
        assert (training.schedule, training.optimizer, training.decayed) == ("linear", "kept", "all")
        assert (cell.head, cell.test_share, cell.partition) == ("masked-lm", 0.0, {"scheme": "equal"})
        assert cell.clients == {"fedavg-5": 5, "emdavg-5": 5, "fedavg-20": 20, "emdavg-20": 20}.get(row, 10)
        assert cell.backbone == "roberta-small-fresh"


def test_methods_differ_in_what_the_paper_says() -> None:
    cells = pretrained()
    whole, split = {"embeddings": "global"}, "fedbert_parallel"
    outer = {"name": "sgd", "learning_rate": 0.7, "momentum": 0.9, "nesterov": True}
    expected = {
        "central": ("central", whole),
        "fedavg": ("fedavg", whole),
        "share": ("fedbert_sequential", {"turns": "pass"}),
        "emdavg": (split, {"averaged": "embeddings", "transformer": "shared"}),
        "heavg": (split, {"averaged": "head-embeddings", "transformer": "shared"}),
        "parallel-fedavg": (split, {"averaged": "all", "transformer": "own"}),
        "single": ("central", whole | {"of": "first"}),
        "emdavg-own": (split, {"averaged": "embeddings", "transformer": "own"}),
        "heavg-own": (split, {"averaged": "head-embeddings", "transformer": "own"}),
        "diloco": ("fedavg", whole | {"server": outer}),
    }
    assert {row: (cells[row].algorithm, cells[row].options) for row in expected} == expected
    assert len({cell.spec_id for cell in cells.values()}) == len(cells)


@pytest.mark.parametrize("task", ["wikitext", "wikitext-causal"])
@pytest.mark.parametrize("scale", SCALES)
def test_budgets_are_alike(scale: str, task: str) -> None:
    """A client's epochs; in turns they are one client's after the other's."""
    table = PRETRAINING if task == "wikitext" else TABLE8
    epochs = {}
    for row in (*MODES, *OURS):
        training = cell_of(table, row, task, scale).training
        epochs[row] = training.rounds * training.local_epochs
        clients = cell_of(table, row, task, scale).clients
        assert row != "share" or training.rounds % clients == 0
    own = setup.BUDGETS[task][scale]
    printed = {"wikitext": 500, "wikitext-causal": 20}[task]
    assert own.epochs == (printed if scale == "paper" else 12 if (scale, task) == ("lite", "wikitext") else 4)
    assert epochs.pop("share") == own.clients * own.epochs
    central = epochs.pop("central")
    assert set(epochs.values()) == {own.epochs}
    if scale != "paper":
        assert central == own.epochs
        return
    updates = {"wikitext": 125_000, "wikitext-causal": 50_000}[task]  # to the nearest averaging period
    assert central * setup.UPDATES_AN_EPOCH == pytest.approx(updates, rel=0.02)


def test_periods_and_clients_of_the_figures() -> None:
    for scale, budget in setup.BUDGETS["wikitext"].items():
        cells = pretrained(scale)
        for row in ("fedavg", "emdavg"):
            short, long = cells[row].training, cells[f"{row}-every-100"].training
            assert (long.rounds, long.local_epochs) == (short.rounds / 2, 2 * short.local_epochs)
            clients = [cells[name].clients for name in (f"{row}-5", row, f"{row}-20")]
            assert clients == [budget.clients // 2, budget.clients, 2 * budget.clients]
            same = replace(cells[f"{row}-20"], clients=budget.clients)
            assert same == cells[row]


def test_gpt_has_its_own_clients_and_head() -> None:
    cell = cell_of(TABLE8, "fedavg", "wikitext-causal")
    assert (cell.clients, cell.training.rounds, cell.training.local_epochs) == (5, 4, 5)
    assert (cell.head, cell.backbone) == ("causal-lm", "gpt2-fresh")


@given(st.sampled_from(SCALES), st.integers(0, 99))
def test_all_seeds_have_one_partition(scale: str, seed: int) -> None:
    cell = cell_of(PRETRAINING, "fedavg", scale=scale, seed=seed)
    assert (cell.data_seed, cell.seed) == (0, seed)
    assert cell.partition == {"scheme": "equal"} | ({"share": 0.03} if scale == "lite" else {})


def test_rates_are_tuned_alike() -> None:
    for table, task in ((PRETRAINING, "wikitext"), (TABLE8, "wikitext-causal")):
        search = table.scale("lite").search
        assert search is not None
        assert len({tuple(grid["training.learning_rate"]) for grid in search.grids.values()}) == 1
        (column,) = columns_of(table, [task])
        trained = [row for row in table.rows if row.id not in ("before", "unigram")]
        assert {row.tuned_as or row.id for row in trained} == set(search.grids)
        chosen = {row.id for row in trained if search.settings(task, row.tuned_as or row.id)}
        assert {row.id for row in table.untuned(column, table.scale("lite"))} == {row.id for row in trained} - chosen


# ---- fine-tuning -------------------------------------------------------------------------------------------------


def test_fine_tuning_is_the_papers() -> None:
    """Table 5, with the batches of its numbers of updates."""
    rates = {"rte-central": 2e-5, "stsb-central": 2e-5}
    batches = {"rte-central": 16, "mrpc-central": 16, "stsb-central": 16}
    for row, column, cell in TABLE6.cells(TABLE6.scale("paper"), [0]):
        training = cell.training
        assert training.rounds == (1 if row.id == "majority" else 10)
        assert training.learning_rate == rates.get(column.task, 1e-5)
        assert training.batch_size == batches.get(column.task, 32)
        assert training.warmup == (0.25 if column.task == "qqp-central" else 0.06)
        assert (training.beta2, training.epsilon, training.weight_decay) == (0.98, 1e-6, 0.1)
        assert (cell.clients, cell.head, cell.test_share) == (1, "pooled", 0.0)


def test_warm_ups_are_table_5s() -> None:
    table5 = {
        (entry.row, entry.column): entry.value
        for entry in read_published(Path(TABLE6.published_csv).parent / "text.csv")
        if entry.table == "Table 5"
    }
    for column in TABLE6.columns_at(TABLE6.scale("paper")):
        share = table5[column.task, "warmup"] / table5[column.task, "updates"]
        assert finetuning.WARMUPS.get(column.task, finetuning.WARMUP) == pytest.approx(share, abs=0.001)
        assert finetuning.RATES.get(column.task, finetuning.RATE) == table5[column.task, "rate"]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("table", FINE_TUNED, ids=lambda table: table.id)
def test_fine_tuning_begins_from_pre_training_of_the_same_row(table: Benchmark, scale: str) -> None:
    for row, _, cell in table.cells(table.scale(scale), [0, 3]):
        if row.id in ("majority", "scratch"):
            assert cell.initial is None
            continue
        backbone = table.scale(scale).backbone
        expected = replace(cell_of(PRETRAINING, row.id, scale=scale), backbone=backbone)
        assert cell.initial == expected  # whatever the fine-tuning seed
        assert cell.backbone == backbone
        assert Cell.from_json(cell.to_json()).spec_id == cell.spec_id


def test_pre_training_is_run_once_for_all_tasks_and_seeds() -> None:
    cells = [cell for _, _, cell in TABLE6.cells(TABLE6.scale("lite"), [0, 1])]
    pretrained, _ = by_stage(cells)
    before = [cell for cell in pretrained if cell.head == "masked-lm"]
    assert len(before) == len({cell.spec_id for cell in before}) == len(MODES) + len(OURS)


def test_tables_share_their_cells() -> None:
    lite = {row.id: cell for row, _, cell in TABLE6.cells(TABLE6.scale("lite"), [0]) if cell.task == "rte-central"}
    for table in (TABLE7, FIGURE8, FIGURE9):
        for row, column, cell in table.cells(table.scale("lite"), [0]):
            if column.task == "rte-central" and row.id in lite:
                assert cell == lite[row.id]
    for row in TABLE2.rows:
        assert cell_of(TABLE2, row.id, scale="lite") == cell_of(PRETRAINING, row.id, scale="lite")
    assert cell_of(TABLE7, "fedavg", "rte-central").backbone == "roberta-base-fresh"


def test_at_lite_scale_three_tasks_are_there() -> None:
    tasks = [column.task for column in TABLE6.columns_at(TABLE6.scale("lite"))]
    assert tasks == ["rte-central", "mrpc-central", "sst2-central"]
    assert len(TABLE6.columns_at(TABLE6.scale("paper"))) == len(TABLE6.columns_at(TABLE6.scale("demo"))) == 7


def test_every_deviation_is_of_scales_that_there_are() -> None:
    for table in (PRETRAINING, TABLE2, TABLE8, *FINE_TUNED):
        entries = [(entry.id, scale) for entry in table.deviations for scale in entry.scales]
        assert len(set(entries)) == len(entries)  # one text an id and scale
