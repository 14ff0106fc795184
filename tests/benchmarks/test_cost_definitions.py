"""FedFreezeBERT's Table 4 as a definition: Table 3's cells, an equation for each method, sizes from shapes."""

from __future__ import annotations

import pytest

from benchmarks.cli.main import main
from benchmarks.costs import ModelSizes
from benchmarks.dry_run import wire_plan
from benchmarks.errors import DependsOnTextsError
from benchmarks.registry import benchmark
from benchmarks.spec import Scale
from reports.evidence.published import read_published

TABLE3, TABLE4 = benchmark("fedfreezebert-table3"), benchmark("fedfreezebert-table4")
HALVED = "fedsplitbert-ordinary-fp16"
VARIANTS = ["c-psum-trimmed", "c-psum-fp16"]


@pytest.mark.parametrize("scale", TABLE4.scales, ids=lambda scale: scale.id)
def test_nothing_is_computed_anew_but_variants(scale: Scale) -> None:
    known = {cell.spec_id for _, _, cell in TABLE3.cells(TABLE3.scale(scale.id), [0])}
    assert [row.id for row, _, cell in TABLE4.cells(scale, [0]) if cell.spec_id not in known] == [HALVED, *VARIANTS]


def test_every_other_row_has_its_equation() -> None:
    assert set(TABLE4.closed_forms) == {row.id for row in TABLE4.rows} - set(VARIANTS)
    numbers = {row: form.equation for row, form in TABLE4.closed_forms.items()}
    assert {numbers[row] for row in numbers if row.startswith("c-")} == {"2"}
    assert {numbers[row] for row in numbers if row.startswith("d-")} == {"1"}
    assert numbers["fedavg-ordinary"] == numbers["fedprox-ordinary"] == "5"  # 4 is the metric
    assert numbers["fedsplitbert-ordinary"] == "3"


def test_published_values_name_rows_of_the_table() -> None:
    rows = {row.id for row in TABLE4.rows if row.printed}
    found = read_published(TABLE4.published_csv)
    assert {entry.row for entry in found} - {"parameters"} <= rows
    gains = {entry.column for entry in found if entry.row != "parameters"}
    assert gains == {f"gain_over_{row}" for row in TABLE4.view.options["baselines"]}


def test_sizes_are_the_shapes_of_the_papers_encoder() -> None:
    cells = {row.id: cell for row, _, cell in TABLE4.cells(TABLE4.scale("paper"), [0])}
    width, inner = 768, 3072
    layer = 4 * (width * width + width) + (width * inner + inner) + (inner * width + width) + 2 * 2 * width
    embeddings = width * (100_000 + 512 + 2 + 2)  # words, positions, types, LayerNorm
    classifier = 3 * width + 3
    head = 4 * (layer + classifier)
    assert wire_plan(cells["d-fedavg-psum"]).sizes == ModelSizes(
        embeddings_bytes=4 * embeddings,
        layer_bytes=4 * layer,
        head_bytes=4 * head,
        model_bytes=4 * (embeddings + 12 * layer + head),
        width=width,
        layers_read=4,
        all_tokens=True,
    )
    ordinary = wire_plan(cells["fedavg-ordinary"]).sizes
    assert (ordinary.head_bytes, ordinary.layers_read, ordinary.all_tokens) == (4 * classifier, 1, False)


def test_what_depends_on_texts_has_an_error_of_its_own() -> None:
    cells = {row.id: cell for row, _, cell in TABLE4.cells(TABLE4.scale("demo"), [0])}
    with pytest.raises(DependsOnTextsError, match="the number of examples"):
        wire_plan(cells["c-psum"])
    with pytest.raises(DependsOnTextsError, match="the texts themselves"):
        wire_plan(cells["c-psum-trimmed"], examples=[3] * 5)


def test_show_names_the_equations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "fedfreezebert-table4"]) == 0
    assert "equation 2: (4/2^30)·n_s·n_t·dim_emb + n_c·SizeOf(W_s)" in capsys.readouterr().out
