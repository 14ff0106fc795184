"""What a run needed to reach a target, and the gain as a product."""

from collections.abc import Sequence
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.results import LedgerEntry, RoundRecord, RunResult
from benchmarks.run_config import RunConfig, TrainConfig
from reports.evidence.scores import round_reaching
from reports.evidence.targets import Attempt, attempt, gain_over
from reports.evidence.traffic import bytes_until, values_until

ACC = "test/accuracy"
CELL = RunConfig("lite", "mrpc", 1, "glue", "minilm", 3, {}, "fedavg", {}, TrainConfig(1, 5e-5, 16), 0)


def run(scores: Sequence[float | None], up: Sequence[int] = (), values: Sequence[int] = ()) -> RunResult:
    """A run with a score after every round; 40 bytes and 10 values a round up where none are given, a byte down."""
    up, values = up or (40,) * len(scores), values or (10,) * len(scores)
    entries = tuple(
        RoundRecord(number, (0,), 0.5, (0.5,), {"test": {"accuracy": score}}, (), size, 1)
        for number, (score, size) in enumerate(zip(scores, up, strict=True), start=1)
    )
    ledger = [LedgerEntry(0, 0, "down", "parameters", 7, 28)]  # set-up
    for number, (size, count) in enumerate(zip(up, values, strict=True), start=1):
        ledger += [LedgerEntry(number, 0, "up", "parameters", count, size)]
        ledger += [LedgerEntry(number, 0, "down", "parameters", 1, 1)]
    return RunResult(CELL, "id", {}, {}, (), entries, {}, 28, tuple(ledger), {}, {}, "")


SCORES = st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=1, max_size=8)


def test_the_first_round_at_the_target_counts_even_if_later_ones_fall():
    record = run([0.5, 0.84, 0.7, 0.9])
    assert [round_reaching(record, ACC, target) for target in (0.4, 0.84, 0.85, 0.91)] == [1, 2, 4, None]


@given(SCORES, st.floats(0, 1))
def test_a_censored_run_is_never_counted_as_reached(scores, target):
    found = attempt(run(scores), ACC, target)
    best = max((score for score in scores if score is not None), default=-1.0)
    assert found.is_reached == (best >= target - 1e-9)  # equal up to a float's last bits
    if not found.is_reached:
        assert (found.rounds, found.bytes, found.values) == (len(scores), 40 * len(scores), 10 * len(scores))


def test_bytes_and_values_are_those_of_the_first_rounds_one_way():
    record = run([0.1, 0.2, 0.3], up=(4, 20, 100), values=(1, 5, 50))
    assert [bytes_until(record, rounds) for rounds in (0, 1, 2, 3)] == [0, 4, 24, 124]
    assert [values_until(record, rounds) for rounds in (0, 1, 2, 3)] == [0, 1, 6, 56]  # no set-up
    assert bytes_until(record, 2, ("down",)) == values_until(record, 2, ("down",)) == 2


COUNTS = st.integers(1, 10**12)
SENT = st.builds(Attempt, *[st.builds(Fraction, COUNTS, st.integers(1, 9))] * 3)


@given(SENT, SENT)
def test_the_product_of_the_factors_is_the_gain(baseline, method):
    gain = gain_over(baseline, method)
    assert gain is not None
    assert gain.layers * gain.rounds * gain.precision == gain.total == baseline.bytes / method.bytes
