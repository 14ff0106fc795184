"""Less memory, the same gradients: parts of a batch add up to it, and layers that run twice keep less."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.dry_run.memory import LiveBytes
from fedsim.data import IGNORED, Client, Subset
from fedsim.errors import FederationError
from fedsim.micro_batches import MicroBatches
from fedsim.models.model import Model
from fedsim.models.packed.encoder import PackedLayer
from fedsim.objectives import Regression, TokenClassification
from fedsim.training import Optimizer
from tests.fedsim.conftest import CAUSAL, CLASSES, GPT2, MASKED, Small, assert_same_run

DEEP, OF_GPT2 = Small(num_hidden_layers=4), Small(**GPT2)
TEXTS, BATCH = 16, 10  # a batch of ten, and one of six
RNG, EXAMPLES = np.random.default_rng(1), DEEP.examples
TOKENS = len(EXAMPLES.tokens)
TAGGED = replace(EXAMPLES, targets=np.where(RNG.random(TOKENS) < 0.4, RNG.integers(0, 2, TOKENS), IGNORED))
SCORED = replace(EXAMPLES, labels=RNG.random(len(EXAMPLES)).astype(np.float32))
READ_OFF = replace(EXAMPLES, targets=EXAMPLES.tokens.astype(np.int64))
ALL = {"embeddings": "global"}
CASES = {  # what is trained -> examples, objective, head, method and its options
    "classification": (EXAMPLES, CLASSES, "pooled", "fedavg", ALL),
    "four paths": (EXAMPLES, CLASSES, "psum", "fedavg", ALL),
    "features": (EXAMPLES, CLASSES, "average", "fedfreezebert", {}),
    "regression": (SCORED, Regression(), "pooled", "fedavg", ALL),
    "proximal term": (EXAMPLES, CLASSES, "pooled", "fedavg", {"proximal": 0.5}),
    "tags": (TAGGED, TokenClassification(2), "tokens", "fedavg", ALL),
    "token recovery": (READ_OFF, CLASSES, "average", "inversion", {}),
    "masked LM": (EXAMPLES, MASKED, "masked-lm", "fedavg", ALL),
    "causal LM": (EXAMPLES, CAUSAL, "causal-lm", "fedavg", ALL),
    "split classification": (EXAMPLES, CLASSES, "pooled", "fedbert_sequential", {"turns": "round"}),
    "split masked LM": (EXAMPLES, MASKED, "masked-lm", "fedbert_parallel", {"transformer": "own"}),
    "split causal LM": (EXAMPLES, CAUSAL, "causal-lm", "fedbert_parallel", {"averaged": "embeddings"}),
}
PACKED = [case for case, (_, objective, *_) in CASES.items() if objective is not CAUSAL]  # GPT-2 has no such kernels


def load(case, **changes):
    """A new model for a case; GPT-2 for causal language models."""
    _, objective, head, *_ = CASES[case]
    return (OF_GPT2 if objective is CAUSAL else DEEP).load(objective, head, dropout=False, **changes)


@pytest.fixture
def trained(monkeypatch):
    """Train one round in parts; return the gradients of each step, the loss, and the ledger's rows."""

    def train(case, micro_batches, **changes):
        examples, objective, _, method, options = CASES[case]

        def step(optimizer, adjust=None, elsewhere=None):
            with torch.no_grad():
                for parameter in optimizer.parameters.values():
                    parameter.add_(0.01)  # away from where FedProx's term is 0
            if adjust:
                adjust()
            gradients = {name: parameter.grad for name, parameter in optimizer.parameters.items()}
            steps.append({name: gradient.clone() for name, gradient in gradients.items() if gradient is not None})
            optimizer.clear()

        steps = []
        monkeypatch.setattr(Optimizer, "step", step)
        workload = DEEP.workload(lambda: load(case, **changes), objective, batch_size=BATCH, clients=1)
        training = replace(workload.training, micro_batches=micro_batches)
        algorithm = DEEP.algorithm(method, replace(workload, training=training), **options)
        run = DEEP.run(algorithm, clients=[Client(0, Subset(examples, np.arange(TEXTS)), {})], rounds=1)
        return steps, run.results[0].metrics.train_loss, run.channel.ledger.rows

    return train


def assert_equal_to_rounding(parts, whole):
    """To 2e-6 of each tensor, or of a tenth of all: gradients that cancel, such as a key bias's, are pure rounding."""
    assert len(parts) == len(whole) > 1
    for part, expected in zip(parts, whole, strict=True):
        assert part.keys() == expected.keys()
        least = 0.1 * torch.nn.utils.get_total_norm(list(expected.values()))
        for name, gradient in expected.items():
            assert (part[name] - gradient).norm() <= 2e-6 * max(gradient.norm(), least), name


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize(
    ("case", "kernels"), [*((case, "packed") for case in PACKED), *((case, "reference") for case in CASES)]
)
def test_gradients_of_parts_add_up_to_those_of_the_batch(trained, case, kernels, size):
    (parts, loss, rows), (whole, mean, sent) = (
        trained(case, MicroBatches(texts), kernels=kernels) for texts in (size, None)
    )
    assert_equal_to_rounding(parts, whole)
    assert loss == pytest.approx(mean, rel=1e-6)
    assert rows == sent


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("case", ["masked LM", "split masked LM"])
def test_gradients_of_parts_add_up_on_a_gpu(trained, case):
    parts, whole = (trained(case, MicroBatches(texts), device="cuda")[0] for texts in (3, None))
    assert_equal_to_rounding(parts, whole)


@pytest.fixture
def full_above(monkeypatch):
    """Make a pass over more texts fail after it has sent activations and, in training, left gradients."""
    whole = Model.path_logits

    def limit(room):
        def limited(model, batch, changed=True):
            logits = whole(model, batch, changed)
            if len(batch["labels"]) <= room:
                return logits
            if logits.requires_grad:
                logits.sum().backward()
            raise torch.OutOfMemoryError("CUDA out of memory")

        monkeypatch.setattr(Model, "path_logits", limited)

    return limit


@pytest.mark.parametrize("case", ["masked LM", "split masked LM", "split causal LM"])
def test_parts_are_halved_once_where_memory_is_too_small(trained, full_above, case):
    whole, mean, sent = trained(case, MicroBatches())
    full_above(5)
    halved = MicroBatches()
    parts, loss, rows = trained(case, halved)
    assert halved.size == 5
    assert_equal_to_rounding(parts, whole)
    assert loss == pytest.approx(mean, rel=1e-6)
    assert rows == sent


@pytest.mark.parametrize(
    ("room", "micro_batches", "advice"),
    [
        (4, MicroBatches(), "train on 5 texts.*set --micro-batch below 5, add --checkpoint-activations"),
        (3, MicroBatches(8), "train on 4 texts.*set --micro-batch below 4"),
        (5, MicroBatches(8, automatic=False), "train on 8 texts.*set --micro-batch below 8"),
        (0, MicroBatches(1), "train on 1 text at once; add --checkpoint-activations"),
    ],
)
def test_then_the_error_says_what_to_set(trained, full_above, room, micro_batches, advice):
    full_above(room)
    with pytest.raises(FederationError, match=advice):
        trained("masked LM", micro_batches)


@pytest.mark.parametrize("case", ["classification", "tags", "masked LM", "causal LM"])
def test_scored_batches_go_through_in_parts_and_are_halved_once(full_above, case):
    model, examples = load(case), CASES[case][0]
    subset = Subset(examples, np.arange(TEXTS))
    whole = model.predict(subset, BATCH, None)
    np.testing.assert_allclose(model.predict(subset, BATCH, None, MicroBatches(3, trains=False)), whole, atol=1e-5)
    halved = MicroBatches(trains=False)
    full_above(5)
    np.testing.assert_allclose(model.predict(subset, BATCH, None, halved), whole, atol=1e-5)
    assert halved.size <= 5
    full_above(1)
    with pytest.raises(FederationError, match=r"score \d texts? at once; share each GPU"):
        model.predict(subset, BATCH, None, halved)


# ---- activation checkpointing --------------------------------------------------------------------------------------

CHECKPOINTED = {
    "classification": (CLASSES, "pooled", "fedavg", {"proximal": 0.1}),
    "four paths": (CLASSES, "psum", "fedavg", {"embeddings": "global"}),
    "sub-models": (MASKED, "masked-lm", "fedbfpt", {"local_layers": 2}),
    "split masked LM": (MASKED, "masked-lm", "fedbert_parallel", {"averaged": "embeddings"}),
}


@pytest.mark.parametrize("kernels", ["packed", "reference"])
@pytest.mark.parametrize("case", CHECKPOINTED)
def test_a_run_is_the_same_to_the_bit(deep, case, kernels):
    objective, head, name, options = CHECKPOINTED[case]

    def run(checkpoints):
        workload = deep.workload(
            lambda: deep.load(objective, head, kernels=kernels, checkpoints=checkpoints), objective, rounds=2
        )
        return deep.run(deep.algorithm(name, workload, **options))

    assert_same_run(run(True), run(False))


def gradients(model, batch):
    model.set_trained(model.parameters)
    model.network.train()
    torch.manual_seed(1)
    model.loss(batch).backward()
    return {name: parameter.grad for name, parameter in model.parameters.items()}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("kernels", ["packed", "reference"])
def test_layers_run_twice_and_keep_less(deep, monkeypatch, kernels, precision):
    calls, forward = [], PackedLayer.forward
    monkeypatch.setattr(PackedLayer, "forward", lambda *given: calls.append(1) or forward(*given))
    batch = deep.examples.collate(np.arange(400) % len(deep.examples))

    def measured(checkpoints):
        model = deep.load(head="average", kernels=kernels, checkpoints=checkpoints, precision=precision)
        for layer in model.network.encoder.encoder.layer:
            layer.intermediate.register_forward_hook(lambda *given: calls.append(1))
        calls.clear()
        with LiveBytes() as live:
            tensors = gradients(model, batch)
        return tensors, len(calls), live.peak.total()

    (kept, once, most), (again, twice, less) = measured(False), measured(True)
    assert (once, twice) == (4, 8)
    assert less < 0.5 * most
    assert all(torch.equal(again[name], gradient) for name, gradient in kept.items())


def test_gpt2_has_the_same_gradients_but_for_rounding(deep):
    """Without the cache of keys and values, which a second pass would fill again, sums have another order."""
    batch = CAUSAL.prepare(deep.examples.collate(deep.clients[0].train.indices), None)
    kept, again = (gradients(OF_GPT2.load(CAUSAL, "causal-lm", checkpoints=way), batch) for way in (False, True))
    for name, gradient in kept.items():
        torch.testing.assert_close(again[name], gradient, rtol=1e-4, atol=1e-7)
