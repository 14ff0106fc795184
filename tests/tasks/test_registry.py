from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks.errors import UserError
from benchmarks.tasks import task, tasks

IDS = [
    "rct20k",
    "nicta-piboso",
    "arsarcasm",
    "arsarcasm-texts",
    "arsarcasm-masked",
    "jnlpba",
    "scierc",
    "corpus-biology",
    "corpus-computer-science",
    "corpus-medicine",
    "corpus-wikipedia",
    "corpus-biology-sentences",
    "corpus-computer-science-sentences",
    "corpus-medicine-sentences",
    "corpus-wikipedia-sentences",
    "cola",
    "sst2",
    "mrpc",
    "qqp",
    "stsb",
    "mnli",
    "rte",
    "qnli",
    "wnli",
    "sst2-central",
    "sst2-texts",
    "rte-central",
    "mrpc-central",
    "mnli-central",
    "qnli-central",
    "qqp-central",
    "stsb-central",
    "sst2-whole-central",
    "wikitext",
    "wikitext-causal",
]


def test_tasks_are_known_by_their_ids():
    assert [found.id for found in tasks()] == IDS
    assert all(task(found.id) is found for found in tasks())


def test_an_unknown_task_is_an_error_that_names_the_nearest_and_all():
    with pytest.raises(UserError, match="unknown task 'MRCP': did you mean 'mrpc'") as error:
        task("MRCP")
    assert ", ".join(IDS) in str(error.value)


def test_an_id_like_no_other_gets_no_hint():
    with pytest.raises(UserError, match="unknown task 'xyz': the tasks are"):
        task("xyz")


@pytest.mark.parametrize(
    ("task_id", "labels"),
    [  # the order of the hub's class labels; ArSarcasm-v2's is that of its predecessor there
        ("arsarcasm", ("negative", "neutral", "positive")),
        ("cola", ("unacceptable", "acceptable")),
        ("sst2", ("negative", "positive")),
        ("mrpc", ("not_equivalent", "equivalent")),
        ("qqp", ("not_duplicate", "duplicate")),
        ("stsb", None),
        ("mnli", ("entailment", "neutral", "contradiction")),
        ("rte", ("entailment", "not_entailment")),
        ("qnli", ("entailment", "not_entailment")),
        ("wnli", ("not_entailment", "entailment")),
    ],
)
def test_labels_are_in_the_order_of_the_hub(task_id, labels):
    assert task(task_id).labels == labels
    assert task(task_id).classes == (1 if labels is None else len(labels))
    assert task(task_id).objective == ("regression" if labels is None else "classification")


def test_evaluations_beside_the_test():
    assert {found.id: found.evaluations for found in tasks() if found.evaluations != ("test",)} == {
        **dict.fromkeys(("mnli", "mnli-central"), ("test", "mismatched")),
        "corpus-wikipedia": ("test", "valid"),
        "corpus-wikipedia-sentences": ("test", "valid"),
        **dict.fromkeys(
            ("rct20k", "nicta-piboso", "jnlpba", "scierc", "wikitext", "wikitext-causal"), ("test", "validation")
        ),
    }


def test_two_tasks_ask_for_the_texts_themselves():
    found = [found.id for found in tasks() if found.objective == "token_recovery"]
    assert found == ["arsarcasm-texts", "sst2-texts"]
    assert task("sst2-texts").load is task("sst2-central").load
    assert task("arsarcasm-texts").load is task("arsarcasm").load  # the same tweets, shared out by the same labels
    assert task("arsarcasm-texts").labels == task("arsarcasm").labels


def test_masked_tweets_are_the_distinct_training_tweets_without_labels():
    masked, tweets = (task(name).generate(0) for name in ("arsarcasm-masked", "arsarcasm"))
    assert set(masked.pool.texts) == set(tweets.pool.texts)
    assert len(set(masked.pool.texts)) == len(masked.pool)
    assert not masked.pool.labels.any()
    assert not masked.central  # no test tweet


def test_the_registry_imports_nothing_heavy():
    code = (
        "import sys; from benchmarks.tasks import tasks; tasks(); "
        "print([m for m in ('torch', 'datasets', 'evaluate', 'pandas', 'pyarrow') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
