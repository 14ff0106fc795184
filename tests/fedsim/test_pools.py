"""What comes down in a round is what a client lacks, whoever takes part, and nothing twice."""

from __future__ import annotations

import pytest

CLIENTS, ROUNDS = 3, 5


@pytest.fixture
def setting_of(deep):
    def build(**changes):
        return deep.setting(**{"rounds": ROUNDS, "batch_size": 8, **changes})

    return build


@pytest.fixture
def method(deep):
    def build(setting, local_layers=2, **options):
        return deep.algorithm("fedbfpt", setting, local_layers=local_layers, **options)

    return build


@pytest.fixture
def run(deep):
    def runs(algorithm, **engine):
        return deep.run(algorithm, rounds=ROUNDS, **engine)

    return runs


@pytest.mark.parametrize("participation", [1.0, 0.67, 0.34])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"trained": "all"},
        {"trained": "all", "draw": "official"},
        {"schedule": "successive"},
        {"local_layers": [2, 3, 4], "trained": "all"},
    ],
)
def test_a_pool_holds_what_the_client_trains_on(
    setting_of, method, run, recording_channel, assert_same_tensors, monkeypatch, options, participation
):
    """What each client trains on comes from what it was given before: the model, then what came down."""
    setting, channel = setting_of(participation=participation), recording_channel()
    algorithm = method(setting, **options)
    pools = {client: dict(setting.initial) for client in range(CLIENTS)}
    begun = []
    train = type(setting.training).run

    def watched(self, model, subset, names, number, client, *words, **keys):
        view = algorithm.plan(number, client).view
        got = channel.received[number, client, "down"]
        pools[client] |= {view[name]: tensor for name, tensor in got.items()}
        assert_same_tensors(model.read(view), {name: pools[client][target] for name, target in view.items()})
        begun.append((number, client))
        return train(self, model, subset, names, number, client, *words, **keys)

    monkeypatch.setattr(type(setting.training), "run", watched)
    run(algorithm, channel=channel, participation=participation)
    assert len(begun) == ROUNDS * round(participation * CLIENTS)
