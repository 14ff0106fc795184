"""A frozen encoder: cached features to the bit, what the server receives, and training on both."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fedsim import features
from fedsim.data import Subset
from fedsim.errors import FederationError
from fedsim.features import FeatureCache
from fedsim.wire import LedgerRow
from tests.fedsim.conftest import WIDTH, assert_same_tensors, local_training

AGGREGATORS = ("ordinary", "average", "psum", "hsum")
ONE_ROUND = {"batch_size": 4, "epochs": 2}
KINDS = ("ordinary", "average", "psum")  # [CLS] of one state, all tokens of one, all tokens of four


def everything(examples):
    return Subset(examples, np.arange(len(examples)))


def computed(cache, deep, head="average", width=None, precision="fp32", examples=None, half=False):
    model = deep.load(head=head, precision=precision)
    return cache.subset(model, everything(examples or deep.examples), 64, width, half)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.npy"))


@pytest.fixture
def asked(monkeypatch):
    """The computed features."""
    calls, original = [], features._computed
    monkeypatch.setattr(features, "_computed", lambda *arguments: calls.append(arguments) or original(*arguments))
    return calls


@pytest.mark.parametrize("width", [None, WIDTH])
@pytest.mark.parametrize("head", KINDS)
def test_features_are_the_hidden_states_to_the_bit_in_the_same_batches(deep, head, width):
    """As the cache makes them: the shortest first, in batches of one length or padded to one width."""
    size = 7
    model = deep.load(head=head)
    subset = FeatureCache().subset(model, everything(deep.examples), size, width)
    order = np.argsort(deep.examples.lengths, kind="stable")
    lengths = deep.examples.lengths[order]
    for length in [None] if width else np.unique(lengths):
        group = order[lengths == length] if length else order
        for start in range(0, len(group), size):
            indices = group[start : start + size]
            batch = deep.examples.collate(indices, width)
            cached = subset.examples.collate(indices, width)
            mask = batch["attention_mask"][None, :, :, None] if model.network.head.tokens else 1
            with torch.inference_mode():
                assert torch.equal(cached["features"], model.features(batch) * mask)
            assert torch.equal(cached["labels"], batch["labels"])


def test_features_are_computed_once_and_for_each_thing_that_decides_them(deep, tmp_path, asked):
    others = replace(deep.examples, tokens=deep.examples.tokens[::-1].copy())
    relabelled = replace(deep.examples, labels=1 - deep.examples.labels)
    changes = [
        {}, {"head": "ordinary"}, {"width": WIDTH}, {"precision": "bf16"}, {"examples": others}, {"half": True},
        {"cache": FeatureCache(tmp_path, "another encoder")},
    ]  # fmt: skip
    for _ in range(2):  # the second time by another cache, as in another run
        for change in changes:
            computed(**{"cache": FeatureCache(tmp_path, "encoder"), "deep": deep} | change)
        for change in ({"examples": relabelled}, {"precision": "bf16", "half": True}):  # decide nothing
            computed(FeatureCache(tmp_path, "encoder"), deep, **change)
    assert len(asked) == len(files(tmp_path)) == len(changes)


def test_each_layer_has_a_file_which_heads_share(deep, tmp_path, asked):
    computed(FeatureCache(tmp_path), deep)
    (last,) = files(tmp_path)
    before = (tmp_path / last).read_bytes(), (tmp_path / last).stat().st_ino
    for head in ("psum", "hsum", "psum-copied"):
        shared, anew = (computed(FeatureCache(folder), deep, head) for folder in (tmp_path, None))
        for rows, same in zip(shared.examples.layers_TD, anew.examples.layers_TD, strict=True):
            np.testing.assert_array_equal(rows, same)
    assert len(asked) == 2 + 3  # in this folder the last layer, then the three before it
    assert files(tmp_path) == [last.replace("-0.npy", f"-{layer}.npy") for layer in range(4)]
    assert before == ((tmp_path / last).read_bytes(), (tmp_path / last).stat().st_ino)


@pytest.mark.parametrize("head", KINDS)
def test_half_precision_rounds_features_and_takes_half_the_place(deep, tmp_path, head):
    subsets = {half: computed(FeatureCache(tmp_path / str(half)), deep, head, half=half) for half in (False, True)}
    whole, half = (subset.examples.collate(subset.indices)["features"] for subset in subsets.values())
    assert half.dtype == torch.float32
    assert torch.equal(half, whole.half().float())
    assert not torch.equal(half, whole)
    sizes = [[rows.nbytes for rows in subset.examples.layers_TD] for subset in subsets.values()]
    assert sizes[0] == [2 * size for size in sizes[1]]


def test_features_that_half_precision_cannot_hold_are_an_error():
    with pytest.raises(FederationError, match="expected values within half precision"):
        features.to_bytes(torch.tensor([[7e4]]), torch.float16)


def test_a_task_whose_features_are_larger_than_the_limit_is_an_error_that_names_the_option(deep, tmp_path):
    size = len(deep.examples.tokens) * deep.hidden * 4
    with pytest.raises(FederationError, match=r"at most .* GB, .* GB for \d+ examples;.*options\.cached=false"):
        computed(FeatureCache(tmp_path, limit_bytes=size - 1), deep)
    computed(FeatureCache(tmp_path, limit_bytes=size), deep)


def test_an_encoder_that_was_trained_since_has_other_features(deep, tmp_path):
    """In one process, with the same backbone's name."""
    cache, model, subset = FeatureCache(tmp_path, "one encoder"), deep.load(head="average"), everything(deep.examples)

    def features_of(cache):
        return cache.subset(model, subset, 64, WIDTH).examples.collate(subset.indices)["features"]

    original, before = model.snapshot(model.parameters), features_of(cache)
    layer = sorted(model.groups.up_to(1))
    local_training(seed=0, learning_rate=1e-3, batch_size=16).run(model, subset, layer, 1, 0, {}, 0.0)
    after = features_of(cache)
    assert torch.equal(after, features_of(FeatureCache()))
    assert not torch.equal(after, before)
    model.write(original)
    assert torch.equal(features_of(cache), before)
    assert len(files(tmp_path)) == 2


def values_of(workload, names):
    return sum(workload.model.parameters[name].numel() for name in names)


@pytest.mark.parametrize("head", AGGREGATORS)
@pytest.mark.parametrize("features", ["padded", "trimmed"])
def test_training_on_the_server_is_central_training_on_the_same_features(deep, head, features):
    """If only [CLS] is sent, the server knows no lengths, so batches by length would differ from central training's."""
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
