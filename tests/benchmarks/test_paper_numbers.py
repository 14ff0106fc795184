"""Numbers of definitions that follow from the papers by arithmetic: bytes, sizes, shares, warm-ups, updates."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.costs import ClosedForm, ModelSizes, SplitTerms
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.encoders.backbones import KNOWN
from benchmarks.errors import DependsOnTextsError
from benchmarks.experiment import Benchmark
from benchmarks.fedbert import equations, finetuning
from benchmarks.fedbert.setup import UPDATES_AN_EPOCH
from benchmarks.fedbfpt.setup import SKEWED_SHARES
from benchmarks.registry import benchmark
from benchmarks.run_config import RunConfig
from benchmarks.running.completed import earlier_stages
from benchmarks.running.federation import build_clients, load_inputs
from benchmarks.running.run_options import RunOptions
from fedsim.models.encoder import encoder_from_config
from fedsim.models.sequence import with_head
from partitions import from_description
from reports.evidence.published import read_published

MEGABYTE = 10**6
WIDTH, INNER = 768, 3072  # of BERT-base
LAYER = 4 * (WIDTH * WIDTH + WIDTH) + (WIDTH * INNER + INNER) + (INNER * WIDTH + WIDTH) + 2 * 2 * WIDTH
LABELS = [benchmark("fedsplitbert-table1"), benchmark("fedsplitbert-table2")]


def cells(name: str, scale: str, task: str = "") -> dict[str, RunConfig]:
    """Row id -> cell of seed 0, on the task or on the last one."""
    table = benchmark(name)
    found = table.cells(table.scale(scale), [0])
    return {row.id: cell for row, column, cell in found if not task or column.task == task}


def embeddings(words: int, width: int) -> int:
    return width * (words + 512 + 2 + 2)  # words, positions, types, LayerNorm's weight and bias


def published(name: str) -> dict[tuple[str, str, str], float]:
    return {
        (entry.row, entry.column, entry.score): entry.value for entry in read_published(benchmark(name).published_csv)
    }


# ---- FedSplitBERT ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", LABELS, ids=lambda table: table.place)
def test_clients_of_print_are_the_clients_of_the_definition(table: Benchmark) -> None:
    """Client by client and label by label; MRPC's client 10 as printed, before it is normalised."""
    with table.published_csv.open(newline="") as file:
        entries = {(line["row"], line["column"], line["score"]): float(line["value"]) for line in csv.DictReader(file)}
    expected: dict[tuple[str, str, str], float] = {}
    for _, column, cell in table.cells(table.scale("paper"), [0]):
        for client, shares in enumerate(cell.partition.get("shares", ()), start=1):
            expected |= {(f"client{client}", column.task, f"share/label{k}"): v for k, v in enumerate(shares)}
    assert {place: value for place, value in entries.items() if place[1] != "stsb"} == expected


@pytest.mark.slow
@pytest.mark.usefixtures("encoder_dir")  # its tokenizer
@pytest.mark.parametrize("table", LABELS, ids=lambda table: table.place)
def test_real_clients_have_what_was_requested(table: Benchmark, data_dir: Path) -> None:
    """To within one example of each label, also in training and test part by themselves."""
    (column,) = (column for column in table.columns if column.task == "mrpc")
    cell = table.cell(table.rows[0], column, table.scale("lite"), 0)
    settings = RunOptions(data_dir=data_dir, device="cpu")
    clients, report = build_clients(cell, load_inputs(cell, settings), settings)
    assert report.requested_shares is not None
    assert report.obtained_counts is not None
    for client, requested, obtained in zip(clients, report.requested_shares, report.obtained_counts, strict=True):
        size = sum(obtained)
        assert all(abs(count - share * size) < 1 for share, count in zip(requested, obtained, strict=True))
        test = client.evaluation["test"].labels
        for label, count in enumerate(obtained):
            assert abs(int((test == label).sum()) - cell.test_share * count) <= 1


@pytest.mark.parametrize("task", [column.task for column in benchmark("fedsplitbert-iid").columns])
def test_even_labels_are_as_many_of_each_as_skewed_ones(task: str) -> None:
    rng = np.random.default_rng(0)
    found = cells("fedsplitbert-iid", "lite", task)
    n_labels = len(found["fedavg"].partition["shares"][0])
    labels = rng.choice(n_labels, 12000, p=np.arange(2, n_labels + 2) / sum(range(2, n_labels + 2)))
    skewed, even = (
        from_description(found[row].partition)(labels, 3, np.random.default_rng(1)) for row in ("fedavg", "fedavg-iid")
    )
    for label in range(n_labels):
        counts = [[int((labels[part] == label).sum()) for part in split.indices] for split in (skewed, even)]
        assert abs(sum(counts[0]) - sum(counts[1])) <= 3  # rounding, of three clients
        assert max(counts[1]) - min(counts[1]) <= 1
    assert abs(len(skewed.indices[0]) - len(even.indices[0])) <= 1


@pytest.mark.usefixtures("untuned")
@pytest.mark.parametrize("row", ["fedavg", "fedsplitbert"])
def test_exchanged_embeddings_are_sent_by_every_client(row: str) -> None:
    found = cells("fedsplitbert-sensitivity", "lite", "mrpc")
    frozen, exchanged = wire_plan(found[row]), wire_plan(found[f"{row}-global"])
    assert exchanged.up_bytes - frozen.up_bytes == 3 * 4 * embeddings(30522, 384)  # all-MiniLM-L6-v2


# ---- FedFreezeBERT -----------------------------------------------------------------------------------------------


def test_fedsplitbert_is_the_originals_with_exchanged_embeddings() -> None:
    ours, theirs = (
        cells("fedfreezebert-table2", "paper")["fedsplitbert-c8"],
        cells("fedsplitbert-table4", "paper", "sst2")["c8"],
    )
    assert {**theirs.options, "embeddings": "global"} == ours.options
    assert (theirs.partition, theirs.training, theirs.clients) == (ours.partition, ours.training, ours.clients)
    assert wire_plan(ours).up_bytes - wire_plan(theirs).up_bytes == 3 * 4 * embeddings(30522, WIDTH)
    (quoted,) = published("fedfreezebert-table2").values()
    assert quoted == published("fedsplitbert-table4")["c8", "sst2", "test/accuracy"]


def test_bytes_of_the_paper_scale_are_those_of_its_equations() -> None:
    found = cells("fedfreezebert-table3", "paper")

    def both(row: str) -> float:
        plan = wire_plan(found[row])
        return (plan.up_bytes + plan.down_bytes) / MEGABYTE / (2 * 5)  # a client, one direction

    assert round(both("d-fedavg-psum"), 2) == round(both("d-fedavg-hsum"), 2) == 113.44  # W_s
    layer, embedded = 28.35, 308.81
    assert both("fedsplitbert-ordinary") == pytest.approx(8 * layer + embedded, abs=0.05)  # equation 5
    assert both("fedavg-ordinary") == pytest.approx(12 * layer + embedded, abs=0.1)  # 651.37 less the pooler


def test_sizes_are_the_shapes_of_the_papers_encoder() -> None:
    found = cells("fedfreezebert-table4", "paper")
    embedded, classifier = embeddings(100_000, WIDTH), 3 * WIDTH + 3
    head = 4 * (LAYER + classifier)
    assert wire_plan(found["d-fedavg-psum"]).sizes == ModelSizes(
        embeddings_bytes=4 * embedded,
        layer_bytes=4 * LAYER,
        head_bytes=4 * head,
        model_bytes=4 * (embedded + 12 * LAYER + head),
        width=WIDTH,
        layers_read=4,
        all_tokens=True,
    )
    ordinary = wire_plan(found["fedavg-ordinary"]).sizes
    assert (ordinary.head_bytes, ordinary.layers_read, ordinary.all_tokens) == (4 * classifier, 1, False)


def test_bytes_that_depend_on_texts_say_so() -> None:
    found = cells("fedfreezebert-table4", "demo")
    with pytest.raises(DependsOnTextsError, match="the number of examples"):
        wire_plan(found["c-psum"])
    with pytest.raises(DependsOnTextsError, match="the texts themselves"):
        wire_plan(found["c-psum-trimmed"], examples=[3] * 5)


@pytest.mark.parametrize("scale", ["demo", "lite", "literal", "paper"])
def test_rows_that_read_no_weights_wait_for_none(scale: str) -> None:
    """To count labels took an hour, as the encoder was trained first."""
    for name in ("fedfreezebert-table1", "fedfreezebert-table3"):
        found = {cell.algorithm: earlier_stages(cell) for cell in cells(name, scale, "arsarcasm").values()}
        assert found["local_majority"] == found.get("linear", []) == []
    waits = bool(earlier_stages(cells("fedfreezebert-table3", scale, "arsarcasm")["central-average"]))
    assert waits == (scale in ("lite", "literal"))  # where the encoder is trained here


# ---- FedBERT -----------------------------------------------------------------------------------------------------

# Two clients, four epochs in two rounds, 100 bytes across a cut an epoch; a model of 50, embeddings 20, head 5.
TERMS = SplitTerms(rounds=2, N=2, T=4, pL=100, W=50, E=20, H=5)
CROSSING = 4 * 2 * 4 * 100


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (equations.FEDAVG, 2 * 2 * 2 * 50),
        (equations.SHARE, CROSSING + 2 * 25 + 25),  # up after each turn, down to the second client
        (equations.EMDAVG, CROSSING + 2 * 2 * 2 * 20),
        (equations.HEAVG, CROSSING + 2 * 2 * 2 * 25),
    ],
)
def test_bytes_of_a_run_by_fedberts_equations(form: ClosedForm, expected: int) -> None:
    assert form.cost_bytes(TERMS) == expected
    parts = form.parts(TERMS)
    assert parts.get("activations") == parts.get("gradients") == (None if form is equations.FEDAVG else CROSSING / 2)


def test_warm_ups_and_rates_are_table_5s() -> None:
    table = benchmark("fedbert-table6")
    file = Path(table.published_csv).parent / "text.csv"
    table5 = {(entry.row, entry.column): entry.value for entry in read_published(file) if entry.table == "Table 5"}
    for column in table.columns_at(table.scale("paper")):
        share = table5[column.task, "warmup"] / table5[column.task, "updates"]
        assert finetuning.WARMUPS.get(column.task, finetuning.WARMUP) == pytest.approx(share, abs=0.001)
        assert finetuning.RATES.get(column.task, finetuning.RATE) == table5[column.task, "rate"]


@pytest.mark.parametrize(("table", "updates"), [("pretraining", 125_000), ("table8", 50_000)])
def test_central_pre_training_has_the_papers_number_of_updates(table: str, updates: int) -> None:
    """To the nearest averaging period."""
    training = cells(f"fedbert-{table}", "paper")["central"].training
    assert training.rounds * training.local_epochs * UPDATES_AN_EPOCH == pytest.approx(updates, rel=0.02)


# ---- FedBFPT -----------------------------------------------------------------------------------------------------


def test_skewed_shares_are_the_appendixs() -> None:
    printed = published("fedbfpt-appendix5")
    for task, shares in SKEWED_SHARES.items():
        assert math.fsum(shares) == pytest.approx(1)
        sizes = [printed["skewed", task, f"client{client}/megabytes"] for client in range(1, 7)]
        assert shares == pytest.approx([size / sum(sizes) for size in sizes])
        assert sum(sizes) == pytest.approx(printed["skewed", task, "all/megabytes"], abs=0.1)  # medicine is 0.07 off


@pytest.mark.parametrize(
    ("backbone", "mebibytes"),
    [
        ("bert-base-uncased", 417.83),
        ("distilbert-base-uncased", 255.55),
        ("TinyBERT_General_6L_768D", 255.57),
        ("TinyBERT_General_4L_312D", 54.88),
    ],
)
def test_encoders_have_the_sizes_that_are_printed(backbone: str, mebibytes: float) -> None:
    """The printed ones are of a file, whose archive takes some 0.02 to 0.07 MiB on top of the parameters."""
    config = KNOWN[backbone].config
    with torch.device("meta"):
        model = with_head(encoder_from_config(config), int(config["vocab_size"]), 0, head="masked-lm")
    size = sum(4 * parameter.numel() for parameter in model.parameters()) / 2**20
    assert 0 < mebibytes - size < 0.07


def test_depths_keep_their_share_of_a_smaller_encoder() -> None:
    for scale, depths in {"demo": [1, 2, 3], "lite": [2, 3, 4], "paper": [4, 6, 8]}.items():
        found = cells("fedbfpt-pretraining", scale, "corpus-biology")
        assert [found[row].options["local_layers"] for row in ("fedbfpt-4", "fedbfpt", "fedbfpt-8")] == depths
