"""Write the site: a folder that opens from a file, without a server and without any outside request."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from benchmarks.results import RunResult
from reports import ReportError
from reports.site.addresses import INDEX, record_copy
from reports.site.cells import cell_pages
from reports.site.material import Material
from reports.site.overview import overview
from reports.site.pages import table_pages
from reports.site.papers import paper_pages
from reports.site.templates import static, vega_bundle

MARK = "site.json"  # marks a folder as a site, so that the next one may replace it


@dataclass(frozen=True)
class Built:
    """What was written. data_bytes: of records, their pages and the charts' data; other_bytes: of all else."""

    index: Path
    pages: int
    data_bytes: int
    other_bytes: int


def build(material: Material, out: Path) -> Built:
    """Write the whole site into a folder, replacing an older site; ReportError if the folder holds anything else."""
    if out.exists() and not (out.is_dir() and ((out / MARK).is_file() or not any(out.iterdir()))):
        raise ReportError(
            f"{out}: expected an empty folder, or one with a site, found other files: name another folder with --out"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    try:
        pages, data_bytes, other_bytes = 0, 0, 0
        for path, content in _contents(material):
            place = made / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            pages += path.endswith(".html")
            if path.startswith(("data/", "cells/", "records/")):
                data_bytes += len(content)
            else:
                other_bytes += len(content)
        made.chmod(0o755)
        if out.exists():
            shutil.rmtree(out)
        made.rename(out)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return Built(out / INDEX, pages, data_bytes, other_bytes)


def _contents(material: Material) -> Iterator[tuple[str, bytes]]:
    """Every file by its path."""
    for name in ("site.css", "site.js", "data.js"):
        yield f"assets/{name}", static(name).encode()
    yield "assets/vega.js", vega_bundle().encode()
    pages = (overview, paper_pages, table_pages, cell_pages)
    texts = chain.from_iterable(part(material) for part in pages)
    yield from ((path, text.encode()) for path, text in texts)
    yield from ((record_copy(record), _file(record)) for record in material.records)
    mark = {"records": len(material.records), "scales": material.scales, "revision": material.revision}
    yield MARK, f"{json.dumps(mark, indent=1)}\n".encode()


def _file(record: RunResult) -> bytes:
    """A record's own file if it was read from one, as its checksum is of that file."""
    path = None if record.folder is None else record.folder / record.file_name
    if path is not None and path.is_file():
        return path.read_bytes()
    return f"{json.dumps(record.to_json(), indent=1, ensure_ascii=False)}\n".encode()
