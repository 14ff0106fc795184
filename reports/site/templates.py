"""Templates and scripts: what everything that others wrote passes through before it is a page."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from benchmarks.run_config import JSON
from reports.front.state import AGAINST, FOR
from reports.pages.styles import colour_of
from reports.pages.text import DAGGER
from reports.site import addresses

SITE_NAME = "Federated BERT, reproduced"
# What a script cannot hold as it is: the end of a script element, and two line ends that old parsers know.
_ESCAPED = {ord(one): f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}
_KINDS = {
    **dict.fromkeys((*FOR, "consistent", "holds"), "for"),
    **dict.fromkeys((*AGAINST, "inconsistent", "does not hold"), "against"),
    **dict.fromkeys(("undecided", "not judged", "not derivable"), "open"),
}


def script_json(value: JSON) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(_ESCAPED)


def data_script(name: str, value: JSON) -> str:
    """A script that hands the page a value under a name."""
    return f"site.put({script_json(name)}, {script_json(value)});\n"


@cache
def environment() -> Environment:
    """Jinja2 with every value escaped, and no name that a template makes up."""
    made = Environment(
        loader=PackageLoader("reports.site", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["kind"] = lambda word: _KINDS.get(word, "plain")
    made.filters["data"] = script_json
    made.globals |= {
        "site_name": SITE_NAME,
        "anchor": addresses.anchor,
        "paper_page": addresses.paper_page,
        "table_page": addresses.table_page,
        "sweep_page": addresses.sweep_page,
        "record_copy": addresses.record_copy,
        "colour_of": lambda name: colour_of(name.removesuffix(f" {DAGGER}")),
    }
    return made


def rendered(template: str, path: str, **values: object) -> str:
    """A page by its template. path: where it will lie, from which its links follow."""
    root = "../" * path.count("/")
    return environment().get_template(f"{template}.html").render(root=root, **{"here": "", **values})


def static(name: str) -> str:
    """A file of the site that is the same for every site."""
    return (files("reports.site") / "static" / name).read_text(encoding="utf-8")


def vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that needs nothing else."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # Not a page's own data, but what ends a script element may not stand in one that somebody inlines.
    return bundle.replace("</script", "<\\/script")
