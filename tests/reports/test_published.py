"""Published numbers: damaged files, derived values and printed digits."""

from decimal import Decimal

import pytest

from reports import ReportError
from reports.evidence.published_files import read_published
from reports.evidence.statistics import printed

HEADER = "table,row,column,score,value\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "t.csv: expected the published values, found no such file"),
        ("", "t.csv:1: expected the header table,row,column,score,value"),
        ("# source\n" + HEADER, "t.csv:1: expected the header"),
        (HEADER + "T,a,x,test/f1,1\nT,a,x,test/acc,many\n", "t.csv:3: expected table,row.*'T,a,x,test/acc,many'"),
        (HEADER + "T,a,x,test/f1,nan\n", "t.csv:2: .*number"),
        (HEADER + "T,a,x,1\n", "t.csv:2: .*'T,a,x,1'"),
        (HEADER + "T,a,x,,1\nT,a,x,,2\n", "t.csv:3: expected one value for each place, found two of T,a,x,"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path, content, message):
    path = tmp_path / "t.csv"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ReportError, match=message):
        read_published(path)


def test_derived_values_are_computed_from_printed_ones(tmp_path):
    path = tmp_path / "derived.csv"
    path.write_text(
        "table,row,column,score,value,derivation\n"
        "Table 3,c-psum,x,test/f1,75.26,\n"
        "Table 3,fedavg,x,test/f1,,{c-psum} / 1.129\n"
        "Table 3,other,x,test/f1,,{fedavg} * 2\n"
    )
    printed, derived, twice = read_published(path)
    assert (printed.derivation, derived.derivation) == ("", "{c-psum} / 1.129")
    assert (derived.value, twice.value) == (75.26 / 1.129, 2 * (75.26 / 1.129))


@pytest.mark.parametrize(
    "derived",
    ["1.0,{b} * 3", ",", ",{b} / 2", ",__import__('os')", ",{a} / 0", ",{a} ** 3", ",{a} * 2 + 1"],
)
def test_other_derivations_are_refused_with_their_line(derived, tmp_path):
    path = tmp_path / "derived.csv"
    path.write_text(f"table,row,column,score,value,derivation\nT,a,x,s,1,\nT,c,x,s,{derived}\n")
    with pytest.raises(ReportError, match=r"derived\.csv:3"):
        read_published(path)


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
