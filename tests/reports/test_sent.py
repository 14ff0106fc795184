"""Bytes of adapters: what a stated factor counts, and claims that closed forms decide."""

from dataclasses import replace

import pytest

from benchmarks.claims import At, Claim, CostBound
from benchmarks.costs import PeftTerms
from benchmarks.dry_run.shapes import plan_of
from benchmarks.fedpeft.forms import FACTORS, FORMS
from benchmarks.publication import View
from benchmarks.registry import benchmark
from reports.claims.judge import judge
from reports.evidence.records import request_for
from reports.views.sent import Sent, terms_of

TABLE = benchmark("fedpeft-bytes")
BERT = PeftTerms(L=12, d=768, f=3072, K=3, h=592_130, N=85_054_464, E=23_837_184, r=8)  # BERT-base's own numbers


def test_terms_are_the_encoders():
    paper = TABLE.scale("paper")
    plan = plan_of(TABLE.cell(TABLE.row("fedavg"), TABLE.columns[0], paper, 0))
    assert plan is not None
    assert terms_of(plan.sizes, paper.depth, 3, 8) == BERT


@pytest.mark.parametrize(
    ("name", "reading", "by_hand"),
    [
        ("ffa-lora", "with h", (2 * 147_456 + 592_130) / (147_456 + 592_130)),
        ("fedex-lora", "factored, K = 50", (1 + 50) / 2),
        ("fedit", "with h and E", (85_054_464 + 23_837_184 + 592_130) / (294_912 + 592_130)),
        ("fed-sb", "FedIT", 2 * 768 / 8),
    ],
)
def test_a_stated_factor_by_hand(name, reading, by_hand):
    readings = {each.text: each.ratio(BERT) for each in FACTORS[name][2]}
    assert readings[reading] == pytest.approx(by_hand)


def test_the_ranks_at_which_a_factor_is_reached():
    """2 · 768 / r reaches 230 up to r = 6, and half of the bytes is half at any rank."""
    options = {**TABLE.view.options, "encoders": (), "factor_encoders": (("bert-base-uncased", 12),)}
    small = replace(TABLE, rows=TABLE.rows[:2], view=View("sent", options))
    shown = Sent(request_for(small, small.scale("lite"), ()))
    (grid,) = [grid for grid in shown.grids() if grid.stub == "Stated"]
    cells = {(group.name, line.label): line.cells[0] for group in grid.groups for line in group.lines}
    assert cells["Fed-SB: 230 ×", "FedIT"] == "192.0 (r ≤ 6)"
    assert cells["FFA-LoRA: 2 ×", "adapter alone"] == "2.00 (any rank)"
    assert cells["FFA-LoRA: 2 ×", "with h"] == "1.20 (no rank)"


@pytest.mark.parametrize(("terms", "word"), [({"h": 0}, "supported"), ({}, "contradicted")])
def test_a_claim_is_decided_by_closed_forms(terms, word):
    relation = CostBound((At(TABLE.id, "ffa-lora"),), (At(TABLE.id, "fedit"),), ("mrpc",), 2, of="form", terms=terms)
    claim = Claim("1", "half", "abstract", (relation,), reading="half")
    (judgement,) = judge("a suite", (claim,), {}, (), {TABLE.id: TABLE}, TABLE.scale("lite"))
    assert judgement.word == word
    assert FORMS["fedit"].both(BERT) == 2 * 4 * (294_912 + 592_130)
