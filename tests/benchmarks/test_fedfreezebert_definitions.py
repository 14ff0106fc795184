"""FedFreezeBERT's definitions against the paper, and its label table on data with a central test set."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.claims import Better
from benchmarks.cli.main import main
from benchmarks.customise import with_backbone, with_settings
from benchmarks.dry_run import wire_plan
from benchmarks.fedfreezebert.setup import DATA_SEED, ENGLISH_EXAMPLES, REFERENCES
from benchmarks.record import RunRecord
from benchmarks.registry import benchmark, claims_of, scale_of
from benchmarks.runner import run_cell
from benchmarks.settings import Settings
from benchmarks.spec import Cell, Column, Row
from benchmarks.stages import earlier_stages
from benchmarks.sweeps.plan import Tuning, trial_cell
from benchmarks.tasks.glue import CENTRAL_EXAMPLES
from reports.evidence.gate import has_references
from reports.evidence.published import read_published
from reports.evidence.records import request_for
from reports.views import page

TABLE1, TABLE2 = benchmark("fedfreezebert-table1"), benchmark("fedfreezebert-table2")
TABLE3 = benchmark("fedfreezebert-table3")
ORIGINAL = benchmark("fedsplitbert-table4")


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    ((_, _, cell),) = TABLE1.cells(scale_of(TABLE1, "demo"), [0])
    return run_cell(cell, Settings(results_dir=tmp_path_factory.mktemp("results")), lambda _: None)


def test_clients_share_out_every_tweet_and_no_test_tweet(record: RunRecord) -> None:
    shown = page(request_for(TABLE1, scale_of(TABLE1, "demo"), [record])).frame()
    clients = shown[shown["client"] != "all"].drop_duplicates("client")
    assert len(clients) == 5
    assert clients["test"].sum() == 0
    assert clients["train"].sum() == record.inputs["data"]["examples"]
    together = shown[shown["client"] == "all"]
    assert set(together["examples"]) == {record.inputs["data"]["examples"]}


def test_the_test_set_is_not_taken_for_a_clients_part(record: RunRecord) -> None:
    notes = " ".join(page(request_for(TABLE1, scale_of(TABLE1, "demo"), [record])).notes)
    assert "most frequent label's share" not in notes
    assert "not in the records" not in notes


def test_fedsplitbert_is_the_originals_with_exchanged_embeddings() -> None:
    paper = scale_of(TABLE2, "paper")
    ours = {row.id: cell for row, _, cell in TABLE2.cells(paper, [0])}["fedsplitbert-c8"]
    theirs = next(cell for row, column, cell in ORIGINAL.cells(paper, [0]) if (row.id, column.task) == ("c8", "sst2"))
    assert {**theirs.options, "embeddings": "global"} == ours.options
    assert (theirs.partition, theirs.training, theirs.clients) == (ours.partition, ours.training, ours.clients)
    embeddings = 768 * (30522 + 512 + 2 + 2)  # words, positions, types, LayerNorm
    assert wire_plan(ours).up_bytes - wire_plan(theirs).up_bytes == 3 * 4 * embeddings


def test_the_original_accuracy_is_quoted_alike_in_both_papers() -> None:
    (ours,) = read_published(TABLE2.published_csv)
    theirs = {(p.row, p.column, p.score): p.value for p in read_published(ORIGINAL.published_csv)}
    assert ours.value == theirs["c8", "sst2", "test/accuracy"]


def test_a_gigabyte_is_1024_megabytes_of_a_million_bytes() -> None:
    assert TABLE1.paper.gigabyte == 1024 * 10**6
    assert Path(TABLE1.published_csv).is_file()


def test_every_method_meets_every_aggregation_architecture() -> None:
    rows = [row for row in TABLE3.rows if row.printed]
    assert len(rows) == 7 * 4 == len({row.id for row in rows})
    assert {row.head for row in rows} == {"ordinary", "average", "psum", "hsum"}


def test_every_method_sees_each_tweet_five_times_at_the_papers_rates() -> None:
    for row, _, cell in TABLE3.cells(scale_of(TABLE3, "paper"), [0]):
        training = cell.training
        if row.algorithm in ("local_majority", "linear"):
            continue
        assert training.rounds * training.local_epochs == 5
        assert (training.batch_size, training.max_length, training.weight_decay) == (16, 128, 0.0)
        expected = {"fedavg": 1e-6, "fedsplitbert": 1e-5, "central": 1e-5}.get(row.algorithm, 5e-4)
        assert training.learning_rate == (5e-4 if row.id == "fedavg-ordinary-frozen-rate" else expected)


def test_the_literal_scale_has_the_papers_settings_with_the_small_encoders() -> None:
    literal, paper = ({row.id: cell for row, column, cell in _cells(scale) if column is TWEETS} for scale in SMALL)
    assert {row: cell.training for row, cell in literal.items()} == {row: cell.training for row, cell in paper.items()}
    counted = {row.id for row in REFERENCES}
    assert {cell.backbone for row, cell in literal.items() if row not in counted} == {"arabic-mini"}
    assert {cell.backbone for row, cell in literal.items() if row in counted} == {"arabic-mini-fresh"}


@pytest.mark.parametrize("scale", ["demo", "lite", "literal", "paper"])
def test_rows_that_read_no_weights_wait_for_none(scale: str) -> None:
    """To count labels took an hour, as the encoder was trained first."""
    for table in (TABLE1, TABLE3):
        found = {cell.algorithm: earlier_stages(cell) for _, _, cell in table.cells(scale_of(table, scale), [0])}
        assert found["local_majority"] == found.get("linear", []) == []
    assert [bool(earlier_stages(cell)) for row, column, cell in _cells(scale) if row.id == "central-average"] == (
        [True, True, False, False] if scale in ("lite", "literal") else [False, False]  # two seeds, two columns
    )


SMALL = ("literal", "paper")
TWEETS, ENGLISH = TABLE3.columns


def _cells(scale: str) -> list[tuple[Row, Column, Cell]]:
    return TABLE3.cells(scale_of(TABLE3, scale), [0, 1])


def test_the_english_column_has_an_encoder_and_data_of_its_own_where_encoders_are_small() -> None:
    tasks = {scale.id: [column.task for column in TABLE3.columns_at(scale)] for scale in TABLE3.scales}
    alone = ["arsarcasm"]
    both = [*alone, "sst2-central"]
    assert tasks == {"demo": alone, "lite": both, "literal": both, "paper": alone}
    own = [cell for _, column, cell in _cells("lite") if column is ENGLISH]
    assert {(cell.backbone, cell.source) for cell in own} == {("all-MiniLM-L6-v2", "glue")}
    assert {cell.options["critical_layer"] for cell in own if cell.algorithm == "fedsplitbert"} == {4}  # 8 of 12, of 6
    other = with_backbone(scale_of(TABLE3, "lite"), "bert-base-uncased")
    for column in TABLE3.columns:
        cell = TABLE3.cell(TABLE3.row("fedsplitbert-psum"), column, other, 0)
        assert (cell.backbone, cell.options["critical_layer"]) == ("bert-base-uncased", 8)


def test_a_tables_label_says_what_each_column_stands_on() -> None:
    """The English column stood under the Arabic encoder's name."""
    lite = scale_of(TABLE3, "lite")
    arabic, english = (TABLE3.label(lite, [column]) for column in TABLE3.columns)
    assert ("on the training tweets" in arabic, "all-MiniLM-L6-v2" in english) == (True, True)
    assert TABLE3.label(lite, TABLE3.columns) == f"ArSarcasm-v2: {arabic}; SST-2: {english}"
    shown = page(request_for(TABLE3, lite, []))
    assert shown.request.heading.endswith(TABLE3.label(lite, TABLE3.columns))
    titles = [grid.title for grid in shown.grids]
    assert any(": SST-2" in title for title in titles)
    assert [english in title for title in titles] == [": SST-2" in title for title in titles]
    changed = with_settings(TABLE3, ["codec=fp16"])
    assert changed.label(changed.scale("lite"), [ENGLISH]) == f"{english}; changed: codec=fp16"
    other = with_backbone(lite, "bert-base-uncased")
    assert TABLE3.label(other, [ENGLISH]).endswith("; on bert-base-uncased")


def test_one_partition_for_all_training_seeds_unless_they_are_redrawn() -> None:
    for scale in TABLE3.scales:
        cells = [cell for _, _, cell in _cells(scale.id)]
        assert {cell.seed for cell in cells} == {0, 1}
        assert {cell.data_seed for cell in cells} == {DATA_SEED}
        assert all(cell.partition["capped"] and cell.partition["min_size"] == 10 for cell in cells)
    redrawn = with_settings(TABLE3, ["data_seed=null"])
    assert redrawn.cell(redrawn.rows[0], TWEETS, redrawn.scale("lite"), 3).data_seed is None


def test_every_method_is_tuned_with_the_same_number_of_trials_on_data_of_no_table() -> None:
    lite = scale_of(TABLE3, "lite")
    search = TABLE3.search(lite)
    methods = {row.id.rpartition("-")[0] for row in TABLE3.rows if row.printed}
    assert set(search.grids) == {f"{method}-{head}" for method in methods for head in ("average", "psum")}
    tunings = [
        Tuning(TABLE3, lite, TABLE3.row(row), ENGLISH, search.seeds, grid, search.trials)
        for row, grid in search.grids.items()
    ]
    assert {tuning.budget for tuning in tunings} == {8}
    named = {row.tuned_as or row.id for row in TABLE3.rows if row.printed}
    assert named == set(search.grids)
    (seed,) = search.seeds
    for row in map(TABLE3.row, search.grids):
        cell = trial_cell(TABLE3, row, ENGLISH, lite, seed, {"training.learning_rate": 3e-4})
        assert (cell.seed, cell.data_seed, cell.holdout) == (seed, None, "validation")
        assert cell.training.learning_rate == 3e-4


def test_the_rows_that_judge_a_column_are_cells_of_the_table() -> None:
    lite = scale_of(TABLE3, "lite")
    assert has_references(TABLE3)
    assert TABLE3.cell(TABLE3.row(TABLE3.yardstick.row), ENGLISH, lite, 0).head == "average"


def test_the_english_subset_is_as_large_as_is_said() -> None:
    assert CENTRAL_EXAMPLES == ENGLISH_EXAMPLES


def test_each_ordering_of_the_tweets_is_asked_of_the_english_column_too() -> None:
    asked = 0
    for claim in claims_of("fedfreezebert"):
        ours = [one for one in claim.relations if isinstance(one, Better)]
        english = [one for other in claim.otherwise.values() for one in other if one.tasks == (ENGLISH.task,)]
        assert [(one.rows, one.than, one.most) for one in english] == [(one.rows, one.than, one.most) for one in ours]
        assert all(one.by <= 0 and not one.relative for one in english)
        asked += len(english)
    assert asked > 30


def test_bytes_of_the_paper_scale_are_those_of_its_equations() -> None:
    megabyte = 10**6
    cells = {row.id: cell for row, _, cell in TABLE3.cells(scale_of(TABLE3, "paper"), [0])}

    def both(row: str) -> float:
        plan = wire_plan(cells[row])
        return (plan.up_bytes + plan.down_bytes) / megabyte / (2 * 5)  # a client, one direction

    assert round(both("d-fedavg-psum"), 2) == round(both("d-fedavg-hsum"), 2) == 113.44  # W_s
    layer, embeddings = 28.35, 308.81
    assert both("fedsplitbert-ordinary") == pytest.approx(8 * layer + embeddings, abs=0.05)  # equation 5
    assert both("fedavg-ordinary") == pytest.approx(12 * layer + embeddings, abs=0.1)  # 651.37 less the pooler


def test_published_values_name_rows_of_the_table() -> None:
    known = {row.id for row in TABLE3.rows}
    assert {entry.row for entry in read_published(TABLE3.published_csv)} <= known


def test_plan_says_which_bytes_depend_on_the_examples(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    methods = "d-fedavg-psum,c-psum"
    words = ["plan", "fedfreezebert-table3", "--methods", methods, "--scale", "paper", "--results-dir", str(tmp_path)]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "1.11" in shown  # 2 directions, 5 clients, 113.44 MB, 1024 MB a GB
    assert "C-FedFreezeBERT · P-SUM: bytes that depend on the number of examples" in shown
