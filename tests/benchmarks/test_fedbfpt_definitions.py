"""FedBFPT's definitions against the paper: cells, what they begin from, what they share, and where there are which."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.backbones import KNOWN
from benchmarks.cli.main import main
from benchmarks.cli.run import at_hand
from benchmarks.cli.select import Selection
from benchmarks.errors import UserError
from benchmarks.fedbfpt import setup
from benchmarks.registry import benchmark, columns_of, rows_of, scale_of
from benchmarks.spec import Benchmark, Cell
from benchmarks.stages import by_stage, earlier_stages, initial_of
from fedsim.models.encoder import encoder_from_config
from fedsim.models.sequence import with_head
from reports.evidence.published import read_published

PRETRAINING, TABLE3 = benchmark("fedbfpt-pretraining"), benchmark("fedbfpt-table3")
SENTENCES = benchmark("fedbfpt-sentences")
GENERAL = benchmark("fedbfpt-general")
APPENDICES = [benchmark(f"fedbfpt-appendix{number}") for number in range(1, 5)]
TABLES = [*(benchmark(f"fedbfpt-table{number}") for number in (3, 4, 5, 6)), benchmark("fedbfpt-figure4"), *APPENDICES]
ABLATED = ("fedbfpt-all", "fedbfpt-no-pl", "fedbfpt-no-m", "fedbfpt-no-s", "fedbfpt-no-sp", "fedbfpt-deepest")


def cell_of(table: Benchmark, row: str, task: str, scale: str = "lite", seed: int = 0) -> Cell:
    (column,) = columns_of(table, [task])
    return table.cell(table.row(row), column, table.scale(scale), seed)


# ---- rows and columns --------------------------------------------------------------------------------------------


def test_rows_are_the_papers() -> None:
    assert [row.id for row in TABLE3.rows] == [
        "bert", "bert-c", "bert-fl", "distilbert", "tinybert-6", "tinybert-4", "fedbfpt",
    ]  # fmt: skip
    assert [row.id for row in benchmark("fedbfpt-table4").rows] == [*ABLATED, "fedbfpt"]
    for number in (1, 2):
        rows = benchmark(f"fedbfpt-appendix{number}").rows
        assert [row.id for row in rows] == [*ABLATED, "fedbfpt"]
        assert [row.id for row in rows if not row.printed] == ["fedbfpt-no-sp", "fedbfpt-deepest"]
    for name in ("table5", "appendix3", "appendix4"):
        assert [row.id for row in benchmark(f"fedbfpt-{name}").rows] == ["fedbfpt-4", "fedbfpt-8", "fedbfpt"]
    assert [row.id for row in benchmark("fedbfpt-table6").rows] == ["fedbfpt", "fedbfpt-skewed"]
    known = {row.id for row in PRETRAINING.rows}
    assert {row.id for table in TABLES for row in table.rows} - {"bert"} == known - {"before"}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.id)
def test_every_printed_score_is_published(table: Benchmark) -> None:
    found = {
        (entry.row, entry.column, entry.score)
        for entry in read_published(table.published_csv)
        if entry.table == table.place and entry.score
    }
    columns = table.columns_at(table.scale("paper"))
    expected = {(row.id, column.task, column.averaged) for row in table.rows if row.printed for column in columns}
    assert found == (set() if table.id.endswith("figure4") else expected)


def test_costs_stand_beside_scores() -> None:
    for table in [benchmark("fedbfpt-table4"), benchmark("fedbfpt-table5"), *APPENDICES]:
        costs = {(entry.row, entry.column) for entry in read_published(table.published_csv) if not entry.score}
        quantities = ("seconds", "percent")
        columns = [*(f"computation_{name}" for name in quantities), "communication_mb", "communication_percent"]
        assert costs == {(row.id, column) for row in table.rows if row.printed for column in columns}


def test_skewed_shares_are_the_appendixs() -> None:
    printed = {
        (entry.column, entry.score): entry.value
        for entry in read_published(benchmark("fedbfpt-appendix5").published_csv)
        if entry.row == "skewed"
    }
    for task, shares in setup.SKEWED_SHARES.items():
        assert math.fsum(shares) == pytest.approx(1)
        sizes = [printed[task, f"client{client}/megabytes"] for client in range(1, 7)]
        assert shares == pytest.approx([size / sum(sizes) for size in sizes])
        assert sum(sizes) == pytest.approx(printed[task, "all/megabytes"], abs=0.1)  # print's medicine is 0.07 off


# ---- cells -------------------------------------------------------------------------------------------------------


def test_further_pre_training_is_the_papers() -> None:
    for row, column, cell in PRETRAINING.cells(PRETRAINING.scale("paper"), [0]):
        assert (cell.clients, cell.head, cell.test_share) == (6, "masked-lm", 0.05)
        training = cell.training
        assert (training.batch_size, training.learning_rate, training.local_epochs) == (256, 5e-5, 1)
        assert training.rounds == (1 if row.id == "before" else 5)
        assert training.optimizer == "fresh"
        assert cell.task == column.task
        scheme = "sizes" if row.id == "fedbfpt-skewed" else "equal"
        assert cell.partition["scheme"] == scheme
        assert "share" not in cell.partition


def test_methods_differ_in_what_the_paper_says() -> None:
    cells = {
        row.id: cell
        for row, column, cell in PRETRAINING.cells(PRETRAINING.scale("paper"), [0])
        if column.task == "corpus-medicine"
    }
    own = {"local_layers": 6}
    assert cells["fedbfpt"].options == own
    assert {name: cells[name].options for name in ABLATED} == {
        "fedbfpt-all": own | {"trained": "all"},
        "fedbfpt-no-pl": own | {"schedule": "first"},
        "fedbfpt-no-m": own | {"deeper": "first"},
        "fedbfpt-no-s": own | {"resampled": "layer"},
        "fedbfpt-no-sp": own | {"schedule": "successive"},
        "fedbfpt-deepest": own | {"schedule": "last"},
    }
    assert [cells[name].options["local_layers"] for name in ("fedbfpt-4", "fedbfpt-8")] == [4, 8]
    skewed = cells["fedbfpt-skewed"]
    assert skewed.options == own | {"weights": "size"}
    assert skewed.partition["sizes"] == list(setup.SKEWED_SHARES["corpus-medicine"])
    assert len({cell.spec_id for cell in cells.values()}) == len(cells)


def test_sentences_are_all_that_differs_from_whole_passages() -> None:
    for scale in SENTENCES.scales:
        for row, column, cell in SENTENCES.cells(scale, [0]):
            passages = column.task.removesuffix("-sentences")
            whole = cell_of(PRETRAINING, row.id, passages, scale.id)  # lite: with the rate that was chosen
            assert cell == replace(whole, task=f"{passages}-sentences")
            assert SENTENCES.untuned(column, scale) == ()
    changed = replace(SENTENCES, overrides=(("training.learning_rate", 3e-5),))
    assert cell_of(changed, "fedbfpt", "corpus-biology-sentences").training.learning_rate == 3e-5


def test_depths_keep_their_share_of_a_smaller_encoder() -> None:
    for scale, depths in {"demo": [1, 2, 3], "lite": [2, 3, 4], "paper": [4, 6, 8]}.items():
        rows = ("fedbfpt-4", "fedbfpt", "fedbfpt-8")
        found = [cell_of(PRETRAINING, row, "corpus-biology", scale).options["local_layers"] for row in rows]
        assert found == depths


def test_the_lite_scale_has_a_part_of_each_corpus() -> None:
    for task, share in setup.LITE_SHARE.items():
        for row in ("fedbfpt", "fedbfpt-skewed"):
            assert cell_of(PRETRAINING, row, task).partition["share"] == share


def test_fine_tuning_is_the_papers() -> None:
    wanted = {"jnlpba": (32, 4e-5, "tokens"), "scierc": (2, 7e-5, "tokens"), "rct20k": (2, 4e-6, "pooled")}
    for _, column, cell in TABLE3.cells(TABLE3.scale("paper"), [0]):
        training = cell.training
        assert (training.batch_size, training.learning_rate, cell.head) == wanted[column.task]
        assert (training.rounds, training.decay, training.optimizer) == (15, 0.7, "kept")
        assert (cell.clients, cell.algorithm, cell.data_seed) == (1, "central", 0)
        assert cell.partition.get("share") == (0.02 if column.task == "rct20k" else None)


# ---- what begins from what ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["demo", "lite", "paper"])
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.id)
def test_fine_tuning_begins_from_further_pre_training_of_the_same_row(table: Benchmark, scale: str) -> None:
    for row, column, cell in table.cells(table.scale(scale), [0, 3]):
        if row.id == "bert":
            assert cell.initial is None
            continue
        domain = TABLE3.stage.tasks[column.task] if TABLE3.stage else ""
        assert cell.initial == cell_of(PRETRAINING, row.id, domain, scale, seed=0)  # whatever the fine-tuning seed
        assert cell.backbone == cell.initial.backbone
        assert Cell.from_json(cell.to_json()).spec_id == cell.spec_id


def test_at_lite_scale_everything_begins_from_the_encoder_trained_on_general_text() -> None:
    ((_, _, general),) = GENERAL.cells(GENERAL.scale("lite"), [0])
    assert (general.backbone, initial_of(general)) == ("all-MiniLM-L6-v2", None)
    assert earlier_stages(cell_of(TABLE3, "bert", "scierc")) == [general]
    own = cell_of(TABLE3, "fedbfpt", "scierc")
    assert earlier_stages(own) == [general, own.initial]
    assert KNOWN["minilm-masked"].config == KNOWN["all-MiniLM-L6-v2"].config
    stages = by_stage([cell for _, _, cell in TABLE3.cells(TABLE3.scale("lite"), [0, 1])])
    pretrained = [cell for stage in stages[1:] for cell in stage if cell.head == "masked-lm"]
    assert len({cell.spec_id for cell in pretrained}) == len(pretrained) == 3 * 3  # once for both seeds and both tasks
    assert sum(cell == general for stage in stages for cell in stage) == 1


def test_tables_share_their_cells() -> None:
    figure = benchmark("fedbfpt-figure4")
    scale = TABLE3.scale("lite")
    assert [cell for _, _, cell in figure.cells(scale, [0])] == [cell for _, _, cell in TABLE3.cells(scale, [0])]
    for name, task in (("table4", "scierc"), ("table5", "scierc"), ("table6", "rct20k"), ("appendix1", "jnlpba")):
        assert cell_of(benchmark(f"fedbfpt-{name}"), "fedbfpt", task) == cell_of(TABLE3, "fedbfpt", task)


def test_another_backbone_reaches_both_stages() -> None:
    table = TABLE3
    scale = replace(table.scale("lite"), backbone="other", depth=12)
    (column,) = columns_of(table, ["scierc"])
    cell = table.cell(table.row("fedbfpt"), column, scale, 0)
    assert cell.initial is not None
    assert (cell.backbone, cell.initial.backbone, cell.initial.options["local_layers"]) == ("other", "other", 6)


def test_rates_are_tuned_for_further_pre_training_alone() -> None:
    lite = PRETRAINING.scale("lite")
    assert lite.search is not None
    assert len({grid["training.learning_rate"] for grid in lite.search.grids.values()}) == 1  # one grid for all
    open_rows = {row.id for row in PRETRAINING.untuned(PRETRAINING.columns[0], lite)}
    chosen = {row.id for row in PRETRAINING.rows if lite.search.settings("corpus-biology", row.tuned_as or row.id)}
    assert open_rows == {row.id for row in PRETRAINING.rows_at(lite)} - {"before"} - chosen
    # A table whose cells begin from untuned ones is not tuned either, and BERT begins from none.
    untuned = {row.id for row in TABLE3.untuned(TABLE3.columns[0], TABLE3.scale("lite"))}
    assert untuned == open_rows & {row.id for row in TABLE3.rows}


# ---- scales ------------------------------------------------------------------------------------------------------


def test_smaller_models_are_there_where_their_checkpoints_can_be_had() -> None:
    smaller = {"distilbert", "tinybert-6", "tinybert-4"}
    for scale in ("demo", "lite", "paper"):
        found = {row.id for row, _, _ in TABLE3.cells(TABLE3.scale(scale), [0])}
        assert found & smaller == (smaller if scale == "paper" else set())
    backbones = {row.id: row.backbone for row in TABLE3.rows if row.backbone}
    assert set(backbones) == smaller
    assert set(backbones.values()) <= KNOWN.keys()


@pytest.mark.parametrize(
    ("backbone", "mebibytes"),
    [
        ("bert-base-uncased", 417.83),
        ("distilbert-base-uncased", 255.55),
        ("TinyBERT_General_6L_768D", 255.57),
        ("TinyBERT_General_4L_312D", 54.88),
    ],
)
def test_encoders_have_the_sizes_that_are_printed(backbone: str, mebibytes: float) -> None:
    """The printed ones are of a file, whose archive takes some 0.02 to 0.07 MiB on top of the parameters."""
    config = KNOWN[backbone].config
    with torch.device("meta"):
        model = with_head(encoder_from_config(config), int(config["vocab_size"]), 0, head="masked-lm")
    size = sum(4 * parameter.numel() for parameter in model.parameters()) / 2**20
    assert 0 < mebibytes - size < 0.07


def test_a_row_or_task_of_another_scale_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    lite, paper = (scale_of(TABLE3, name) for name in ("lite", "paper"))
    with pytest.raises(UserError, match=r"method 'distilbert': expected a scale.* one, paper, found lite"):
        rows_of(TABLE3, ["distilbert"], lite)
    with pytest.raises(UserError, match=r"task 'nicta-piboso': expected a scale.* one, lite, found paper"):
        columns_of(TABLE3, ["nicta-piboso"], paper)
    assert [column.task for column in columns_of(TABLE3, [], paper)] == ["jnlpba", "scierc", "rct20k"]
    assert main(["plan", TABLE3.id, "--scale", "lite", "--methods", "tinybert-4"]) == 2
    assert "choose another SCALE" in capsys.readouterr().err
    assert main(["show", TABLE3.id]) == 0
    shown = capsys.readouterr().out
    assert "on TinyBERT_General_4L_312D (at paper)" in shown
    assert "in place of rct20k (at lite)" in shown


@pytest.mark.parametrize(
    ("folder", "labels", "left_out"),
    [("nicta_piboso", "population", "rct20k"), ("RCT-20k", "OBJECTIVE", "nicta-piboso")],
)
def test_without_tasks_named_a_stand_in_runs_only_where_the_original_has_no_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str, labels: str, left_out: str
) -> None:
    (tmp_path / folder).mkdir()
    for name in ("train.txt", "dev.txt", "test.txt"):
        (tmp_path / folder / name).write_text(f"###1\n{labels}\tsome adults\n\n")
    columns = columns_of(TABLE3, [], TABLE3.scale("lite"))
    chosen = Selection(TABLE3, TABLE3.scale("lite"), TABLE3.rows, columns, [0])
    found = at_hand(chosen, tmp_path)
    assert [column.task for column in columns if column not in found.columns] == [left_out]
    said = capsys.readouterr().err
    assert ("NICTA-PIBOSO stands in for rct20k: no data of PubMed 20k RCT" in said) == (left_out == "rct20k")


def test_every_deviation_is_of_scales_that_there_are() -> None:
    for table in [PRETRAINING, SENTENCES, GENERAL, benchmark("fedbfpt-appendix5"), *TABLES]:
        entries = [(entry.id, scale) for entry in table.deviations for scale in entry.scales]
        assert len(set(entries)) == len(entries)  # one text an id and scale


def test_deviations_hold_whatever_data_are_at_hand() -> None:
    said = {(entry.id, scale): entry.text for entry in TABLE3.deviations for scale in entry.scales}
    general = {entry.id: entry.text for entry in GENERAL.deviations}
    for text in (said["corpora", "lite"], general["corpus"]):
        assert "MB" not in text  # the share is fixed, and what it comes to is the data's
    for name, task in (("biology", "corpus-biology"), ("medicine", "corpus-medicine")):
        assert f"{100 * setup.LITE_SHARE[task]:.0f} % of {name}" in said["corpora", "lite"]
    assert said["stand-in", "lite"].startswith("Where Rct-20k is not at hand, ")
    for scale in ("lite", "paper"):
        share = cell_of(TABLE3, "bert", "rct20k", scale).partition["share"]
        assert f"Rct-20k: {100 * float(str(share)):.0f} %" in said["subset-rct20k", scale]
    assert "trained again, on another machine" in said["seeds", "lite"]
    assert "three seeds" in said["looks", "lite"]
    assert "masks and order of examples" in said["draw", "paper"]
