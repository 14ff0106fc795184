"""The contract: what the code says of the committed records is what it said when tests/expected was frozen.

A failure names each number, old and new. If the change is meant, run `python -m tests.contract.freeze` and explain the
change in the commit message. If only names in the code have changed, adapt tests/contract/project.py.
"""

import pytest

from tests.contract import frames, project
from tests.contract.facts import Facts, Frame, difference, read


def check(frame: Frame, new: Facts, *begins: str) -> None:
    """Compare with the expected facts. begins: compare only keys that begin with one of these."""
    old = {key: value for key, value in read(frame).items() if not begins or key[0].startswith(begins)}
    message = difference(frame, old, new)
    if message:
        pytest.fail(message, pytrace=False)


def by_paper(*slow: str) -> pytest.MarkDecorator:
    """One test per paper. slow: papers that take more than two seconds."""
    marks = {paper: [pytest.mark.slow] if paper in slow else [] for paper in project.PAPERS}
    return pytest.mark.parametrize("paper", [pytest.param(paper, marks=mark) for paper, mark in marks.items()])


@pytest.fixture(scope="module", autouse=True)
def loaded_records():
    """The committed records, read once."""
    project.committed_records()


def test_records():
    check(frames.RECORDS, frames.records())


@by_paper()
def test_spec_ids(paper):
    check(frames.SPEC_IDS, frames.spec_ids([paper]), paper)


@pytest.mark.slow
def test_generated_data():
    check(frames.DATA, frames.generated_data(), "generated")


@pytest.mark.slow
def test_real_data():
    if frames.data_dir() is None:
        pytest.skip("needs real data: set DATA_DIR")
    files = frames.real_files()
    expected = {key: value for key, value in read(frames.DATA).items() if key[0] == "file"}
    other = [key[1] for key, size in expected.items() if files.get(key) != size]
    if other:
        pytest.skip(f"DATA_DIR holds other data than were frozen: {len(other)} files differ, {other[0]} first")
    check(frames.DATA, frames.real_data(), "strict", "lenient")


@pytest.mark.slow
def test_wire():
    check(frames.WIRE, frames.wire())


@by_paper("fedbert", "fedbfpt", "fedfreezebert", "fedsplitbert")
def test_tables(paper):
    check(frames.TABLES, frames.tables([paper]), paper)


@by_paper("fedbert", "fedbfpt", "fedfreezebert", "fedsplitbert")
def test_claims(paper):
    check(frames.CLAIMS, frames.claims([paper]), paper)


@by_paper("fedbfpt")
def test_audit(paper):
    check(frames.AUDIT, frames.audit([paper]), paper)
