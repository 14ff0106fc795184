"""Exchange plans that make no sense, and options that no method has."""

import pytest

from fedsim.algorithms import algorithm_names, build_algorithm
from fedsim.errors import FederationError
from fedsim.plan import ExchangePlan

VIEW = {"a": "A", "b": "B", "c": "C"}
VALID = {"download": "a", "train": "ab", "upload": "a", "local": "b"}


def plan(view=VIEW, **roles):
    return ExchangePlan(view, **{role: frozenset(names) for role, names in {**VALID, **roles}.items()})


def test_a_plan_may_upload_what_it_does_not_download_and_freeze_the_rest():
    assert plan(download="").upload == {"a"}
    assert plan(train="", upload="").train == frozenset()


@pytest.mark.parametrize("role", ["download", "train", "upload", "local"])
def test_unknown_names_are_refused(role):
    with pytest.raises(FederationError, match=f"{role} names no such parameter: x"):
        plan(**{role: {*VALID[role], "x"}})


def test_uploaded_and_local_exclude_each_other():
    with pytest.raises(FederationError, match="both uploaded and local: b"):
        plan(upload="ab")


def test_what_is_trained_must_go_somewhere():
    with pytest.raises(FederationError, match="neither uploaded nor local: c"):
        plan(train="abc")


def test_two_parameters_may_read_and_not_write_one_of_the_servers():
    merged = {"a": "A", "b": "A", "c": "C"}
    assert plan(merged, download="ab").view["b"] == "A"
    with pytest.raises(FederationError, match="two uploaded parameters write to one"):
        plan(merged, upload="ab", local="")


def test_algorithms_are_found_by_their_files():
    assert algorithm_names() == sorted(algorithm_names())
    assert {"fedavg", "fedsplitbert", "local_majority"} <= set(algorithm_names())
    assert "averaging" not in algorithm_names()


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("fedsgd", {}, "unknown algorithm 'fedsgd': expected one of .*fedavg.*fedsplitbert.*local_majority"),
        ("averaging", {}, "unknown algorithm 'averaging'"),
        (
            "fedavg",
            {"criticallayer": 1},
            r"fedavg: unknown options \['criticallayer'\].*takes embeddings, server, proximal",
        ),
        ("fedavg", {"workload": None}, r"unknown options \['workload'\]"),
        ("fedsplitbert", {}, r"missing options \['critical_layer'\]"),
        ("local_majority", {"x": 1}, r"unknown options \['x'\].*takes whose"),
        ("fedavg", {"embeddings": "shared"}, "expected one of frozen, global, local, found 'shared'"),
        ("fedsplitbert", {"critical_layer": -1}, "critical layer -1: expected 0 to 3"),
        ("fedsplitbert", {"critical_layer": 4}, "critical layer 4: expected 0 to 3"),
    ],
)
def test_bad_options_are_refused(small, name, options, message):
    with pytest.raises(FederationError, match=message):
        build_algorithm(name, small.workload(), options)
