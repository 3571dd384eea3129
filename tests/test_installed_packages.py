"""Installed packages under `jit`: those that are written with Wengert are converted, others are called as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

USING = """
import wengert as wg
import numpy as np

def root(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = (x + a / x) / 2
    return x
"""
HELPER = """
def clipped(x):
    if x > 1.0:
        return 1.0 + 0.0 * x
    return x
"""
PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import wengert as wg
{code}
"""


def output_of(folder: Path, code: str) -> str:
    """Return what a program prints that has a folder of installed packages."""
    program = folder / "program.py"
    program.write_text(PROGRAM.format(folder=str(folder / "site-packages"), code=code))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120)
    return (done.stdout + done.stderr.strip().rpartition("\n")[2]).strip()


def install(folder: Path, files: dict[str, str]) -> None:
    """Write files where installed packages are."""
    for name, text in files.items():
        path = folder / "site-packages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


LAYOUTS = {
    "a package": ({"kit/__init__.py": "from kit.core import root", "kit/core.py": USING}, "kit"),
    "a module": ({"kitmodule.py": USING}, "kitmodule"),
    "in a namespace": ({"shared/kit/__init__.py": "", "shared/kit/core.py": USING}, "shared.kit.core"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_packages_that_use_wengert_are_converted(tmp_path: Path, layout: str) -> None:
    files, name = LAYOUTS[layout]
    install(tmp_path, files)
    assert output_of(tmp_path, f"from {name} import root; print(wg.jit(lambda a: root(a))(9.0))") == "3.0"


def test_modules_of_theirs_that_do_not_use_it_are_converted_too(tmp_path: Path) -> None:
    install(tmp_path, {"kit/__init__.py": "", "kit/core.py": USING, "kit/helper.py": HELPER})
    code = """
from kit.helper import clipped
try:
    wg.jit(lambda x: clipped(x))(3.0)
except wg.errors.TracedTruthError:
    print("refused", end=" ")
import kit.core
print(wg.jit(lambda x: clipped(x))(3.0))
"""
    assert output_of(tmp_path, code) == "refused 1.0"


def test_other_packages_are_called_as_they_are(tmp_path: Path) -> None:
    install(
        tmp_path, {"other/__init__.py": HELPER, "shared/kit/__init__.py": USING, "shared/plain/__init__.py": HELPER}
    )
    for name in ("other", "shared.plain"):
        code = f"import shared.kit; from {name} import clipped; print(wg.jit(lambda x: clipped(x))(3.0))"
        assert output_of(tmp_path, code).startswith("wengert.errors.TracedTruthError")
