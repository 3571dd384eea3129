"""The public names are those documented in docs/public-names.md: no more, no fewer."""

import ast
import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import wengert.numpy
from tests.cases import together
from tests.test_import_cost import loaded_by
from tools.stubs import MEMBERS, declared, members_stub, path_of
from wengert.numpy._namespace import NUMPYS_OWN
from wengert.support.hints import public_names

PAGE = Path(__file__).resolve().parent.parent / "docs" / "public-names.md"
MIRRORS = {"wengert.numpy": np, "wengert.numpy.linalg": np.linalg, "wengert.numpy.fft": np.fft}


def documented() -> dict[str, set[str]]:
    """The names listed under each heading of the page."""
    sections = re.split(r"^## `([\w.]+)`$", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {
        module: set(re.findall(r"^- `(\w+)`", text, flags=re.MULTILINE))
        for module, text in zip(sections[::2], sections[1::2], strict=True)
    }


DOCUMENTED = documented()


def test_the_page_lists_the_main_modules():
    assert {"wengert", "wengert.autograd", "wengert.numpy"} <= set(DOCUMENTED)


@together("module", DOCUMENTED)
def test_exported_names_are_the_documented_ones(module):
    exported = set(importlib.import_module(module).__all__)
    missing = DOCUMENTED[module] - exported
    if module in MIRRORS:  # NumPy's versions differ in a few names
        missing = {name for name in missing if hasattr(MIRRORS[module], name)}
    assert not missing, f"documented but not exported: {sorted(missing)}"
    assert exported <= DOCUMENTED[module], "exported but not documented; run `python -m tools.public_names`"


@together("module", DOCUMENTED)
def test_exported_names_exist(module):
    namespace = importlib.import_module(module)
    assert [name for name in namespace.__all__ if not hasattr(namespace, name)] == []


@together("module", DOCUMENTED)
def test_exported_names_are_sorted_and_unique(module):
    names = list(importlib.import_module(module).__all__)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("module", MIRRORS)
def test_editors_and_type_checkers_see_the_names(module):
    stub = ast.parse(path_of(module).read_text())
    exported = set(importlib.import_module(module).__all__)
    found = set()
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            found |= {alias.asname for alias in node.names} - {None}
        elif isinstance(node, ast.AnnAssign | ast.FunctionDef):
            found.add(node.name if isinstance(node, ast.FunctionDef) else node.target.id)
    found = {name for name in found if not name.startswith("__")}
    assert exported <= found, "run `python -m tools.stubs`"
    others = found - exported - set(NUMPYS_OWN)
    assert not any(hasattr(MIRRORS[module], name) for name in others), "run `python -m tools.stubs`"


def test_stubs_have_the_parameters_that_help_shows():
    stub = path_of("wengert.numpy").read_text()
    for name in ("moveaxis", "sin", "take"):
        assert declared("wengert.numpy", name, getattr(wengert.numpy, name)) in stub
    assert "\nadd: _Ufunc\n" in stub


def test_type_checkers_are_told_of_the_members_that_tensors_have():
    assert ast.dump(ast.parse(path_of(MEMBERS).read_text())) == ast.dump(ast.parse(members_stub())), (
        "run `python -m tools.stubs`"
    )


def test_errors_know_where_all_documented_names_are():
    names = {module: set(names.split()) for module, names in public_names().items()}
    assert names == DOCUMENTED, "run `python -m tools.public_names`"


def test_asking_for_a_name_that_is_not_there_imports_no_module_to_look():
    loaded = loaded_by("wengert; hasattr(wengert, 'nothing'), hasattr(wengert, 'minimize')")
    assert {name for name in loaded - loaded_by("wengert") if name.startswith("wengert")} == set()
