"""Which rows and tasks a scale has, what stands in for data that are missing, and what everything begins from."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.cli.run import with_stand_ins
from benchmarks.encoders.backbones import KNOWN
from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark
from benchmarks.registry import benchmark, columns_of, rows_of, scale_of
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import by_stage, earlier_stages, initial_of
from benchmarks.selection import Selection

PRETRAINING, TABLE3 = benchmark("fedbfpt-pretraining"), benchmark("fedbfpt-table3")
GENERAL = benchmark("fedbfpt-general")


def cell_of(table: Benchmark, row: str, task: str, scale: str = "lite", seed: int = 0) -> RunConfig:
    (column,) = columns_of(table, [task])
    return table.cell(table.row(row), column, table.scale(scale), seed)


# ---- what begins from what ---------------------------------------------------------------------------------------


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


# ---- scales ------------------------------------------------------------------------------------------------------


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
    found = with_stand_ins(chosen, tmp_path)
    assert [column.task for column in columns if column not in found.columns] == [left_out]
    said = capsys.readouterr().err
    assert ("NICTA-PIBOSO stands in for rct20k: no data of PubMed 20k RCT" in said) == (left_out == "rct20k")
