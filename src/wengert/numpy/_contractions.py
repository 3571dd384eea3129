"""Products and contractions with NumPy's signatures, and the operator `@`, also of SciPy's sparse matrices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.containers.container_classes import STAND_INS
from wengert.core.diagnostics.argument_checks import as_dtype, as_items, as_whole, shown
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply, as_tensor, implements
from wengert.core.values.numpy_overrides import AT_ONCE, NOTHING
from wengert.core.values.tensor import WATCHES, Tensor, concrete, raw
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.numpy._namespace import document_as, enter_as
from wengert.numpy._results import (
    HOLDS_RESULT,
    SAME,
    WITHIN_KIND,
    OutRule,
    dtype_within,
    refuse_options,
    require_c_order,
    with_out,
)
from wengert.numpy._ufuncs import in_place, install, through_function
from wengert.primitives import contractions
from wengert.primitives import contractions as sums
from wengert.primitives.indexing import elements
from wengert.traces.eager import REAL, SEVERAL, eager
from wengert.traces.operands import operand

Operator = Callable[[Tensor, Any], Any]


def allow_sparse(operate: Operator, *, reflected: bool = False) -> Operator:
    """Return the operator `@` that knows sparse matrices, too."""

    def multiply(self: Tensor, other: Any) -> Any:
        if not is_sparse(other):
            return operate(self, other)
        return product(other, self) if reflected else transpose(product(other.T, transpose(self)))

    return multiply


def is_sparse(value: Any) -> bool:
    """Tell whether a value is a matrix of `scipy.sparse`, which need not be loaded for that."""
    return type(value).__module__.startswith("scipy.sparse") and hasattr(value, "tocsr")


def product(matrix: Any, x: Tensor) -> Any:
    """Return `matrix @ x`."""
    from wengert.primitives.sparse.sparse_tensor import multiply_dense, sparse_tensor

    return multiply_dense(sparse_tensor(matrix), x)


def stand_in_for_sparse(matrix: Any) -> Any:
    """Return the container of ours that stands for a matrix of `scipy.sparse`."""
    from wengert.primitives.sparse.sparse_tensor import stand_in

    return stand_in(matrix)


STAND_INS["scipy.sparse"] = "tocsr", stand_in_for_sparse


def transpose(x: Any) -> Any:
    """Return a matrix with its axes exchanged, a vector as it is."""
    return np.transpose(x)


RAW_TYPES = (Tensor, np.ndarray)


def array(name: str, value: Any) -> Any:
    """Return an operand as a Tensor or an array; Python numbers take their default dtype, as NumPy has it here."""
    if type(value) in RAW_TYPES and (type(value) is Tensor or value.dtype.kind in "?biufc"):
        return value
    found = operand(name, value)
    return found if isinstance(found, Tensor | np.ndarray | np.generic) else np.asarray(found)


# Recorders of products

multiply_matrices = eager(contractions.matmul, SEVERAL, np.matmul)
multiply_inner = eager(contractions.inner, SEVERAL, np.inner)
multiply_axes = eager(contractions.tensordot, SEVERAL, np.tensordot)
multiply_cross = eager(contractions.cross, SEVERAL)
multiply_einsum = eager(sums.einsum, SEVERAL)
sum_einsum = eager(sums.einsum_one)
multiply_sequences = eager(contractions.convolve, SEVERAL, np.convolve)


def product_of_two(primitive: Primitive, function: Callable[[Any, Any], Any], *, reflected: bool = False) -> Any:
    """Return a product of a Tensor and anything beside it; `function` computes it of what is no array.

    Reflected, the Tensor is the second operand.
    """

    def general(_door: Any, a: Any, b: Any, _error: Exception | None = None) -> Any:
        return function(b, a) if reflected else function(a, b)

    return eager(primitive, 2, getattr(np, primitive.name), general, reflected=reflected)


# Generalised ufuncs


def move_core_axes(x: Any, axes: Any) -> Any:
    """Return an operand with the core axes that `axes` names at the end."""
    axes = (axes,) if isinstance(axes, int) else tuple(axes)
    return np.moveaxis(x, axes, range(-len(axes), 0))


def require_axes(name: str, x: Any, y: Any, **options: Any) -> None:
    """Let NumPy say what is wrong with the axes of a generalised ufunc, of operands with as many axes of length 1."""
    getattr(np, name)(np.ones((1,) * x.ndim), np.ones((1,) * y.ndim), **options)


def cast_operand(name: str, x: Tensor, dtype: Any) -> Any:
    """Return an operand in the dtype of a ufunc's loop; one that would lose more than digits is refused."""
    kind = as_dtype(name, dtype)
    if not np.can_cast(x.dtype, kind, "same_kind"):
        needed = "one to which NumPy casts by 'same_kind' is needed"
        raise DtypeError(name, f"dtype={kind} for an operand of {x.dtype}", needed, "Use astype before")
    return x.astype(kind)


def make_generalised_ufunc(primitive: Primitive) -> Callable[..., Any]:
    """Return a function with the signature of a generalised ufunc of two operands."""
    name = primitive.name
    multiply = eager(primitive, SEVERAL, getattr(np, name))

    @document_as(name, "Apply the generalised ufunc to Tensors or arrays")
    def function(x1: Any, x2: Any, /, out: Any = None, *, axes: Any = None, dtype: Any = None, **options: Any) -> Any:
        x, y = array(name, x1), array(name, x2)
        if out is None and axes is None and dtype is None and not options:
            return multiply((x, y), {})
        refuse_options(name, options, "out, axes and dtype")
        if dtype is not None:
            x, y = cast_operand(name, x, dtype), cast_operand(name, y, dtype)
        if axes is not None:
            require_axes(name, x, y, axes=axes)
            x, y = move_core_axes(x, axes[0]), move_core_axes(y, axes[1])
        result: Any = multiply((x, y), {})
        if axes is not None and len(axes) > 2:
            places = (axes[2],) if isinstance(axes[2], int) else tuple(axes[2])
            result = np.moveaxis(result, range(-len(places), 0), places) if places else result
        return with_out(name, result, out)

    pair, turned = product_of_two(primitive, function), product_of_two(primitive, function, reflected=True)

    def direct(x: Any, y: Any) -> Any:
        """Return the product of operands that are arrays; NotImplemented for others."""
        if type(x) not in RAW_TYPES or type(y) not in RAW_TYPES:
            return NotImplemented
        return pair(x, y) if type(x) is Tensor else turned(y, x)

    AT_ONCE.add(getattr(np, name))
    function.of_two = pair  # type: ignore[attr-defined]  # as those of other ufuncs have
    function.direct = direct  # type: ignore[attr-defined]  # likewise
    return function


matmul = implements(np.matmul)(make_generalised_ufunc(contractions.matmul))
multiply_other = allow_sparse(through_function(np.matmul, matmul))


def matmul_operator(self: Tensor, other: Any) -> Any:
    """Return `self @ other`."""
    if type(other) is Tensor or (type(other) is np.ndarray and other.dtype.kind in REAL):
        return multiply_matrices((self, other), {})
    return multiply_other(self, other)


install("matmul", product_of_two(contractions.matmul, matmul_operator))
install("rmatmul", allow_sparse(through_function(np.matmul, matmul, reflected=True), reflected=True))
install("imatmul", in_place("matmul", multiply_other))
implements(np.matvec)(make_generalised_ufunc(contractions.matvec))
implements(np.vecmat)(make_generalised_ufunc(contractions.vecmat))
_vecdot = make_generalised_ufunc(contractions.vecdot)


@implements(np.vecdot)
def vecdot(
    x1: Any, x2: Any, /, out: Any = None, *, axis: Any = None, axes: Any = None, keepdims: bool = False, **options: Any
) -> Any:
    """Return the products of the vectors along an axis, summed; see `numpy.vecdot`."""
    if axes is None and axis is None and not keepdims:
        return _vecdot(x1, x2, out=out, **options)
    x, y = array("vecdot", x1), array("vecdot", x2)
    chosen = {"axis": axis, "axes": axes}
    require_axes("vecdot", x, y, keepdims=keepdims, **{key: of for key, of in chosen.items() if of is not None})
    if axes is None:
        axes = [-1 if axis is None else axis] * 2
    if axes[0] == axes[1] and x.ndim == y.ndim and not options:
        result = apply(contractions.vecdot, x, y, axis=normalize_axis_index(axes[0], x.ndim) - x.ndim)
    else:
        result = _vecdot(x, y, axes=axes[:2], **options)
    if keepdims:
        place = axes[2] if len(axes) > 2 else axes[0]
        result = np.expand_dims(result, place if isinstance(place, int) else tuple(place))
    return with_out("vecdot", result, out)


# Contractions


def enter_product(numpys: Callable[..., Any], primitive: Primitive, summary: str, rule: OutRule) -> Callable[..., Any]:
    """Enter and return a product of two operands, with a short way that `wengert.numpy` takes."""
    name, multiply = numpys.__name__, eager(primitive, SEVERAL, numpys)

    @enter_as(numpys, summary, "a b")
    def compute(a: Any, b: Any, out: Any = None) -> Any:
        result = multiply((array(name, a), array(name, b)), {})
        if out is None:
            return result
        if rule is SAME:
            require_c_order(name, out)
        return with_out(name, result, out, rule=rule)

    compute.of_two = product_of_two(primitive, compute)  # type: ignore[attr-defined]  # as those of ufuncs have
    return compute


dot = enter_product(
    np.dot, contractions.dot, "Return the sum of products over the last axis of a and the second to last of b", SAME
)
outer = enter_product(
    np.outer, contractions.outer, "Return the products of every element of a with every one of b", WITHIN_KIND
)


@implements(np.inner, by="a b")
def inner(a: Any, b: Any, /) -> Any:
    """Return the sums of products over the last axes; see `numpy.inner`."""
    return multiply_inner((array("inner", a), array("inner", b)), {})


inner.of_two = product_of_two(contractions.inner, inner)  # type: ignore[attr-defined]  # as above


@implements(np.vdot, by="a b")
def vdot(a: Any, b: Any, /) -> Any:
    """Return the scalar product of all elements, the first conjugated; see `numpy.vdot`."""
    return apply(contractions.vdot, array("vdot", a), array("vdot", b))


@implements(np.kron, by="a b")
def kron(a: Any, b: Any) -> Any:
    """Return the Kronecker product; see `numpy.kron`."""
    return apply(contractions.kron, array("kron", a), array("kron", b))


@implements(np.tensordot, by="a b")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Return the sum of products over given axes; see `numpy.tensordot`."""
    x = a if type(a) is Tensor else array("tensordot", a)
    y = b if type(b) is Tensor else array("tensordot", b)
    chosen = contracted_axes(axes, x.ndim, y.ndim)
    left = [x.shape[axis] for axis in chosen[0]]
    right = [y.shape[axis] for axis in chosen[1]]
    if left != right:
        needed = f"equal lengths along axes {list(chosen[0])} and {list(chosen[1])} are needed"
        raise contractions.shape_mismatch("tensordot", x, y, needed)
    return multiply_axes((x, y), {"axes": chosen})


def contracted_axes(axes: Any, left: int, right: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the axes of both sides that `tensordot` contracts, numbered from 0."""
    known = concrete("tensordot", axes) if type(axes) is Tensor else axes
    if isinstance(known, int | np.integer) or (isinstance(known, np.ndarray) and not known.ndim):
        count = operator.index(known)
        if count > min(left, right):
            given = f"axes={count} for arrays of {left} and {right} axes"
            raise ShapeError("tensordot", given, "as many axes are needed in both", "Pass fewer axes")
        return tuple(range(left - max(count, 0), left)), tuple(range(count))
    if isinstance(known, str) or not isinstance(known, Sequence | np.ndarray) or len(known) != 2:
        needed = "a number of axes, or two lists of axes are needed"
        raise DtypeError("tensordot", f"axes={shown(known)}", needed, "Pass one of these")
    return normalise_axes(known[0], left), normalise_axes(known[1], right)


def normalise_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Return one axis or several as numbers from 0, each once."""
    listed = [axes] if isinstance(axes, int | np.integer) else as_items("tensordot", "axes", axes)
    found = tuple([normalize_axis_index(as_whole("tensordot", "an axis", i), ndim) for i in listed])
    if len(set(found)) != len(found):
        raise UsageError("tensordot", f"axes {found}", "each axis at most once is needed", "Leave out the repetition")
    return found


@implements(np.cross, by="a b")
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """Return the cross products of vectors of space; see `numpy.cross`."""
    if axis is not None:
        axisa = axisb = axisc = axis
    if not type(axisa) is type(axisb) is type(axisc) is int:
        axisa, axisb, axisc = (as_whole("cross", "an axis", i) for i in (axisa, axisb, axisc))
    x, y = array("cross", a), array("cross", b)
    of_x, of_y = x.shape, y.shape
    lengths = (of_x[axisa] if of_x else 0, of_y[axisb] if of_y else 0)
    if not {*lengths} <= {2, 3}:
        raise contractions.shape_mismatch("cross", x, y, "vectors with 3 elements are needed")
    x, y = move_to_end(x, axisa), move_to_end(y, axisb)
    if of_x != of_y or axisa != axisb:
        try:
            np.broadcast_shapes(x.shape[:-1], y.shape[:-1])
        except ValueError:
            needed = "shapes that broadcast are needed, but for the axes of the vectors"
            raise contractions.shape_mismatch("cross", x, y, needed) from None
    result: Any = multiply_cross((x, y), {})
    return result if lengths == (2, 2) or axisc in (-1, result.ndim - 1) else np.moveaxis(result, -1, axisc)


def move_to_end(x: Any, axis: int) -> Any:
    """Return an operand with an axis moved to the end."""
    return x if axis in (-1, x.ndim - 1) else np.moveaxis(x, axis, -1)


# Einstein sums


@implements(np.einsum, by="operands")
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **options: Any) -> Any:
    """Return the Einstein sum of operands; see `numpy.einsum`."""
    usual = out is None and optimize is False and not options
    if usual and len(operands) == 2 and type(operands[0]) is str and type(operands[1]) is Tensor:
        return einsum_of_one(operands[0], operands[1])
    subscripts, found = einsum_operands(operands)
    arrays = [x if type(x) is Tensor else array("einsum", x) for x in found]
    primitive = sums.einsum_one if len(arrays) == 1 else sums.einsum
    if usual:
        params = {"subscripts": subscripts, "optimize": False}
        if len(arrays) > 1:
            return multiply_einsum(arrays, params)
        if arrays and type(arrays[0]) is Tensor:
            return sum_einsum(arrays[0], params)
    if options.get("dtype") is not None:
        options["dtype"] = as_dtype("einsum", options["dtype"])
    elif out is not None and optimize is False and "dtype" not in options and arrays:
        within = dtype_within(np.empty((), np.result_type(*[x.dtype for x in arrays])), None, out)
        arrays = arrays if within is None else [x.astype(within) for x in arrays]  # NumPy calculates so
    path = tuple(optimize) if isinstance(optimize, list) else optimize
    result = apply(primitive, *arrays, subscripts=subscripts, optimize=path, **options)
    by_steps = optimize is not False and len(arrays) > 1  # of which the last is a product, as NumPy's others are
    rule = WITHIN_KIND if by_steps or options.get("casting", "safe") != "safe" else HOLDS_RESULT
    return with_out("einsum", result, out, rule=rule)


def einsum_of_one(subscripts: str, x: Tensor) -> Any:
    """Return the Einstein sum of one operand, which may be a view of it."""
    params = {"subscripts": subscripts, "optimize": False}
    value = x._value
    if x._trace is None and type(value) is np.ndarray and value.size and not WATCHES:
        try:
            found = sums.EINSUM(subscripts, value)
        except (TypeError, ValueError):  # of which more is said below
            pass
        else:
            return sum_einsum(x, params, found)
    return sum_einsum(x, params)


def einsum_operands(operands: tuple[Any, ...]) -> tuple[sums.Subscripts, list[Any]]:
    """Return the subscripts and the arrays of a call in either of the forms of `einsum`."""
    if not operands:
        needed = "subscripts and operands are needed"
        raise UsageError("einsum", "no arguments", needed, "Pass them, as to numpy.einsum")
    if isinstance(operands[0], str):
        return operands[0], list(operands[1:])
    lists = [*operands[1::2], *(operands[-1:] if len(operands) % 2 else ())]
    subscripts = tuple(tuple(i if i is Ellipsis else operator.index(i) for i in labels) for labels in lists)
    return subscripts, list(operands[: 2 * (len(operands) // 2) : 2])


@implements(np.einsum_path, by=NOTHING)
def einsum_path(*operands: Any, optimize: Any = "greedy", **options: Any) -> Any:
    """Return the order of contractions that `einsum` would choose; see `numpy.einsum_path`."""
    return np.einsum_path(*map(raw, operands), optimize=optimize, **options)


# Signals, interpolation


@implements(np.convolve, by="a v")
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """Return the convolution of two sequences; see `numpy.convolve`."""
    return multiply_sequences((as_sequence("convolve", a, 1), as_sequence("convolve", v, 1)), {"mode": mode_name(mode)})


@implements(np.correlate, by="a v")
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """Return the correlation of two sequences; see `numpy.correlate`."""
    return apply(contractions.correlate, as_sequence("correlate", a), as_sequence("correlate", v), mode=mode_name(mode))


def as_sequence(name: str, value: Any, ndmin: int = 0) -> Any:
    """Return an operand with elements in a row; with `ndmin` of 1 a number is one."""
    found = array(name, value)
    if not found.ndim and ndmin:
        return found.reshape(1)
    if found.ndim != 1 or not found.shape[0]:
        raise ShapeError(name, f"an operand of shape {found.shape}", "sequences with elements are needed", "Reshape it")
    return found


def mode_name(mode: str) -> str:
    """Return the mode of a convolution in full."""
    for name in ("full", "same", "valid"):
        if mode and name.startswith(mode):
            return name
    raise UsageError("convolve", f"mode {mode!r}", "'full', 'same' or 'valid' is needed", "Pass one of these")


@implements(np.interp, by="x xp fp left right period")
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Return the values at x of the polygon through the points (xp, fp); see `numpy.interp`."""
    x, xp, fp = (array("interp", z) for z in (x, xp, fp))
    # differences of whole numbers wrap round
    x, xp, fp = (z.astype(float) if z.dtype.kind in "bui" else z for z in (x, xp, fp))
    if period is not None:
        x, xp, fp = wrap_period(x, xp, fp, period)
        left = right = None
    else:
        limits = {} if fp.dtype.kind == "c" else {"left": left, "right": right}
        require_real({"x": x, "xp": xp, **limits})
    follows = type(xp) is Tensor or type(fp) is Tensor
    result = apply(elements.interp if follows else elements.interp_at, x, xp, fp)
    if left is not None:
        result = np.where(x < xp[0], left, result)
    if right is not None:
        result = np.where(x > xp[-1], right, result)
    return result


def require_real(given: dict[str, Any]) -> None:
    """Refuse complex numbers for operands of `interp` by name; those that are left out are None."""
    for name, value in given.items():
        if value is not None and as_tensor(value).dtype.kind == "c":
            raise DtypeError("interp", f"{name} is complex", "real numbers are needed", "Pass its .real")


def wrap_period(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """Return x, xp and fp within one period, with a point more on either side."""
    if period == 0:
        raise UsageError("interp", "a period of 0", "another number is needed", "Leave period out")
    period = abs(period)
    x, xp = as_tensor(x).astype(float) % period, as_tensor(xp).astype(float) % period
    order = np.argsort(xp)
    xp, fp = xp[order], fp[order]
    xp = np.concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, xp, np.concatenate([fp[-1:], fp, fp[:1]])
