"""The contract's interface to the project. Adapt these functions when the code changes, never tests/expected."""

import hashlib
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import benchmarks.tasks
from benchmarks.api import page as page_of
from benchmarks.campaign.protocol import campaign
from benchmarks.costs import WirePlan
from benchmarks.dry_run.cache import key_of
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.encoders.fetched import source_of
from benchmarks.errors import DependsOnTextsError, UserError
from benchmarks.papers import audited, benchmarks_of, judged
from benchmarks.predictions import read_predictions
from benchmarks.registry import benchmark, benchmark_ids, folder_of
from benchmarks.results import RunResult, read_folders
from benchmarks.run_config import RunConfig
from benchmarks.running.federation import DATA_SEED
from benchmarks.selection import part_of
from benchmarks.tasks import TaskData, task
from reports.claims import wording
from reports.claims.hypothesis import Assertion as Judged
from reports.claims.hypothesis import State
from reports.claims.hypothesis import Verdict as Outcome

PAPERS = ("fedbert", "fedbfpt", "fedfreezebert", "fedsplitbert")


def cells(seeds: Sequence[int], papers: Sequence[str] = PAPERS) -> Iterator[tuple[str, str, str, str, int, RunConfig]]:
    """Every run that the project defines: benchmark, scale, task, row, seed and the run's definition."""
    for name in table_ids(papers):
        table = benchmark(name)
        for scale in table.scales:
            for row, column, cell in table.cells(scale, seeds):
                yield name, scale.id, column.task, row.id, cell.seed, cell


# ---- records -----------------------------------------------------------------------------------------------------


@cache
def committed_records() -> dict[str, RunResult]:
    """Every committed record by its cell_id."""
    return {record.cell_id: record for record in read_folders(folder_of(paper) / "records" for paper in PAPERS)}


def digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def record_facts(record: RunResult) -> dict[str, object]:
    """The contract's facts of a record: scores, ledger and answers as digests of all values."""
    rounds = record.rounds
    facts: dict[str, object] = {
        "file": f"{record.folder.parent.name}/{record.file_name}",
        "spec_id": record.cell.spec_id,
        "rounds": len(rounds),
        "chosen round": record.chosen_round if rounds else None,
        "diverged": record.divergence,
        "up bytes": sum(entry.up_bytes for entry in rounds),
        "down bytes": sum(entry.down_bytes for entry in rounds),
        "setup bytes": record.setup_bytes,
        "messages": sum(entry.messages for entry in record.ledger),
        "ledger": digest_of([list(entry) for entry in record.ledger]),
        "scores": digest_of([[e.train_loss, e.client_losses, e.client_scores, e.pooled_scores] for e in rounds]),
        "answers": answers_digest(record),
    }
    return facts | {f"{name} digest": digest for name, digest in record.input_digests.items()}


def answers_digest(record: RunResult) -> str:
    """A digest of the predictions' values, independent of file and number type; "" without predictions."""
    predictions = read_predictions(record.folder, record)
    state = hashlib.sha256()
    for (client, evaluation), answers in sorted(predictions.items()):
        state.update(f"{client} {evaluation}".encode())
        for array in (answers.indices, answers.gold, answers.last, answers.chosen):
            state.update(str(array.shape).encode())
            state.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return state.hexdigest()[:16] if predictions else ""


# ---- data --------------------------------------------------------------------------------------------------------


def task_ids() -> list[str]:
    return list(benchmarks.tasks._registry.__wrapped__())  # other tests may have included tasks


def generated_data(task_id: str) -> dict[str, object]:
    generate = task(task_id).generate
    return {"digest": "not generated"} if generate is None else data_facts(generate(DATA_SEED))


def real_data(task_id: str, folder: Path, lenient: bool) -> dict[str, object]:
    """A task's data in a folder of downloads."""
    with tempfile.TemporaryDirectory() as extracts:
        try:
            return data_facts(task(task_id).load(source_of(task_id, folder, lenient, Path(extracts))))
        except UserError:
            return {"digest": "refused"}


def data_facts(data: TaskData) -> dict[str, object]:
    sets = {"pool": data.pool, **data.held_out, **{f"central {name}": part for name, part in data.central.items()}}
    return {"digest": data.digest, "skipped rows": len(data.skipped)} | {
        f"examples, {name}": len(examples) for name, examples in sets.items()
    }


# ---- bytes -------------------------------------------------------------------------------------------------------


_WIRE: dict[str, dict[str, object]] = {}  # by what decides the shapes: runs of the same shapes send the same bytes


def wire_facts(cell: RunConfig) -> dict[str, object]:
    """What a run sends, derived from shapes alone, without data or weights, and without the file of derived costs.

    Where bytes depend on the data, client c is assumed to train on 20 + c examples; where they depend on the texts,
    every text is assumed to be padded to the full length. `basis` names the assumption.
    """
    key = key_of("plan", cell)
    if key not in _WIRE:
        _WIRE[key] = _derived_wire(cell)
    return _WIRE[key]


def _derived_wire(cell: RunConfig) -> dict[str, object]:
    examples = [20 + client for client in range(cell.clients)]
    fixed = replace(cell, training=replace(cell.training, padding="fixed"))
    padded = replace(fixed, options={**cell.options, "features": "padded"}) if "features" in cell.options else fixed
    attempts = (
        ("shapes", cell, None),
        ("shapes and 20 + c examples", cell, examples),
        ("full length", fixed, None),
        ("full length and 20 + c examples", fixed, examples),
        ("padded features and 20 + c examples", padded, examples),
    )
    for basis, assumed, sizes in attempts:
        try:
            return {"basis": basis} | _bytes_of(wire_plan(assumed, examples=sizes))
        except DependsOnTextsError:
            continue
    return {"basis": "unknown: the texts decide"}


def _bytes_of(plan: WirePlan) -> dict[str, object]:
    """Bytes of all rounds together, by direction and kind of payload, and of the set-up."""
    total, distinct = plan.total, {tuple(sorted(each.kinds.items())) for each in plan.rounds}
    facts: dict[str, object] = {"rounds": len(plan.rounds), "distinct rounds": len(distinct)}
    facts |= {"up": total.up_bytes, "down": total.down_bytes, "setup": plan.setup_bytes}
    return facts | {f"{way} {kind}": size for (way, kind), size in total.kinds.items()}


# ---- reports -----------------------------------------------------------------------------------------------------


def table(benchmark_id: str, scale: str, records: Sequence[RunResult]) -> list[dict[str, Any]]:
    """The lines of a table's long form; empty if the table lacks the scale."""
    if scale not in {entry.id for entry in benchmark(benchmark_id).scales}:
        return []
    frame = page_of(part_of(benchmark_id, scale, [], [], 1, [], None), records).frame()
    return [dict(line) for line in frame.astype(object).to_dict("records")]


def table_ids(papers: Sequence[str]) -> list[str]:
    return [name for name in benchmark_ids() if name.startswith(tuple(papers))]


def verdicts(
    paper: str, scale_id: str, records: Sequence[RunResult]
) -> Iterator[tuple[tuple[str, str, str], dict[str, object]]]:
    """Both verdicts on every claim of a paper at a scale, by published numbers and by records.

    Yields:
        The claim, "print" or "records", and a comparison, which is "" for the whole verdict; and the facts there.
        Nothing if no table of the paper has the scale.
    """
    tables = benchmarks_of(paper)
    scale = next((entry for bench in tables.values() for entry in bench.scales if entry.id == scale_id), None)
    if scale is None:
        return
    with patch("benchmarks.papers.campaign", lambda: replace(campaign(), records=())):  # its results come later
        judgements = judged(paper, scale, records)
    for judgement in judgements:
        others = {f"read as {name}": _word(each[0], "missing") for name, each in judgement.otherwise.items()}
        yield (judgement.claim.id, "print", ""), {"verdict": _word(judgement.published, "missing"), **others}
        others = {f"read as {name}": _word(each[1]) for name, each in judgement.otherwise.items()}
        facts: dict[str, object] = {"verdict": _word(judgement.measured), **others}
        facts["at the last round"] = _word(judgement.at_rounds["last"]) if "last" in judgement.at_rounds else ""
        facts["smallest effect"] = numbers_in(wording.smallest_seen(judgement.measured))
        facts["would decide"] = f"{judgement.more} seeds" if judgement.more else ""
        yield (judgement.claim.id, "records", ""), facts
        for side, verdict in (("print", judgement.published), ("records", judgement.measured)):
            for number, (one, state) in enumerate(verdict.comparisons):
                place = f"{number:03} {one.place} {' '.join(one.tasks)}"
                yield (judgement.claim.id, side, place), _comparison(one, state)


def _word(verdict: Outcome, undecided: str = "") -> str:
    """The contract's name of a verdict. undecided: its name for published numbers, which exist or not."""
    if verdict.is_decided:
        return verdict.state.value + (", by derivation" if verdict.is_derived else "")
    return undecided or verdict.state.value


def _comparison(one: Judged, state: State) -> dict[str, object]:
    facts: dict[str, object] = {"state": state.value}
    if one.evidence is not None:
        low, high = one.evidence.interval or (None, None)
        facts |= {"value": one.evidence.value, "low": low, "high": high, "n": one.evidence.n}
    return facts


def audit(paper: str, records: Sequence[RunResult]) -> Iterator[tuple[str, dict[str, object]]]:
    """Every statement of a paper's audit: its id, its verdict, and the numbers in what is printed and recomputed."""
    for finding in audited(paper, records):
        verdict = {True: "yes", False: "no", None: "not derivable"}[finding.agrees]
        yield (
            finding.id,
            {"agrees": verdict, "printed": numbers_in(finding.printed), "recomputed": numbers_in(finding.recomputed)},
        )


def numbers_in(text: str) -> str:
    """The numbers in a text, in order; its wording may change."""
    return " ".join(number.replace("−", "-").replace(",", "") for number in re.findall(r"[-−+]?\d+(?:[.,]\d+)*", text))
