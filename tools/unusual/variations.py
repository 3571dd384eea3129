"""Unusual calls, derived from a usual one: other values, types, shapes, layouts, options, and ways to pass them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tools.unusual.calls import Usual

__all__ = ["Variation", "variations"]

EMPTY = inspect.Parameter.empty
BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
ORDERED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
AXES = (0, -1, 1, 5, -7, 1.0, "a", (0,), (0, 0), None, True, np.int64(0))
FLAGS = (False, True, 2, "a", None)
NUMBERS = (0, 1, -1, 2, 3, 2.5, float("nan"), float("inf"), 1j, True, None, "a", [1, 2])
SHAPED: tuple[Any, ...] = (np.array(2), np.array([2]), np.ones((2, 2)))
DTYPES = (float, np.float32, int, complex, bool, "f4", "wrong", object, None)
CORRUPTING = frozenset({"scipy.linalg.lu_solve", "scipy.interpolate.splint"})
"""Functions in C that look at none of their arguments: SciPy's writes to foreign memory."""
UNBOUNDED = ("inf", "huge")
ENDLESS = {
    **dict.fromkeys(
        (f"numpy.linalg.{x}" for x in ("cond", "lstsq", "matrix_rank", "pinv", "svd", "svdvals")), UNBOUNDED
    ),
    **dict.fromkeys(("numpy.polyfit", "scipy.special.hyp1f1"), UNBOUNDED),
    "scipy.interpolate.splev": ("'a'", "dtype=object)"),
}
"""Of what functions do not come back: of infinity (LAPACK's gelsd and gesdd), after 1e300 terms, or calls of itself."""
LEFT_ALONE = frozenset({"out", "device", "like", "signature", "subok", "overwrite_a", "overwrite_b", "overwrite_ab"})
"""Parameters that tests of their own are about, and promises about memory."""


@dataclass(frozen=True)
class Variation:
    """Hold an unusual call: what is unusual, whether of "values" or of something else, and its arguments."""

    what: str
    kind: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def variations(call: Usual) -> Iterator[Variation]:
    """Yield unusual calls that are one step away from a usual one."""
    yield Variation("as usual", "usual", call.args, call.kwargs)
    if call.label in CORRUPTING:
        yield from (*ways(call), *options(call))
        return
    for i, value in enumerate(call.args):
        for what, kind, other in others(value):
            if not what.endswith(ENDLESS.get(call.label, ())):
                yield Variation(f"{i}: {what}", kind, (*call.args[:i], other, *call.args[i + 1 :]), call.kwargs)
    for key, value in call.kwargs.items():
        for what, kind, other in others(value):
            yield Variation(f"{key}: {what}", kind, call.args, {**call.kwargs, key: other})
    yield from ways(call)
    yield from options(call)


def others(value: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield what could stand in the place of an argument."""
    for other in (None, "a", [[1.0], [1.0, 2.0]], {"a": 1.0}, np.array([1, "a", None], dtype=object), [None]):
        yield f"{other!r}", "type", other
    if isinstance(value, np.ndarray) and value.dtype.kind in "fc":
        yield from arrays(value)
    elif isinstance(value, np.ndarray):
        yield from of_integers(value)
    elif isinstance(value, float | int | np.generic):
        yield from ((f"{other!r}", "values", other) for other in (0, 1, -1, 2.5, 7, -0.0, np.nan, np.inf, -np.inf))
        yield from ((f"{other!r}", "type", other) for other in (True, 1j, 1.0, np.float32(1.5), np.int8(2)))
        yield from ((f"{other!r}", "shape", other) for other in (*SHAPED, []))
    elif isinstance(value, list | tuple) and value:
        yield "no items", "shape", type(value)()
        yield "one item less", "shape", value[:-1]
        yield "an item more", "shape", type(value)([*value, value[-1]])
        for i, item in enumerate(value):
            for what, kind, other in others(item) if isinstance(item, np.ndarray) else ():
                yield f"[{i}] {what}", kind, type(value)([*value[:i], other, *value[i + 1 :]])


def arrays(x: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield arrays that are like one of floats, but not quite."""
    for dtype in (np.float32, np.float16, np.longdouble, int, np.int8, np.uint8, bool, object):
        yield f"of {np.dtype(dtype)}", "type", x.astype(dtype)
    for dtype in (complex, np.complex64):
        yield f"of {np.dtype(dtype)}", "type", (x * (1 + 0.3j)).astype(dtype)
    yield "of big-endian floats", "layout", x.astype(x.dtype.newbyteorder(">"))
    yield "read-only", "layout", read_only(x)
    yield "in Fortran's order", "layout", np.asfortranarray(x)
    yield "strided", "layout", np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x
    yield "a list", "layout", x.tolist()
    yield "a masked array", "type", np.ma.masked_array(x, np.zeros(x.shape, bool))
    yield "empty", "shape", x[:0] if x.ndim else np.empty(0)
    yield "an axis more", "shape", x[np.newaxis]
    yield "two axes more", "shape", np.stack([x, x])[..., np.newaxis]
    yield "0-d", "shape", np.array(x.flat[0])
    yield "a number", "shape", x.flat[0].item()
    if x.ndim:
        yield "an axis less", "shape", x[0]
        yield "one less", "shape", x[:-1]
        yield "one more", "shape", np.concatenate([x, x[:1]])
        yield "one element", "shape", x[:1]
        yield "one less at the end", "shape", x[..., :-1]
    for what, element in (("NaN", np.nan), ("inf", np.inf), ("-inf", -np.inf), ("0", 0.0), ("huge", 1e300)):
        yield f"with {what}", "values", with_first(x, element)
    yield "all NaN", "values", np.full_like(x, np.nan)
    yield "negative", "values", -np.abs(x)
    yield "zeros", "values", np.zeros_like(x)
    yield "equal", "values", np.ones_like(x)
    yield "reversed", "values", x[::-1] if x.ndim else x


def of_integers(x: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield arrays that are like one of integers or truth values, but not quite."""
    for dtype in (float, complex, np.int8, np.uint8, bool, object):
        yield f"of {np.dtype(dtype)}", "type", x.astype(dtype)
    yield "a list", "layout", x.tolist()
    yield "read-only", "layout", read_only(x)
    yield "empty", "shape", x[:0] if x.ndim else np.empty(0, int)
    yield "an axis more", "shape", x[np.newaxis]
    yield "0-d", "shape", np.array(x.flat[0])
    yield "one less", "shape", x[:-1] if x.ndim else x
    if x.dtype.kind != "b":
        yield "too large", "values", x + 100
        yield "negative", "values", -x - 1


def read_only(x: Any) -> Any:
    """Return a copy that cannot be written to."""
    found = x.copy()
    found.flags.writeable = False
    return found


def with_first(x: Any, element: float) -> Any:
    """Return a copy with another first element."""
    found = x.copy()
    found.flat[0] = element
    return found


def ways(call: Usual) -> Iterator[Variation]:
    """Yield calls with arguments by name, in other numbers, and with names that nothing has."""
    args, kwargs = call.args, call.kwargs
    if args:
        yield Variation("one argument less", "call", args[:-1], kwargs)
    if not any(p.kind == inspect.Parameter.VAR_POSITIONAL for p in call.parameters):
        yield Variation("too many arguments", "call", (*args, *[None] * 30), kwargs)
    yield Variation("an unknown name", "call", args, {**kwargs, "no_such_name": 1})
    positional = [p for p in call.parameters if p.kind in ORDERED][: len(args)]
    if len(positional) == len(args):
        for at, p in enumerate(positional):
            if p.kind in BY_NAME:
                named = {q.name: x for q, x in zip(positional[at:], args[at:], strict=True)}
                yield Variation(f"by name from {p.name} on", "call", args[:at], {**kwargs, **named})
            yield Variation(f"{p.name} twice", "call", args, {**kwargs, p.name: args[at]})


def options(call: Usual) -> Iterator[Variation]:
    """Yield calls with other values for what has a default."""
    ordered = [p for p in call.parameters if p.kind in ORDERED]
    for p in call.parameters:
        at = ordered.index(p) if p in ordered else len(call.args)
        if p.default is EMPTY or p.name in LEFT_ALONE or at < len(call.args) or p.name in call.kwargs:
            continue
        for value in choices(call, p):
            if p.kind in BY_NAME:
                kwargs = {**call.kwargs, p.name: value}
                yield Variation(f"{p.name}={value!r}", "option", call.args, kwargs)
            between = [q.default for q in ordered[len(call.args) : at]]
            if p in ordered and not call.kwargs and value is choices(call, p)[0]:
                yield Variation(f"{p.name}={value!r} by place", "option", (*call.args, *between, value), {})


def choices(call: Usual, p: inspect.Parameter) -> list[Any]:
    """Return values for an option: legal ones and others."""
    if p.name in ("axis", "axes", "axisa", "axisb", "axisc", "axis1", "axis2"):
        return list(AXES)
    if p.name == "dtype":
        return list(DTYPES)
    found = quoted(call.doc, p.name)
    if isinstance(p.default, bool):
        return [*FLAGS, *found]
    if isinstance(p.default, str) or found:
        return [*found, "wrong", None, 3, True]
    if p.name == "where":
        return [True, False, np.array(True), "a", None, [True, False]]
    return [*NUMBERS, np.array([1.0, 2.0])]


def quoted(doc: str, name: str) -> list[str]:
    """Return the words in quotation marks of what a docstring says of a parameter."""
    block = re.search(rf"^( *){name} ?:.*\n(?:\1 +.*\n|\n)*", doc, re.MULTILINE)
    words = re.findall(r"[^\w\s]([\w-]+)['\"\u2019]", block[0]) if block else []
    return list(dict.fromkeys(words))[:12]
