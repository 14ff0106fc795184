"""The guide to federated PEFT: methods within a budget of bytes, those as good as the best, and the constant answer."""

from dataclasses import replace

from benchmarks.registry import benchmark
from benchmarks.results import RunResult
from reports.evidence.records import request_for
from reports.views import page
from tests.reports.claims.test_fedpeft_decides import made_up

MEGABYTE = 10**6
CELLS = {  # row -> accuracy, megabytes of one client in one direction of the whole run
    "local-majority": (70.0, 0.0),
    "central": (95.0, 0.0),
    "fedavg": (90.0, 250.0),
    "fedit": (84.3, 36.0),
    "ffa-lora": (84.1, 0.75),
    "share-b": (80.0, 0.75),
}


def records(table: str) -> list[RunResult]:
    bench = benchmark(table)
    scale, (column,) = bench.scale("lite"), [each for each in bench.columns if each.task == "sst2"]
    results = []
    for row, (level, megabytes) in CELLS.items():
        for seed in range(5):
            run = made_up(bench.cell(bench.row(row), column, scale, seed), level, {}, diverged=False)
            size = int(megabytes * MEGABYTE * run.cell.clients / len(run.rounds))
            rounds = tuple(replace(entry, up_bytes=size, down_bytes=size) for entry in run.rounds)
            results.append(replace(run, rounds=rounds))
    return results


def test_each_budget_names_the_best_methods_that_fit():
    guide = benchmark("fedpeft-guide")
    shown = page(request_for(guide, guide.scale("lite"), [*records("fedpeft-scores"), *records("fedpeft-ten")]))
    (grid,) = shown.grids
    clients = [f"{count} clients, drawn label shares" for count in (3, 10)]
    assert [group.name for group in grid.groups] == clients
    sizes = (4, 8, 40, 1200)
    assert [header[0] for header in grid.headers][1:] == [f"within {size} MB" for size in sizes]
    for group in grid.groups:
        (line,) = group.lines
        assert line.label == "SST-2"
        majority, *texts = line.cells
        named = [{text.rpartition(" ")[0] for text in cell.split("; ")} for cell in texts]
        assert abs(float(majority) - 70) < 1
        ffa, fedit, full = "FFA-LoRA, head shared", "FedIT", "FedAvg, full model"  # central training is no choice
        assert named == [{ffa}, {ffa, fedit}, {ffa, fedit}, {full}]  # of FedIT, one round of 6 MB fits into 8 MB
    frame = shown.frame()
    assert set(frame[frame["megabytes"] == 4]["row"]) == {"ffa-lora", "share-b"}
