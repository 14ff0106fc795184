"""Mixed precision: chosen by what the device computes in, with parameters in fp32."""

import pytest
import torch

from fedsim import precision
from fedsim.errors import FederationError
from fedsim.precision import Precision, bf16_gain, product_seconds, resolve_precision


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


@pytest.mark.skipif(torch.cuda.is_available(), reason="asks for a GPU where there is one")
@pytest.mark.parametrize("requested", ["auto", "fp32", "fp16"])
def test_a_gpu_that_is_not_there_is_refused(requested):
    with pytest.raises(FederationError, match="cuda"):
        resolve_precision(requested, "cuda")


@pytest.mark.parametrize(
    ("capabilities", "bf16_seconds", "expected"),
    [
        ({"amx_bf16": True}, 0.2, "bf16"),
        ({"avx512_bf16": True}, 0.5, "bf16"),
        ({"avx512_bf16": True}, 1.5, "fp32"),  # has the instructions, and is slower with them
        ({"avx2": True, "avx512_bf16": False}, 0.2, "fp32"),
        ({}, 0.2, "fp32"),
    ],
)
def test_auto_on_a_cpu_is_what_is_faster(monkeypatch, capabilities, bf16_seconds, expected):
    bf16_gain.cache_clear()
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    seconds = {torch.float32: 1.0, torch.bfloat16: bf16_seconds}
    monkeypatch.setattr(precision, "product_seconds", lambda dtype, side, repeats: seconds[dtype])
    assert resolve_precision("auto", "cpu") == Precision(torch.device("cpu"), expected)
    bf16_gain.cache_clear()


def test_products_are_timed():
    assert 0 < product_seconds(torch.float32, 64, 2) < 1


@pytest.mark.parametrize(
    ("capability", "expected"), [((7, 0), "fp16"), ((7, 5), "fp16"), ((8, 0), "bf16"), ((9, 0), "bf16")]
)
def test_auto_on_a_gpu(monkeypatch, capability, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr("fedsim.precision._device", torch.device)  # which would otherwise try the GPU
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert resolve_precision("auto") == Precision(torch.device("cuda"), expected)


@pytest.mark.parametrize("requested", ["fp32", "bf16"])
def test_a_request_is_followed(requested):
    assert resolve_precision(requested, "cpu").name == requested


def test_bf16_computes_in_bf16_and_keeps_fp32(small):
    half = small.setting(lambda: small.load(precision="bf16", kernels="reference"))
    full = small.setting()
    runs = [small.run(small.algorithm("fedavg", setting)) for setting in (half, full)]
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


def test_loss_is_scaled_for_fp16_alone():
    for name in ("fp32", "bf16"):
        assert not Precision(torch.device("cpu"), name).scaler().is_enabled()
