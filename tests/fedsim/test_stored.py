"""Numbers in a file: the same as in memory, slice by slice."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedsim.stored import Stored

ENDS = st.none() | st.integers(-12, 12)


@pytest.fixture
def values():
    return np.random.default_rng(0).integers(0, 1000, 10).astype(np.int32)


@pytest.fixture
def stored(values, tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(b"abc" + values.tobytes() + b"d")
    with path.open("rb") as file:
        found = Stored(file, values.dtype, 3, len(values))
    path.unlink()  # stays readable
    return found


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ENDS, ENDS)
def test_slices_are_those_of_the_array(values, stored, begin, end):
    found = stored[begin:end]
    assert found.dtype == values.dtype
    assert found.tolist() == values[begin:end].tolist()
    assert found.flags.aligned


def test_the_whole_is_an_array(values, stored):
    assert np.array_equal(np.asarray(stored), values)
    assert np.asarray(stored, dtype=np.int64).dtype == np.int64
    assert np.concatenate([stored, stored]).tolist() == [*values, *values]
    assert len(stored) == len(values)


def test_a_step_is_refused(stored):
    with pytest.raises(IndexError, match="without a step"):
        stored[::2]


def test_the_file_is_closed_with_its_last_reader(tmp_path):
    path = tmp_path / "numbers"
    path.write_bytes(bytes(8))
    with path.open("rb") as file:
        stored = Stored(file, np.dtype(np.int64), 0, 1)
    descriptor = stored._descriptor
    assert os.fstat(descriptor).st_size == 8
    del stored
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
