"""Linear systems that are known by their products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.argument_checks import require_callable, require_flag
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.object_arrays import leaves_of_result
from wengert.errors import ShapeError
from wengert.implicit.attaching import implicit_solution
from wengert.implicit.matrix_free import OwnSolver, SolverOperands
from wengert.implicit.solver_call import captured_values, solve_without_derivatives
from wengert.implicit.vectors import vector_of
from wengert.support.hints import hint_parameters

Function = Callable[..., Any]


@hint_parameters("linear_solve")
def linear_solve(
    matvec: Function,
    b: Any,
    solve: Function,
    transpose_solve: Function | None = None,
    symmetric: bool = False,
) -> Any:
    """Return the solution x of matvec(x) = b that a solver finds, with derivatives by b and by what matvec captures.

    Tangents are solutions of the same system, cotangents of the transposed one, by the same solvers, to any order.

    Args:
        matvec: a linear function of what has the containers, shapes and dtypes of b, to the same; written in NumPy.
        b: arrays of floats, in any containers.
        solve: `solve(matvec, b)` returns x, to about ten digits; called with ndarrays.
        transpose_solve: the same for the transpose (of complex numbers the adjoint), which needs another one if `solve`
            does not use the matvec that it is given: if it has factors, say. By default `solve`.
        symmetric: whether matvec is its own transpose (of complex numbers its own adjoint), so that one solver will do,
            and products with the transpose are those with itself.

    Returns:
        The solution, in the containers of b.

    Raises:
        NumericalError: when differentiated: x, or what a solver found on the way, does not solve its system.
        ShapeError: matvec changes containers or shapes.

    >>> import numpy as np
    >>> import wengert as wg
    >>> from scipy.sparse.linalg import LinearOperator, cg
    >>> def solve(matvec, b):
    ...     return cg(LinearOperator((b.size, b.size), matvec, dtype=b.dtype), b, rtol=1e-12)[0]
    >>> def work(k, b):
    ...     return b @ linear_solve(lambda x: k * x + x[::-1], b, solve, symmetric=True)
    >>> round(wg.grad(work)(3.0, np.array([1.0, 2.0])), 9)
    -0.40625
    """
    require_callable("linear_solve", matvec)
    require_callable("linear_solve", solve, "solve")
    require_flag("linear_solve", symmetric=symmetric)
    if transpose_solve is not None:
        require_callable("linear_solve", transpose_solve, "transpose_solve")
    vector_of("linear_solve", "a right-hand side", b)

    def residual(x: Any, b: Any) -> Any:
        before, structure = flatten(b)
        after, other = leaves_of_result(matvec(x))
        if other != structure or [y.shape for y in after] != [y.shape for y in before]:
            given = f"a matvec from shapes {[y.shape for y in before]} to {[y.shape for y in after]}"
            raise ShapeError("linear_solve", given, "the same containers and shapes are needed", "Keep them")
        return unflatten(structure, [y - z for y, z in zip(after, before, strict=True)])

    found = solve_without_derivatives(lambda b: solve(matvec, b), (b,), {}, lambda b: b)
    b = as_precise(b, found)
    vector, _ = vector_of("linear_solve", "a right-hand side", b)
    transposed = solve if symmetric or transpose_solve is None else transpose_solve
    captured = SolverOperands(captured_values(lambda: (solve, transposed)))
    own = OwnSolver(solve, transposed, vector, symmetric, captured)
    return implicit_solution(residual, found, (b,), name="linear_solve", linear_solver=own, symmetric=symmetric)


def as_precise(b: Any, found: Any) -> Any:
    """Return a right-hand side of the dtypes of the solution, which may be wider: those of the matrix and of b."""
    leaves, structure = flatten(b)
    others, other = leaves_of_result(found)
    if other != structure:
        return b
    return unflatten(structure, [as_dtype(x, aval_of(y).dtype) for x, y in zip(leaves, others, strict=True)])


def as_dtype(value: Any, dtype: Any) -> Any:
    """Return an array of a dtype, if its own differs."""
    return value if aval_of(value).dtype == dtype else as_tensor(value).astype(dtype)
