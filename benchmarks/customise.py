"""Shim: see benchmarks.experiment, benchmarks.overrides and benchmarks.registry."""

from benchmarks.experiment import with_settings as with_settings
from benchmarks.overrides import parsed as parsed
from benchmarks.overrides import read_value as read_value
from benchmarks.registry import with_backbone as with_backbone
