"""Views of gains and of split training's seconds; performance profiles."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.costs import Costing
from benchmarks.dry_run.shapes import derive_for
from benchmarks.fedbert.tables import TABLE2
from benchmarks.publication import View
from benchmarks.results import RunResult
from reports.evidence.records import request_for
from reports.front.picture import spread_out
from reports.site.profiles import improvement, profile_shares
from reports.views import page
from reports.views.split import SplitCosts

ACC = "test/accuracy"
TOKENS = 800
ROW = {"model": "small", "batch": 8, "tokens": 100, "unsplit_tokens_per_second": 400} | {
    f"{part}_seconds": seconds
    for part, seconds in {"embeddings": 0.1, "head": 0.2, "client_step": 0.1, "layers": 1.5, "server_step": 0.1}.items()
}


def test_an_epochs_wall_clock_is_modelled_from_parts_and_bandwidth(tmp_path):
    path = tmp_path / "split.json"
    path.write_text(json.dumps({"rows": [{**ROW, "model": "roberta-small-fresh"}]}))
    table = replace(TABLE2, costing=Costing("fedavg", {}, path))
    found = SplitCosts(request_for(table, table.scale("lite"), (), derive=derive_for(table)))
    options = table.view.options
    clients, length, width = 10, 512, 256
    tokens = options["blocks"] / clients * length
    client, server, whole = (seconds * tokens / TOKENS for seconds in (0.4, 1.6, 2.0))
    for label, bandwidth in (("100 Mbit/s", 12.5e6), ("1 Gbit/s", 125e6)):
        own = found.modelled["RoBERTa-small", label]
        alone = client + server + 4 * tokens * width * 4 / bandwidth
        assert own["sequential"] == pytest.approx(clients * alone)
        assert own["parallel"] == pytest.approx(max(alone, clients * server))
        assert whole < own["FedAvg"] < whole + 2 * 4 * 23e6 / bandwidth
    assert found.modelled.keys() == {("RoBERTa-small", "100 Mbit/s"), ("RoBERTa-small", "1 Gbit/s")}
    *_, shown = found.grids()
    assert "modelled, not measured" in shown.title


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


RUNS = {
    "A": {"x": np.array([80.0, 82.0]), "y": np.array([60.0, 60.0])},
    "B": {"x": np.array([81.0, 79.0]), "y": np.array([60.0, 50.0])},
}


def test_improvement_counts_pairs_of_seeds_and_halves_ties():
    probability, interval = improvement("A", "B", RUNS)
    assert probability == pytest.approx((3 / 4 + (0.5 + 1 + 0.5 + 1) / 4) / 2)
    assert probability + improvement("B", "A", RUNS)[0] == pytest.approx(1)
    assert interval is not None
    assert interval[0] < probability < interval[1]


def test_profiles_are_shares_within_a_distance_of_the_best_mean():
    _, shares = profile_shares(RUNS)  # best means: 81 on x, 60 on y
    assert (shares["A"][0], shares["B"][0]) == (pytest.approx((1 / 2 + 1) / 2), pytest.approx((1 / 2 + 1 / 2) / 2))
    assert shares["B"][-1] == 1.0
    assert list(shares["B"]) == sorted(shares["B"])


def test_labels_keep_their_order_and_a_distance():
    assert spread_out([5.0, 0.0, 5.2], 1.0) == pytest.approx([4.6, 0.0, 5.6])
    assert spread_out([0.0, 0.0, 0.0], 2.0) == pytest.approx([-2.0, 0.0, 2.0])
