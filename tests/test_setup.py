"""The project's own promises: one list of dependencies, who may import whom, and files that stay small."""

from __future__ import annotations

import ast
import graphlib
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("benchmarks", "fedsim", "partitions", "reports")
DISTRIBUTION_OF = {
    "sklearn": "scikit-learn",
    "vl_convert": "vl-convert-python",
}  # where the name that is imported is not the one that is installed
MAX_LINES = 400
MAX_LINES_OF_SMALL = 300  # a file of the packages below
# 630 of fedsim are the packed layers, 400 leases and the reading of files, 60 clients' turns, 2 that a CPU without
# bf16 of its own computes in it; the site, which only shows, is counted apart from what judges. 40 of reports are the
# rule that a failed baseline proves nothing, 40 how far central training comes beside what others report, 30 what is
# not judged before any run, 15 how noisy timed ratios are and over how many clients bytes are counted, 60 that errors
# of seeds and test sets are kept apart, 30 that to be near a row that does nothing proves nothing, 45 that what
# cannot be judged is left out and named, 9 that a page begins with its claims, its contents by scale, 8 that a
# comparison asks for the tuning of the rows it reads, 22 that the least certain task of an average is kept apart, 4
# that readings of a claim which end otherwise are told, 121 how many seeds would decide a claim, 280 the view of
# gains over a reference and beyond a part of them, and comparisons asked once, 60 that a reason which several claims
# share is told once, 26 whether verdicts hang on the round that is scored.
MAX_LINES_TOGETHER = {"fedsim": 6452, "reports": 11_460, "reports/site": 1999}
APART = {"reports": "reports/site"}
# What each package of reports builds on, beside the standard library and benchmarks' pure data.
REPORTS: Mapping[str, tuple[str, ...]] = {
    "evidence": (),
    "pages": ("evidence",),
    "views": ("evidence", "pages"),
    "claims": ("evidence", "pages"),
    "audit": ("evidence", "pages", "claims"),
    "front": ("evidence", "pages", "claims", "audit"),
    "sweeps": ("pages",),
    "site": ("evidence", "pages", "views", "claims", "audit", "front"),
}
READ_BY_REPORTS = tuple(
    f"benchmarks.{name}" for name in ("spec", "record", "predictions", "claims", "costs", "measures")
)

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RUNTIME = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRAS = {extra: [Requirement(line) for line in lines] for extra, lines in PROJECT["optional-dependencies"].items()}
# Of an environment apart, for the one script that runs in it.
FLOWER_SCRIPT = "benchmarks/performance/flower_job.py"
FLOWER = [
    Requirement(line)
    for line in (ROOT / FLOWER_SCRIPT).with_name("requirements-flower.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
LOCK_LINES = [
    line for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines() if not line.startswith("#")
]
LOCK = dict(line.split("==") for line in LOCK_LINES)


def sources(package: str) -> list[Path]:
    """All Python files of a package."""
    files = sorted((ROOT / package).rglob("*.py"))
    assert files, f"no Python file under {package}/"
    return files


def imported(path: Path) -> Iterator[str]:
    """Full names of what a file imports, in functions too: `a.b` for `import a.b` and `from a import b`."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            prefix = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{prefix}.{alias.name}" for alias in node.names)


def is_inside(name: str, *modules: str) -> bool:
    """Whether a full name is one of these modules or lies in one of them."""
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def offenders(package: str, is_allowed: Callable[[str, str], bool]) -> list[str]:
    """Lines `file imports name` for what a rule on (file, name) forbids."""
    return [
        f"{path.relative_to(ROOT).as_posix()} imports {name}"
        for path in sources(package)
        for name in imported(path)
        if not is_allowed(path.relative_to(ROOT).as_posix(), name)
    ]


def third_party(*packages: str) -> set[str]:
    """Distributions that the packages import: neither ours nor the standard library's."""
    roots = {name.split(".")[0] for package in packages for path in sources(package) for name in imported(path)}
    ours_or_standard = {*PACKAGES, *sys.stdlib_module_names}
    return {canonicalize_name(DISTRIBUTION_OF.get(root, root)) for root in roots - ours_or_standard}


def dependency_rows() -> dict[str, str]:
    """Rows of the README's tables whose first cell is a name in backticks, by that name."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return {canonicalize_name(row[1]): row[2] for row in re.finditer(r"^\| *`([^`]+)` *\|(.*)$", readme, re.M)}


def names(requirements: list[Requirement]) -> set[str]:
    """Normalised names of requirements."""
    return {canonicalize_name(requirement.name) for requirement in requirements}


# ---- dependencies ------------------------------------------------------------------------------------------


def test_environment_is_what_pyproject_and_lock_make() -> None:
    render = runpy.run_path(str(ROOT / "tools" / "environment.py"))["render"]
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "requirements.lock")]
    assert (ROOT / "environment.yml").read_bytes() == render(*texts).encode(), "stale: run `make lock`"


def test_environment_is_one_that_conda_reads() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert set(environment) == {"name", "channels", "dependencies"}
    python, pip, section = environment["dependencies"]
    assert python == "python=3.11"
    assert pip == "pip"
    pins = [Requirement(line) for line in section["pip"] if not line.startswith("--")]
    assert names(pins) == names([*RUNTIME, *EXTRAS["dev"]])
    assert {line for line in section["pip"] if line.startswith("--")} == {
        "--constraint requirements.lock",
        "--editable .",
    }


def test_lock_holds_exact_versions_for_every_machine() -> None:
    assert len(LOCK) == len(LOCK_LINES)
    assert list(LOCK) == sorted(LOCK)
    assert [line for line in LOCK_LINES if not re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line)] == []
    assert [name for name in LOCK if re.match(r"nvidia|cuda|triton", name)] == []


@pytest.mark.parametrize("requirement", [*RUNTIME, *EXTRAS["dev"]], ids=lambda requirement: requirement.name)
def test_lock_pins_a_version_that_is_accepted(requirement: Requirement) -> None:
    assert requirement.specifier.contains(LOCK[canonicalize_name(requirement.name)])


def test_everything_imported_is_declared() -> None:
    declared = names([*RUNTIME, *FLOWER]).union(*(names(EXTRAS[extra]) for extra in EXTRAS if extra != "dev"))
    assert third_party(*PACKAGES) - declared == set()


def test_every_dependency_has_its_row_in_the_readme() -> None:
    declared = names(RUNTIME).union(*(names(requirements) for requirements in EXTRAS.values()))
    assert declared - dependency_rows().keys() == set()


def test_every_runtime_dependency_is_imported_or_has_its_reason() -> None:
    rows = dependency_rows()
    unused = names(RUNTIME) - third_party(*PACKAGES)
    assert {name for name in unused if "not imported" not in rows.get(name, "")} == set()


def test_flower_stands_apart_with_the_same_versions_of_what_both_use() -> None:
    both = {requirement.name for requirement in FLOWER} & LOCK.keys()
    assert both == {"torch", "transformers"}
    assert {str(requirement) for requirement in FLOWER if requirement.name in both} == {f"{n}=={LOCK[n]}" for n in both}
    assert "flwr" not in LOCK


# ---- who may import whom -----------------------------------------------------------------------------------


def test_fedsim_imports_nothing_of_ours() -> None:
    assert offenders("fedsim", lambda _, name: not is_inside(name, "benchmarks", "partitions", "reports")) == []


def test_partitions_is_numpy_only() -> None:
    heavy = ("benchmarks", "fedsim", "reports", "torch", "transformers", "datasets", "pandas")
    assert offenders("partitions", lambda _, name: not is_inside(name, *heavy)) == []


def test_leases_are_of_the_standard_library_alone() -> None:
    tree = ast.parse((ROOT / "fedsim" / "leases.py").read_text(encoding="utf-8"))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.partition(".")[0] for name in names} <= {"__future__", *sys.stdlib_module_names}


def test_reports_reads_specs_and_records_only() -> None:
    def is_allowed(_: str, name: str) -> bool:
        if is_inside(name, "benchmarks"):
            return is_inside(name, *READ_BY_REPORTS)
        if is_inside(name, "fedsim.files"):
            return True
        return not is_inside(name, "fedsim", "partitions", "torch", "transformers")

    assert offenders("reports", is_allowed) == []


def test_reports_import_along_the_arrow() -> None:
    """Evidence stands below everything that shows or judges it; what a package may import is what REPORTS says."""

    def is_allowed(path: str, name: str) -> bool:
        if not is_inside(name, "reports") or name == "reports.ReportError":
            return True
        own, other = path.split("/")[1], name.split(".")[1]
        return own == other or other in REPORTS[own]

    assert offenders("reports", is_allowed) == []


def test_no_modules_of_reports_import_each_other() -> None:
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sources("reports")}
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}

    def of(name: str) -> str:
        """The module that a name is or is in; a package only where the name is no module of it."""
        return next(part for part in (name, name.rpartition(".")[0]) if part in modules)

    graph = {
        module: {of(name) for name in imported(path) if is_inside(name, "reports")} for module, path in modules.items()
    }
    graphlib.TopologicalSorter(graph).prepare()  # CycleError names a circle


@pytest.mark.parametrize(("library", "place"), [("mlflow", "tracking"), ("optuna", "studies")])
def test_library_has_one_place(library: str, place: str) -> None:
    def is_allowed(path: str, name: str) -> bool:
        at_home = path == f"benchmarks/{place}.py" or path.startswith(f"benchmarks/{place}/")
        return at_home or not is_inside(name, library)

    assert [line for package in PACKAGES for line in offenders(package, is_allowed)] == []


def test_flower_and_this_project_import_nothing_of_each_other() -> None:
    theirs = ("flwr", "numpy", "torch", "transformers", *sys.stdlib_module_names)

    def is_allowed(path: str, name: str) -> bool:
        return is_inside(name, *theirs) if path == FLOWER_SCRIPT else not is_inside(name, "flwr")

    assert [line for package in PACKAGES for line in offenders(package, is_allowed)] == []


def test_light_packages_load_nothing_heavy() -> None:
    """Also holds for what they import in turn, which reading single files cannot show."""
    modules = sorted(
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for package in ("partitions", "reports")
        for path in sources(package)
        if path.name != "__main__.py"
    )
    program = (
        f"import importlib, sys\nfor name in {modules}: importlib.import_module(name)\n"
        "print(*sorted({'torch', 'transformers', 'datasets', 'mlflow', 'optuna'} & set(sys.modules)))"
    )
    process = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (process.stdout.strip(), process.stderr) == ("", "")


# ---- size --------------------------------------------------------------------------------------------------


def test_no_file_is_long() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for folder in (*PACKAGES, "tests", "tools")
        for path in sources(folder)
    }
    assert {path: lines for path, lines in lengths.items() if lines > MAX_LINES} == {}


@pytest.mark.parametrize("package", MAX_LINES_TOGETHER)
def test_the_package_and_its_files_are_small(package: str) -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in sources(package)
        if package not in APART or not path.is_relative_to(ROOT / APART[package])
    }
    assert {path: lines for path, lines in lengths.items() if lines > MAX_LINES_OF_SMALL} == {}
    assert sum(lengths.values()) <= MAX_LINES_TOGETHER[package]
