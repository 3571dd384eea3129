"""Who asks a Tensor for its elements, and what to write instead, told by the user's line and the libraries it calls.

NumPy asks where a Tensor stands in a list, which shows it none of the Tensor's functions, and libraries where they know
nothing of Tensors. Frames are looked at when a refusal is written, so nobody pays for it before.
"""

from __future__ import annotations

import re
import sys
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from wengert.core.diagnostics.source_positions import (
    ASSIGNING,
    PACKAGE_PREFIX,
    Position,
    expression_at,
    is_own,
    position_of,
    use_at,
)

__all__ = [
    "CALLED_OUT",
    "Asked",
    "asked_for_array",
    "asked_for_product",
    "is_bound_for_c",
    "is_drawing",
    "is_driver_asking",
    "is_rule_asking",
    "is_scipy_asking",
    "library_that_asks",
    "remedy_by_source",
]

BUILDERS = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")
CREATORS = ("arange", "empty", "eye", "full", "identity", "ones", "tri", "zeros")
INDEXED = ("r_", "c_")
MORE = "np.stack for a list, or np.array(..., like=x) with a Tensor x"
RENAMED = {"asmatrix": "asarray", "bmat": "block"}
TO_C = frozenset({"_check_func", "_milp_iv", "lfilter"})
"""Functions of SciPy's, those of `fsolve`, `leastsq` and `milp`, that make arrays by `atleast_1d` for C code."""
SLOPES = "scipy.optimize._differentiable_functions"
"""The module of SciPy's that calls the functions for derivatives which drivers in C are given."""
LISTS = "which takes lists of Tensors, or make one array of the list with np.stack"
SOLVE = (
    "Write what is minimised with NumPy's functions, or let it solve with wengert.stop_gradient(x) and take steps of "
    "Newton's method from what it finds, which have the derivatives; under wengert.jit or vmap write it as a loop"
)
MIRRORED = ("interpolate", "linalg", "ndimage", "signal", "spatial", "special", "stats")
LIBRARIES = {
    "pandas": "Take the numbers of the Series or DataFrame first, with .to_numpy()",
    "scipy.sparse.linalg": (
        "Use numpy.linalg.solve, lstsq, eigh or svd of the whole matrix, write the iteration with NumPy's functions, "
        "or declare a rule by wengert.custom_rule"
    ),
    "scipy.sparse": (
        "Write matrix @ x or x @ matrix, take the matrix in full with .toarray(), or declare a rule with wengert.extend"
    ),
    "numpy.ma": "Write numpy.where(mask, 0.0, array.filled(0.0)), or reductions with where=~mask, for masked arrays",
    "numpy.polynomial": (
        "Use wengert.numpy.polyval(c[::-1], x), polymul or polyfit, whose coefficients begin with the highest power, "
        "or for a constant x the matrix of a basis times the coefficients, as chebvander(x, degree) @ c"
    ),
    "scipy.fft": (
        "Use numpy.fft; for dct and dst multiply by their matrix, scipy.fft.dct(np.eye(n), axis=0), or declare them as "
        "docs/extending.md does"
    ),
    "scipy.integrate": (
        "Write the steps of the method with NumPy's functions, in a loop or by wengert.scan, or the sum over fixed "
        "nodes, as wengert.scipy.integrate.fixed_quad, or declare a rule by wengert.custom_rule"
    ),
    "scipy.optimize": SOLVE,
    "wengert.optim": SOLVE,
    **{
        package: f"Use wengert.{package}, where it has the function, or declare a rule by wengert.custom_rule"
        for package in (*(f"scipy.{name}" for name in MIRRORED), "scipy")
    },
}
"""What to do where a package asks for the elements of what its own objects are combined with."""

DRAWS = r"\b(random|rng|generator)\.\w+\("
DRAWN = (
    "Draw with wengert.random, as in normal(key, mean, scale): NumPy's generators take plain numbers, and draw only "
    "once under wengert.jit"
)
BESIDE_LISTS = r"[-+/@%]=?\s*\[.*[A-Za-z_]|^\[.*[A-Za-z_].*\]\s*[-+/@%]"
TIMES_LISTS = r"\*=?\s*\[|^\[.*\]\s*\*"
"""What may repeat a list, too, by a number that Python asks for."""
LIST_OF_TENSORS = "Make one array of the list with np.stack"
SLICES = r"[\w)]\[.*:.*\]$"
WRITTEN = "Make the array that is written to with wengert.numpy (zeros, empty, or asarray for one that exists)"
WRITTEN_SLICES = f"{WRITTEN}; where an end of x[i:i + n] is what is asked for, write x[i + np.arange(n)]"
EXPRESSIONS = {
    r"\.sort\(\)|\bsorted\(": "Use numpy.sort, or index with numpy.argsort",
    r"\b(any|all)\(.* for ": ("Use .any() and .all() of an array"),
    DRAWS: DRAWN,
    r"\bnext\(|\bfilter\(": "Use numpy.where, or index with numpy.argmax of the condition",
    SLICES: (
        "Write x[i + np.arange(n)] for x[i:i + n], choose with np.where(np.arange(len(x)) < i, x, 0.0) for x[:i], or "
        "compute the ends of the slice outside of the function: under wengert.jit they may be in static_argnums"
    ),
    r"^\{.*\}\[": "Index an array of the values, or choose with numpy.where",
    r"\broots\(": "Find the eigenvalues of the companion matrix, of complex elements",
    r"\breal_if_close\(": "Write .real, where that is meant",
    r" in [(\[{]": "Compare with == and combine with |, or use numpy.isin",
    r"^f[\"']|^\{|[\"'] % |\.format\(": "Return it, and write it into text outside of the function",
    r"\b(c?math\.\w+)\(": r"Write NumPy's function in place of \1",
    r"^round\(": "Write numpy.round in place of round",
    r"\.(item|tolist)\(\)$": r"Leave .\1() out, and compute with the Tensor itself",
    r"^(float|complex)\(": r"Leave \1() out, and compute with the Tensor itself",
    BESIDE_LISTS: LIST_OF_TENSORS,
    TIMES_LISTS: "Pass in static_argnums how often the list is repeated, or make one array of it with np.stack",
}
STATEMENTS = {
    r"^case\b": "Write if and elif in place of match and case, which are not converted",
    r":=.*\b(if|and|or)\b|\b(else|and|or)\b.*:=": (
        "Write an if statement, because := is not converted in a part of an expression that may not be evaluated"
    ),
    r"^assert\b": "Check it outside of the function, with what the function returns beside its result",
    r"\bnext\(.* for .* if ": "Use numpy.where, or index with numpy.argmax of the condition",
    r"[\[({].* for .* in .* if ": (
        "Choose with numpy.where, because how many items there are must not depend on traced values"
    ),
}
"""What to do instead, by what expressions and statements look like that ask for the elements of what has none yet."""


def remedy_by_source(code: CodeType, offset: int) -> str | None:
    """Return what to write instead of an instruction that asks for elements, if that can be told by its source.

    Where it is a library's, its source tells nothing; what to write instead of the call of the library does.
    """
    remedy = library_that_asks(sys._getframe(1))
    if remedy is not None:
        return remedy
    if code.co_code[offset] in ASSIGNING:
        return WRITTEN_SLICES if re.search(SLICES, expression_at(code, offset)) else WRITTEN
    texts = ((expression_at(code, offset), EXPRESSIONS), (position_of(code, offset).text, STATEMENTS))
    found = ((re.search(x, text), y) for text, known in texts for x, y in known.items())
    return next((match.expand(remedy) for match, remedy in found if match), None)


RULES = frozenset(
    {("wengert.core.primitives.declaration_checks", "calling"), ("wengert.transforms.custom_rule", "call")}
)
"""The functions that call rules of the user's."""
CALLED_OUT = (
    "Declare the function that wants numbers as a primitive, by wengert.extend.opaque, and apply that in the rule"
)


def is_rule_asking(frame: FrameType | None) -> bool:
    """Tell whether it is a rule of the user's that asks, of a primitive or a `custom_rule`."""
    while frame is not None and (frame.f_globals.get("__name__"), frame.f_code.co_name) not in RULES:
        frame = frame.f_back
    return frame is not None


class Asked(NamedTuple):
    """Describe who asks: the name of the function, what to write instead, the user's line, whether a library asks."""

    name: str
    action: str
    position: Position
    by_library: bool = False


def asked_for_array(frame: FrameType | None) -> Asked | None:
    """Return who asks for an array, and what to write instead; None if that is not known.

    Args:
        frame: the one that asks; that of the user is further out.
    """
    known, through, vectorized = "", False, False
    outermost: FrameType | None = None
    in_rule = is_rule_asking(frame)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        package = next((x for x in LIBRARIES if module == x or module.startswith(f"{x}.")), "")
        if not package and not is_own(frame.f_code.co_filename):
            position = position_of(frame.f_code, frame.f_lasti)
            if in_rule:
                return Asked("asarray", CALLED_OUT, position, bool(known))
            if known and outermost is not None:
                called = use_at(frame.f_code, frame.f_lasti).called
                return Asked("asarray", scipys_remedy(known, outermost, called) or LIBRARIES[known], position, True)
            if vectorized:
                return Asked("vectorize", "Write wengert.numpy.vectorize", position)
            return None if through else asked_by_line(frame, position)
        if package and (package != "scipy" or not known):  # parts that the others share, such as decorators
            known = package
        if package:
            outermost = frame
        if module.startswith("numpy.") and frame.f_code.co_qualname == "vectorize.__call__":
            vectorized = True
        through = through or frame.f_code.co_filename.startswith(PACKAGE_PREFIX)
        frame = frame.f_back
    return None


def scipys_remedy(package: str, frame: FrameType, called: str) -> str | None:
    """Return whether there is another function for the one of SciPy's that asks; None if that has no public name.

    Args:
        package: the package that asks.
        frame: that of the function that the user calls.
        called: how the user calls it.
    """
    from wengert._places import SCIPYS

    if package != "scipy" and package.removeprefix("scipy.") not in (*MIRRORED, "integrate"):
        return None
    own = frame.f_locals.get("self")
    distribution = getattr(getattr(own, "dist", own), "name", None)  # of those that are frozen, too
    kind = frame.f_code.co_qualname.partition(".")[0].removesuffix("_gen").removesuffix("_frozen")
    for name in (distribution, called, frame.f_code.co_name, kind):
        for module, names in SCIPYS.items():
            if name in public_names(module) and module.startswith(package):
                rule = "declare a rule by wengert.custom_rule"
                if name in names.split():
                    return f"Use wengert.{module}.{name}, or {rule}"
                if package == "scipy.integrate":
                    return None  # there is more to say of differential equations
                return f"Write it with NumPy's functions, for there is no wengert.{module}.{name}, or {rule}"
    return None


def public_names(module: str) -> frozenset[str]:
    """Return the public names of a module, none of one that is not imported."""
    return frozenset(getattr(sys.modules.get(module), "__all__", ()))


def asked_for_product(frame: FrameType | None) -> bool:
    """Tell whether it is a sparse matrix that asks in `matrix @ x`: given an object, it leaves the product to that."""
    if frame is None or not str(frame.f_globals.get("__name__", "")).startswith("scipy.sparse."):
        return False
    while frame is not None and frame.f_code.co_name == "_matmul_dispatch":
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == "__matmul__"


def library_that_asks(frame: FrameType | None) -> str | None:
    """Return what to write instead where a library asks for a number; None if it is the user's program that does."""
    asked = asked_for_array(frame)
    return asked.action if asked is not None and asked.by_library else None


def is_drawing(frame: FrameType | None) -> bool:
    """Tell whether it is `rvs` of a distribution of SciPy's that asks, which makes integers of draws and `loc`."""
    asks = beyond_own(frame)
    return asks is not None and asks.f_code.co_qualname == "rv_generic.rvs"


def is_bound_for_c(frame: FrameType | None) -> bool:
    """Tell whether a function of SciPy's asks that hands arrays to C code, which says nothing of our errors."""
    asks = beyond_own(frame)
    module = "" if asks is None else str(asks.f_globals.get("__name__"))
    return asks is not None and (module == SLOPES or (asks.f_code.co_name in TO_C and module.startswith("scipy.")))


DRIVERS = ("scipy.differentiate", "scipy.integrate", "scipy.optimize", "scipy.sparse.linalg")
"""Packages that call the user's functions and hand what these return to C code, or write into it."""


def is_driver_asking(frame: FrameType | None) -> bool:
    """Tell whether a driver of SciPy's asks, which counts on ndarrays: of what a function returned, say."""
    while frame is not None:  # as `beyond_own`, in a tenth of its time
        module = str(frame.f_globals.get("__name__"))
        if module[:8] != "wengert.":
            return module[:6] == "scipy." and module.startswith(DRIVERS)
        frame = frame.f_back
    return False


def is_scipy_asking(frame: FrameType) -> bool:
    """Tell whether it is SciPy that calls a function of NumPy's in C."""
    return bool(frame.f_globals.get("__name__", "")[:6] == "scipy.")


def beyond_own(frame: FrameType | None) -> FrameType | None:
    """Return the first frame that is neither the library's nor NumPy's."""
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def asked_by_line(frame: FrameType, position: Position) -> Asked | None:
    """Return likewise what the user's own line calls, if that is NumPy's and asked by itself."""
    code, offset = frame.f_code, frame.f_lasti
    called = use_at(code, offset).called
    for path, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        if called and is_function(vars(module).get(called)):
            if called in CREATORS:
                return Asked(called, f"Write wengert.numpy.{path}{called}", position)
            more = MORE if called in BUILDERS else LISTS
            return Asked(called, f"Write wengert.numpy.{path}{RENAMED.get(called, called)}, {more}", position)
    expression = expression_at(code, offset)
    if re.search(DRAWS, expression):
        return Asked(called or "random", DRAWN, position)
    if called == "ndenumerate":
        return Asked(called, "Write wengert.numpy.ndenumerate", position)
    name = next((x for x in INDEXED if f"{x}[" in expression), None)
    if name is not None:
        return Asked(name, f"Write wengert.numpy.{name}", position)
    kind = vars(np).get(called)
    if isinstance(kind, type) and issubclass(kind, np.number):
        return Asked(called, f"Write x.astype(numpy.{called})", position)
    return Asked("array", LIST_OF_TENSORS, position) if re.search(f"{BESIDE_LISTS}|{TIMES_LISTS}", expression) else None


def is_function(value: Any) -> bool:
    """Tell whether a value is a function of NumPy's."""
    return callable(value) and not isinstance(value, type)
