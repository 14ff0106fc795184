"""A paper's page names what there is: its benchmarks, its commands, the hyper-parameters of its definitions."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.cli.arguments import build_parser
from benchmarks.cli.select import selection
from benchmarks.dry_run import wire_plan
from benchmarks.errors import DependsOnTextsError
from benchmarks.fedfreezebert.setup import METHODS, SENTIMENT, training_of
from benchmarks.registry import benchmark as benchmark_of
from benchmarks.registry import benchmark_ids
from reports.pages.files import BEGIN, END

PAGES = sorted((Path(__file__).resolve().parents[2] / "benchmarks").glob("*/README.md"))
FREEZE = next(page for page in PAGES if page.parent.name == "fedfreezebert")


def text(page: Path) -> str:
    """The page without what is rendered into it."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    return before + rest.partition(END)[2]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_a_page_names_every_benchmark_of_its_paper(page: Path) -> None:
    paper = page.parent.name
    kinds = "table|figure|appendix|sensitivity|iid|personalisation|inversion|pretraining|general|sentences"
    named = set(re.findall(rf"`(?:[a-z]+)?-((?:{kinds})\d*)`", text(page)))
    assert {f"{paper}-{name}" for name in named} == {known for known in benchmark_ids() if known.startswith(paper)}
    assert text(page).count(BEGIN) == 0
    assert page.read_text(encoding="utf-8").count(BEGIN) == 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_its_commands_are_understood(page: Path) -> None:
    commands = re.findall(r"^python -m benchmarks (.+?)(?:\s+#.*)?$", text(page), re.M)
    assert commands
    for command in commands:
        words = build_parser().parse_args(shlex.split(command))
        if words.command in ("plan", "run", "sweep") and not getattr(words, "claims", False):  # of a whole paper
            assert selection(words).cells()
    for made in re.findall(r"^make (?:sweep-)?([a-z]+-[a-z0-9]+)", text(page), re.M):
        assert made in benchmark_ids()


def test_options_worth_knowing_change_cells_that_can_be_built() -> None:
    table = text(FREEZE).partition("## Options worth knowing")[2]
    options = re.findall(r"^\| `(--set .+?)`.*? \| (.+?) \|", table, re.M)
    assert len(options) == table.count("| `--set")
    for option, named in options:
        row = {"every method": "d-fedavg-psum"}.get(named) or named.partition("`")[2].partition("`")[0]
        plain = ["run", "fedfreezebert-table3", "--methods", row.replace("…", "psum")]
        before, after = (
            selection(build_parser().parse_args([*plain, *words])).cells()[0][2] for words in ([], shlex.split(option))
        )
        assert before.spec_id != after.spec_id
        with suppress(DependsOnTextsError):  # what C-FedFreezeBERT sends; its options have been taken by then
            wire_plan(after)


def test_hyper_parameters_are_those_of_the_definitions() -> None:
    lines = [line.strip("| ").split(" | ") for line in text(FREEZE).splitlines() if line.startswith("| ")]
    stated = {line[0]: line[1:5] for line in lines if len(line) == 6}
    table = benchmark_of("fedfreezebert-table3")
    by_id = {row.id: row.changed({"head": "psum"}) for row in METHODS}
    for place, scale in enumerate(table.scales):
        for label, methods in (
            ("FedAvg, FedProx", ("fedavg", "fedprox")),
            ("FedSplitBERT", ("fedsplitbert",)),
            ("centralised training", ("central",)),
            ("D-, C-FedFreezeBERT", ("d-fedavg", "d-fedprox", "c")),
        ):
            rates = {training_of(by_id[method].algorithm, scale).learning_rate for method in methods}
            assert rates == {float(stated[f"learning rate: {label}"][place])}
        made = table.cell(by_id["fedprox"], SENTIMENT, scale, 0)
        assert made.options["proximal"] == float(stated["FedProx λ"][place])
        assert (made.training.batch_size, made.training.max_length) == (
            int(stated["batch size"][place]),
            int(stated["length"][place]),
        )
        split = table.cell(by_id["fedsplitbert"], SENTIMENT, scale, 0)
        critical = f"{split.options['critical_layer']} of {scale.depth}"
        assert stated["FedSplitBERT's critical layer"][place] == critical


def test_fedbfpts_hyper_parameters_are_those_of_its_definitions() -> None:
    page = next(page for page in PAGES if page.parent.name == "fedbfpt")
    lines = [line.strip("| ").split(" | ") for line in text(page).splitlines() if line.startswith("| ")]
    halves = text(page).partition("| fine-tuning |")
    first, second = (
        {line[0]: line[1:4] for line in lines if len(line) == 5 and f"| {line[0]} | {line[1]} |" in half}
        for half in (halves[0], halves[2])
    )
    pretraining, table3 = benchmark_of("fedbfpt-pretraining"), benchmark_of("fedbfpt-table3")
    names = {"jnlpba": "JNLPBA", "scierc": "SciERC", "rct20k": "Rct-20k"}
    for place, scale in enumerate(table3.scales):
        made = pretraining.base(pretraining.row("fedbfpt"), pretraining.columns[0], pretraining.scale(scale.id), 0)
        local = pretraining.cell(pretraining.row("fedbfpt"), pretraining.columns[0], scale, 0).options["local_layers"]
        assert first["clients"][place] == str(made.clients)
        assert first["rounds × local epochs"][place] == f"{made.training.rounds} × {made.training.local_epochs}"
        assert first["local layers"][place] == f"{local} of {scale.depth}"
        assert first["batch size"][place] == str(made.training.batch_size)
        assert first["length"][place] == str(made.training.max_length)
        if scale.id != "lite":
            assert float(first["learning rate"][place]) == made.training.learning_rate
        for column in table3.columns:
            if column.task in names:
                training = table3.cell(table3.row("fedbfpt"), column, scale, 0).training
                assert second["epochs"][place] == str(training.rounds)
                assert second[f"batch size: {names[column.task]}"][place] == str(training.batch_size)
                rate = second[f"learning rate, × {training.decay} an epoch: {names[column.task]}"][place]
                assert float(rate) == training.learning_rate


def test_fedberts_hyper_parameters_are_those_of_its_definitions() -> None:
    page = next(page for page in PAGES if page.parent.name == "fedbert")
    halves = text(page).partition("| fine-tuning |")
    first, second = (
        {line[0]: line[1:4] for line in (row.strip("| ").split(" | ") for row in half.splitlines()) if len(line) == 5}
        for half in (halves[0], halves[2])
    )
    pretraining, table8, table6 = (benchmark_of(f"fedbert-{name}") for name in ("pretraining", "table8", "table6"))
    names = {"rte-central": "RTE", "mrpc-central": "MRPC", "sst2-central": "SST-2"}
    for place, scale in enumerate(table6.scales):
        for name, table in (("RoBERTa", pretraining), ("GPT-2", table8)):
            made = table.base(table.row("fedavg"), table.columns[0], table.scale(scale.id), 0)
            training = made.training
            assert first[f"clients: {name}"][place] == str(made.clients)
            assert first[f"rounds × epochs: {name}"][place] == f"{training.rounds} × {training.local_epochs}"
            assert first["batch size"][place] == str(training.batch_size)
            assert first["length"][place] == str(training.max_length)
            assert float(first["warm-up, of a run's updates"][place]) == training.warmup
            assert float(first["weight decay"][place]) == training.weight_decay
            assert float(first["Adam's β₂"][place]) == training.beta2
            if scale.id != "lite":
                assert float(first["learning rate"][place]) == training.learning_rate
        for column in table6.columns:
            if column.task in names:
                training = table6.cell(table6.row("fedavg"), column, scale, 0).training
                assert second["epochs"][place] == str(training.rounds)
                assert float(second[f"learning rate: {names[column.task]}"][place]) == training.learning_rate
                assert second[f"batch size: {names[column.task]}"][place] == str(training.batch_size)
