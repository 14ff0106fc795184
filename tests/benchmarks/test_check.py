"""The command `check`, and what it and `--include` say about a user's files."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import fedsim.algorithms
from benchmarks import api, registry
from benchmarks.cli.checks import Checks
from benchmarks.cli.main import main
from benchmarks.running import included
from tests.conftest import ROOT

SEND, PLAN = "channel.to_server(client.id, trained)", "plan=shared.plan"
SCALE, ANSWERS = "scale = 1.0", "return answers"
PAGE = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
DATACLASS = """from __future__ import annotations
from dataclasses import dataclass
from shared import NAME


@dataclass(frozen=True)
class Options:
    name: str = NAME


def method(workload):
    return Options()


METHODS = (method,)
"""
OWN_ROUND = """from dataclasses import replace
import numpy as np
from fedsim.algorithms.averaging import averaging
from fedsim.engine import FederationState, RoundMetrics
from fedsim.lora import lora_of
from fedsim.plan import ExchangePlan

TIMES = {}


def own(workload):
    lora = lora_of(workload, "own")
    names = lora.a | lora.b
    view = {name: name for name in lora.names}
    plan = ExchangePlan(view, download=names, train=names, upload=names, local=frozenset())
    shared = averaging(workload, lambda round, client: plan)

    def round(state, cohort, channel):
        number, server, mean = state.round + 1, workload.server_params(state), {}
        scale = 1.0
        for client in cohort:
            received = channel.to_client(client.id, {name: server[name] for name in plan.download})
            workload.model.hold(server | received)
            workload.training.run(workload.model, client.train, sorted(names), number, client.id)
            trained = workload.model.snapshot(names)
            for name, value in channel.to_server(client.id, trained).items():
                mean[name] = mean.get(name, 0) + value * scale / len(cohort)
        return FederationState(number, mean, {}, state.clients), RoundMetrics((), None)

    def predict(state, client, subset):
        answers = shared.predict(state, client, subset)
        return answers

    return replace(shared, round=round, predict=predict, client_update=None, plan=shared.plan)


METHODS = (own,)
"""


@pytest.fixture
def folder(nothing_included: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for methods."""
    monkeypatch.setattr(fedsim.algorithms, "ADDED", {})
    return tmp_path


@pytest.mark.slow
def test_the_pages_lora_method_passes_the_check_and_a_broken_one_fails(folder, capsys):
    (text,) = re.findall(r"`elsewhere/my_method\.py`.*?```python\n(.*?)```", PAGE, re.DOTALL)
    file = folder / "my_method.py"
    file.write_text(text, encoding="utf-8")
    assert main(["check", str(file)]) == 0, capsys.readouterr().out
    assert capsys.readouterr().out.count("  ok  ") == 7
    broken = text.replace("b_first", "doubled").replace("(workload, plan)", '(workload, plan, {"learning_rate": 2.0})')
    (folder / "broken.py").write_text(broken, encoding="utf-8")
    assert main(["check", str(folder / "broken.py")]) == 2
    out = capsys.readouterr().out
    assert "FAILED one client" in out
    assert "right only for a method whose server step changes the upload of a single client" in out
    assert main(["check", str(file), "--set", "options.rounds_of_b=0"]) == 0
    assert main(["check", str(file), "--set", "options.rounds=0"]) == 2
    assert "unknown option rounds; its options: rounds_of_b" in capsys.readouterr().out
    assert main(["check", str(file), "--set", "training.rounds=9"]) == 2
    assert "--set training.rounds: expected an option of the methods" in capsys.readouterr().err
    assert main(["check", str(folder / "missing.py")]) == 2
    assert "expected a Python file that defines METHODS" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["median_b", "slow_b"])
def test_the_pages_server_step_and_client_state_pass_the_check(folder, name, capsys):
    (text,) = re.findall(rf"`elsewhere/{name}\.py`.*?```python\n(.*?)```", PAGE, re.DOTALL)
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    assert main(["check", str(folder / f"{name}.py")]) == 0, capsys.readouterr().out


@pytest.fixture
def checks(folder: Path) -> Callable[..., Checks]:
    """The checks of a method with its own round, after a change to its text, in two rounds."""

    def of(changes: dict[str, str]) -> Checks:
        text = OWN_ROUND
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        (folder / "own.py").write_text(text, encoding="utf-8")
        included.load_file(folder / "own.py")
        return Checks(folder / "own.py", "own", (), folder / "checks", rounds=2)

    return of


@pytest.mark.parametrize(
    ("changes", "check", "message"),
    [
        ({}, "plan without", ""),
        ({SEND: "trained"}, "plan without", "client 0: .* parameters up, found 0"),
        ({PLAN: "plan=None"}, "one client", ""),
        ({PLAN: "plan=None", SEND: "trained"}, "plan without", "round .: expected client ., which trains, to upload"),
        (
            {"download=names": "download=lora.b"},
            "plan: ",
            "round 2: expected client . to download .*lora_A, which others",
        ),
        ({SCALE: f"{SCALE}; state.clients.put(0, number, {{n: server[n] for n in names}})"}, "one client", ""),
        ({ANSWERS: f"{ANSWERS}[:, 0]"}, "predictions", "expected predictions of shape .* correct `predict`"),
        ({}, "resume", ""),
        ({ANSWERS: f"{ANSWERS} + np.random.rand()"}, "resume", "expected the same predictions, found others"),
        ({SCALE: "scale = TIMES.setdefault(number, 1.0 + len(TIMES))"}, "resume", "found others in"),
    ],
)
def test_a_check_finds_a_methods_mistake(checks, changes, check, message):
    (test,) = [test for name, test in checks(changes).all.items() if name.startswith(check)]
    problem = test()
    assert re.search(message, problem) if message else not problem


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("METHODS = (lambda workload: 1,)\n", "functions with names, found a lambda; use def"),
        ("def f(w)\n    pass\nMETHODS = (f,)\n", "SyntaxError: expected ':'"),
        ("METHODS = ()  # \xe9\n", "broken.py, line 1: expected UTF-8, found other bytes; save the file as UTF-8"),
    ],
)
def test_a_broken_method_file_is_one_message(folder, text, message):
    (folder / "broken.py").write_text(text, encoding="latin-1")
    for load in (lambda: included.load_file(folder / "broken.py"), lambda: included.load_folder(folder)):
        with pytest.raises(api.UserError, match=re.escape(message)):
            load()


def test_a_method_that_cannot_be_built_is_named_with_its_line(folder):
    (folder / "own.py").write_text(
        "def own(workload, period=2):\n    1 / period\n\nMETHODS = (own,)\n", encoding="utf-8"
    )
    included.load_folder(folder)
    for period, message in (0, "own.py, line 2: ZeroDivisionError: "), (2, "found None; return averaging(…)"):
        with pytest.raises(api.UserError, match=re.escape(message)):
            fedsim.algorithms.build_algorithm("own", None, {"period": period})
    assert fedsim.algorithms.trains("own")
    for name, message in ("none", "found no such folder"), ("own.py", "found a file; give its folder"):
        with pytest.raises(api.UserError, match=message):
            registry.include(folder / name)


def test_each_folder_runs_its_own_helper_and_its_digest_covers_that_file(folder):
    for name in ("first", "second"):
        (folder / name).mkdir()
        (folder / name / "shared.py").write_text(f"NAME = {name!r}\n", encoding="utf-8")
        text = DATACLASS.replace("method", name)
        (folder / name / "mine.py").write_text(text, encoding="utf-8")  # modules of one name, too
    modules = [module for name in ("first", "second") for module in included.load_folder(folder / name).values()]
    for name, module in zip(("first", "second"), modules, strict=True):
        assert module.Options().name == name
        assert included.code_of(name) == {
            "mine.py": DATACLASS.replace("method", name),
            "shared.py": f"NAME = {name!r}\n",
        }
        assert sys.modules[module.__name__] is module
    (folder / "second" / "json.py").write_text("", encoding="utf-8")
    (folder / "second" / "mine.py").write_text("import json\nMETHODS = ()\n", encoding="utf-8")
    with pytest.raises(api.UserError, match=r"second/json.py: expected to be imported as json, found .*; rename"):
        included.load_folder(folder / "second")
