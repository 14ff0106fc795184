from decimal import Decimal

import pytest

from reports.evidence.published import by_place, read_published
from reports.evidence.statistics import (
    average,
    printed,
)


@pytest.mark.parametrize(
    ("value", "cut", "rounded"),
    [
        ("77.949", "77.94", "77.95"),
        ("-0.019", "-0.01", "-0.02"),
        ("-0.001", "0.00", "0.00"),
        ("1.005", "1.00", "1.01"),  # binary: 1.00499…, which would round down
        ("0.29", "0.29", "0.29"),  # binary: 28.999… hundredths, which would be cut to 0.28
    ],
)
def test_decimals_follow_the_printed_digits(value, cut, rounded):
    assert str(printed(float(value), "truncate")) == str(printed(Decimal(value), "truncate")) == cut
    assert str(printed(float(value))) == rounded


def test_the_rule_gives_all_five_printed_averages(table3):
    published = by_place(read_published(table3.published_csv), "Table III")
    values = {place: entry.value for place, entry in published.items()}
    rows = [row for row in table3.rows if row.printed]
    assert len(rows) == 5
    for row in rows:
        tasks = [printed(values[row.id, column.task, column.averaged]) for column in table3.columns]
        assert average(tasks, table3.average) == printed(values[row.id, "average", ""]), row.id
    # Rounding instead would print 72.26 for FedAvg: the rule matters.
    fedavg = [printed(values["fedavg", column.task, column.averaged]) for column in table3.columns]
    assert average(fedavg, "round") == Decimal("72.26")
