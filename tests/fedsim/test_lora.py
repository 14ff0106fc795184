"""Federated LoRA: each method's algebra, its bytes, and its local tensors."""

from dataclasses import replace

import pytest
import torch

from fedsim import aggregation
from fedsim.adapter_config import AdapterConfig
from fedsim.aggregation import Watch
from fedsim.errors import FederationError
from fedsim.lora import Layer, lora_of
from tests.fedsim.conftest import LORA, assert_same_run
from tests.fedsim.test_adapters import DEPTH, HEAD, D

N_A = N_B = 2 * DEPTH * LORA.r * D
BOTH, K = N_A + N_B, 3
DENSE = 2 * DEPTH * D * D
# (method, options) -> values of one client without the head: up, and down by kind in the second round.
METHODS = {
    "fedit": ("fedavg", {}, BOTH, {"parameters": BOTH}),
    "ffa-lora": ("ffa_lora", {}, N_B, {"parameters": N_B}),
    "ffa-lora-frozen": ("ffa_lora", {"head": "frozen"}, N_B - HEAD, {"parameters": N_B - HEAD}),
    "rolora": ("rolora", {}, N_A, {"parameters": N_B}),
    "fedsa-lora": ("fedsa_lora", {}, N_A - HEAD, {"parameters": N_A - HEAD}),
    "fedsa-lora-shared": ("fedsa_lora", {"head": "shared"}, N_A, {"parameters": N_A}),
    "fedsa-lora-in-turn": ("fedsa_lora", {"in_turn": True}, N_A - HEAD, {"parameters": N_A - HEAD}),
    "share-b": ("share_b", {}, N_B, {"parameters": N_B}),
    "flora": ("flora", {}, BOTH, {"parameters": 0, "stacks": K * BOTH}),
    "flexlora": ("flexlora", {}, BOTH, {"parameters": BOTH}),
    "flexlora-both": ("flexlora", {"values": "both"}, BOTH, {"parameters": BOTH}),
    "fedex-lora": ("fedex_lora", {}, BOTH, {"parameters": BOTH, "residuals": (K - 1) * BOTH}),
    "fedex-lora-dense": ("fedex_lora", {"residual": "dense"}, BOTH, {"parameters": BOTH, "residuals": DENSE}),
    "fedex-lora-transposed": ("fedex_lora", {"residual": "transposed"}, BOTH, {"parameters": BOTH, "residuals": DENSE}),
    "fedrot-lora": ("fedrot_lora", {}, BOTH, {"parameters": BOTH}),
    "fedrot-lora-soft": ("fedrot_lora", {"strength": 0.5}, BOTH, {"parameters": BOTH}),
    "fedsvd": ("fedsvd", {}, N_B, {"parameters": BOTH}),
    "hetlora": ("hetlora", {"ranks": [2]}, BOTH, {"parameters": BOTH}),
}
EXACT = ("flora", "fedex-lora", "fedex-lora-dense", "ffa-lora", "rolora", "fedsvd")  # exact in every round


def adapted(small, config=LORA, **changes):
    """A workload whose model has an adapter."""
    return small.workload(adapter=config, **{"batch_size": 8, **changes})


def build(small, name, config=LORA, **changes):
    method, options, *_ = METHODS[name]
    workload = adapted(small, config, **changes)
    return small.algorithm(method, workload, **options), workload


def run(small, name, config=LORA, rounds=2, clients=None, codec="fp32", **changes):
    algorithm, workload = build(small, name, config, **changes)
    return small.run(algorithm, codec, rounds=rounds, clients=clients), algorithm, workload


def merged(workload, params):
    """The weights with merged adapters, by layer, and the head."""
    lora = lora_of(workload, "a test")
    weights = {
        layer.weight: params[layer.weight] + lora.scale * params[layer.b] @ params[layer.a] for layer in lora.layers
    }
    return weights | {name: params[name] for name in lora.head}


def merged_server(ended, _, workload):
    """The server's merged weights after a run."""
    return merged(workload, workload.server_params(ended.state))


@pytest.mark.parametrize(("codec", "size"), [("fp32", 4), ("fp16", 2)])
@pytest.mark.parametrize("name", METHODS)
def test_bytes_are_the_closed_form(small, name, codec, size):
    _, _, up, down = METHODS[name]
    ended, *_ = run(small, name, codec=codec)
    expected = {("up", "parameters"): up + HEAD}
    expected |= {("down", kind): values + HEAD * (kind == "parameters") for kind, values in down.items()}
    for client in range(K):
        rows = [row for row in ended.channel.ledger.rows if (row.round, row.client) == (2, client)]
        sent = {(row.direction, row.kind): row.bytes for row in rows}
        assert sent == {key: size * values for key, values in expected.items() if values}
    assert all(value.isfinite().all() for value in ended.state.shared.values())


@pytest.mark.parametrize("name", [*EXACT, "fedit", "fedex-lora-transposed"])
def test_the_aggregate_is_the_mean_of_the_clients_models_if_it_is_exact(small, name):
    """In every round; the mean of the factors is not."""
    ends, differences = [], []

    def trained(update, work):
        for each in work:
            yield update(each)
            ends.append(merged(workload, workload.model.snapshot(workload.model.parameters)))

    def compare(ended):
        for layer, value in merged(workload, workload.server_params(ended.state)).items():
            mean = sum(len(client.train) / 30 * end[layer] for client, end in zip(small.clients, ends, strict=True))
            differences.append(float((value - mean).abs().max()))
        ends.clear()

    method, options, *_ = METHODS[name]
    workload = replace(adapted(small, learning_rate=5e-3 if name in EXACT else 0.05), map_clients=trained)
    small.run(small.algorithm(method, workload, **options), rounds=3, on_round=compare)
    assert max(differences) < 1e-5 if name in EXACT else max(differences) > 1e-3


@pytest.mark.parametrize("name", METHODS)
def test_the_measured_error_is_zero_where_the_aggregate_is_exact(small, name):
    """Up to fp32 rounding; if products are merged, up to the rounding of whole weights."""
    ended, *_ = run(small, name, learning_rate=0.05)
    errors = [result.metrics.measured["aggregation_error"] for result in ended.results]
    if name.removesuffix("-frozen") in EXACT:
        assert max(errors) < 1e-5
    else:
        assert errors[1] > 1e-4


def test_what_is_measured_is_what_two_clients_say_by_hand():
    """B̄Ā − mean(B_k A_k) of B = 1, A = e1 and B = 3, A = e2, of one weight 1 / 4 and one 3 / 4."""
    layer = Layer("w", "a", "b")
    weight, zero = torch.zeros(1, 2), torch.zeros(1, 1)
    begun = {"w": weight, "a": torch.tensor([[1.0, 1.0]]), "b": zero}
    ends = [
        {"b": torch.tensor([[1.0]]), "a": torch.tensor([[1.0, 0.0]])},
        {"b": torch.tensor([[3.0]]), "a": torch.tensor([[0.0, 1.0]])},
    ]

    def measures_after(after):
        watch = Watch([layer], 2.0, clients=(0, 1))
        for client, end in enumerate(ends):
            watch.begun(client, begun)
            watch.trained(client, end)
        return watch.measured([0.25, 0.75], lambda client: begun | after)

    measures = measures_after({"b": torch.tensor([[2.5]]), "a": torch.tensor([[0.25, 0.75]])})
    exact, inexact = torch.tensor([0.25, 2.25]), torch.tensor([2.5 * 0.25, 2.5 * 0.75])
    assert measures["aggregation_error"] == pytest.approx(float((inexact - exact).norm() / exact.norm()))
    assert measures["cosine_a"] == 0
    assert measures["cosine_b"] == pytest.approx(1)
    assert measures["overlap_a"] == pytest.approx(0)
    merged = measures_after({"w": 2.0 * exact[None]})  # as FLoRA has it: in the weight, times the scale
    assert merged["aggregation_error"] == pytest.approx(0)


def test_the_overlap_of_a_does_not_depend_on_its_basis():
    """Rotated factors have the same rows' space, though their cosine is not 1."""
    one = torch.randn(4, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rotation, _ = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)))
    assert aggregation._overlap(one, rotation @ one) == pytest.approx(1)
    assert aggregation._cosine(one, rotation @ one) < 0.9
    assert aggregation._overlap(one[:2], one[2:]) < 0.5
    assert aggregation._overlap(one[:2], one) == pytest.approx(1)


def test_clients_with_draws_of_their_own_begin_with_different_a(small):
    independent = replace(LORA, draws="own")
    first = [run(small, "share-b", config, rounds=1)[0].results[0].metrics.measured for config in (LORA, independent)]
    assert first[0]["cosine_a"] > 0.9
    assert abs(first[1]["cosine_a"]) < 0.5
    assert first[0]["overlap_a"] > 0.9
    shared = [run(small, "fedit", config, rounds=1)[0].state.shared for config in (LORA, independent)]
    assert all(torch.equal(shared[0][name], shared[1][name]) for name in shared[0])  # the server's A is one draw


@pytest.mark.parametrize(
    "name", ["fedit", "fedex-lora", "flora", "flexlora", "flexlora-both", "fedrot-lora", "hetlora"]
)
def test_one_client_is_central_lora_for_a_round(small, name):
    one = small.clients[1:2]
    workload = adapted(small)
    central = small.run(small.algorithm("central", workload), clients=one, rounds=1)
    expected = merged_server(central, None, workload)
    # A single client is not the first one here: cohorts are drawn by place.
    for layer, value in merged_server(*run(small, name, rounds=1, clients=one)).items():
        torch.testing.assert_close(value, expected[layer], rtol=0, atol=1e-5)


def test_flexlora_of_full_rank_is_fedex(small):
    full = AdapterConfig("lora", r=D, alpha=4.0)
    flexlora, fedex = (merged_server(*run(small, name, full, rounds=1)) for name in ("flexlora", "fedex-lora"))
    for layer, value in flexlora.items():
        torch.testing.assert_close(value, fedex[layer], rtol=0, atol=1e-5)


def test_hetlora_of_equal_ranks_is_fedit(small):
    assert_same_run(run(small, "hetlora")[0], run(small, "fedit")[0])


def test_a_padded_client_is_one_of_its_rank_and_sends_no_more(small):
    ranks = {"ranks": [1, 2, 1]}
    for method in ("hetlora", "flexlora", "flora"):
        ended = small.run(small.algorithm(method, adapted(small), **ranks))
        rows = [row for row in ended.channel.ledger.rows if row.round == 2 and row.direction == "up"]
        assert {row.client: row.values - HEAD for row in rows} == {0: BOTH // 2, 1: BOTH, 2: BOTH // 2}
    workload = adapted(small)
    alone = small.run(small.algorithm("hetlora", workload, ranks=[1]), clients=small.clients[:1])
    for layer in lora_of(workload, "a test").layers:
        assert not alone.state.shared[layer.a][1:].any()
        assert not alone.state.shared[layer.b][:, 1:].any()


@pytest.mark.parametrize("method", ["hetlora", "flexlora", "flora"])
def test_a_client_of_rank_1_trains_like_one_that_has_only_the_first_row(small, method):
    """In the first round B = 0, so that a second row of A would gain a gradient through B."""
    ends = []

    def trained(update, work):
        for each in work:
            yield update(each)
            ends.append(workload.model.snapshot(workload.model.parameters))

    workload = replace(adapted(small), map_clients=trained)
    ended = small.run(small.algorithm(method, workload, ranks=[1]), clients=small.clients[:1], rounds=2)
    for layer in lora_of(workload, "a test").layers:
        for end in ends:
            assert not end[layer.a][1:].any()
            assert not end[layer.b][:, 1:].any()
        assert ended.state.shared[layer.a].shape == workload.initial[layer.a].shape


@pytest.mark.parametrize("codec", ["int8", "topk:0.1"])
@pytest.mark.parametrize("name", ["flora", "fedex-lora", "fedex-lora-dense"])
def test_a_codec_of_changes_leaves_clients_with_the_servers_merged_weights(small, name, codec):
    """Stacks and residuals are not parameters, so a codec does not shorten them and clients follow exactly."""
    method, options, *_ = METHODS[name]
    starts = []

    def noted(update, work):
        for each in work:
            starts.append({**each.shared, **each.received})
            yield update(each)

    workload = replace(adapted(small, learning_rate=0.05), map_clients=noted)
    server = [workload.initial]
    ended = small.run(
        small.algorithm(method, workload, **options),
        codec,
        rounds=3,
        on_round=lambda ended: server.append(workload.server_params(ended.state)),
    )
    layers = lora_of(workload, "a test").layers
    for round, before in enumerate(server[1:-1], 1):
        for start in starts[round * K : (round + 1) * K]:
            for layer in layers:
                assert not torch.equal(before[layer.weight], workload.initial[layer.weight])
                torch.testing.assert_close(start[layer.weight], before[layer.weight], rtol=0, atol=0)
    if name == "flora":
        assert max(result.metrics.measured["aggregation_error"] for result in ended.results) < 1e-5


@pytest.mark.parametrize("name", ["fedrot-lora", "fedrot-lora-soft"])
def test_a_rotation_leaves_the_product_and_comes_nearer_to_what_was_received(small, name):
    algorithm, workload = build(small, name)
    generator = torch.Generator().manual_seed(0)
    lora = lora_of(workload, "a test")
    received, trained = (
        {name: torch.randn(workload.initial[name].shape, generator=generator) for name in lora.a | lora.b} for _ in "12"
    )
    finish = algorithm.client_update.__self__.finish
    assert finish(1, received, trained) == trained
    for round in (2, 3):
        turned = finish(round, received, trained)
        for layer in lora.layers:
            torch.testing.assert_close(turned[layer.b] @ turned[layer.a], trained[layer.b] @ trained[layer.a])
            factor = layer.b if round % 2 else layer.a
            before, after = ((each[factor] - received[factor]).norm() for each in (trained, turned))
            assert after < before


def test_fedsvd_makes_a_orthonormal_and_keeps_the_product(small):
    ended, _, workload = run(small, "fedsvd")
    for layer in lora_of(workload, "a test").layers:
        a = ended.state.shared[layer.a]
        torch.testing.assert_close(a @ a.T, torch.eye(len(a)), rtol=0, atol=1e-5)


def test_local_factors_of_two_clients_differ_and_share_no_memory(small):
    ended, _, workload = run(small, "fedsa-lora", rounds=1)
    lora = lora_of(workload, "a test")
    first, second = (ended.state.clients.get(client) for client in (0, 1))
    assert first.keys() == lora.b | lora.head
    for name in lora.b:
        assert not torch.equal(first[name], second[name])
        assert first[name].untyped_storage().data_ptr() != second[name].untyped_storage().data_ptr()


def test_in_turn_all_clients_have_one_b_which_each_has_trained(small):
    ended, algorithm, workload = run(small, "fedsa-lora-in-turn", rounds=1)
    apart, *_ = run(small, "fedsa-lora", rounds=1)
    name = min(lora_of(workload, "a test").b)
    everyone = [ended.state.clients.get(client)[name] for client in range(K)]
    assert all(torch.equal(one, everyone[0]) for one in everyone)
    assert algorithm.client_update is None  # other processes would not get it in turn
    alone, *_ = run(small, "fedsa-lora-in-turn", rounds=1, clients=small.clients[:1])
    assert torch.equal(alone.state.clients.get(0)[name], apart.state.clients.get(0)[name])
    assert not torch.equal(everyone[0], apart.state.clients.get(2)[name])


def test_who_missed_a_round_gets_the_changed_weights(small):
    workload = adapted(small, rounds=4, participation=0.5)
    for method in ("flora", "fedex_lora"):
        ended = small.run(small.algorithm(method, workload), rounds=4, participation=0.5)
        for round in (2, 3, 4):
            here, before = workload.cohort(round), workload.cohort(round - 1)
            rows = {
                row.client: row for row in ended.channel.ledger.rows if row.round == round and row.kind != "parameters"
            }
            assert set(rows) == set(here)
            for client in here:
                if client not in before:
                    assert (rows[client].kind, rows[client].values) == ("residuals", DENSE)


@pytest.mark.parametrize("name", [name for name, (method, *_) in METHODS.items() if method != "fedavg"])
def test_a_model_without_lora_is_refused(small, name):
    method, options, *_ = METHODS[name]
    for workload, adapter in ((small.workload(), "none"), (adapted(small, AdapterConfig("bitfit")), "bitfit")):
        with pytest.raises(FederationError, match=f"expected a model with the adapter lora, found {adapter}"):
            small.algorithm(method, workload, **options)


@pytest.mark.parametrize(
    ("method", "options", "expected"),
    [
        ("fedrot_lora", {"strength": 0}, "strength: expected a number above 0"),
        ("hetlora", {"ranks": [3]}, "ranks: expected integers from 1 to the adapter's r, 2, found 3"),
        ("fedex_lora", {"residual": "none"}, "residual: expected one of factored, dense, transposed"),
        ("flexlora", {"values": "a"}, "values: expected one of b, both"),
        ("ffa_lora", {"head": "own"}, "head: expected one of shared, local, frozen"),
    ],
)
def test_wrong_options_are_refused(small, method, options, expected):
    with pytest.raises(FederationError, match=expected):
        small.algorithm(method, adapted(small), **options)
