"""Matrix equations, banded and Toeplitz systems, and matrices that a few numbers make, with SciPy's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert.core.diagnostics.argument_checks import as_whole, shown
from wengert.core.values.dispatch import apply, implements
from wengert.errors import ShapeError, UsageError
from wengert.numpy._contractions import array
from wengert.primitives.linear_algebra import matrix_equations
from wengert.primitives.linear_algebra.matrices import adjoint
from wengert.scipy._linear_algebra import inv, matrices, right_side, solve, solve_columns, square_matrices


def require_fit(name: str, *shapes: tuple[int, ...], fits: bool) -> None:
    """Require matrices whose shapes fit."""
    if not fits:
        given = "shapes " + ", ".join(map(str, shapes))
        raise ShapeError(name, given, "square matrices that fit that on the right are needed", "Reshape them")


@implements(scipy.linalg.solve_sylvester)
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """Return the solution X of A X + X B = Q; see `scipy.linalg.solve_sylvester`."""
    x, y = square_matrices("solve_sylvester", a), square_matrices("solve_sylvester", b)
    z = array("solve_sylvester", q)
    fits = z.ndim > 1 and tuple(z.shape[-2:]) == (x.shape[-1], y.shape[-1])
    require_fit("solve_sylvester", x.shape, y.shape, z.shape, fits=fits)
    return apply(matrix_equations.solve_sylvester, x, y, z)


@implements(scipy.linalg.solve_continuous_lyapunov, scipy.linalg.solve_lyapunov)
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """Return the solution X of A X + X A^H = Q; see `scipy.linalg.solve_continuous_lyapunov`."""
    x, y = square_matrices("solve_continuous_lyapunov", a), square_matrices("solve_continuous_lyapunov", q)
    require_fit("solve_continuous_lyapunov", x.shape, y.shape, fits=x.shape[-1] == y.shape[-1])
    return apply(matrix_equations.solve_continuous_lyapunov, x, y)


@implements(scipy.linalg.solve_discrete_lyapunov)
def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Any:
    """Return the solution X of A X A^H - X + Q = 0; see `scipy.linalg.solve_discrete_lyapunov`."""
    x, y = square_matrices("solve_discrete_lyapunov", a), square_matrices("solve_discrete_lyapunov", q)
    require_fit("solve_discrete_lyapunov", x.shape, y.shape, fits=x.shape[-1] == y.shape[-1])
    if method is None:
        return matrix_equations.of_discrete_lyapunov(x, y)
    return apply(matrix_equations.solve_discrete_lyapunov, x, y, method=method)


def solve_riccati(name: str, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any, balanced: Any) -> Any:
    """Return the solution of a Riccati equation; with E and S it is that of one without, in A', B, Q' and R."""
    x, y, z, w = square_matrices(name, a), matrices(name, b), square_matrices(name, q), square_matrices(name, r)
    n, m = y.shape[-2:]
    fits = x.shape[-1] == n == z.shape[-1] and w.shape[-1] == m
    require_fit(name, x.shape, y.shape, z.shape, w.shape, fits=fits)
    if e is not None:  # X of A^H X E + E^H X A is that of A E^-1, and of E^-H Q E^-1
        inverse = inv(square_matrices(name, e))
        x, z = x @ inverse, adjoint(inverse) @ z @ inverse
        s = None if s is None else adjoint(inverse) @ s
    if s is not None:
        gain = solve(w, adjoint(array(name, s)))
        x, z = x - y @ gain, z - s @ gain
    if e is not None or s is not None:
        z = (z + adjoint(z)) / 2
    return apply(getattr(matrix_equations, name), x, y, z, w, balanced=bool(balanced))


@implements(scipy.linalg.solve_continuous_are)
def solve_continuous_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: Any = True) -> Any:
    """Return X of A^H X + X A - X B R^-1 B^H X + Q = 0; see `scipy.linalg.solve_continuous_are`."""
    return solve_riccati("solve_continuous_are", a, b, q, r, e, s, balanced)


@implements(scipy.linalg.solve_discrete_are)
def solve_discrete_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: Any = True) -> Any:
    """Return X of A^H X A - X - A^H X B (R + B^H X B)^-1 B^H X A + Q = 0; see `scipy.linalg.solve_discrete_are`."""
    return solve_riccati("solve_discrete_are", a, b, q, r, e, s, balanced)


# Banded and Toeplitz systems


@implements(scipy.linalg.solve_banded)
def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """Return the solution of a system with a banded matrix; see `scipy.linalg.solve_banded`."""
    if np.shape(l_and_u) != (2,):
        given, needed = f"{shown(l_and_u)} as the first argument", "a pair (diagonals below, above) is needed"
        raise UsageError("solve_banded", given, needed, "Pass it before the diagonals")
    below, above = (as_whole("solve_banded", "diagonals", count, 0) for count in l_and_u)
    bands = array("solve_banded", ab)
    if bands.ndim < 2 or bands.shape[-2] != below + above + 1:
        given = f"shape {bands.shape} for {below} diagonals below and {above} above"
        raise ShapeError("solve_banded", given, "a row for each diagonal is needed", "Reshape it")
    params = {"below": below, "above": above, "check_finite": bool(check_finite)}
    right = right_side("solve_banded", bands.shape[-1], b)
    return solve_columns(lambda y: apply(matrix_equations.solve_banded, bands, y, **params), right)


@implements(scipy.linalg.solve_toeplitz)
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """Return the solution of a system with a Toeplitz matrix; see `scipy.linalg.solve_toeplitz`."""
    pair = isinstance(c_or_cr, tuple)
    c = np.atleast_1d(array("solve_toeplitz", c_or_cr[0] if pair else c_or_cr))
    r = np.atleast_1d(array("solve_toeplitz", c_or_cr[1])) if pair else np.conjugate(c)
    right = right_side("solve_toeplitz", c.shape[-1], b)
    params = {"check_finite": bool(check_finite)}
    return solve_columns(lambda y: apply(matrix_equations.solve_toeplitz, c, r, y, **params), right)


# Special matrices


@implements(scipy.linalg.toeplitz)
def toeplitz(c: Any, r: Any = None) -> Any:
    """Return a Toeplitz matrix; see `scipy.linalg.toeplitz`."""
    column = np.atleast_1d(array("toeplitz", c))
    row = np.conjugate(column) if r is None else np.atleast_1d(array("toeplitz", r))
    stack = np.broadcast_shapes(column.shape[:-1], row.shape[:-1])
    column, row = (np.broadcast_to(x, (*stack, x.shape[-1])) for x in (column, row))
    return matrix_equations.toeplitz_matrix(column, row)


@implements(scipy.linalg.hankel)
def hankel(c: Any, r: Any = None) -> Any:
    """Return a Hankel matrix; see `scipy.linalg.hankel`."""
    column = np.ravel(array("hankel", c))
    row = np.zeros_like(column) if r is None else np.ravel(array("hankel", r))
    values = np.concatenate([column, row[1:]])
    return values[np.arange(column.shape[0])[:, None] + np.arange(row.shape[0])]


@implements(scipy.linalg.circulant)
def circulant(c: Any) -> Any:
    """Return a circulant matrix; see `scipy.linalg.circulant`."""
    x = np.atleast_1d(array("circulant", c))
    places = np.arange(x.shape[-1])
    return x[..., (places[:, None] - places) % x.shape[-1]]


@implements(scipy.linalg.block_diag)
def block_diag(*arrs: Any) -> Any:
    """Return a matrix with blocks on its diagonal; see `scipy.linalg.block_diag`."""
    blocks = [np.atleast_2d(array("block_diag", x)) for x in (arrs or ([],))]
    stack = np.broadcast_shapes(*[x.shape[:-2] for x in blocks])
    kind = np.result_type(*[x.dtype for x in blocks])
    widths = [x.shape[-1] for x in blocks]
    rows, left = [], 0
    for x, width in zip(blocks, widths, strict=True):
        wide = np.broadcast_to(x, (*stack, *x.shape[-2:])).astype(kind)
        sides = [np.zeros((*stack, x.shape[-2], n), kind) for n in (left, sum(widths) - left - width)]
        rows.append(np.concatenate([sides[0], wide, sides[1]], axis=-1))
        left += width
    return np.concatenate(rows, axis=-2)


@implements(scipy.linalg.khatri_rao)
def khatri_rao(a: Any, b: Any) -> Any:
    """Return the Kronecker products of columns; see `scipy.linalg.khatri_rao`."""
    x, y = array("khatri_rao", a), array("khatri_rao", b)
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        given = f"shapes {x.shape} and {y.shape}"
        raise ShapeError("khatri_rao", given, "matrices with as many columns are needed", "Reshape them")
    products = x[..., :, None, :] * y[..., None, :, :]
    return np.reshape(products, (*products.shape[:-3], -1, x.shape[-1]))


CONSTANT = ("dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal")
for _name in CONSTANT:  # of numbers that no derivative is taken by
    implements(getattr(scipy.linalg, _name))(getattr(scipy.linalg, _name))
