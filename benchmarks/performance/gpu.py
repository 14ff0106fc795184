"""Part 5: BERT-base on a GPU, at length 128 and at natural lengths, and several small cells on one GPU."""

from __future__ import annotations

from statistics import median

import torch

from benchmarks.encoders.backbones import architecture
from benchmarks.performance.processes import fresh_processes
from benchmarks.performance.products import Encoder, matrix_rate
from benchmarks.performance.section import Bar, Bench, Section, seconds
from benchmarks.performance.workload import BACKBONE, clients_of, setting_of, texts
from benchmarks.run_config import JSON
from benchmarks.running.process import hold_freed_memory, quiet_libraries
from fedsim.precision import DTYPES, resolve_precision

EXAMPLES, BATCH = 64 * 32, 32
FIXED = (128, 128)  # tokens of a text, least and most
BERT = "bert-base-uncased"
CELLS = (1, 2, 4, 8)  # small cells side by side


def measure(bench: Bench) -> Section:
    """Nothing without a GPU, and the section says so."""
    title = "On a GPU"
    if not torch.cuda.is_available():
        return Section("gpu", title, [], (), ("This machine has no GPU.",))
    precision = resolve_precision("auto", "cuda")
    rate = matrix_rate(DTYPES[precision.name], bench.repeats, "cuda")
    rows: list[dict[str, JSON]] = []
    for name, lengths in (("length 128", FIXED), ("MRPC's lengths", None)):
        examples, flops = _speed(BERT, lengths, bench.repeats)
        rows.append({"what": f"{BERT}, {name}, {precision.name}, batches of {BATCH}", "examples_s": round(examples, 1),
                     "share": round(flops / rate, 3)})  # fmt: skip
    alone = 0.0
    for cells in CELLS:
        with fresh_processes(cells) as pool:
            speeds = list(pool.map(_small, [bench.repeats] * cells))
        alone = alone or speeds[0]
        rows.append({"what": f"{BACKBONE}, MRPC's lengths, {cells} cells", "examples_s": round(sum(speeds), 1),
                     "share": round(sum(speeds) / alone, 2)})  # fmt: skip
    for row in rows:
        bench.say(f"  {row['what']}: {row['examples_s']} examples/s")
    bars = (
        Bar("BERT-base, length 128, of the matrix rate", rows[0]["share"], 0.4, unit="of it"),
        Bar("small cells side by side against one", max(row["share"] for row in rows[2:]), 3.0),
    )
    return Section("gpu", title, rows, bars, ("share: of the matrix rate; of small cells, times one alone.",))


def _speed(backbone: str, lengths: tuple[int, ...] | None, repeats: int) -> tuple[float, float]:
    """Examples and operations of products a second."""
    (client,) = clients_of(texts(EXAMPLES, lengths) if lengths else texts(EXAMPLES), 1)
    setting = setting_of(backbone, device="cuda", batch_size=BATCH)
    names = sorted(setting.model.groups.names - setting.model.groups.embeddings)

    def epoch() -> None:
        setting.training.run(setting.model, client.train, names, 1, 0)  # its mean loss waits for the GPU

    epoch()
    took = median(seconds(epoch) for _ in range(repeats))
    config = architecture(backbone)
    encoder = Encoder(config["num_hidden_layers"], config["hidden_size"], config["intermediate_size"])
    counted = client.train.examples.lengths[client.train.indices].tolist()
    return EXAMPLES / took, encoder.training_flops(counted, unread=True) / took


def _small(repeats: int) -> float:
    quiet_libraries()
    hold_freed_memory()
    torch.set_num_threads(1)
    return _speed(BACKBONE, None, repeats)[0]
