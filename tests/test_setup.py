"""One list of dependencies, and who may import whom."""

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
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("benchmarks", "fedsim", "partitions", "reports")
DISTRIBUTION_OF = {
    "sklearn": "scikit-learn",
    "vl_convert": "vl-convert-python",
}  # where the name that is imported is not the one that is installed
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
    f"benchmarks.{name}"
    for name in (
        "experiment",
        "publication",
        "run_config",
        "overrides",
        "results",
        "predictions",
        "claims",
        "costs",
        "measures",
    )
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
    render = runpy.run_path(str(ROOT / "tools" / "lock.py"))["environment"]
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "requirements.lock")]
    assert (ROOT / "environment.yml").read_bytes() == render(*texts).encode(), "stale: run `make lock`"


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


def test_nothing_imports_the_command_line() -> None:
    def is_allowed(path: str, name: str) -> bool:
        is_cli = path.startswith(("benchmarks/cli/", "benchmarks/__main__"))
        return is_cli or not is_inside(name, "benchmarks.cli")

    assert offenders("benchmarks", is_allowed) == []


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


@pytest.mark.parametrize(("library", "place"), [("mlflow", "tracking"), ("optuna", "sweeps")])
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
