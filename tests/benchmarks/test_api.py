"""The public API: select, run, read as data frames; its notebook runs."""

import time
from dataclasses import replace
from pathlib import Path

import nbclient
import nbformat
import numpy as np
import pandas as pd
import pytest

from benchmarks import api
from benchmarks.errors import UserError
from benchmarks.registry import benchmark, folder_of, ids_of
from benchmarks.results import RunResult
from benchmarks.selection import Selection, with_settings
from benchmarks.tasks import task
from tests.conftest import ROOT

SHORT = {"training.rounds": 2, "training.local_epochs": 1, "training.max_length": 16, "training.batch_size": 64}

WRONG_SEEDS = ("5-10", True, [1.5], [True], [], 0, -1, 1.0, None, [-1], 10_001, [10_001])


def chosen_part() -> Selection:
    return api.select("fedsplitbert-table3", tasks=["rte"], methods=["local-majority", "fedavg"], changes=SHORT)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def records(results: Path) -> list[RunResult]:
    return api.run(chosen_part(), api.settings(results, workers=1, device="cpu"))


def test_scores_are_those_of_the_records(records):
    scores = api.scores(records).set_index(["method", "evaluation", "metric"])
    pd.testing.assert_frame_equal(scores, api.scores(records, chosen_part()).set_index(list(scores.index.names)))
    fedavg = records[1]
    assert scores.loc[("fedavg", "test", "f1"), "score"] == 100 * fedavg.score("test/f1", "chosen")
    assert scores.loc[("fedavg", "pooled", "f1"), "last"] == 100 * fedavg.score("pooled/f1")
    both_rounds = sum(fedavg.by_round("test/f1")) / 2
    assert scores.loc[("fedavg", "test", "f1"), "late"] == pytest.approx(100 * both_rounds)
    sent = scores.loc[("fedavg", "test", "f1"), ["uplink", "downlink", "one_time"]]
    assert list(sent) == [
        sum(entry.up_bytes for entry in fedavg.rounds),
        sum(entry.down_bytes for entry in fedavg.rounds),
        fedavg.setup_bytes,
    ]
    assert scores.loc[("local-majority", "test", "f1"), "uplink"] == 0


def test_curves_and_payloads_agree_on_bytes(records):
    curves, ledger = api.curves(records), api.payloads(records)
    by_round = curves[(curves.algorithm == "fedavg") & (curves.metric == "f1") & (curves.evaluation == "test")]
    assert list(by_round["round"]) == [1, 2]
    assert list(by_round.score) == [100 * score for score in records[1].by_round("test/f1")]
    for _, line in by_round.iterrows():
        sent = ledger[(ledger.cell == line.cell) & (ledger["round"] == line["round"])]
        assert sent[sent.direction == "up"]["bytes"].sum() == line.uplink
        assert sent[sent.direction == "down"]["bytes"].sum() == line.downlink


def test_500_committed_records_load_in_two_seconds():
    start = time.process_time()
    loaded = api.load(folder_of("fedsplitbert") / "records", folder_of("fedbert") / "records")
    assert len(loaded) > 500
    assert time.process_time() - start < 2.0


def lines_of(*methods: tuple[str, float, float], metric: str = "f1") -> pd.DataFrame:
    """Lines of `scores`: a method, its score and its uplink bytes."""
    keys = {"scale": "lite", "task": "mrpc", "evaluation": "test", "metric": metric}
    return pd.DataFrame(
        {**keys, "method": name, "name": name, "score": score, "uplink": up} for name, score, up in methods
    )


def test_the_pareto_front_is_of_means_over_seeds():
    frame = lines_of(("a", 70.0, 10), ("a", 80.0, 10), ("b", 74.0, 20), ("c", 90.0, 30), ("d", 90.0, 40), ("e", 9.0, 0))
    front = api.pareto(frame)
    assert list(zip(front.method, front.score, front.uplink, strict=True)) == [
        ("e", 9.0, 0.0),
        ("a", 75.0, 10.0),
        ("c", 90.0, 30.0),
    ]
    assert list(api.pareto(lines_of(("a", 5.0, 10), ("b", 4.0, 10), metric="perplexity")).method) == [
        "b"
    ]  # less is better


def test_a_plot_has_a_panel_for_each_task_and_a_mark_for_each_method(records):
    (by_round,) = api.plot(api.curves(records)).axes
    assert (by_round.get_xlabel(), by_round.get_ylabel()) == ("round", "Acc (%)")
    assert [list(line.get_xdata()) for line in by_round.lines] == [[1, 2], [1, 2]]
    (against_bytes,) = api.plot(api.scores(records)).axes
    sent = [0.0, sum(entry.up_bytes for entry in records[1].rounds) / 1e6]
    assert [line.get_xdata()[0] for line in against_bytes.lines[:2]] == sent
    with pytest.raises(api.UserError, match="expected lines of `scores` or `curves` with a score, found none"):
        api.plot(api.scores([]))


@pytest.mark.parametrize(
    ("argument", "wrong", "message"),
    [
        ("scale", None, "scale: expected one of demo, lite, literal, paper, found None"),
        ("scale", "huge", "scale: expected one of demo, .* found 'huge'"),
        *(("seeds", wrong, "seeds: expected how many, from 1 to 10,000, or the seeds") for wrong in WRONG_SEEDS),
        *(("tasks", wrong, "tasks: expected ids, .* found .*; omit it for all") for wrong in (None, 3, [3], [None])),
        ("methods", True, "methods: expected ids, .* found True"),
        ("tasks", "mrcp", "unknown task 'mrcp': .* Did you mean 'mrpc'"),
    ],
)
def test_a_wrong_selection_is_refused(argument, wrong, message):
    with pytest.raises(UserError, match=message):
        api.select("fedsplitbert-table3", **{argument: wrong})


def test_a_selection_has_one_name_or_several_and_a_number_of_seeds_or_these():
    one = api.select("fedsplitbert-table3", tasks="mrpc", methods="fedavg", seeds=2)
    several = api.select("fedsplitbert-table3", tasks=["mrpc"], methods=("fedavg",), seeds=range(2))
    assert one.cells() == several.cells()
    assert len(one.cells()) == 2
    assert list(api.select("fedsplitbert-table3", seeds=np.arange(5, 7)).seeds) == [5, 6]


def test_tables_of_ones_own_are_included(nothing_included, tmp_path):
    text = "from dataclasses import replace\nfrom benchmarks.fedsplitbert.tables import TABLE1\n"
    (tmp_path / "own.py").write_text(f"{text}BENCHMARK = replace(TABLE1, id='mine-first')\n", encoding="utf-8")
    assert api.select("mine-first", include=tmp_path).title == "mine-first @ demo"


def test_a_papers_own_tables_have_any_id(nothing_included, tmp_path):
    lines = (
        "from dataclasses import replace",
        "from benchmarks.fedsplitbert.tables import TABLE1",
        "PAPER = replace(TABLE1.paper, id='oursb')",
        "BENCHMARK = replace(TABLE1, id='ours-first', paper=PAPER)",
    )
    (tmp_path / "own.py").write_text("\n".join(lines), encoding="utf-8")
    api.select("ours-first", include=tmp_path)
    assert ids_of("oursb") == ["ours-first"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "scales=(replace(TABLE1.scales[0], id='mine'),)",
            "expected scales from demo, lite, literal, paper, found mine",
        ),
        ("columns=(replace(TABLE1.columns[0], scores=('test/f2',)),)", "unknown metric 'test/f2'"),
    ],
)
def test_a_table_with_an_unknown_scale_or_score_is_refused(nothing_included, tmp_path, change, message):
    text = "from dataclasses import replace\nfrom benchmarks.fedsplitbert.tables import TABLE1\n"
    (tmp_path / "own.py").write_text(
        f"{text}BENCHMARK = replace(TABLE1, id='mine-first', {change})\n", encoding="utf-8"
    )
    with pytest.raises(UserError, match=message):
        api.select("mine-first", include=tmp_path)


def test_a_metric_of_two_labels_is_refused_for_three():
    with pytest.raises(UserError, match="expected metrics for 3 labels, found f1, which is for 2"):
        replace(task("sst2"), labels=("bad", "even", "good"), metrics=("accuracy", "f1"))


def test_a_seed_is_not_set_as_a_field():
    with pytest.raises(UserError, match="choose seeds with --seeds"):
        with_settings(benchmark("fedsplitbert-table3"), ["seed=3"])


@pytest.mark.slow
def test_the_notebook_runs_and_is_committed_with_its_outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("RESULTS_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    path = ROOT / "docs" / "quickstart.ipynb"
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in code)
    assert sum("image/png" in output.get("data", {}) for cell in code for output in cell.outputs) == 2
    assert str(ROOT) not in path.read_text(encoding="utf-8")
    stored = code[4].outputs[-1]["data"]["text/plain"]
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(ROOT / "docs")}}).execute()
    derived, measured = stored.strip("()").split(", ")
    assert derived == measured
    assert code[4].outputs[-1]["data"]["text/plain"] == stored
