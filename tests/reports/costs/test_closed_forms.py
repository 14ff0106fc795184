"""The paper's equations: the printed gains, consistent bytes, and the channel that has to agree with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.costs import ClosedForm, Terms
from benchmarks.fedfreezebert import equations
from benchmarks.fedfreezebert.table4 import BENCHMARK as TABLE4
from reports import ReportError
from reports.evidence.equations import Closed, Costs
from reports.evidence.records import Request
from reports.pages.page import Group
from reports.views import page

Asked = Callable[..., Request]
FEDAVG, FEDSPLITBERT = "fedavg-ordinary", "fedsplitbert-ordinary"
FORMS = (equations.FEDAVG, equations.FEDSPLITBERT, equations.D_FEDFREEZEBERT, equations.C_FEDFREEZEBERT)
POOLER_BYTES = 4 * (768 * 768 + 768)
TERMS = st.builds(Terms, **{term.name: st.integers(1, 10**6) for term in fields(Terms)})


@pytest.fixture(scope="module")
def found(asked: Asked) -> Costs:
    return Costs(asked())


def closed(found: Costs, row: str) -> Closed:
    return next(entry for entry in found.closed if entry.row.id == row)


def group(request: Request, name: str) -> Group:
    return next(entry for entry in page(request).grids[0].groups if entry.name == name)


# ---- print -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "cost_gb"),
    [(FEDAVG, 31.81), ("fedprox-ordinary", 31.81), (FEDSPLITBERT, 26.11), ("d-fedavg-psum", 5.54), ("c-psum", 5.15)],
)
def test_costs_with_the_printed_parameters(found: Costs, row: str, cost_gb: float) -> None:
    """2·5·5·{651.37, 8·28.35 + 308, 113.44} / 1024, and 4·12548·128·768 / 2^30 + 5·113.44 / 1024."""
    assert round(closed(found, row).printed_gb, 2) == cost_gb


@pytest.mark.parametrize("head", ["P-SUM", "H-SUM"])
@pytest.mark.parametrize(("method", "over"), [("D", ("5.7", "4.7")), ("C", ("6.2", "5"))])
def test_the_four_gains_come_out_to_the_printed_digits(
    asked: Asked, method: str, over: tuple[str, str], head: str
) -> None:
    first, published, verdict, *_ = group(asked(), f"{method}-FedFreezeBERT · {head}").lines
    assert first.cells[1:] == published.cells[1:] == over
    assert verdict.cells == ("", "as printed", "as printed")


def test_only_rows_of_the_printed_size_are_held_against_print(found: Costs) -> None:
    assert {entry.row.id for entry in found.closed if entry.published} == {
        f"{method}-{head}" for method in ("d-fedavg", "c") for head in ("psum", "hsum")
    }
    assert all(entry.row.printed for entry in found.closed if entry.published)


def test_another_printed_digit_differs(asked: Asked, tmp_path: Path) -> None:
    path = tmp_path / "table4.csv"
    text = TABLE4.published_csv.read_text()
    path.write_text(text.replace("c-psum,gain_over_fedavg-ordinary,,6.2", "c-psum,gain_over_fedavg-ordinary,,6.3"))
    shown = group(asked(benchmark=replace(TABLE4, published_csv=path)), "C-FedFreezeBERT · P-SUM")
    assert shown.lines[2].cells == ("", "differs", "as printed")


def test_a_parameter_that_is_missing_is_named(asked: Asked, tmp_path: Path) -> None:
    path = tmp_path / "table4.csv"
    path.write_text(TABLE4.published_csv.read_text().replace("Table 4,parameters,n_t,,128\n", ""))
    with pytest.raises(ReportError, match="Table 4,parameters,n_t"):
        page(asked(benchmark=replace(TABLE4, published_csv=path)))


def test_without_shapes_the_printed_rows_remain(asked: Asked) -> None:
    bare = Costs(asked(derived=False)).closed
    assert {entry.row.id for entry in bare} == {row.id for row in TABLE4.rows if row.printed}
    assert all(entry.consistent_bytes is None for entry in bare)


# ---- bytes -------------------------------------------------------------------------------------------------------


def test_gains_in_consistent_bytes_and_on_the_wire(asked: Asked) -> None:
    *_, consistent, wire = group(asked(), "C-FedFreezeBERT · P-SUM").lines
    assert consistent.cells == ("5.37", "5.92", "4.87")
    assert wire.cells == ("19.83", "1.60", "1.32")  # four layers' embeddings, where the equation counts one


@pytest.mark.parametrize(
    "row", [FEDSPLITBERT, *(f"d-fedavg-{head}" for head in ("ordinary", "average", "psum", "hsum"))]
)
def test_an_equation_of_weights_is_what_the_channel_counts(found: Costs, row: str) -> None:
    assert found.derived[row].total_bytes == closed(found, row).consistent_bytes


@pytest.mark.parametrize("row", [FEDAVG, "fedprox-ordinary"])
def test_the_whole_model_has_a_pooler_that_the_ordinary_head_lacks(found: Costs, row: str) -> None:
    equation = closed(found, row).consistent_bytes
    assert equation is not None
    assert equation - found.derived[row].total_bytes == 2 * 5 * 5 * POOLER_BYTES


@pytest.mark.parametrize(("head", "layers"), [("average", 1), ("psum", 4), ("hsum", 4)])
def test_the_equation_counts_one_layer_of_those_that_are_sent(found: Costs, head: str, layers: int) -> None:
    own, wire = closed(found, f"c-{head}"), found.derived[f"c-{head}"]
    texts, tokens, numbers = 12548, 128, 768
    features, masks, labels = 4 * texts * tokens * numbers, texts * tokens, 8 * texts
    assert wire.kinds["features"] == layers * features
    assert own.consistent_bytes == features + wire.kinds["parameters"]
    assert wire.total_bytes == own.consistent_bytes + (layers - 1) * features + masks + labels


def test_the_ordinary_head_is_sent_one_token(found: Costs) -> None:
    kinds = found.derived["c-ordinary"].kinds
    assert set(kinds) == {"features", "labels", "parameters"}
    assert kinds["features"] == 4 * 12548 * 768


def test_half_precision_halves_features_and_weights_alone(found: Costs) -> None:
    single, half = found.derived["c-psum"].kinds, found.derived["c-psum-fp16"].kinds
    assert {kind: single[kind] / half[kind] for kind in single} == {
        "features": 2, "parameters": 2, "masks": 1, "labels": 1,
    }  # fmt: skip


# ---- properties --------------------------------------------------------------------------------------------------


@given(TERMS, st.integers(1, 100), st.sampled_from(FORMS), st.sampled_from(FORMS))
def test_gains_do_not_depend_on_the_unit_of_sizes(terms: Terms, unit: int, base: ClosedForm, other: ClosedForm) -> None:
    sizes = {name: unit * getattr(terms, name) for name in ("W_s", "BL", "BE", "BERT", "dim_emb")}
    larger = replace(terms, **sizes)
    gain = base.cost_bytes(terms) / other.cost_bytes(terms)
    assert base.cost_bytes(larger) / other.cost_bytes(larger) == pytest.approx(gain, rel=1e-12)


@given(TERMS, st.integers(1, 100), st.sampled_from(FORMS[:3]), st.sampled_from(FORMS[:3]))
def test_rounds_and_clients_cancel_where_only_weights_are_sent(
    terms: Terms, times: int, base: ClosedForm, other: ClosedForm
) -> None:
    longer = replace(terms, T=times * terms.T, n_c=times * terms.n_c)
    gain = base.cost_bytes(terms) / other.cost_bytes(terms)
    assert base.cost_bytes(longer) / other.cost_bytes(longer) == pytest.approx(gain, rel=1e-12)


@given(TERMS, st.integers(1, 2**40), st.sampled_from(FORMS))
def test_parts_add_up_in_every_unit(terms: Terms, gigabyte: int, form: ClosedForm) -> None:
    parts = form.parts(terms)
    assert form.cost_bytes(terms) == sum(parts.values())
    assert replace(form, units={}).cost_gb(terms, gigabyte) == pytest.approx(form.cost_bytes(terms) / gigabyte)
    features, weights = parts.get("features", 0), parts["parameters"]
    assert form.cost_gb(terms, gigabyte) == pytest.approx(features / 2**30 + weights / gigabyte)


def test_equation_1_is_equation_5_of_the_head_alone(asked: Asked) -> None:
    terms = Costs(asked()).terms
    assert equations.d_fedfreezebert(terms) == equations.fedavg(replace(terms, BERT=terms.W_s))
    assert equations.fedsplitbert(replace(terms, c=0)) == equations.fedavg(replace(terms, BERT=terms.BE))
