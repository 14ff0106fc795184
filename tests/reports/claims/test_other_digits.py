"""One printed digit changed, and the verdict on a claim in print changes with it.

What the verdicts are, by each reading, is frozen in tests/expected/claims.csv.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cli.paper import benchmarks_of, published_of
from benchmarks.publication import Published
from benchmarks.registry import claims_of
from reports.claims.judge import judge_in_print
from reports.evidence.published import Numbers, read_folder

HOLDS, FAILS = "holds", "does not hold"
# paper, claim, (table, row, column, score), the other number, the other verdict
CASES = [
    ("fedbert", "1a", ("Table 7", "share", "sst2-whole-central", "test/accuracy"), 90.41, FAILS),
    ("fedbert", "3b", ("Table 6", "emdavg", "qqp-central", "test/accuracy"), 84.8, FAILS),
    ("fedbert", "5a", ("Table 6", "emdavg", "stsb-central", "test/pearson"), 70.9, FAILS),  # 7.4 below sharing
    ("fedbert", "6a", ("Table 8", "share", "wikitext-causal", "test/perplexity"), 24.68, FAILS),
    ("fedbert", "6b", ("Table 8", "heavg", "wikitext-causal", "test/perplexity"), 39.72, FAILS),  # 1.01
    ("fedbert", "6d", ("Table 8", "fedavg", "wikitext-causal", "test/perplexity"), 79.0, FAILS),  # 39.52 is half
    ("fedbert", "8b", ("Figure 9", "fedavg", "stsb-central", "test/pearson"), 75.6, FAILS),
    ("fedbert", "10", ("Table 7", "emdavg", "rte-central", "test/accuracy"), 57.03, HOLDS),
    ("fedbert", "11", ("Table 6", "share", "stsb-central", "test/pearson"), 79.8, HOLDS),
    ("fedbfpt", "1a", ("Table 3", "fedbfpt", "rct20k", "test/accuracy"), 83.86, FAILS),  # 2.01 above BERT-FL
    ("fedbfpt", "1b", ("Table 3", "fedbfpt", "scierc", "test/entity_f1"), 62.98, FAILS),  # 2.01 below BERT-C
    ("fedbfpt", "1d", ("Text", "fedbfpt", "scierc", "t_test/p_value"), 0.0417, FAILS),
    ("fedbfpt", "2a", ("Table 2", "fedbfpt", "computation_seconds", ""), 577.98, FAILS),  # 46.71 %
    ("fedbfpt", "2a", ("Table 2", "fedbfpt", "computation_seconds", ""), 577.0, HOLDS),  # less is enough
    ("fedbfpt", "2b", ("Table 2", "fedbfpt", "communication_mb", ""), 29.37, FAILS),  # 7.03 %
    ("fedbfpt", "3b", ("Table 2", "tinybert-4", "computation_seconds", ""), 600.0, HOLDS),
    ("fedbfpt", "5a", ("Table 4", "fedbfpt-no-sp", "scierc", "test/entity_f1"), 64.22, FAILS),
    ("fedbfpt", "5g", ("Table 4", "fedbfpt-all", "scierc", "test/entity_f1"), 65.22, FAILS),  # 1.01 points of gain
    ("fedbfpt", "5h", ("Table 4", "fedbfpt-all", "computation_seconds", ""), 600.0, FAILS),  # 104 %
    ("fedbfpt", "7", ("Table 6", "fedbfpt-skewed", "scierc", "test/entity_f1"), 62.2, FAILS),  # −2.01
    ("fedfreezebert", "3a", ("Table 3", "fedsplitbert-ordinary", "arsarcasm", "test/f1_pn"), 73.0, FAILS),
    ("fedfreezebert", "8a", ("Table 4", "parameters", "BERT_mb", ""), 600.0, FAILS),  # in its equation
]


@pytest.mark.parametrize(("paper", "claim_id", "place", "value", "verdict"), CASES)
def test_another_digit_gives_another_verdict(
    paper: str, claim_id: str, place: tuple[str, str, str, str], value: float, verdict: str
) -> None:
    tables = benchmarks_of(paper)
    published = published_of(tables.values())
    entries = read_folder(Path(next(iter(tables.values())).published_csv).parent)
    claim = next(claim for claim in claims_of(paper) if claim.id == claim_id)

    def judged(entries: list[Published]) -> str:
        return judge_in_print(claim, {**published, paper: Numbers.of(entries)}, tables).verdict

    at = [number for number, e in enumerate(entries) if (e.table, e.row, e.column, e.score) == place]
    assert len(at) == 1
    changed = [replace(entry, value=value) if number in at else entry for number, entry in enumerate(entries)]
    before = judged(list(entries))
    assert judged(changed) == verdict
    assert before != verdict or (claim_id, value) == ("2a", 577.0)
