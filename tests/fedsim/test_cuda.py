"""On a GPU: mixed precision, and resuming there."""

import pytest
import torch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_a_round_in_half_precision_is_close_to_the_cpus(small, precision):
    def run(load):
        # lr 1e-4: Adam's first steps are of that size whatever the gradient, so rounding moves no value by more
        workload = small.workload(load, learning_rate=1e-4)
        return small.run(small.algorithm("fedsplitbert", workload, critical_layer=2), rounds=1)

    gpu = run(lambda: small.load(precision=precision, device="cuda"))
    cpu = run(small.load)
    for name, tensor in gpu.state.shared.items():
        assert tensor.dtype == torch.float32
        assert torch.isfinite(tensor).all()
        torch.testing.assert_close(tensor.cpu(), cpu.state.shared[name], rtol=0, atol=1e-3)
    # dropout is drawn by another generator on a GPU
    assert gpu.results[0].metrics.train_loss == pytest.approx(cpu.results[0].metrics.train_loss, abs=0.1)
    assert gpu.channel.ledger.rows == cpu.channel.ledger.rows
