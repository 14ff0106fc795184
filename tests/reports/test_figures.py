"""The parts that figures share: the methods' colours and marks, and the room for the legend."""

from benchmarks.registry import benchmark, benchmark_ids
from reports.pages.plots import MARKS, colour_of, finish, method_marks, new_figure


def test_methods_of_one_colour_have_different_marks():
    names = [f"method {number}" for number in range(200)]
    alike = [name for name in names if colour_of(name) == colour_of(names[0])][: len(MARKS)]
    styles = method_marks(alike)
    assert {style["color"] for style in styles.values()} == {colour_of(names[0])}
    assert len({style["marker"] for style in styles.values()}) == len(alike) == len(MARKS)


def test_the_rows_of_each_table_are_distinguishable():
    for table in map(benchmark, benchmark_ids()):
        styles = method_marks(row.name for row in (*table.rows, *table.without_training))
        assert len({tuple(style.values()) for style in styles.values()}) == len(styles), table.id


def test_a_long_legend_makes_the_figure_higher():
    heights = []
    for count in (1, 30):
        figure = new_figure(4, 3)
        handles = [figure.subplots().plot([0], label=f"a method with a long name {n}")[0] for n in range(count)]
        heights.append(finish(figure, "heading", handles, "caption").get_figheight())
    assert heights[0] == 3
    assert heights[1] > 6
