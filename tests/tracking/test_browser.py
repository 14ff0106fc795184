"""MLflow's first screen in headless Chromium: the link that a run printed says which method wins, and at what bytes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.results import RunResult, read_result

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[browser]'")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH")]
ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = (sys.executable, "-m", "benchmarks")
PART = ("--tasks", "mrpc", "--methods", "fedavg,fedsplitbert,overall-majority", "--set", "training.rounds=1")
LINK = re.compile(r"^http://127\.0\.0\.1:5055/\S+", re.M)
FIRST_ROW = ".ag-center-cols-container .ag-row[row-index='0']"


@pytest.fixture(scope="module")
def results_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def printed(results_dir: Path) -> str:
    """The link with which a run of a part of a table ended."""
    command = [*BENCHMARKS, "run", "fedsplitbert-table3", "--scale", "demo", *PART, "--results-dir", str(results_dir)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    link, _ = LINK.findall(ended.stdout)  # the runs, and the curves
    return str(link)


@pytest.fixture(scope="module")
def address(results_dir: Path, printed: str) -> Iterator[str]:
    """Where the command shows the runs, on a port that is free."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*BENCHMARKS, "ui", "--port", str(port), "--results-dir", str(results_dir)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        assert "MLflow" in server.stdout.readline()
        yield f"http://127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)


@pytest.fixture(scope="module")
def screen(printed: str, address: str) -> Iterator[Any]:
    """The page of the printed link; kept as the picture that MLFLOW_PICTURE names, if it does."""
    with sync_api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1440, "height": 720})
        page.goto(printed.replace("http://127.0.0.1:5055", address))
        page.locator(FIRST_ROW).wait_for(timeout=120_000)
        if os.environ.get("MLFLOW_PICTURE"):
            page.screenshot(path=os.environ["MLFLOW_PICTURE"])
        yield page
        chromium.close()


@pytest.fixture(scope="module")
def winner(results_dir: Path, printed: str) -> RunResult:
    """The record of the best method by its F1, apart from the majority class, which is no method of the paper."""
    records = [read_result(path) for path in (results_dir / "records").glob("*.json")]
    methods = [record for record in records if record.cell.algorithm in ("averaging", "fedavg", "fedsplitbert")]
    assert (len(records), len(methods)) == (3, 2)
    return max(methods, key=lambda record: record.score("test/f1", "chosen"))


def in_view(page: Any, text: str) -> Any:
    """The cell of the first row that says so, if it lies inside the window and inside the table's own frame."""
    return page.evaluate(
        """([row, text]) => {
            const found = [...document.querySelectorAll(row + ' .ag-cell')].find(cell => cell.innerText.trim() === text)
            if (!found) return [...document.querySelectorAll(row + ' .ag-cell')].map(cell => cell.innerText)
            const cell = found.getBoundingClientRect()
            const frame = document.querySelector('.ag-center-cols-viewport').getBoundingClientRect()
            return cell.left >= frame.left && cell.right <= Math.min(frame.right, window.innerWidth) + 1
        }""",
        [FIRST_ROW, text],
    )


def test_first_row_names_the_winner_with_its_score_and_uplink(screen: Any, winner: RunResult) -> None:
    name = {"fedavg": "FedAvg", "fedsplitbert": "FedSplitBERT"}[winner.cell.algorithm]
    sent = sum(entry.up_bytes for entry in winner.rounds) / 1e6
    for text in (name, f"{100 * winner.score('test/f1', 'chosen'):.4g}", f"{sent:.4g}"):
        for _ in range(30):  # columns find their widths some time after their rows
            if in_view(screen, text) is True:
                break
            screen.wait_for_timeout(1000)
        assert in_view(screen, text) is True, text


def test_it_is_a_table_of_runs_with_the_columns_that_answer(screen: Any) -> None:
    headers = screen.locator(".ag-header-cell").all_inner_texts()
    shown = " ".join(headers)
    for column in ("method", "task", "score_percent", "uplink_MB", "downlink_MB"):
        assert column in shown, headers
    assert "/runs?" in screen.url
    assert screen.locator("h1, h2, h3").filter(has_text="Traces").count() == 0
    assert screen.locator(".ag-center-cols-container .ag-row").count() == 2  # the majority class competes with none
