"""Print environment.yml: a conda environment with the dependencies of pyproject.toml as they are locked."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def locked_versions(lock: str) -> dict[str, str]:
    """Read a lock's `name==version` lines."""
    return dict(line.split("==") for line in lock.splitlines() if line and not line.startswith("#"))


def requirement_name(requirement: str) -> str:
    """Cut a requirement such as `ray[default]>=2` down to its distribution's name."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    if match is None:
        raise ValueError(f"expected a requirement such as 'numpy>=2', found {requirement!r}")
    return match.group()


def render(pyproject: str, lock: str) -> str:
    """Write the environment: the lowest Python allowed, on which the lock is made, and pip's requirements."""
    project = tomllib.loads(pyproject)["project"]
    versions = locked_versions(lock)
    direct = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = sorted(requirement_name(requirement) for requirement in direct)
    return "\n".join(
        [
            "# Made from pyproject.toml and requirements.lock by `make lock`; do not edit.",
            f"name: {project['name']}",
            "channels:",
            "  - conda-forge",
            "dependencies:",
            f"  - python={project['requires-python'].removeprefix('>=')}",
            "  - pip",
            "  - pip:",
            "      - --constraint requirements.lock",
            *(f"      - {name}=={versions[name]}" for name in names),
            "      - --editable .",
            "",
        ]
    )


if __name__ == "__main__":
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "requirements.lock")]
    sys.stdout.write(render(*texts))
