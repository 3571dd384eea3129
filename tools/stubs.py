"""Write what editors and type checkers read of `wengert.numpy`, whose functions are made when they are asked for.

Run `python -m tools.stubs` after a public function was added there, and read the difference before you commit it.
Parameters are those that `help` shows. Results are `Any`: inside of a function that is transformed they are Tensors,
outside of it what was passed to it.
"""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wengert.numpy._left_out import NUMPYS_OWN

__all__ = ["MODULES", "main", "path_of", "stub"]

MODULES = ("wengert.numpy", "wengert.numpy.linalg", "wengert.numpy.fft")
HEAD = '''"""The names of {module} for editors and type checkers; `python -m tools.stubs` writes this."""

from typing import Any, Protocol
'''
UFUNC = """
class _Ufunc(Protocol):
    __name__: str
    def __call__(self, x1: Any, x2: Any, /, out: Any = ..., *, where: Any = ..., dtype: Any = ...) -> Any: ...
    def accumulate(self, array: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
    def at(self, a: Any, indices: Any, b: Any = ..., /) -> None: ...
    def outer(self, A: Any, B: Any, /, **options: Any) -> Any: ...
    def reduce(self, array: Any, axis: Any = ..., dtype: Any = ..., out: Any = ..., **options: Any) -> Any: ...
    def reduceat(self, array: Any, indices: Any, axis: Any = ..., dtype: Any = ..., out: Any = ...) -> Any: ...
"""
PROVIDED = ("__array_api_version__: str", "__array_namespace_info__: Any")
REFUSED = ("casting", "order", "signature", "subok")
"""Options of ufuncs that none takes here."""
OF_PLATFORMS = ("complex256", "float128")


def path_of(module: str) -> Path:
    """Return the file that is written for a module."""
    return Path(inspect.getsourcefile(importlib.import_module(module)) or "").with_suffix(".pyi")


def stub(module: str) -> str:
    """Return the text for a module, before it is laid out."""
    namespace = importlib.import_module(module)
    lines = [declared(module, name, getattr(namespace, name)) for name in namespace.__all__]
    imports = [line for line in lines if line.startswith("from ")]
    others = [line for line in lines if not line.startswith("from ")]
    if module == "wengert.numpy":
        imports += [f"from numpy import {name} as {name}" for name in NUMPYS_OWN]
        others = [UFUNC, *others, *PROVIDED]
    return "\n".join([HEAD.format(module=module), *imports, *others, f"__all__ = {namespace.__all__!r}\n"])


def declared(module: str, name: str, thing: Any) -> str:
    """Return the line about a name."""
    if inspect.ismodule(thing):
        return f"from {module} import {name} as {name}"
    theirs = importlib.import_module(module.removeprefix("wengert."))
    if getattr(theirs, name, None) is thing and name not in OF_PLATFORMS:
        return f"from {theirs.__name__} import {name} as {name}"
    if not inspect.isfunction(thing):
        return f"{name}: Any"
    return f"{name}: _Ufunc" if hasattr(thing, "reduce") else f"def {name}{parameters(thing)} -> Any: ..."


def parameters(function: Callable[..., Any]) -> str:
    """Return the parameters of a function, without what its defaults are."""
    empty = inspect.Parameter.empty
    found = inspect.signature(function).parameters.values()
    taken = [p for p in found if p.name not in REFUSED or "casting" not in inspect.signature(function).parameters]
    optional = [p.replace(default=p.default if p.default is empty else ..., annotation=Any) for p in taken]
    return str(inspect.Signature(optional)).replace("Ellipsis", "...").replace("typing.", "")


def laid_out(text: str) -> str:
    """Return the text of a stub as the linters want it."""
    for step in (["format"], ["check", "--fix-only"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *step, "-q", "--stdin-filename", "stub.pyi", "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> None:
    """Write all files."""
    for module in MODULES:
        path_of(module).write_text(laid_out(stub(module)), encoding="utf-8")


if __name__ == "__main__":
    main()
