"""The model as it is: what training starts from."""

import numpy as np


def test_it_answers_as_the_model_does_before_training_and_sends_nothing(small, assert_same_tensors):
    setting = small.setting()
    before = setting.model.snapshot(setting.model.parameters)
    algorithm = small.algorithm("untrained", setting)
    run = small.run(algorithm)
    part = small.clients[0].evaluation["test"]
    expected = small.load().predict(part, setting.evaluation_batch_size, None)
    np.testing.assert_array_equal(algorithm.predict(run.state, None, part), expected)
    assert [result.client_scores for result in run.results] == [run.results[0].client_scores] * 2
    assert {result.metrics.train_loss for result in run.results} == {None}
    assert not list(run.channel.ledger.rows)
    assert_same_tensors(algorithm.server(run.state), before)
