"""Small demo cells of Table III, run through the command line in this process or by functions."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import benchmarks.results
from benchmarks.cli.main import main
from benchmarks.encoders.encoding import TokenCache
from benchmarks.experiment import with_settings
from benchmarks.predictions import Predictions
from benchmarks.registry import benchmark, columns_of, rows_of, scale_of
from benchmarks.results import RunResult
from benchmarks.run_config import RunConfig
from benchmarks.running import federation, scoring
from benchmarks.running.events import Event
from benchmarks.running.run_options import RunOptions
from benchmarks.sweeps.tuning import Search

TABLE = "fedsplitbert-table3"

CellsOf = Callable[..., list[RunConfig]]
Words = Callable[..., list[str]]


@pytest.fixture
def untuned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Definitions as they are before a search has chosen settings: what is committed of them changes with evidence."""
    monkeypatch.setattr(Search, "settings", lambda search, task, row: {})


@pytest.fixture(scope="session", autouse=True)
def own_token_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests that leave settings as they are neither read nor write tokens in the checkout's own results."""
    folder = tmp_path_factory.mktemp("results") / "tokens"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(federation, "TokenCache", lambda asked: TokenCache(asked if asked.is_absolute() else folder))
        yield


@pytest.fixture(scope="session")
def cells_of() -> CellsOf:
    """Cells of Table III by methods and tasks, with "field=value" changes."""

    def build(
        methods: Sequence[str], *changes: str, tasks: Sequence[str] = ("mrpc",), scale: str = "demo"
    ) -> list[RunConfig]:
        table = with_settings(benchmark(TABLE), changes)
        chosen = table.cells(scale_of(table, scale), [0], rows_of(table, list(methods)), columns_of(table, list(tasks)))
        return [cell for _, _, cell in chosen]

    return build


@pytest.fixture(scope="session")
def run_words() -> Words:
    """The words that run demo cells of MRPC on the CPU in this process."""

    def words(results: Path, methods: str, *changes: str) -> list[str]:
        sets = [word for change in changes for word in ("--set", change)]
        fixed = ["--tasks", "mrpc", "--workers", "1", "--device", "cpu", "--no-tracking"]
        return ["run", TABLE, *fixed, "--methods", methods, "--results-dir", str(results), *sets]

    return words


@pytest.fixture(scope="session")
def finished_results(tmp_path_factory: pytest.TempPathFactory, run_words: Words) -> Path:
    """A results folder with one finished demo cell and its report; tests must leave it as it is."""
    results = tmp_path_factory.mktemp("finished") / "results"
    assert main(run_words(results, "fedsplitbert", "training.rounds=1")) == 0
    return results


@pytest.fixture
def contents() -> Callable[[Path], dict[str, bytes]]:
    """Reads every file below a folder but locks, logs and the tokens of texts."""

    def read(folder: Path) -> dict[str, bytes]:
        files = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
        return {
            name: path.read_bytes() for name, path in files.items() if not name.startswith(("locks", "logs", "tokens"))
        }

    return read


@pytest.fixture
def results(
    finished_results: Path, tmp_path_factory: pytest.TempPathFactory, contents: Callable[[Path], dict[str, bytes]]
) -> Iterator[Path]:
    """Earlier results; whatever the test does, they are the same afterwards and nothing was added."""
    copy = tmp_path_factory.mktemp("earlier") / "results"
    shutil.copytree(finished_results, copy)
    before = contents(copy)
    assert any(name.startswith("records") for name in before)
    yield copy
    assert contents(copy) == before


@pytest.fixture
def message_in() -> Callable[[str], str]:
    """Takes the one message out of stderr; progress lines may stand before it, nothing after it."""

    def find(stderr: str) -> str:
        assert "Traceback" not in stderr
        _, mark, message = f"\n{stderr}".partition("\nerror: ")
        assert mark, stderr
        assert "error: " not in message
        return message.rstrip()

    return find


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str], message_in: Callable[[str], str]) -> Callable[[list[str]], str]:
    """Runs words that must be refused, and returns the message."""

    def refuse(words: list[str]) -> str:
        capsys.readouterr()
        assert main(words) == 2
        return message_in(capsys.readouterr().err)

    return refuse


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo's encoder and tokenizer, as a user's own encoder would lie there."""
    from benchmarks.encoders.loading import build_encoder, build_tokenizer, locate

    folder = tmp_path_factory.mktemp("encoders") / "my-encoder"
    found = locate("tiny")
    build_encoder(found).save_pretrained(folder)
    build_tokenizer(found).save_pretrained(folder)
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> RunOptions:
    return RunOptions(results_dir=tmp_path / "results", device="cpu")


class Killed(BaseException):
    """No handler of the project catches it."""


@pytest.fixture
def killed_before_step() -> Callable[[int], AbstractContextManager[None]]:
    """A block in which `number` - 1 steps on the disk happen, and nothing after them."""

    @contextmanager
    def block(number: int) -> Iterator[None]:
        steps = 0

        def mortal(function: Callable[..., Any]) -> Callable[..., Any]:
            def step(*arguments: Any, **options: Any) -> Any:
                nonlocal steps
                steps += 1
                if steps >= number:
                    raise Killed
                return function(*arguments, **options)

            return step

        with pytest.MonkeyPatch.context() as patch, suppress(Killed):
            patch.setattr(os, "fsync", mortal(os.fsync))
            for name in ("replace", "unlink", "rmdir"):
                patch.setattr(Path, name, mortal(getattr(Path, name)))
            yield

    return block


@pytest.fixture(scope="session")
def training_labels() -> Callable[[RunResult, Mapping[tuple[int, str], Predictions]], np.ndarray]:
    """How many of each label every client trained on, [clients, classes], by a record and its predictions alone.

    What a client was scored on of its own examples, it held back: these are "test" and "validation" unless central.
    """

    def count(record: RunResult, kept: Mapping[tuple[int, str], Predictions]) -> np.ndarray:
        assert record.cell.holdout == "test", "the test sets of a cell for tuning are held back, and not kept"
        labels = record.partition["label_ids"]
        found = np.zeros((len(record.clients), max(labels) + 1), dtype=np.int64)
        found[:, labels] = record.partition["obtained_counts"]
        asked = [name for name in ("test", "validation") if name in record.clients[0]]
        own = {name for name in asked if sum(record.own_examples(name)) > 0}
        for (client, name), part in kept.items():
            if name in own:
                found[client] -= np.bincount(part.gold, minlength=found.shape[1])
        return found

    return count


@pytest.fixture
def choose(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has a round chosen by its number, once there is one, while a cell runs and in its record."""

    def choose(number: int) -> None:
        def chosen(scores: Sequence[Any], by: str) -> int:
            return min(number, len(scores)) if by else len(scores)

        for module in (benchmarks.results, scoring):
            monkeypatch.setattr(module, "chosen_round", chosen)

    return choose


class Events(list[Event]):
    """A sink that remembers."""

    def __call__(self, event: Event) -> None:
        self.append(event)

    def of(self, kind: type) -> list[Event]:
        """Events of a kind, in order."""
        return [event for event in self if isinstance(event, kind)]


@pytest.fixture
def events() -> Events:
    return Events()
