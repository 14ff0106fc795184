"""The study of what embeddings give away: its answers, its cells, and its demo through the runner."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.dry_run.rounds import wire_plan
from benchmarks.encoders.backbones import build_tokenizer, locate
from benchmarks.encoders.encoding import encode
from benchmarks.registry import benchmark, scale_of
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig
from benchmarks.running.federation import build_clients, load_inputs
from benchmarks.running.run_options import RunOptions
from benchmarks.running.runner import run_cell
from benchmarks.tasks import Examples, task
from benchmarks.tasks.words import NOUNS
from fedsim.data import IGNORED, Subset
from reports.evidence.published import read_published
from reports.evidence.records import request_for
from reports.views import page

STUDY, TABLE = benchmark("fedfreezebert-inversion"), benchmark("fedfreezebert-table3")
Records = dict[str, RunResult]


def cells(scale: str) -> dict[str, RunConfig]:
    return {row.id: cell for row, _, cell in STUDY.cells(scale_of(STUDY, scale), [0])}


# ---- answers ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return build_tokenizer(locate("tiny"))


def test_answers_are_a_texts_own_words_at_their_places(tokenizer: Any) -> None:
    one, two = (tokenizer.convert_tokens_to_ids(word) for word in NOUNS[:2])
    texts = ((f"{NOUNS[0]} {NOUNS[1]} unheard-of-word {NOUNS[0]}",), (NOUNS[1],), ("",))
    encoded = encode(Examples(texts, np.zeros(3, dtype=np.int64)), tokenizer, 32, task("arsarcasm-texts")).examples
    asked, gap = Subset(encoded, np.arange(3)).references, IGNORED
    # [CLS] before, [SEP] and padding behind; a word that the tokenizer does not know is in pieces, all of them [UNK]
    assert [[id for id in row if id != gap] for row in asked.tolist()] == [[one, two, one], [two], []]
    assert asked[:2, :4].tolist() == [[gap, one, two, gap], [gap, two, gap, gap]]
    assert asked.dtype == np.int64
    assert asked.shape == (3, encoded.lengths.max())


def test_what_is_cut_off_is_not_asked_for(tokenizer: Any) -> None:
    examples = Examples(((" ".join(NOUNS[:20]),),), np.zeros(1, dtype=np.int64))
    asked = encode(examples, tokenizer, 10, task("arsarcasm-texts")).subset(np.arange(1)).references
    assert asked.shape == (1, 10)
    assert (asked != IGNORED).sum() == 8


def test_clients_have_the_same_examples_as_for_sentiment() -> None:
    cell, settings = cells("demo")["last"], RunOptions()
    for one in (cell, replace(cell, holdout="validation")):  # a validation part is drawn by class, not by token
        other = replace(one, task="arsarcasm")
        ours, report = build_clients(one, load_inputs(one, settings), settings)
        theirs, expected = build_clients(other, load_inputs(other, settings), settings)
        assert report == expected
        for mine, its in zip(ours, theirs, strict=True):
            assert mine.train.indices.tolist() == its.train.indices.tolist()
            assert mine.evaluation["test"].indices.tolist() == its.evaluation["test"].indices.tolist()
            assert mine.train.references.ndim == 2


# ---- the definition --------------------------------------------------------------------------------------------


def test_no_row_claims_to_be_printed_and_each_says_what_it_is() -> None:
    assert not any(row.printed for row in STUDY.rows)
    assert all(row.note for row in STUDY.rows)
    assert read_published(STUDY.published_csv) == ()
    assert set(STUDY.columns[0].scores) == {f"test/{metric}" for metric in task("arsarcasm-texts").metrics}


@pytest.mark.parametrize("scale", ["demo", "lite", "paper"])
def test_the_attack_is_on_the_federation_of_table_3(scale: str) -> None:
    victims = TABLE.cells(scale_of(TABLE, scale), [0])
    attacked = {cell.head: cell for row, _, cell in victims if row.algorithm == "fedfreezebert_central"}
    for cell in cells(scale).values():
        assert len({one.spec_id for one in cells(scale).values()}) == len(STUDY.rows)
        if cell.algorithm != "inversion":
            continue
        victim = attacked[cell.head]
        for name in ("source", "backbone", "clients", "partition", "test_share", "codec"):
            assert getattr(cell, name) == getattr(victim, name)
        assert cell.training.max_length == victim.training.max_length


@pytest.mark.parametrize("scale", ["demo", "lite", "paper"])
def test_every_inverter_sees_as_many_texts_in_all(scale: str) -> None:
    seen = {
        cell.training.local_epochs * cell.options["public_texts"]
        for cell in cells(scale).values()
        if cell.algorithm == "inversion"
    }
    assert len(seen) == 1


def test_nothing_is_foretold_to_be_sent() -> None:
    for cell in cells("paper").values():
        plan = wire_plan(cell)
        assert (plan.up_bytes, plan.down_bytes, plan.setup_bytes) == (0, 0, 0)


# ---- the demo --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    settings = RunOptions(results_dir=tmp_path_factory.mktemp("results"), device="cpu")
    return {name: run_cell(cell, settings, lambda _: None) for name, cell in cells("demo").items()}


def test_the_demo_recovers_texts_that_no_majority_does(records: Records) -> None:
    tokens = {name: record.score("test/token_recovery") or 0.0 for name, record in records.items()}
    assert tokens["token-majority"] < tokens["last-few"] < tokens["last"] < tokens["last-four"]
    assert tokens["last-four-fp16"] == pytest.approx(tokens["last-four"], abs=0.01)
    assert records["token-majority"].score("test/text_recovery") == 0
    assert (records["last-four"].score("test/text_recovery") or 0.0) > 0.5


def test_records_hold_a_loss_an_error_and_no_bytes(records: Records) -> None:
    for name, record in records.items():
        (only,) = record.rounds
        assert (only.up_bytes, only.down_bytes, record.setup_bytes) == (0, 0, 0)
        assert (only.train_loss is None) == (name == "token-majority")
        assert set(record.sampling_errors["test"]) == {"token_recovery", "text_recovery"}
        assert all(error is not None for error in record.sampling_errors["test"].values())


def test_the_page_shows_every_row_and_says_who_attacks(records: Records) -> None:
    shown = page(request_for(STUDY, scale_of(STUDY, "demo"), list(records.values())))
    assert shown.run == shown.cells == len(STUDY.rows)
    notes = " ".join(shown.notes)
    assert "one cannot get back the original sentence" in notes
    assert "lower bound" in notes
    assert "A tenth of the public texts: 200 and 20." in notes


def test_a_second_worker_or_machine_gets_the_same_record(records: Records, tmp_path: Path) -> None:
    again = run_cell(cells("demo")["last-four-fp16"], RunOptions(results_dir=tmp_path, device="cpu"), lambda _: None)
    assert again.outcome == records["last-four-fp16"].outcome
