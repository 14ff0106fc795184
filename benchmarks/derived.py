"""What shapes give, kept in a file: pages of records then need no torch, and wait for nothing.

`python tools/derived.py` renews the file. What it does not hold is derived anew where torch is installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from benchmarks.costs import ClientCosts, Kinds, ModelSizes, WirePlan
from benchmarks.spec import JSON, Cell, canonical_json, digest
from benchmarks.tasks import task

FILE = Path(__file__).with_name("derived.json")
UNTOLD = ("learning_rate",)  # of training, what no shape depends on and searches choose
Answer = TypeVar("Answer", WirePlan, ClientCosts)


def key_of(what: str, cell: Cell, examples: int | None = None) -> str:
    """Under which a cell's answer is kept: the same for cells of the same shapes, whatever their data.

    what: "plan" or "client". examples: of all clients together, where they were given.
    """
    found = task(cell.task)
    training = {name: value for name, value in vars(cell.training).items() if name not in UNTOLD}
    decisive = cell.backbone, cell.algorithm, cell.options, cell.clients, cell.codec, cell.head, training, cell.seed
    of_task = found.objective, found.classes, found.objective_options, found.long_texts
    return f"{what}-{digest(json.loads(canonical_json([*decisive, *of_task, examples])))}"


def is_derivable() -> bool:
    """Whether what is not kept can be derived here: torch is installed."""
    try:
        return find_spec("torch") is not None
    except ModuleNotFoundError:
        return False


@cache
def _kept() -> Mapping[str, JSON]:
    return dict(json.loads(FILE.read_text(encoding="utf-8"))) if FILE.is_file() else {}


def kept_plan(key: str) -> WirePlan | None:
    """The plan that the file has under a key; None without one."""
    found = _kept().get(key)
    return None if found is None else plan_from(found)


ASKED: dict[str, JSON] = {}  # every key that was asked in this process, and its answer
MISSING: set[str] = set()  # those without one, as it is not kept and torch is not installed


def answered(key: str, read: Callable[[JSON], Answer], derive: Callable[[], Answer | None]) -> Answer | None:
    """The kept answer of a key, else what `derive` gives; None where neither is to be had."""
    if key in ASKED or key in _kept():
        found = ASKED.setdefault(key, _kept().get(key))
        return None if found is None else read(found)
    if not is_derivable():
        MISSING.add(key)
        return None
    answer = derive()
    ASKED[key] = None if answer is None else json.loads(json.dumps(_written(answer)))
    return answer


def _kinds(kinds: Kinds) -> list[JSON]:
    return [[way, kind, size] for (way, kind), size in kinds.items()]


def _written(answer: WirePlan | ClientCosts) -> JSON:
    if isinstance(answer, ClientCosts):
        return asdict(answer)
    own = [_kinds(each.kinds) for each in (answer.rounds[:1] if answer.alike else answer.rounds)]
    sizes = asdict(answer.sizes)
    return {"rounds": len(answer.rounds), "kinds": own, "setup_bytes": answer.setup_bytes, "sizes": sizes}


def plan_from(value: JSON) -> WirePlan:
    """The plan of a kept answer."""
    rounds: list[Kinds] = [{(way, kind): size for way, kind, size in kinds} for kinds in value["kinds"]]
    whole = rounds * value["rounds"] if len(rounds) == 1 else rounds
    return WirePlan.of_rounds(whole, value["setup_bytes"], ModelSizes(**value["sizes"]))


def client_from(value: JSON) -> ClientCosts:
    """The costs of a kept answer."""
    return ClientCosts(**value)


def renewed() -> str:
    """The file's text: what was asked in this process, a line each."""
    lines = (f"{json.dumps(key)}: {canonical_json(value)}" for key, value in sorted(ASKED.items()))
    return "{\n" + ",\n".join(lines) + "\n}\n"
