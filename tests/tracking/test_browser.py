"""MLflow's first screens in headless Chromium: the links of a run show its winner, at what bytes, and its curves."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from benchmarks.results import read_result
from tests.conftest import ROOT

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[browser]'")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH")]
PART = ("--tasks", "mrpc", "--methods", "fedavg,fedsplitbert,overall-majority", "--set", "training.rounds=1")
LINK = re.compile(r"^http://127\.0\.0\.1:5055(/\S+)", re.M)
FIRST_ROW = ".ag-center-cols-container .ag-row[row-index='0']"
# The texts of the first row's cells that lie inside the window and inside the table's frame.
VISIBLE = """row => {
    const frame = document.querySelector('.ag-center-cols-viewport').getBoundingClientRect()
    return [...document.querySelectorAll(row + ' .ag-cell')].filter(cell => {
        const place = cell.getBoundingClientRect()
        return place.left >= frame.left && place.right <= Math.min(frame.right, window.innerWidth) + 1
    }).map(cell => cell.innerText.trim())
}"""


def test_the_first_screens_show_the_winner_with_its_score_and_uplink_and_the_scores_by_round(tmp_path):
    """Of two methods; the majority class competes with none. MLFLOW_PICTURE names a file for the screen."""
    program, places = [sys.executable, "-m", "benchmarks"], ["--results-dir", str(tmp_path)]
    command = [*program, "run", "fedsplitbert-table3", "--scale", "demo", *PART, *places]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    runs, curves = LINK.findall(ended.stdout)
    records = [read_result(path) for path in (tmp_path / "records").glob("*.json")]
    winner = max(
        (record for record in records if record.cell.algorithm in ("averaging", "fedavg", "fedsplitbert")),
        key=lambda record: record.score("test/f1", "chosen"),
    )
    expected = {
        {"fedavg": "FedAvg", "fedsplitbert": "FedSplitBERT"}[winner.cell.algorithm],
        f"{100 * winner.score('test/f1', 'chosen'):.4g}",
        f"{sum(entry.up_bytes for entry in winner.rounds) / 1e6:.4g}",
    }
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen([*program, "ui", "--port", str(port), *places], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        server.stdout.readline()
        with sync_api.sync_playwright() as driver:
            chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = chromium.new_page(viewport={"width": 1440, "height": 720})
            page.goto(f"http://127.0.0.1:{port}{runs}")
            page.locator(FIRST_ROW).wait_for(timeout=120_000)
            for _ in range(30):  # columns find their widths some time after their rows
                if expected <= {*page.evaluate(VISIBLE, FIRST_ROW)}:
                    break
                page.wait_for_timeout(1000)
            if os.environ.get("MLFLOW_PICTURE"):
                page.screenshot(path=os.environ["MLFLOW_PICTURE"])
            assert expected <= {*page.evaluate(VISIBLE, FIRST_ROW)}
            assert page.locator(".ag-center-cols-container .ag-row").count() == 2
            assert page.locator("h1, h2, h3").filter(has_text="Traces").count() == 0
            page = chromium.new_page(viewport={"width": 1440, "height": 720})
            page.goto(f"http://127.0.0.1:{port}{curves}")
            chart = page.get_by_text("Score by round", exact=True)
            chart.wait_for(timeout=120_000)
            assert chart.bounding_box()["y"] < 720  # without scrolling
            chromium.close()
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
