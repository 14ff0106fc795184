"""Shim: see benchmarks.run_config."""

from benchmarks.run_config import JSON as JSON
from benchmarks.run_config import canonical_json as canonical_json
from benchmarks.run_config import digest as digest
