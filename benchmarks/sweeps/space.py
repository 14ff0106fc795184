"""What a sweep tries of each row: what the user asks for, or the definition's grids, or a default around its settings.

Fields and values are those of --set: a critical layer counts the paper's layers.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence

from benchmarks.errors import UserError
from benchmarks.experiment import Benchmark, Column, Row, Scale
from benchmarks.overrides import changeable, field_value, parsed, read_value
from benchmarks.run_config import JSON, RunConfig
from benchmarks.sweeps.tuning import Range, Space
from fedsim.algorithms import trains

LAYER, RATE = "options.critical_layer", "training.learning_rate"
# Of tables that declare no grid: all layers of the paper's figures, and even steps around the rate of the definition.
LAYERS = (0, 4, 6, 8, 10, 12)
RATE_STEPS = (0.25, 0.5, 1, 2, 4)
DECIDED = ("holdout", "seed")  # by the sweep itself


def read_space(grids: Sequence[str], ranges: Sequence[str]) -> Space:
    """The fields of --grid and --range, in their order; UserError where one is malformed or comes twice."""
    space: dict[str, Sequence[JSON] | Range] = {}
    texts = [("--grid", text) for text in grids] + [("--range", text) for text in ranges]
    for flag, assignment in texts:
        name, equals, text = assignment.partition("=")
        if not (name and equals and text):
            example = "training.learning_rate=1e-5,2e-5" if flag == "--grid" else "training.learning_rate=1e-5:1e-3:log"
            raise UserError(f"{flag} {assignment}: expected field=values, such as {example}")
        if name in DECIDED:
            raise UserError(f"{flag} {name}: a sweep decides that itself; leave it out (--seeds says how many)")
        if name in space:
            raise UserError(f"{flag} {name}: expected each field once, found it twice; give all values at once")
        space[name] = _values(name, text) if flag == "--grid" else _range(name, text)
    return space


def _values(name: str, text: str) -> Sequence[JSON]:
    found = parsed("--grid", name, f"[{text}]", text.split(","))
    values = [read_value("--grid", name, each if isinstance(each, str) else json.dumps(each)) for each in found]
    if "" in values:
        raise UserError(f"--grid {name}: expected values between commas, found an empty one in {text!r}")
    return [value for place, value in enumerate(values) if value not in values[:place]]


def _range(name: str, text: str) -> Range:
    low, _, rest = text.partition(":")
    high, _, scale = rest.partition(":")
    ends = [read_value("--range", name, end) for end in (low, high)]
    if not all(type(end) in (int, float) for end in ends) or scale not in ("", "log"):
        raise UserError(f"--range {name}: expected low:high or low:high:log with two numbers, found {text!r}")
    if not ends[0] < ends[1] or (scale == "log" and ends[0] <= 0):
        above = " above 0" if scale == "log" else ""
        raise UserError(f"--range {name}: expected low{above} and below high, found {text!r}")
    return Range(ends[0], ends[1], log=scale == "log", whole=all(type(end) is int for end in ends))


def spaces(
    benchmark: Benchmark, scale: Scale, rows: Sequence[Row], columns: Sequence[Column], named: bool, asked: Space
) -> dict[tuple[str, str], Space]:
    """What is tried of each task and row that has something to tune: (task, row id) -> fields.

    asked: the user's own fields, for every row that has them all; none: what the definition declares, or the default.
    named: whether the user named the rows. UserError where nothing is left, or a named row has nothing to tune.
    """
    declared = benchmark.search(scale).grids
    own = [row for row in benchmark.rows_at(scale) if row.id in declared]
    found: dict[tuple[str, str], Space] = {}
    for column in columns:
        for row in rows if named or not asked else _first_of_equals(rows, asked):
            cell = benchmark.cell(row, column, scale, 0)
            if asked:
                space = _asked(benchmark, row, cell, asked)
            else:
                space = declared.get(row.id, {}) if own else default_space(benchmark, row, cell)
            if space:
                found[column.task, row.id] = space
    empty = [row.id for row in rows if row.id not in {row_id for _, row_id in found}]
    if not found or (named and empty):
        lacking = ", ".join(empty) if named else "it"
        if asked:
            cell = benchmark.cell(rows[0], columns[0], scale, 0)
            raise UserError(
                f"{benchmark.id}: no {' and '.join(asked)} to tune in {lacking}; "
                f"{rows[0].id} has {', '.join(changeable(cell))}"
            )
        known = ", ".join(row.id for row in own) or "no method, as none is trained"
        raise UserError(f"{benchmark.id}: nothing to tune in {lacking}; it tunes {known}; --grid tunes other fields")
    return found


def default_space(benchmark: Benchmark, row: Row, cell: RunConfig) -> Space:
    """Critical layer and learning rate of a row that has both, or its learning rate; nothing of one without training.

    Nothing of one that takes over another's of its table. The layer of a row that differs from another one in that
    alone is what makes the row: it stays.
    """
    takes_over = row.tuned_as in {other.id for other in benchmark.rows if other.id != row.id}
    if row.is_fixed(RATE) or takes_over or not trains(cell.algorithm):
        return {}
    rates = [float(f"{step * cell.training.learning_rate:.3g}") for step in RATE_STEPS]
    space: dict[str, Sequence[JSON]] = {RATE: rates}
    if LAYER in benchmark.units and "critical_layer" in cell.options and not _is_its_layer(benchmark, row):
        space = {LAYER: [layer for layer in LAYERS if layer <= benchmark.units[LAYER].of], **space}
    return space


def _is_its_layer(benchmark: Benchmark, row: Row) -> bool:
    def rest(one: Row) -> list[tuple[str, str]]:
        return sorted((name, repr(value)) for name, value in one.changes.items() if name != LAYER)

    return any(other.id != row.id and rest(other) == rest(row) for other in benchmark.rows)


def _first_of_equals(rows: Sequence[Row], asked: Space) -> list[Row]:
    """Without rows that differ from another one in the swept fields alone: their trials would be the same cells."""
    first: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: (not row.printed, bool(row.tuned_as))):
        rest = sorted((name, repr(value)) for name, value in row.changes.items() if name not in asked)
        first.setdefault(f"{rest} {row.begins} {row.backbone}", row)
    return [row for row in rows if row in first.values()]


def _asked(benchmark: Benchmark, row: Row, cell: RunConfig, asked: Space) -> Space:
    """The user's fields, where a row has them all: ranges of what is no whole number are of any number."""
    if not all(_has(benchmark, row, cell, name) for name in asked):
        return {}
    return {
        name: Range(values.low, values.high, values.log, values.whole and not _is_float(cell, name))
        if isinstance(values, Range)
        else values
        for name, values in asked.items()
    }


def _is_float(cell: RunConfig, name: str) -> bool:
    try:
        return isinstance(field_value(cell, name), float)
    except (KeyError, TypeError):
        return False


def _has(benchmark: Benchmark, row: Row, cell: RunConfig, name: str) -> bool:
    """Whether a row has a field that may be changed; of options, also those that its method takes and it leaves out.

    Changes reach the row from which it begins, which has to have it, too.
    """
    if row.begins and cell.initial and not _has(benchmark, benchmark.row(row.begins), cell.initial, name):
        return False
    if row.is_fixed(name) or (name.startswith("training.") and not trains(cell.algorithm)):
        return False
    try:
        field_value(cell, name)
    except (KeyError, TypeError):
        from fedsim.algorithms import algorithm_function

        group, _, option = name.partition(".")
        return (
            group == "options" and option in list(inspect.signature(algorithm_function(cell.algorithm)).parameters)[1:]
        )
    return True
