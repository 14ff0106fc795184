"""MLflow shows runs while they compute, and can be filled from their records at any time."""

from benchmarks.tracking.server import serve
from benchmarks.tracking.store import default_tracking_uri

__all__ = ["default_tracking_uri", "serve"]
