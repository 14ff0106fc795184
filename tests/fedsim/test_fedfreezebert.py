"""D- and C-FedFreezeBERT on cached features: what must be equal, what crosses the wire, kill and resume."""

import pytest
import torch

from fedsim.models.heads import HEADS
from fedsim.wire import LedgerRow

WIDTH = 16  # the width of padded features: the workload's max_length
OF_TEXTS = [name for name, kind in HEADS.items() if not kind.answers_tokens]
AGGREGATORS = ("ordinary", "average", "psum", "hsum")
ONE_ROUND = {"batch_size": 4, "epochs": 2}


def values_of(workload, names):
    return sum(workload.model.parameters[name].numel() for name in names)


@pytest.mark.parametrize("width", [WIDTH, None])
@pytest.mark.parametrize("head", OF_TEXTS)
def test_cached_is_recomputed_to_rounding(deep, head, width):
    """The same batches of training, of features computed in others; few steps, as Adam magnifies rounding."""

    def run(cached):
        workload = deep.workload(head=head, batch_size=16, learning_rate=1e-4, width=width)
        return deep.run(deep.algorithm("fedfreezebert", workload, cached=cached, proximal=0.05), rounds=1)

    cached, anew = run(True), run(False)
    losses, expected = (one.results[0].metrics.client_losses for one in (cached, anew))
    assert losses == pytest.approx(expected, abs=1e-5)
    for name, tensor in cached.state.shared.items():
        torch.testing.assert_close(tensor, anew.state.shared[name], rtol=0, atol=1e-4)


@pytest.mark.parametrize("head", AGGREGATORS)
@pytest.mark.parametrize("features", ["padded", "trimmed"])
def test_training_on_the_server_is_central_training_on_the_same_features(deep, assert_same_tensors, head, features):
    """Of [CLS] alone the server knows no lengths: with batches by length it would form others than central training."""
    width = WIDTH if head == "ordinary" else None

    def run(name, **options):
        workload = deep.workload(head=head, width=width, **ONE_ROUND)
        return deep.run(deep.algorithm(name, workload, **options), rounds=1)

    server, central = run("fedfreezebert_central", features=features), run("central", train="head")
    assert_same_tensors(server.state.shared, central.state.shared)
    assert server.results == central.results


@pytest.mark.parametrize("codec", ["fp32", "fp16"])
@pytest.mark.parametrize("head", AGGREGATORS)
@pytest.mark.parametrize("features", ["padded", "trimmed"])
def test_bytes_are_those_of_the_closed_form(deep, head, features, codec):
    """Equation of section 3.2: 4 n_s n_t dim n_layers + n_c SizeOf(W_s), and masks and labels beside it."""
    workload = deep.workload(head=head)
    run = deep.run(deep.algorithm("fedfreezebert_central", workload, features=features), codec, rounds=1)
    size = 2 if codec == "fp16" else 4
    states, weights = workload.model.network.head.states, values_of(workload, workload.model.groups.head)
    expected = []
    for client in deep.clients:
        texts = len(client.train)
        tokens = int(deep.examples.lengths[client.train.indices].sum())
        rows, masks = {
            ("padded", True): (texts * WIDTH, [("masks", texts * WIDTH, texts * WIDTH)]),  # a byte a token
            ("trimmed", True): (tokens, [("masks", texts, 4 * texts)]),  # int32: tokens of each text
        }.get((features, head != "ordinary"), (texts, []))
        values = rows * states * deep.hidden
        sent = [("features", values, size * values), *masks, ("labels", texts, 8 * texts)]
        expected += [LedgerRow(1, client.id, "up", *row) for row in sent]
    expected += [LedgerRow(1, client.id, "down", "parameters", weights, size * weights) for client in deep.clients]
    rounds = [row for row in run.channel.ledger.rows if row.round == 1]
    assert rounds == expected
    encoder = values_of(workload, workload.model.groups.names) - weights
    assert run.channel.ledger.setup_bytes == 3 * 4 * encoder  # W_s begins on the server
