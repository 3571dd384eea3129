"""Jacobians and Hessians: one batched sweep or one batched tangent, or batches of them, never a loop over elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, ParamSpec, overload

import numpy as np

from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.values.aval import Aval, aval_of, count_elements, is_number
from wengert.core.values.tensor import Tensor, is_staged
from wengert.errors import GraphError, UsageError
from wengert.support.hints import hint_parameters
from wengert.support.refusals import forgive, refusal_count
from wengert.transforms.boundary import (
    Narrowed,
    as_given,
    declare_holomorphic,
    require_complex,
    resolve_positions,
    result_example,
    selected_arguments,
)
from wengert.transforms.forward import push_forward
from wengert.transforms.reverse import gradient_of, pull_back, pullback_of, record_call
from wengert.transforms.transformed_function import ArrayDerivative, DerivativeOptions, Derived, make_derivative
from wengert.transforms.vmap import map_lanes

Function = Callable[..., Any]
P = ParamSpec("P")
UNDECLARED = "Leave holomorphic out, or return complex numbers"
DECLARED = (
    "Pass holomorphic=True for a complex differentiable function, or use jacrev if the outputs are real",
    "Convert it with .astype(complex)",
)
INSTEAD = {"jacrev": "Use jacfwd", "hessian": "Use jacfwd twice"}


def basis(leaves: Sequence[Any]) -> list[Any]:
    """Return, for values of given shapes, the unit vectors of their joint space: one lane for each element."""
    avals = [aval_of(leaf) for leaf in leaves]
    sizes = [math.prod(aval.shape) for aval in avals]
    total, start, found = sum(sizes), 0, []
    for aval, size in zip(avals, sizes, strict=True):
        block = np.zeros((total, size), aval.dtype)
        block[start : start + size] = np.eye(size, dtype=aval.dtype)
        found.append(block.reshape(total, *aval.shape))
        start += size
    return found


def is_in_batches(leaves: Sequence[Any], batch_size: int | None) -> bool:
    """Tell whether unit vectors of the joint space of some values are more than one batch."""
    return batch_size is not None and count_elements(leaves) > batch_size


def map_basis(fun: Function, out_axis: int, leaves: Sequence[Any], batch_size: int | None) -> Any:
    """Return what a linear function gives for each unit vector of the joint space of some values.

    In batches there are never more unit vectors than a batch has lanes: each lane makes its own of its number.

    Args:
        fun: a function of as many arrays as there are values, of their shapes and dtypes.
        out_axis: the axis of the results that counts unit vectors.
        leaves: the values.
        batch_size: how many unit vectors there are at once; None for all.
    """
    if not leaves:  # there is one result, of no unit vectors
        return fun()
    if not is_in_batches(leaves, batch_size):
        return map_lanes(fun, 0, out_axis, None, *basis(leaves))
    avals = [aval_of(leaf) for leaf in leaves]
    sizes = [math.prod(aval.shape) for aval in avals]

    def of_number(number: Any, _leaves: Any) -> Any:
        units, start = [], 0
        for aval, size in zip(avals, sizes, strict=True):
            unit: Any = (np.arange(start, start + size) == number).astype(aval.dtype)
            units.append(unit.reshape(aval.shape))
            start += size
        return fun(*units)

    # where the values are traced, batches are rounds of a loop
    return map_lanes(of_number, (0, None), out_axis, batch_size, np.arange(sum(sizes)), leaves)


def select_arguments(
    fun: Function, options: DerivativeOptions, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Narrowed, tuple[Any, ...]]:
    """Return `fun` as a function of the arguments to differentiate alone, and these."""
    chosen = resolve_positions(options.name, options.argnums, len(args))
    return Narrowed(fun, args, chosen, kwargs), tuple(args[position] for position in chosen)


def split_lanes(array: Any, leaves: Sequence[Any], axis: int, example: Any) -> list[Any]:
    """Split the axis that counts joint elements into one array for each leaf, with the leaf's axes in its place.

    They come in the form of `example`, as results of the transformation do.
    """
    parts, start = [], 0
    for leaf in leaves:
        shape = aval_of(leaf).shape
        size = math.prod(shape)
        index = (slice(None),) * axis + (slice(start, start + size),)
        part = array[index]
        part = part.reshape((*part.shape[:axis], *shape, *part.shape[axis + 1 :]))
        parts.append(as_given(part, example))
        start += size
    return parts


@overload
def jacrev(
    fun: Callable[P, np.ndarray[Any, Any] | Tensor],
    argnums: Literal[0] = 0,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
    *,
    batch_size: int | None = None,
) -> ArrayDerivative[P]: ...
@overload
def jacrev(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    holomorphic: bool = False,
    has_aux: bool = False,
    *,
    batch_size: int | None = None,
) -> Derived[P, Any]: ...
@hint_parameters("jacobians")
def jacrev(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    holomorphic: bool = False,
    has_aux: bool = False,
    *,
    batch_size: int | None = None,
) -> Function:
    """Return a function that computes the Jacobian by one batched reverse sweep.

    Args:
        fun: a function of arrays, in any containers, returning arrays in any containers.
        argnums: the positions of the arguments to differentiate.
        holomorphic: whether `fun` is complex differentiable; then its complex derivative is returned.
        has_aux: whether `fun` returns a pair (output, auxiliary result).
        batch_size: how many rows are computed at once, if the residuals of all do not fit into memory; all by default.

    Returns:
        A function of the same arguments. For each array of the output it gives, in the output's containers, the
        arguments' containers of arrays of shape output.shape + argument.shape; with `has_aux` (that, aux).

    Raises:
        DtypeError: an argument has a dtype without derivatives, or an output is complex without `holomorphic`.

    >>> jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return make_derivative(
        reverse_jacobian_at, fun, DerivativeOptions("jacrev", argnums, has_aux, holomorphic, batch_size=batch_size)
    )


def reverse_jacobian_at(fun: Function, options: DerivativeOptions, /, *args: Any, **kwargs: Any) -> Any:
    """Return what the function that `jacrev` makes gives for arguments."""
    options = options._replace(name="jacrev")
    function, selection = select_arguments(fun, options, args, kwargs)
    output, pullback, *aux = pull_back(options.name, function, selection, options.has_aux)
    rows = pull_rows(options, selection, output, pullback)
    return (rows, *aux) if options.has_aux else rows


def pull_rows(options: DerivativeOptions, selection: Sequence[Any], output: Any, pullback: Function) -> Any:
    """Return the Jacobian by one sweep of a recorded function, whose output and pullback are given."""
    name, holomorphic = options.name, options.holomorphic
    outputs, out_structure = flatten(output)
    if holomorphic:
        require_complex(name, "an argument", flatten(selection)[0], True, "Convert it with .astype(complex)")
    action = UNDECLARED if holomorphic else declare_holomorphic(flatten(selection)[0], INSTEAD[name])
    require_complex(name, "an output", outputs, holomorphic, action)

    def pull(*lanes: Any) -> Any:
        return pullback(unflatten(out_structure, lanes))

    columns, in_structure = flatten(map_basis(pull, 0, outputs, options.batch_size))
    example = result_example(flatten(selection)[0])
    split = [split_lanes(column, outputs, 0, example) for column in columns]
    rows = [
        options.in_form(unflatten(in_structure, [with_dtype_of(part[i], output) for part in split]))
        for i, output in enumerate(outputs)
    ]
    return unflatten(out_structure, rows)


def with_dtype_of(derivative: Any, output: Any) -> Any:
    """Return a derivative in the dtype of the output, as forward mode gives it; sweeps calculate in the argument's.

    That of a real output by a complex argument is complex.
    """
    dtype = aval_of(output).dtype
    if aval_of(derivative).dtype.kind == "c":
        dtype = np.result_type(dtype, np.complex64)
    return derivative if is_number(derivative) or derivative.dtype == dtype else derivative.astype(dtype)


@overload
def jacfwd(
    fun: Callable[P, np.ndarray[Any, Any] | Tensor],
    argnums: Literal[0] = 0,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
    *,
    batch_size: int | None = None,
) -> ArrayDerivative[P]: ...
@overload
def jacfwd(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    holomorphic: bool = False,
    has_aux: bool = False,
    *,
    batch_size: int | None = None,
) -> Derived[P, Any]: ...
@hint_parameters("jacobians")
def jacfwd(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    holomorphic: bool = False,
    has_aux: bool = False,
    *,
    batch_size: int | None = None,
) -> Function:
    """Return a function that computes the Jacobian by one evaluation with batched tangents.

    Args:
        fun: a function of arrays, in any containers, returning arrays in any containers.
        argnums: the positions of the arguments to differentiate.
        holomorphic: whether `fun` is complex differentiable; then its complex derivative is returned.
        has_aux: whether `fun` returns a pair (output, auxiliary result).
        batch_size: how many columns are computed at once, if the tangents of all do not fit into memory; all by
            default. `fun` is called once for each batch.

    Returns:
        A function of the same arguments. For each array of the output it gives, in the output's containers, the
        arguments' containers of arrays of shape output.shape + argument.shape; with `has_aux` (that, aux).

    Raises:
        DtypeError: an argument has a dtype without derivatives, or is complex without `holomorphic`.

    >>> jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return make_derivative(
        forward_jacobian_at, fun, DerivativeOptions("jacfwd", argnums, has_aux, holomorphic, batch_size=batch_size)
    )


def forward_jacobian_at(fun: Function, options: DerivativeOptions, /, *args: Any, **kwargs: Any) -> Any:
    """Return what the function that `jacfwd` makes gives for arguments."""
    name, holomorphic = options.name, options.holomorphic
    function, selection = select_arguments(fun, options, args, kwargs)
    given, structure = flatten(selection)
    leaves = selected_arguments(name, fun, function.chosen, selection)
    require_complex(name, "an argument", leaves, holomorphic, DECLARED[holomorphic])
    primals = unflatten(structure, leaves)
    aux: list[Any] = []

    def push(*lanes: Any) -> Any:
        _, moved, *aux[:] = push_forward(name, function, primals, unflatten(structure, lanes), options.has_aux)
        return moved

    rows, out_structure = flatten(map_basis(push, -1, leaves, options.batch_size))
    if options.has_aux and is_in_batches(leaves, options.batch_size):
        aux = [function(*selection)[1]]  # those of batches may be a loop's own
    if holomorphic:
        require_complex(name, "an output", rows, True, UNDECLARED)
    example = result_example(given)
    blocks = [options.in_form(unflatten(structure, split_lanes(row, leaves, row.ndim - 1, example))) for row in rows]
    found = unflatten(out_structure, blocks)
    return (found, *aux) if options.has_aux else found


@overload
def jacobian(
    fun: Callable[P, np.ndarray[Any, Any] | Tensor],
    argnums: Literal[0] = 0,
    mode: str = "auto",
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
    *,
    batch_size: int | None = None,
) -> ArrayDerivative[P]: ...
@overload
def jacobian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    mode: str = "auto",
    holomorphic: bool = False,
    has_aux: bool = False,
    *,
    batch_size: int | None = None,
) -> Derived[P, Any]: ...
@hint_parameters("jacobians")
def jacobian(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    mode: str = "auto",
    holomorphic: bool = False,
    has_aux: bool = False,
    *,
    batch_size: int | None = None,
) -> Function:
    """Return a function that computes the Jacobian in the mode that costs less.

    Args:
        fun: a function of arrays, in any containers, returning arrays in any containers.
        argnums: the positions of the arguments to differentiate.
        mode: "fwd", "rev", or "auto": reverse mode unless the output has more elements than the arguments, or as many
                under `jit`, or the arguments are real and the outputs complex.
        holomorphic: whether `fun` is complex differentiable; then its complex derivative is returned.
        has_aux: whether `fun` returns a pair (output, auxiliary result).
        batch_size: how many rows or columns are computed at once, if all do not fit into memory; all by default.

    Returns:
        A function of the same arguments. For each array of the output it gives, in the output's containers, the
        arguments' containers of arrays of shape output.shape + argument.shape; with `has_aux` (that, aux).

    Raises:
        UsageError: the mode is unknown.
        DtypeError: an argument has a dtype without derivatives.

    >>> jacobian(lambda x: x.sum() * x)(np.array([1.0, 2.0]))
    array([[4., 1.],
           [2., 5.]])
    """
    if not isinstance(mode, str) or mode not in MODES:
        needed = "'auto', 'fwd' or 'rev' is needed"
        raise UsageError("jacobian", f"mode={mode!r:.40}", needed, "Leave it out for 'auto'")
    return make_derivative(
        MODES[mode], fun, DerivativeOptions("jacobian", argnums, has_aux, holomorphic, batch_size=batch_size)
    )


def jacobian_at(fun: Function, options: DerivativeOptions, /, *args: Any, **kwargs: Any) -> Any:
    """Return what the function that `jacobian` makes gives for arguments, in the mode that costs less."""
    function, selection = select_arguments(fun, options, args, kwargs)
    # recorded, so that nothing is evaluated twice
    output, pullback, *aux = pull_back("jacobian", function, selection, options.has_aux)
    inputs, outputs = ([aval_of(leaf) for leaf in flatten(tree)[0]] for tree in (selection, output))
    forward = count_elements(outputs) > count_elements(inputs)
    either = count_elements(outputs) == count_elements(inputs) and any(map(is_staged, flatten(output)[0]))
    if not options.holomorphic and any_complex(inputs) != any_complex(outputs):
        forward, either = any_complex(outputs), False
    if either:  # tangents are not kept, as residuals are, and what is evaluated twice is computed once
        count_before = refusal_count()
        try:
            return forward_jacobian_at(fun, options, *args, **kwargs)
        except GraphError:  # rules of the user are for reverse mode alone
            forgive(count_before)
    if forward:
        return forward_jacobian_at(fun, options, *args, **kwargs)
    rows = pull_rows(options._replace(name="jacrev"), selection, output, pullback)
    return (rows, *aux) if options.has_aux else rows


MODES: dict[str, Function] = {"auto": jacobian_at, "fwd": forward_jacobian_at, "rev": reverse_jacobian_at}


def any_complex(avals: Sequence[Aval]) -> bool:
    """Tell whether any of these values is complex."""
    return any(aval.dtype.kind == "c" for aval in avals)


@overload
def hessian(
    fun: Callable[P, Any],
    argnums: Literal[0] = 0,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
    *,
    batch_size: int | None = None,
) -> ArrayDerivative[P]: ...
@overload
def hessian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    holomorphic: bool = False,
    has_aux: bool = False,
    *,
    batch_size: int | None = None,
) -> Derived[P, Any]: ...
@hint_parameters("jacobians")
def hessian(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    holomorphic: bool = False,
    has_aux: bool = False,
    *,
    batch_size: int | None = None,
) -> Function:
    """Return a function that computes second derivatives: forward over reverse, batched.

    Args:
        fun: a function that returns one real scalar, or arrays in any containers.
        argnums: the positions of the arguments to differentiate.
        holomorphic: whether `fun` is complex differentiable; then its complex derivative is returned.
        has_aux: whether `fun` returns a pair (output, auxiliary result).
        batch_size: how many columns are computed at once, if all do not fit into memory; all by default. `fun` is
            called once for each batch.

    Returns:
        A function of the same arguments. For each array of the output it gives, in the output's containers, the
        arguments' containers of containers of arrays of shape output.shape + first.shape + second.shape, which are the
        Hessians of its elements; with `has_aux` (that, aux).

    Raises:
        DtypeError: an argument has a dtype without derivatives, or an output is complex without `holomorphic`.

    >>> hessian(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    >>> hessian(lambda x: np.stack([x[0] ** 2, x[0] * x[1]]))(np.array([1.0, 2.0]))
    array([[[2., 0.],
            [0., 0.]],
    <BLANKLINE>
           [[0., 1.],
            [1., 0.]]])
    """
    options = DerivativeOptions("hessian", argnums, has_aux, holomorphic, batch_size=batch_size)
    return make_derivative(forward_jacobian_at, make_derivative(first_derivative_at, fun, options), options)


def first_derivative_at(fun: Function, options: DerivativeOptions, /, *args: Any, **kwargs: Any) -> Any:
    """Return the gradient of a function of which a Hessian is asked, or its Jacobian if it returned no scalar."""
    run = record_call(fun, args, kwargs, options)
    if run.structure is None and aval_of(run.outputs[0]).shape == ():
        found = gradient_of(run, options)
    else:
        selection = select_arguments(fun, options, args, kwargs)[1]
        found = pull_rows(options, selection, run.result(), pullback_of(run))
    return (found, run.aux) if options.has_aux else found
