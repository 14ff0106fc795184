"""Write requirements.lock, what pip resolves for this project with its dev extra, and environment.yml, made from it.

The lock is applied as constraints (`pip install -c requirements.lock -e '.[dev]'`), so it holds versions and
nothing else: no index, no build of a version (`+cpu`), and no package that belongs to one accelerator.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = """\
# Exact versions for `pip install -c requirements.lock -e '.[dev]'`.
# Made from pyproject.toml by `make lock`; do not edit.
"""
# They come with torch's CUDA build alone, which pins them itself.
ACCELERATOR = re.compile(r"(nvidia|cuda|triton)(-.*)?")


def resolve() -> list[dict[str, str]]:
    """Ask pip for the newest set of packages that fits, installing nothing."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    command += ["--report", "-", "--editable", f"{ROOT}[dev]"]
    pip = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if pip.returncode:
        sys.exit("pip found no set of packages that fits pyproject.toml (its reason is above); nothing is changed")
    return [item["metadata"] for item in json.loads(pip.stdout)["install"]]


def lock_of(packages: list[dict[str, str]]) -> str:
    """Sort into `name==version` lines, without the project itself and what suits one machine only."""
    names = {re.sub(r"[-_.]+", "-", package["name"]).lower(): package["version"] for package in packages}
    lines = [
        f"{name}=={version.partition('+')[0]}"
        for name, version in sorted(names.items())
        if name != "fedbert-bench" and not ACCELERATOR.fullmatch(name)
    ]
    return HEADER + "\n".join(lines) + "\n"


def environment(pyproject: str, lock: str) -> str:
    """A conda environment: the lowest Python allowed, on which the lock is made, and pip's requirements."""
    project = tomllib.loads(pyproject)["project"]
    versions = dict(line.split("==") for line in lock.splitlines() if line and not line.startswith("#"))
    direct = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = sorted(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0] for requirement in direct)
    requirements = "".join(f"      - {name}=={versions[name]}\n" for name in names)
    return f"""\
# Made from pyproject.toml and requirements.lock by `make lock`; do not edit.
name: {project["name"]}
channels:
  - conda-forge
dependencies:
  - python={project["requires-python"].removeprefix(">=")}
  - pip
  - pip:
      - --constraint requirements.lock
{requirements}      - --editable .
"""


if __name__ == "__main__":
    lock = lock_of(resolve())
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for name, text in {"requirements.lock": lock, "environment.yml": environment(pyproject, lock)}.items():
        (ROOT / name).write_text(text, encoding="utf-8")
