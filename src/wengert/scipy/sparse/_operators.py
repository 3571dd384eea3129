"""Matrices that are known by their products, and what SciPy's methods find of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_items, as_whole, require_callable
from wengert.core.values.aval import aval_of, shape_of
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.implicit import linear_solve
from wengert.implicit.attaching import implicit_solution
from wengert.implicit.linear import as_dtype
from wengert.implicit.solver_call import solve_without_derivatives
from wengert.primitives.sparse.eigenpairs import require_apart, start_of
from wengert.primitives.sparse.iterative_solves import LEAST_SQUARES, SYMMETRIC
from wengert.primitives.sparse.sparse_tensor import SparseTensor
from wengert.scipy.sparse._operands import right_side
from wengert.transforms.custom_rule import custom_rule
from wengert.transforms.reverse import pull_back, stop_gradient
from wengert.transforms.tracing import call_converting


class LinearOperator:
    """Be a matrix that is known by its products with vectors, written with NumPy's functions.

    Iterative solutions of it are differentiated by what `matvec` captures, too; see `wengert.implicit.linear_solve`.
    Derivatives need no other product: those with the transpose are of reverse mode. The arguments are those of
    `scipy.sparse.linalg.LinearOperator`.

    Args:
        shape: of the matrix, (m, n); for `cg`, `gmres`, `bicgstab` and `minres` a square one.
        matvec: a linear function of a vector of shape (n,), to the shape (m,).
        rmatvec: one of a vector of shape (m,) to the shape (n,), the product with the transpose, by which `lsqr` and
            `lsmr` find solutions; by default that of reverse mode.
        matmat: not used: products are with vectors.
        dtype: of vectors; by default that of the right-hand side, and of `eigsh` float64.
        rmatmat: not used.

    Raises:
        ShapeError: the shape is not that of a matrix.
        DtypeError: `matvec` or `rmatvec` cannot be called.

    >>> import wengert as wg
    >>> from wengert.scipy.sparse.linalg import cg
    >>> def solved(k):
    ...     return cg(LinearOperator((2, 2), lambda x: k * x), np.ones(2), rtol=1e-12)[0].sum()
    >>> round(float(wg.grad(solved)(2.0)), 6)
    -0.5
    """

    def __init__(
        self,
        shape: tuple[int, int],
        matvec: Callable[[Any], Any],
        rmatvec: Callable[[Any], Any] | None = None,
        matmat: Any = None,
        dtype: Any = None,
        rmatmat: Any = None,
    ) -> None:
        require_callable("LinearOperator", matvec, "matvec")
        if rmatvec is not None:
            require_callable("LinearOperator", rmatvec, "rmatvec")
        lengths = tuple([as_whole("LinearOperator", "shape", n, 0) for n in as_items("LinearOperator", "shape", shape)])
        if len(lengths) != 2:
            raise ShapeError("LinearOperator", f"shape {lengths}", "two lengths are needed", "Pass (rows, columns)")
        self.shape, self.matvec, self.rmatvec, self.dtype = lengths, matvec, rmatvec, dtype
        self.__wrapped__ = matvec, rmatvec  # where what they capture is looked for

    def __matmul__(self, x: Any) -> Any:
        return self.matvec(x)

    @property
    def T(self) -> LinearOperator:  # noqa: N802 - NumPy's name
        """The transpose, by `rmatvec` or reverse mode."""
        return LinearOperator(self.shape[::-1], self.rmatvec or self.pull, self.matvec, dtype=self.dtype)

    def pull(self, y: Any) -> Any:
        """Return the product of a vector with the transpose, by reverse mode from any point."""
        start = np.zeros(self.shape[1], self.dtype or aval_of(y).dtype)
        product = product_of("LinearOperator", self.matvec, self.shape, is_real=False)
        return pull_back("LinearOperator", product, (start,))[1](y)[0]


def as_scipy(matrix: Any) -> Any:
    """Return a matrix, array or operator of this library, of numbers, as an operator of SciPy's; others as they are."""
    from scipy.sparse import linalg

    if not isinstance(matrix, LinearOperator | SparseTensor | Tensor):
        return matrix
    turned = matrix.T
    return linalg.LinearOperator(
        matrix.shape,
        lambda x: np.array(matrix @ x),  # which methods write to
        lambda y: np.array(np.conj(turned @ np.conj(y))),
        dtype=matrix.dtype or float,
    )


def require_square(name: str, shape: tuple[int, ...]) -> None:
    """Raise a ShapeError unless a matrix that is known by its products is square."""
    if shape[0] != shape[1]:
        given = f"a LinearOperator of shape {shape}"
        raise ShapeError(name, given, "a square one is needed", "Use lsqr for others")


def solve_operator(name: str, a: LinearOperator, b: Any, x0: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return the same of a matrix that is known by its products."""
    from scipy.sparse import linalg

    require_square(name, a.shape)
    right = right_side(name, a.shape[0], b, 1)
    given = {key: value for key, value in options.items() if value is not None}
    shift, matvec = given.pop("shift", 0.0), a.matvec

    def product(x: Any) -> Any:
        """Return the product with what `minres` solves, which its residual and its derivatives are of, too."""
        return multiply(matvec, x) - shift * x if shift else multiply(matvec, x)

    inverse = given.pop("M", None)

    def solve(inverse: Any, transposed: bool, matvec: Callable[[Any], Any], b: Any) -> Any:
        operator = linalg.LinearOperator(a.shape, matvec=matvec, dtype=a.dtype or b.dtype)
        own = as_scipy(inverse.T if transposed and inverse is not None else inverse)
        return getattr(linalg, name)(operator, b, x0=None if transposed else x0, M=own, **given)[0]

    own, turned = (functools.partial(solve, inverse, way) for way in (False, name not in SYMMETRIC))
    x = linear_solve(product, right, own, turned, symmetric=name in SYMMETRIC)
    far = np.linalg.norm(right - product(x)) > np.maximum(
        options["rtol"] * np.linalg.norm(right), options.get("atol") or 0.0
    )
    return x, np.where(far, options.get("maxiter") or 10 * a.shape[0], 0)


# Least squares


def fit_operator(name: str, a: LinearOperator, b: Any, damp: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """Return what `lsqr` or `lsmr` gives of a matrix that is known by its products: x with N x = A^T b."""
    from scipy.sparse import linalg

    right = right_side(name, a.shape[0], b, 1)
    dtype = np.result_type(aval_of(right).dtype, a.dtype or np.float32)
    if dtype.kind != "f":
        raise real_error(name, dtype)
    given = {key: value for key, value in options.items() if value is not None}
    product, rmatvec, shape = product_of(name, a.matvec, a.shape), a.rmatvec, a.shape

    def back_from(y: Any) -> Any:
        """Return A^T y, by reverse mode from any point."""
        return pull_back(name, product, (np.zeros(shape[1], dtype),))[1](y)[0]

    def solve(b: Any, damp: Any) -> tuple[Any, ...]:
        pulled = pull_back(name, product, (np.zeros(shape[1], dtype),))[1]  # once for all products
        back = rmatvec or (lambda y: pulled(y)[0])
        operator = linalg.LinearOperator(shape, product, lambda y: np.asarray(back(y)), dtype=dtype)
        return tuple(getattr(linalg, name)(operator, b, damp=damp, **given))

    def equations(x: Any, b: Any, damp: Any) -> Any:
        return back_from(product(x) - b) + damp**2 * x

    return fit_by(name, solve, equations, (right, damp), np.zeros(shape[1], dtype))


def fit_damped(name: str, a: SparseTensor, b: Any, damp: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """Return what `lsqr` or `lsmr` gives of a sparse matrix, with derivatives by the damping, too."""
    from scipy.sparse import linalg

    pattern, right = a._pattern, right_side(name, a.shape[0], b, 1)

    def solve(data: Any, b: Any, damp: Any) -> tuple[Any, ...]:
        return tuple(getattr(linalg, name)(pattern.matrix(data), b, damp=damp, **options))

    def equations(x: Any, data: Any, b: Any, damp: Any) -> Any:
        matrix = SparseTensor(pattern, data)
        return matrix.T @ (matrix @ x - b) + damp**2 * x

    dtype = np.result_type(a.dtype, aval_of(right).dtype, np.float32)
    return fit_by(name, solve, equations, (as_tensor(a.data), right, damp), np.zeros(a.shape[1], dtype))


def fit_by(
    name: str,
    solve: Callable[..., tuple[Any, ...]],
    equations: Callable[..., Any],
    given: tuple[Any, ...],
    unknowns: np.ndarray[Any, Any],
) -> tuple[Any, ...]:
    """Return what `lsqr` or `lsmr` gives, with the derivatives of the equations by what both are given.

    Args:
        name: the method's.
        solve: SciPy's, of what is given.
        equations: of x, and what is given: N x - A^T b.
        given: the right-hand side and the damping last.
        unknowns: zeros that are like x.
    """

    def like(*_given: Any) -> tuple[Any, ...]:
        """Return zeros like the results: a vector, two whole numbers and others."""
        numbers = [np.zeros(())] * (LEAST_SQUARES[name == "lsmr"] - 3)
        variances = [unknowns] if name == "lsqr" else numbers[:1]
        return (unknowns, np.zeros((), np.int64), np.zeros((), np.int64), *numbers[1:], *variances)

    def solve_alike(*given: Any) -> tuple[Any, ...]:
        return tuple([np.asarray(x, wanted.dtype) for x, wanted in zip(solve(*given), like(), strict=True)])

    found, *whole = solve_without_derivatives(solve_alike, given, {}, like)
    given = tuple([as_dtype(x, unknowns.dtype) for x in given])
    x = implicit_solution(equations, found, given, name=name, linear_solver="cg", symmetric=True)
    return (as_tensor(x), *whole[:2], *tell_only(name, x, whole[2:]))


def real_error(name: str, dtype: Any) -> DtypeError:
    """Return the error about products in complex numbers."""
    needed = "real numbers are needed"
    return DtypeError(name, f"numbers of dtype {dtype}", needed, "Write it in real and imaginary parts")


def multiply(matvec: Callable[[Any], Any], x: Any) -> Any:
    """Return a user's product with a vector; solvers call it with ndarrays, as it is."""
    return call_converting(matvec, x) if type(x) is Tensor else matvec(x)


def product_of(
    name: str, matvec: Callable[[Any], Any], shape: tuple[int, ...], is_real: bool = True
) -> Callable[[Any], Any]:
    """Return the product with a matrix, whose shape is looked at, and whether it is real if it has to be."""

    def product(x: Any) -> Any:
        found = multiply(matvec, x)
        if shape_of(found) != shape[:1]:
            given = f"a matvec from shape {shape[1:]} to {shape_of(found)}"
            raise ShapeError(name, given, f"shape {shape[:1]} is needed", "Give LinearOperator the shape that it has")
        if is_real and aval_of(found).dtype.kind == "c":
            raise real_error(name, aval_of(found).dtype)
        return found

    return product


def tell_only(name: str, x: Any, numbers: Sequence[Any]) -> Sequence[Any]:
    """Return numbers about a solution, by which nobody may differentiate backwards; forward they stay as they are."""
    told = custom_rule(lambda _x, *numbers: numbers)

    def refuse(_saved: Any, _ct: Any) -> Any:
        given = "a derivative of what tells how it went"
        raise UsageError(name, given, "one of the solution is needed", "Compute norms of x and of b - A @ x")

    told.defvjp(lambda _x, *numbers: (numbers, None), refuse)
    told.defjvp(lambda primals, _tangents: (primals[1:], tuple([np.zeros(shape_of(y)) for y in primals[1:]])))
    found: Sequence[Any] = told(x, *numbers)
    return found


# Eigenvalues


def eigenpairs_of_operator(a: LinearOperator, v0: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return what `eigsh` gives of a matrix that is known by its products: w and v with A v = w v and |v| = 1, each.

    Both equations have one Hermitian Jacobian, [[0, -v^H], [-v, A - w]], which is regular where w is not repeated. Of
    complex ones w is taken for a complex unknown, beside which stands that v does not turn.
    """
    from scipy.sparse import linalg

    dtype = np.dtype(a.dtype or float)
    if dtype.kind not in "fc":
        raise real_error("eigsh", dtype)
    is_real, shape = dtype.kind == "f", a.shape
    product = product_of("eigsh", a.matvec, shape, is_real)
    given = {key: value for key, value in options.items() if value is not None}

    def solve(v0: Any) -> tuple[Any, Any]:
        start, others = start_of(v0, shape[0], dtype)
        operator = linalg.LinearOperator(shape, matvec=product, dtype=dtype)
        values, vectors = linalg.eigsh(operator, v0=start, **given, **others)
        order = np.argsort(values, kind="stable")
        return values[order].astype(dtype), vectors[:, order]

    def equations(pair: Any, fixed: Any) -> Any:
        """Return what one pair misses, by (A + A^H) / 2."""
        w, v = pair
        ahead, back = pull_back("eigsh", product, (v,))
        missed = (ahead + np.conj(back(np.conj(v))[0])) / 2 - w * v
        longer = (1 - np.sum(np.abs(v) ** 2)) / 2
        return [longer if is_real else longer - 1j * np.sum(np.conj(fixed) * v).imag, missed]

    def like(_v0: Any) -> tuple[Any, Any]:
        return np.zeros(given["k"], dtype), np.zeros((shape[0], given["k"]), dtype)

    w, v = solve_without_derivatives(solve, (v0,), {}, like)
    system: dict[str, Any] = {"linear_solver": "minres", "symmetric": True}
    pairs = [
        implicit_solution(equations, (w[i], own), (stop_gradient(own),), name="eigsh", **system)
        for i, own in enumerate(v.T)
    ]
    found: tuple[Any, Any] = settled(*[np.stack(parts) for parts in zip(*pairs, strict=True)])
    return as_tensor(found[0]).real, as_tensor(found[1]).T


def settling(name: str) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Return the function that gives eigenvalues and vectors again, which have no derivatives where one is repeated."""
    settled = custom_rule(lambda w, v: (w, v))

    def check_apart(w: Any) -> Any:
        """Return zero; of complex eigenvalues those that are one get beside each other."""
        order = np.argsort(w.real + SKEW * w.imag)
        return np.sum(require_apart(w[order], name))

    settled.defvjp(lambda w, v: ((w, v), w), lambda w, cts: (cts[0] + check_apart(w), cts[1]))
    settled.defjvp(lambda primals, tangents: (tuple(primals), (tangents[0] + check_apart(primals[0]), tangents[1])))
    return settled


SKEW = 0.7310585786
"""A direction in the plane along which eigenvalues that differ do, but by chance."""
settled = settling("eigsh")
