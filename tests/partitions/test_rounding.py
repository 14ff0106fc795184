"""Whole numbers of examples from fractional ones."""

import numpy as np
import pytest

from partitions.drawing import equal_sizes, largest_remainder


@pytest.mark.parametrize(
    ("quotas", "total", "counts"),
    [
        ([1.2, 2.7, 0.1], 4, [1, 3, 0]),
        ([0.5, 1.5, 1.0], 3, [1, 1, 1]),  # a tie goes to the first
        ([2.4, 3.2, 14.4], 20, [3, 3, 14]),  # also one that floating point breaks: 2.4 - 2 < 14.4 - 14
        ([0.29 * 100, 0.71 * 100], 100, [29, 71]),  # 28.999999999999996
        ([0.0, 3.0], 3, [0, 3]),
        ([1.4, 1.4, 1.4], 4, [2, 1, 1]),  # quotas sum to 4.2
    ],
)
def test_largest_remainder(quotas, total, counts):
    assert largest_remainder(np.array(quotas), total).tolist() == counts


def test_equal_sizes():
    assert equal_sizes(11, 4).tolist() == [3, 3, 3, 2]
    assert equal_sizes(8, 4).tolist() == [2, 2, 2, 2]
