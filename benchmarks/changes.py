"""Shim: see benchmarks.overrides."""

from benchmarks.overrides import ByScale as ByScale
from benchmarks.overrides import ByTask as ByTask
from benchmarks.overrides import LayerUnit as LayerUnit
from benchmarks.overrides import changeable as changeable
from benchmarks.overrides import expanded as expanded
from benchmarks.overrides import field_value as field_value
from benchmarks.overrides import options_in as options_in
from benchmarks.overrides import with_changes as with_changes
from benchmarks.overrides import with_option as with_option
