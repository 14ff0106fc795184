"""What a claim still needs: the runs of its judgement without a record."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks.claims import AtMost, Better, Claim, CostBound, Reaches, Relation, Same, Sends, Target
from benchmarks.cli.main import main
from benchmarks.experiment import Benchmark
from benchmarks.results import RunResult
from reports.claims.cells import Runs, Tables
from reports.claims.needs import Needs, needs
from tests.reports.claims.conftest import FEDAVG, FEDPROX, SPLIT

Opened = Callable[..., tuple[Benchmark, list[RunResult]]]
JUDGING = {"central", "linear", "overall-majority"}
BETTER = Better((SPLIT,), (FEDAVG,), tasks=("qqp",))
TARGET = Target({"qqp": 84.0}, (FEDAVG, FEDPROX))


@pytest.fixture(scope="module")
def table(table3: Benchmark, opened: Opened) -> Benchmark:
    return opened(table3, [])[0]


def needed(table: Benchmark, relation: Relation, records: list[RunResult], scale: str = "lite") -> Needs:
    runs = Runs(Tables({table.id: table}), table.scale(scale), tuple(records))
    return needs(Claim("1", "A sentence", "section I", (relation,)), runs)


def rows(claim_needs: Needs) -> set[str]:
    return {entry.at.row for entry in claim_needs.missing}


def test_rows_with_those_that_judge_the_column_but_not_what_was_run(table, run_of):
    missing = needed(table, BETTER, [run_of("fedavg", seed=seed) for seed in (1, 3)]).missing
    every = dict.fromkeys(("fedsplitbert", *JUDGING), (0, 1, 2, 3, 4)) | {"fedavg": (0, 2, 4)}
    assert {entry.at.row: tuple(cell.seed for cell in entry.cells) for entry in missing} == every


def test_targets_need_their_baselines_and_the_majority(table):
    every = {"fedsplitbert", "fedavg", "fedprox", "local-majority", *JUDGING}
    assert rows(needed(table, Reaches((SPLIT,), TARGET), [])) == every
    assert rows(needed(table, CostBound((SPLIT,), (FEDPROX,), ("qqp",), least=2.0, target=TARGET), [])) == every
    assert rows(needed(table, replace(BETTER, measure="rounds"), [])) == every - {"fedprox"}
    only = Reaches((SPLIT,), replace(TARGET, only_published=True))
    assert (needed(table, only, []).places, needed(table, only, [], "paper").places) == (0, len(every))
    counted = needed(table, replace(BETTER, measure="rounds"), []).missing  # a sign test needs seven seeds
    assert {entry.at.row for entry in counted if entry.seeds == 7} == {"fedsplitbert", "fedavg"}


def test_what_follows_needs_little(table):
    for relation in (CostBound((SPLIT,), (FEDAVG,), ("qqp",), least=4.0), Sends((SPLIT,), ("qqp",), 3, 1e9)):
        assert needed(table, relation, []).places == 0
    same = needed(table, Same((SPLIT, FEDAVG)), [])
    assert [(entry.at.row, entry.task) for entry in same.missing] == [("fedsplitbert", "mrpc"), ("fedavg", "mrpc")]
    attack = needed(table, AtMost((SPLIT,), "test/accuracy", 1.0, ("qqp",)), [])
    assert rows(attack) == {"fedsplitbert"}  # no gate


def test_closed_columns_are_left_out(table3, run_of, opened):
    table, records = opened(table3, [run_of("fedavg")], {"linear": 95.0})
    claim_needs = needed(table, BETTER, records)
    assert (claim_needs.places, list(claim_needs.closed)) == (0, ["QQP"])
    assert claim_needs.closed["QQP"].startswith("shown not to learn (the encoder is too weak here)")


@pytest.mark.slow
def test_plan_names_every_claim_and_a_stand_in_that_alone_has_data(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("benchmarks.cli.open_claims.all_records", lambda *_: [])
    (tmp_path / "nicta_piboso").mkdir()
    for name in ("train.txt", "dev.txt", "test.txt"):
        (tmp_path / "nicta_piboso" / name).write_text("###1\npopulation\tsome adults\n\n")
    plan = ["plan", "fedbfpt", "--claims", "--scale", "lite", "--results-dir", str(tmp_path / "r")]
    assert main([*plan, "--data-dir", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "nicta-piboso replaces rct20k: no PubMed 20k RCT data" in out
    assert "make fedbfpt-appendix2 SCALE=lite TASKS=nicta-piboso " in out
    assert "what 5 seeds (7 where rounds are counted) still need" in " ".join(out.split())
    assert all(f"│ {key} " in out for key in ("1a", "5h", "7"))
    assert main(["plan", "nobody", "--claims", "--results-dir", str(tmp_path)]) == 2
    assert "expected a paper with claims, such as fedsplitbert" in capsys.readouterr().err
