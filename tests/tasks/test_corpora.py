"""Corpora: passages of text files, read when they are asked for."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections import Counter

import numpy as np
import pytest

from benchmarks import encoding
from benchmarks.backbones import word_tokenizer
from benchmarks.encoding import encoded_pieces
from benchmarks.errors import UserError
from benchmarks.tasks import DataSource, Examples, TaskData, passages, task
from benchmarks.tasks.words import VOCABULARY

DOMAINS = ("biology", "computer-science", "medicine", "wikipedia")
SENTENCES = [
    "Cells divide. They grow! Do they? 2 of 3 do.",
    "The value was 0. 5 e.g. in mice.",
    "(Fig. 1) shows it.",
]


def write(folder, content, name="biology.txt"):
    (folder / "corpora").mkdir(exist_ok=True)
    file = folder / "corpora" / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def load(folder, of="corpus-biology", lenient=False):
    return task(of).load(DataSource(folder, lenient))


def texts(data):
    return [text for (text,) in data.pool.texts]


# ---- a text file -----------------------------------------------------------------------------------------------


def test_a_passage_is_a_line_and_empty_lines_are_counted(tmp_path):
    data = load(write(tmp_path, "\ufeffone passage\n\n  two  words \r\n\t\n\u00a0\nthe last, ohne Zeilenende: ß"))
    assert texts(data) == ["one passage", "two  words", "the last, ohne Zeilenende: ß"]
    assert data.notes == ("empty lines: 3",)
    assert data.origin == "folder: corpora/biology.txt"
    assert (data.pool.labels.dtype, data.pool.labels.tolist()) == (np.int64, [0, 0, 0])
    assert not data.skipped


def test_separators_within_a_line_end_no_passage(tmp_path):
    assert texts(load(write(tmp_path, "a\u2028b\x0bc\u0085d\ne"))) == ["a\u2028b\x0bc\u0085d", "e"]


@pytest.mark.parametrize(
    ("content", "line", "fault"),
    [
        (b"fine\nbr\xfcken\nfine\n", 2, "expected UTF-8, found the byte 0xfc"),
        (b"fine\nfine\ncut \xe2\x82", 3, "expected UTF-8, found the byte 0xe2"),
        (b"a\0b\nfine\n", 1, "expected text in UTF-8, found the byte 0x00"),
        ("fine\nfine".encode("utf-16"), 1, "found the byte 0x"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path, content, line, fault):
    with pytest.raises(UserError, match=rf"biology\.txt:{line}: .*{fault}.*--lenient"):
        load(write(tmp_path, content))


def test_lenience_skips_such_lines_and_lists_them(tmp_path):
    data = load(write(tmp_path, b"fine\nbr\xfcken\n\nfine too\n"), lenient=True)
    assert texts(data) == ["fine", "fine too"]
    assert [(row.file, row.line) for row in data.skipped] == [("corpora/biology.txt", 2)]


@pytest.mark.parametrize("content", ["", "\n\n \n"])
def test_a_file_without_a_passage_is_refused(tmp_path, content):
    with pytest.raises(UserError, match=r"biology\.txt: expected one passage a line, found none"):
        load(write(tmp_path, content))


def test_a_missing_corpus_says_where_it_was_looked_for(tmp_path):
    with pytest.raises(UserError, match=r"corpora/biology\.txt.* or S2ORC's metadata .*s2orc; put a text there"):
        load(tmp_path)
    with pytest.raises(UserError, match="is no folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(UserError) as error:
        load(tmp_path, "corpus-wikipedia")
    assert "S2ORC" not in str(error.value)


@pytest.mark.parametrize("blank", [" ", "", "ä"])
def test_a_very_long_line_becomes_several_passages_that_lose_nothing(tmp_path, monkeypatch, blank):
    monkeypatch.setattr(passages, "LONGEST", 10)
    line = blank.join(f"wört{number}" for number in range(40))
    data = load(write(tmp_path, f"short\n{line}\nend\n"))
    assert data.notes == ("lines longer than 10 bytes, in several passages: 1",)
    found = texts(data)
    assert (found[0], found[-1]) == ("short", "end")
    assert blank.join(found[1:-1]) == line if blank == " " else "".join(found[1:-1]) == line
    assert max(len(text.encode()) for text in found) <= 10


def test_a_fault_in_a_long_line_has_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(passages, "LONGEST", 10)
    with pytest.raises(UserError, match=r"biology\.txt:2: expected UTF-8, found the byte 0xff"):
        load(write(tmp_path, b"short\n" + b"many words " * 5 + b"\xff\nend\n"))


def test_headings_are_no_passages_of_articles_alone(tmp_path):
    content = " = Alloy =\nAn alloy is = or =\n\n = = Use = =\nx = y\n"
    data = load(write(tmp_path, content, "wikipedia.train.txt"), "corpus-wikipedia")
    assert texts(data) == ["An alloy is = or =", "x = y"]
    assert data.notes == ("empty lines: 1", "headings: 2")
    assert not data.central
    assert len(load(write(tmp_path, content)).pool) == 4


def test_the_validation_text_is_central(tmp_path):
    write(tmp_path, " = A =\nvalid\n", "wikipedia.valid.txt")
    data = load(write(tmp_path, "train\n", "wikipedia.train.txt"), "corpus-wikipedia")
    assert [text for (text,) in data.central["valid"].texts] == ["valid"]
    assert task("corpus-wikipedia").evaluations == ("test", "valid")


def test_sentences_are_passages_of_their_own(tmp_path):
    data = load(write(tmp_path, "\n".join(SENTENCES)), "corpus-biology-sentences")
    assert texts(data) == [
        *("Cells divide.", "They grow!", "Do they?", "2 of 3 do."),
        *("The value was 0.", "5 e.g. in mice."),  # the rule is simple, and documented
        *("(Fig.", "1) shows it."),
    ]
    assert task("corpus-biology-sentences").long_texts == "cut"
    assert task("corpus-biology").long_texts == "blocks"


# ---- passages are read when they are asked for -----------------------------------------------------------------


@pytest.fixture
def lazy(tmp_path):
    return load(write(tmp_path, "\n".join(f"passage {number} — ü" for number in range(20)))).pool.texts


def test_passages_are_a_sequence_that_can_be_copied(lazy):
    eager = tuple((f"passage {number} — ü",) for number in range(20))
    assert (tuple(lazy), len(lazy), lazy[3], lazy[-1]) == (eager, 20, eager[3], eager[-1])
    assert tuple(lazy[5:9]) == eager[5:9]
    assert tuple(lazy[::-3]) == eager[::-3]
    for other in (pickle.loads(pickle.dumps(lazy)), copy.deepcopy(lazy)):
        assert tuple(other) == eager
    with pytest.raises(IndexError):
        lazy[20]


def test_the_digest_is_that_of_the_texts_held(lazy):
    labels = np.zeros(len(lazy), dtype=np.int64)
    eager, read = (TaskData(Examples(found, labels), "") for found in (tuple(lazy), lazy))
    assert read.digest == eager.digest


def test_a_file_that_changes_meanwhile_is_an_error(lazy):
    lazy.file.write_text("another\n" * 40)
    with pytest.raises(UserError, match="has changed since its passages were counted; run again"):
        list(lazy)


def test_neither_loading_nor_tokenising_holds_the_texts(tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "CHARACTERS_AT_ONCE", 100_000)
    lines, words = 8_000, 400
    text = " ".join(VOCABULARY[number % len(VOCABULARY)] for number in range(words))
    folder = write(tmp_path, f"{text}\n" * lines)
    size = (folder / "corpora" / "biology.txt").stat().st_size
    assert size > 15e6
    tokenizer = word_tokenizer(VOCABULARY)
    tracemalloc.start()
    try:
        data = load(folder)
        assert len(data.pool) == lines
        assert data.digest
        loaded = tracemalloc.get_traced_memory()[1]
        pieces = encoded_pieces(data.pool, tokenizer, 128, task("corpus-biology"))
        for _ in range(5):
            next(pieces)
        tokenised = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert loaded < 3 * passages.BUFFER_BYTES + 100 * lines  # a fraction of the texts
    assert tokenised < size / 2


# ---- generated and real ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("variant", ["", "-sentences"])
def test_generated_corpora_have_the_schema_and_the_closed_vocabulary(domain, variant):
    found = task(f"corpus-{domain}{variant}")
    data = found.generate(0)
    assert {word for text in texts(data) for word in text.split()} <= set(VOCABULARY)
    assert sorted(data.central) == (["valid"] if domain == "wikipedia" else [])
    assert found.generate(0).digest == data.digest != found.generate(1).digest
    assert (found.labels, found.objective, found.metrics, found.classes) == (None, "masked_lm", ("perplexity",), 1)
    assert (max(text.count(".") for text in texts(data)) > 1) == (not variant)


def test_generated_domains_differ_in_words_and_in_their_order():
    words, followers = [], []
    for domain in DOMAINS:
        data = texts(task(f"corpus-{domain}").generate(0))
        words.append(Counter(word for text in data for word in text.split()))
        pairs = Counter(pair for text in data for pair in zip(text.split(), text.split()[1:], strict=False))
        followers.append(set(pairs))
    for one in range(len(DOMAINS)):
        for other in range(one):
            shared = sum((words[one] & words[other]).values()) / words[one].total()
            assert shared < 0.6
            assert len(followers[one] & followers[other]) < 0.1 * len(followers[one])


@pytest.mark.parametrize(
    ("domain", "count", "central"),
    [("biology", 131375, 0), ("computer-science", 22160, 0), ("medicine", 11890, 0), ("wikipedia", 183884, 6300)],
)
def test_real_corpora_are_whole(data_dir, domain, count, central):
    data = load(data_dir, f"corpus-{domain}")
    assert len(data.pool) == count
    assert len(data.central.get("valid", ())) == central
    assert not data.skipped


def test_sentences_of_a_real_corpus_make_up_its_passages(data_dir):
    whole, cut = (load(data_dir, f"corpus-medicine{variant}") for variant in ("", "-sentences"))
    assert len(cut.pool) == 28693
    letters = [Counter("".join(" ".join(texts(data)).split())) for data in (whole, cut)]
    assert letters[0] == letters[1]
