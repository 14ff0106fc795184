"""Templates and scripts: all that others wrote passes through them before it is a page."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from benchmarks.run_config import JSON
from reports.front.state import AGAINST, FOR, MEASURED
from reports.pages.styles import colour_of
from reports.pages.text import DAGGER
from reports.site import addresses

SITE_NAME = "Federated BERT, reproduced"
# What a script cannot hold as it is: the end of a script element, and two line ends that old parsers know.
_ESCAPED = {ord(one): f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}


def script_json(value: JSON) -> str:
    """JSON that may stand inside a script element."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(_ESCAPED)


def script(name: str, value: JSON) -> str:
    """A script that gives the page a value under a name."""
    return f"site.put({script_json(name)}, {script_json(value)});\n"


def _kind(word: str) -> str:
    """The colour of a verdict."""
    known = {"for": FOR, "against": AGAINST, "plain": (MEASURED,)}
    return next((kind for kind, words in known.items() if word.startswith(words)), "open")


@cache
def environment() -> Environment:
    """Jinja2 with every value escaped; unknown names are errors."""
    made = Environment(
        loader=PackageLoader("reports.site", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"kind": _kind, "data": script_json}
    names = ("anchor", "paper_page", "table_page", "sweep_page", "record_copy")
    made.globals |= {name: getattr(addresses, name) for name in names}
    made.globals |= {"site_name": SITE_NAME, "colour_of": lambda name: colour_of(name.removesuffix(f" {DAGGER}"))}
    return made


def rendered(template: str, path: str, **values: object) -> str:
    """A page by its template. path: where it will lie; its links follow from it."""
    root = "../" * path.count("/")
    return environment().get_template(f"{template}.html").render(root=root, **{"here": "", **values})


def static(name: str) -> str:
    """A file that is the same for every site."""
    return (files("reports.site") / "static" / name).read_text(encoding="utf-8")


def vega_bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that needs nothing else."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # A page that inlines the script must not meet the end of a script element in it.
    return bundle.replace("</script", "<\\/script")
