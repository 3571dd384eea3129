"""Sums over partitions, and the derivatives that are such sums: `total`, `value_and_grad`, `grad`, `hvp` and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict, Unpack

import numpy as np

from wengert.control.argument_aliasing import own_copies
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.argument_checks import require_callable, require_choice, require_flag
from wengert.distributed.blocks import Summand, as_plain_arguments
from wengert.distributed.dask_data import require_client
from wengert.distributed.faults import has_nan
from wengert.distributed.here import HereRunner
from wengert.distributed.on_dask import DaskRunner
from wengert.distributed.partitions import Partitions, partitions
from wengert.distributed.profiles import PassProfile, profile_of_pass
from wengert.distributed.sums import Leaves
from wengert.errors import DtypeError, NumericalError
from wengert.support.attributes import function_name, resemble
from wengert.support.hints import parameters_of
from wengert.traces.grad_modes import byte_count
from wengert.transforms import jacobian_products, reverse
from wengert.transforms.boundary import as_given, note_refusals
from wengert.transforms.forward import jvp
from wengert.transforms.jacobian import jacobian
from wengert.tree import ravel

REDUCTIONS = ("sum", "mean")
ABOUT_NAN = ("raise", "skip", "keep")


class TotalOptions(TypedDict, total=False):
    """Hold the options of `total`, which all functions of this file have."""

    client: Any
    reduce: str
    jit: bool
    nan: str
    memory: int | str | None


class Total:
    """Be the sum of a function over the partitions of data, as a function of the arguments before the rows.

    Attributes:
        rows: how many rows the last call summed up.
        skipped: how many it left out because they gave NaN, with `nan="skip"`.
        profile: what each worker, or thread here, spent on the last pass: reading, computing, waiting; prints as a
            table.
    """

    def __init__(
        self,
        name: str,
        fun: Callable[..., Any],
        data: Any,
        *,
        client: Any = None,
        reduce: str = "sum",
        jit: bool = True,
        nan: str = "raise",
        memory: int | str | None = None,
    ) -> None:
        require_callable(name, fun)
        require_flag(name, jit=jit)
        require_choice(name, "reduce", reduce, REDUCTIONS)
        require_choice(name, "nan", nan, ABOUT_NAN)
        self.data: Partitions = partitions(data)
        budget = None if memory is None else byte_count(memory, name, "memory", "a process may use for rows and blocks")
        self.summand = Summand(name, with_own_arguments(fun), bool(jit), nan == "skip", budget)
        self.is_mean, self.looks_for_nan = reduce == "mean", nan == "raise"
        self.run: HereRunner | DaskRunner
        if client is None:
            self.run = HereRunner(self.summand, self.data)
        else:
            require_client(name, client)
            self.run = DaskRunner(client, self.summand, self.data)
        self.sum_up = note_refusals(name, self.run) if jit else self.run

    def __repr__(self) -> str:
        """Return what is summed up over what."""
        return f"<{self.summand.name} of {function_name(self.summand.fun, '__name__')} over {self.data!r}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return the sum, or the mean over rows."""
        name = self.summand.name
        if named:
            given = f"{next(iter(named))}= in a call of {self!r}"
            needed = "arguments by position are needed, which come before the rows"
            raise DtypeError(name, given, needed, "Leave the name out, and pass all arguments in their order")
        args, example = as_plain_arguments(name, args)
        found, structure = self.sum_up(args)
        if self.looks_for_nan and has_nan(found) and not has_nan(number_leaves(args)):
            self.refuse_nan(args)
        if self.is_mean:
            rows = self.rows
            found = [x / rows for x in found]
        if example is not None:
            found = [as_given(x, example) for x in found]
        return unflatten(structure, found)

    @property
    def rows(self) -> int:
        """How many rows the last call summed up."""
        return sum(stint.rows for stint in self.run.spent[1])

    @property
    def skipped(self) -> int:
        """How many rows the last call left out."""
        return sum(stint.skipped for stint in self.run.spent[1])

    @property
    def profile(self) -> PassProfile:
        """What each worker spent on the last pass."""
        return profile_of_pass(*self.run.spent)

    def refuse_nan(self, args: Sequence[Any]) -> None:
        """Raise a NumericalError about the first rows that give NaN by themselves."""
        found = self.run.find_nan(args)
        if found is not None:
            given = f"NaN from row {found[1]} of {self.data.name(found[0])}"
            action = "Correct the row, pass nan='skip' to leave such rows out, or nan='keep' to get NaN"
            raise NumericalError(self.summand.name, given, "numbers are needed", action)


def with_own_arguments(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls another one with copies, for it may write to its arguments, which are the user's.

    Copies that nobody writes to are none in traced code.
    """

    def call(*args: Any) -> Any:
        return fun(*own_copies(args))

    return resemble(call, fun, updated=False)


def number_leaves(args: Sequence[Any]) -> Leaves:
    """Return the arrays and numbers among arguments."""
    return [x for x in flatten(tuple(args))[0] if isinstance(x, np.ndarray | np.generic | float | complex)]


def total_of(public: Callable[..., Total], fun: Callable[..., Any], data: Any, options: TotalOptions) -> Total:
    """Return what a public function of this file returns: the sum of another one over the partitions of data.

    Raises:
        TypeError: there is an option that it does not have.
    """
    name, known = public.__name__, TotalOptions.__optional_keys__
    unknown = next((option for option in options if option not in known), None)
    if unknown is not None:
        offered = ", ".join(sorted({*parameters_of(public)[2:], *known}))
        raise TypeError(f"{name}() got an unexpected keyword argument {unknown!r}; its options are {offered}")
    return Total(f"distributed.{name}", fun, data, **options)


def total(
    fun: Callable[..., Any],
    data: Any,
    client: Any = None,
    *,
    reduce: str = "sum",
    jit: bool = True,
    nan: str = "raise",
    memory: int | str | None = None,
) -> Total:
    """Return the sum of a function over the partitions of data, as a function of its arguments before the rows.

    Sums are taken in one order, so that results have the same bits for any number of threads and workers.

    Args:
        fun: called as `fun(*args, *rows)` with the arrays of a block of rows; returns arrays and numbers, in any
            containers, that are sums over these rows: blocks are parts of partitions, or whole ones. What it writes to
            arrays is seen by that call alone.
        data: what `partitions` takes.
        client: a `dask.distributed.Client`, whose workers do it; None for threads of this process, as many as
            `wengert.set_num_threads` says.
        reduce: "sum", or "mean" to divide the sum by the number of rows.
        jit: whether `fun` is traced and compiled, once for each kind of blocks, before it is called for these; again
            where what it captures has changed since.
        nan: "raise" names the first row that gives NaN; "skip" leaves such rows out, and counts them in the attribute
            `skipped` of what is returned; "keep" returns NaN.
        memory: how many bytes a process may use for rows that are kept from pass to pass (half of it, less below 270
            MB), and for each block, which has so few rows that an eighth is enough for its values; a number or "2GB".
            None to keep rows in a quarter of the machine's memory, or a worker's, and not to cut partitions.

    Returns:
        A function of arguments, in containers of arrays and numbers.

    Raises:
        UsageError: `fun` is no sum over rows, or an option is none of those above.
        NumericalError: a row gives NaN.

    >>> x = np.arange(6.0)
    >>> moments = total(lambda shift, x: (np.sum(x - shift), np.sum((x - shift) ** 2)), partitions(x, count=2))
    >>> moments(1.0)
    (np.float64(9.0), np.float64(31.0))
    """
    return Total("distributed.total", fun, data, client=client, reduce=reduce, jit=jit, nan=nan, memory=memory)


def value_and_grad(
    loss: Callable[..., Any],
    data: Any,
    *,
    argnums: int | Sequence[int] = 0,
    **options: Unpack[TotalOptions],
) -> Total:
    """Return a function that computes the value and the gradient of a loss summed over the rows of data.

    Args:
        loss: called as `loss(*args, *rows)` with a block of rows; returns the sum of their losses. Add what rows have
            no part in, such as regularisers, to what the function returns.
        data: what `partitions` takes.
        argnums: the positions of the arguments to differentiate.
        options: `client`, `reduce`, `jit`, `nan` and `memory`, as of `total`.

    Returns:
        A function of the arguments before the rows that returns (value, gradient), for any optimiser.

    Raises:
        ShapeError: `loss` returned no number.
        UsageError: `loss` is no sum over rows.
        NumericalError: a row gives NaN.

    >>> from scipy.optimize import minimize
    >>> x, y = np.linspace(0.0, 1.0, 100), 3.0 * np.linspace(0.0, 1.0, 100) + 1.0
    >>> def loss(p, x, y):
    ...     return np.sum((p[0] * x + p[1] - y) ** 2)
    >>> fit = minimize(value_and_grad(loss, (x, y), reduce="mean"), np.zeros(2), jac=True)
    >>> np.round(fit.x, 3)
    array([3., 1.])
    """
    fun = reverse.value_and_grad(loss, argnums)
    return total_of(value_and_grad, fun, data, options)


def grad(
    loss: Callable[..., Any],
    data: Any,
    *,
    argnums: int | Sequence[int] = 0,
    **options: Unpack[TotalOptions],
) -> Total:
    """Return a function that computes the gradient of a loss summed over the rows of data.

    Args:
        loss: as of `value_and_grad`.
        data: what `partitions` takes.
        argnums: the positions of the arguments to differentiate.
        options: `client`, `reduce`, `jit`, `nan` and `memory`, as of `total`.

    Returns:
        A function of the arguments before the rows that returns the gradient.

    Raises:
        ShapeError, UsageError, NumericalError: as of `value_and_grad`.

    >>> grad(lambda p, x: np.sum((x - p) ** 2), np.arange(4.0), reduce="mean")(0.0)
    -3.0
    """
    fun = reverse.grad(loss, argnums)
    return total_of(grad, fun, data, options)


def hvp(
    loss: Callable[..., Any],
    data: Any,
    **options: Unpack[TotalOptions],
) -> Total:
    """Return a function that multiplies the Hessian of a loss summed over the rows of data with a vector.

    Args:
        loss: called as `loss(parameters, *rows)`; otherwise as of `value_and_grad`.
        data: what `partitions` takes.
        options: `client`, `reduce`, `jit`, `nan` and `memory`, as of `total`.

    Returns:
        A function of parameters and a vector in the same containers that returns the product, in these, too.

    Raises:
        UsageError, NumericalError: as of `value_and_grad`.

    >>> product = hvp(lambda p, x: np.sum((x @ p) ** 2), np.eye(2))
    >>> product(np.array([5.0, 6.0]), np.array([1.0, 2.0]))
    array([2., 4.])
    """

    def product(parameters: Any, vector: Any, *rows: Any) -> Any:
        return jacobian_products.hvp(lambda p: loss(p, *own_copies(rows)), (parameters,), (vector,))[0]

    require_callable("distributed.hvp", loss)
    return total_of(hvp, resemble(product, loss, updated=False), data, options)


def gauss_newton_product(
    residuals: Callable[..., Any],
    data: Any,
    **options: Unpack[TotalOptions],
) -> Total:
    """Return a function that multiplies J^T J with a vector, J the Jacobian of the residuals of all rows.

    Args:
        residuals: called as `residuals(parameters, *rows)`; returns an array, or containers of arrays, whose first
            axis is that of the rows.
        data: what `partitions` takes.
        options: `client`, `reduce`, `jit`, `nan` and `memory`, as of `total`.

    Returns:
        A function of parameters and a vector in the same containers that returns the product, in these, too.

    Raises:
        UsageError, NumericalError: as of `value_and_grad`.

    >>> product = gauss_newton_product(lambda p, x: x @ p, np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> product(np.zeros(2), np.array([1.0, 0.0]))
    array([10., 14.])
    """

    def product(parameters: Any, vector: Any, *rows: Any) -> Any:
        _, moved = jvp(lambda p: residuals(p, *own_copies(rows)), (parameters,), (vector,))
        return reverse.vjp(lambda p: residuals(p, *own_copies(rows)), parameters)[1](moved)[0]

    require_callable("distributed.gauss_newton_product", residuals)
    return total_of(gauss_newton_product, resemble(product, residuals, updated=False), data, options)


def normal_equations(
    residuals: Callable[..., Any],
    data: Any,
    **options: Unpack[TotalOptions],
) -> Total:
    """Return a function that computes J^T J and J^T r of the residuals r of all rows, J their Jacobian.

    A step of Gauss and Newton is `-np.linalg.solve(*found)`. For some hundred parameters at most; for more multiply by
    `gauss_newton_product`.

    Args:
        residuals: called as `residuals(parameters, *rows)`; returns an array, or containers of arrays, whose first
            axis is that of the rows.
        data: what `partitions` takes.
        options: `client`, `reduce`, `jit`, `nan` and `memory`, as of `total`.

    Returns:
        A function of parameters, an array or containers with n numbers, that returns the matrix J^T J of shape (n, n)
        and the vector J^T r of shape (n,), in the order of `wengert.tree.ravel`.

    Raises:
        UsageError, NumericalError: as of `value_and_grad`.

    >>> x = np.array([0.0, 1.0, 2.0])
    >>> equations = normal_equations(lambda p, x: p[0] + p[1] * x - 5.0, x)
    >>> matrix, vector = equations(np.zeros(2))
    >>> matrix, vector
    (array([[3., 3.],
           [3., 5.]]), array([-15., -15.]))
    """

    def equations(parameters: Any, *rows: Any) -> Any:
        start, back = ravel(parameters)

        def flat(vector: Any) -> Any:
            found = flatten(residuals(back(vector), *own_copies(rows)))[0]
            return np.concatenate([np.reshape(x, -1) for x in found])

        r, matrix = flat(start), jacobian(flat)(start)
        return matrix.T @ matrix, matrix.T @ r

    require_callable("distributed.normal_equations", residuals)
    return total_of(normal_equations, resemble(equations, residuals, updated=False), data, options)
