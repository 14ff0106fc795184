"""Rows that start from other runs, rows and tasks of one scale, and tasks in place of others without data."""

import numpy as np
import pytest

from benchmarks.cli.run import with_stand_ins
from benchmarks.errors import UserError
from benchmarks.executors import run_cells
from benchmarks.predictions import read_predictions
from benchmarks.registry import benchmark, columns_of, rows_of, scale_of
from benchmarks.results import RunResult, read_results
from benchmarks.running.completed import earlier_stages
from benchmarks.running.run_options import RunOptions
from benchmarks.selection import Selection
from tests.benchmarks.conftest import cells_of

BFPT, GENERAL = benchmark("fedbfpt-table3"), benchmark("fedbfpt-general")
BEGUN = ["fedavg-finetuned", "fedavg-prior"]
SHORT = ("training.rounds=2", "training.local_epochs=1")


@pytest.mark.slow
def test_personalised_rows_start_from_one_fedavg_and_add_the_prior_to_its_answers(settings):
    cells = cells_of(BEGUN, *SHORT)
    (first,) = cells_of(["fedavg"], *SHORT)
    assert earlier_stages(cells[0]) == earlier_stages(cells[1]) == [first]
    assert run_cells(cells, settings, lambda _: None) == 0
    found: dict[str, RunResult] = {record.cell.spec_id: record for record in read_results(settings.records_dir)}
    assert len(found) == 3
    finetuned, prior, fedavg = (found[cell.spec_id] for cell in (*cells, first))
    assert finetuned.inputs["initial"] == prior.inputs["initial"]
    assert prior.inputs["initial"]["cell_id"] == fedavg.cell_id
    answers, plain = (read_predictions(settings.records_dir, record) for record in (prior, fedavg))
    labels = np.array(fedavg.partition["obtained_counts"])  # of what a client was scored on, it held back
    for (client, _), kept in plain.items():
        labels[client] -= np.bincount(kept.gold, minlength=labels.shape[1])
    own, everyone = labels + 1, labels.sum(axis=0) + 1
    shifts = np.log(own / own.sum(axis=1, keepdims=True)) - np.log(everyone / everyone.sum())
    assert answers.keys() == plain.keys()
    for (client, evaluation), kept in answers.items():  # in half precision
        expected = plain[client, evaluation].by_round[len(fedavg.rounds)].astype(float) + shifts[client]
        np.testing.assert_allclose(kept.last.astype(float), expected, atol=1e-2)


def test_a_row_or_task_of_another_scale_is_refused_by_name():
    lite, paper = (scale_of(BFPT, name) for name in ("lite", "paper"))
    with pytest.raises(UserError, match=r"method 'distilbert': expected a scale.* one, paper, found lite; .* SCALE"):
        rows_of(BFPT, ["distilbert"], lite)
    with pytest.raises(UserError, match=r"task 'nicta-piboso': expected a scale.* one, lite, found paper"):
        columns_of(BFPT, ["nicta-piboso"], paper)
    assert [column.task for column in columns_of(BFPT, [], paper)] == ["jnlpba", "scierc", "rct20k"]


@pytest.mark.parametrize(
    ("folder", "labels", "left_out"),
    [("nicta_piboso", "population", "rct20k"), ("RCT-20k", "OBJECTIVE", "nicta-piboso")],
)
def test_a_replacement_runs_only_where_the_original_task_has_no_data(tmp_path, capsys, folder, labels, left_out):
    (tmp_path / folder).mkdir()
    for name in ("train.txt", "dev.txt", "test.txt"):
        (tmp_path / folder / name).write_text(f"###1\n{labels}\tsome adults\n\n")
    columns = columns_of(BFPT, [], BFPT.scale("lite"))
    chosen = with_stand_ins(
        Selection(BFPT, BFPT.scale("lite"), BFPT.rows, columns, [0]), RunOptions(tmp_path, tmp_path)
    )
    assert [column.task for column in columns if column not in chosen.columns] == [left_out]
    message = capsys.readouterr().err
    assert ("NICTA-PIBOSO replaces rct20k: no data of PubMed 20k RCT" in message) == (left_out == "rct20k")
