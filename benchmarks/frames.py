"""Results as data frames: scores, rounds and bytes in long form, the Pareto front, and plots."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmarks.errors import UserError
from benchmarks.experiment import Row
from benchmarks.measures import metric
from benchmarks.registry import benchmark, benchmark_ids
from benchmarks.results import POOLED, RunResult, among, run_bytes, stage_bytes
from benchmarks.run_config import JSON, RunConfig, canonical_json
from benchmarks.selection import Selection
from reports.evidence.scores import score_at
from reports.pages.plots import method_marks, new_figure, tidy

SCORE = ["scale", "task", "evaluation", "metric"]  # two scores may be compared if they are equal in these columns
MEGABYTE = 10**6


def scores(records: Iterable[RunResult], chosen: Selection | None = None) -> pd.DataFrame:
    """One line per cell, evaluation and metric: scores and the cell's bytes.

    score is that of the chosen round, last that of the last round, and late the mean of the last three rounds.

    uplink and downlink are sums over rounds and clients, including the cell's earlier runs, and None if an earlier
    record is missing; uplink_stage excludes earlier runs. one_time is the model's distribution before round 1.
    Diverged cells have no score. chosen: its rows name the methods.
    """
    records = list(records)
    find = among(records)
    return pd.DataFrame(
        {
            **keys,
            "score": _shown(name, record.score(name, "chosen")),
            "last": _shown(name, record.score(name, "last")),
            "late": _shown(name, score_at(record, name, "late")),
            "test_set_error": None if evaluation == POOLED else _shown(name, record.sampling_error(name)),
            "rounds": len(record.rounds),
            "chosen_round": record.chosen_round,
            "uplink": sent.up if sent else None,
            "downlink": sent.down if sent else None,
            "uplink_stage": stage_bytes(record).up,
            "one_time": record.setup_bytes,
            "diverged": record.divergence,
        }
        for record, cell_keys in _with_keys(records, chosen)
        for sent in [run_bytes(record, find)]
        for name, evaluation, keys in _scored(record, cell_keys)
    )


def curves(records: Iterable[RunResult], chosen: Selection | None = None) -> pd.DataFrame:
    """One line per cell, round, evaluation and metric: the clients' combined score, the loss and the bytes."""
    return pd.DataFrame(
        {
            **keys,
            "round": entry.round,
            "score": _shown(name, value),
            "train_loss": entry.train_loss,
            "uplink": entry.up_bytes,
            "downlink": entry.down_bytes,
        }
        for record, cell_keys in _with_keys(records, chosen)
        for name, _, keys in _scored(record, cell_keys)
        for entry, value in zip(record.rounds, record.by_round(name), strict=True)
    )


def payloads(records: Iterable[RunResult], chosen: Selection | None = None) -> pd.DataFrame:
    """The ledger: one line per cell, round, client, direction and kind. Round 0 is the set-up."""
    return pd.DataFrame(
        {**keys, **entry._asdict()} for record, keys in _with_keys(records, chosen) for entry in record.ledger
    )


def pareto(frame: pd.DataFrame) -> pd.DataFrame:
    """The Pareto front of `scores` in score and uplink bytes, per task and metric: means over seeds, cheapest first.

    It omits a method if another one is at least as good in score and bytes, and better in one.
    """
    means = frame.dropna(subset=["score", "uplink"]).groupby([*SCORE, "method", "name"], as_index=False)[
        ["score", "uplink"]
    ]
    fronts = []
    for keys, group in means.mean().groupby(SCORE):
        gain = metric(str(keys[-1])).sign * group["score"]
        ordered = group.assign(gain=gain).sort_values(["uplink", "gain"], ascending=[True, False])
        best_before = ordered["gain"].cummax().shift(fill_value=-np.inf)
        fronts.append(ordered[ordered["gain"] > best_before].drop(columns="gain"))
    return pd.concat(fronts, ignore_index=True) if fronts else frame.iloc[:0]


def plot(frame: pd.DataFrame) -> Figure:
    """Plot each task's first metric: `curves` as score by round, `scores` as score against uplink bytes.

    Lines and marks are means over seeds; the grey line is the Pareto front.
    """
    if not frame.empty:
        frame = frame[frame["evaluation"] != POOLED].dropna(subset=["score"])
    if frame.empty:
        raise UserError("plot: expected lines of `scores` or `curves` with a score, found none")
    panels = frame.drop_duplicates(["scale", "task"])[SCORE]
    styles = method_marks(map(str, frame["name"].unique()))
    figure = new_figure(4.6 * min(len(panels), 3), 3.4 * -(-len(panels) // 3))
    for place, key in enumerate(panels.itertuples(index=False), 1):
        shown = frame.merge(pd.DataFrame([key]), on=SCORE)
        axes = figure.add_subplot(-(-len(panels) // 3), min(len(panels), 3), place)
        tidy(axes)
        by_round = "train_loss" in frame
        for name, lines in shown.groupby("name", sort=False):
            means = lines.groupby("round")["score"].mean() if by_round else lines[["score", "uplink"]].mean()
            xs, ys = (means.index, means) if by_round else ([means["uplink"] / MEGABYTE], [means["score"]])
            axes.plot(xs, ys, **styles[str(name)], label=name, linestyle="-" if by_round else "none")
        if not by_round:
            front = pareto(shown)
            axes.plot(front["uplink"] / MEGABYTE, front["score"], color="0.6", zorder=0, label="Pareto front")
        by = metric(key.metric)
        axes.set(title=f"{key.task} · {key.scale}", ylabel=f"{by.label} ({by.unit})" if by.unit else by.label)
        axes.set_xlabel("round" if by_round else "uplink, all rounds and clients (MB)")
        axes.legend(frameon=False, fontsize=8)
    return figure


def _with_keys(records: Iterable[RunResult], chosen: Selection | None) -> Iterator[tuple[RunResult, dict[str, JSON]]]:
    """Each record with the columns that identify its cell. method, name: the row's, else the algorithm."""
    records = list(records)
    rows = ((row, cell) for row, _, cell in chosen.cells()) if chosen else _defined(records)
    methods: dict[str, tuple[str, str]] = {}
    for row, cell in rows:
        for key in (cell.place_id, _method(cell)):
            methods.setdefault(key, (row.id, row.name))
    for record in records:
        cell = record.cell
        method, name = methods.get(cell.place_id) or methods.get(_method(cell), (cell.algorithm, cell.algorithm))
        yield (
            record,
            {
                "method": method,
                "name": name,
                "cell": record.cell_id,
                "scale": cell.scale,
                "task": cell.task,
                "algorithm": cell.algorithm,
                "options": canonical_json(cell.options),
                "backbone": cell.backbone,
                "clients": cell.clients,
                "learning_rate": cell.training.learning_rate,
                "seed": cell.seed,
            },
        )


def _method(cell: RunConfig) -> str:
    """The fields that a changed cell shares with its row."""
    return f"{cell.task} {cell.algorithm} {cell.head} {canonical_json(cell.options)}"


def _defined(records: Sequence[RunResult]) -> Iterator[tuple[Row, RunConfig]]:
    """The rows and cells that share scale, task and algorithm with a record, from the largest tables first."""
    recorded = {(record.cell.scale, record.cell.task, record.cell.algorithm) for record in records}
    tables = map(benchmark, benchmark_ids())
    for definition in sorted(tables, key=lambda table: -len(table.rows) * len(table.columns)):
        for scale in definition.scales:
            for row, column in product(definition.rows_at(scale), definition.columns_at(scale)):
                if (scale.id, column.task, row.algorithm) in recorded:
                    yield row, definition.cell(row, column, scale, 0)


def _scored(record: RunResult, keys: dict[str, JSON]) -> Iterator[tuple[str, str, dict[str, JSON]]]:
    """Each score of a record: its name, evaluation and columns; "pooled" covers all clients' test examples."""
    last = record.rounds[-1] if record.rounds else None
    scored = {**last.scores, POOLED: last.pooled_scores.get("test", {})} if last else {}
    extra = last.of_clients if last else {}
    for evaluation, metrics in scored.items():
        for name in (*metrics, *extra.get(evaluation, ())):
            yield f"{evaluation}/{name}", evaluation, {**keys, "evaluation": evaluation, "metric": name}


def _shown(name: str, value: float | None) -> float | None:
    return None if value is None else metric(name).shown(value)
