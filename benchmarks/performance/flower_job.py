"""FedAvg in Flower's simulation engine, as its tutorials have it: a script for an environment of its own.

python flower_job.py JOB.json; `benchmarks.performance.flower` writes the job and reads the result. It imports nothing
of this project, which is not installed beside Flower.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding


def examples_of(arrays: Mapping[str, np.ndarray], name: str) -> list[dict[str, Any]]:
    """A client's examples as a tokenizer would give them; name: "0/train", "0/test", …."""
    offsets, labels = arrays[f"{name}/offsets"], arrays[f"{name}/labels"]
    tokens, types = arrays[f"{name}/tokens"], arrays[f"{name}/types"]
    return [
        {
            "input_ids": tokens[start:end].tolist(),
            "token_type_ids": types[start:end].tolist(),
            "attention_mask": [1] * int(end - start),
            "labels": int(label),
        }
        for start, end, label in zip(offsets[:-1], offsets[1:], labels, strict=True)
    ]


def load_model(job: Mapping[str, Any]) -> Any:
    """The classifier that all clients begin from, its embeddings frozen."""
    model = AutoModelForSequenceClassification.from_pretrained(job["encoder"])
    model.base_model.embeddings.requires_grad_(False)
    return model


def trained_state(model: Any) -> dict[str, torch.Tensor]:
    """What client and server exchange: everything that is trained."""
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    return {name: value for name, value in model.state_dict().items() if name in names}


def load_batches(job: Mapping[str, Any], name: str, batch_size: int, shuffle_seed: int | None = None) -> Any:
    """A DataLoader over a client's examples, each batch padded to its longest text; a seed: shuffled by it."""
    with np.load(job["data"]) as arrays:
        examples = examples_of(arrays, name)
    generator = None if shuffle_seed is None else torch.Generator().manual_seed(shuffle_seed)
    return DataLoader(
        examples,  # type: ignore[arg-type]  # a list is what the tutorials pass, though no Dataset
        batch_size=batch_size,
        shuffle=generator is not None,
        generator=generator,
        collate_fn=DataCollatorWithPadding(AutoTokenizer.from_pretrained(job["encoder"])),
    )


def train(model: Any, batches: Any, learning_rate: float) -> float:
    """One epoch; the seconds that it took."""
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=learning_rate)
    model.train()
    begun = time.perf_counter()
    for batch in batches:
        optimizer.zero_grad()
        model(**batch).loss.backward()
        optimizer.step()
    return time.perf_counter() - begun


def client_app(job: Mapping[str, Any]) -> Any:
    """Flower's ClientApp: it loads the model, takes over what the server sent, and trains an epoch."""
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp

    app = ClientApp()

    @app.train()
    def fit(message: Any, context: Any) -> Any:
        torch.set_num_threads(job["cpus_per_client"])
        client = int(context.node_config["partition-id"])
        seed = (job["seed"] * 1000 + int(message.content["config"]["server-round"])) * 1000 + client
        torch.manual_seed(seed)
        model = load_model(job)
        model.load_state_dict(message.content["arrays"].to_torch_state_dict(), strict=False)
        batches = load_batches(job, f"{client}/train", job["batch_size"], seed)
        seconds = train(model, batches, job["learning_rate"])
        metrics = MetricRecord({"num-examples": len(batches.dataset), "seconds": seconds})
        content = RecordDict({"arrays": ArrayRecord(trained_state(model)), "metrics": metrics})
        return Message(content=content, reply_to=message)

    return app


def server_app(job: Mapping[str, Any], result: dict[str, Any]) -> Any:
    """Flower's ServerApp with its FedAvg, which notes when a round's training begins and ends."""
    from flwr.app import ArrayRecord
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg

    class TimedFedAvg(FedAvg):
        def configure_train(self, *arguments: Any) -> Any:
            self.begun = time.perf_counter()
            return super().configure_train(*arguments)

        def aggregate_train(self, server_round: int, replies: Any) -> Any:
            replies = list(replies)
            failed = [str(reply.error) for reply in replies if reply.has_error()]
            if failed or len(replies) < job["clients"]:  # Flower would go on with those that are left
                raise RuntimeError(f"{len(replies)} of {job['clients']} clients answered; errors: {failed}")
            merged = super().aggregate_train(server_round, replies)
            result["seconds"].append(time.perf_counter() - self.begun)
            result["loop_seconds"].append([float(reply.content["metrics"]["seconds"]) for reply in replies])
            return merged

    app = ServerApp()

    @app.main()
    def main(grid: Any, context: Any) -> None:
        torch.set_num_threads(job["cpus"])
        clients = job["clients"]
        model = load_model(job)
        strategy = TimedFedAvg(
            fraction_evaluate=0.0, min_train_nodes=clients, min_available_nodes=clients, min_evaluate_nodes=0
        )
        strategy.start(grid=grid, initial_arrays=ArrayRecord(trained_state(model)), num_rounds=job["rounds"])

    return app


def main(path: Path) -> None:
    """Run a job and write its result."""
    from flwr.simulation import run_simulation

    job = json.loads(path.read_text(encoding="utf-8"))
    result: dict[str, Any] = {"seconds": [], "loop_seconds": []}
    run_simulation(
        server_app=server_app(job, result),
        client_app=client_app(job),
        num_supernodes=job["clients"],
        backend_config={
            "init_args": {"num_cpus": job["cpus"], **job["ray"]},
            "client_resources": {"num_cpus": job["cpus_per_client"], "num_gpus": 0.0},
        },
    )
    if len(result["seconds"]) < job["rounds"]:
        raise SystemExit(f"{path}: Flower finished {len(result['seconds'])} of {job['rounds']} rounds")
    Path(job["result"]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
