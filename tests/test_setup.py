"""One list of dependencies, and the allowed imports between packages."""

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
DISTRIBUTION_OF = {"sklearn": "scikit-learn", "vl_convert": "vl-convert-python"}  # imported name -> installed name
# What each package of reports builds on, in addition to the standard library and benchmarks' pure data.
REPORTS: Mapping[str, tuple[str, ...]] = {
    "evidence": (),
    "pages": ("evidence",),
    "frame": ("evidence", "pages"),
    "views": ("evidence", "pages", "frame"),
    "claims": ("evidence", "pages", "views"),
    "audit": ("evidence", "pages", "claims"),
    "front": ("evidence", "pages", "claims", "audit"),
    "sweeps": ("pages",),
    "site": ("evidence", "pages", "views", "claims", "audit", "front"),
}
READ_BY_REPORTS = tuple(
    f"benchmarks.{name}"
    for name in (
        "experiment", "publication", "run_config", "overrides", "results", "predictions", "claims", "costs", "measures",
        "encoders.backbones", "dry_run.shapes",
    )
)  # fmt: skip
HEAVY = {
    "torch", "transformers", "datasets", "evaluate", "mlflow", "optuna", "numpy", "pandas", "matplotlib", "scipy",
    "sklearn", "rich",
}  # fmt: skip
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RUNTIME = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRAS = {extra: [Requirement(line) for line in lines] for extra, lines in PROJECT["optional-dependencies"].items()}


def lines_of(name: str) -> list[str]:
    return [line for line in (ROOT / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]


FLOWER = [Requirement(line) for line in lines_of("benchmarks/performance/requirements-flower.txt")]
LOCK = dict(line.split("==") for line in lines_of("requirements.lock"))


def imported(path: Path, for_types: bool = True) -> Iterator[str]:
    """Full names of what a file imports, in functions too: `a.b` for `import a.b` and `from a import b`.

    for_types: with what type checkers alone import.
    """
    package, tree = path.relative_to(ROOT).parent.parts, ast.parse(path.read_text(encoding="utf-8"), str(path))
    if not for_types:
        tree.body = [node for node in tree.body if not (isinstance(node, ast.If) and "TYPE_" in ast.dump(node.test))]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            prefix = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{prefix}.{alias.name}" for alias in node.names)


IMPORTS = {  # file -> names
    path.relative_to(ROOT).as_posix(): sorted(set(imported(path)))
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}


def is_inside(name: str, *modules: str) -> bool:
    """Whether a full name is one of these modules or lies in one of them."""
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def offenders(package: str, is_allowed: Callable[[str, str], bool]) -> list[str]:
    """Lines "file imports name" that a rule on (file, name) forbids."""
    files = {file: names for file, names in IMPORTS.items() if file.startswith(package)}
    assert files
    return [f"{file} imports {name}" for file, names in files.items() for name in names if not is_allowed(file, name)]


def names(requirements: list[Requirement]) -> set[str]:
    """Normalised names of requirements."""
    return {canonicalize_name(requirement.name) for requirement in requirements}


# ---- dependencies ------------------------------------------------------------------------------------------


def test_environment_is_what_pyproject_and_lock_make():
    render = runpy.run_path(str(ROOT / "tools" / "lock.py"))["environment"]
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "requirements.lock")]
    assert (ROOT / "environment.yml").read_bytes() == render(*texts).encode(), "stale: run `make lock`"


def test_the_lock_pins_accepted_versions_for_every_machine():
    assert list(LOCK) == sorted(LOCK)
    assert [name for name, version in LOCK.items() if not re.fullmatch(r"[0-9][0-9a-z.]*", version)] == []
    assert [name for name in LOCK if re.match(r"nvidia|cuda|triton", name)] == []
    for requirement in (*RUNTIME, *EXTRAS["dev"]):
        assert requirement.specifier.contains(LOCK[canonicalize_name(requirement.name)]), requirement


def test_dependencies_are_declared_imported_and_explained_in_the_table():
    roots = {name.split(".")[0] for each in IMPORTS.values() for name in each} - {*PACKAGES, *sys.stdlib_module_names}
    used = {canonicalize_name(DISTRIBUTION_OF.get(root, root)) for root in roots}
    extras = names([requirement for extra in EXTRAS.values() for requirement in extra])
    assert used - names([*RUNTIME, *FLOWER]) - extras == set()
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = {canonicalize_name(row[1]): row[2] for row in re.finditer(r"^\| *`([^`]+)` *\|(.*)$", page, re.M)}
    assert (names(RUNTIME) | extras) - rows.keys() == set()
    assert {name for name in names(RUNTIME) - used if "not imported" not in rows[name]} == set()


# ---- who may import whom -----------------------------------------------------------------------------------


def test_packages_import_only_those_below_them():
    assert offenders("fedsim", lambda _, name: not is_inside(name, "benchmarks", "partitions", "reports")) == []
    heavy = ("benchmarks", "fedsim", "reports", "torch", "transformers", "datasets", "pandas")
    assert offenders("partitions", lambda _, name: not is_inside(name, *heavy)) == []
    above = ("benchmarks/cli/", "benchmarks/__main__")
    assert offenders("benchmarks", lambda file, name: file.startswith(above) or "benchmarks.cli" not in name) == []


def test_reports_read_definitions_and_results_along_the_arrow():
    def is_allowed(file: str, name: str) -> bool:
        if is_inside(name, "reports") and name != "reports.ReportError":
            importer, other = file.split("/")[1].removesuffix(".py"), name.split(".")[1]
            return importer == other or other in REPORTS[importer]
        if is_inside(name, "benchmarks"):
            return is_inside(name, *READ_BY_REPORTS)
        return is_inside(name, "fedsim.files", "fedsim.errors") or not is_inside(
            name, "fedsim", "partitions", "torch", "transformers"
        )

    assert offenders("reports", is_allowed) == []


def test_no_modules_import_each_other():
    modules = {file.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): file for file in IMPORTS}

    def module_of(name: str) -> str:
        """The module of a full name; a package only if the name is not one of its modules."""
        while name not in modules:
            name = name.rpartition(".")[0]
        return name

    def imports(module: str) -> set[str]:
        names = imported(ROOT / modules[module], for_types=False)
        return {module_of(name) for name in names if is_inside(name, *PACKAGES)} - {module}

    graphlib.TopologicalSorter({module: imports(module) for module in modules}).prepare()  # CycleError names a circle


@pytest.mark.parametrize(("library", "place"), [("mlflow", "tracking"), ("optuna", "sweeps")])
def test_a_library_has_one_place(library, place):
    def is_allowed(file: str, name: str) -> bool:
        return file.startswith(f"benchmarks/{place}") or not is_inside(name, library)

    assert offenders("", is_allowed) == []


def heavy_after(program: str) -> set[str]:
    """The heavy libraries that a program has loaded, indirectly too."""
    command = [sys.executable, "-c", f"{program}\nimport sys; print('LOADED', *sys.modules)"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return HEAVY & set(ended.stdout.rpartition("LOADED")[2].split())


def test_light_packages_load_nothing_heavy():
    files = [file for file in IMPORTS if file.startswith(("partitions", "reports")) and "__main__" not in file]
    modules = [file.removesuffix(".py").replace("/", ".").removesuffix(".__init__") for file in files]
    libraries = heavy_after(f"import importlib\nfor name in {modules}: importlib.import_module(name)")
    assert "pandas" in libraries
    assert not libraries & {"torch", "transformers", "datasets", "mlflow", "optuna"}


def test_definitions_and_claims_import_nothing_heavy():
    program = (
        "from benchmarks.cli.main import main; from benchmarks.registry import claims_of\n"
        "assert main(['list']) == main(['show', 'fedsplitbert-table3']) == 0\n"
        "assert all(map(claims_of, ('fedsplitbert', 'fedfreezebert', 'fedbert', 'fedbfpt')))"
    )
    assert heavy_after(program) == set()


def test_running_a_cell_loads_neither_definitions_nor_reports():
    code = (
        "import sys; from benchmarks.running import runner; from benchmarks.tasks import task; task('mrpc')\n"
        "print(*{name for name in sys.modules if name.startswith(('benchmarks', 'reports'))})"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(ended.stdout.split())
    assert "benchmarks.running.runner" in loaded
    assert not {name for name in loaded if name.startswith(("reports", "benchmarks.experiment", "benchmarks.fed"))}
