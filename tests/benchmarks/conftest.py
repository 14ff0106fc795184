"""Small demo cells of Table III, run through the command line in this process or by functions."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import registry
from benchmarks.cli.main import main
from benchmarks.encoders.encoding import TokenCache
from benchmarks.registry import benchmark, columns_of, rows_of, scale_of
from benchmarks.results import RunResult, read_results
from benchmarks.run_config import RunConfig, TrainConfig
from benchmarks.running import federation, included
from benchmarks.running.events import Event
from benchmarks.running.run_options import RunOptions
from benchmarks.selection import with_settings
from benchmarks.sweeps.tuning import Search

TABLE = "fedsplitbert-table3"
DEMO = RunConfig(
    scale="demo",
    task="mrpc",
    task_version=1,
    source="generated",
    backbone="tiny",
    clients=3,
    partition={"scheme": "equal"},
    algorithm="fedavg",
    options={},
    training=TrainConfig(rounds=3, learning_rate=2e-3, batch_size=16, max_length=32, precision="fp32"),
    seed=0,
)


@pytest.fixture
def untuned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Definitions before a search chose settings: committed settings change with new evidence."""
    monkeypatch.setattr(Search, "settings", lambda search, task, row: {})


@pytest.fixture
def nothing_included(monkeypatch: pytest.MonkeyPatch) -> None:
    """No user's folder was included before the test, and none is after it."""
    monkeypatch.setattr(registry, "_INCLUDED", {})
    monkeypatch.setattr(included, "_FILES", {})
    monkeypatch.setattr(included, "_LOADED", set())
    monkeypatch.setattr(included, "_ON_PATH", [])
    monkeypatch.setattr(sys, "path", [*sys.path])


@pytest.fixture(scope="session", autouse=True)
def temporary_token_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """By default, tests neither read nor write tokens in the checkout's results."""
    folder = tmp_path_factory.mktemp("results") / "tokens"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(federation, "TokenCache", lambda asked: TokenCache(asked if asked.is_absolute() else folder))
        yield


def cells_of(
    methods: Sequence[str], *changes: str, tasks: Sequence[str] = ("mrpc",), scale: str = "demo"
) -> list[RunConfig]:
    """Cells of Table III by methods and tasks, with "field=value" changes."""
    table = with_settings(benchmark(TABLE), changes)
    chosen = table.cells(scale_of(table, scale), [0], rows_of(table, list(methods)), columns_of(table, list(tasks)))
    return [cell for _, _, cell in chosen]


def run_arguments(results: Path, methods: str, *changes: str) -> list[str]:
    """Command-line arguments that run demo cells of MRPC on the CPU in this process."""
    sets = [argument for change in changes for argument in ("--set", change)]
    fixed = ["--tasks", "mrpc", "--workers", "1", "--device", "cpu", "--no-tracking"]
    return ["run", TABLE, *fixed, "--methods", methods, "--results-dir", str(results), *sets]


def outcome(record: RunResult) -> dict[str, Any]:
    """The part of a record that must be independent of machine, time and restarts."""
    value = json.loads(json.dumps(record.to_json()))
    for volatile in ("environment", "timing", "finished"):
        del value[volatile]
    del value["inputs"]["data"]["origin"], value["inputs"]["backbone"]["origin"]
    return value


def outcomes(settings: RunOptions) -> dict[str, dict[str, Any]]:
    """Cell id -> outcome, of all records."""
    return {record.cell_id: outcome(record) for record in read_results(settings.records_dir)}


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder except locks, logs and tokens."""
    files = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if not name.startswith(("locks", "logs", "tokens"))}


@pytest.fixture(scope="session")
def finished_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one finished demo cell and its report; tests must not change it."""
    results = tmp_path_factory.mktemp("finished") / "results"
    assert main(run_arguments(results, "fedsplitbert", "training.rounds=1")) == 0
    return results


@pytest.fixture
def results(finished_results: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Earlier results; checks after the test that they are unchanged and that nothing was added."""
    copy = tmp_path_factory.mktemp("earlier") / "results"
    shutil.copytree(finished_results, copy)
    before = contents(copy)
    assert any(name.startswith("records") for name in before)
    yield copy
    assert contents(copy) == before


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str]) -> Callable[[list[str]], str]:
    """Run arguments that must be rejected; return the message, which must be the last output."""

    def refuse(arguments: list[str]) -> str:
        capsys.readouterr()
        assert main(arguments) == 2
        stderr = capsys.readouterr().err
        assert "Traceback" not in stderr
        _, mark, message = f"\n{stderr}".partition("\nerror: ")
        assert mark, stderr
        assert "error: " not in message
        return message.rstrip()

    return refuse


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's encoder and tokenizer, laid out like a user's encoder."""
    from benchmarks.encoders.loading import build_encoder, build_tokenizer, locate

    folder = tmp_path_factory.mktemp("encoders") / "my-encoder"
    encoder = locate("tiny")
    build_encoder(encoder).save_pretrained(folder)
    build_tokenizer(encoder).save_pretrained(folder)
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> RunOptions:
    return RunOptions(results_dir=tmp_path / "results", device="cpu")


class Events(list[Event]):
    """An event sink that stores all events."""

    def __call__(self, event: Event) -> None:
        self.append(event)

    def of(self, kind: type) -> list[Event]:
        """Events of a kind, in order."""
        return [event for event in self if isinstance(event, kind)]


@pytest.fixture
def events() -> Events:
    return Events()
