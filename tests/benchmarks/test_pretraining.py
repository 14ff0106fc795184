"""Pre-training by masked language modelling: it learns, it is reproducible, and no kill changes what comes out."""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from benchmarks.backbones import build_encoder, build_tokenizer, depth, locate
from benchmarks.cli.main import main
from benchmarks.errors import UserError
from benchmarks.pretraining import recipes
from benchmarks.pretraining.corpus import load_corpus
from benchmarks.pretraining.masking import Vocabulary, hide
from benchmarks.pretraining.model import fresh_model
from benchmarks.pretraining.pretrain import pretrain
from benchmarks.pretraining.recipes import Recipe, made_folder
from benchmarks.pretraining.training import Trainer, learning_rate
from benchmarks.settings import Settings
from benchmarks.spec import digest
from benchmarks.tasks import task
from benchmarks.tasks.words import VOCABULARY

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
HIDDEN, WORDS = 32, len(SPECIAL) + len(VOCABULARY)
SMALL = Recipe(
    id="small",
    task="arsarcasm",
    tokenizer="words",
    hub="nobody/words",
    revision="main",
    config={
        "model_type": "bert",
        "vocab_size": WORDS,
        "hidden_size": HIDDEN,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 32,
    },
    epochs=3,
    batch_size=4,
    learning_rate=5e-3,
    held_out_share=0.2,
    max_length=32,
    precision="fp32",
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory: generated texts in ArSarcasm-v2's layout, and a vocabulary of their words."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "ArSarcasm-v2").mkdir()
    generated = task("arsarcasm").generate(0)
    # An empty tweet and one that stands there twice: neither may reach both sides.
    pool = [*generated.pool.texts, ("",), generated.pool.texts[0]]
    for name, texts in (("training_data.csv", pool), ("testing_data.csv", generated.central["test"].texts)):
        with (folder / "ArSarcasm-v2" / name).open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("tweet", "sentiment"), *((text, "NEU") for (text,) in texts)])
    (folder / "vocab" / "words").mkdir(parents=True)
    (folder / "vocab" / "words" / "vocab.txt").write_text("\n".join([*SPECIAL, *VOCABULARY]) + "\n")
    (folder / "vocab" / "words" / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    return folder


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(recipes.RECIPES, "small", SMALL)


@pytest.fixture(scope="module")
def finished(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with the finished encoder; tests leave it as it is."""
    results = tmp_path_factory.mktemp("finished")
    pretrain(SMALL, Settings(results_dir=results, data_dir=data, device="cpu"))
    return results


@pytest.fixture
def settings(data: Path, tmp_path: Path) -> Settings:
    return Settings(results_dir=tmp_path / "results", data_dir=data, device="cpu")


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the record, which holds times."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != "recipe.json"}


def losses(folder: Path) -> list[list[float]]:
    record = json.loads((folder / "recipe.json").read_text())
    return [record["losses"], record["held_out_losses"]]


# ---- what is made ----------------------------------------------------------------------------------------------


def test_it_learns_and_keeps_a_record(finished: Path) -> None:
    record = json.loads((made_folder("small", finished) / "recipe.json").read_text())
    for measured in (record["losses"], record["held_out_losses"]):
        assert len(measured) == SMALL.epochs
        assert measured[-1] < measured[0] - 0.2
        assert measured[0] < math.log(WORDS) + 0.5  # of a guess among all words
    assert record["held_out_perplexity"] == pytest.approx(math.exp(record["held_out_losses"][-1]))
    assert record["recipe"] == json.loads(json.dumps(SMALL.to_json()))
    # Each text once, a fifth of them held out.
    texts = {text for (text,) in task("arsarcasm").generate(0).pool.texts}
    assert record["inputs"]["data"]["texts"] + record["inputs"]["data"]["held_out"] == len(texts)
    assert record["inputs"]["data"]["held_out"] == round(0.2 * len(texts))
    assert record["inputs"]["data"]["notes"] == ["empty texts: 1"]
    assert record["environment"]["precision"] == "fp32"
    # transform, LayerNorm and a bias a word: the decoder's weight is the embeddings' and is not counted again
    met = record["inputs"]["data"]["distinct_tokens"]
    assert met < WORDS
    assert record["parameters"]["trained"] == record["parameters"]["encoder"] - (WORDS - met) * HIDDEN + (
        HIDDEN**2 + HIDDEN + 2 * HIDDEN + met
    )


def test_it_is_a_backbone_by_its_name(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = locate("small", results_dir=finished)
    assert (found.id, found.folder, found.origin) == ("small", made_folder("small", finished), {"from": "recipe small"})
    assert depth(str(found.folder)) == 2
    encoder = build_encoder(found)
    assert not any("pooler" in name or "transform" in name for name, _ in encoder.named_parameters())
    assert build_tokenizer(found).tokenize("charming [MASK] actor") == ["charming", "[MASK]", "actor"]
    copy = shutil.copytree(made_folder("small", finished), tmp_path / "small")
    assert locate(str(copy)).digest == found.digest


def test_before_it_is_made_the_error_says_how(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"'arabic-mini'.*python -m benchmarks pretrain arabic-mini --results-dir"):
        locate("arabic-mini", results_dir=tmp_path)


def test_the_same_bytes_twice(finished: Path, settings: Settings) -> None:
    folder = pretrain(SMALL, settings)
    assert contents(folder) == contents(made_folder("small", finished))
    assert losses(folder) == losses(made_folder("small", finished))
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(contents(folder))
    assert not list(settings.results_dir.glob("checkpoints/*"))


def test_another_seed_makes_another_encoder(finished: Path, settings: Settings) -> None:
    other = contents(pretrain(replace(SMALL, seed=1, epochs=1), settings))
    assert other["model.safetensors"] != contents(made_folder("small", finished))["model.safetensors"]


# ---- kills -----------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """No handler of the project catches it."""


def kill_before_step(number: int, patch: pytest.MonkeyPatch) -> None:
    """Let `number` - 1 steps on the disk happen, and nothing after them."""
    steps = 0

    def mortal(function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps >= number:
                raise Killed
            return function(*arguments, **options)

        return step

    patch.setattr(os, "fsync", mortal(os.fsync))
    for name in ("replace", "rename", "unlink", "rmdir"):
        patch.setattr(Path, name, mortal(getattr(Path, name)))


def test_killed_before_each_step_on_the_disk(finished: Path, settings: Settings) -> None:
    folder = made_folder("small", settings.results_dir)
    kills = 0
    while not folder.exists() and kills < 40:
        with pytest.MonkeyPatch.context() as patch:
            kill_before_step(kills + 1, patch)  # each start comes one step further than the last
            with suppress(Killed):
                pretrain(SMALL, settings)
        kills += 1
    assert kills > 6  # the first epoch alone has a step for its tensors and two for its manifest
    assert pretrain(SMALL, settings) == folder
    assert contents(folder) == contents(made_folder("small", finished))
    assert losses(folder) == losses(made_folder("small", finished))
    assert not list(settings.results_dir.glob("checkpoints/*"))
    assert [path.name for path in folder.parent.iterdir()] == ["small"]


def test_interrupted_within_an_epoch_the_command_goes_on_from_the_last(
    finished: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["pretrain", "small", "--data-dir", str(settings.data_dir), "--results-dir", str(settings.results_dir)]
    train = Trainer.train_epoch

    def interrupt(trainer: Trainer, on_step: Callable[[int], None]) -> None:
        def step(number: int) -> None:
            on_step(number)
            if number == 2 * trainer.epoch_steps + 3:
                raise KeyboardInterrupt

        train(trainer, step)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_epoch", interrupt)
        assert main([*words, "--device", "cpu"]) == 130
    assert "Traceback" not in capsys.readouterr().err
    assert not made_folder("small", settings.results_dir).exists()
    assert main([*words, "--device", "cpu"]) == 0
    shown = capsys.readouterr()
    assert "goes on after epoch 2 of 3" in shown.err
    assert "epoch 3 of 3: loss" in shown.err
    assert shown.out == f"small: {made_folder('small', settings.results_dir)}\n"
    assert contents(made_folder("small", settings.results_dir)) == contents(made_folder("small", finished))


# ---- refusals --------------------------------------------------------------------------------------------------


def test_an_unknown_recipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pretrain", "arabic-mni", "--results-dir", str(tmp_path)]) == 2
    assert "unknown recipe 'arabic-mni': expected one of arabic-mini" in (said := capsys.readouterr().err)
    assert "Did you mean 'arabic-mini'?" in said


def test_a_finished_encoder_is_never_overwritten(finished: Path, data: Path) -> None:
    before = contents(made_folder("small", finished))
    settings = Settings(results_dir=finished, data_dir=data, device="cpu")
    pretrain(SMALL, settings, on_step=lambda *_: pytest.fail("computed again"))
    with pytest.raises(UserError, match=r"found another one.*not overwritten: move it away"):
        pretrain(replace(SMALL, epochs=4), settings)
    assert contents(made_folder("small", finished)) == before


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda folder: (folder / "state.json").write_text("{"), "state.json is damaged"),
        (lambda folder: next(folder.glob("epoch-*")).write_bytes(b"x"), "safetensors is damaged"),
        (lambda folder: None, "belongs to another version of this recipe, or to other data"),
    ],
)
def test_a_checkpoint_that_does_not_fit(
    settings: Settings, damage: Callable[[Path], object], expected: str, request: pytest.FixtureRequest
) -> None:
    def stop(trainer: Trainer, step: int) -> None:
        if step > trainer.epoch_steps:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        pretrain(SMALL, settings, stop)
    damage(settings.checkpoint_dir("pretraining-small"))
    changed = replace(SMALL, learning_rate=1e-3) if "belongs" in expected else SMALL
    with pytest.raises(ValueError, match=expected) as error:
        pretrain(changed, settings)
    assert f"Remove the folder {settings.checkpoint_dir('pretraining-small')}" in str(error.value)


def test_a_tokenizer_of_another_size(settings: Settings) -> None:
    wrong = replace(SMALL, config={**SMALL.config, "vocab_size": 100})
    with pytest.raises(UserError, match=f"expected a tokenizer of 100 tokens with a mask among them, found {WORDS}"):
        pretrain(wrong, settings)


def test_neither_vocabulary_nor_hub(settings: Settings) -> None:
    with pytest.raises(UserError, match=r"vocab/nowhere or on the Hugging Face hub as nobody/words, found none"):
        pretrain(replace(SMALL, tokenizer="nowhere"), settings)


# ---- the parts -------------------------------------------------------------------------------------------------


def test_held_out_texts_are_never_trained_on(settings: Settings) -> None:
    corpus = load_corpus(SMALL, settings)

    def texts(part: Any) -> list[tuple[int, ...]]:
        return [tuple(part.examples.collate(np.array([index]))["input_ids"][0].tolist()) for index in part.indices]

    train, held_out = texts(corpus.train), texts(corpus.held_out)
    assert len(held_out) > 0
    assert not set(train) & set(held_out)
    assert len(set(train)) == len(train)


def test_the_decoder_is_the_embeddings() -> None:
    model = fresh_model(SMALL, np.arange(WORDS))
    assert len({parameter.data_ptr() for parameter in model.parameters()}) == len(list(model.parameters()))
    batch = {"input_ids": torch.full((1, 4), 7), "attention_mask": torch.ones(1, 4, dtype=torch.int64)}
    logits = model({**batch, "token_type_ids": torch.zeros(1, 4, dtype=torch.int64)}, torch.tensor([1, 2]))
    assert logits.shape == (2, WORDS)
    logits[0, 99].backward()  # the logit of a word that is not in the text
    assert model.word_embeddings.grad is not None
    assert model.word_embeddings.grad[99].abs().sum() > 0


def test_words_that_no_text_has_are_as_they_were_drawn(finished: Path, settings: Settings) -> None:
    corpus = load_corpus(SMALL, settings)
    unmet = np.setdiff1d(np.arange(WORDS), corpus.vocabulary)
    drawn = fresh_model(SMALL, np.arange(WORDS)).word_embeddings
    made = build_encoder(locate("small", results_dir=finished)).get_input_embeddings().weight  # type: ignore[operator]
    assert 0 < len(unmet) < WORDS
    assert torch.equal(made[unmet], drawn[unmet])
    assert (made[corpus.vocabulary] != drawn[corpus.vocabulary]).any(dim=1).sum() == len(corpus.vocabulary)


def test_texts_are_read_as_the_tokenizer_reads_them(settings: Settings) -> None:
    corpus = load_corpus(SMALL, settings)
    first = corpus.train.examples.collate(corpus.train.indices[:1])["input_ids"][0]
    ids = corpus.vocabulary[first.numpy()]
    texts = [text for (text,) in task("arsarcasm").generate(0).pool.texts]
    assert ids.tolist() in corpus.tokenizer(texts, truncation=True, max_length=SMALL.max_length)["input_ids"]


@examples(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(1, 12), st.floats(0.05, 1), st.integers(0, 2**32))
def test_hidden_tokens(rows: int, width: int, share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, 50, (rows, width))
    ids[0, 0] = 20  # one ordinary token at least
    vocabulary = Vocabulary(mask_id=4, special_ids=frozenset(range(5)), size=50)
    hidden, positions, targets = hide({"input_ids": torch.from_numpy(ids)}, share, vocabulary, rng)
    ordinary = int((ids >= 5).sum())
    assert len(positions) == len(set(positions.tolist())) == max(1, round(share * ordinary))
    assert torch.equal(torch.from_numpy(ids).flatten()[positions], targets)
    assert (targets >= 5).all()
    changed = hidden["input_ids"].flatten() != torch.from_numpy(ids).flatten()
    assert set(changed.nonzero().flatten().tolist()) <= set(positions.tolist())
    put = hidden["input_ids"].flatten()[positions]
    assert ((put >= 5) | (put == 4)).all()


def test_of_the_hidden_tokens_80_percent_are_masked_and_10_stay() -> None:
    vocabulary = Vocabulary(mask_id=4, special_ids=frozenset(range(5)), size=10_000)
    ids = torch.full((100, 100), 77)
    hidden, positions, targets = hide({"input_ids": ids}, 1.0, vocabulary, np.random.default_rng(0))
    put = hidden["input_ids"].flatten()[positions]
    # Standard errors of a share of 10^4 tokens: 0.004 and 0.003.
    assert float((put == 4).float().mean()) == pytest.approx(0.8, abs=0.016)
    assert float((put == targets).float().mean()) == pytest.approx(0.1, abs=0.012)
    assert (ids == 77).all()


def test_the_learning_rate_rises_to_its_peak_and_falls_to_nothing() -> None:
    rates = [learning_rate(SMALL, step, 100) for step in range(100)]
    assert max(rates) == rates[9] == rates[10] == SMALL.learning_rate  # a tenth is warm-up
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert 0 < rates[-1] < SMALL.learning_rate / 80
    assert 0 < rates[0] <= SMALL.learning_rate / 10


def test_the_arabic_encoder_has_layers_for_the_aggregators_and_the_whole_vocabulary() -> None:
    recipe = recipes.recipe("arabic-mini")
    assert (recipe.config["num_hidden_layers"], recipe.config["vocab_size"]) == (4, 100_000)
    assert recipe.max_length <= recipe.config["max_position_embeddings"]
    assert depth("arabic-mini") == 4  # known before it is made


def test_the_real_vocabulary_reads_the_real_tweets(data_dir: Path, tmp_path: Path) -> None:
    corpus = load_corpus(recipes.recipe("arabic-mini"), Settings(results_dir=tmp_path, data_dir=data_dir))
    held_out = len(corpus.held_out)
    assert held_out == round(0.05 * (len(corpus.train) + held_out))
    assert len(corpus.train) + held_out == 12548 - 61  # as many stand there twice


def test_the_committed_record_is_of_this_recipe() -> None:
    path = Path(recipes.__file__).parent / "made" / "arabic-mini.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["recipe"] == json.loads(json.dumps(recipes.recipe("arabic-mini").to_json()))
    assert record["identity"] == digest(
        {
            "recipe": record["recipe"],
            "inputs": {name: record["inputs"][name]["digest"] for name in ("data", "tokenizer")},
        }
    )
    assert record["environment"]["modified"] is False
    assert record["held_out_losses"] == sorted(record["held_out_losses"], reverse=True)  # it still learned
    assert record["held_out_perplexity"] == pytest.approx(math.exp(record["held_out_losses"][-1]))
