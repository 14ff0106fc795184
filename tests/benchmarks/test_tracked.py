"""What MLflow receives of a real table: it follows from the definition; a user's changes make another table."""

from pathlib import Path

import pytest

from benchmarks.cli.arguments import build_parser, selection
from benchmarks.cli.main import main
from benchmarks.cli.tracked import tracked_table
from benchmarks.registry import folder_of
from benchmarks.results import read_results
from benchmarks.running.run_options import RunOptions
from benchmarks.tracking.table import PREFIX, Table, TableCell
from reports.evidence.statistics import mean


def table(scale: str, *args: str, id: str = "fedsplitbert-table3") -> Table:
    """The table of a run with these arguments."""
    part = selection(build_parser().parse_args(["run", id, "--scale", scale, *args]))
    return tracked_table(part, RunOptions(data_dir=Path("/data")))


def test_methods_have_their_names_what_the_paper_reports_and_the_command_that_repeats_them():
    rows = {shown.rows[0]: shown for shown in table("lite").cells.values() if "--tasks mrpc" in shown.command}
    command = (
        "python -m benchmarks run fedsplitbert-table3 --scale lite --data-dir /data --methods {} --tasks mrpc --seed 0"
    )
    assert rows["fedprox"] == TableCell(("fedprox",), "FedProx", "test/f1", 76.67, command=command.format("fedprox"))
    name = "Centralised training †"
    assert rows["central"] == TableCell(("central",), name, "test/f1", None, True, command.format("central"))
    figure = table("lite", id="fedsplitbert-figure5")  # has the numbers of its table
    assert [shown for shown in figure.cells.values() if shown.published is not None]


def test_the_chosen_part_changes_neither_views_nor_what_is_complete():
    whole, part = table("lite"), table("lite", "--methods", "linear", "--tasks", "mrpc")
    assert part.views("rte", 0) == whole.views("rte", 0)
    assert "tags.`_reference` = 'no'" in part.views("mrpc", 0)[f"{PREFIX}fedsplitbert-table3-lite-mrpc"]
    assert (part.id, part.places, part.command) == (whole.id, 14 * 9, whole.command)
    assert part.cells == whole.cells


def test_a_changed_table_is_another_table_that_says_what_changed():
    args = ("--set", "training.rounds=10", "--set", "training.learning_rate=1e-3")
    plain, changed = table("demo"), table("demo", *args)
    assert plain.changes == ""
    assert changed.changes == "training.learning_rate=1e-3, training.rounds=10"
    assert changed.name == f"fedsplitbert-table3 @ demo, {changed.changes}"
    assert changed.id.startswith(f"{plain.id}-changed-")
    assert "--set training.learning_rate=0.001 --set training.rounds=10" in changed.command
    shared = {"mlflow.sharedViewState.all-runs"}
    assert plain.views("sst2", 0).keys() & changed.views("sst2", 0).keys() == shared


def test_commands_include_the_folders_of_the_run():
    options = RunOptions(include=(Path("mine"), Path("our tables")))
    shown = tracked_table(selection(build_parser().parse_args(["run", "fedsplitbert-table3"])), options)
    for command in (shown.command, *(cell.command for cell in shown.cells.values())):
        assert " --scale demo --include mine --include 'our tables'" in command


def test_lower_is_better_scores_are_sorted_ascending():
    view = Table("t", "t", scores={"wikitext": "test/perplexity"}).views("wikitext", 0)[f"{PREFIX}t-wikitext"]
    assert '"orderByAsc":true' in view


def test_a_runs_score_is_the_one_that_its_table_shows():
    record = read_results(folder_of("fedpeft") / "records")[0]
    late = mean([entry.score("test/accuracy") for entry in record.rounds[-3:]])
    assert table("lite", id="fedpeft-scores").score_of(record, "test/accuracy") == late
    assert late != table("lite").score_of(record, "test/accuracy") == record.score("test/accuracy", "chosen")


@pytest.mark.slow
def test_a_run_ends_with_each_link_on_a_separate_line(tmp_path, capsys):
    args = ["run", "fedsplitbert-table3", "--tasks", "mrpc", "--methods", "local-majority", "--workers", "1"]
    assert main([*args, "--results-dir", str(tmp_path)]) == 0
    for line, key in zip(capsys.readouterr().out.splitlines()[-2:], ("mrpc&", "mrpc-curves&"), strict=True):
        assert line.startswith("http://127.0.0.1:5055/#/experiments/")
        assert f"viewStateShareKey=fedsplitbert-table3-demo-{key}" in line
