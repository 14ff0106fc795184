"""The frozen frames of the contract, and how the present code computes them."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.contract import project
from tests.contract.facts import Facts, Frame, Key, collect, read, text_of

SEEDS = range(5)
READ = (".tsv", ".csv", ".txt", ".parquet", ".json", ".jsonl", ".tokens")  # what datasets are read from
LITE = "lite"  # the scale of the committed records
JUDGED_AT = (LITE, "literal", "paper")  # at the last two no record counts, and derivations still decide
# Of a table's long form: what tells its lines apart, and words for people, which the ids already say.
LINE_KEYS = (
    "score", "quantity", "relation", "encoder", "counted", "over", "client", "label", "target", "round", "seed",
)  # fmt: skip
LABELS = ("benchmark", "row", "column", "place", "scale", "scale_label", "method", "task")

EXPECTED = Path(__file__).resolve().parents[1] / "expected"
SPEC_IDS = Frame(EXPECTED / "spec_ids.csv.gz", ("benchmark", "scale", "task", "row", "seed"))
RECORDS = Frame(EXPECTED / "records.csv", ("cell_id", "quantity"))
DATA = Frame(EXPECTED / "data.csv", ("source", "task", "quantity"))
WIRE = Frame(EXPECTED / "wire.csv.gz", ("benchmark", "scale", "task", "row", "quantity"))
TABLES = Frame(EXPECTED / "tables.csv.gz", ("benchmark", "row", "column", "line", "quantity"), exact=False)
CLAIMS = Frame(EXPECTED / "claims.csv", ("paper", "scale", "claim", "side", "comparison", "quantity"), exact=False)
AUDIT = Frame(EXPECTED / "audit.csv", ("paper", "statement", "quantity"))

Lines = Iterator[tuple[Key, object]]


def listed_ids() -> list[str]:
    """The ids of the records that the contract names."""
    return sorted({cell_id for cell_id, _ in read(RECORDS)})


def listed_records() -> Sequence[Any]:
    """The records that the contract names, without later ones; KeyError if one is missing."""
    by_id = project.committed_records()
    return [by_id[cell_id] for cell_id in listed_ids()]


def data_dir() -> Path | None:
    """The folder of real data; the tests' conftest keeps DATA_DIR under the second name."""
    named = os.environ.get("DATA_DIR") or os.environ.get("DATA_DIR_OF_TESTS")
    return Path(named).resolve() if named else None


def spec_ids(papers: Sequence[str] = project.PAPERS) -> Facts:
    return collect(((*names, str(seed)), cell.spec_id) for *names, seed, cell in project.cells(SEEDS, papers))


def records() -> Facts:
    return records_of(listed_ids())


def records_of(ids: Sequence[str]) -> Facts:
    """Facts of these records; those that are missing have none."""
    by_id = project.committed_records()
    return collect(
        ((cell_id, name), value)
        for cell_id in ids
        if cell_id in by_id
        for name, value in project.record_facts(by_id[cell_id]).items()
    )


def generated_data() -> Facts:
    return collect(
        (("generated", name, quantity), value)
        for name in project.task_ids()
        for quantity, value in project.generated_data(name).items()
    )


def real_files() -> Facts:
    """Which data files DATA_DIR holds, and their sizes."""
    folder = data_dir()
    assert folder is not None
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix in READ)
    return collect((("file", path.relative_to(folder).as_posix(), "bytes"), path.stat().st_size) for path in paths)


def real_data() -> Facts:
    folder = data_dir()
    assert folder is not None
    return collect(
        ((reading, name, quantity), value)
        for name in project.task_ids()
        for reading in ("strict", "lenient")
        for quantity, value in project.real_data(name, folder, reading == "lenient").items()
    )


def data() -> Facts:
    if data_dir() is None:
        raise SystemExit("set DATA_DIR: the frame `data` holds digests of real datasets too")
    return generated_data() | real_files() | real_data()


def wire() -> Facts:
    """Of seed 0: every benchmark, scale, row and task."""
    return collect(
        ((*names, quantity), value)
        for *names, _, cell in project.cells([0])
        for quantity, value in project.wire_facts(cell).items()
    )


def tables(papers: Sequence[str] = project.PAPERS) -> Facts:
    return collect(_table_lines(papers))


def _table_lines(papers: Sequence[str]) -> Lines:
    listed = listed_records()
    for name in project.table_ids(papers):
        for line in project.table(name, LITE, listed):
            place = "; ".join(f"{key}={line[key]}" for key in LINE_KEYS if text_of(line.get(key)))
            for quantity, value in line.items():
                if quantity not in (*LINE_KEYS, *LABELS):
                    yield (name, text_of(line.get("row")), text_of(line.get("column")), place, quantity), value


def claims(papers: Sequence[str] = project.PAPERS) -> Facts:
    listed = listed_records()
    return collect(
        ((paper, scale, *place, quantity), value)
        for paper in papers
        for scale in JUDGED_AT
        for place, facts in project.verdicts(paper, scale, listed)
        for quantity, value in facts.items()
    )


def audit(papers: Sequence[str] = project.PAPERS) -> Facts:
    listed = listed_records()
    return collect(
        ((paper, statement, quantity), value)
        for paper in papers
        for statement, facts in project.audit(paper, listed)
        for quantity, value in facts.items()
    )


FRAMES: dict[Frame, Callable[[], Facts]] = {
    RECORDS: records,
    SPEC_IDS: spec_ids,
    DATA: data,
    WIRE: wire,
    TABLES: tables,
    CLAIMS: claims,
    AUDIT: audit,
}
