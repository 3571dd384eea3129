"""Write what editors and type checkers read of what is made when the library is imported, or asked for.

That are the functions of `wengert.numpy`, and the members that modules set on `Tensor`. Run `python -m tools.stubs`
after a public function or a method was added, and read the difference before you commit it. Parameters of functions are
those that `help` shows, and results are `Any`: inside of a function that is transformed they are Tensors, outside of it
what was passed to it. Those of members are as their annotations say.
"""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wengert.core.values.tensor import Tensor
from wengert.numpy._methods import FlatElements
from wengert.numpy._namespace import NUMPYS_OWN
from wengert.support.hints import MissingAttribute

__all__ = ["MEMBERS", "MODULES", "main", "members_stub", "path_of", "stub"]

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

MEMBERS = "wengert.core.values.members"
MEMBERS_HEAD = '''"""The members that modules set on `Tensor`; `python -m tools.stubs` writes this."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Never, Self, TypeAlias, TypeVar

__all__ = ["ArrayLike", "Axis", "Members"]

T = TypeVar("T")
ArrayLike: TypeAlias = Any
Axis: TypeAlias = int | Sequence[int] | None
'''
KNOWN = {"None", *re.findall(r"\w+", MEMBERS_HEAD), "bool", "complex", "float", "int", "str", "tuple"}
"""The names that annotations of members may have; for others stands `Any`."""
PRIVATE = ("_set_shape",)
"""What the class itself calls."""
OF_PROTOCOLS = ("__array_function__", "__array_ufunc__")
"""What would tell type checkers of NumPy's functions that these return what they return of arrays."""
RESULTS = {
    "__array_namespace__": "Any",
    "__divmod__": "tuple[Self, Self]",
    "__rdivmod__": "tuple[Self, Self]",
    "__round__": "Any",
    "__setitem__": "None",
}
"""What special methods return that return no Tensor."""
DIFFERENT = ("__eq__", "__ne__")
"""What gives other results than Python's own of the same name."""


def path_of(module: str) -> Path:
    """Return the file that is written for a module."""
    return Path(inspect.getsourcefile(importlib.import_module(module)) or "").with_suffix(".pyi")


def stub(module: str) -> str:
    """Return the text for a module, before it is laid out."""
    namespace = importlib.import_module(module)
    lines = [declared(module, name, getattr(namespace, name)) for name in namespace.__all__]
    imports = [line for line in lines if line.startswith("from ")]
    others = sorted((line for line in lines if not line.startswith("from ")), key=lambda line: line.startswith("def "))
    if module == "wengert.numpy":
        imports += [f"from numpy import {name} as {name}" for name in NUMPYS_OWN]
        others = [UFUNC, *others, *PROVIDED]
    return "\n".join([HEAD.format(module=module), *imports, *others, ""])  # a stub exports all that it names


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


def members_stub() -> str:
    """Return the text about the members of Tensor, before it is laid out."""
    elements = [line for name, member in sorted(vars(FlatElements).items()) for line in declared_member(name, member)]
    own = [
        line
        for name, member in sorted(vars(Tensor).items())
        if module_of(member) not in (None, Tensor.__module__) and name not in OF_PROTOCOLS
        for line in declared_member(name, member)
    ]
    classes = [*body("class FlatElements(Generic[T]):", elements, "T"), *body("class Members:", own, "Self")]
    return "\n".join([MEMBERS_HEAD, *classes, ""])


def body(head: str, lines: list[str], itself: str) -> list[str]:
    """Return a class, in which Tensors are called as it calls them."""
    return [head, *("    " + re.sub(r"\bTensor\b", itself, line) for line in lines)]


def module_of(member: Any) -> str | None:
    """Return the module that defines a member; None for what is no method or property, and what only tells an error."""
    function = member.fget if isinstance(member, property) else member
    return None if isinstance(member, MissingAttribute) else getattr(function, "__module__", None)


def declared_member(name: str, member: Any) -> list[str]:
    """Return the lines about a member."""
    special = name.startswith("__")
    if name.startswith("_") and not special and name not in PRIVATE:
        return []
    if isinstance(member, property) and member.fget is not None:
        setter = [] if member.fset is None else [f"@{name}.setter", typed(name, member.fset, "None")]
        return ["@property", typed(name, member.fget, None), *setter]
    if not inspect.isfunction(member) or name == "__init__":
        return []
    differs = "  # type: ignore[override]  # by element, as in NumPy" * (name in DIFFERENT)
    return [typed(name, member, RESULTS.get(name, "Tensor") if special else None) + differs]


def typed(name: str, function: Callable[..., Any], result: str | None) -> str:
    """Return the line about a method, with the types of its annotations; of a special one the result may be given."""
    signature = inspect.signature(function, follow_wrapped=False)
    first, *others = signature.parameters.values()
    empty = inspect.Parameter.empty
    taken = [first.replace(name="self", annotation=empty)]
    for p in others:
        annotation = "Any" if p.annotation is empty else known_type(p.annotation)
        taken.append(p.replace(annotation=annotation, default=p.default if p.default is empty else ...))
    parts = str(inspect.Signature(taken)).replace("Ellipsis", "...").replace("'", "")
    stated = signature.return_annotation
    if name.startswith("__") and stated not in (empty, "Any"):
        result = stated
    return f"def {name}{parts} -> {known_type(result or stated)}: ..."


def known_type(annotation: str) -> str:
    """Return an annotation as the stub has it."""
    if annotation == "FlatElements":
        return "FlatElements[Tensor]"
    return annotation if set(re.findall(r"\w+", annotation)) <= {*KNOWN, "Tensor"} else "Any"


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
    path_of(MEMBERS).write_text(laid_out(members_stub()), encoding="utf-8")


if __name__ == "__main__":
    main()
