"""On a GPU: mixed precision, and resuming there."""

import pytest
import torch

from fedsim.checkpoint import Checkpoint
from fedsim.store import ClientStore

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_a_round_in_half_precision_is_close_to_the_cpus(small, precision):
    def run(load):
        # lr 1e-4: Adam's first steps are of that size whatever the gradient, so rounding moves no value by more
        setting = small.setting(load, learning_rate=1e-4)
        return small.run(small.algorithm("fedsplitbert", setting, critical_layer=2), rounds=1)

    gpu = run(lambda: small.load(precision=precision, device="cuda"))
    cpu = run(small.load)
    for name, tensor in gpu.state.shared.items():
        assert tensor.dtype == torch.float32
        assert torch.isfinite(tensor).all()
        torch.testing.assert_close(tensor.cpu(), cpu.state.shared[name], rtol=0, atol=1e-3)
    # dropout is drawn by another generator on a GPU
    assert gpu.results[0].metrics.train_loss == pytest.approx(cpu.results[0].metrics.train_loss, abs=0.1)
    assert gpu.channel.ledger.rows == cpu.channel.ledger.rows


def test_server_moments_are_resumed_on_the_gpu(small, tmp_path):
    def run(rounds):
        algorithm = small.algorithm(
            "fedsplitbert",
            small.setting(lambda: small.load(device="cuda")),
            critical_layer=1,
            server={"name": "adam", "learning_rate": 1e-2},
        )
        checkpoint = Checkpoint(tmp_path, "a run")
        return small.run(algorithm, rounds=rounds, checkpoint=checkpoint, store=ClientStore(tmp_path))

    run(1)
    resumed = run(2)
    assert resumed.state.round == 2
    assert all(torch.isfinite(tensor).all() for tensor in resumed.state.shared.values())
