"""Compare the memory order of results with NumPy's: which writes through views reach their base, in every mode.

    python -m tools.check_order [--modes eager,jit,jitarg,vmap] [--only NAME] [--refused]

Every function that Wengert knows is called on arrays of several memory orders, with whatever of `TEMPLATES` plain NumPy
accepts, and so are the calls of `CALLS`. A program makes the layout, calls, writes through a view of each result, and
returns inputs and results: they must be what NumPy gives, or the write must be refused. It takes two minutes.
"""

from __future__ import annotations

import argparse
import collections
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from wengert.core.values.numpy_overrides import FUNCTIONS
from wengert.core.values.tensor import Tensor, raw

__all__ = ["CALLS", "LAYOUTS", "MODES", "PROBES", "Call", "main", "mismatch", "of_functions"]

Shape = tuple[int, ...]
CUBE, MATRIX, SQUARE, LINE = (2, 3, 4), (3, 4), (3, 3), (4,)


class Layout(NamedTuple):
    """Hold how an array of a shape is made as a view of one in C order: the base's shape, and the view."""

    least: int
    base: Callable[[Shape], Shape]
    view: Callable[[Any, Shape], Any]


LAYOUTS = {
    "C": Layout(1, lambda s: s, lambda b, _: b),
    "F": Layout(2, lambda s: s[::-1], lambda b, _: b.T),
    "last first": Layout(3, lambda s: (*s[1:], s[0]), lambda b, _: np.moveaxis(b, -1, 0)),
    "first last": Layout(3, lambda s: (s[-1], *s[:-1]), lambda b, _: np.moveaxis(b, 0, -1)),
    "reversed": Layout(1, lambda s: s, lambda b, _: b[::-1]),
    "every other": Layout(1, lambda s: (*s[:-1], 2 * s[-1]), lambda b, _: b[..., ::2]),
    "repeated": Layout(2, lambda s: (1, *s[1:]), lambda b, s: np.broadcast_to(b, s)),
}


class Call(NamedTuple):
    """Hold a function of two arrays of one shape."""

    name: str
    shape: Shape
    function: Callable[[Any, Any], Any]


CALLS = [
    Call("x * 2.", CUBE, lambda x, y: x * 2.0),
    Call("x * y", CUBE, lambda x, y: x * y),
    Call("x * copy of y in C order", CUBE, lambda x, y: x * np.copy(y, order="C")),
    Call("x * row", CUBE, lambda x, y: x * y[0, 0]),
    Call("-x", CUBE, lambda x, y: -x),
    Call("x ** 2", CUBE, lambda x, y: x**2),
    Call("x > 0.5", CUBE, lambda x, y: x > 0.5),
    Call("x.copy()", CUBE, lambda x, y: x.copy()),
    Call("astype", CUBE, lambda x, y: x.astype(np.float32)),
    Call("astype of the same", CUBE, lambda x, y: x.astype(np.float64)),
    Call("array", CUBE, lambda x, y: np.array(x, like=x)),
    Call("asfortranarray", MATRIX, lambda x, y: np.asfortranarray(x, like=x)),
    Call("copy in order F", MATRIX, lambda x, y: np.copy(x, order="F")),
    Call("copy in order C", MATRIX, lambda x, y: np.copy(x, order="C")),
    Call("copy", MATRIX, lambda x, y: np.copy(x)),
    Call("reshape in order F", CUBE, lambda x, y: np.reshape(x, (6, 4), order="F")),
    Call("reshape in order A", CUBE, lambda x, y: np.reshape(x, (6, 4), order="A")),
    Call("reshape", CUBE, lambda x, y: np.reshape(x, (6, 4))),
    Call("reshape to more axes", CUBE, lambda x, y: np.reshape(x, (2, 3, 2, 2))),
    Call("x[:, 1:]", CUBE, lambda x, y: x[:, 1:]),
    Call("x[..., 1]", CUBE, lambda x, y: x[..., 1]),
    Call("x[1]", CUBE, lambda x, y: x[1]),
    Call("x[[1, 0]]", CUBE, lambda x, y: x[[1, 0]]),
    Call("x[:, [1, 0]]", CUBE, lambda x, y: x[:, [1, 0]]),
    Call("x[..., [1, 0]]", CUBE, lambda x, y: x[..., [1, 0]]),
    Call("x[:, [1, 0], [0, 1]]", CUBE, lambda x, y: x[:, [1, 0], [0, 1]]),
    Call("x[[1, 0], :, [0, 1]]", CUBE, lambda x, y: x[[1, 0], :, [0, 1]]),
    Call("x[matrix]", CUBE, lambda x, y: x[np.array([[0, 1], [1, 0]])]),
    Call("x[:, matrix]", CUBE, lambda x, y: x[:, np.array([[0, 1], [1, 0]])]),
    Call("x[mask]", CUBE, lambda x, y: x[np.array([True, True])]),
    Call("take", MATRIX, lambda x, y: np.take(x, [1, 0], axis=-1)),
    Call("take of a matrix", MATRIX, lambda x, y: np.take(x, [[1, 0], [0, 1]], axis=0)),
    Call("where", MATRIX, lambda x, y: np.where(np.eye(3, 4, dtype=bool), x, y)),
    Call("where of a number", MATRIX, lambda x, y: np.where(x > 0.5, x, 0.0)),
    Call("choose", MATRIX, lambda x, y: np.choose(np.zeros((3, 4), int), [x, y])),
    Call("clip", CUBE, lambda x, y: np.clip(x, 0.3, 0.5)),
    Call("meshgrid", LINE, lambda x, y: np.meshgrid(x, y[:3])),
    Call("meshgrid ij", LINE, lambda x, y: np.meshgrid(x, y[:3], indexing="ij")),
    Call("meshgrid of views", LINE, lambda x, y: np.meshgrid(x, y[:3], sparse=True, copy=False)),
    Call("zeros_like", CUBE, lambda x, y: np.zeros_like(x)),
    Call("ones_like", CUBE, lambda x, y: np.ones_like(x)),
    Call("full_like", CUBE, lambda x, y: np.full_like(x, 2.0)),
    Call("x.T @ y", MATRIX, lambda x, y: x.T @ y),
    Call("x @ y.T", MATRIX, lambda x, y: x @ y.T),
    Call("x @ vector", CUBE, lambda x, y: x @ y[0, 0]),
    Call("stacks of matrices", CUBE, lambda x, y: x @ np.swapaxes(y, 1, 2)),
    Call("tensordot", CUBE, lambda x, y: np.tensordot(x, y, ((1,), (1,)))),
    Call("einsum ij->ji", MATRIX, lambda x, y: np.einsum("ij->ji", x)),
    Call("einsum ii->i", SQUARE, lambda x, y: np.einsum("ii->i", x)),
    Call("einsum ij,kj->ki", MATRIX, lambda x, y: np.einsum("ij,kj->ki", x, y)),
    Call("einsum ij,ij->ij", MATRIX, lambda x, y: np.einsum("ij,ij->ij", x, y)),
    Call("einsum ijk->ki", CUBE, lambda x, y: np.einsum("ijk->ki", x)),
    Call("tile", MATRIX, lambda x, y: np.tile(x, (2, 1))),
    Call("tile once", MATRIX, lambda x, y: np.tile(x, 1)),
    Call("broadcast_to", MATRIX, lambda x, y: np.broadcast_to(x, (2, 3, 4))),
    Call("windows", MATRIX, lambda x, y: np.lib.stride_tricks.sliding_window_view(x, 2, 0)),
    Call("x.real", CUBE, lambda x, y: x.real),
    Call("real part", CUBE, lambda x, y: (x + 1j * y).real),
    Call("imaginary part", CUBE, lambda x, y: (x + 1j * y).imag),
    Call("conj", CUBE, lambda x, y: np.conj(x)),
    Call("x += y", CUBE, lambda x, y: x.__iadd__(y)),
    Call("sum", CUBE, lambda x, y: np.sum(x, axis=1)),
    Call("sum with axes kept", CUBE, lambda x, y: np.sum(x, axis=(0, 2), keepdims=True)),
    Call("split", CUBE, lambda x, y: np.split(x, 2, axis=-1)),
    Call("delete a slice", MATRIX, lambda x, y: np.delete(x, slice(0, 2), axis=0)),
    Call("take_along_axis", MATRIX, lambda x, y: np.take_along_axis(x, np.zeros((3, 1), int), 1)),
    Call("diff", MATRIX, lambda x, y: np.diff(x, axis=0)),
    Call("linspace", MATRIX, lambda x, y: np.linspace(x, y, 5)),
    Call("linspace along the last axis", MATRIX, lambda x, y: np.linspace(x, y, 5, axis=-1)),
    Call("add.outer", MATRIX, lambda x, y: np.add.outer(x, y)),
    Call("add.accumulate", MATRIX, lambda x, y: np.add.accumulate(x)),
    Call("solve", SQUARE, lambda x, y: np.linalg.solve(x + np.eye(3), y)),
    Call("inv", SQUARE, lambda x, y: np.linalg.inv(x + np.eye(3))),
    Call("matrix_power", SQUARE, lambda x, y: np.linalg.matrix_power(x, 3)),
    Call("matrix_power of one", SQUARE, lambda x, y: np.linalg.matrix_power(x, 1)),
    Call("norm", CUBE, lambda x, y: np.linalg.norm(x, axis=0)),
    Call("quantile", CUBE, lambda x, y: np.quantile(x, [0.2, 0.5], axis=1)),
    Call("modf", CUBE, lambda x, y: np.modf(x)),
    Call("divmod", CUBE, lambda x, y: np.divmod(x, 0.2)),
    Call("several operations", CUBE, lambda x, y: np.sin(x.T * 2.0)[1:] + y.T[1:]),
    Call("part of a copy", CUBE, lambda x, y: x.T.copy()[1:]),
    Call("select", MATRIX, lambda x, y: np.select([x > 0.5], [x], 0.0)),
    Call("pad", MATRIX, lambda x, y: np.pad(x, 1)),
    Call("pad with edges", MATRIX, lambda x, y: np.pad(x, 1, mode="edge")),
    Call("imaginary part of reals", CUBE, lambda x, y: np.imag(x)),
    Call("insert", MATRIX, lambda x, y: np.insert(x, 1, 5.0, axis=1)),
    Call("delete", MATRIX, lambda x, y: np.delete(x, 1, axis=1)),
    Call("gradient", MATRIX, lambda x, y: np.gradient(x)),
    Call("block", MATRIX, lambda x, y: np.block([[x, y], [y, x]])),
    Call("repeat", MATRIX, lambda x, y: np.repeat(x, 2, axis=0)),
    Call("geomspace", MATRIX, lambda x, y: np.geomspace(x, y, 3)),
    Call("x[:3]", LINE, lambda x, y: x[:3]),
    Call("delete from a row", LINE, lambda x, y: np.delete(x, 1)),
    Call("delete several", MATRIX, lambda x, y: np.delete(x, [0, 2], axis=1)),
    Call("ix_", LINE, lambda x, y: np.ix_(x, y)),
    Call("nan_to_num", CUBE, lambda x, y: np.nan_to_num(x)),
    Call("sort", CUBE, lambda x, y: np.sort(x, axis=0)),
    Call("cumsum", CUBE, lambda x, y: np.cumsum(x, axis=0)),
    Call("stack", MATRIX, lambda x, y: np.stack([x, y], axis=1)),
    Call("concatenate", MATRIX, lambda x, y: np.concatenate([x, y])),
    Call("roll", MATRIX, lambda x, y: np.roll(x, 1, axis=0)),
    Call("kron", MATRIX, lambda x, y: np.kron(x, y)),
    Call("tril", MATRIX, lambda x, y: np.tril(x)),
    Call("flip", CUBE, lambda x, y: np.flip(x, 1)),
    Call("diagonal", SQUARE, lambda x, y: np.diagonal(x)),
]

TEMPLATES: dict[str, Callable[[Any], Callable[[Any, Any], Any]]] = {
    "x": lambda f: lambda x, y: f(x),
    "x, y": lambda f: lambda x, y: f(x, y),
    "y in C order, x": lambda f: lambda x, y: f(np.copy(y, order="C"), x),
    "x, row": lambda f: lambda x, y: f(x, np.array([0.5] * x.shape[-1])),
    "x, 2.": lambda f: lambda x, y: f(x, 2.0),
    "x, 1": lambda f: lambda x, y: f(x, 1),
    "x, 1, axis=0": lambda f: lambda x, y: f(x, 1, axis=0),
    "x, axis=0": lambda f: lambda x, y: f(x, axis=0),
    "x, axis=-1": lambda f: lambda x, y: f(x, axis=-1),
    "x, axis=1, keepdims": lambda f: lambda x, y: f(x, axis=1, keepdims=True),
    "[x, y]": lambda f: lambda x, y: f([x, y]),
    "[x, y], axis=-1": lambda f: lambda x, y: f([x, y], axis=-1),
    "x, [1, 0]": lambda f: lambda x, y: f(x, [1, 0]),
    "x, [1, 0], axis=0": lambda f: lambda x, y: f(x, [1, 0], axis=0),
    "x, [1, 0], axis=-1": lambda f: lambda x, y: f(x, [1, 0], axis=-1),
    "x, 0.3, axis=0": lambda f: lambda x, y: f(x, 0.3, axis=0),
}
LEFT_OUT = frozenset(
    [
        "array_repr",
        "array_str",
        "array2string",
        "size",
        "shape",
        "ndim",
        "may_share_memory",
        "shares_memory",
        "can_cast",
        "result_type",
        "einsum_path",
        "min_scalar_type",
        "common_type",
        "array_equal",
        "array_equiv",
        "allclose",
        "isfortran",
        "empty",
        "empty_like",
        "iscomplexobj",
        "isrealobj",
        "frombuffer",
        "fromiter",
        "fromstring",
        "from_dlpack",
        "fromfunction",
        "copyto",
        "place",
        "put",
        "putmask",
        "put_along_axis",
    ]
)
"""Functions that return no arrays, or arrays without values, or write themselves."""


def of_functions() -> Iterator[Call]:
    """Yield calls of every function that Wengert knows."""
    for function in list(FUNCTIONS):
        name = getattr(function, "__name__", "")
        if not callable(function) or name in LEFT_OUT:
            continue
        owner = "linalg." if "linalg" in str(getattr(function, "__module__", "")) else ""
        for shape in (CUBE, SQUARE, LINE):
            for arguments, template in TEMPLATES.items():
                yield Call(f"{owner}{name}({arguments}) {len(shape)}-d", shape, template(function))


PROBES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda r: r,
    "ravel": lambda r: r.ravel(),
    "reshape": lambda r: r.reshape(-1),
    "reshape F": lambda r: r.reshape(-1, order="F"),
    "ravel K": lambda r: np.ravel(r, "K"),
    "half": lambda r: r.reshape((r.shape[0] * r.shape[1], *r.shape[2:])) if r.ndim > 1 else r[:2],
}


def leaves(result: Any) -> list[Any]:
    """Return the arrays among results."""
    if isinstance(result, tuple | list):
        return [leaf for item in result for leaf in leaves(item)]
    return [result] if isinstance(result, np.ndarray | np.generic | Tensor) else []


def program(call: Call, layout: Layout, probe: str, made: bool = False) -> Callable[[Any, Any], list[Any]]:
    """Return the function that makes the layout (unless it is `made`), calls, writes, and returns what there is."""

    def run(bx: Any, by: Any) -> list[Any]:
        x, y = (bx, by) if made else (layout.view(bx, call.shape), layout.view(by, call.shape))
        results = leaves(call.function(x, y))
        for r in results:
            if r.ndim:
                v = PROBES[probe](r)
                v[...] = np.logical_not(v) if v.dtype == bool else 77
        return [bx, by, *results]

    return run


Outcome = tuple[list[Any], str]


def outcome(run: Callable[[], Sequence[Any]]) -> Outcome:
    """Return what a program gives as arrays, or why it fails."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return [np.array(raw(r)) for r in run()], ""
    except (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        return [], f"{type(error).__name__}: {error}"


Bases = tuple[Any, Any]


def eager(call: Call, layout: Layout, probe: str, bases: Bases) -> Outcome:
    """Run a program on Tensors."""
    return outcome(lambda: program(call, layout, probe)(*map(wg.tensor, bases)))


def jit(call: Call, layout: Layout, probe: str, bases: Bases) -> Outcome:
    """Run a program that was traced."""
    return outcome(lambda: wg.jit(program(call, layout, probe))(*bases))


def jit_of_layout(call: Call, layout: Layout, probe: str, bases: Bases) -> Outcome:
    """Run a program that was traced for arguments of the layout."""
    xs = [layout.view(b.copy(), call.shape) for b in bases]
    return outcome(lambda: wg.jit(program(call, layout, probe, made=True))(*xs))


def vmap(call: Call, layout: Layout, probe: str, bases: Bases) -> Outcome:
    """Run a program in lanes."""
    run = program(call, layout, probe)
    lanes, failure = outcome(lambda: wg.vmap(run)(*(np.stack([b, b]) for b in bases)))
    return [lane[0] for lane in lanes], failure


MODES = {"eager": eager, "jit": jit, "jitarg": jit_of_layout, "vmap": vmap}


def base_for(layout: Layout, shape: Shape, seed: int) -> Any:
    """Return the base of a layout, with distinct elements between 0.3 and 0.8."""
    found = layout.base(shape)
    return np.random.default_rng(seed).permutation(int(np.prod(found))).reshape(found) * 0.01 + 0.3


def mismatch(call: Call, layout: Layout, probe: str, mode: str) -> str | None:
    """Return how a program in a mode differs from NumPy; "" if it does not, None if NumPy cannot run it."""
    bases = base_for(layout, call.shape, 0), base_for(layout, call.shape, 1)
    wanted, refused = outcome(lambda: program(call, layout, probe)(*(b.copy() for b in bases)))
    if refused and "read-only" not in refused:
        return None
    if mode == "jitarg" and not refused:
        xs = [layout.view(b.copy(), call.shape) for b in bases]
        wanted, _ = outcome(lambda: program(call, layout, probe, made=True)(*xs))
    found, failure = MODES[mode](call, layout, probe, bases)
    if refused:
        return "" if failure else "written, which NumPy refuses"
    if failure:
        return "refused: " + failure
    if [a.shape for a in wanted] != [a.shape for a in found]:
        return "shapes differ"
    for place, (a, b) in enumerate(zip(wanted, found, strict=True)):
        if not np.allclose(a, b, equal_nan=True):
            what = "lost" if (a == 77).sum() > (b == 77).sum() else "extra"
            return f"{'write to an input' if place < 2 else 'write'} {what}"
    return ""


def main() -> int:
    """Print the mismatches by mode; return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="check_order")
    parser.add_argument("--modes", default="eager,jit,vmap")
    parser.add_argument("--only", default="", help="part of a call's name")
    parser.add_argument("--refused", action="store_true", help="list what is refused, such as writing by out=")
    arguments = parser.parse_args()
    total: collections.Counter[str] = collections.Counter()
    refused: collections.Counter[str] = collections.Counter()
    wrong: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for call in [*CALLS, *of_functions()]:
        if arguments.only not in call.name:
            continue
        for layout in LAYOUTS.values():
            if len(call.shape) < layout.least:
                continue
            for probe in PROBES:
                for mode in arguments.modes.split(","):
                    found = mismatch(call, layout, probe, mode)
                    total[mode] += found is not None
                    if found and found.startswith("refused") and not arguments.refused:
                        refused[mode] += 1
                    elif found:
                        wrong[mode, found][call.name] += 1
    for mode, count in total.items():
        mismatches = sum(found.total() for (where, _), found in wrong.items() if where == mode)
        print(f"{mode}: {count} programs, {mismatches} mismatches, {refused[mode]} refused")
    for (mode, kind), names in sorted(wrong.items(), key=lambda item: -item[1].total()):
        print(f"\n{mode}, {kind}: {names.total()} of {len(names)} calls")
        print("   ", ", ".join(f"{name} {n}" for name, n in names.most_common(60)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
