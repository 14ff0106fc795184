"""What one client's training costs on a page: ratios to a baseline, verdicts on sizes, a timed run, the wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.costs import ClientCosts
from benchmarks.record import LedgerEntry, RoundRecord, RunRecord, read_records
from benchmarks.registry import benchmark, folder_of
from benchmarks.spec import Benchmark, Cell
from reports import ReportError
from reports.evidence.records import Request, request_for
from reports.evidence.resources import Resources
from reports.pages.page import Grid
from reports.pages.plots import render
from reports.views import page
from reports.views.resources_plot import plot

TABLE2, TABLE4 = benchmark("fedbfpt-table2"), benchmark("fedbfpt-table4")
RecordOf = Callable[..., RunRecord]
Asked = Callable[..., Request]
MEBIBYTE = 2**20
CLIENTS = 6

WHOLE = ClientCosts(
    forward=12, backward=12, trained=12, width=768, length=128, asked=19, batch_size=256, flops=6e10,
    up_bytes=417.7639 * MEBIBYTE, down_bytes=417.7639 * MEBIBYTE, saved_bytes=417.8258 * MEBIBYTE,
    setup_bytes=417.7639 * MEBIBYTE, parameters_bytes=4e8, gradients_bytes=4e8, moments_bytes=8e8,
    activations_bytes=3e10,
)  # fmt: skip
LAYER = replace(
    WHOLE, forward=6, backward=5.4, trained=1, flops=2.1e10, up_bytes=29.4133 * MEBIBYTE,
    down_bytes=23.5306 * MEBIBYTE, saved_bytes=29.4199 * MEBIBYTE, gradients_bytes=3e7, moments_bytes=6e7,
    activations_bytes=1e10,
)  # fmt: skip
NARROW = replace(WHOLE, forward=4, backward=4, trained=4, width=312, saved_bytes=54.8821 * MEBIBYTE, flops=4.2e9)
DISTIL = replace(WHOLE, forward=6, backward=6, trained=6, saved_bytes=255.5619 * MEBIBYTE)
CENTRAL = replace(WHOLE, up_bytes=0, down_bytes=0, saved_bytes=0, setup_bytes=0)


def derive_client(cell: Cell) -> ClientCosts | None:
    """Costs as shapes give them, of the paper's own scale alone."""
    assert cell.scale == "paper"
    if cell.algorithm == "fedbfpt":
        return LAYER
    if cell.algorithm == "central":
        return CENTRAL if cell.initial is None else None
    small = {"TinyBERT_General_4L_312D": NARROW, "distilbert-base-uncased": DISTIL}
    return small.get(cell.backbone, WHOLE)


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    def build(
        records: Sequence[RunRecord] = (), table: Benchmark = TABLE2, scale: str = "lite", rows: Sequence[str] = (),
        derived: bool = True, timed: str | None = None,
    ) -> Request:  # fmt: skip
        assert table.costing is not None
        path = tmp_path / "fedbfpt.json"
        if timed is not None:
            path.write_text(timed)
        own = replace(table, costing=replace(table.costing, timed=path))
        chosen = [row for row in own.rows if row.id in rows]
        return request_for(
            own, own.scale(scale), records, rows=chosen, derive_client=derive_client if derived else None
        )

    return build


@pytest.fixture
def sent(record_of: RecordOf) -> Callable[..., RunRecord]:
    def build(row: str, up: int, down: int, setup: int) -> RunRecord:
        """A record in which each of six clients sends and takes so many bytes in each of two rounds."""
        base = record_of("fedavg", "mrpc", {"test/accuracy": 0.5})
        cell = TABLE2.cell(TABLE2.row(row), TABLE2.columns[0], TABLE2.scale("lite"), 0)
        rounds = tuple(
            RoundRecord(number, tuple(range(CLIENTS)), 0.5, (0.5,) * CLIENTS, {"test": {"perplexity": 9.0}}, (),
                        CLIENTS * up, CLIENTS * down)
            for number in (1, 2)
        )  # fmt: skip
        ledger = [
            LedgerEntry(number, client, way, "parameters", size // 4, size)
            for number, sizes in ((0, {"down": setup}), *((each, {"up": up, "down": down}) for each in (1, 2)))
            for client in range(CLIENTS)
            for way, size in sizes.items()
            if size
        ]
        digests = {name: entry["digest"] for name, entry in base.inputs.items()}
        return replace(
            base, cell=cell, cell_id=cell.cell_id(digests), rounds=rounds, ledger=tuple(ledger),
            setup_bytes=CLIENTS * setup, clients=tuple({"client": k, "train": 80, "test": 9} for k in range(CLIENTS)),
        )  # fmt: skip

    return build


def titled(asked: Request, word: str) -> Grid:
    (found,) = (grid for grid in page(asked).grids if word in grid.title)
    return found


def cells(grid: Grid, name: str) -> dict[str, str]:
    (line,) = next(group.lines for group in grid.groups if group.name == name)
    return dict(zip((" ".join(header).strip() for header in grid.headers), line.cells, strict=True))


def timed_run(*percent: tuple[str, float]) -> str:
    rows = [{"row": row, "percent": value} for row, value in percent]
    environment = {"device": "a machine", "threads": 2, "precision": "fp32"}
    return json.dumps({"rows": rows, "environment": environment, "finished": "2026-01-02T03:04:05+00:00"})


# ---- computation -------------------------------------------------------------------------------------------------


def test_the_ratio_is_counted_in_three_ways_beside_print(asked: Asked) -> None:
    run = timed_run(("bert-fl", 100.0), ("", 3.0), ("fedbfpt", 41.5))
    request = asked(timed=run)
    own = cells(titled(request, "computation"), "FEDBFPT")
    assert own == {
        "printed s": "577.85", "printed %": "46.70", "FLOPs %": "35.00", "formula mb trained, %": "29.17",
        "formula mb crossed, %": "47.50", "timed %": "41.50", "layers run": "6", "layers crossed": "5.4",
        "layers trained": "1", "GFLOP a text": "21.00",
    }  # fmt: skip
    assert cells(titled(request, "computation"), "TinyBERT-6")["timed %"] == "–"
    assert any("a machine, 2 threads, fp32, 2026-01-02" in note for note in page(request).notes)


def test_the_note_says_how_noisy_the_timed_run_was(asked: Asked) -> None:
    run = json.loads(timed_run(("bert-fl", 100.0), ("fedbfpt-4", 30.7), ("", 28.0), ("", 40.5), ("fedbfpt", 33.0)))
    layers = (
        (12, "all"),
        (4, "a layer + output, 5 rounds"),
        (4, "layer 0 + output"),
        (4, "layer 2 + output"),
        (6, "layer 2 + output"),
    )
    for line, (depth, trained) in zip(run["rows"], layers, strict=True):
        line |= {"layers": depth, "trained": trained}
    said = "A client that does less was timed up to 12.50 points above one that does more"  # of 4 layers 2 above 0
    assert any(said in note for note in page(asked(timed=json.dumps(run))).notes)


@pytest.mark.parametrize("name", ["fedbfpt-table2", "fedbfpt-table5"])
def test_the_kept_runs_noise_is_said(name: str) -> None:
    table = benchmark(name)
    shown = page(request_for(table, table.scale("lite"), [], derive_client=derive_client))
    assert any("timed up to 14.09 points above" in note for note in shown.notes if note.startswith("Timed: "))


def test_without_a_timed_run_there_is_no_such_column(asked: Asked) -> None:
    assert "timed %" not in cells(titled(asked(), "computation"), "FEDBFPT")


@pytest.mark.parametrize("damaged", ["{", "[]", '{"rows": [{"row": "fedbfpt"}]}', '{"rows": []}'])
def test_a_damaged_run_is_refused(asked: Asked, damaged: str) -> None:
    with pytest.raises(ReportError, match=r"fedbfpt\.json: expected a result of `make bench`, found a damaged one"):
        page(asked(timed=damaged))


def test_a_table_without_costing_has_none() -> None:
    table = replace(TABLE2, costing=None)
    with pytest.raises(ReportError, match="expected a definition with `costing`"):
        page(request_for(table, table.scale("lite"), []))


# ---- communication -----------------------------------------------------------------------------------------------


def test_sizes_are_held_against_print(asked: Asked) -> None:
    grid = titled(asked(), "communication")
    assert cells(grid, "FEDBFPT") == {
        "printed MB": "29.42", "printed %": "7.04", "saved MiB": "29.42", "saved %": "7.04", "verdict": "as printed",
        "tensors uplink, MiB": "29.41", "tensors downlink, MiB": "23.53", "one-time model distribution MiB": "417.76",
    }  # fmt: skip
    assert cells(grid, "DistilBERT")["verdict"] == "differs/as printed"  # 255.56 for 255.55, both 61.16 %
    assert cells(grid, "TinyBERT-4")["saved %"] == "13.13"  # of sizes as printed; of exact ones 13.14
    assert set(cells(grid, "BERT-C").values()) == {"–"}


def test_another_printed_digit_differs(asked: Asked, tmp_path: Path) -> None:
    path = tmp_path / "table2.csv"
    path.write_text(
        TABLE2.published_csv.read_text().replace("fedbfpt,communication_mb,,29.42", "fedbfpt,communication_mb,,29.43")
    )
    shown = titled(asked(table=replace(TABLE2, published_csv=path)), "communication")
    assert cells(shown, "FEDBFPT")["verdict"] == "differs/as printed"
    assert cells(shown, "BERT-FL")["verdict"] == "as printed"


def test_rows_of_the_papers_scale_are_derived_where_all_are_asked_for(asked: Asked) -> None:
    names = [group.name for group in titled(asked(), "communication").groups]
    assert names == ["BERT-C", "BERT-FL", "DistilBERT", "TinyBERT-6", "TinyBERT-4", "FEDBFPT"]
    assert [group.name for group in titled(asked(rows=["fedbfpt"]), "communication").groups] == ["FEDBFPT"]
    assert cells(titled(asked(rows=["fedbfpt"]), "computation"), "FEDBFPT")["FLOPs %"] == "35.00"


def test_without_shapes_print_remains(asked: Asked) -> None:
    request = asked(derived=False)
    assert cells(titled(request, "communication"), "FEDBFPT")["saved MiB"] == "–"
    assert cells(titled(request, "computation"), "FEDBFPT")["printed s"] == "577.85"
    assert not any("holds" in grid.title for grid in page(request).grids)


# ---- memory and the wire -----------------------------------------------------------------------------------------


def test_what_a_client_holds_is_summed(asked: Asked) -> None:
    own = cells(titled(asked(), "holds while it trains"), "FEDBFPT")
    assert (own["activations"], own["together"]) == ("9.31 GiB", "9.77 GiB")
    assert own["together %"] == f"{100 * LAYER.held_bytes / WHOLE.held_bytes:.2f}"


def test_measured_bytes_are_of_one_client_and_round(asked: Asked, sent: RecordOf) -> None:
    records = [
        sent("bert-fl", 8 * MEBIBYTE, 8 * MEBIBYTE, 8 * MEBIBYTE),
        sent("fedbfpt", MEBIBYTE, MEBIBYTE // 2, 8 * MEBIBYTE),
    ]
    measured = titled(asked(records), "measured")
    own = {
        "n seeds": "1",
        "uplink MiB": "1.00",
        "uplink %": "12.50",
        "downlink MiB": "0.50",
        "one-time model distribution MiB": "8.00",
    }
    assert cells(measured, "FEDBFPT") == own
    assert cells(measured, "BERT-C")["n seeds"] == "not run"
    alone = titled(asked(records[1:]), "measured")
    assert cells(alone, "FEDBFPT")["uplink %"] == "–"


def test_the_committed_records_stand_under_table_2(asked: Asked) -> None:
    request = asked(list(read_records(folder_of("fedbfpt") / "records")))
    measured = titled(request, "measured on Computer Science")
    seeds = {group.name: int(group.lines[0].cells[0]) for group in measured.groups}
    assert set(seeds) == {"BERT-C", "BERT-FL", "FEDBFPT"}
    assert min(seeds.values()) >= 3
    assert cells(measured, "BERT-FL")["uplink %"] == "100.00"
    assert cells(titled(request, "holds while it trains"), "FEDBFPT")["together %"] != "–"
    formulas = [header for header in titled(request, "computation").headers if header[0] == "formula"]
    assert len(formulas) == 2  # both ways


def test_a_ledger_that_was_changed_is_refused(asked: Asked, sent: RecordOf) -> None:
    record = sent("fedbfpt", 1000, 500, 2000)
    with pytest.raises(ReportError, match="expected one sum of bytes"):
        page(asked([replace(record, ledger=record.ledger[:-1])]))


# ---- the long form, the figure, other tables ---------------------------------------------------------------------


def test_every_number_is_in_the_long_form(asked: Asked, sent: RecordOf) -> None:
    frame = page(asked([sent("fedbfpt", 1000, 500, 2000)])).frame()
    known = frame[frame["row"] == "fedbfpt"].set_index(["counted", "quantity"])[["value", "published"]]
    assert known.loc[("flops", "computation_percent")].tolist() == [35.0, 46.7]
    assert known.loc[("saved file", "communication_mb")].tolist() == [29.42, 29.42]
    assert known.loc[("wire, measured", "up_bytes"), "value"] == 1000
    assert known.loc[("shapes", "activations_bytes"), "value"] == 1e10


def test_the_figure_shows_both_ratios(asked: Asked) -> None:
    request = asked(timed=timed_run(("bert-fl", 100.0), ("fedbfpt", 41.5)))
    left, right = plot(Resources(request)).axes
    drawn = {line.get_label(): dict(zip(line.get_ydata(), line.get_xdata(), strict=True)) for line in left.lines}
    assert drawn["timed"] == {1: 100.0, 5: 41.5}
    assert drawn["printed"][5] == 46.7
    assert {line.get_label() for line in right.lines} >= {"saved file", "printed"}
    assert render(lambda: plot(Resources(asked(derived=False))), "png")[0].startswith(b"\x89PNG")


def test_tables_of_scores_have_costs_beneath(asked: Asked) -> None:
    request = asked(table=TABLE4)
    shown = page(request)
    titles = [grid.title for grid in shown.grids]
    assert [word in title for word, title in zip(("scores", "computation", "communication"), titles, strict=True)] == [
        True
    ] * 3
    own = cells(titled(request, "computation"), r"FEDBFPT\SP")
    assert (own["printed s"], own["FLOPs %"]) == ("577.85", "35.00")  # the baseline is a row of the earlier stage
    assert any(note.startswith("Saved: ") for note in shown.notes)
    lines = shown.frame().query("column == 'costs' and row == 'fedbfpt'").set_index("score")
    assert lines.loc["computation_percent (flops)", "published"] == 46.7
    assert lines.loc["communication_mb (saved file)", "ours"] == 29.42
