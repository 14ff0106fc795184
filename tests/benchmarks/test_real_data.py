"""A run on real files with a real encoder, cut so short that it takes seconds."""

import json
import shutil

import pytest

from benchmarks.cli.main import main
from benchmarks.dry_run.rounds import wire_plan
from benchmarks.results import read_results
from benchmarks.running.data_split import VALIDATION_SHARE
from benchmarks.tasks import DataSource, task
from tests.benchmarks.conftest import run_words

# 95 % of a client's 1260 examples are held back, and 95 % of the other 63 are scored: 3 to train, 60 to score.
SHORT = ("training.rounds=1", "test_share=0.95", "holdout=validation", "options.critical_layer=6")


@pytest.mark.slow
def test_a_run_on_real_data_has_the_sizes_the_bytes_and_the_digest_that_can_be_derived(data_dir, encoder_dir, tmp_path):
    args = run_words(tmp_path, "fedsplitbert", *SHORT)
    assert main([*args, "--scale", "lite", "--data-dir", str(data_dir)]) == 0
    (record,) = read_results(tmp_path / "records")

    # 1323 examples of label 0, which is 105 % of the shares of the three clients together.
    assert record.partition["sizes"] == [1260, 1260, 1260]
    assert record.partition["n_examples"] == 4076  # MRPC's 3668 and 408
    assert [client["test"] for client in record.clients] == 3 * [round(VALIDATION_SHARE * 63)]

    hidden, inner = 384, 1536
    layer = 4 * (hidden**2 + hidden) + 2 * hidden * inner + inner + hidden + 4 * hidden
    sent = 3 * 3 * layer * 4  # 3 clients, 3 of 6 layers, 4 bytes a value
    assert record.rounds[0].up_bytes == record.rounds[0].down_bytes == sent
    embeddings, head = (30522 + 512 + 2 + 2) * hidden, 2 * hidden + 2  # one linear layer over the mean of the tokens
    assert record.setup_bytes == 3 * 4 * (embeddings + 6 * layer + head)
    plan = wire_plan(record.cell)
    assert (plan.up_bytes, plan.down_bytes, plan.setup_bytes) == (sent, sent, record.setup_bytes)

    copy = tmp_path / "copy"
    shutil.copytree(data_dir / "glue_data" / "MRPC", copy / "MRPC")  # another place, the other layout
    data = record.inputs["data"]
    assert data["digest"] == task("mrpc").load(DataSource(copy)).digest
    assert (data["origin"], data["skipped"]) == ("folder: MRPC/train.tsv, MRPC/dev.tsv", [])
    assert str(data_dir) not in json.dumps(record.to_json())
    assert 0 < record.rounds[0].train_loss < 2
    assert [0 <= scores["test"]["accuracy"] <= 1 for scores in record.rounds[0].client_scores] == [True] * 3
