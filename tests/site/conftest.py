"""A site with some committed records, one with hostile texts."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cli.main import main
from benchmarks.results import RunResult, read_result, write_result

ROOT = Path(__file__).resolve().parents[2]
# Several tasks with all seeds, curves of some methods, an attack, and a table of another paper.
SHOWN = ("lite-mrpc-*", "lite-rte-local*", "lite-rte-linear*", "lite-wnli-*", "lite-sst2-texts-inversion-s0*")
ANSWERED = ("lite-mrpc-fedavg-s*",)  # with the answers that they kept
HOSTILE = "</script><script>window.broken = true</script><img src=http://x.invalid/a onerror=alert(1)>"
HEAD = "task,method,scale,study,trial,score,mean,sd,seeds,uplink_bytes,state,training.learning_rate"
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60"><text y="20">heatmap</text></svg>'
SWEPT = {  # the files of a sweep
    "trials.csv": f"""{HEAD}
mrpc,fedavg,lite,study-0123,0,f1,0.5,,1,1000000,,1e-05
mrpc,fedavg,lite,study-0123,1,f1,0.75,,1,2000000,best,{HOSTILE.replace(",", ";")}
mrpc,fedavg,lite,study-0123,2,f1,,,0,,given up after 2,0.1
""",
    "importances.csv": "task,method,scale,study,field,importance\nmrpc,fedavg,lite,study-0123,training.epochs,1.0\n",
    "heatmap.svg": PICTURE,
}


def shown() -> list[RunResult]:
    """The records of the site."""
    names = [f"benchmarks/*/records/{name}.json" for name in SHOWN]
    paths = [path for name in names for path in ROOT.glob(name)]
    return [read_result(path) for path in sorted(paths)]


def hostile(record: RunResult) -> RunResult:
    """The same run with texts that would break out of a page."""
    data = {**record.inputs["data"], "notes": [HOSTILE], "origin": HOSTILE}
    environment = {**record.environment, "device": HOSTILE}
    return replace(record, inputs={**record.inputs, "data": data}, environment=environment, folder=None)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    first, *rest = shown()
    for record in (hostile(first), *rest):
        write_result(folder / "records", record)
    for name in ANSWERED:
        for path in ROOT.glob(f"benchmarks/*/records/{name}.predictions.safetensors.xz"):
            shutil.copy2(path, folder / "records")
    left = folder / "results" / "reports" / "fedsplitbert-table3" / "lite" / "sweep"
    left.mkdir(parents=True)
    for name, text in SWEPT.items():
        (left / name).write_text(text)
    places = ("--records", str(folder / "records"), "--results-dir", str(folder / "results"))
    assert main(["site", *places, "--out", str(folder / "site")]) == 0
    return folder / "site"
