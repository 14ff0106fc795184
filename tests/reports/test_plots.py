"""Figures: panels in a grid, axes that no value flattens, texts that fit, and marked best trials."""

from reports.pages.plots import Dots, Panel, colour_of, dot_plot
from reports.sweeps import figures


def test_an_axis_begins_near_the_lowest_value_and_is_logarithmic_over_decades():
    scores, sizes = Dots("s", {"FedAvg": 80.0, "FedProx": 85.0}), Dots("s", {"FedAvg": 2.0, "FedProx": 900.0})
    panels = [Panel("A", list(one.values), [one, Dots("without marks", {})]) for one in (scores, sizes)]
    figure = dot_plot("heading", panels, "x", "caption")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["s"]
    near, wide = figure.axes
    assert near.get_xlim()[0] > 70
    assert (near.get_xscale(), wide.get_xscale()) == ("linear", "log")
    assert "10^" not in "".join(tick.get_text() for tick in wide.get_xticklabels())
    colours = {line.get_color() for line in near.lines if line.get_marker() == "o"}
    assert colours == {colour_of("FedAvg"), colour_of("FedProx")}


def test_a_heatmap_has_a_colour_bar_and_frames_the_best(table3):
    trials = [
        {"number": n, "values": {"training.learning_rate": rate, "options.critical_layer": 6}, "mean": score}
        for n, (rate, score) in enumerate([(1e-5, 0.7), (1e-4, 0.8)])
    ]
    study = {"task": "qqp", "method": "fedsplitbert", "metric": "test/accuracy", "seeds": [1000], "front": None}
    grid = {"training.learning_rate": [1e-5, 1e-4], "options.critical_layer": [6]}
    result = study | {"grid": grid, "trials": trials, "ties": [1], "study": "x"}
    figure = figures([result], table3, table3.scale("lite"))["heatmap"]()
    panel, bar = figure.axes
    assert bar.get_ylabel() == "Acc (%)"
    (marks,) = panel.collections
    assert [tuple(edge) == (0.0, 0.0, 0.0, 1.0) for edge in marks.get_edgecolors()] == [False, True]
