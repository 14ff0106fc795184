"""Records with given scores, losses and bytes per round, and judgements of single relations on them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import pytest

from benchmarks.claims import At, Claim, Relation
from benchmarks.dry_run import shapes
from benchmarks.experiment import Benchmark
from benchmarks.results import LedgerEntry, RunResult
from reports.claims.judge import Judgement, judge
from reports.evidence.published import Numbers

ACC, TABLE = "test/accuracy", "fedsplitbert-table3"
SPLIT, QAT, FEDAVG, FEDPROX = (At(TABLE, row) for row in ("fedsplitbert", "fedsplitbert-qat", "fedavg", "fedprox"))
RunOf = Callable[..., RunResult]
JudgeOf = Callable[..., Judgement]


@pytest.fixture(autouse=True)
def unknown_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs are those of the records."""
    for name in ("plan_of", "derive_work"):
        monkeypatch.setattr(shapes, name, lambda cell, *texts: None)


@pytest.fixture(scope="session")
def run_of(record_of: RunOf) -> RunOf:
    """A record of one score (in percent) after each round, with a sampling error of half a point."""

    def build(
        row: str,
        task: str = "qqp",
        curve: Sequence[float | None] = (50.0, 60.0),
        *,
        seed: int = 0,
        losses: Sequence[float] | None = None,
        up: int = 1000,
        scale: str = "lite",
        device: str = "cpu",
    ) -> RunResult:
        record = record_of(row, task, {ACC: 0.5}, seed=seed, scale=scale)
        rounds = tuple(
            replace(
                record.rounds[0],
                round=number,
                train_loss=0.5 if losses is None else losses[number - 1],
                scores={"test": {"accuracy": None if value is None else value / 100}},
                up_bytes=up,
                down_bytes=up,
            )
            for number, value in enumerate(curve, start=1)
        )
        ledger = tuple(
            LedgerEntry(entry.round, 0, way, "parameters", up // 4, up) for entry in rounds for way in ("up", "down")
        )
        errors = {"test": {"accuracy": 0.005}}
        return replace(record, rounds=rounds, ledger=ledger, sampling_errors=errors, environment={"device": device})

    return build


@pytest.fixture(scope="session")
def judge_of(table3: Benchmark, opened: Callable[..., tuple[Benchmark, list[RunResult]]]) -> JudgeOf:
    """The judgement of a claim with only these relations, on records that include the reference rows."""

    def build(
        relation: Relation | tuple[Relation, ...],
        records: Sequence[RunResult],
        scale: str = "lite",
        numbers: Numbers | None = None,
        table: Benchmark = table3,
        levels: Mapping[str, float | None] | None = None,
        shut: Collection[str] = (),
        otherwise: Mapping[str, tuple[Relation, ...]] | None = None,
    ) -> Judgement:
        relations = relation if isinstance(relation, tuple) else (relation,)
        claim = Claim("1", "A sentence", "section I", relations, otherwise=otherwise or {})
        published = {} if numbers is None else {table.paper.id: numbers}
        table, records = opened(table, records, levels, shut)
        return judge(table.paper.name, (claim,), published, records, {table.id: table}, table.scale(scale))[0]

    return build


@pytest.fixture(scope="session")
def one_task(table3: Benchmark) -> Benchmark:
    return replace(table3, columns=tuple(column for column in table3.columns if column.task == "qqp"))


@pytest.fixture(scope="session")
def runs_of(run_of: RunOf) -> Callable[..., list[RunResult]]:
    """Seven seeds of a row with one curve, a hundredth of a point apart; fewer seeds decide nothing."""

    def build(row: str, curve: Sequence[float], **values: object) -> list[RunResult]:
        return [run_of(row, curve=[each + seed / 100 for each in curve], seed=seed, **values) for seed in range(7)]

    return build


@pytest.fixture(scope="session")
def seeds_of(run_of: RunOf) -> Callable[..., list[RunResult]]:
    """Records of a row with the given last scores, one per seed."""

    def build(row: str, task: str, lasts: Sequence[float]) -> list[RunResult]:
        return [run_of(row, task, (0.0, last), seed=seed) for seed, last in enumerate(lasts)]

    return build
