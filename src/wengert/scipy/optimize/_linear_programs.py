"""Linear programs by SciPy's solvers, differentiated at their vertices."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.values.dispatch import one_array
from wengert.core.values.tensor import Tensor
from wengert.errors import UsageError
from wengert.scipy.optimize._constraints import Constraint, dense, of_matrix, sides_of
from wengert.scipy.optimize._program import NonlinearProgram
from wengert.scipy.optimize._solving import is_traced_now


def linprog(
    c: Any,
    A_ub: Any = None,  # noqa: N803 - SciPy's name
    b_ub: Any = None,
    A_eq: Any = None,  # noqa: N803 - SciPy's name
    b_eq: Any = None,
    bounds: Any = (0, None),
    method: str = "highs",
    callback: Any = None,
    options: Any = None,
    x0: Any = None,
    integrality: Any = None,
) -> Any:
    """Minimise a linear function within linear constraints; see `scipy.optimize.linprog`.

    SciPy finds the vertex. `x`, `fun`, `slack`, `con` and the marginals have derivatives by all numbers that were
    given, with the constraints that are active as equations. Where a vertex is degenerate, so that more of them are
    active than there are unknowns, or where a whole edge is optimal, there are none.

    Args:
        c: of shape (n,).
        A_ub: a matrix of shape (m, n): A_ub @ x <= b_ub.
        b_ub: of shape (m,).
        A_eq: a matrix of shape (k, n): A_eq @ x == b_eq.
        b_eq: of shape (k,).
        bounds: as in SciPy; numbers may be Tensors.
        method: as in SciPy.
        callback: as in SciPy.
        options: as in SciPy.
        x0: as in SciPy.
        integrality: as in SciPy; not where the program is differentiated.

    Returns:
        SciPy's result. Of lanes of `vmap`, and in graphs, `x`, `fun`, `slack`, `con`, `multipliers`, `success`,
        `status` and `nit`.

    Raises:
        NumericalError: a derivative is asked for where the vertex is not unique.
        UsageError: it is to be differentiated with integers among the unknowns.

    >>> import wengert as wg
    >>> def cost(demand):
    ...     return linprog([1.0, 3.0], A_eq=[[1.0, 1.0]], b_eq=demand, bounds=[(0.0, 2.0), (0.0, None)]).fun
    >>> wg.grad(lambda demand: cost(demand.reshape(1)))(np.array(5.0)).round(6)
    np.float64(3.0)
    """
    name = "scipy.optimize.linprog"
    c = one_array(c)
    cost = c if isinstance(c, Tensor) else np.asarray(c, dtype=float)
    size = int(np.size(cost))
    many = [rows for rows in (rows_of(A_eq, b_eq, True), rows_of(A_ub, b_ub, False)) if rows is not None]
    program = NonlinearProgram(
        name, lambda x, c: np.sum(c * x), (cost,), size, sides_of(name, pairs(bounds, size), size), many
    )
    if program.asked.differentiated and integrality is not None and np.any(np.asarray(integrality)):
        needed = "real unknowns are needed to differentiate"
        raise UsageError(name, "integrality", needed, "Leave it out, or stop gradients with wengert.stop_gradient")
    settings = {"method": method, "callback": callback, "options": options, "x0": x0, "integrality": integrality}

    def solve(_start: Any, args: Any, sides: Any, limits: Any) -> Any:
        from scipy import optimize

        given: dict[str, Any] = {}
        for rows, own in zip(many, limits, strict=True):
            given |= {"A_eq": own["A"], "b_eq": own["ub"]} if rows.equal else {"A_ub": own["A"], "b_ub": own["ub"]}
        found = optimize.linprog(args[0], bounds=np.stack(sides, axis=1), **given, **settings)
        if found.x is None:
            found.x = np.full(size, np.nan)
        return found

    found = program.solution(solve, None, ("success", "status", "nit"))
    if not is_traced_now(found.x):
        return found.answer.result()
    return found.answer.result(**fields_of(program, found, cost))


def fields_of(program: NonlinearProgram, found: Any, cost: Any) -> dict[str, Any]:
    """Return what a result has of a solution with derivatives."""
    from scipy.optimize import OptimizeResult

    x, fields, start = found.x, {"slack": np.zeros(0), "con": np.zeros(0)}, 0
    for rows in program.many:
        rest = rows.args["ub"] - rows.args["A"] @ x
        fields["con" if rows.equal else "slack"] = rest
        marginals = found.multipliers[start : start + rows.size]
        start += rows.size
        fields["eqlin" if rows.equal else "ineqlin"] = OptimizeResult(residual=rest, marginals=marginals)
    slope = program.slope(x, found.multipliers)
    for side, sign in (("lower", -1), ("upper", 1)):
        limit = getattr(program.sides, side)
        marginals = np.where(found.marks[0] == sign, slope, 0.0)
        fields[side] = OptimizeResult(residual=sign * (limit - x), marginals=marginals)
    return {"x": x, "fun": np.sum(cost * x), "multipliers": found.multipliers, **fields}


def rows_of(matrix: Any, right: Any, equal: bool) -> Constraint | None:
    """Return rows of constraints; None if there are none."""
    if matrix is None:
        return None
    matrix, right = one_array(matrix), one_array(right)
    matrix = matrix if isinstance(matrix, Tensor) else dense(matrix)
    right = np.reshape(right, (-1,)) if isinstance(right, Tensor) else np.ravel(np.asarray(right, dtype=float))
    limits = {"A": matrix, "lb": right if equal else np.full(matrix.shape[0], -np.inf), "ub": right}
    return Constraint(None, of_matrix, limits, equal, matrix.shape[0])


def pairs(bounds: Any, size: int) -> Any:
    """Return SciPy's bounds, which may be one pair for all, as one for each number."""
    if bounds is None:
        return [(0.0, None)] * size
    found = bounds if hasattr(bounds, "shape") else list(bounds)
    if len(found) == 2 and not any(isinstance(x, list | tuple) or np.ndim(x) for x in found):
        return [tuple(found)] * size
    return list(found) * size if len(found) == 1 and size > 1 else found
