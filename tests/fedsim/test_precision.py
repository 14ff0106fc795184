"""Mixed precision: chosen by what the device computes in, with parameters in fp32."""

import pytest
import torch

from fedsim.errors import FederationError
from fedsim.precision import Precision, resolve_precision


@pytest.mark.parametrize(
    ("requested", "device", "message"),
    [
        ("fp64", "cpu", "unknown precision 'fp64': expected auto, fp32, bf16, fp16"),
        ("fp16", "cpu", "fp16 needs a GPU.*choose auto, fp32 or bf16"),
        ("auto", "gpu", "device.*gpu"),
        ("auto", "meta", "device 'meta': expected cpu or"),
    ],
)
def test_impossible_precisions_are_refused(requested, device, message):
    with pytest.raises(FederationError, match=message):
        resolve_precision(requested, device)


@pytest.mark.parametrize(
    ("capability", "expected"), [((7, 0), "fp16"), ((7, 5), "fp16"), ((8, 0), "bf16"), ((9, 0), "bf16")]
)
def test_auto_on_a_gpu(monkeypatch, capability, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("fedsim.precision._device", torch.device)  # which would otherwise try the GPU
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert resolve_precision("auto") == Precision(torch.device("cuda"), expected)


def test_bf16_computes_in_bf16_and_keeps_fp32(small):
    half = small.workload(lambda: small.load(precision="bf16", kernels="reference"))
    full = small.workload()
    runs = [small.run(small.algorithm("fedavg", workload)) for workload in (half, full)]
    assert {parameter.dtype for parameter in half.model.parameters.values()} == {torch.float32}
    assert {tensor.dtype for tensor in runs[0].state.shared.values()} == {torch.float32}
    losses = [[result.metrics.train_loss for result in run.results] for run in runs]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], abs=0.05)

    batch = small.examples.collate(small.clients[0].train.indices)
    inner = []
    half.model.network.encoder.register_forward_hook(lambda module, inputs, output: inner.append(output))
    dense = half.model.network.encoder.encoder.layer[0].intermediate.dense
    dense.register_forward_hook(lambda module, inputs, output: inner.append(output.dtype))
    assert half.model.logits(batch).dtype == torch.float32
    assert inner[0] == torch.bfloat16
