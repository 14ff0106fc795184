"""The real files, where there are any: numbers of examples and shares of labels."""

from __future__ import annotations

import pytest

from benchmarks.tasks import DataSource, task

COMPLETE = [  # GLUE's own sizes of training and development set; share of label 1 in both, to a percent
    ("cola", 8551, 1043, 0.70),
    ("mrpc", 3668, 408, 0.67),
    ("rte", 2490, 277, 0.50),
    ("sst2", 67349, 872, 0.56),
    ("wnli", 635, 71, 0.49),
]


@pytest.mark.parametrize(("task_id", "train", "dev", "share"), COMPLETE)
def test_complete_tasks(data_dir, task_id, train, dev, share):
    data = task(task_id).load(DataSource(data_dir))
    assert len(data.pool) == train + dev
    assert data.pool.labels.mean() == pytest.approx(share, abs=0.01)
    assert (data.skipped, data.notes) == ((), ())


def test_the_training_set_comes_first_and_is_as_long_as_glue_says(data_dir):
    texts = task("rte").load(DataSource(data_dir)).pool.texts
    assert texts[0][1] == "Weapons of Mass Destruction Found in Iraq."
    assert texts[2490][1] == "Christopher Reeve had an accident."


def test_scores_lie_between_0_and_5(data_dir):
    labels = task("stsb").load(DataSource(data_dir)).pool.labels
    assert len(labels) == 5749 + 1500
    assert (labels.min(), labels.max()) == (0, 5)
    # FedSplitBERT's Table I prints means of 0.93, 2.90 and 4.26 for the thirds of the sorted training set.
    assert labels.mean() == pytest.approx((0.93 + 2.90 + 4.26) / 3, abs=0.1)


def test_texts_keep_their_last_blank(data_dir):
    assert all(text.endswith(" ") for (text,) in task("sst2").load(DataSource(data_dir)).pool.texts[:100])


@pytest.mark.parametrize("task_id", ["qnli", "qqp", "mnli"])
def test_partial_tasks_say_so(data_dir, task_id):
    data = task(task_id).load(DataSource(data_dir, lenient=True))
    if not data.notes:
        pytest.skip(f"{data_dir} holds the complete {task_id}")
    assert data.notes[0].startswith("partial: train.tsv")
    assert len(data.pool) > 5000
    assert set(data.pool.labels.tolist()) == set(range(task(task_id).classes))
