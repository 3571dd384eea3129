"""Who asks a Tensor for its elements, and what to write instead, told by the user's line and the libraries it calls.

NumPy asks where a Tensor stands in a list, which shows it none of the Tensor's functions, and libraries where they know
nothing of Tensors. Frames are looked at when a refusal is written, so nobody pays for it before.
"""

from __future__ import annotations

import re
import sys
from types import CodeType, FrameType
from typing import Any

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
from wengert.support.hints import hints, public_names
from wengert.support.records import NamedTuple

BUILDERS = ("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray")
WINDOWS = ("bartlett", "blackman", "hamming", "hanning", "kaiser")
SIZED = frozenset(("arange", "empty", "eye", "identity", "ones", "repeat", "tri", "zeros", *WINDOWS))
"""Functions of NumPy's whose results have as many elements as the numbers say that they are given."""
LONGEST = (
    "Make the longest array that there may be, and choose of it, as with np.where(np.arange(longest) < n, x, 0.0); "
    "under wengert.jit n may be in static_argnums instead"
)
CALLED_THROUGH = {"vectorize.__call__": "vectorize", "AxisConcatenator.__getitem__": "r_"}
"""Code of NumPy's that calls what the user called by another name."""
MORE = "np.stack for a list, or np.array(..., like=x) with a Tensor x"
RENAMED = {"asmatrix": "asarray", "bmat": "block"}
TO_C = frozenset({"_check_func", "_milp_iv", "lfilter"})
"""Functions of SciPy's, those of `fsolve`, `leastsq` and `milp`, that make arrays by `atleast_1d` for C code."""
SLOPES = "scipy.optimize._differentiable_functions"
"""The module of SciPy's that calls the functions for derivatives which drivers in C are given."""
ROOTS = ("brentq", "brenth", "bisect", "ridder", "newton", "root_scalar")
"""Functions of `scipy.optimize` that find roots of one unknown."""
COMPILED = "wengert.optim.root_scalar, which wengert.jit compiles; the results of both have derivatives"
LISTS = "which takes lists of Tensors, or make one array of the list with np.stack"
MIRRORED = ("interpolate", "linalg", "ndimage", "signal", "spatial", "special", "stats")
SLICE = re.compile(r"[\w)]\[.*:.*\]$")
WRITTEN = (
    "Make the array that is written to with wengert.numpy (zeros, empty, or asarray for one that exists, or for a list)"
)
WRITTEN_SLICES = f"{WRITTEN}; where an end of x[i:i + n] is what is asked for, write x[i + np.arange(n)]"


def remedy_by_source(code: CodeType, offset: int) -> str | None:
    """Return what to write instead of an instruction that asks for elements, if that can be told by its source.

    Where it is a library's, its source tells nothing; what to write instead of the call of the library does.
    """
    remedy = library_that_asks(sys._getframe(1))
    if remedy is not None:
        return remedy
    if code.co_code[offset] in ASSIGNING:
        return WRITTEN_SLICES if SLICE.search(expression_at(code, offset)) else WRITTEN
    texts = ((expression_at(code, offset), "expressions"), (position_of(code, offset).text, "statements"))
    found = (
        (re.search(known["pattern"], text), known["hint"]) for text, kind in texts for known in hints(kind).values()
    )
    return next((match.expand(remedy) for match, remedy in found if match), None)


def position_of_user(code: CodeType, offset: int) -> Position:
    """Return the source position of an instruction; of one of SciPy's, that of the user's line that calls it."""
    frame = beyond_own(sys._getframe(1))
    if frame is None or not is_scipy_asking(frame):
        return position_of(code, offset)
    while frame is not None and (is_scipy_asking(frame) or is_own(frame.f_code.co_filename)):
        frame = frame.f_back
    return position_of(code, offset) if frame is None else position_of(frame.f_code, frame.f_lasti)


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


def asked_for_array(frame: FrameType | None, has_elements: bool = True) -> Asked | None:
    """Return who asks for an array, and what to write instead; None if that is not known.

    The frame is the one that asks; that of the user is further out. Without elements there is no length either.
    """
    known, through, asking = "", False, ""
    libraries = hints("libraries")
    outermost: FrameType | None = None
    in_rule = is_rule_asking(frame)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        package = next((x for x in libraries if module == x or module.startswith(f"{x}.")), "")
        if not package and not is_own(frame.f_code.co_filename):
            position = position_of(frame.f_code, frame.f_lasti)
            if in_rule:
                return Asked("asarray", CALLED_OUT, position, bool(known))
            if known and outermost is not None:
                called = use_at(frame.f_code, frame.f_lasti).called
                return Asked("asarray", scipys_remedy(known, outermost, called) or libraries[known], position, True)
            if asking:
                return Asked(asking, f"Write wengert.numpy.{asking}", position)
            return None if through else asked_by_line(frame, position, has_elements)
        if package and (package != "scipy" or not known):  # parts that the others share, such as decorators
            known = package
        if package:
            outermost = frame
        if module.startswith("numpy."):
            asking = asking or name_in_numpy(frame)
        through = through or frame.f_code.co_filename.startswith(PACKAGE_PREFIX)
        frame = frame.f_back
    return None


def name_in_numpy(frame: FrameType) -> str:
    """Return what the user called of NumPy, by code of it that is known; "" by other code."""
    name = CALLED_THROUGH.get(frame.f_code.co_qualname, "")
    return "c_" if name == "r_" and type(frame.f_locals["self"]) is type(np.c_) else name


def scipys_remedy(package: str, frame: FrameType, called: str) -> str | None:
    """Return whether there is another function for the one of SciPy's that asks; None if that has no public name.

    The frame is that of the function that the user calls, as `called` says.
    """
    if package == "scipy.optimize":
        root = called if called in ROOTS else frame.f_code.co_name
        return f"Use wengert.scipy.optimize.{root}, or {COMPILED}" if root in ROOTS else None
    if package != "scipy" and package.removeprefix("scipy.") not in (*MIRRORED, "integrate"):
        return None
    own = frame.f_locals.get("self")
    distribution = getattr(getattr(own, "dist", own), "name", None)  # of those that are frozen, too
    kind = frame.f_code.co_qualname.partition(".")[0].removesuffix("_gen").removesuffix("_frozen")
    modules = sorted(x for x in public_names() if x.startswith(f"wengert.{package}") and x != "wengert.scipy")
    for name in (distribution, called, frame.f_code.co_name, kind):
        for module in modules:
            if name in frozenset(getattr(sys.modules.get(module.removeprefix("wengert.")), "__all__", ())):
                rule = "declare a rule by wengert.custom_rule"
                if name in public_names()[module].split():
                    return f"Use {module}.{name}, or {rule}"
                if package == "scipy.integrate":
                    return None  # there is more to say of differential equations
                return f"Write it with NumPy's functions, for there is no {module}.{name}, or {rule}"
    return None


ASKING = frozenset({"_matmul_dispatch", "multiply", "_multiply_2d_with_broadcasting", "_divide"})
OPERATORS = frozenset({"__matmul__", "__mul__", "__truediv__"})
"""Functions of `scipy.sparse` that ask for an operand as an array, and the operators that call these."""


def asked_for_product(frame: FrameType | None) -> bool:
    """Tell whether it is a sparse matrix that asks in an operator: given an object, it leaves the operation to that."""
    if frame is None or not str(frame.f_globals.get("__name__", "")).startswith("scipy.sparse."):
        return False
    while frame is not None and frame.f_code.co_name in ASKING:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name in OPERATORS


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
    return bool(str(frame.f_globals.get("__name__", ""))[:6] == "scipy.")


def beyond_own(frame: FrameType | None) -> FrameType | None:
    """Return the first frame that is neither the library's nor NumPy's."""
    while frame is not None and is_own(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def asked_by_line(frame: FrameType, position: Position, has_elements: bool) -> Asked | None:
    """Return the function of NumPy's that the user's own line calls, if that asked for elements, and what to do."""
    code, offset = frame.f_code, frame.f_lasti
    called = use_at(code, offset).called
    for path, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        if called and is_function(vars(module).get(called)):
            if called in SIZED:
                return Asked(called, f"Write wengert.numpy.{called}" if has_elements else LONGEST, position)
            more = MORE if called in BUILDERS else LISTS
            return Asked(called, f"Write wengert.numpy.{path}{RENAMED.get(called, called)}, {more}", position)
    expression = expression_at(code, offset)
    known = hints("expressions")
    if re.search(known["drawing"]["pattern"], expression):
        return Asked(called or "random", known["drawing"]["hint"], position)
    if called == "ndenumerate":
        return Asked(called, "Write wengert.numpy.ndenumerate", position)
    kind = vars(np).get(called)
    if isinstance(kind, type) and issubclass(kind, np.number):
        return Asked(called, f"Write x.astype(numpy.{called})", position)
    if any(re.search(known[kind]["pattern"], expression) for kind in ("beside_list", "times_list")):
        return Asked("array", known["beside_list"]["hint"], position)
    return None


def is_function(value: Any) -> bool:
    """Tell whether a value is a function of NumPy's."""
    return callable(value) and not isinstance(value, type)
