"""MLflow mirror of the run records: live while cells run, and rebuilt from the records where it missed something."""

from benchmarks.tracking.mirror import Mirror
from benchmarks.tracking.server import serve
from benchmarks.tracking.shown import About, Shown
from benchmarks.tracking.store import default_tracking_uri, is_server, prepare, require_uri, written_from_here

__all__ = [
    "About",
    "Mirror",
    "Shown",
    "default_tracking_uri",
    "is_server",
    "prepare",
    "require_uri",
    "serve",
    "written_from_here",
]
