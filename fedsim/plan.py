"""Exchange plans: which tensors a client views, downloads, trains, uploads and keeps in one round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fedsim.errors import FederationError

ClientId = int


@dataclass(frozen=True)
class ExchangePlan:
    """What one client does with each tensor in one round.

    All names are the client's, except `view`'s values. Every trained name must be uploaded or local. Parameters in none
    of the sets are frozen.

    Args:
        view: The client's parameter name -> the server's name for it.
        download: What the client receives.
        train: What the optimiser changes.
        upload: What the client sends.
        local: What stays with the client.
    """

    view: Mapping[str, str]
    download: frozenset[str]
    train: frozenset[str]
    upload: frozenset[str]
    local: frozenset[str]

    def __post_init__(self) -> None:
        names = frozenset(self.view)
        for role in ("download", "train", "upload", "local"):
            unknown = getattr(self, role) - names
            if unknown:
                raise FederationError(f"exchange plan: {role}: expected parameters of the view, found {_some(unknown)}")
        if self.upload & self.local:
            both = _some(self.upload & self.local)
            raise FederationError(f"exchange plan: expected no parameter both uploaded and local, found {both}")
        lost = self.train - self.upload - self.local
        if lost:
            raise FederationError(f"exchange plan: expected trained parameters uploaded or local, found {_some(lost)}")
        written = [self.view[name] for name in self.upload]
        if len(set(written)) != len(written):
            raise FederationError("exchange plan: expected a server parameter for each uploaded one, found one for two")


PlanFn = Callable[[int, ClientId], ExchangePlan]  # (round, client)


def identity_plan(names: Iterable[str], shared: frozenset[str], local: frozenset[str] = frozenset()) -> ExchangePlan:
    """The plan for a client with the whole model: shared tensors go down and up, local ones stay, both are trained."""
    return ExchangePlan(
        view={name: name for name in names}, download=shared, train=shared | local, upload=shared, local=local
    )


def _some(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return ", ".join(ordered[:3]) + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "")
