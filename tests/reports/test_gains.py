"""The view of gains: every score is the last round's, so that the part starts where the reference is scored."""

from dataclasses import replace

from benchmarks.publication import View
from benchmarks.results import RunResult
from reports.evidence.records import request_for
from reports.views import page

ACC = "test/accuracy"


def test_one_round_for_the_reference_and_the_part(table3, record_of):
    """FedAvg is best in its first round on validation data, and the part has one round after FedAvg's last."""

    def run(row: str, *curve: float) -> RunResult:
        record = record_of(row, "qqp", {ACC: curve[-1]})
        rounds = tuple(
            replace(
                record.rounds[0], round=number, scores={name: {"accuracy": level} for name in ("test", "validation")}
            )
            for number, level in enumerate(curve, start=1)
        )
        return replace(record, rounds=rounds, chosen_by="validation/accuracy")

    view = View("gains", {"reference": "fedavg", "part": "fedprox", "headline": "fedsplitbert"})
    column = next(column for column in table3.columns if column.task == "qqp")
    table = replace(table3, columns=(column,), view=view)
    records = [run("fedavg", 0.80, 0.70), run("fedprox", 0.75), run("fedsplitbert", 0.78, 0.77)]
    frame = page(request_for(table, table.scale("lite"), records)).frame().set_index("row")
    assert [round(frame.gain[row], 6) for row in ("fedprox", "fedsplitbert")] == [5.0, 7.0]
    assert round(frame.beyond["fedsplitbert"], 6) == 2.0
