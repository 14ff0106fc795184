"""The attack on features: what it must recover, what it cannot, and that it learns from nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedsim.algorithms import build_algorithm, inversion, nearest_neighbour
from fedsim.algorithms.inversion import known_texts
from fedsim.algorithms.nearest_neighbour import nearest_words
from fedsim.checkpoint import Checkpoint
from fedsim.data import IGNORED, Client, Examples, Subset
from fedsim.engine import run_federation
from fedsim.errors import FederationError
from fedsim.objectives import tokens
from fedsim.training import LocalTraining
from fedsim.wire import Channel

VOCABULARY = 60  # of the small encoder
FIRST, LAST = 1, 2  # stand for [CLS] and [SEP]: not asked for
FREQUENT = 5
TRAIN, TEST = 120, 40


def texts(seed: int, count: int, words=range(3, VOCABULARY)) -> Examples:
    """Texts of 3 to 8 words, whose answers are their words; every second word or so is FREQUENT."""
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(np.array(words), size=rng.integers(3, 9)) for _ in range(count)]
    drawn = [np.where(rng.random(len(text)) < 0.4, FREQUENT, text) for text in drawn]
    lengths = np.array([len(text) + 2 for text in drawn])
    tokens = np.concatenate([[FIRST, *text, LAST] for text in drawn]).astype(np.int32)
    targets = np.concatenate([[IGNORED, *text, IGNORED] for text in drawn]).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Examples(tokens, np.zeros_like(tokens), offsets, np.zeros(count, np.int64), 0, targets)


def clients_of(train: Examples, test: Examples) -> list[Client]:
    """Two clients with half of the texts each; both are scored on the same held-out ones."""
    held_out = {"test": Subset(test, np.arange(len(test)))}
    halves = np.array_split(np.arange(len(train)), 2)
    return [Client(number, Subset(train, half), held_out) for number, half in enumerate(halves)]


def share(answers: np.ndarray, references: np.ndarray) -> float:
    """Tokens recovered at their positions."""
    assert answers.shape == references.shape
    return float((answers == references)[references != IGNORED].mean())


def score(answers: np.ndarray, subset: Subset) -> dict[str, float | None]:
    return {"share": share(answers, subset.references)}


CLIENTS = clients_of(texts(0, TRAIN), texts(1, TEST))
HELD_OUT = CLIENTS[0].evaluation["test"]


@pytest.fixture
def attacked(small):
    """Runs the attack on a model; returns the run, and what it answers on the held-out texts."""

    def attack(name="inversion", load=None, head="average", clients=CLIENTS, epochs=40, checkpoint=None, **options):
        setting = small.setting(load, head=head, epochs=epochs)
        given = {name: value for name, value in {"public_texts": TRAIN, **options}.items() if value is not None}
        algorithm = build_algorithm(name, setting, given)
        run = run_federation(algorithm, clients, Channel(), score, rounds=1, seed=0, checkpoint=checkpoint)
        return run, algorithm.predict(run.state, clients[1], clients[1].evaluation["test"])

    return attack


@pytest.fixture
def sending(small):
    """Loads a model whose one hidden state is made of token ids [B, S] and word embeddings [V, D]."""

    def sender(states):
        def load():
            model = small.load(head="average", kernels="reference")
            words = model.network.encoder.get_input_embeddings().weight
            model.network.states = lambda batch: (states(batch["input_ids"], words),)
            return model

        return load

    return sender


def hidden_in_small_digits(ids, words):
    """Beside 1000 these differences, up to 0.05, are below the steps of fp16, 0.5; fp32 steps by 6e-5."""
    return 1000 + 0.1 * words[ids]


# ---- what is recovered -----------------------------------------------------------------------------------------


def test_word_embeddings_are_inverted_whole(attacked, sending):
    _, answers = attacked(load=sending(lambda ids, words: words[ids]))
    assert share(answers, HELD_OUT.references) == 1.0


def test_so_are_words_that_the_public_texts_do_not_have(attacked, sending):
    clients = clients_of(texts(0, TRAIN, words=range(3, 50)), HELD_OUT.examples)
    _, answers = attacked(load=sending(lambda ids, words: words[ids]), clients=clients)
    new = HELD_OUT.references >= 50
    assert new.sum() > 10
    assert (answers == HELD_OUT.references)[new].mean() > 0.3  # a guess hits one in sixty


@pytest.mark.parametrize("states", ["nothing", "noise"])
def test_without_information_the_most_frequent_token_is_the_best_answer(attacked, sending, states):
    def empty(ids, words):
        return torch.zeros(*ids.shape, words.shape[1])

    def noise(ids, words):
        return torch.randn(*ids.shape, words.shape[1], generator=torch.Generator().manual_seed(ids.sum().item()))

    _, majority = attacked("token_majority")
    _, answers = attacked(load=sending(empty if states == "nothing" else noise), epochs=10)
    floor = share(majority, HELD_OUT.references)
    assert 0.3 < floor < 0.5  # FREQUENT's share
    assert share(answers, HELD_OUT.references) == pytest.approx(floor, abs=0 if states == "nothing" else 0.05)


def test_contextual_states_give_most_tokens_away(attacked):
    run, answers = attacked()
    _, majority = attacked("token_majority")
    rare = np.where(HELD_OUT.references == FREQUENT, IGNORED, HELD_OUT.references)
    assert share(majority, rare) == 0
    assert share(answers, rare) > 0.5
    assert run.results[0].client_scores[0] == {"test": {"share": share(answers, HELD_OUT.references)}}


def test_four_states_are_read_where_the_head_reads_four(deep):
    setting = deep.setting(head="psum", epochs=2)
    algorithm = build_algorithm("inversion", setting, {"public_texts": TRAIN})
    run = run_federation(algorithm, CLIENTS, Channel(), score, rounds=1, seed=0)
    assert run.state.shared["head.inner.weight"].shape[1] == 4 * deep.hidden
    assert sum(name.startswith("head.norms.") for name in run.state.shared) == 4 * 2  # weight and bias


# ---- how features are sent -------------------------------------------------------------------------------------


def test_fp16_takes_away_what_it_cannot_hold(attacked, sending):
    load = sending(hidden_in_small_digits)
    _, exact = attacked(load=load)
    _, rounded = attacked(load=load, sent="fp16")
    _, majority = attacked("token_majority")
    assert share(exact, HELD_OUT.references) > 0.9
    assert share(rounded, HELD_OUT.references) == share(majority, HELD_OUT.references)


def test_nothing_is_sent_by_the_attack(attacked):
    for name in ("inversion", "token_majority"):
        run, _ = attacked(name, epochs=1)
        assert run.channel.ledger.rows == []


# ---- what it learns from ---------------------------------------------------------------------------------------


def test_public_texts_are_the_clients_and_each_counts_once():
    known = known_texts(CLIENTS, 50, seed=0)
    trained_on = np.concatenate([client.train.indices for client in CLIENTS])
    assert known.examples is CLIENTS[0].train.examples
    assert len(np.unique(known.indices)) == len(known) == 50
    assert set(known.indices) <= set(trained_on)
    assert known.indices.tolist() == known_texts(CLIENTS, 80, seed=0).indices[:50].tolist()
    assert known.indices.tolist() != known_texts(CLIENTS, 50, seed=1).indices.tolist()
    assert len(known_texts(CLIENTS, TRAIN + 1, seed=0)) == TRAIN


def test_held_out_texts_do_not_change_what_is_learned(attacked, assert_same_tensors):
    ours, _ = attacked(epochs=2)
    other, _ = attacked(clients=clients_of(CLIENTS[0].train.examples, texts(2, TEST)), epochs=2)
    assert_same_tensors(ours.state.shared, other.state.shared)


def test_answers_do_not_depend_on_the_held_out_targets(attacked):
    targets = HELD_OUT.examples.targets
    untold = replace(HELD_OUT.examples, targets=np.where(targets == IGNORED, IGNORED, 0))
    _, answers = attacked(epochs=2)
    _, blind = attacked(clients=clients_of(CLIENTS[0].train.examples, untold), epochs=2)
    assert np.array_equal(answers, blind)


def test_the_encoder_stays_as_it_is(small):
    setting = small.setting(head="average")
    before = setting.model.snapshot(setting.model.parameters)
    algorithm = build_algorithm("inversion", setting, {"public_texts": TRAIN})
    run_federation(algorithm, CLIENTS, Channel(), score, rounds=1, seed=0)
    assert all(torch.equal(tensor, before[name]) for name, tensor in setting.model.parameters.items())


# ---- what split learning sends ---------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", ["fp32", "fp16"])
def test_the_nearest_word_is_the_text_itself(attacked, sent):
    run, answers = attacked("nearest_neighbour", public_texts=None, sent=sent)
    assert share(answers, HELD_OUT.references) == 1.0
    assert run.channel.ledger.rows == []
    assert run.results[0].metrics.train_loss is None


def test_dropout_hides_little_of_what_nearest_neighbours_read(attacked):
    _, dropped = attacked("nearest_neighbour", public_texts=None, dropout=0.1)
    _, again = attacked("nearest_neighbour", public_texts=None, dropout=0.1)
    _, empty = attacked("nearest_neighbour", public_texts=None, dropout=0.99)
    assert np.array_equal(dropped, again)
    assert share(empty, HELD_OUT.references) < 0.5 < share(dropped, HELD_OUT.references)


def test_the_nearest_word_is_the_one_with_the_least_distance(small):
    """Against a search that writes the distances out, on states that are no word's."""
    setting = inversion.attacked(small.setting(head="average"), 0)
    states = torch.randn(3, 5, setting.model.hidden, generator=torch.Generator().manual_seed(0))
    words = torch.arange(VOCABULARY)[:, None].expand(-1, 5)
    batch = {"input_ids": words, "attention_mask": torch.ones_like(words), "token_type_ids": torch.zeros_like(words)}
    setting.model.network.eval()
    with torch.inference_mode():
        embedded = setting.model.network.encoder.embeddings(words)
        assert torch.equal(setting.model.features(batch)[0], embedded)  # no layer stands behind them
    distances = (states[:, :, None] - embedded.swapaxes(0, 1)).square().sum(-1)
    assert torch.equal(nearest_words(setting.model, states, torch.float32), distances.argmin(-1))


def test_words_are_searched_in_pieces_of_any_size(attacked, monkeypatch):
    _, answers = attacked("nearest_neighbour", public_texts=None)
    monkeypatch.setattr(nearest_neighbour, "ROWS", 7)
    _, pieces = attacked("nearest_neighbour", public_texts=None)
    assert np.array_equal(answers, pieces)


def test_an_inverter_learns_to_read_embeddings(attacked):
    _, answers = attacked(layer=0)
    _, majority = attacked("token_majority")
    rare = np.where(HELD_OUT.references == FREQUENT, IGNORED, HELD_OUT.references)
    assert share(majority, rare) == 0
    assert share(answers, rare) > 0.9


def test_features_of_a_layer_are_what_leaves_it(small):
    setting = small.setting(head="average", load=lambda: small.load(head="average", kernels="reference"))
    batch = HELD_OUT.examples.collate(np.arange(4))
    inputs = setting.model.network.inputs(batch)
    setting.model.network.eval()
    with torch.inference_mode():
        states = setting.model.network.encoder(**inputs, output_hidden_states=True).hidden_states
        for layer, state in enumerate(states):
            torch.testing.assert_close(inversion.attacked(setting, layer).model.features(batch)[0], state)
    assert inversion.attacked(setting, None) is setting


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("inversion", {"layer": 9}, "attacked layer: expected 0, the embeddings, to 3, found 9"),
        ("inversion", {"layer": 0, "head": "ordinary"}, "expected a head that reads every token"),
        ("nearest_neighbour", {"head": "ordinary"}, "expected a head that reads every token"),
        ("nearest_neighbour", {"sent": "fp8"}, "unknown codec 'fp8'"),
        ("nearest_neighbour", {"dropout": 1.0}, "dropout: expected a share in"),
    ],
)
def test_wrong_layers_are_refused(attacked, name, changes, message):
    options = {"public_texts": None} if name == "nearest_neighbour" else {}
    with pytest.raises(FederationError, match=message):
        attacked(name, **options, **changes)


# ---- as cells are run ------------------------------------------------------------------------------------------


def test_the_same_bits_again(attacked, assert_same_run):
    (first, answers), (second, again) = attacked(epochs=2), attacked(epochs=2)
    assert_same_run(first, second)
    assert np.array_equal(answers, again)


def test_a_finished_round_is_taken_up_without_training(attacked, assert_same_run, tmp_path, monkeypatch):
    for name in ("inversion", "token_majority"):
        first, answers = attacked(name, epochs=2, checkpoint=Checkpoint(tmp_path / name, name))
        with monkeypatch.context() as patched:
            patched.setattr(LocalTraining, "run", None)
            again, restored = attacked(name, epochs=2, checkpoint=Checkpoint(tmp_path / name, name))
        assert_same_run(first, again)
        assert np.array_equal(answers, restored)


def test_the_vocabulary_is_searched_in_pieces_of_any_size(attacked, monkeypatch):
    _, answers = attacked(epochs=2)
    monkeypatch.setattr(tokens, "ROWS", 7)
    _, pieces = attacked(epochs=2)
    assert np.array_equal(answers, pieces)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"head": "ordinary"}, "expected a head that reads every token, such as average or psum"),
        ({"public_texts": 0}, "public_texts: expected 1 or more, found 0"),
        ({"sent": "fp8"}, "unknown codec 'fp8': expected one of fp32, fp16, bf16"),
    ],
)
def test_wrong_options_are_refused(attacked, changes, message):
    with pytest.raises(FederationError, match=message):
        attacked(**changes)


def test_a_second_round_is_refused(small):
    algorithm = build_algorithm("inversion", small.setting(head="average"), {"public_texts": TRAIN})
    with pytest.raises(FederationError, match="trains once: expected 1 round"):
        run_federation(algorithm, CLIENTS, Channel(), score, rounds=2, seed=0)
