"""The contract of all benchmarks: complete definitions, published numbers with a place, equal tuning, valid claims.

Their runs, bytes, tables, verdicts and audits are frozen in tests/expected.
"""

import math
import os
import re
import shlex
import unicodedata
from pathlib import Path

import pytest

from benchmarks.claims import rows_named
from benchmarks.cli.arguments import build_parser, selection
from benchmarks.corrections import CORRECTIONS
from benchmarks.costs import Terms
from benchmarks.publication import SCALES
from benchmarks.registry import benchmark, benchmark_ids, claims_of, folder_of
from benchmarks.run_config import RunConfig
from benchmarks.tasks import task
from reports.evidence.corrections import CORRECT
from reports.evidence.published_files import AVERAGE, PARAMETERS, read_published
from reports.front.readme import BEGIN, END

IDS = benchmark_ids()
OF_ROUNDS = ("aggregation_error", "cosine_a", "cosine_b", "overlap_a")  # by fedsim.aggregation
# Published numbers outside the table's rows and columns: clients of the label tables, costs in the papers' units.
CLIENT = re.compile(r"client\d+|skewed|uniform")
COST = re.compile(r".+_(seconds|percent|mb|gb)|gain(_over_.+)?")
# All runs of these are published; the others are figures, costs, and tables of which a source states some numbers.
WHOLE = re.compile(r"fedbert-table[678]|fedbfpt-(table[3-6]|appendix[1-4])|fedsplitbert-table[345]")
PAPER_TEXTS = "PAPER_TEXTS"  # a folder with <paper>*.txt, one or several files a paper
QUOTED = {"fedsplitbert": 16, "fedfreezebert": 15, "fedbert": 19, "fedbfpt": 8, "fedpeft": 12}  # judged sentences
TEXTS = {"fedpeft": "fedlora*"}  # of several papers: their sentences
CLAIMS = {f"{paper} {claim.id}": claim for paper in QUOTED for claim in claims_of(paper)}


@pytest.mark.parametrize("name", IDS)
def test_every_row_and_column_has_a_cell_at_each_scale(name):
    table = benchmark(name)
    for scale in table.scales:
        rows, columns = table.rows_at(scale), table.columns_at(scale)
        cells = [(row.id, column.task, cell) for row, column, cell in table.cells(scale, [3])]
        assert {cell[:2] for cell in cells} == {(row.id, column.task) for row in rows for column in columns}
        for _, name_of_task, cell in cells:
            assert (cell.scale, cell.task, cell.seed) == (scale.id, name_of_task, 3)
            assert RunConfig.from_json(cell.to_json()).spec_id == cell.spec_id
        for column in columns:
            computed = task(column.task)
            scored = (*computed.evaluations, "validation")  # of each client's held-back examples
            scores = {f"{evaluation}/{metric}" for evaluation in scored for metric in computed.metrics}
            scores |= {"test/accuracy"}  # stored predictions give it
            scores |= {f"round/{name}" for name in OF_ROUNDS}
            assert {column.averaged} <= set(column.scores) <= scores


@pytest.mark.parametrize("name", IDS)
def test_names_are_given_once_and_rows_begin_from_rows_of_the_table(name):
    table = benchmark(name)
    rows = [row.id for row in (*table.rows, *table.without_training)]
    deviations = [(entry.id, scale) for entry in table.deviations for scale in entry.scales]
    assert {scale for _, scale in deviations} <= set(SCALES)
    for ids in (rows, [column.task for column in table.columns], deviations):
        assert len(set(ids)) == len(ids)
    for row in table.rows:
        assert set(row.fixed) <= set(row.changes)
        assert not row.begins or not table.row(row.begins).begins
    assert {row.corrects for row in table.without_training} <= {row.id for row in table.rows}
    assert {row.correction for row in table.without_training} <= CORRECTIONS.keys() <= CORRECT.keys()


@pytest.mark.parametrize("name", IDS)
def test_all_rows_of_a_search_have_one_budget(name):
    """More trials would favour a method."""
    search = benchmark(name).scale("lite").search
    if search is not None:
        points = [math.prod(len(values) for values in grid.values()) for grid in search.grids.values()]
        assert len({min(search.trials or count, count) for count in points}) <= 1


@pytest.mark.parametrize("name", IDS)
def test_every_published_number_has_its_place(name):
    table = benchmark(name)
    rows, columns = {row.id for row in table.rows}, {column.task: column for column in table.columns}
    of_paper = {row.id for other in IDS if other.startswith(table.paper.id) for row in benchmark(other).rows}
    for entry in read_published(table.published_csv):
        if entry.table != table.place:
            continue
        if entry.row == PARAMETERS:
            assert entry.column.removesuffix("_mb") in Terms.__dataclass_fields__
        elif COST.fullmatch(entry.column):
            assert entry.row in of_paper, entry
        elif entry.column != AVERAGE:
            column = columns[entry.column]
            assert entry.row in rows or CLIENT.fullmatch(entry.row), entry
            if entry.score.partition("/")[0] in column.evaluations:
                assert entry.score in column.scores, entry


@pytest.mark.parametrize("name", filter(WHOLE.fullmatch, IDS))
def test_every_printed_score_is_published(name):
    table = benchmark(name)
    scores = {(entry.row, entry.column, entry.score) for entry in read_published(table.published_csv)}
    columns = table.columns_at(table.scale("paper"))
    assert {(row.id, column.task, column.averaged) for row in table.rows if row.printed for column in columns} <= scores


@pytest.mark.parametrize("paper", QUOTED)
def test_every_sentence_is_judged_under_an_id_of_its_own(paper):
    claims = claims_of(paper)
    assert {claim.number for claim in claims} == set(range(1, QUOTED[paper] + 1))
    assert len({claim.id for claim in claims}) == len(claims)
    assert all(claim.relations and claim.place and claim.reading for claim in claims)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_claims_name_rows_tasks_and_scores_that_exist(claim):
    for relation in claim.every_relation:
        rows = list(rows_named(relation))
        assert rows
        for at in rows:
            table = benchmark(at.benchmark)
            # Claim 11 of FedFreezeBERT: Table 2's second line, whose number no source gives, is no row of its own.
            printed = {at.published or at.row} - {"reimplementation"}
            assert {at.row, *printed} <= {row.id for row in (*table.rows, *table.without_training)}
            tasks = {column.task for column in table.columns}
            assert set(getattr(relation, "tasks", ())) <= tasks
            target = getattr(relation, "target", None)
            assert target is None or set(target.percent) <= tasks
            scores = {score for column in table.columns for score in (*column.scores, *column.extra)}
            named = {*getattr(relation, "scores", ()), getattr(relation, "score", ""), getattr(relation, "extra", "")}
            assert named - {""} <= scores


def letters(text: str) -> str:
    """Letters, digits and per cent of a text, without line numbers in its margin and hyphens at ends of lines."""
    text = unicodedata.normalize("NFKC", re.sub(r"^\s*\d{1,3}\s{2,}", "", text, flags=re.M))
    text = re.sub(r"×|\\\(\\times\\\)", "", text)
    return re.sub(r"[^a-z0-9%]+", "", text.lower())


@pytest.mark.parametrize("paper", QUOTED)
def test_claims_quote_the_paper(paper):
    if not os.environ.get(PAPER_TEXTS):
        pytest.skip(f"needs the papers' texts: set {PAPER_TEXTS} to a folder with {paper}.txt")
    files = sorted(Path(os.environ[PAPER_TEXTS]).glob(TEXTS.get(paper, f"{paper}*.txt")))
    text = letters("\n".join(file.read_text() for file in files))
    for claim in (claim for claim in claims_of(paper) if not claim.is_question):
        for part in re.split(r"…|\[[^\]]*\]", claim.quotation):
            assert letters(part) in text, claim.id


@pytest.mark.parametrize("paper", QUOTED)
def test_the_commands_of_its_page_are_understood(paper):
    before, _, rest = (folder_of(paper) / "README.md").read_text(encoding="utf-8").partition(BEGIN)
    text = before + rest.partition(END)[2]  # without the rendered part
    commands = re.findall(r"(?:^|`)python -m benchmarks ([^`#\n]+)", text, re.M)
    assert commands
    for command in commands:
        args = build_parser().parse_args(shlex.split(command))
        if args.command in ("plan", "run", "sweep") and not getattr(args, "claims", False):  # of a whole paper
            assert selection(args).cells()
    for made in re.findall(r"`make (?:sweep-)?([a-z]+-[a-z0-9]+)", text):
        assert made in benchmark_ids()
