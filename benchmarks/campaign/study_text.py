"""Renders the blocks of a study's document from exploratory runs and from runs with fresh seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from benchmarks.claims import At, Control, Study
from benchmarks.results import RunResult
from reports.claims.cells import Runs
from reports.claims.deciding import Deciding
from reports.claims.judge import CONTRADICTED, SUPPORTED, UNDECIDED, measured_word
from reports.evidence.inference import average_of, similar
from reports.evidence.paired import Pairs, difference, rule_for
from reports.evidence.records import paired
from reports.evidence.scores import defined, scores_of
from reports.evidence.statistics import Estimate, mean
from reports.pages.render import table_line
from reports.pages.text import NOTHING, joined, number, seed_counts, with_interval
from reports.views.clients import gain_of, level_of

ACCURACY, NLL, ECE = (f"test/{name}" for name in ("accuracy", "nll", "ece"))
Pair = tuple[str, str]  # a row and the row to subtract


@dataclass(frozen=True)
class Evidence:
    """Runs of a study's rows.

    Args:
        name: The kind of evidence, and how it is scored.
        runs: The table's runs, with their scoring rule.
        table: The table that has the rows.
        tasks: The compared tasks.
        ids: A row's id in the study -> its id in the table, if they differ.
        missing: The progress if runs are unfinished, in which case no number is computed.
    """

    name: str
    runs: Runs
    table: str
    tasks: Sequence[str]
    ids: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""

    def at(self, row: str) -> At:
        return At(self.table, self.ids.get(row, row))

    def records(self, row: str, task: str) -> tuple[RunResult, ...]:
        """A row's records on a task; () where the table lacks the row."""
        return self.runs.of(self.at(row), task) if self.has(row) else ()

    def has(self, row: str) -> bool:
        """Whether the table has a row."""
        table = self.runs.tables.benchmark(self.at(row))
        return self.at(row).row in {each.id for each in (*table.rows, *table.without_training)}

    def pairs(self, pair: Pair, task: str) -> Pairs:
        return paired(*(self.records(row, task) for row in pair))

    def difference(self, pair: Pair, task: str) -> Estimate | None:
        """The first row's accuracy minus the second's, in points."""
        pairs = self.pairs(pair, task)
        return difference(pairs, ACCURACY, self.runs.score_at) if pairs else None

    def differences(self, pair: Pair) -> list[Estimate]:
        """The difference on each task with runs of both rows."""
        return [each for task in self.tasks if (each := self.difference(pair, task)) is not None]

    def level(self, row: str, score: str, task: str) -> float | None:
        """A row's mean score."""
        return level_of(self.records(row, task), score, at=self.runs.score_at).value

    def worst_difference(self, reference: str, pair: Pair, task: str) -> Estimate | None:
        """The same difference at each seed's client with the lowest score under the reference."""
        worst = self._worst_clients(reference, task)
        pairs = [each for each in self.pairs(pair, task) if each[0].cell.seed in worst]
        return gain_of(pairs, ACCURACY, worst, self.runs.score_at) if pairs else None

    def worst_level(self, reference: str, row: str, task: str) -> float | None:
        """A row's mean accuracy at those clients."""
        worst = self._worst_clients(reference, task)
        return level_of(self.records(row, task), ACCURACY, worst, self.runs.score_at).value

    def _worst_clients(self, reference: str, task: str) -> dict[int, int]:
        """Seed -> that client, chosen at the reference's own rounds, so that it is the same for all rows."""
        records = self.records(reference, task)
        rule = rule_for(self.runs.score_at, [(record, record) for record in records])
        seeds, clients = [record.cell.seed for record in records], range(len(records[0].clients) if records else 0)
        accuracies = [scores_of(records, ACCURACY, dict.fromkeys(seeds, client)).at(rule) for client in clients]
        return {
            seed: clients[by_client.index(min(defined(by_client)))]
            for seed, by_client in zip(seeds, zip(*accuracies, strict=True), strict=True)
        }


def study_blocks(
    study: Study, main: Sequence[Evidence], controls: Sequence[tuple[Control, Evidence]]
) -> dict[str, str]:
    """The blocks of the study's document: name -> text.

    Args:
        study: The study.
        main: Its exploratory and its confirmatory evidence.
        controls: Its controls, each with the same.
    """
    tables = (_tables([evidence], partial(_controls, control)) for control, evidence in controls)
    return {
        "answer": "\n".join(f"- {_answer(study, evidence)}" for evidence in main),
        "accuracy": _tables(main, partial(_accuracy, study)),
        "worst": _tables(main, partial(_worst, study)),
        "calibration": _tables(main, partial(_calibration, study)),
        "controls": "\n\n".join(tables),
    }


def pairs_of(study: Study) -> tuple[Pair, ...]:
    """The primary comparison, then the secondary ones."""
    relation = study.primary.relations[0]
    return (relation.rows[0].row, relation.than[0].row), *study.secondary


def _accuracy(study: Study, evidence: Evidence) -> Iterator[str]:
    for row, name in study.rows.items():
        yield from _levels(evidence, name, {1: partial(evidence.level, row, ACCURACY)})
    for pair in pairs_of(study):
        yield from _differences(evidence, study.rows, pair, partial(evidence.difference, pair))


def _worst(study: Study, evidence: Evidence) -> Iterator[str]:
    reference = next(iter(study.rows))
    for row, name in study.rows.items():
        yield from _levels(evidence, name, {1: partial(evidence.worst_level, reference, row)})
    for pair in pairs_of(study):
        yield from _differences(evidence, study.rows, pair, partial(evidence.worst_difference, reference, pair))


def _calibration(study: Study, evidence: Evidence) -> Iterator[str]:
    for row, name in study.rows.items():
        yield from _levels(evidence, name, {2: partial(evidence.level, row, NLL), 1: partial(evidence.level, row, ECE)})


def _controls(control: Control, evidence: Evidence) -> Iterator[str]:
    """Each pair's differences, and whether they are equal within the margin, by task and on average."""
    for pair in (pair for pair in control.pairs if all(map(evidence.has, pair))):
        names = {row: evidence.runs.tables.row(evidence.at(row)).name for row in pair}
        yield from _differences(evidence, names, pair, partial(evidence.difference, pair))
        if run := evidence.differences(pair):
            estimates = [*(evidence.difference(pair, task) for task in evidence.tasks), average_of(run)]
            verdicts = (NOTHING if each is None else _equal(each, control.within) for each in estimates)
            yield table_line([f"equal within {control.within:g} point", *verdicts])


def _equal(estimate: Estimate, within: float) -> str:
    if estimate.value == 0 and estimate.interval is None and estimate.n > 1:
        return "the same in each seed"
    word: dict[bool | None, str] = {True: SUPPORTED, False: CONTRADICTED, None: UNDECIDED}
    return word[similar(estimate, within)]


def _answer(study: Study, evidence: Evidence) -> str:
    """The primary comparison, judged like a claim, and the first secondary ones."""
    if evidence.missing:
        return f"**{evidence.name}**: {_not_run(evidence)}"
    texts = [_mean_text(evidence, study.rows, pair) for pair in pairs_of(study)[:3]]
    margin, word = fixed_test(study, evidence)
    return f"**{evidence.name}**: {texts[0]}. Equal within {margin:g} point: **{word}**. {'; '.join(texts[1:])}."


def fixed_test(study: Study, evidence: Evidence) -> tuple[float, str]:
    """The margin of the primary comparison, in points, and the verdict on equality within it."""
    (relation,) = study.primary.relations
    rows, than = (tuple(evidence.at(at.row) for at in side) for side in (relation.rows, relation.than))
    verdict = Deciding((replace(relation, rows=rows, than=than),), evidence.runs).verdict
    return relation.most, measured_word(verdict)


def _mean_text(evidence: Evidence, names: Mapping[str, str], pair: Pair) -> str:
    estimates = evidence.differences(pair)
    n = seed_counts(each.n for each in estimates)
    return f"{_minus(names, pair)} = {_text(average_of(estimates), ' ')} points, mean of {len(estimates)} tasks{n}"


def _not_run(evidence: Evidence) -> str:
    return f"incomplete. Runs finished: {evidence.missing}; numbers are computed once all are finished."


def _tables(every: Sequence[Evidence], lines: Callable[[Evidence], Iterator[str]]) -> str:
    """A table for each body of evidence, or its progress."""
    texts = []
    for evidence in every:
        if evidence.missing:
            texts.append(f"**{evidence.name}**: {_not_run(evidence)}")
            continue
        names = [evidence.runs.tables.task(At(evidence.table, ""), task) for task in evidence.tasks]
        ruler = table_line([":--", *["--:"] * (len(names) + 1)])
        texts.append("\n".join([table_line([evidence.name, *names, "mean"]), ruler, *lines(evidence)]))
    return "\n\n".join(texts)


def _levels(evidence: Evidence, name: str, levels: Mapping[int, Callable[[str], float | None]]) -> Iterator[str]:
    """A row's line with its levels, separated by slashes, or no line without runs; the mean needs every task.

    levels: number of decimals -> function from a task to a level.
    """
    by_level = {places: [level(task) for task in evidence.tasks] for places, level in levels.items()}
    if not any(defined(tuple(values)) for values in by_level.values()):
        return
    texts = [
        [number(value, places=places) for value in (*values, None if None in values else mean(defined(tuple(values))))]
        for places, values in by_level.items()
    ]
    yield table_line([name, *map(joined, zip(*texts, strict=True))])


def _differences(
    evidence: Evidence, names: Mapping[str, str], pair: Pair, difference: Callable[[str], Estimate | None]
) -> Iterator[str]:
    """A pair's line with differences, intervals and the mean over tasks with runs; no line without runs."""
    estimates = [difference(task) for task in evidence.tasks]
    run = [each for each in estimates if each is not None]
    if run:
        of = f"<br>{len(run)} tasks" if len(run) < len(estimates) else ""
        cells = [NOTHING if each is None else _text(each, "<br>") for each in estimates]
        yield table_line([f"**{_minus(names, pair)}**", *cells, _text(average_of(run), "<br>") + of])


def _minus(names: Mapping[str, str], pair: Pair) -> str:
    first, second = (names[row] for row in pair)
    return f"{first} − ({second})" if " + " in second else f"{first} − {second}"


def _text(estimate: Estimate, between: str) -> str:
    return with_interval(estimate.value, estimate.interval, "+", 1, between)
