"""Imports point downward: each module imports from its own layer or from layers below it, and no two each other.

An import inside a function counts like any other, and so does one for type checkers. `UPWARD` lists the few that point
upward, each with its reason. Circles of modules there are none: what both sides need stands in a module below both.
"""

import ast
import functools
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.cases import together
from tools.house import statements

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "wengert"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset(
        {
            "errors",
            "support",
            "native",
            "pictures",
        }
    ),
    frozenset({"kernel"}),
    frozenset({"emission"}),
    frozenset({"core"}),
    frozenset({"primitives"}),
    frozenset({"traces"}),
    frozenset({"passes"}),
    frozenset({"control"}),
    frozenset({"conversion"}),
    frozenset({"lowering"}),
    frozenset({"compile"}),
    frozenset({"transforms"}),
    frozenset(
        {
            "numpy",
            "scipy",
            "random",
            "tree",
            "functional",
            "autograd",
            "creation",
            "graph",
            "implicit",
            "explanation",
            "visualization",
            "testing",
            "extend",
            "sparse",
        }
    ),
    frozenset({"nn", "optim", "interop", "distributed", "demo", "cli", "__main__"}),
    frozenset({"wengert"}),
)

LEVEL = {unit: level for level, units in enumerate(LAYERS) for unit in units}

UPWARD: dict[tuple[str, str], str] = {
    ("wengert.demo.network", "wengert"): "the demonstration is written as its readers would write it",
}
"""(importing module, imported unit) -> why it may point upward."""


def module_name(path: Path) -> str:
    parts = list(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def unit_of(module: str) -> str:
    """The unit of a module: the name below the package, or the package itself."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "wengert"


def statements_of(module: str) -> list[ast.stmt]:
    """The definitions and imports of a module."""
    return statements(MODULES[module].read_text())


@functools.cache
def imports_of(module: str) -> list[tuple[int, str]]:
    """What `imported` finds in a module of this package."""
    return imported(module, MODULES[module].read_text())


def imported(module: str, text: str) -> list[tuple[int, str]]:
    """Lines and names of the modules of this package that a module imports, anywhere and for anybody."""
    found: list[tuple[int, str]] = []
    for node in statements(text):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: imports are absolute"
            base = node.module or ""
            names = [f"{base}.{alias.name}" for alias in node.names]
            found += [(node.lineno, name if name in MODULES else base) for name in names]
    return [(line, name) for line, name in found if name == "wengert" or name.startswith("wengert.")]


@together("module", MODULES)
def test_every_module_has_a_layer(module):
    assert unit_of(module) in LEVEL, f"{module}: enter {unit_of(module)!r} into LAYERS and into docs/architecture.md"


@together("module", MODULES)
def test_imports_point_downward(module):
    own = unit_of(module)
    upward = [
        f"{module}:{line} imports {name}"
        for line, name in imports_of(module)
        if LEVEL.get(unit_of(name), len(LAYERS)) > LEVEL[own] and (module, unit_of(name)) not in UPWARD
    ]
    assert not upward, "\n".join(upward)


def test_the_exceptions_are_in_use():
    used = {(m, unit_of(name)) for m in MODULES for _, name in imports_of(m)}
    assert set(UPWARD) <= used


def test_there_are_no_circles_of_modules():
    """Within a layer and a folder, too, modules can be read in some order, each after what it names."""
    circles = circles_among(MODULES, lambda module: [name for _, name in imports_of(module)])
    assert not circles, "\n".join(f"{module} imports {', '.join(names)}" for module, names in circles.items())


def circles_among(modules: Iterable[str], imports: Callable[[str], Iterable[str]]) -> dict[str, list[str]]:
    """Return the modules in circles, and between them, each with those of them that it imports."""
    left = {module: set(imports(module)) - {module} for module in modules}
    while left:
        named = set().union(*left.values())
        ends = {module for module, names in left.items() if module not in named or not names & set(left)}
        if not ends:
            break
        left = {module: names for module, names in left.items() if module not in ends}
    return {module: sorted(names & set(left)) for module, names in left.items()}


@together("module", MODULES)
def test_private_names_stay_in_their_module(module):
    borrowed = [
        f"{module}:{node.lineno} imports {alias.name} from {node.module}"
        for node in statements_of(module)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wengert.")
        for alias in node.names
        if alias.name.startswith("_") and f"{node.module}.{alias.name}" not in MODULES
    ]
    assert not borrowed, "\n".join(borrowed)


READERS = {
    "wengert.core.values.protocols",
    "wengert.core.values.dispatch",
    "wengert.numpy._namespace",
    "wengert.cli.formula_parser",
    "wengert.control.store_analysis",
}
"""NumPy's protocols, what enters functions for them, and what asks which there are: for public names, or to read."""


@together("module", MODULES)
def test_what_functions_mean_is_looked_up_for_numpys_protocols_alone(module):
    taken = "wengert.core.values.numpy_overrides", "wengert.core.values.tensor"
    read = [
        f"{module}:{node.lineno} imports FUNCTIONS; import the function that is called"
        for node in (statements_of(module) if "FUNCTIONS" in MODULES[module].read_text() else ())
        if isinstance(node, ast.ImportFrom) and node.module in taken and module not in READERS
        for alias in node.names
        if alias.name == "FUNCTIONS"
    ]
    assert not read, "\n".join(read)


@together("module", MODULES)
def test_what_checkers_are_told_to_ignore_has_a_reason(module):
    """Values that are `Any` and returned as what they are need none: NumPy's dispatch has no types."""
    lines = MODULES[module].read_text().splitlines()
    silent = [
        f"{module}:{number}: {line.strip()}"
        for number, line in enumerate(lines, 1)
        if re.search(r"# type: ignore(?!\[no-any-return\])(\[[\w,-]+\])?\s*$|# noqa(: [A-Z0-9, ]+)?\s*$", line)
    ]
    assert not silent, "\n".join(silent)


def test_it_sees_imports_inside_functions():
    source = "def f():\n    from wengert import cli\n    import wengert.transforms.reverse\n"
    assert imported("wengert.core.example", source) == [
        (2, "wengert"),
        (3, "wengert.transforms.reverse"),
    ] or imported("wengert.core.example", source) == [(2, "wengert.cli"), (3, "wengert.transforms.reverse")]


def test_it_sees_imports_for_type_checking():
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from wengert.cli import main\n"
    assert imported("wengert.core.example", source) == [(3, "wengert.cli")]


def test_it_sees_circles():
    imports = {"a": ["b"], "b": ["c", "d"], "c": ["b"], "d": []}
    assert circles_among(imports, imports.__getitem__) == {"b": ["c"], "c": ["b"]}


@together("path", sorted(PACKAGE.rglob("*.py")))
def test_ignored_complaints_of_mypy_have_a_code_and_a_reason(path: Path) -> None:
    bare = [line for line in path.read_text().splitlines() if re.search(r"# type: ignore(?!\[[a-z, -]+\]  # \w)", line)]
    assert not bare
