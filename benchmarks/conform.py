"""Whether what a record's file says can be: types by pydantic, and what its numbers must say of each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from benchmarks.record import RunRecord


@cache
def _types() -> TypeAdapter[RunRecord]:
    from pydantic import TypeAdapter

    from benchmarks.record import RunRecord

    return TypeAdapter(RunRecord)


def require_types(content: bytes) -> None:
    """ValueError that names the first field of a record's JSON that has another type than it must have."""
    from pydantic import ValidationError

    try:
        _types().validate_json(content, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise ValueError(f"{place}: {first['msg']}") from None


def require_sense(record: RunRecord) -> None:
    """ValueError where a record's numbers contradict each other, or can be no such numbers.

    A checksum that fits says that a file is as it was written, not that a run wrote it.
    """
    for problem in _problems(record):
        raise ValueError(problem)


def _problems(record: RunRecord) -> Iterator[str]:
    clients = record.cell.clients
    for name in ("data", "backbone"):
        if not {"digest", "origin"} <= record.inputs.get(name, {}).keys():
            yield f"inputs: expected the digest and the origin of the {name}"
    if [entry.round for entry in record.rounds] != list(range(1, len(record.rounds) + 1)):
        yield "rounds: expected 1, 2, 3 and so on"
    if len(record.rounds) > record.cell.training.last_round:
        yield f"rounds: expected at most {record.cell.training.last_round}, found {len(record.rounds)}"
    if not record.diverged and not record.rounds:
        yield "rounds: expected some of a cell that did not diverge"
    if len(record.clients) != clients:
        yield f"clients: expected {clients}, found {len(record.clients)}"
    for entry in record.rounds:
        if not set(entry.cohort) <= set(range(clients)):
            yield f"round {entry.round}: a cohort of clients that there are not"
        if len(entry.client_scores) != clients:
            yield f"round {entry.round}: expected scores of {clients} clients, found {len(entry.client_scores)}"
    yield from _ledger(record)


def _ledger(record: RunRecord) -> Iterator[str]:
    sums: Counter[tuple[int, str]] = Counter()
    for row in record.ledger:
        if min(row.values, row.bytes, row.messages) < 0 or not 0 <= row.round <= len(record.rounds):
            yield f"ledger: {tuple(row)} cannot be"
        if row.direction not in ("up", "down") or not -1 <= row.client < record.cell.clients:
            yield f"ledger: {tuple(row)} names no direction or client"
        sums[row.round, row.direction] += row.bytes
    for entry in record.rounds:
        for direction, said in (("up", entry.up_bytes), ("down", entry.down_bytes)):
            if said != sums[entry.round, direction]:
                found = sums[entry.round, direction]
                yield f"round {entry.round}: {said} bytes {direction}, and {found} in the ledger"
    if record.setup_bytes != sums[0, "down"] + sums[0, "up"]:
        yield f"set-up: {record.setup_bytes} bytes, and {sums[0, 'down'] + sums[0, 'up']} in the ledger"
