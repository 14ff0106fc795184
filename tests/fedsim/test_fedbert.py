"""FedBERT's algorithms: equalities to the bit, and bytes by closed form."""

import pytest

from tests.fedsim.conftest import CAUSAL, GPT2, MASKED, WIDTH, Small, assert_same_tensors

ROUNDS, EPOCHS, BATCH = 3, 2, 8
PARALLEL = [("embeddings", "shared"), ("head-embeddings", "shared"), ("embeddings", "own"), ("all", "own")]


def masked(small, **changes):
    """Masked language modelling with all that could differ in split training: dropout, schedule, moments."""
    values = {"epochs": EPOCHS, "rounds": ROUNDS, "batch_size": BATCH, "schedule": "linear", "warmup": 0.2,
              "optimizer": "kept", **changes}  # fmt: skip
    return small.workload(objective=MASKED, head="masked-lm", **values)


def causal(small, **changes):
    values = {"epochs": EPOCHS, "rounds": ROUNDS, "batch_size": BATCH, "optimizer": "kept", **changes}
    return Small(**GPT2).workload(objective=CAUSAL, head="causal-lm", **values)


def run(small, workload, name, clients=None, codec="fp32", **options):
    algorithm = small.algorithm(name, workload, **options)
    return small.run(algorithm, codec=codec, clients=clients, rounds=workload.training.config.rounds)


def tensors(outcome):
    return {name: value.cpu() for name, value in outcome.state.shared.items()}


@pytest.mark.parametrize("of", [masked, causal])
@pytest.mark.parametrize("optimizer", ["kept", "fresh"])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fedbert_sequential", {"turns": "pass"}),
        ("fedbert_sequential", {"turns": "round", "handed_on": "optimizer"}),
        ("fedbert_parallel", {"averaged": "embeddings"}),
        ("fedbert_parallel", {"averaged": "head-embeddings", "transformer": "own"}),
    ],
)
def test_with_one_client_it_is_central_training(small, of, optimizer, name, options):
    alone = small.clients[:1]
    split = run(small, of(small, clients=1, optimizer=optimizer), name, alone, **options)
    central = run(small, of(small, clients=1, optimizer=optimizer), "central", alone, embeddings="global")
    workload = of(small, clients=1)
    server = small.algorithm(name, workload, **options).server(split.state)
    assert_same_tensors(server, workload.server_params(central.state))
    assert [result.client_scores for result in split.results] == [result.client_scores for result in central.results]
    losses = [[result.metrics.train_loss for result in each.results] for each in (split, central)]
    assert losses[0] == pytest.approx(losses[1])


@pytest.mark.parametrize(("of", "optimizer"), [(masked, "kept"), (causal, "fresh")])
def test_parallel_fedavg_is_federated_averaging(small, of, optimizer):
    split = run(small, of(small, optimizer=optimizer), "fedbert_parallel", averaged="all", transformer="own")
    whole = run(small, of(small, optimizer=optimizer), "fedavg", embeddings="global")
    assert_same_tensors(tensors(split), tensors(whole))
    assert split.results[-1].client_scores == whole.results[-1].client_scores


@pytest.mark.parametrize("of", [masked, causal])
@pytest.mark.parametrize("clip_norm", [0.05, 0.5])
def test_parallel_fedavg_with_clipping_is_federated_averaging_if_the_whole_model_is_clipped(small, of, clip_norm):
    """Equal up to the rounding of a norm, which a large epsilon keeps AdamW from magnifying; 8 bytes per batch."""

    def split(scope):
        workload = of(small, clip_norm=clip_norm, clip_scope=scope, epsilon=1e-4)
        return run(small, workload, "fedbert_parallel", averaged="all", transformer="own")

    def distance(one):
        return max((value - averaged[name]).abs().max() for name, value in tensors(one).items())

    averaged = tensors(run(small, of(small, clip_norm=clip_norm, epsilon=1e-4), "fedavg", embeddings="global"))
    by_model, by_side = split("model"), split("side")
    assert distance(by_model) < 1e-6 < 1e-3 < distance(by_side)
    batches = [EPOCHS * -(-len(client.train) // BATCH) for client in small.clients] * ROUNDS
    norms = [row[3:] for row in by_model.channel.ledger.rows if row.kind == "norms"]
    assert norms == [("norms", count, 4 * count, count) for count in batches for _ in ("up", "down")]
    others = [row for row in by_model.channel.ledger.rows if row.kind != "norms"]
    assert others == by_side.channel.ledger.rows


def crossing_bytes(client, width, size=4):
    """4pL of a round: activations and gradients, up and down, of texts padded to one width."""
    return 4 * EPOCHS * len(client.train) * WIDTH * width * size


@pytest.mark.parametrize(("codec", "size"), [("fp32", 4), ("fp16", 2)])
@pytest.mark.parametrize(("averaged", "transformer"), PARALLEL)
def test_parallel_bytes_are_4pl_and_averages(small, codec, size, averaged, transformer):
    workload = masked(small, width=WIDTH)
    ledger = run(
        small, workload, "fedbert_parallel", codec=codec, averaged=averaged, transformer=transformer
    ).channel.ledger
    parts = workload.model.groups
    names = parts.embeddings if averaged == "embeddings" else parts.embeddings | parts.head
    payload = size * sum(workload.initial[name].numel() for name in names)
    for client in small.clients:
        for number in range(1, ROUNDS + 1):
            rows = {(row.direction, row.kind): row for row in ledger.rows if row[:2] == (number, client.id)}
            assert sum(row.bytes for (_, kind), row in rows.items() if kind in ("activations", "gradients")) == (
                crossing_bytes(client, small.hidden, size)
            )
            assert {way: rows[way, "parameters"].bytes for way in ("up", "down")} == {"up": payload, "down": payload}
            assert rows["up", "masks"].bytes == EPOCHS * len(client.train) * WIDTH
            assert rows["up", "activations"].messages == EPOCHS * -(-len(client.train) // BATCH)
            assert len(rows) == 7
