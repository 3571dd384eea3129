"""Iterative solutions of sparse linear systems and least squares, by SciPy's methods.

Derivatives are solutions of the same matrix or its transpose, by the same method, of right-hand sides of length one: a
method that stops at an absolute tolerance would take a small cotangent for zero. The values of a solution that has not
converged are SciPy's; its derivatives are errors, as the equations they follow from do not hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import each_lane
from wengert.core.forms.form import Form, Pointwise
from wengert.core.forms.shape_probes import Results
from wengert.core.primitives.cotangent import match_dtype, unbroadcast
from wengert.core.primitives.declare import linear, opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.errors import NumericalError, UsageError
from wengert.primitives.linear_algebra.matrices import length_of
from wengert.primitives.sparse.normal_equations import conjugate_gradients
from wengert.primitives.sparse.products import sampled_product, sparse_product
from wengert.primitives.sparse.storage_pattern import StoragePattern

Params = Mapping[str, Any]
SYMMETRIC = ("cg", "minres")
"""Methods for matrices that are their own transposes, or adjoints."""
MANY = 4
"""How often longer than a matrix the iterations of a derivative may be, where nobody says it: SciPy's may be few."""
LEAST_SQUARES = 10, 8
"""How many results `lsqr` and `lsmr` have."""


class IterativeForm(Form):
    """What a method gives: a vector, and numbers about it.

    Attributes:
        is_square: whether the vector is like the right-hand side, else one element for each column.
    """

    is_square: bool

    def results(self, primitive: Primitive, inputs: Sequence[Any], params: Params) -> Results:
        """Return the shapes that the pattern tells."""
        dtype = np.result_type(*[aval_of(x).dtype for x in inputs[:2]])
        dtype = dtype if dtype.kind in "fc" else np.dtype(float)
        vector = Aval((params["pattern"].shape[1],), dtype)
        whole, number = Aval((), np.dtype(np.int64)), Aval((), np.dtype(float))
        if primitive.outputs == 1:
            return (vector,), None
        if self.is_square:
            return (vector, whole), None
        numbers = [number] * (primitive.outputs - 3)
        return (vector, whole, whole, *numbers[:-1], numbers[-1] if primitive.outputs == 8 else vector), None


def batch_iterative(
    primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: Params
) -> Any:
    """Solve lane by lane: methods take as many steps as each needs."""
    lanes = each_lane(primitive, size, operands, batched, params)
    return np.stack(lanes) if primitive.outputs == 1 else tuple(map(np.stack, zip(*lanes, strict=True)))


# A derivative that is none unless there is a solution


def evaluate_converged(t: Any, info: Any, *, name: str) -> Any:
    """Evaluate `converged`: what is given, if a method has come to an end."""
    if np.any(info):
        first = int(np.ravel(info)[np.flatnonzero(info)[0]])
        reason = f"after {first} iterations it had not converged" if first > 0 else f"it broke down (info {first})"
        needed = "a solution is needed to differentiate"
        raise NumericalError(name, reason, needed, "Allow more iterations, precondition it by M, or use spsolve")
    return np.array(np.broadcast_to(t, np.broadcast_shapes(np.shape(t), np.shape(info))))


converged: Primitive = linear(
    "converged",
    evaluate_converged,
    transpose=lambda ct, aval, info, *, name: unbroadcast(apply(converged, ct, info, name=name), aval.shape),
    form=Pointwise(),
)


# Systems


def evaluate_iterative(
    data: Any, b: Any, x0: Any, *, method: str, pattern: StoragePattern, transposed: bool, unit: bool, options: Any
) -> Any:
    """Evaluate `iterative_solve`: SciPy's method; with `unit` for a right side of length one, which must converge."""
    from scipy.sparse import linalg

    given = dict(options)
    matrix = pattern.matrix(data)
    if transposed:
        matrix, given["M"] = matrix.T, None if given.get("M") is None else given["M"].T
    dtype = np.result_type(data.dtype, b.dtype)
    length = length_of(b) if unit else 1.0
    if unit:
        given = {key: value for key, value in given.items() if key not in ("atol", "callback", "callback_type")}
        if length == 0:
            return np.zeros(len(b), dtype), np.int64(0)
        b = b / length
    found, info = getattr(linalg, method)(matrix, b, x0=None if unit else np.array(x0), **given)
    if unit:
        found = evaluate_converged(found, info, name=method) * length
    return np.asarray(found).astype(dtype if dtype.kind in "fc" else float, copy=False), np.int64(info)


def derivative_solution(right: Any, info: Any, data: Any, transposed: bool, params: Params) -> Any:
    """Return the solution of a right-hand side that is a tangent or cotangent."""
    right = apply(converged, right, info, name=params["method"])
    turned = transposed and not (params["method"] in SYMMETRIC and aval_of(data).dtype.kind != "c")
    zeros = np.zeros(aval_of(right).shape, aval_of(right).dtype)
    return apply(iterative_solve, data, right, zeros, **{**params, "transposed": turned, "unit": True})[0]


def vjp_iterative(ct: Sequence[Any], out: Sequence[Any], data: Any, b: Any, _x0: Any, **params: Any) -> Any:
    """Solve with the transpose: w = A^-T x*, b* = w, and -(w x^T) at the places of A."""
    x, info = out
    transposed = params["transposed"]
    w = derivative_solution(ct[0], info, data, not transposed, params)
    left, right = (x, w) if transposed else (w, x)
    by_data = -apply(sampled_product, left, right, pattern=params["pattern"])
    return match_dtype(by_data, aval_of(data).dtype), match_dtype(w, aval_of(b).dtype), None


def jvp_iterative(tangents: Sequence[Any], out: Sequence[Any], data: Any, _b: Any, _x0: Any, **params: Any) -> Any:
    """Solve with the same matrix: A x' = b' - A' x; where the solution begins does not matter to it."""
    moved, right, _ = tangents
    x, info = out
    transposed = params["transposed"]
    if moved is not None:
        change = -apply(sparse_product, moved, x, pattern=params["pattern"], transposed=transposed)
        right = change if right is None else right + change
    if right is None:
        return None, None
    return derivative_solution(right, info, data, transposed, params), None


iterative_solve: Primitive = opaque(
    "iterative_solve",
    evaluate_iterative,
    vjp=vjp_iterative,
    jvp=jvp_iterative,
    outputs=2,
    form=IterativeForm(True),
    batch=batch_iterative,
)


# Least squares: x = N^-1 A^T b with N = A^T A + d^2, of which all derivatives are made


EXACTNESS = {"atol": 1e-6, "btol": 1e-6, "conlim": 1e8}
"""How exact solutions are where nobody says it."""


def evaluate_normal(data: Any, b: Any, *, method: str, pattern: StoragePattern, damp: float, options: Any) -> Any:
    """Evaluate `normal_solve`, as exactly as the method has to be."""
    matrix, length, given = pattern.matrix(data), length_of(b), {**EXACTNESS, **dict(options)}
    matrix = matrix.tocsr() if pattern.format == "coo" else matrix  # of one row coo gives a number for a vector
    dtype = np.result_type(data.dtype, b.dtype)
    if length == 0:
        return np.zeros(pattern.shape[1], dtype)
    most = given.setdefault("iter_lim" if method == "lsqr" else "maxiter", MANY * max(matrix.shape))
    turned, unit, exact = matrix.T, b / length, {name: given[name] for name in EXACTNESS}
    found = conjugate_gradients(lambda x: matrix @ x, lambda y: turned @ y, unit, damp, most=most, **exact)
    if found is None:
        given.pop("calc_var", None)
        found = smallest_solution(method, matrix, damp, unit, given)
    return (found * length).astype(dtype, copy=False)


def smallest_solution(method: str, matrix: Any, damp: float, right: Any, options: Params) -> Any:
    """Return the smallest z of the least squares A z = w, where w is the shortest of those of A^T w = right.

    It is what is to be found where columns depend on each other: right for derivatives by b, and by those changes of A
    that leave it so.
    """
    from scipy import sparse

    solve = getattr(sparse.linalg, method)
    if damp:  # which is least squares of more rows
        matrix = sparse.vstack([matrix, damp * sparse.eye_array(matrix.shape[1])], format="csr")
    found = right
    for turned in (matrix.T, matrix):
        found, stop = solve(turned, found, **options)[:2]
        if stop == 3 or stop >= 6:
            reason = f"it had not solved the system of the derivative (istop {stop})"
            needed = "columns that are independent, and iterations that suffice, are needed to differentiate"
            raise NumericalError(method, reason, needed, "Pass damp, iter_lim or maxiter, or conlim=0")
    return found


def product_of(data: Any, x: Any, pattern: StoragePattern, transposed: bool = False) -> Any:
    """Return A x, or A^T x."""
    return apply(sparse_product, data, x, pattern=pattern, transposed=transposed)


def vjp_normal(ct: Any, out: Any, data: Any, b: Any, **params: Any) -> Any:
    """Solve with N again, y = N^-1 z*: b* = y, and a* is -(A z y^T + A y z^T) at the places of A."""
    pattern = params["pattern"]
    y = apply(normal_solve, data, ct, **params)
    by_data = apply(sampled_product, product_of(data, out, pattern), y, pattern=pattern)
    by_data = by_data + apply(sampled_product, product_of(data, y, pattern), out, pattern=pattern)
    return match_dtype(-by_data, aval_of(data).dtype), match_dtype(y, aval_of(b).dtype)


def jvp_normal(tangents: Sequence[Any], out: Any, data: Any, _b: Any, **params: Any) -> Any:
    """Solve with N again: N z' = b' - (A'^T A + A^T A') z."""
    moved, right = tangents
    pattern = params["pattern"]
    if moved is not None:
        change = product_of(moved, product_of(data, out, pattern), pattern, True)
        change = change + product_of(data, product_of(moved, out, pattern), pattern, True)
        right = -change if right is None else right - change
    return apply(normal_solve, data, right, **params)


normal_solve: Primitive = opaque(
    "normal_solve", evaluate_normal, vjp=vjp_normal, jvp=jvp_normal, form=IterativeForm(True), batch=batch_iterative
)


def evaluate_least_squares(
    data: Any, b: Any, *, method: str, pattern: StoragePattern, damp: float, options: Any
) -> Any:
    """Evaluate `sparse_least_squares` by SciPy's method."""
    from scipy.sparse import linalg

    x, stop, count, *numbers = getattr(linalg, method)(pattern.matrix(data), b, damp=damp, **dict(options))
    dtype = np.result_type(data.dtype, b.dtype)
    x = np.asarray(x).astype(dtype if dtype.kind in "fc" else float, copy=False)
    found = (x, np.int64(stop), np.int64(count), *map(np.float64, numbers[:5]))
    return found if method == "lsmr" else (*found, *map(np.float64, numbers[5:6]), np.asarray(numbers[6], x.dtype))


def require_ended(x: Any, out: Sequence[Any], method: str) -> Any:
    """Return a tangent or cotangent, if a method has ended before its limit of iterations."""
    stop = out[1]
    return apply(converged, x, np.where((stop == 3) | (stop >= 6), out[2], 0), name=method)


def vjp_least_squares(ct: Sequence[Any], out: Sequence[Any], data: Any, b: Any, **params: Any) -> Any:
    """Solve with N, z = N^-1 x*: b* = A z, and a* is r z^T - A z x^T at the places of A, where r = b - A x."""
    if any(x is not None for x in ct[1:]):
        given = "a derivative of what tells how it went"
        needed = "one of the solution is needed"
        raise UsageError(params["method"], given, needed, "Compute norms of x and of b - A @ x")
    pattern, x = params["pattern"], out[0]
    z = apply(normal_solve, data, require_ended(ct[0], out, params["method"]), **params)
    w = product_of(data, z, pattern)
    by_data = apply(sampled_product, b - product_of(data, x, pattern), z, pattern=pattern)
    by_data = by_data - apply(sampled_product, w, x, pattern=pattern)
    return match_dtype(by_data, aval_of(data).dtype), match_dtype(w, aval_of(b).dtype)


def jvp_least_squares(tangents: Sequence[Any], out: Sequence[Any], data: Any, b: Any, **params: Any) -> Any:
    """Solve with N: N x' = A^T (b' - A' x) + A'^T r."""
    moved, right = tangents
    pattern, x = params["pattern"], out[0]
    change: Any = None
    if right is not None:
        change = product_of(data, right, pattern, True)
    if moved is not None:
        residual = b - product_of(data, x, pattern)
        own = product_of(moved, residual, pattern, True)
        own = own - product_of(data, product_of(moved, x, pattern), pattern, True)
        change = own if change is None else change + own
    found = apply(normal_solve, data, require_ended(change, out, params["method"]), **params)
    return (found, *(None,) * (len(out) - 1))


lsqr, lsmr = (
    opaque(
        f"sparse_{method}",
        evaluate_least_squares,
        vjp=vjp_least_squares,
        jvp=jvp_least_squares,
        outputs=count,
        form=IterativeForm(False),
        batch=batch_iterative,
    )
    for method, count in zip(("lsqr", "lsmr"), LEAST_SQUARES, strict=True)
)
