"""Training the word embeddings of a client's own words alone: the same bits as training all of them."""

import contextlib

import numpy as np
import pytest
import torch

from fedsim.data import Subset
from fedsim.models.model import Model
from fedsim.models.sequence import encoder_from_config, with_head
from fedsim.objectives import Classification
from fedsim.precision import resolve_precision
from fedsim.training import LocalTraining, only_words_of

WORDS = "encoder.embeddings.word_embeddings.weight"


def family(config, name):
    """An encoder of a family; RoBERTa's counts positions from behind its padding id."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        encoder = encoder_from_config({**config, "model_type": name, "max_position_embeddings": 20, "pad_token_id": 1})
    return Model(with_head(encoder, 2, seed=0), resolve_precision("fp32", "cpu"), Classification(2))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fedavg", {"embeddings": "global"}),
        ("fedavg", {"embeddings": "global", "proximal": 0.5}),
        ("fedsplitbert", {"critical_layer": 1, "embeddings": "local"}),
        ("central", {"embeddings": "global"}),
    ],
)
@pytest.mark.parametrize("model", ["bert", "roberta"])
def test_it_changes_no_bit(small, assert_same_run, monkeypatch, name, options, model):
    def run():
        workload = small.workload(lambda: family(small.config, model), weight_decay=0.0, epochs=2, batch_size=4)
        return small.run(small.algorithm(name, workload, **options))

    compact = run()
    monkeypatch.setattr(LocalTraining, "_words", lambda *_: contextlib.nullcontext())
    assert_same_run(compact, run())


def test_rows_of_other_words_are_not_trained_and_those_met_come_back(small):
    resident = small.load()
    before = resident.parameters[WORDS].detach().clone()
    subset = Subset(small.examples, np.arange(3))
    met = small.examples.words(subset.indices)
    assert 3 < len(met) < len(before)
    with only_words_of(subset, resident) as words:
        assert words is not None
        assert resident.parameters[WORDS].shape == (len(met), before.shape[1])
        seen = words.batch(small.examples.collate(subset.indices))
        assert torch.equal(words.met[seen["input_ids"]], small.examples.collate(subset.indices)["input_ids"])
        with torch.no_grad():
            resident.parameters[WORDS].add_(1)
    after = resident.parameters[WORDS].detach()
    changed = (after != before).any(dim=1).nonzero().flatten().numpy()
    np.testing.assert_array_equal(changed, met)
    assert resident.parameters[WORDS] is resident.network.encoder.get_input_embeddings().weight
