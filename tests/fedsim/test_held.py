"""What stands in the resident model already is not copied into it again, and nothing else is taken to stand there."""

import pytest
import torch

from fedsim.models.model import Model


@pytest.fixture
def model(small) -> Model:
    found = small.load()
    found.set_trained(())
    return found


@pytest.fixture
def values(model):
    return {name: torch.rand_like(tensor) for name, tensor in model.snapshot(model.parameters).items()}


@pytest.fixture
def written(monkeypatch):
    """Names in the order in which they were copied."""
    names = []
    write = Model.write

    def counting(model, values):
        names.extend(values)
        write(model, values)

    monkeypatch.setattr(Model, "write", counting)
    return names


def test_the_same_tensors_are_copied_once(model, values, written, assert_same_tensors):
    for _ in range(3):
        model.hold(values)
    assert sorted(written) == sorted(values)
    assert_same_tensors(model.snapshot(values), values)


def test_equal_tensors_that_are_others_are_copied(model, values, written, assert_same_tensors):
    model.hold(values)
    model.hold({name: value.clone() for name, value in values.items()})
    assert len(written) == 2 * len(values)
    assert_same_tensors(model.snapshot(values), values)


def test_what_was_written_over_is_copied_again(model, values, assert_same_tensors):
    model.hold(values)
    model.write({name: value + 1 for name, value in values.items()})
    model.hold(values)
    assert_same_tensors(model.snapshot(values), values)


def test_what_was_trained_is_copied_again_and_the_rest_is_not(small, model, values, written, assert_same_tensors):
    setting = small.setting(lambda: model)
    trained = sorted(model.groups.head)
    model.hold(values)
    written.clear()
    setting.training.run(model, small.clients[0].train, trained, 1, 0)
    assert any(not torch.equal(model.parameters[name], values[name]) for name in trained)
    for _ in range(2):  # they have gradients still: nobody knows what becomes of them
        written.clear()
        model.hold(values)
        assert sorted(written) == trained
        assert_same_tensors(model.snapshot(values), values)


@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_embeddings_that_were_trained_are_copied_again(small, model, values, assert_same_tensors, weight_decay):
    setting = small.setting(lambda: model, weight_decay=weight_decay)
    model.hold(values)
    setting.training.run(model, small.clients[0].train, sorted(model.parameters), 1, 0)
    model.set_trained(())
    model.hold(values)
    assert_same_tensors(model.snapshot(values), values)


def test_a_global_model_is_written_once_for_all_who_are_scored(small, written):
    run = small.run(small.algorithm("fedavg"), rounds=1)
    model_names = run.state.shared.keys()
    rounds = [name for name in written if name in model_names]
    assert len(rounds) == (len(small.clients) + 1) * len(model_names)  # each trains on its own, and one for the scores


def test_two_methods_on_one_model_come_to_what_they_come_to_apart(small, assert_same_run):
    setting = small.setting()
    names = {"fedavg": {"embeddings": "global"}, "fedsplitbert": {"critical_layer": 1}}
    apart = [small.run(small.algorithm(name, **options)) for name, options in names.items()]
    for _ in range(2):
        together = [small.run(small.algorithm(name, setting, **options)) for name, options in names.items()]
        for one, other in zip(together, apart, strict=True):
            assert_same_run(one, other)
