"""Scores and bytes by critical layer, as text and in long form."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from reports.layout import NOT_RUN, Grid, Group, Line, number, row_name, score_label
from reports.views.layers.join import MEGABYTE, Layer, Layers
from reports.views.scores.frame import frame as scores_frame
from reports.views.scores.tables import score_lines


def _megabytes(found: Layers, layer: Layer) -> tuple[str, ...]:
    """Megabytes of a round: measured, and derived where it was asked for."""
    measured = NOT_RUN if layer.measured_bytes is None else number(layer.measured_bytes / MEGABYTE)
    return (measured,) if layer.derived_bytes is None else (measured, number(layer.derived_bytes / MEGABYTE))


def _wider(line: Line, cells: tuple[str, ...]) -> Line:
    """A line of scores with cells to its right."""
    return replace(line, cells=(*line.cells, *cells))


def layers_grid(found: Layers) -> Grid:
    """Groups are c, columns tasks and bytes of a round."""
    columns = found.request.columns
    headers = [(column.name, score_label(column.averaged)) for column in columns]
    headers.append(("MB a round", "measured"))
    if found.has_derived:
        headers.append(("MB a round", f"derived for {found.paper_scale.backbone}"))
    texts = {layer.row.id: _megabytes(found, layer) for layer in found.layers}
    names = {layer.row.id: f"c = {found.label(layer)}" for layer in found.layers}
    nothing = ("",) * (len(headers) - len(columns))
    groups = []
    for row in found.request.rows:
        first, *others = score_lines(found.comparison, row, columns)
        lines = [_wider(first, texts.get(row.id, nothing)), *(_wider(line, nothing) for line in others)]
        groups.append(Group(names.get(row.id, row_name(row)), tuple(lines)))
    return Grid(f"{found.request.heading}: scores and bytes", tuple(headers), tuple(groups), stub="Global layers")


def frame(found: Layers) -> pd.DataFrame:
    """The scores' data frame, with c, the layers exchanged and the bytes derived for the paper's own encoder."""
    table = scores_frame(replace(found.comparison, averages=()))
    by_row = {layer.row.id: layer for layer in found.layers}
    known = [by_row.get(row_id) for row_id in table["row"]]
    table["critical_layer"] = [None if layer is None else layer.critical for layer in known]
    table["layers_exchanged"] = [None if layer is None else layer.layers for layer in known]
    table["derived_round_bytes"] = [None if layer is None else layer.derived_bytes for layer in known]
    return table.astype({"critical_layer": "Int64", "layers_exchanged": "Int64", "derived_round_bytes": "Float64"})
