"""Federated PEFT's views: what a stated factor of bytes counts, and the guide to methods within a budget of bytes."""

import csv
import re
from dataclasses import replace

import pytest

from benchmarks.claims import At, Claim, CostBound
from benchmarks.costs import PeftTerms
from benchmarks.dry_run.shapes import plan_of
from benchmarks.fedpeft.forms import FACTORS, FORMS
from benchmarks.publication import View
from benchmarks.registry import benchmark, claims_of, folder_of
from benchmarks.results import RunResult
from reports.claims.judge import judge
from reports.evidence.records import request_for
from reports.views import page
from reports.views.sent import Sent, terms_of
from tests.reports.claims.test_fedpeft_decides import made_up

TABLE = benchmark("fedpeft-bytes")
BERT = PeftTerms(L=12, d=768, f=3072, K=3, h=592_130, N=85_054_464, E=23_837_184, r=8)  # BERT-base's own numbers


def test_terms_are_the_encoders():
    paper = TABLE.scale("paper")
    plan = plan_of(TABLE.cell(TABLE.row("fedavg"), TABLE.columns[0], paper, 0))
    assert plan is not None
    assert terms_of(plan.sizes, paper.depth, 3, 8) == BERT


def test_the_question_on_ffa_lora_quotes_the_published_averages():
    (question,) = (claim for claim in claims_of("fedpeft") if claim.id == "1a")
    with (folder_of("fedpeft") / "published" / "fedrot-lora.csv").open(encoding="utf-8") as file:
        printed = {(line["row"], line["score"]): float(line["value"]) for line in csv.DictReader(file)
                   if line["table"].endswith("Table 1") and line["column"] == "average"}  # fmt: skip
    for clients in (3, 10, 50):
        score = f"clients/{clients}"
        gain = 100 * (printed["ffa-lora", score] - printed["fedit", score])
        assert f"{gain:+.1f}".replace("-", "−") in question.place


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


# ---- the guide ------------------------------------------------------------------------------------------------------

MEGABYTE = 10**6
CELLS = {  # row -> accuracy, megabytes of one client in one direction of the whole run
    "local-majority": (70.0, 0.0),
    "central": (95.0, 0.0),
    "fedavg": (90.0, 250.0),
    "fedit": (84.3, 36.0),
    "ffa-lora": (84.1, 0.75),
    "local-lora": (83.95, 0.0),
    "share-b": (80.0, 0.75),
    "rolora": (60.0, 0.25),  # worse than the majority class
    "flora": (79.0, 36.0),  # with a noise that hides its difference from the best
}
NOISE = {"flora": (12.0, 12.0, 12.0, -20.0, -20.0)}


def records(table: str) -> list[RunResult]:
    bench = benchmark(table)
    scale, (column,) = bench.scale("lite"), [each for each in bench.columns if each.task == "sst2"]
    results = []
    for row, (level, megabytes) in CELLS.items():
        for seed in range(5):
            run = made_up(
                bench.cell(bench.row(row), column, scale, seed),
                level + NOISE.get(row, [0.0] * 5)[seed],
                {},
                diverged=False,
            )
            size = int(megabytes * MEGABYTE * run.cell.clients / len(run.rounds))
            rounds = tuple(replace(entry, up_bytes=size, down_bytes=size) for entry in run.rounds)
            results.append(replace(run, rounds=rounds))
    return results


def test_each_budget_names_the_best_methods_that_fit():
    guide = benchmark("fedpeft-guide")
    shown = page(request_for(guide, guide.scale("lite"), [*records("fedpeft-scores"), *records("fedpeft-ten")]))
    grid, even = shown.grids
    clients = [guide.view.options["tables"][table] for table in ("fedpeft-scores", "fedpeft-ten")]
    local, balanced = guide.view.options["scores"].values()
    of = f"{clients[0]}, SST-2 (7 of 41 methods run, 12 rounds, n = 5), {local} and {balanced}"  # equal scores
    ffa = "FFA-LoRA (head shared)"
    first, others = f"Within 4 MB: {ffa}, 84.1 % (1 other", "(2 others not significantly worse)"
    best = f"{first} not significantly worse). Within 8 to 40 MB: FedIT, 84.3 % {others}"
    most = "From 1200 MB: FedAvg (full model), 90.1 %"
    assert shown.conclusions[0].startswith(f"{of}. {best}. {most}.")
    alone = "Local only (LoRA), which sends nothing: 83.9 %, not significantly worse than the best method"
    assert shown.conclusions[0].endswith(f"{alone} within 4, 8 or 40 MB.")
    assert "\n" not in shown.conclusions[0]  # it stands in a cell of the paper's README
    assert all(text.startswith("\n\n") for text in shown.conclusions[1:])
    assert balanced in even.title
    assert [group.name for group in grid.groups] == clients
    sizes = (4, 8, 40, 1200)
    assert [header[0] for header in grid.headers][1:] == [f"within {size} MB" for size in sizes]
    for group in grid.groups:
        (line,) = group.lines
        assert line.label == "SST-2"
        majority, *texts = line.cells
        named = [{text.rpartition(" ")[0] for text in cell.split("; ")} for cell in texts]
        assert abs(float(majority) - 70) < 1
        fedit, local, full = "FedIT", "Local only (LoRA)", "FedAvg (full model)"  # central training is not a choice
        # One round of FedIT, 6 MB, fits into 8 MB.
        assert [names - {local} for names in named] == [{ffa}, {ffa, fedit}, {ffa, fedit}, {full}]
    frame = shown.frame()
    assert set(frame[frame["megabytes"] == 4]["row"]) == {"ffa-lora", "share-b", "rolora", "local-lora"}


# ---- the parts of a gain --------------------------------------------------------------------------------------------


def test_the_parts_of_a_gain_sum_to_the_whole():
    parts = benchmark("fedpeft-parts")
    options = {**parts.view.options, "sum": {"head": ("fedper-lora", "fedit"), "rest": ("fedsa-lora", "fedper-lora")}}
    options |= {"alone": {"local head": "fedper-lora"}, "elsewhere": ("pooled/accuracy", "pooled accuracy")}
    bench, scale = replace(parts, view=View("gains", options)), parts.scale("lite")
    (column,) = [each for each in bench.columns if each.task == "sst2"]
    runs = [
        made_up(bench.cell(bench.row(row), column, scale, seed), level, {}, diverged=False)
        for row, level in (("fedit", 80.0), ("fedper-lora", 86.0), ("fedsa-lora", 89.0), ("local-lora", 85.0))
        for seed in range(5)
    ]
    gate, levels = benchmark("fedpeft-scores"), {"overall-majority": 60.0, "linear": 70.0, "central": 90.0}
    checks = [
        made_up(gate.cell(gate.row(row), column, scale, seed), level, {}, diverged=False)
        for row, level in levels.items()
        for seed in range(5)
    ]
    shown = page(request_for(bench, scale, [*checks, *runs]))
    sentence, beyond, pooled, beyond_pooled = shown.conclusions
    whole = "FedSA-LoRA (local B and head) +"
    assert pooled.startswith(f"SST-2 (n = 5), gain in pooled accuracy over FedIT: {whole}")
    assert sentence.startswith(f"SST-2 (n = 5), gain in local accuracy over FedIT: {whole}")
    assert all(text.startswith(f"{whole[:-2]} over Local only (LoRA): +") for text in (beyond, beyond_pooled))
    whole, head, rest = map(float, re.findall(r" ([+-]\d+\.\d+) \[", sentence))
    assert abs(whole - head - rest) < 0.02
    assert abs(head - 6) < 1
    assert abs(rest - 3) < 1
    assert shown.finding is not None
    parts = r" in local accuracy: local head alone \+\S+; a rest adds \+\S+ to FedPer-LoRA"
    above = r"On SST-2, FedSA-LoRA \(local B and head\) scores \S+ points above FedIT"
    assert re.fullmatch(above + parts, shown.finding[0])
    within = replace(bench, view=View("gains", {**options, "within": 9.0}))
    (title, _) = page(request_for(within, scale, [*checks, *runs])).finding
    assert title.endswith("adds less than 9 points to FedPer-LoRA")
    assert [line.label for line in shown.grids[1].groups[0].lines][1:] == ["head", "rest"]
    single = page(request_for(bench, scale, [*checks, *runs[::5]]))
    assert (len(single.conclusions), single.finding) == (4, None)
    assert not page(request_for(bench, scale, runs)).conclusions  # nothing shows that the encoder learns the task
    assert not page(
        request_for(bench, scale, [*checks, *runs[:14], *runs[15:]])
    ).conclusions  # a seed of a row is missing
