"""The house rules that a machine can hold: who imports whom, and one place for the GPU."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import listings
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dgbook"
FAMILIES = ("linear", "maxwell", "acoustics", "euler", "hdg", "swept")
# What each room beside the families may import, and `arguments`, which all may.
MAY_IMPORT = {
    "gpu": set(),
    "element": set(),
    "mesh": set(),
    "time": {"gpu"},
    "nodal": {"gpu", "element", "mesh", "time"},
    "parallel": {"gpu", "mesh", "time", "nodal"},
    "check": {"gpu"},
    "lab": {"gpu", "element", "mesh", "time", "nodal", "parallel", *FAMILIES},
    "page": {"gpu", "check", "lab"},
}
CORE = ("gpu", "element", "mesh", "time", "nodal", "parallel", *FAMILIES)
BESIDE = {"check", "lab", "cli", "page"}
# `device="simulator"` of the public interface: a launch on NumPy arrays loads the simulator.
THE_DOOR = ("dgbook.gpu.kernel", {"dgbook.check", "dgbook.check.simulator"})
FILES_OF_A_FAMILY = 12
MODULES = sorted(PACKAGE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Full names of the modules that a file imports, wherever in the file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(ROOT).parent.parts
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*above, *filter(None, [node.module])))
            names.add(module)
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return names


def room(path: Path) -> str:
    """The first folder, or the module, below dgbook/."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def module(path: Path) -> str:
    """The full name of a file's module."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


NAMES = {module(path): path for path in MODULES}


def imported_modules(path: Path) -> set[str]:
    """Modules of this package that a file imports, the door apart."""
    here = module(path)
    inside, through = THE_DOOR
    return (imported(path) & NAMES.keys()) - {here} - (through if here == inside else set())


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_imports_run_one_way(path):
    here = room(path)
    rooms = {name.split(".")[1] for name in imported_modules(path) if "." in name}
    rooms -= {here, "arguments"}
    if here in MAY_IMPORT:
        assert rooms <= MAY_IMPORT[here], f"{here} imports {sorted(rooms - MAY_IMPORT[here])}"
    if here in FAMILIES:
        assert not rooms & set(FAMILIES), "families never import one another"
    if here in CORE:
        assert not rooms & BESIDE, f"the core never imports {sorted(rooms & BESIDE)}"


def test_no_modules_import_one_another_in_a_circle():
    graph = {name: imported_modules(path) for name, path in NAMES.items()}
    # A package's own file hands on what its modules have; they do not import it.
    graph = {
        name: {n for n in found if not name.startswith(f"{n}.")} for name, found in graph.items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_is_small_enough_to_hold(family):
    files = [
        path
        for path in (PACKAGE / family).rglob("*.py")
        if path.name not in ("__init__.py", "cores.py") and "kernels" not in path.parts
    ]  # cores.py holds kernels, too: those for processor cores
    assert len(files) <= FILES_OF_A_FAMILY


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_only_gpu_imports_the_gpu(path):
    if room(path) != "gpu":
        names = {
            n for n in imported(path) if n.split(".")[0] == "cupy" or n.startswith("numba.cuda")
        }
        names |= {"numba.cuda"} & {
            f"numba.{n.split('.')[-1]}" for n in imported(path) if n == "numba.cuda"
        }
        assert not names, f"{path.name} imports {sorted(names)}; only dgbook/gpu does"


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_file_says_what_it_is_for(path):
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring and docstring.splitlines()[0].rstrip().endswith("."), "one sentence, first"


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_public_names_are_documented(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    missing = [
        node.name
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        and not node.name.startswith("_")
        and ast.get_docstring(node) is None
    ]
    assert not missing, f"no docstring: {missing}"


@pytest.mark.parametrize(("place", "text"), [pytest.param(*s, id=s[0]) for s in listings.sources()])
def test_what_chapters_print_fits_a_listing(place, text):
    long = [line for line in text.splitlines() if len(line) > listings.COLUMNS]
    assert not long, f"{place}: longer than {listings.COLUMNS} columns"
