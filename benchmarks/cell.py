"""Shim: see benchmarks.run_config."""

from benchmarks.run_config import ENGINE_VERSION as ENGINE_VERSION
from benchmarks.run_config import NAME as NAME
from benchmarks.run_config import VALIDATION as VALIDATION
from benchmarks.run_config import Cell as Cell
from benchmarks.run_config import Training as Training
