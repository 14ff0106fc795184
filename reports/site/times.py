"""What the script computes times from: rounds of runs, networks and devices (`benchmarks.costs.networks`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, astuple

from benchmarks.costs.networks import DEVICES, NETWORKS, Deployment
from benchmarks.experiment import Column, Row
from benchmarks.run_config import JSON
from reports.evidence.records import Request
from reports.evidence.traffic import whole_run


def presets() -> JSON:
    """The networks and devices that a reader chooses from, and what stays as it is in the tables."""
    share = Deployment.utilisation
    return {
        "networks": {name: asdict(network) for name, network in NETWORKS.items()},
        "devices": {name: {"name": device.name, "rate": share * device.peak} for name, device in DEVICES.items()},
        "server": share * Deployment.server.peak,
        "slowdown": Deployment.slowdown,
    }


def rounds_of(request: Request, row: Row, column: Column) -> list[JSON]:
    """For each seed the distinct rounds of a run with its earlier ones: how many, and the numbers of each `Turn`.

    Empty where the operations of a method are unknown.
    """
    runs = [whole_run(record, request) for record in request.records_of(row, column)]
    return [
        [[count, list(turns)] for turns, count in Counter(tuple(map(astuple, turns)) for turns in rounds).items()]
        for rounds in runs
        if rounds
    ]
