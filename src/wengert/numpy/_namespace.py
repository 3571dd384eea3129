"""The public namespace: each function that has a meaning for Tensors, under NumPy's names, returning Tensors."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.primitives.signatures import MISSING
from wengert.core.values.dispatch import as_tensor, implements
from wengert.core.values.numpy_overrides import FUNCTIONS
from wengert.core.values.plain_functions import BY_NUMPY, by_numpy, enter_by_numpy
from wengert.core.values.tensor import Tensor
from wengert.support.hints import hint_parameters
from wengert.traces.eager import REAL

NUMPYS_OWN = ("dtypes", "exceptions", "random", "testing")
"""The modules of NumPy that stand in `wengert.numpy` as they are. What `random` draws is drawn when Python runs, so
once under `jit`: `wengert.random` has what traces and batches."""
CONSTANTS = ("False_", "True_", "e", "euler_gamma", "inf", "little_endian", "nan", "newaxis", "pi")
DTYPES = (
    *("bool", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "intp", "uintp"),
    *("byte", "ubyte", "short", "ushort", "intc", "uintc", "int_", "uint", "long", "ulong", "longlong", "ulonglong"),
    *("float16", "float32", "float64", "longdouble", "half", "single", "double", "float128"),
    *("complex64", "complex128", "clongdouble", "csingle", "cdouble", "complex256", "dtype", "generic", "number"),
    *("integer", "signedinteger", "unsignedinteger", "inexact", "floating", "complexfloating"),
    *("ScalarType", "sctypeDict", "typecodes"),
)
PLAIN = (
    *("finfo", "iinfo", "isdtype", "issubdtype", "promote_types", "broadcast_shapes", "isscalar", "iterable"),
    *("s_", "index_exp", "ndindex", "errstate", "seterr", "geterr", "printoptions", "set_printoptions"),
    *("get_printoptions", "seterrcall", "geterrcall", "setbufsize", "getbufsize", "mintypecode", "typename"),
    *("base_repr", "binary_repr", "format_float_positional", "format_float_scientific"),
)
"""What concerns dtypes, shapes and settings alone, and is NumPy's own."""

LIKE = frozenset(
    {
        *("array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "require", "zeros", "ones", "empty"),
        *("full", "eye", "identity", "tri", "arange", "fromiter", "frombuffer", "fromfile", "fromstring"),
        *("fromfunction", "loadtxt", "genfromtxt"),
    }
)
"""Functions that make arrays in the form of what is given as `like`."""
ALONG = frozenset({"axis", "axes", "ddof", "keepdims"})
"""Parameters that PyTorch has by other names."""
ARRAYS = (np.ndarray, np.generic)
BESIDE = frozenset({float, int})
"""Types of operands beside a Tensor that need no look."""
MANY = np.iinfo(np.int32).max
F = TypeVar("F", bound=Callable[..., Any])


def enter_plain_functions() -> None:
    """Enter the functions of plain Tensors that NumPy computes itself, once all have a meaning for Tensors.

    What leads to their primitives would take longer than they do.
    """
    enter_by_numpy(
        *(np.append, np.argpartition, np.argwhere, np.bincount, np.block, np.choose, np.column_stack),
        *(np.compress, np.convolve, np.correlate, np.count_nonzero, np.delete, np.diagflat, np.digitize, np.dstack),
        *(np.extract, np.flatnonzero, np.kron, np.lexsort, np.median, np.nonzero, np.packbits, np.partition),
        *(np.percentile, np.quantile, np.resize, np.searchsorted, np.tensordot, np.union1d, np.unique, np.unpackbits),
        np.vdot,
    )
    enter_by_numpy(np.corrcoef, np.cov, composed=True, inside=True)
    enter_by_numpy(np.insert, np.interp, most=3)
    enter_by_numpy(np.meshgrid, most=MANY)
    enter_by_numpy(np.einsum, most=MANY, least=3)  # of one array it may be a view
    composed = (np.average, np.ediff1d, np.geomspace, np.isclose, np.linspace, np.logspace, np.polyval)
    enter_by_numpy(*composed, composed=True)
    enter_by_numpy(np.angle, np.cumulative_prod, np.cumulative_sum, np.ptp, most=1, composed=True)


def document_as(name: str, summary: str, module: str = "numpy") -> Callable[[F], F]:
    """Return a decorator that gives a function its name in a module, and a docstring that points to the function there.

    >>> @document_as("sinc", "Return sin(pi x) / (pi x)")
    ... def made(x): ...
    >>> made.__name__, made.__doc__
    ('sinc', 'Return sin(pi x) / (pi x); see `numpy.sinc`.')
    """

    def give(function: F) -> F:
        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"{summary}; see `{module}.{name}`."
        return function

    return give


def enter_as(numpys: Callable[..., Any], summary: str, by: str | None = None) -> Callable[[F], F]:
    """Return a decorator that enters what a factory makes as the meaning of NumPy's function, named and documented."""

    def enter(function: F) -> F:
        return implements(numpys, by=by)(document_as(numpys.__name__, summary)(function))

    return enter


def wrap_results(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose array results are Tensors, whatever it was given: itself, if it says that they are.

    What a function is for a Tensor and no options, `of_tensor`, and for two operands, `of_two`, is called without the
    way through the options.
    """
    if function.__annotations__.get("return") == "Tensor":
        return function
    of_tensor, of_two = getattr(function, "of_tensor", None), getattr(function, "of_two", None)

    def public(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if type(result) is Tensor:
            return result
        return wrap_arrays(result, (*args[1:], kwargs["out"]) if "out" in kwargs else args[1:])

    def direct(x: Any = MISSING, /, *args: Any, **kwargs: Any) -> Any:
        if type(x) is Tensor and not args and not kwargs:
            return of_tensor(x)  # type: ignore[misc]  # there is one
        return public(*passed_operands(x), *args, **kwargs)

    def direct_of_two(x: Any = MISSING, y: Any = MISSING, /, *args: Any, **kwargs: Any) -> Any:
        if type(x) is Tensor and not args and not kwargs:
            kind = type(y)
            if kind is Tensor or kind in BESIDE or (kind is np.ndarray and y.dtype.kind in REAL):
                return of_two(x, y)  # type: ignore[misc]  # there is one
        return public(*passed_operands(x, y), *args, **kwargs)

    return functools.wraps(function)(direct if of_tensor is not None else public if of_two is None else direct_of_two)


def follow_like(numpys: Callable[..., Any], public: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes Tensors, but NumPy's arrays where `like` is none and nothing else is a Tensor."""

    @functools.wraps(public)
    def create(*args: Any, like: Any = None, **kwargs: Any) -> Any:
        plain = like is not None and type(like) is not Tensor
        if plain and not any(type(x) is Tensor for x in flatten((args, kwargs))[0]):
            return numpys(*args, **kwargs)
        return public(*args, **kwargs)

    return create


def passed_operands(*operands: Any) -> list[Any]:
    """Return the operands that were passed."""
    return [x for x in operands if x is not MISSING]


def wrap_arrays(result: Any, outs: Sequence[Any] = ()) -> Any:
    """Return arrays and NumPy scalars as Tensors, also inside tuples and lists; what was given as `out` as it is."""
    if type(result) is Tensor:
        return result
    if isinstance(result, ARRAYS):
        for out in outs:
            if result is out or (type(out) is tuple and any(result is x for x in out)):
                return result
        return as_tensor(result)
    if isinstance(result, list):
        return [wrap_arrays(item) for item in result]
    if isinstance(result, tuple):
        items = [wrap_arrays(item, outs) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
    return result


OF_NUMPY = ("numpy", "numpy.linalg", "numpy.fft")
"""The modules of which docstrings tell about derivatives; the last is loaded when it is first asked for."""
NEWER = ("descending",)
"""Parameters that NumPy 2.5 has added."""
PUBLIC: dict[int, Callable[..., Any]] = {}
"""The public functions made so far, by the identity of what they mean: NumPy has two names for some."""


def plain_names() -> dict[str, Any]:
    """Return the constants, dtypes and functions that are NumPy's own, by name."""
    return {name: getattr(np, name) for name in (*CONSTANTS, *DTYPES, *PLAIN) if hasattr(np, name)}  # some a platform's


def function_names(module: Any = np) -> list[str]:
    """Return the names of NumPy, or of a module of it, that mean something for Tensors."""
    found = vars(module).items()  # not dir(np), whose names load the rest of NumPy
    return sorted([name for name, x in found if callable(x) and not isinstance(x, type) and x in FUNCTIONS])


def add_newer_keywords(known: inspect.Signature, meaning: Callable[..., Any]) -> inspect.Signature:
    """Return a signature of NumPy's with the keywords that its later versions have and ours has, too."""
    own = getattr(meaning, "__kwdefaults__", None) or {}
    newer = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=own[name])
        for name in NEWER
        if name in own and name not in known.parameters
    ]
    return known.replace(parameters=[*known.parameters.values(), *newer]) if newer else known


def public_function(module: Any, name: str) -> Callable[..., Any]:
    """Return the function of Tensors that implements a name of NumPy's; its arrays are always Tensors."""
    function = getattr(module, name)
    meaning = FUNCTIONS[function]
    found = PUBLIC.get(id(meaning))
    if found is None:
        outside = function in BY_NUMPY and not BY_NUMPY[function].inside
        found = by_numpy(function, meaning, wrap_arrays) if outside else wrap_results(meaning)
        if name in LIKE:
            found = follow_like(function, found)
        known = numpys_signature(function)
        if known is not None and not ALONG.isdisjoint(known.parameters):
            found = hint_parameters("numpy", known=known.parameters)(found)
        if known is not None:
            found.__signature__ = add_newer_keywords(known, meaning)  # type: ignore[attr-defined]  # for help()
        if isinstance(function, np.ufunc):
            attach_methods(found, function)
        loaded = [sys.modules[owner] for owner in OF_NUMPY if owner in sys.modules]
        numpys = next((owner for owner in loaded if vars(owner).get(name) is function), None)
        if numpys is not None:  # SciPy has some of NumPy's own, too
            from wengert.numpy._derivatives import (
                describe_derivatives,  # whose tables cost as much as a module of functions
            )

            found.__doc__ = describe_derivatives(numpys, name, function, found.__doc__ or "")
        PUBLIC[id(meaning)] = found
    return found


def numpys_signature(function: Any) -> inspect.Signature | None:
    """Return the parameters of a function of NumPy's; None where they are written in C and not known."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def export_functions(namespace: dict[str, Any], module: Any, **others: Any) -> list[str]:
    """Fill the namespace of a module with what the functions of NumPy's or SciPy's mean, and return all its names.

    A module's `__getattr__` would be called each time, after its globals were searched.
    """
    exported = {**others, **{name: public_function(module, name) for name in function_names(module)}}
    names = sorted(exported)
    namespace.update(exported, __dir__=lambda: names)
    return names


def attach_methods(public: Callable[..., Any], ufunc: np.ufunc) -> None:
    """Give a public function the methods of its ufunc that have a meaning for Tensors, which they always return."""
    for method in ("accumulate", "at", "outer", "reduce", "reduceat"):
        meaning = FUNCTIONS.get((ufunc, method))
        if meaning is not None:
            setattr(public, method, meaning)
