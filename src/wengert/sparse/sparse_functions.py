"""The functions that make sparse derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.argument_checks import require_callable, require_choice, require_flag
from wengert.errors import ShapeError
from wengert.sparse.derivatives import SparseDerivative
from wengert.sparse.plans.plan import Plan
from wengert.sparse.plans.plan_choice import METHODS, Request
from wengert.transforms.boundary import require_positions
from wengert.transforms.transformed_function import DerivativeOptions

Function = Callable[..., Any]
Format = Literal["csr", "csc", "flat"]
FORMATS = ("csr", "csc", "flat")


def make_sparse(fun: Function, request: Request) -> SparseDerivative:
    """Return the function that was asked for; raise if the options cannot be used."""
    name, options = request.options.name, request.options
    require_callable(name, fun)
    flags = {"has_aux": options.has_aux, "reuse": request.reuse, "lower": request.lower, "check": request.check}
    require_flag(name, **flags)
    require_positions(name, options.argnums)
    converted = "Leave it out for 'csr', which SciPy converts to others; 'flat' is one matrix of all arrays"
    require_choice(name, "format", request.format, FORMATS, action=converted)
    if not isinstance(request.plan, Plan):
        require_choice(name, "plan", request.plan, METHODS, beside="a plan", action="Leave it out for 'auto'")
    return SparseDerivative(fun, request)


def jacobian(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    *,
    pattern: Any = None,
    plan: str | Plan = "auto",
    format: Format = "csr",
    reuse: bool = False,
    has_aux: bool = False,
    check: bool = False,
) -> SparseDerivative:
    """Return a function that computes the Jacobian as sparse matrices, of the elements alone that may not be zero.

    Which these are is found in the program, for all inputs of the same shapes. Where the program is made of gathers,
    sums, products and functions of each element, each element is computed by itself (a plan by maps). Else columns (or
    rows, or both) get colours, and those of one colour are computed together. Where arguments are gathered first, as by
    elements of a mesh, it may be faster to do this by what is gathered (a plan by elements).

    Args:
        fun: a function of real arrays, in any containers, returning real arrays in any containers. It is traced, as
            under `jit`: what it computes may depend on values, which elements it uses may not. What it captures is read
            anew at each call, and planned anew if it has changed.
        argnums: the positions of the arguments to differentiate. Other arguments may be integers, words or anything
            that compares, which are part of the program.
        pattern: which elements may not be zero, if you know better: a matrix, dense or of `scipy.sparse`, with a row
            for each element of the result and a column for each element of the arguments, in the order of
            `wengert.tree.ravel`.
        plan: "auto"; "maps" for elements one by one; "elements" for the derivative by what is gathered from arguments;
            "colors" for sums of columns or rows; "dense" for one column or row after the other; or a plan from
            `load_plan`.
        format: of the matrices, "csr" or "csc"; "flat" gives one matrix in csr for all results and arguments.
        reuse: whether later calls write into the memory of the matrices that the first one of their thread returns.
        has_aux: whether `fun` returns a pair (output, auxiliary result).
        check: whether the pattern is compared, when the plan is made, with products of the Jacobian with two random
            vectors.

    Returns:
        A function of the same arguments. For each array of the output it gives, in the output's containers, the
        arguments' containers of `scipy.sparse` arrays of shape (output.size, argument.size); with `has_aux` (that,
        aux). A matrix of `scipy.sparse` counts as the array of its stored elements, `data`. `prepare(*examples)` makes
        the plan before the first call, `plan(*args)` shows it. All matrices share their index arrays, which are
        read-only: `copy()` one before `eliminate_zeros()`.

    Raises:
        UsageError: an option is unknown, or a plan is of another function.
        ShapeError: the pattern has another shape than the Jacobian, or lacks an element.
        DtypeError: an argument or a result is not real.
        GraphError: the function cannot be traced.

    >>> import wengert as wg
    >>> differences = lambda x: x[1:] * x[:-1]
    >>> derivative = wg.sparse.jacobian(differences)(np.array([1.0, 2.0, 3.0, 4.0]))
    >>> type(derivative).__name__, derivative.nnz
    ('csr_array', 6)
    >>> derivative.toarray()
    array([[2., 1., 0., 0.],
           [0., 3., 2., 0.],
           [0., 0., 4., 3.]])
    """
    options = DerivativeOptions("sparse.jacobian", argnums, has_aux)
    return make_sparse(fun, Request(options, False, False, pattern, plan, format, reuse, check=check))


def value_and_jacobian(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    *,
    pattern: Any = None,
    plan: str | Plan = "auto",
    format: Format = "csr",
    reuse: bool = False,
    has_aux: bool = False,
    check: bool = False,
) -> SparseDerivative:
    """Return a function that computes the value and the sparse Jacobian together; see `wengert.sparse.jacobian`.

    Args:
        fun: a function of real arrays.
        argnums: the positions of the arguments to differentiate.
        pattern: which elements may not be zero, if you know better.
        plan: "auto", "maps", "elements", "colors", "dense" or a plan.
        format: of the matrices, "csr", "csc" or "flat".
        reuse: whether calls write into the same memory.
        has_aux: whether `fun` returns a pair (output, auxiliary result).
        check: whether the pattern is compared with random products.

    Returns:
        A function of the same arguments that gives (value, Jacobian), or (value, Jacobian, aux).

    Raises:
        UsageError, ShapeError, DtypeError, GraphError: as `jacobian`.

    >>> import wengert as wg
    >>> value, derivative = wg.sparse.value_and_jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    >>> value, derivative.toarray()
    (array([1., 4.]), array([[2., 0.],
           [0., 4.]]))
    """
    options = DerivativeOptions("sparse.value_and_jacobian", argnums, has_aux)
    return make_sparse(fun, Request(options, False, True, pattern, plan, format, reuse, check=check))


def hessian(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    *,
    pattern: Any = None,
    plan: str | Plan = "auto",
    format: Format = "csr",
    reuse: bool = False,
    has_aux: bool = False,
    lower: bool = False,
    check: bool = False,
) -> SparseDerivative:
    """Return a function that computes the Hessian of a number as sparse matrices.

    Its colours make use of symmetry: an element may be read at the mirrored place.

    Args:
        fun: a function of real arrays, in any containers, that returns one real number.
        argnums: the positions of the arguments to differentiate.
        pattern: which elements may not be zero, a symmetric matrix, if you know better.
        plan: "auto", "maps", "elements", "colors", "dense" or a plan; see `wengert.sparse.jacobian`.
        format: of the matrices, "csr", "csc" or "flat".
        reuse: whether calls write into the same memory.
        has_aux: whether `fun` returns a pair (output, auxiliary result).
        lower: whether the elements above the diagonal are left out, as solvers of optimisation problems want them;
            of several arrays, those above the diagonal of the matrix of all, as with format="flat".
        check: whether the pattern is compared with random products.

    Returns:
        A function of the same arguments. It gives the arguments' containers of arguments' containers of `scipy.sparse`
        arrays of shape (first.size, second.size); with `has_aux` (that, aux). A matrix of `scipy.sparse` counts as the
        array of its stored elements, `data`.

    Raises:
        ShapeError: `fun` returned something other than one number, or the pattern does not fit.
        UsageError, DtypeError, GraphError: as `jacobian`.

    >>> import wengert as wg
    >>> def rosenbrock(x):
    ...     return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    >>> wg.sparse.hessian(rosenbrock)(np.array([1.0, 2.0, 3.0])).toarray()
    array([[ 402., -400.,    0.],
           [-400., 3802., -800.],
           [   0., -800.,  200.]])
    """
    options = DerivativeOptions("sparse.hessian", argnums, has_aux)
    return make_sparse(fun, Request(options, True, False, pattern, plan, format, reuse, lower, check))


def value_and_hessian(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    *,
    pattern: Any = None,
    plan: str | Plan = "auto",
    format: Format = "csr",
    reuse: bool = False,
    has_aux: bool = False,
    lower: bool = False,
    check: bool = False,
) -> SparseDerivative:
    """Return a function that computes the value and the sparse Hessian together; see `wengert.sparse.hessian`.

    Args:
        fun: a function of real arrays that returns one real number.
        argnums: the positions of the arguments to differentiate.
        pattern: which elements may not be zero, a symmetric matrix, if you know better.
        plan: "auto", "maps", "elements", "colors", "dense" or a plan.
        format: of the matrices, "csr", "csc" or "flat".
        reuse: whether calls write into the same memory.
        has_aux: whether `fun` returns a pair (output, auxiliary result).
        lower: whether the elements above the diagonal are left out.
        check: whether the pattern is compared with random products.

    Returns:
        A function of the same arguments that gives (value, Hessian), or (value, Hessian, aux).

    Raises:
        UsageError, ShapeError, DtypeError, GraphError: as `hessian`.

    >>> import wengert as wg
    >>> value, second = wg.sparse.value_and_hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    >>> value, second.toarray()
    (np.float64(9.0), array([[ 6.,  0.],
           [ 0., 12.]]))
    """
    options = DerivativeOptions("sparse.value_and_hessian", argnums, has_aux)
    return make_sparse(fun, Request(options, True, True, pattern, plan, format, reuse, lower, check))


def lagrangian_hessian(
    objective: Function,
    constraints: Function,
    *,
    pattern: Any = None,
    plan: str | Plan = "auto",
    format: Format = "csr",
    reuse: bool = False,
    lower: bool = False,
    check: bool = False,
) -> SparseDerivative:
    """Return the function h(x, multipliers, weight) that computes the Hessian of a Lagrangian as a sparse matrix.

    The Lagrangian is `weight * objective(x) + sum(multipliers * constraints(x))`; one pattern holds for all weights
    and multipliers.

    Args:
        objective: a function of x that returns one real number.
        constraints: a function of x that returns real arrays, in any containers.
        pattern: which elements may not be zero, a symmetric matrix, if you know better.
        plan: "auto", "maps", "elements", "colors", "dense" or a plan; see `wengert.sparse.jacobian`.
        format: of the matrix, "csr", "csc" or "flat".
        reuse: whether calls write into the same memory.
        lower: whether the elements above the diagonal are left out.
        check: whether the pattern is compared with random products.

    Returns:
        A function of x, of multipliers (like what `constraints` returns) and of the weight of the objective, 1.0 if it
        is left out.

    Raises:
        UsageError, ShapeError, DtypeError, GraphError: as `hessian`.

    >>> import wengert as wg
    >>> h = wg.sparse.lagrangian_hessian(lambda x: np.sum(x**2), lambda x: x[1:] * x[:-1])
    >>> h(np.ones(3), np.array([5.0, 7.0])).toarray()
    array([[2., 5., 0.],
           [5., 2., 7.],
           [0., 7., 2.]])
    """
    name = "sparse.lagrangian_hessian"
    require_callable(name, objective)
    require_callable(name, constraints)

    def lagrangian(x: Any, multipliers: Any, weight: Any = 1.0) -> Any:
        values, structure = flatten(constraints(x))
        factors, other = flatten(multipliers)
        shapes = [np.shape(value) for value in values], [np.shape(factor) for factor in factors]
        if other != structure or shapes[0] != shapes[1]:
            given = f"multipliers of shapes {', '.join(map(str, shapes[1]))}"
            needed = f"{', '.join(map(str, shapes[0]))} is needed, as the constraints return"
            raise ShapeError(name, given, needed, "Build them like what constraints returns")
        total = weight * objective(x)
        for factor, value in zip(factors, values, strict=True):
            total = total + np.sum(factor * value)
        return total

    options = DerivativeOptions(name, 0)
    return make_sparse(lagrangian, Request(options, True, False, pattern, plan, format, reuse, lower, check))
