"""Write the site: a folder that opens as a file, without a server or outside requests."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from reports import ReportError
from reports.site import html
from reports.site.cells import cell_pages
from reports.site.overview import overview
from reports.site.papers import paper_pages
from reports.site.profiles import profile_page
from reports.site.site_data import SiteData
from reports.site.tables import table_pages

MARK = "site.json"  # marks a folder as a site, so that the next one may replace it


def require_replaceable(out: Path) -> None:
    """Raise ReportError if a folder contains anything but an older site."""
    if out.exists() and not (out.is_dir() and ((out / MARK).is_file() or not any(out.iterdir()))):
        raise ReportError(
            f"{out}: expected an empty folder, or one with a site, found other files: name another folder with --out"
        )


def build(site: SiteData, out: Path) -> tuple[Path, int, int]:
    """Write the whole site into a folder, replacing an older site; ReportError if the folder contains anything else.

    Returns:
        Its first page, the number of pages, and the bytes of all files.
    """
    require_replaceable(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        pages, size = 0, 0
        for path, content in _contents(site):
            place = new / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            pages += path.endswith(".html")
            size += len(content)
        new.chmod(0o755)
        if out.exists():
            shutil.rmtree(out)
        new.rename(out)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return out / html.INDEX, pages, size


def _contents(site: SiteData) -> Iterator[tuple[str, bytes]]:
    """Every file by its path."""
    for name in ("site.css", "site.js", "data.js"):
        yield f"assets/{name}", (files("reports.site") / "static" / name).read_bytes()
    yield "assets/vega.js", _vega().encode()
    for pages in (overview, profile_page, paper_pages, table_pages, cell_pages):
        yield from ((path, text.encode()) for path, text in pages(site))
    for record in site.records:  # the file itself, because its checksum refers to it
        yield f"records/{record.file_name}", ((record.folder or Path()) / record.file_name).read_bytes()
    mark = {"records": len(site.records), "scales": site.scales, "revision": site.revision}
    yield MARK, f"{json.dumps(mark, indent=1)}\n".encode()


def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that needs nothing else."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # The script must not contain the end of a script element, as a page may inline it.
    return bundle.replace("</script", "<\\/script")
