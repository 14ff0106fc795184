"""The worst client: how it is chosen, and the error rates in docs/statistics.md."""

import math
from dataclasses import replace

import numpy as np
import pytest

from reports.evidence.inference import resampled
from reports.evidence.scores import scores_of, worst_clients

ACC, WORST = "test/accuracy", "test/accuracy@worst"
SD, SHARED, RATIO = 0.04, 0.2, 0.25


@pytest.fixture
def run(record_of):
    base = record_of("fedavg", "qqp", {ACC: 0.5})
    cell = replace(base.cell, partition={"scheme": "label-table"})

    def made(seed: int, scores):
        clients = tuple({"test": {"accuracy": float(score)}} for score in scores)
        means = {"test": {"accuracy": float(np.mean(scores))}}
        entry = replace(base.rounds[0], client_scores=clients, scores=means)
        given = tuple({**base.clients[0], "client": place} for place in range(len(scores)))
        return replace(base, cell=replace(cell, seed=seed), rounds=(entry,), clients=given)

    return made


def test_the_worst_client_is_chosen_by_other_seeds(run):
    records = [run(0, (0.5, 0.7, 0.9)), run(1, (0.6, 0.7, 0.9)), run(2, (0.95, 0.7, 0.9))]
    assert worst_clients(records, ACC) == {0: 1, 1: 1, 2: 0}  # seed 0 would choose client 0 by its own score
    assert scores_of(records, WORST).last == (0.7, 0.7, 0.95)
    assert [record.score(WORST) for record in records] == [0.5, 0.6, 0.7]
    assert scores_of(records, ACC, {0: 2, 1: 2, 2: 2}).last == (0.9, 0.9, 0.9)


def test_one_seed_has_the_least_of_its_run(run):
    assert scores_of([run(0, (0.5, 0.7))], WORST).last == (0.5,)


def test_clients_that_each_seed_draws_anew_are_not_followed(run):
    records = [run(seed, (0.5, 0.7)) for seed in range(3)]
    records = [replace(one, cell=replace(one.cell, partition={"scheme": "equal"})) for one in records]
    assert worst_clients(records, ACC) == {}


def drawn(rng, truth, seeds):
    common = rng.normal(size=len(truth)) * math.sqrt(SHARED)
    return np.array(truth) + SD * (common + rng.normal(size=(seeds, len(truth))) * math.sqrt(1 - SHARED))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truth", "other", "naive_errs", "errs"),
    [((0.6, 0.6, 0.6), (0.6, 0.8, 0.85), 0.15, 0.13), ((0.6,) * 10, (0.6,) + (0.75,) * 9, 0.4, 0.19)],
    ids=["three", "ten"],
)
def test_error_rates_on_simulated_clients(run, truth, other, naive_errs, errs):
    """Without a true difference, the minimum's interval often excludes 0; the client chosen on other seeds seldom."""
    rng, replicates, seeds = np.random.default_rng(0), 2000, 5
    above = {"least": 0, "chosen": 0}
    below = 0
    for _ in range(replicates):
        sides = [[run(seed, row) for seed, row in enumerate(drawn(rng, each, seeds))] for each in (truth, other)]
        least = [one.score(WORST) - two.score(WORST) for one, two in zip(*sides, strict=True)]
        first, second = (scores_of(side, WORST).last for side in sides)
        chosen = [one - two for one, two in zip(first, second, strict=True)]
        for name, gains in (("least", least), ("chosen", chosen)):
            above[name] += resampled(gains, RATIO).interval[1] < 0
        below += resampled(chosen, RATIO).interval[0] > 0
    assert above["least"] / replicates > naive_errs
    assert above["chosen"] / replicates < errs
    assert below / replicates < 0.08
