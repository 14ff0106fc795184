"""Records: identity, round trip, and what may happen to their files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.errors import UserError
from benchmarks.record import (
    CHECKSUM,
    LedgerEntry,
    RoundRecord,
    RunRecord,
    checksum,
    read_record,
    read_records,
    record_from_json,
    write_record,
    write_text,
)
from benchmarks.spec import Cell, Training, canonical_json
from fedsim.wire import Channel

ROOT = Path(__file__).resolve().parents[2]
INPUTS = {"data": "d1", "backbone": "b1"}
CELL = Cell(
    scale="lite",
    task="mrpc",
    task_version=1,
    source="glue",
    backbone="all-MiniLM-L6-v2",
    clients=2,
    partition={"scheme": "label-table", "shares": ((5, 95), (25, 75), (75, 25)), "size": None},
    algorithm="fedsplitbert",
    options={"critical_layer": 3},
    training=Training(rounds=2, learning_rate=5e-5, batch_size=16),
    seed=0,
)


SENT = (
    LedgerEntry(1, 1, "down", "parameters", 10, 30),
    LedgerEntry(2, 0, "up", "parameters", 10, 40),
    LedgerEntry(2, 1, "down", "parameters", 10, 30),
)


@pytest.fixture
def record() -> RunRecord:
    scores = ({"test": {"f1": 0.5, "accuracy": None}}, {"test": {"f1": 0.7, "accuracy": 0.5}})
    rounds = tuple(
        RoundRecord(number, (0, 1), 0.6 / number, (0.5, 0.7), {"test": {"f1": f1, "accuracy": None}}, scores, 40, 30)
        for number, f1 in ((1, 0.8), (2, 0.6))
    )
    return RunRecord(
        cell=CELL,
        cell_id=CELL.cell_id(INPUTS),
        inputs={
            "data": {"digest": "d1", "origin": "folder: MRPC/train.tsv", "skipped": ["MRPC/dev.tsv:3: é"]},
            "backbone": {"digest": "b1", "origin": {"from": "folder"}},
        },
        partition={"scheme": "label-table", "sizes": [20, 20]},
        clients=({"client": 0, "train": 16, "test": 4}, {"client": 1, "train": 16, "test": 5}),
        rounds=rounds,
        sampling_errors={"test": {"f1": 0.02, "accuracy": None}},
        setup_bytes=100,
        ledger=(
            LedgerEntry(0, 0, "down", "parameters", 25, 100),
            LedgerEntry(1, 0, "up", "parameters", 10, 40, 2),
            *SENT,
        ),
        environment={"revision": "abc", "versions": {"torch": "2"}},
        timing={"train_seconds": 1.5, "setup_seconds": 0.5},
        finished="2026-01-01T00:00:00+00:00",
    )


# ---- identity --------------------------------------------------------------------------------------------------


def other(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case str():
            return f"{value}x"
        case int() | float():
            return value + 1
        case None:
            return 1.0
        case Training():
            return dataclasses.replace(value, rounds=value.rounds + 1)
    return {**value, "extra": 1}


def test_the_ids_are_cut_hashes_of_canonical_json() -> None:
    def cut_hash(value: Any) -> str:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    cell = dataclasses.asdict(CELL)
    later = {"schedule": "constant", "warmup": 0.0, "clip_norm": None, "decayed": "all", "optimizer": "fresh"}
    later |= {"kernels": "packed", "stop": None, "decay": 1.0, "beta2": 0.999, "epsilon": 1e-8}
    assert cell.pop("head") == "pooled"  # cells got it later, and keep their ids while it has its default
    assert {name: cell["training"].pop(name) for name in later} == later
    assert cell.pop("initial") is None
    assert [cell.pop(name) for name in ("validation_share", "data_seed", "grouped")] == [0.0, None, False]
    assert cell.pop("central_share") == 1.0
    assert CELL.cell_id(INPUTS) == cut_hash({"cell": cell, "inputs": INPUTS})
    assert CELL.spec_id == cut_hash(cell)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Cell)])
def test_every_field_decides_the_ids(name: str) -> None:
    changed = dataclasses.replace(CELL, **{name: other(getattr(CELL, name))})
    assert changed.spec_id != CELL.spec_id
    assert changed.cell_id(INPUTS) != CELL.cell_id(INPUTS)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Training)])
def test_every_field_of_training_decides_the_ids(name: str) -> None:
    training = dataclasses.replace(CELL.training, **{name: other(getattr(CELL.training, name))})
    assert dataclasses.replace(CELL, training=training).spec_id != CELL.spec_id


@pytest.mark.parametrize("name", INPUTS)
def test_every_input_decides_the_run_and_not_the_definition(name: str) -> None:
    assert CELL.cell_id({**INPUTS, name: "other"}) != CELL.cell_id(INPUTS)


def test_ids_are_of_values_and_not_of_their_order_or_container() -> None:
    lists = {"size": None, "shares": [[5, 95], [25, 75], [75, 25]], "scheme": "label-table"}
    again = dataclasses.replace(CELL, partition=lists)
    assert again.cell_id(dict(reversed(INPUTS.items()))) == CELL.cell_id(INPUTS)
    assert Cell.from_json(json.loads(json.dumps(CELL.to_json()))).spec_id == CELL.spec_id


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_ids_are_the_same_in_every_process(hash_seed: str) -> None:
    code = (
        "import json, sys; from benchmarks.spec import Cell\n"
        "print(Cell.from_json(json.loads(sys.argv[1])).cell_id(json.loads(sys.argv[2])))"
    )
    words = [sys.executable, "-c", code, json.dumps(CELL.to_json()), json.dumps(INPUTS)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    found = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == CELL.cell_id(INPUTS)


# ---- content ---------------------------------------------------------------------------------------------------


def test_a_record_comes_back_as_it_was(record: RunRecord, tmp_path: Path) -> None:
    path = write_record(tmp_path, record)
    assert path.name == f"lite-mrpc-fedsplitbert-s0-{record.cell_id}.json"
    again = read_record(path)
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept.pop("sha256") == hashlib.sha256(canonical_json(kept).encode()).hexdigest()
    assert json.loads(json.dumps(again.to_json())) == kept
    assert again.rounds == record.rounds
    assert again.ledger == record.ledger
    assert again.cell.spec_id == record.cell.spec_id
    assert again.outcome == record.outcome
    assert [found.cell_id for found in read_records(tmp_path)] == [record.cell_id]
    assert path.stat().st_mode & 0o777 == 0o644  # readable for others, as other results are


def test_a_record_of_the_first_kind_is_read_whose_ledger_counts_no_messages(record: RunRecord, tmp_path: Path) -> None:
    value = json.loads(json.dumps(record.to_json()))
    value["ledger"] = [row[:6] for row in value["ledger"]]
    value[CHECKSUM] = checksum(value)
    path = tmp_path / record.file_name
    path.write_text(json.dumps(value))
    found = read_record(path).ledger
    assert found == tuple(entry._replace(messages=1) for entry in record.ledger)
    assert {len(entry) for entry in found} == {7}


def test_10_000_payloads_a_round_are_a_small_record(record: RunRecord, tmp_path: Path) -> None:
    channel, rounds = Channel(), 2
    payload = {"activations": torch.zeros(8)}
    for channel.round in range(1, rounds + 1):
        for number in range(10_000):
            channel.to_server(number % 2, payload, "activations")
            channel.to_client(number % 2, payload, "gradients")
    ledger = tuple(LedgerEntry(*row) for row in channel.ledger.rows)
    assert len(ledger) == rounds * 2 * 2
    assert {(entry.messages, entry.values, entry.bytes) for entry in ledger} == {(5000, 40_000, 160_000)}
    sent = [dataclasses.replace(entry, up_bytes=2 * 160_000, down_bytes=2 * 160_000) for entry in record.rounds]
    path = write_record(tmp_path, dataclasses.replace(record, rounds=tuple(sent), ledger=ledger, setup_bytes=0))
    assert path.stat().st_size < 100_000
    assert read_record(path).ledger == ledger


def test_the_outcome_leaves_out_when_and_where_alone(record: RunRecord) -> None:
    elsewhere = dataclasses.replace(
        record,
        environment={"revision": "def"},
        timing={},
        finished="2027-01-01T00:00:00+00:00",
        inputs={name: {**entry, "origin": "elsewhere"} for name, entry in record.inputs.items()},
    )
    assert elsewhere.outcome == record.outcome
    for changed in (
        dataclasses.replace(record, rounds=record.rounds[:1]),
        dataclasses.replace(record, ledger=record.ledger[:1]),
        dataclasses.replace(record, sampling_errors={}),
        dataclasses.replace(record, partition={}),
    ):
        assert changed.outcome != record.outcome


def test_scores_of_the_last_and_of_the_best_round(record: RunRecord) -> None:
    assert record.score("test/f1") == 0.6
    assert record.score("test/f1", "best") == 0.8
    assert record.score("test/accuracy") is None
    assert record.score("test/accuracy", "best") is None
    assert record.examples("test") == 9


# ---- files -----------------------------------------------------------------------------------------------------


def test_a_finished_record_is_never_overwritten(record: RunRecord, tmp_path: Path) -> None:
    path = write_record(tmp_path, record)
    before = path.read_bytes()
    assert write_record(tmp_path, dataclasses.replace(record, finished="2027-01-01T00:00:00+00:00")) == path
    assert path.read_bytes() == before


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_crash_while_writing_leaves_the_old_file(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "folder" / "text"
    write_text(path, "old")

    def crash(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os if step == "fsync" else Path, step, crash)
    with pytest.raises(OSError, match="No space left"):
        write_text(path, "new and longer")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def damaged(record: RunRecord, **changes: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(record.to_json())), **changes}


def test_a_record_of_another_schema_is_refused(record: RunRecord, tmp_path: Path) -> None:
    for schema in (0, 2, "1"):
        with pytest.raises(ValueError, match=rf"record schema {schema}, this version reads 1"):
            record_from_json(damaged(record, schema=schema))
    path = tmp_path / "old.json"
    path.write_text(json.dumps(damaged(record, schema=0)))
    with pytest.raises(UserError, match=r"old\.json: expected a record of a finished cell.*record schema 0, this"):
        read_record(path)


@pytest.mark.parametrize("place", ["a score", "a byte count", "the checksum"])
def test_a_record_that_was_edited_is_refused(place: str, record: RunRecord, tmp_path: Path) -> None:
    path = write_record(tmp_path, record)
    value = json.loads(path.read_text(encoding="utf-8"))
    if place == "a score":
        value["rounds"][0]["train_loss"] = 0.001
    elif place == "a byte count":
        value["ledger"][0][-1] += 1
    else:
        value["sha256"] = "0" * 64
    path.write_text(json.dumps(value))
    with pytest.raises(UserError, match="it was changed after the run"):
        read_record(path)


def test_a_record_whose_content_is_not_its_ids_is_refused(record: RunRecord) -> None:
    value = damaged(record)
    cell = {**value["cell"], "codec": "fp16"}
    inputs = {**value["inputs"], "data": {**value["inputs"]["data"], "digest": "d2"}}
    for changes in ({"cell": cell}, {"inputs": inputs}, {"cell_id": "0" * 16}):
        with pytest.raises(ValueError, match="it was changed after the run"):
            record_from_json(damaged(record, **changes))


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", "7", "{}", '{"schema": 1}', "\x00", '{"schema": 1, "cell": {}}'],
)
def test_what_is_no_record_is_refused_with_its_name(content: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(content)
    with pytest.raises(UserError, match=r"broken\.json: expected a record.*Restore the file, or move it away"):
        read_record(path)


REQUIRED = [
    field.name
    for field in dataclasses.fields(RunRecord)
    if field.default is field.default_factory is dataclasses.MISSING
]


@pytest.mark.parametrize("name", [*REQUIRED, "schema"])
def test_a_record_that_lacks_a_field_is_refused(name: str, record: RunRecord, tmp_path: Path) -> None:
    value = damaged(record)
    del value[name]
    path = tmp_path / "short.json"
    path.write_text(json.dumps(value))
    with pytest.raises(UserError, match="found a damaged one"):
        read_record(path)


def test_what_the_first_records_know_nothing_of_is_written_where_there_is_some(record: RunRecord) -> None:
    written = record.to_json()
    assert not {"chosen_by", "predictions"} & written.keys()
    assert not any("pooled_scores" in entry for entry in written["rounds"])
    rounds = tuple(
        dataclasses.replace(entry, pooled_scores={"test": {"f1": 0.25, "accuracy": None}}) for entry in record.rounds
    )
    later = dataclasses.replace(record, rounds=rounds, chosen_by="test/f1", predictions={"sha256": "ab"})
    found = record_from_json(json.loads(json.dumps(later.to_json())))
    assert found.to_json() == later.to_json()
    assert (found.chosen_by, found.predictions) == ("test/f1", {"sha256": "ab"})
    assert found.rounds[0].pooled_scores == rounds[0].pooled_scores


def test_a_record_with_an_unknown_field_is_refused(record: RunRecord) -> None:
    with pytest.raises(TypeError, match="mood"):
        record_from_json(damaged(record, mood="good"))


def test_a_score_on_a_test_set_that_the_data_lacked_is_undefined_and_an_unknown_one_an_error(record: RunRecord) -> None:
    assert record.score("mismatched/accuracy") is None  # MNLI without its mismatched file, taken leniently
    with pytest.raises(KeyError):
        record.score("test/bleu")


def test_a_diverged_cell_has_no_score_however_well_it_began(record: RunRecord, tmp_path: Path) -> None:
    stopped = dataclasses.replace(record, diverged={"round": 3, "reason": "no finite loss"})
    again = read_record(write_record(tmp_path, stopped))
    assert again.diverged == stopped.diverged
    assert again.divergence == "diverged in round 3"
    assert again.by_round("test/f1") == (0.8, 0.6)
    assert again.score("test/f1") is again.score("test/f1", "best") is None
    assert "diverged" not in record.to_json()
