"""MLflow as a sink of events: it shows runs while they compute, and can be filled from their records at any time."""

from benchmarks.tracking.mirror import Mirror
from benchmarks.tracking.server import serve
from benchmarks.tracking.store import default_tracking_uri, is_server, require_uri
from benchmarks.tracking.table import Table, TableCell

__all__ = ["Mirror", "Table", "TableCell", "default_tracking_uri", "is_server", "require_uri", "serve"]
