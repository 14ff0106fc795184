"""`fetch` collects a benchmark's data and encoders, from which a node without internet runs."""

import os
import shutil
from pathlib import Path

import datasets
import huggingface_hub
import pytest

from benchmarks.cli.main import main
from benchmarks.encoders import fetched, files
from benchmarks.encoders.backbones import BACKBONES, content_digest
from benchmarks.encoders.fetched import OFFLINE, Contents, contents, places, source_of
from benchmarks.encoders.loading import locate
from benchmarks.results import read_results
from benchmarks.running import federation
from benchmarks.tasks import task
from benchmarks.tasks.glue import REPOSITORY, REVISION

TABLE = "fedsplitbert-table3"
ENCODER = "all-MiniLM-L6-v2"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    """Reset the hub's variables and the located files after each test."""
    for name in (*places(Path()), *OFFLINE):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(fetched, "hub_answers", lambda: os.environ.get("HF_HUB_OFFLINE") != "1")
    locate.cache_clear()
    federation.task_data.cache_clear()
    monkeypatch.setattr(files, "_packaged", lambda *_: None)


@pytest.fixture
def hub(monkeypatch, tiny_encoder):
    """A hub with the environment's cache, which offline returns only cached files; returns the requests."""
    requests = []

    def cache(name, revision, variable):
        folder = Path(os.environ[variable]) / name.replace("/", "--")
        if os.environ.get("HF_HUB_OFFLINE") == os.environ.get("HF_DATASETS_OFFLINE") == "1":
            if not folder.is_dir():
                raise ConnectionError("offline, and not cached")
        else:
            requests.append((name, revision))
            folder.mkdir(parents=True, exist_ok=True)

    def load_dataset(name, config=None, revision=None, **_):
        cache(name, revision, "HF_DATASETS_CACHE")
        sentences = [f"dog number {number} barks ." for number in range(80)]
        rows = {"sentence1": sentences, "sentence2": sentences, "label": [number % 2 for number in range(80)]}
        names = datasets.ClassLabel(names=["not_equivalent", "equivalent"])
        split = datasets.Dataset.from_dict(rows).cast_column("label", names)
        return datasets.DatasetDict(train=split, validation=split)

    def snapshot_download(name, revision=None, **_):
        cache(name, revision, "HF_HUB_CACHE")
        return str(tiny_encoder)

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return requests


def fetch(folder, *args):
    return main(["fetch", TABLE, "--to", str(folder), "--methods", "local-majority", "--tasks", "mrpc", *args])


@pytest.mark.slow
def test_an_offline_node_runs_from_what_was_fetched_and_its_records_can_be_imported(hub, tmp_path, capsys, monkeypatch):
    data, node, home = (tmp_path / name for name in ("data", "node", "home"))
    assert fetch(data) == 0
    output = capsys.readouterr().out
    assert "ok   task mrpc: 160 examples" in output
    assert f"ok   encoder {ENCODER}: hub sentence-transformers/all-MiniLM-L6-v2" in output
    assert hub == [(REPOSITORY, REVISION), (BACKBONES[ENCODER].hub, BACKBONES[ENCODER].revision)]  # pinned
    assert contents(data) == Contents(tasks=["mrpc"], encoders=[ENCODER])

    hub.clear()
    locate.cache_clear()
    alpha = 'partition={"scheme":"dirichlet","alpha":10.0}'
    changes = (f"--set={each}" for each in ("training.rounds=1", alpha, "clients=2", "training.max_length=64"))
    args = ["--scale", "lite", "--tasks", "mrpc", "--methods", "local-majority", *changes]
    machine = ["--device=cpu", "--workers=1", "--no-tracking", f"--results-dir={node}", f"--data-dir={data}"]
    with monkeypatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
        assert main(["run", TABLE, *args, *machine]) == 0
    assert hub == []
    assert {name: os.environ[name] for name in OFFLINE} == OFFLINE
    (record,) = read_results(node / "records")
    assert record.inputs["data"]["origin"].startswith(REPOSITORY)

    for new in (1, 0):
        capsys.readouterr()
        assert main(["import", str(node / "records"), "--results-dir", str(home)]) == 0
        assert f"{new} record{'s' * (new != 1)} imported" in capsys.readouterr().out
    assert [copy.to_json() for copy in read_results(home / "records")] == [record.to_json()]


def test_what_is_missing_is_named_and_the_rest_is_fetched(hub, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: 1 / 0)
    assert fetch(tmp_path) == 2
    output = capsys.readouterr()
    assert "ok   task mrpc" in output.out
    assert f"no   encoder {ENCODER}: " in output.out
    assert f"error: not fetched: encoder {ENCODER}; put their files into" in output.err
    assert contents(tmp_path) == Contents(tasks=["mrpc"])
    assert source_of("mrpc", tmp_path).folder is None
    assert source_of("cola", tmp_path).folder == tmp_path  # not fetched: read from the folder's own files


def test_the_users_own_files_are_copied_and_damaged_ones_named(hub, tmp_path, capsys):
    original, copy = tmp_path / "own", tmp_path / "copy"
    (original / "MRPC").mkdir(parents=True)
    lines = "".join(f"{number % 2}\t1\t2\tA dog {number}\tSome dog {number}\n" for number in range(40))
    for part in ("train", "dev", "unread"):
        (original / "MRPC" / f"{part}.tsv").write_text(f"Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n{lines}")
    assert fetch(copy, "--data-dir", str(original)) == 0
    assert "2 files copied" in capsys.readouterr().out
    assert sorted(path.name for path in (copy / "MRPC").iterdir()) == ["dev.tsv", "train.tsv"]
    assert contents(copy).tasks == []  # it is read from the files
    assert len({task("mrpc").load(source_of("mrpc", folder)).digest for folder in (original, copy)}) == 1
    assert [name for name, _ in hub] == [BACKBONES[ENCODER].hub]
    assert fetch(copy, "--data-dir", str(copy)) == 0  # into itself
    (original / "MRPC" / "dev.tsv").write_bytes(b"\xff\xfe")
    assert fetch(tmp_path / "other", "--data-dir", str(original)) == 2
    assert str(original / "MRPC" / "dev.tsv") in capsys.readouterr().out


def test_the_users_own_encoder_is_copied_with_its_name_and_content(hub, tiny_encoder, tmp_path, capsys):
    (own := tmp_path / "own").mkdir()
    encoder, data = shutil.copytree(tiny_encoder, own / "my-encoder"), tmp_path / "data"
    (encoder / "optimizer.pt").write_text("unread")
    for _ in range(2):
        assert fetch(data, "--backbone", str(encoder)) == 0
    copy = data / "encoders" / "my-encoder"
    assert f"use them with BACKBONE={copy}" in capsys.readouterr().out
    assert hub == [(REPOSITORY, REVISION)] * 2
    assert not (copy / "optimizer.pt").exists()
    assert (locate(str(copy)).id, locate(str(copy)).digest) == ("my-encoder", locate(str(encoder)).digest)
    (copy / "vocab.old").write_text("of an earlier encoder")
    content_digest.cache_clear()
    assert fetch(data, "--backbone", str(encoder)) == 2
    assert f"{copy}: expected the files of {encoder}, found others; remove the folder" in capsys.readouterr().out


def test_an_encoder_is_identified_by_its_content(tiny_encoder, tmp_path, monkeypatch):
    """In the hub's cache with the resolved commit, or in a folder; a change of behaviour is another encoder."""
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "models--somebody--my-encoder"
    shutil.copytree(tiny_encoder, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    encoder = locate("somebody/my-encoder", local_only=True)
    assert dict(encoder.origin) == {"from": "hub somebody/my-encoder", "revision": commit}
    assert encoder.digest == locate(str(tiny_encoder)).digest
    digests = {encoder.digest}
    for name, file, old, new in [
        ("dropout", "config.json", '"hidden_dropout_prob": 0.0', '"hidden_dropout_prob": 0.5'),
        ("tokenizer", "tokenizer.json", "[UNK]", "[HUH]"),
    ]:
        folder = shutil.copytree(tiny_encoder, tmp_path / name)
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new))
        digests.add(locate(str(folder)).digest)
    assert len(digests) == 3
