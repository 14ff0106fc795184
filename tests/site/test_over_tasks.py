"""Profiles, probabilities of improvement and the front: on numbers that one can count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.measures import metric
from reports.pages.styles import colour_of
from reports.site.charts import front_chart
from reports.site.points import Point, with_front
from reports.site.profiles import _common, _improvement, _profiles
from reports.site.tables import compact

RUNS = {
    "A": {"x": np.array([80.0, 82.0]), "y": np.array([60.0, 60.0])},
    "B": {"x": np.array([81.0, 79.0]), "y": np.array([60.0, 50.0])},
}


def test_improvement_counts_pairs_of_seeds_and_halves_ties() -> None:
    found = _improvement("A", "B", RUNS)
    assert found.probability == pytest.approx((3 / 4 + (0.5 + 1 + 0.5 + 1) / 4) / 2)
    back = _improvement("B", "A", RUNS)
    assert found.probability + back.probability == pytest.approx(1)
    assert found.interval is not None
    assert found.interval[0] < found.probability < found.interval[1]


def test_one_seed_gives_no_interval() -> None:
    runs = {name: {task: values[:1] for task, values in found.items()} for name, found in RUNS.items()}
    assert _improvement("A", "B", runs).interval is None


def test_profiles_are_shares_within_a_distance_of_the_best_mean() -> None:
    own, other = _profiles(RUNS)
    assert (own.method, other.method) == ("A", "B")
    # Best means: 81 on x, 60 on y.
    assert own.shares[0] == pytest.approx((1 / 2 + 1) / 2)
    assert other.shares[0] == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert other.shares[-1] == 1.0
    assert list(other.shares) == sorted(other.shares)


def test_tasks_are_those_on_which_most_can_be_compared() -> None:
    many, few = frozenset("abcd"), frozenset("ab")
    assert _common([many, many, few]) == many
    assert _common([many, few]) == few
    assert _common([many]) == frozenset()


def point(value: float, size: float, **fields: object) -> Point:
    of = "P", "Table 1", "p-table1", "lite", "T", "Acc", metric("accuracy"), "M"
    own = Point(*of, value, None, 1, size, size, size)
    return replace(own, **{"method": f"{value} {size} {fields}", **fields})  # type: ignore[arg-type]


def test_the_front_is_what_nothing_of_its_kind_beats() -> None:
    ours = [point(80, 100), point(70, 10), point(75, 200), point(60, 10)]
    points = [*ours, point(99, 1, is_reported=True, scale="paper")]
    assert [each.is_best for each in with_front(points)] == [True, True, False, False, True]


def test_lower_is_better_where_the_metric_says_so() -> None:
    points = [point(20, 100, metric=metric("perplexity")), point(10, 100, metric=metric("perplexity"))]
    assert [each.is_best for each in with_front(points)] == [False, True]


def test_the_front_opens_on_what_was_run_most_often() -> None:
    seeds = [point(80, 100, task="A", n=5), point(81, 90, task="A", n=4)]
    once = [point(value, 50, task="B", metric=metric("perplexity")) for value in (20, 30, 40)]
    silent = point(90, 0, task="C", n=9)
    chart = front_chart(with_front([*once, *seeds, silent]), {})
    assert [key for key, _ in chart["choices"]["panel"]] == [
        "A · Acc",
        "B · Acc",
    ]  # where nothing is sent there is none
    assert chart["exponential"] == ["B · Acc"]


def test_a_spread_stays_within_what_a_score_can_be() -> None:
    chart = front_chart([point(99, 100, sd=2.0), point(2, 100, sd=3.0, metric=metric("perplexity"))], {})
    assert [(value["low"], value["high"]) for value in chart["values"]] == [(97, 100), (1, 5)]


def test_records_that_several_tables_show_are_one_mark() -> None:
    own = point(80, 100, cells=("a", "b"))
    assert len(with_front([own, replace(own, place="Table 2"), replace(own, cells=("c",))])) == 2


@pytest.mark.parametrize(
    ("value", "unit", "text"), [(75.26, "%", "75.3"), (9.04, "%", "9.0"), (0.8123, "", "0.812"), (123.456, "", "123.5")]
)
def test_compact_numbers(value: float, unit: str, text: str) -> None:
    assert compact(value, unit) == text


def test_a_method_has_one_colour() -> None:
    assert colour_of("FedAvg") == colour_of("FedAvg") != colour_of("FedProx")
    assert len({colour_of(f"c = {layer}") for layer in (0, 4, 6, 8, 10, 12)}) == 6
    assert colour_of("a name that nobody knows").startswith("#")
