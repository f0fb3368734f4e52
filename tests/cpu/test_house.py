"""The house rules that a machine can hold: who imports whom, and one place for the GPU."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dgbook"
FAMILIES = ("linear", "maxwell", "acoustics", "euler", "hdg", "swept")
GROUND = ("gpu", "element", "mesh", "time")
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


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_imports_run_one_way(path):
    here = room(path)
    rooms = {name.split(".")[1] for name in imported(path) if name.startswith("dgbook.")}
    if here in GROUND:
        assert not rooms & set(FAMILIES), "the ground knows nothing of the families"
        allowed = {here} if here != "time" else {"time", "gpu"}
        assert rooms <= allowed, f"{here} imports {sorted(rooms - allowed)}"
    if here in FAMILIES:
        assert not rooms & (set(FAMILIES) - {here}), "families never import one another"


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
