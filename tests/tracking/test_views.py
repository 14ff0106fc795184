"""The link that opens an experiment as a table of runs, and what a table's own run says.

What MLflow's web interface reads (tags and the address) is tested here, its first screen in test_browser.py.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from benchmarks.record import RunRecord
from benchmarks.tracking import About, Mirror, Shown
from benchmarks.tracking.views import COLUMNS, PREFIX, view_tags, views, web_address

MAX_EXPERIMENT_TAG_LENGTH = 5000
Open = Callable[..., Mirror]


def shown_as(*records: RunRecord, reported: float | None = None) -> dict[str, Shown]:
    """Each record as a row of its own algorithm's name."""
    return {
        record.cell.definition_id: Shown((record.cell.algorithm,), record.cell.algorithm.upper(), "test/f1", reported)
        for record in records
    }


def beside_reference(*records: RunRecord) -> dict[str, Shown]:
    """The same, the last one a reference: not among the methods that compete."""
    rows = shown_as(*records)
    last = records[-1].cell.definition_id
    return rows | {last: dataclasses.replace(rows[last], is_reference=True)}


def ending_in(record: RunRecord, f1: float) -> RunRecord:
    """A record with another F1 after its last round."""
    last = dataclasses.replace(record.rounds[-1], scores={"test": {"f1": f1, "pearson": None}})
    return dataclasses.replace(record, rounds=(*record.rounds[:-1], last))


def state_behind(store: Any, link: str) -> dict[str, Any]:
    """The view that a link names, as MLflow's pages read it: a named view that holds its state as JSON."""
    address = urlsplit(urlsplit(link).fragment)
    assert address.path == f"/experiments/{store.experiment_id}/runs"
    (key,) = parse_qs(address.query)["viewStateShareKey"]
    text = store.client.get_experiment(store.experiment_id).tags[PREFIX + key]
    assert len(text) <= MAX_EXPERIMENT_TAG_LENGTH
    view = json.loads(text)
    assert isinstance(view["name"], str)
    assert isinstance(view["createdAt"], int)
    state: dict[str, Any] = json.loads(view["state"])
    assert view.items() >= state.items()  # as versions before 3.17 read it
    return state


def cells_shown(store: Any, state: dict[str, Any]) -> list[Any]:
    """The runs in the order of the view's table."""
    order = f"{state['orderByKey']} {'ASC' if state['orderByAsc'] else 'DESC'}"
    return list(store.client.search_runs([store.experiment_id], state["searchFilter"], order_by=[order]))


def test_link_shows_a_tables_cells_best_first(
    store: Any, group: str, open_mirror: Open, record_of: Callable[..., RunRecord], play: Any
) -> None:
    worse = record_of(seed=1)
    scores = {"test": {"f1": 0.05, "pearson": None}}
    worse = dataclasses.replace(
        worse, rounds=(*worse.rounds[:-1], dataclasses.replace(worse.rounds[-1], scores=scores))
    )
    records = [worse, record_of(seed=2), record_of(task="rte")]
    with open_mirror(shown=shown_as(*records), tasks=["mrpc", "rte"]) as mirror:
        for record in records:
            play(mirror, record)
        link = mirror.link
    with open_mirror(name="another table", shown=shown_as(records[1])) as other:
        play(other, records[1])
    assert link is not None
    assert link.startswith("http://127.0.0.1:5000/#/")
    state = state_behind(store, link)
    runs = cells_shown(store, state)
    assert [run.data.metrics["score"] for run in runs] == [0.3, 0.3, 0.05]
    assert {run.data.tags["table"] for run in runs} == {group}
    for column in state["selectedColumns"]:
        kind, name = column.rstrip("`").split(".`")
        held = runs[0].data.metrics if kind == "metrics" else runs[0].data.tags
        assert name in held or name in ("reported", "difference_to_reported")
    every = cells_shown(store, state_behind(store, link.replace(link.split("=")[1].split("&")[0], "all-runs")))
    assert {run.data.tags["table"] for run in every} >= {group, "another table"}
    assert {run.data.tags["kind"] for run in every} == {"cell"}


def test_one_task_alone_has_a_link_of_its_own(
    store: Any, group: str, open_mirror: Open, record_of: Callable[..., RunRecord], play: Any
) -> None:
    records = [record_of(), record_of(task="rte")]
    with open_mirror(shown=shown_as(*records), tasks=["mrpc"]) as mirror:
        for record in records:
            play(mirror, record)
        link = mirror.link
    assert link is not None
    assert [run.data.tags["task"] for run in cells_shown(store, state_behind(store, link))] == ["mrpc"]


def test_scores_of_which_less_is_better_are_sorted_so() -> None:
    tags = view_tags({"table @ lite": "tags.`table` = 'table @ lite'"}, lower_is_better=True, created=0)
    assert json.loads(tags[f"{PREFIX}table-lite"])["orderByAsc"] is True
    assert tuple(COLUMNS)[:3] == ("tags.`method`", "tags.`task`", "metrics.`score`")


def test_server_is_linked_without_its_password() -> None:
    assert web_address("http://me:secret@example.org:5000/") == "http://example.org:5000"


def test_reported_value_stands_beside_the_score_and_the_difference_where_both_may_be_compared(
    store: Any, group: str, open_mirror: Open, record_of: Callable[..., RunRecord], play: Any
) -> None:
    record = record_of()
    for name, comparable in ((group, True), (f"{group} lite", False)):
        with open_mirror(
            name=name, shown=shown_as(record, reported=0.25), about=About(is_comparable=lambda _, c=comparable: c)
        ) as mirror:
            play(mirror, record)
    metrics = store.child(group).data.metrics
    assert (metrics["score"], metrics["reported"]) == (0.3, 0.25)
    assert metrics["difference_to_reported"] == pytest.approx(0.05)
    assert "difference_to_reported" not in store.child(f"{group} lite").data.metrics


def test_tables_run_has_means_over_seeds_and_names_the_best(
    store: Any, group: str, open_mirror: Open, record_of: Callable[..., RunRecord], play: Any
) -> None:
    records = [record_of(seed=0), record_of(seed=1), ending_in(record_of(algorithm="fedavg"), 0.5)]
    about = About("A paper.", "Table 7.", {"place": "Table 7"})
    with open_mirror(shown=shown_as(*records), about=about, tasks=["mrpc"]) as mirror:
        for record in records:
            play(mirror, record)
    (parent,) = store.parents(group)
    assert parent.data.params == {"place": "Table 7"}
    assert parent.data.metrics["score/mrpc/fedsplitbert"] == 0.3
    assert parent.data.metrics["seeds/mrpc/fedsplitbert"] == 2
    assert parent.data.metrics["bytes/uplink/mrpc/fedavg"] == 600
    assert parent.data.metrics["bytes/one_time_distribution/mrpc/fedavg"] == 7000
    assert "| mrpc | FEDAVG (of 2) | test/f1 | 50.00 % | 600 | 30 | 1 |" in parent.data.tags["mlflow.note.content"]
    assert store.client.get_experiment(store.experiment_id).tags["mlflow.note.content"] == "A paper."
    note = store.children(group)[0].data.tags["mlflow.note.content"]
    assert group in note
    # another task alone keeps what was said of this one, and a record of the table once more adds no value
    other = record_of(task="rte")
    with open_mirror(shown=shown_as(other, *records), about=about) as mirror:
        mirror.sync([other, *records, *records])
    (again,) = store.parents(group)
    assert again.data.metrics.items() > parent.data.metrics.items()
    assert "| mrpc | FEDAVG" in again.data.tags["mlflow.note.content"]
    assert "| rte | FEDSPLITBERT" in again.data.tags["mlflow.note.content"]
    assert len(store.client.get_metric_history(again.info.run_id, "score/mrpc/fedavg")) == 1


def test_methods_that_tie_are_both_named(
    store: Any, group: str, open_mirror: Open, record_of: Callable[..., RunRecord]
) -> None:
    records = [record_of(), record_of(algorithm="fedavg")]
    with open_mirror(shown=shown_as(*records)) as mirror:
        mirror.sync(records)
    (parent,) = store.parents(group)
    assert "| FEDSPLITBERT, FEDAVG (of 2) | test/f1 | 30.00 % | 600 / 600 |" in parent.data.tags["mlflow.note.content"]


def test_a_reference_is_no_winner_beside_the_papers_methods(
    store: Any, group: str, open_mirror: Open, record_of: Callable[..., RunRecord]
) -> None:
    record, central = record_of(), ending_in(record_of(algorithm="central"), 0.9)
    rows = beside_reference(record, central)
    with open_mirror(shown=rows) as mirror:
        mirror.sync([record, central])
    (parent,) = store.parents(group)
    assert "| mrpc | FEDSPLITBERT (of 1) |" in parent.data.tags["mlflow.note.content"]
    assert parent.data.metrics["score/mrpc/central"] == 0.9


def test_other_settings_of_a_table_leave_its_parameters(
    store: Any, group: str, open_mirror: Open, record_of: Callable[..., RunRecord]
) -> None:
    """MLflow refuses another value of a parameter; tracking goes on."""
    for place in ("Table 7", "Table 8"):
        with open_mirror(about=About(params={"place": place})) as mirror:
            mirror.sync([record_of()])
    (parent,) = store.parents(group)
    assert parent.data.params == {"place": "Table 7"}


def test_commit_and_predictions_come_with_the_cell(
    store: Any, group: str, open_mirror: Open, record_of: Callable[..., RunRecord], play: Any, tmp_path: Path
) -> None:
    record = dataclasses.replace(
        record_of(), environment={"revision": "c" * 40, "modified": True}, predictions={"sha256": "0" * 64}
    )
    with open_mirror() as mirror:
        play(mirror, record)
    before = store.child(group)
    assert before.data.tags["mlflow.source.git.commit"] == "c" * 40
    assert before.data.tags["code_modified"] == "true"
    (tmp_path / record.predictions_name).write_bytes(b"logits")
    with open_mirror() as mirror:  # a later import brings the file
        mirror.sync([dataclasses.replace(record, folder=tmp_path)])
    after = store.child(group)
    assert after.info.run_id == before.info.run_id
    paths = {entry.path for entry in store.client.list_artifacts(after.info.run_id)}
    assert paths == {record.file_name, record.predictions_name}


def test_children_of_an_earlier_layout_are_made_anew(
    store: Any, group: str, open_mirror: Open, record_of: Callable[..., RunRecord]
) -> None:
    record = record_of()
    with open_mirror() as mirror:
        mirror.sync([record])
    old = store.child(group)
    store.client.log_metric(old.info.run_id, "up_bytes", 100, step=1)
    store.client.set_tag(old.info.run_id, "mirrored", "as it was")
    for _ in range(2):
        with open_mirror() as mirror:
            mirror.sync([record])
    new = store.child(group)
    assert new.info.run_id != old.info.run_id
    assert "up_bytes" not in new.data.metrics


def test_a_tasks_view_has_the_methods_that_compete_and_a_tables_all(
    store: Any, group: str, open_mirror: Open, record_of: Callable[..., RunRecord]
) -> None:
    record, central = record_of(), ending_in(record_of(algorithm="central"), 0.9)
    rows = beside_reference(record, central)
    with open_mirror(shown=rows, tasks=["mrpc"]) as mirror:
        mirror.sync([record, central])
        link = mirror.link
    assert link is not None
    methods = [run.data.tags["method"] for run in cells_shown(store, state_behind(store, link))]
    assert methods == ["FEDSPLITBERT"]
    of_table = link.replace("-mrpc&", "&")
    methods = [run.data.tags["method"] for run in cells_shown(store, state_behind(store, of_table))]
    assert methods == ["CENTRAL", "FEDSPLITBERT"]


def test_a_task_of_references_alone_shows_them() -> None:
    assert "reference" in dict(views("table @ lite", ["mrpc"]))["table @ lite, mrpc"]
    assert "reference" not in dict(views("table @ lite", ["mrpc"], has_methods=False))["table @ lite, mrpc"]
