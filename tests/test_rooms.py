"""The rooms of the source: each imports only what is below it, and nothing goes in a circle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from gpukern.bench.contenders.registry import PEERS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "gpukern"

# Of each room of python/gpukern, from the bottom up, what it may import; a room holds the files
# of its folder and of the folders in it that are no rooms themselves. "gpukern" is __init__.py.
PYTHON_ROOMS = {
    "_core": "",
    "text": "",
    "processes": "text",
    "catalogue": "_core text",
    "creation": "_core text",
    "protocols": "_core creation",
    "settings": "_core text",
    "profiling": "_core text",
    "machine": "_core text",
    "frameworks": "_core text",
    "kernels": "_core text processes machine frameworks",
    "pycuda": "_core kernels",
    "bench.model": "text catalogue",
    "bench.cases": "_core text catalogue bench.model",
    "bench.checking": "_core bench.model bench.cases",
    "bench.clock": "_core machine bench.model",
    "bench.contenders": "_core text catalogue profiling machine kernels bench.model",
    "bench.showing": "text machine bench.model",
    "bench": "_core text processes machine bench.model bench.cases bench.checking "
    "bench.clock bench.contenders bench.showing",
    "cli": "_core text machine bench bench.model bench.cases bench.contenders bench.showing",
    "notebook": "text kernels cli",
    "__main__": "machine cli",
    "gpukern": "_core catalogue creation settings profiling machine frameworks kernels bench "
    "bench.contenders notebook",
}

python_sources = pytest.mark.skipif(not PACKAGE.exists(), reason="the tests stand alone")


def python_modules() -> dict[str, Path]:
    """Every module of the package by its name, _core by its stub."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py*")):
        if path.suffix in (".py", ".pyi"):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = path
    return found


def named_by(node: ast.AST, modules: dict[str, Path]) -> Iterator[str]:
    """The modules of the package that a statement imports, or a string names to import."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, f"a relative import, line {node.lineno}"
        for alias in node.names:
            # A module of that package, or else a name that is defined in it.
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in modules else str(node.module)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        # As the lazy names of __init__.py and the adapters of the peers are written.
        named = re.fullmatch(r"(gpukern(?:\.\w+)+)(?::\w+)?", node.value)
        if named and named[1] in modules:
            yield named[1]


def python_imports() -> dict[str, set[str]]:
    """For each module the others of the package that it imports, inside of functions too."""
    modules = python_modules()
    imports = {}
    for name, path in modules.items():
        nodes = ast.walk(ast.parse(path.read_text()))
        found = {one for node in nodes for one in named_by(node, modules)}
        imports[name] = {one for one in found if one.split(".")[0] == "gpukern"} - {name}
    return imports


def python_room(module: str) -> str:
    """The innermost room that a module is in."""
    inside = module.removeprefix("gpukern.")
    while inside not in PYTHON_ROOMS:
        assert "." in inside, f"{module} is in no room"
        inside = inside.rpartition(".")[0]
    return inside


@python_sources
def test_python_rooms_are_told_from_the_bottom_up():
    below: set[str] = set()
    for room, allowed in PYTHON_ROOMS.items():
        assert set(allowed.split()) <= below, f"{room} comes before what it imports"
        below.add(room)
    assert {python_room(module) for module in python_modules()} == set(PYTHON_ROOMS)


@python_sources
def test_python_modules_import_only_what_is_below_their_room():
    upward = [
        f"{module} imports {other}"
        for module, others in python_imports().items()
        for other in sorted(others)
        if python_room(other)
        not in {python_room(module), *PYTHON_ROOMS[python_room(module)].split()}
    ]
    assert not upward, "\n".join(upward)


@python_sources
def test_python_rooms_may_import_nothing_that_they_do_not_need():
    needed: dict[str, set[str]] = {room: set() for room in PYTHON_ROOMS}
    for module, others in python_imports().items():
        needed[python_room(module)] |= {python_room(other) for other in others}
    for room, allowed in PYTHON_ROOMS.items():
        assert set(allowed.split()) <= needed[room], f"the table gives {room} more than it uses"


@python_sources
def test_python_imports_go_in_no_circle():
    try:
        TopologicalSorter(python_imports()).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


@python_sources
def test_python_adapters_are_where_the_registry_looks():
    names = {peer.offer.partition(":")[0] for peer in PEERS}
    room = "gpukern.bench.contenders"
    adapters = {name for name in python_modules() if re.fullmatch(rf"{room}\.\w+_", name)}
    assert names == adapters


@python_sources
def test_python_packages_say_what_lives_there():
    for path in PACKAGE.rglob("__init__.py"):
        module = ast.parse(path.read_text())
        assert ast.get_docstring(module), f"{path} says nothing"
        imported = path.parent in (PACKAGE, PACKAGE / "pycuda")  # by users
        alone = imported or len(module.body) == 1
        assert alone, f"{path} holds more than words, so that a room cannot be entered alone"


@python_sources
def test_python_imports_of_every_kind_are_read():
    """The reading itself: what it would miss, no other test here would find."""
    modules = dict.fromkeys(["gpukern", "gpukern.a", "gpukern.a.b", "gpukern.c"], PACKAGE)
    code = (
        "import gpukern.a.b\n"
        "from gpukern import c, name\n"
        "def f():\n    from gpukern.a import b, other\n"
        "PEERS = ['gpukern.a.b:contenders', 'gpukern.nothing', 'see gpukern.c']\n"
    )
    found = [one for node in ast.walk(ast.parse(code)) for one in named_by(node, modules)]
    assert sorted(found) == sorted(
        ["gpukern.a.b", "gpukern.c", "gpukern", "gpukern.a.b", "gpukern.a", "gpukern.a.b"]
    )
