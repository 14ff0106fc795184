"""Shim: see benchmarks.experiment, benchmarks.publication, benchmarks.overrides and benchmarks.run_config."""

from benchmarks.experiment import BaseFn as BaseFn
from benchmarks.experiment import Benchmark as Benchmark
from benchmarks.experiment import Column as Column
from benchmarks.experiment import Row as Row
from benchmarks.experiment import Scale as Scale
from benchmarks.experiment import Stage as Stage
from benchmarks.overrides import ByScale as ByScale
from benchmarks.overrides import ByTask as ByTask
from benchmarks.publication import LEARNING as LEARNING
from benchmarks.publication import SCALES as SCALES
from benchmarks.publication import Deviation as Deviation
from benchmarks.publication import Elsewhere as Elsewhere
from benchmarks.publication import Paper as Paper
from benchmarks.publication import Published as Published
from benchmarks.publication import View as View
from benchmarks.publication import Yardstick as Yardstick
from benchmarks.run_config import ENGINE_VERSION as ENGINE_VERSION
from benchmarks.run_config import JSON as JSON
from benchmarks.run_config import NAME as NAME
from benchmarks.run_config import Cell as Cell
from benchmarks.run_config import Training as Training
from benchmarks.run_config import canonical_json as canonical_json
from benchmarks.run_config import digest as digest
