"""A run ends with one matrix of methods and tasks, the scores' limits, and the sent bytes."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from benchmarks.cli.summary import summary
from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.evidence.records import request_for
from reports.pages.text import in_one_unit
from reports.views import page

RecordOf = Callable[..., RunResult]
SCORES = {"fedavg": 0.5, "fedprox": 0.6, "fedadam": 0.4, "fedsplitbert": 0.75, "fedsplitbert-qat": 0.7}


@pytest.fixture(scope="module")
def whole(table3: Benchmark, record_of: RecordOf) -> list[RunResult]:
    """Every row on every task with two seeds; a row that the paper lacks scores best."""
    return [
        record_of(
            row.id,
            column.task,
            dict.fromkeys(column.scores, SCORES.get(row.id, 0.9) + seed / 100),
            seed=seed,
            scale="demo",
            up=(1_500_000, 1_500_000) if row.id == "fedavg" else (500_000, 500_000),
        )
        for row, column, seed in itertools.product(table3.rows, table3.columns, (0, 1))
    ]


def lines(table3: Benchmark, records: list[RunResult], width: int = 110) -> list[str]:
    return summary(page(request_for(table3, table3.scale("demo"), records)), width)


def test_a_whole_table_is_one_matrix(table3, whole):
    output = lines(table3, whole, width=200)
    assert len(output) == 1 + 2 + len(table3.rows) + 3
    assert output[0].endswith("63 of 63 cells run")
    assert output[1] == "Mean ± standard deviation of 2 seeds, at the last round. † not a row of the paper's table."
    assert output[2].split()[:4] == ["MRPC", "F1", "CoLA", "Mcc"]
    assert output[2].split()[-1] == "Average"
    (split,) = (line for line in output if line.startswith("FedSplitBERT  "))
    assert split.split()[1:] == ["75.50", "±", "0.71"] * len(table3.columns) + ["75.50"]
    assert output[-3] == "Generated data: scores are not evidence about methods."
    assert "; FedSplitBERT 500.0 kB; " in output[-2]
    assert output[-1] == "All runs together: uplink 162.0 MB, downlink 0.20 MB."


def test_one_seed_orders_nothing_and_other_numbers_of_seeds_are_shown(table3, whole):
    single = [record for record in whole if record.cell.seed == 0]
    assert "1 seed: no ordering." in lines(table3, single)
    mixed = [*single, *(record for record in whole if record.cell.seed == 1 and record.cell.task == "mrpc")]
    output = "\n".join(lines(table3, mixed))
    assert "75.50 ± 0.71 (2)" in output
    assert "75.00 (1)" in output
    assert "no ordering" not in output


@pytest.mark.parametrize(
    ("rounds", "words"),
    [
        ((2, 2), "in the mean of the last two rounds"),
        ((1, 1), "at the last round"),
        ((1, 2), "in the mean of the last one to two rounds"),
        ((3, 5), "in the mean of the last three rounds"),
    ],
)
def test_tables_say_how_many_late_rounds_were_averaged(table3, record_of, rounds, words):
    """A run without training has one round, which does not count."""

    def run(row: str, seed: int, count: int) -> RunResult:
        record = record_of(row, "mrpc", dict.fromkeys(table3.columns[0].scores, 0.5), seed=seed, scale="demo")
        return replace(record, rounds=(record.rounds * 3)[-count:])

    trained, majority = [run("fedavg", *each) for each in enumerate(rounds)], run("majority", 0, 1)
    untrained = replace(majority, rounds=(replace(majority.rounds[0], train_loss=None),))
    shown = page(request_for(table3, table3.scale("demo"), [*trained, untrained], score_at="late"))
    assert f" seeds, {words}." in summary(shown, 110)[1]
    assert any(f"clients {words}, then over n seeds" in note for note in shown.notes)


def test_skipped_rows_are_counted(table3, whole, record_of):
    skipped = {"skipped": ["train.tsv:3: expected a label", "train.tsv:9: expected a label"]}
    first = record_of("fedavg", "mrpc", dict.fromkeys(table3.columns[0].scores, 0.5), scale="demo", data=skipped)
    assert "Data of MRPC: malformed rows skipped: 2; 100 examples left." in lines(table3, [first])
    several = skipped | {"skipped_lines": 891}  # a stray quotation mark joins lines
    second = record_of("fedavg", "mrpc", dict.fromkeys(table3.columns[0].scores, 0.5), scale="demo", data=several)
    assert "Data of MRPC: malformed rows skipped: 2 (891 lines); 100 examples left." in lines(table3, [second])
    assert not any("skipped" in line for line in lines(table3, whole))


def test_a_table_of_bytes_ends_with_the_gain_that_was_measured(table3, whole):
    measured = pd.DataFrame(
        [
            ("fedsplitbert", "wire, measured", "gain", 6.0),
            ("fedsplitbert", "equation, as printed", "gain", 5.7),
            ("fedsplitbert", "wire, measured", "up_bytes", 5e5),
        ],
        columns=["row", "counted", "quantity", "value"],
    )
    scores = page(request_for(table3, table3.scale("demo"), whole))
    *_, heading, split = summary(replace(scores, ranks=False, frame=lambda: measured.assign(over="fedavg")), 110)
    assert (heading.split(), split.split()) == (["over", "FedAvg"], ["FedSplitBERT", "6.00"])


def test_sizes_of_one_comparison_share_a_unit():
    assert in_one_unit([127.77e6, 63.88e6, 24]) == ["127.77 MB", "63.88 MB", "24 B"]
    assert in_one_unit([3.5e9, 43.41e6], places=1) == ["3.5 GB", "0.043 GB"]
    assert in_one_unit([417.76 * 2**20, 29.41 * 2**20], 2**30) == ["417.76 MiB", "29.41 MiB"]
