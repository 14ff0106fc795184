"""Table III's definition against the paper, and the commands that show it without running anything."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cli.main import main
from benchmarks.fedsplitbert.setup import LABEL_SHARES_3, LAYERS_IN_PRINT, ROUNDS, UNITS
from benchmarks.publication import SCALES
from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.run_config import RunConfig
from benchmarks.tasks import task
from partitions import from_description

ROOT = Path(__file__).resolve().parents[2]
TABLE = benchmark("fedsplitbert-table3")
PRINTED = [row for row in TABLE.rows if row.printed]
CELLS = {scale.id: TABLE.cells(scale, [0]) for scale in TABLE.scales}
OF_ONE_ROUND = ("overall-majority", "local-majority", "linear", "fedavg-finetuned", "fedavg-prior")
CellsOf = Callable[..., list[RunConfig]]


# ---- rows, columns, cells --------------------------------------------------------------------------------------


def test_the_table_has_the_papers_methods_and_tasks() -> None:
    assert [row.id for row in PRINTED] == ["fedavg", "fedprox", "fedadam", "fedsplitbert", "fedsplitbert-qat"]
    assert [column.name for column in TABLE.columns] == [
        "MRPC", "CoLA", "SST-2", "QQP", "MNLI-(m/mm)", "RTE", "QNLI", "WNLI", "STS-B",
    ]  # fmt: skip
    others = [row for row in TABLE.rows if not row.printed]
    assert [row.id for row in others] == [
        "overall-majority", "local-majority", "linear", "central", "local-only", "fedavg-fp16", "fedsplitbert-chosen",
        "fedper", "fedavg-finetuned", "fedavg-prior",
    ]  # fmt: skip
    assert all(row.note for row in others)  # a row that no paper prints says what it is


def test_every_printed_cell_has_its_published_values() -> None:
    with TABLE.published_csv.open(newline="") as file:
        found = {(line["row"], line["column"], line["score"]) for line in csv.DictReader(file)}
    expected = {(row.id, column.task, score) for row in PRINTED for column in TABLE.columns for score in column.scores}
    assert found == expected | {(row.id, "average", "") for row in PRINTED}


def test_every_score_is_one_that_the_task_computes() -> None:
    for column in TABLE.columns:
        found = task(column.task)
        scores = {f"{evaluation}/{metric}" for evaluation in found.evaluations for metric in found.metrics}
        assert set(column.scores) <= scores
        assert column.averaged in column.scores


@pytest.mark.parametrize("scale", SCALES)
def test_cells_are_many_and_distinct(scale: str) -> None:
    assert len(CELLS[scale]) == 15 * 9
    found = {(row.id, column.task): cell for row, column, cell in CELLS[scale]}
    # Tasks for which FedSplitBERT's own c is what was chosen on test data.
    same = sum(found["fedsplitbert", task] == found["fedsplitbert-chosen", task] for task in LAYERS_IN_PRINT)
    assert 0 < same < 9
    assert len({cell.spec_id for _, _, cell in CELLS[scale]}) == 15 * 9 - same
    assert {cell.clients for _, _, cell in CELLS[scale]} == {3}


def test_deviations_and_scales_exist() -> None:
    assert [scale.id for scale in TABLE.scales] == list(SCALES)
    for deviation in TABLE.deviations:
        assert set(deviation.scales) <= set(SCALES)
        assert deviation.scales
    assert len({deviation.id for deviation in TABLE.deviations}) == len(TABLE.deviations)


def test_what_is_tuned_are_fields_of_the_cells(cells_of: CellsOf) -> None:
    for row, grid in TABLE.tuned.items():
        for name, values in grid.items():
            ids = {cells_of([row], f"{name}={value}", scale="paper")[0].spec_id for value in values}
            assert len(ids) == len(values) > 1


# ---- the paper's set-up ----------------------------------------------------------------------------------------


def test_label_shares_mean_the_datas_own_share_of_label_1() -> None:
    """The reading "label 1 / label 0" of Table I: means over clients are the data's, MRPC 65 %, CoLA 71 %, QQP 40 %."""
    shares = {name: np.mean(rows, axis=0) for name, rows in LABEL_SHARES_3.items()}
    assert shares["mrpc"][1] == pytest.approx(65)
    assert shares["cola"][1] == pytest.approx(71, abs=0.5)
    assert shares["qqp"][1] == pytest.approx(40)
    for balanced in ("sst2", "rte", "qnli", "wnli"):
        assert shares[balanced][1] == pytest.approx(50)


def test_label_shares_are_whole_for_every_client_and_label() -> None:
    assert set(LABEL_SHARES_3) == {column.task for column in TABLE.columns} - {"stsb"}
    for name, rows in LABEL_SHARES_3.items():
        assert np.sum(rows, axis=1) == pytest.approx([100, 100, 100])
        assert {len(row) for row in rows} == {len(task(name).labels or ())}


def test_every_partition_can_be_built_and_describes_its_clients() -> None:
    for _, column, cell in CELLS["paper"]:
        scheme = from_description(cell.partition).scheme
        assert scheme == ("sorted-by-score" if column.task == "stsb" else "label-table")


def test_rounds_and_budget() -> None:
    # Table V's caption: MRPC 6, SST-2 9, QQP and QNLI 3.
    assert [ROUNDS[name] for name in ("mrpc", "sst2", "qqp", "qnli")] == [6, 9, 3, 3]
    for row, column, cell in CELLS["paper"]:
        assert cell.training.rounds == (1 if row.id in OF_ONE_ROUND else ROUNDS[column.task])
        assert cell.training.learning_rate in (2e-5, 3e-5, 4e-5, 5e-5)  # section IV-B
        assert cell.training.local_epochs == 1
    for (_, _, literal), (_, _, paper) in zip(CELLS["literal"], CELLS["paper"], strict=True):
        assert literal.training == paper.training  # a smaller encoder with the paper's own budget
        assert (literal.head, literal.validation_share) == (paper.head, paper.validation_share) == ("pooled", 0.0)
    for row, column, lite in CELLS["lite"]:
        rounds = 10 if column.task == "cola" else 6
        once = row.algorithm in ("local_majority", "linear") or bool(row.begins)
        assert lite.training.rounds == (1 if once else rounds)
        assert (lite.head, lite.validation_share) == ("average", 0.1)


def test_critical_layers_keep_their_share_of_the_depth() -> None:
    def scaled(depth: int) -> list[int]:
        return [UNITS["options.critical_layer"].in_cell(layer, "mrpc", depth) for layer in (0, 4, 6, 8, 10, 12)]

    assert scaled(12) == [0, 4, 6, 8, 10, 12]
    assert scaled(6) == [0, 2, 3, 4, 5, 6]
    assert scaled(4) == [0, 1, 2, 3, 3, 4]  # 4/3, 8/3 and 10/3 of 4 layers, to the nearest
    layers = {scale: {cell.options["critical_layer"] for row, _, cell in found if row.id == "fedsplitbert"}
              for scale, found in CELLS.items() if scale != "lite"}  # fmt: skip
    assert layers == {"demo": {2}, "literal": {3}, "paper": {6}}  # at lite scale they are tuned
    chosen = [cell.options["critical_layer"] for row, _, cell in CELLS["paper"] if row.id == "fedsplitbert-chosen"]
    assert chosen == [8, 6, 10, 6, 10, 8, 10, 10, 10]  # Table III's order, out of Table IV


def test_methods_are_what_the_paper_calls_them() -> None:
    cells = {row.id: cell for row, column, cell in CELLS["paper"] if column.task == "mrpc"}
    assert cells["fedprox"].options == {"proximal": 0.01}
    assert cells["fedadam"].options["server"]["name"] == "adam"
    assert (cells["fedavg"].codec, cells["fedavg-fp16"].codec) == ("fp32", "fp16")
    assert (cells["fedsplitbert"].codec, cells["fedsplitbert-qat"].codec) == ("fp32", "fp16")


# ---- commands that look ----------------------------------------------------------------------------------------

HEAVY = {
    "torch",
    "transformers",
    "datasets",
    "evaluate",
    "mlflow",
    "optuna",
    "pandas",
    "matplotlib",
    "scipy",
    "sklearn",
}


def test_list_and_show_import_nothing_heavy() -> None:
    code = (
        "import sys; from benchmarks.cli.main import main\n"
        "status = main(['list']) or main(['list', '--ids']) or main(['show', 'fedsplitbert-table3'])\n"
        "print('IMPORTED', *{name.partition('.')[0] for name in sys.modules}); sys.exit(status)"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = set(ended.stdout.rpartition("IMPORTED")[2].split())
    assert "benchmarks" in imported
    assert not imported & HEAVY


def test_list_has_a_line_for_each_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--ids"]) == 0
    assert capsys.readouterr().out.splitlines() == benchmark_ids()
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[: lines.index("")]] == benchmark_ids()
    assert lines[lines.index("") + 1].startswith("31 tables and figures of 4 papers")
    (line,) = (line for line in lines if line.startswith("fedsplitbert-table3 "))
    assert "Table III: Performance on 9 GLUE datasets" in line
    assert line.endswith("…")


def test_show_says_all_there_is_to_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", TABLE.id]) == 0
    words = " ".join(capsys.readouterr().out.split())
    for text in [
        TABLE.paper.citation, *(row.name for row in TABLE.rows), *(column.name for column in TABLE.columns),
        *(scale.label for scale in TABLE.scales), *(deviation.text for deviation in TABLE.deviations), "table3.csv",
        "Settings, by --set name=value", "holdout, engine_version, head, validation_share, data_seed, grouped",
    ]:  # fmt: skip
        assert " ".join(text.split()) in words
    assert words.count("(not in the paper)") == 10
    assert words.count("begins from fedavg") == 2
    assert "first, once" not in words  # what they begin from is a row itself


@pytest.mark.parametrize("benchmark_id", ["fedbfpt-table3", "fedsplitbert-table3", "fedfreezebert-table3"])
def test_show_names_scales_that_the_benchmark_has(benchmark_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    known = [scale.id for scale in benchmark(benchmark_id).scales]
    assert main(["show", benchmark_id]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert ("literal" in known) == ("literal" in words)
    assert f"({', '.join(known)})" in words


def plan_rows(output: str) -> dict[str, list[str]]:
    """Method -> rounds and bytes as printed."""
    lines = [re.split(r"\s*│\s*", line.strip("│ ")) for line in output.splitlines() if line.startswith("│ MRPC")]
    return {method: cells for _, method, *cells in lines}


def test_plan_derives_the_papers_bytes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["--scale", "paper", "--tasks", "mrpc", "--results-dir", str(tmp_path)]
    assert main(["plan", TABLE.id, *words, "--methods", ",".join(row.id for row in PRINTED)]) == 0
    output = capsys.readouterr().out
    # Table VI's sizes: 3 clients × (12 layers, pooler, classifier) × 4 bytes, 3 × 6 layers × 4 bytes, half of that.
    hidden, inner, vocabulary, positions, outputs = 768, 3072, 30522, 512, 2
    layer = 4 * (hidden**2 + hidden) + 2 * hidden * inner + inner + hidden + 4 * hidden
    head = hidden**2 + hidden + hidden * outputs + outputs
    embeddings = (vocabulary + positions + 2 + 2) * hidden
    sizes = {"FedAvg": 12 * (12 * layer + head), "FedSplitBERT": 12 * 6 * layer, "FedSplitBERT + qat": 6 * 6 * layer}
    sizes |= dict.fromkeys(("FedProx", "FedAdam"), sizes["FedAvg"])
    setup = 12 * (embeddings + 12 * layer + head)
    assert [f"{size / 1e9:.2f}" for size in sizes.values()] == ["1.03", "0.51", "0.26", "1.03", "1.03"]
    assert plan_rows(output) == {
        name: [
            "6",
            f"{size / 1e9:.2f} GB",
            f"{2 * size / 1e9:.2f} GB",
            f"{12 * size / 1e9:.2f} GB",
            f"{setup / 1e9:.2f} GB",
        ]
        for name, size in sizes.items()
    }
    assert "5 cells, 0 finished" in output
    assert "* one direction (uplink), summed over clients, GB = 10^9 bytes; derived for bert-base-uncased" in output
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]  # it only looks
