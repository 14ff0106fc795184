"""Seconds of split training's parties, out of a result of `make bench`."""

import json
from dataclasses import replace

import pytest

from benchmarks.costs import Costing
from benchmarks.dry_run.shapes import derive_for
from benchmarks.fedbert.tables import TABLE2
from reports.evidence.records import request_for
from reports.views.split import SplitCosts

TOKENS = 800
ROW = {"model": "small", "batch": 8, "tokens": 100, "unsplit_tokens_per_second": 400} | {
    f"{part}_seconds": seconds
    for part, seconds in (
        ("embeddings", 0.1),
        ("head", 0.2),
        ("client_step", 0.1),
        ("layers", 1.5),
        ("server_step", 0.1),
    )
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
