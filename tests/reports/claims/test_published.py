"""One published digit changes, and the verdict on a claim by the paper's own numbers changes with it.

The verdicts themselves, by each reading, are frozen in tests/expected/claims.csv.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from functools import cache

import pytest

from benchmarks.claims import Claim
from benchmarks.experiment import Benchmark
from benchmarks.papers import benchmarks_of, published_of
from benchmarks.registry import claims_of
from reports.claims.judge import CONSISTENT, INCONSISTENT, judge_published, published_word
from reports.evidence.published import Numbers

# paper, claim, (table, row, column, score), the other number, the other verdict
CASES = [
    ("fedbert", "1a", ("Table 7", "share", "sst2-whole-central", "test/accuracy"), "90.41", INCONSISTENT),
    ("fedbert", "5a", ("Table 6", "emdavg", "stsb-central", "test/pearson"), "70.9", INCONSISTENT),  # 7.4 below
    ("fedbert", "6b", ("Table 8", "heavg", "wikitext-causal", "test/perplexity"), "39.72", INCONSISTENT),  # 1.01
    ("fedbert", "6d", ("Table 8", "fedavg", "wikitext-causal", "test/perplexity"), "79.0", INCONSISTENT),  # half
    ("fedbert", "10", ("Table 7", "emdavg", "rte-central", "test/accuracy"), "57.03", CONSISTENT),
    ("fedbfpt", "1b", ("Table 3", "fedbfpt", "scierc", "test/entity_f1"), "62.98", INCONSISTENT),  # 2.01 below
    ("fedbfpt", "1d", ("Text", "fedbfpt", "scierc", "t_test/p_value"), "0.0417", INCONSISTENT),
    ("fedbfpt", "2a", ("Table 2", "fedbfpt", "computation_seconds", ""), "577.98", INCONSISTENT),  # 46.71 %
    ("fedbfpt", "3b", ("Table 2", "tinybert-4", "computation_seconds", ""), "600.0", CONSISTENT),
    ("fedbfpt", "7", ("Table 6", "fedbfpt-skewed", "scierc", "test/entity_f1"), "62.2", INCONSISTENT),  # −2.01
    ("fedfreezebert", "3a", ("Table 3", "fedsplitbert-ordinary", "arsarcasm", "test/f1_pn"), "73.0", INCONSISTENT),
    ("fedfreezebert", "8a", ("Table 4", "parameters", "BERT_mb", ""), "600.0", INCONSISTENT),  # in its equation
]


@cache
def known(paper: str) -> tuple[dict[str, Claim], dict[str, Numbers], dict[str, Benchmark]]:
    """A paper's claims by id, the published numbers, and the benchmarks."""
    tables = benchmarks_of(paper)
    return {claim.id: claim for claim in claims_of(paper)}, dict(published_of(tables.values())), tables


@pytest.mark.parametrize(("paper", "claim", "place", "value", "word"), CASES)
def test_another_digit_gives_another_verdict(
    paper: str, claim: str, place: tuple[str, str, str, str], value: str, word: str
) -> None:
    claims, published, tables = known(paper)
    numbers = published[paper]
    assert numbers.values[place] != Decimal(value)
    other = {**published, paper: replace(numbers, values={**numbers.values, place: Decimal(value)})}
    words = [published_word(judge_published(claims[claim], each, tables)) for each in (published, other)]
    assert words == [CONSISTENT if word == INCONSISTENT else INCONSISTENT, word]
