"""FedAvg in Flower's simulation engine, as in its tutorials: a script for a separate environment.

python flower_job.py JOB.json; `benchmarks.performance.peers` writes the job and reads result.json next to it. The
script imports nothing from this project, as Flower's environment lacks it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification


def load_model(folder: Path) -> Any:
    """The clients' initial classifier, with frozen embeddings."""
    model = AutoModelForSequenceClassification.from_pretrained(folder / "encoder")
    model.base_model.embeddings.requires_grad_(False)
    return model


def trained_state(model: Any) -> dict[str, Tensor]:
    """The exchanged state: all trained parameters."""
    return {name: value.detach() for name, value in model.named_parameters() if value.requires_grad}


def load_batches(folder: Path, client: int) -> list[dict[str, Tensor]]:
    """A client's batches, each padded to its longest text."""
    batches: dict[str, dict[str, Tensor]] = {}
    with np.load(folder / f"client-{client}.npz") as arrays:
        for key in arrays:
            number, name = key.split("/")
            batches.setdefault(number, {})[name] = torch.from_numpy(arrays[key])
    return list(batches.values())


def train(model: Any, batches: list[dict[str, Tensor]], learning_rate: float) -> None:
    """Train one epoch."""
    optimizer = torch.optim.AdamW([value for value in model.parameters() if value.requires_grad], lr=learning_rate)
    model.train()
    for batch in batches:
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()


def main(path: Path) -> None:
    """Run a job and write the seconds of each round."""
    from flwr import app, clientapp, serverapp, simulation
    from flwr.serverapp.strategy import FedAvg

    job, folder = json.loads(path.read_text(encoding="utf-8")), path.parent
    seconds: list[float] = []
    client_app, server_app = clientapp.ClientApp(), serverapp.ServerApp()

    @client_app.train()
    def fit(message: Any, context: Any) -> Any:
        torch.set_num_threads(job["cpus"])
        model = load_model(folder)
        model.load_state_dict(message.content["arrays"].to_torch_state_dict(), strict=False)
        batches = load_batches(folder, int(context.node_config["partition-id"]))
        train(model, batches, job["learning_rate"])
        metrics = app.MetricRecord({"num-examples": sum(len(batch["labels"]) for batch in batches)})
        content = app.RecordDict({"arrays": app.ArrayRecord(trained_state(model)), "metrics": metrics})
        return app.Message(content=content, reply_to=message)

    class TimedFedAvg(FedAvg):
        def configure_train(self, *arguments: Any) -> Any:
            self.start_of_round = time.perf_counter()
            return super().configure_train(*arguments)

        def aggregate_train(self, server_round: int, replies: Any) -> Any:
            replies = list(replies)
            if len(replies) < job["clients"] or any(reply.has_error() for reply in replies):
                raise RuntimeError(f"expected answers of {job['clients']} clients, found {replies}")
            merged = super().aggregate_train(server_round, replies)
            seconds.append(time.perf_counter() - self.start_of_round)
            return merged

    @server_app.main()
    def serve(grid: Any, context: Any) -> None:
        nodes = {f"min_{kind}_nodes": job["clients"] for kind in ("train", "available")}
        strategy = TimedFedAvg(fraction_evaluate=0.0, min_evaluate_nodes=0, **nodes)
        arrays = app.ArrayRecord(trained_state(load_model(folder)))
        strategy.start(grid=grid, initial_arrays=arrays, num_rounds=job["rounds"])

    simulation.run_simulation(
        server_app=server_app,
        client_app=client_app,
        num_supernodes=job["clients"],
        backend_config={
            "init_args": {"num_cpus": job["cpus"], "_temp_dir": str(folder / "ray")},
            "client_resources": {"num_cpus": job["cpus"], "num_gpus": 0.0},
        },
    )
    (folder / "result.json").write_text(json.dumps(seconds), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
