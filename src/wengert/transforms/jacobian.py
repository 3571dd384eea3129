"""Jacobians, Hessians and products with them: one batched sweep or one batched tangent, never a Python loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, TypeVarTuple, cast, overload

import numpy as np

from wengert.core.containers.tree_leaves import flatten, map_leaves, unflatten
from wengert.core.values.aval import Aval, aval_of, is_number
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.support.hints import hint_parameters
from wengert.transforms.boundary import (
    Narrowed,
    as_given,
    declare_holomorphic,
    require_complex,
    require_sequences,
    resolve_positions,
    result_example,
    selected_arguments,
)
from wengert.transforms.forward import push_forward
from wengert.transforms.reverse import gradient_at, gradient_of, own_copy, pull_back, pullback_of, record_call
from wengert.transforms.transformed_function import ArrayDerivative, Derived, Options, make_derivative
from wengert.transforms.vmap import map_lanes

Function = Callable[..., Any]

P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")
Args = TypeVarTuple("Args")


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


def select_arguments(
    fun: Function, options: Options, args: Sequence[Any], kwargs: Mapping[str, Any]
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
) -> ArrayDerivative[P]: ...
@overload
def jacrev(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, holomorphic: bool = False, has_aux: bool = False
) -> Derived[P, Any]: ...
@hint_parameters("jacobians")
def jacrev(
    fun: Function, argnums: int | Sequence[int] = 0, holomorphic: bool = False, has_aux: bool = False
) -> Function:
    """Return a function that computes the Jacobian by one batched reverse sweep.

    Args:
        fun: a function of arrays, in any containers, returning arrays in any containers.
        argnums: the positions of the arguments to differentiate.
        holomorphic: whether `fun` is complex differentiable; then its complex derivative is returned.
        has_aux: whether `fun` returns a pair (output, auxiliary result).

    Returns:
        A function of the same arguments. For each array of the output it gives, in the output's containers, the
        arguments' containers of arrays of shape output.shape + argument.shape; with `has_aux` (that, aux).

    Raises:
        DtypeError: an argument has a dtype without derivatives, or an output is complex without `holomorphic`.

    >>> jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return make_derivative(reverse_jacobian_at, fun, Options("jacrev", argnums, has_aux, holomorphic))


def reverse_jacobian_at(fun: Function, options: Options, /, *args: Any, **kwargs: Any) -> Any:
    """Return what the function that `jacrev` makes gives for arguments."""
    options = options._replace(name="jacrev")
    function, selection = select_arguments(fun, options, args, kwargs)
    output, pullback, *aux = pull_back(options.name, function, selection, options.has_aux)
    rows = pull_rows(options, selection, output, pullback)
    return (rows, *aux) if options.has_aux else rows


def pull_rows(options: Options, selection: Sequence[Any], output: Any, pullback: Function) -> Any:
    """Return the Jacobian by one sweep of a recorded function, whose output and pullback are given."""
    name, holomorphic = options.name, options.holomorphic
    outputs, out_structure = flatten(output)
    if holomorphic:
        require_complex(name, "an argument", flatten(selection)[0], True, "Convert it with .astype(complex)")
    action = UNDECLARED if holomorphic else declare_holomorphic(flatten(selection)[0], INSTEAD[name])
    require_complex(name, "an output", outputs, holomorphic, action)
    lanes = unflatten(out_structure, basis(outputs))
    columns, in_structure = flatten(map_lanes(pullback, 0, 0, None, lanes))
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
) -> ArrayDerivative[P]: ...
@overload
def jacfwd(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, holomorphic: bool = False, has_aux: bool = False
) -> Derived[P, Any]: ...
@hint_parameters("jacobians")
def jacfwd(
    fun: Function, argnums: int | Sequence[int] = 0, holomorphic: bool = False, has_aux: bool = False
) -> Function:
    """Return a function that computes the Jacobian by one evaluation with batched tangents.

    Args:
        fun: a function of arrays, in any containers, returning arrays in any containers.
        argnums: the positions of the arguments to differentiate.
        holomorphic: whether `fun` is complex differentiable; then its complex derivative is returned.
        has_aux: whether `fun` returns a pair (output, auxiliary result).

    Returns:
        A function of the same arguments. For each array of the output it gives, in the output's containers, the
        arguments' containers of arrays of shape output.shape + argument.shape; with `has_aux` (that, aux).

    Raises:
        DtypeError: an argument has a dtype without derivatives, or is complex without `holomorphic`.

    >>> jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return make_derivative(forward_jacobian_at, fun, Options("jacfwd", argnums, has_aux, holomorphic))


def forward_jacobian_at(fun: Function, options: Options, /, *args: Any, **kwargs: Any) -> Any:
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

    rows, out_structure = flatten(map_lanes(push, 0, -1, None, *basis(leaves)))
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
) -> ArrayDerivative[P]: ...
@overload
def jacobian(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    mode: str = "auto",
    holomorphic: bool = False,
    has_aux: bool = False,
) -> Derived[P, Any]: ...
@hint_parameters("jacobians")
def jacobian(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    mode: str = "auto",
    holomorphic: bool = False,
    has_aux: bool = False,
) -> Function:
    """Return a function that computes the Jacobian in the mode that costs less.

    Args:
        fun: a function of arrays, in any containers, returning arrays in any containers.
        argnums: the positions of the arguments to differentiate.
        mode: "fwd", "rev", or "auto": reverse mode unless the output has more elements than the arguments, or the
                arguments are real and the outputs complex.
        holomorphic: whether `fun` is complex differentiable; then its complex derivative is returned.
        has_aux: whether `fun` returns a pair (output, auxiliary result).

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
    return make_derivative(MODES[mode], fun, Options("jacobian", argnums, has_aux, holomorphic))


def jacobian_at(fun: Function, options: Options, /, *args: Any, **kwargs: Any) -> Any:
    """Return what the function that `jacobian` makes gives for arguments, in the mode that costs less."""
    function, selection = select_arguments(fun, options, args, kwargs)
    # recorded, so that nothing is evaluated twice
    output, pullback, *aux = pull_back("jacobian", function, selection, options.has_aux)
    inputs, outputs = ([aval_of(leaf) for leaf in flatten(tree)[0]] for tree in (selection, output))
    forward = count(outputs) > count(inputs)
    if not options.holomorphic and any_complex(inputs) != any_complex(outputs):
        forward = any_complex(outputs)
    if forward:
        return forward_jacobian_at(fun, options, *args, **kwargs)
    rows = pull_rows(options._replace(name="jacrev"), selection, output, pullback)
    return (rows, *aux) if options.has_aux else rows


MODES: dict[str, Function] = {"auto": jacobian_at, "fwd": forward_jacobian_at, "rev": reverse_jacobian_at}


def count(avals: Sequence[Aval]) -> int:
    """Return the number of elements of values with these shapes."""
    return sum(math.prod(aval.shape) for aval in avals)


def any_complex(avals: Sequence[Aval]) -> bool:
    """Tell whether any of these values is complex."""
    return any(aval.dtype.kind == "c" for aval in avals)


@overload
def hessian(
    fun: Callable[P, Any],
    argnums: Literal[0] = 0,
    holomorphic: bool = False,
    has_aux: Literal[False] = False,
) -> ArrayDerivative[P]: ...
@overload
def hessian(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, holomorphic: bool = False, has_aux: bool = False
) -> Derived[P, Any]: ...
@hint_parameters("jacobians")
def hessian(
    fun: Function, argnums: int | Sequence[int] = 0, holomorphic: bool = False, has_aux: bool = False
) -> Function:
    """Return a function that computes second derivatives: forward over reverse, batched.

    Args:
        fun: a function that returns one real scalar, or arrays in any containers.
        argnums: the positions of the arguments to differentiate.
        holomorphic: whether `fun` is complex differentiable; then its complex derivative is returned.
        has_aux: whether `fun` returns a pair (output, auxiliary result).

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
    options = Options("hessian", argnums, has_aux, holomorphic)
    return make_derivative(forward_jacobian_at, make_derivative(first_derivative_at, fun, options), options)


def first_derivative_at(fun: Function, options: Options, /, *args: Any, **kwargs: Any) -> Any:
    """Return the gradient of a function of which a Hessian is asked, or its Jacobian if it returned no scalar."""
    run = record_call(fun, args, kwargs, options)
    if run.structure is None and aval_of(run.outputs[0]).shape == ():
        found = gradient_of(run, options)
    else:
        selection = select_arguments(fun, options, args, kwargs)[1]
        found = pull_rows(options, selection, run.result(), pullback_of(run))
    return (found, run.aux) if options.has_aux else found


def hvp(fun: Function, primals: A, tangents: A) -> A:
    """Return the product of the Hessian of a scalar function with a vector, without forming the Hessian.

    Args:
        fun: a function of the primals that returns one real scalar.
        primals: the tuple of arguments (or the one argument itself).
        tangents: the vector, in the containers and shapes of the primals.

    Returns:
        The product, in the containers and shapes of the primals.

    Raises:
        ShapeError: the shapes differ, or `fun` returned something other than one scalar.
        DtypeError: an argument has a dtype without derivatives.

    >>> hvp(lambda x: x**3, (2.0,), (1.0,))
    (12.0,)
    """
    if not isinstance(primals, list | tuple) or hasattr(primals, "_fields"):
        return hvp(fun, (primals,), (tangents,))[0]
    directions: Any = tangents
    require_sequences("hvp", primals, directions)
    gradient = make_derivative(gradient_at, fun, Options("hvp", tuple(range(len(primals)))))
    return cast(A, push_forward("hvp", gradient, tuple(primals), tuple(directions))[1])


def linearize(fun: Callable[..., R], *primals: *Args) -> tuple[R, Callable[[*Args], R]]:
    """Evaluate a function and return its result with the function that applies the Jacobian.

    What `jvp` does with tangents is linear, so it is recorded once, and the pullback of its pullback is it again:
    each application costs one sweep, with nothing evaluated anew.

    Args:
        fun: a function of the primals, returning arrays in any containers.
        *primals: floats, arrays or Tensors, or containers of them.

    Returns:
        (output, pushforward); `pushforward(*tangents)` gives the tangent of the output.

    Raises:
        ShapeError: tangents have not the containers or shapes of the primals.
        DtypeError: a primal has a dtype without derivatives.
        GraphError: a reverse rule that `fun` uses is not linear in the cotangent, and has no jvp beside it.

    >>> y, push = linearize(lambda x: x**2, 3.0)
    >>> push(1.0), push(10.0)
    (6.0, 60.0)
    """
    kept = tuple(map_leaves(own_copy, x) for x in primals)

    def moved(*tangents: Any) -> tuple[Any, Any]:
        output, tangent = push_forward("linearize", fun, kept, tangents, originals=primals)
        return tangent, output

    ones = [map_leaves(ones_of, x) for x in primals]
    tangent, pullback, output = pull_back("linearize", moved, ones, has_aux=True, any_result=True)
    _, push = pull_back("linearize", pullback, [tangent], any_result=True)

    def pushforward(*tangents: *Args) -> Any:
        try:
            return push(tangents)[0]
        except (DtypeError, ShapeError, UsageError):
            moved(*tangents)  # its error speaks of tangents, where that of a pullback speaks of a cotangent
            raise

    return output, pushforward


def ones_of(leaf: Any) -> Any:
    """Return a tangent without zeros, at which singular rules would stop; what is no array is refused later."""
    if type(leaf) in (float, complex):
        return type(leaf)(1)
    if not isinstance(leaf, Tensor | np.ndarray | np.generic):
        return leaf
    return np.ones(leaf.shape, leaf.dtype)[()]
