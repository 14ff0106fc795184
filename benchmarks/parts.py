"""Shim: see benchmarks.experiment and benchmarks.publication."""

from benchmarks.experiment import Column as Column
from benchmarks.experiment import Row as Row
from benchmarks.experiment import Scale as Scale
from benchmarks.publication import LEARNING as LEARNING
from benchmarks.publication import PLAIN_SCORES as PLAIN_SCORES
from benchmarks.publication import SCALES as SCALES
from benchmarks.publication import Deviation as Deviation
from benchmarks.publication import Elsewhere as Elsewhere
from benchmarks.publication import Paper as Paper
from benchmarks.publication import Published as Published
from benchmarks.publication import View as View
from benchmarks.publication import Yardstick as Yardstick
