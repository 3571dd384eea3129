"""Reverse mode: `grad`, `value_and_grad`, `elementwise_grad`, `vjp`, `stop_gradient`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, TypeVarTuple, cast, overload

import numpy as np

from wengert.core.containers.tree_leaves import flatten, map_leaves, structure_text
from wengert.core.diagnostics.argument_checks import require_callable, require_flag, require_number
from wengert.core.values.dispatch import apply, strengthen
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.primitives.conversion import barrier, own_copy
from wengert.support.hints import hint_parameters
from wengert.transforms.boundary import inner_value, resolve_positions
from wengert.transforms.captured_gradients import CapturedSubstitution, captured_tensors
from wengert.transforms.recorded_call import Recording, ones_for, require_kind, scalar_output, single_output
from wengert.transforms.result_checks import require_differentiable_results
from wengert.transforms.transformed_function import (
    DerivativeOptions,
    Derived,
    Gradient,
    GradientAndAux,
    ValueAndGradient,
    make_derivative,
)

Function = Callable[..., Any]

P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")
X = TypeVar("X")
Args = TypeVarTuple("Args")


@overload
def value_and_grad(
    fun: Callable[P, R], argnums: Literal[0] = 0, has_aux: bool = False, holomorphic: bool = False
) -> ValueAndGradient[P, R]: ...
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    captured: Sequence[Tensor] | bool = (),
) -> Derived[P, tuple[R, Any]]: ...
@hint_parameters("gradients")
def value_and_grad(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    captured: Sequence[Tensor] | bool = (),
) -> Function:
    """Return a function that computes both the value and the gradient of a scalar function.

    Args:
        fun: a function that returns one real scalar (a complex one with `holomorphic`).
        argnums: the positions of the arguments to differentiate; they may be containers of floats and arrays.
        has_aux: whether `fun` returns a pair (scalar, auxiliary result).
        holomorphic: whether `fun` is complex differentiable; then its complex derivative is returned.
        captured: Tensors that `fun` closes over, to be differentiated, too; True for all that require grad, wherever
            its variables hold them.

    Returns:
        A function of the same arguments returning (value, gradient), or ((value, aux), gradient); gradients have the
        containers, shapes and dtypes of the arguments, in a tuple if `argnums` is one. With `captured` in the place of
        the gradient (gradient, gradients): a list, or with True a dictionary by how the function spells each Tensor.

    Raises:
        ShapeError: `fun` returned something other than one scalar.
        DtypeError: an argument or the result has a dtype without the derivative asked for.
        UsageError: something else than Tensors is listed in `captured`, or there are none.
        GraphError: `fun` writes to what is captured.

    >>> value_and_grad(lambda x: x**3)(2.0)
    (8.0, 12.0)
    """
    return make_derivative(
        value_and_gradient_at, fun, DerivativeOptions("value_and_grad", argnums, has_aux, holomorphic, captured)
    )


def value_and_gradient_at(fun: Function, options: DerivativeOptions, /, *args: Any, **kwargs: Any) -> Any:
    """Return what the function that `value_and_grad` makes gives for arguments."""
    run, gradient = sweep_gradient(fun, args, kwargs, options)
    return ((run.result(), run.aux), gradient) if options.has_aux else (run.result(), gradient)


def sweep_gradient(
    fun: Function, args: Sequence[Any], kwargs: dict[str, Any], options: DerivativeOptions
) -> tuple[Recording, Any]:
    """Call a scalar function; return the recording of the call and the gradient."""
    if not isinstance(options.captured, tuple | list) or options.captured:
        return sweep_with_captured(fun, args, kwargs, options)
    run = record_call(fun, args, kwargs, options)
    return run, gradient_of(run, options)


def record_call(fun: Function, args: Sequence[Any], kwargs: dict[str, Any], options: DerivativeOptions) -> Recording:
    """Return the recording of a call of a function, whose results must have derivatives."""
    name = options.name
    chosen = resolve_positions(name, options.argnums, len(args))
    run = Recording(name, fun, args, kwargs, chosen, options.has_aux, at_once=not options.has_aux)
    require_differentiable_results(name, run.outputs, run.structure, run.leaves)
    return run


def gradient_of(run: Recording, options: DerivativeOptions) -> Any:
    """Return the gradient of the scalar that a recorded function returned."""
    output = scalar_output(options.name, run, options.holomorphic)
    return options.in_form(run.cotangents([ones_for(output)], retain=False))


def sweep_with_captured(
    fun: Function, args: Sequence[Any], kwargs: dict[str, Any], options: DerivativeOptions
) -> tuple[Recording, Any]:
    """Do what `sweep_gradient` does with captured Tensors in front of the arguments."""
    tensors = captured_tensors(options.name, fun, options.captured)
    listed = list(tensors.values()) if isinstance(tensors, dict) else tensors
    chosen = [0, *(1 + position for position in resolve_positions(options.name, options.argnums, len(args)))]
    with CapturedSubstitution(options.name, fun, listed) as standing:
        inner = options._replace(argnums=chosen, captured=())
        run, (found, *gradients) = sweep_gradient(standing.called, (listed, *args), kwargs, inner)
        standing.require_unwritten()
    by_name = dict(zip(tensors, found, strict=True)) if isinstance(tensors, dict) else found
    return run, (options.in_form(tuple(gradients)), by_name)


@overload
def grad(
    fun: Callable[P, Any], argnums: Literal[0] = 0, has_aux: Literal[False] = False, holomorphic: bool = False
) -> Gradient[P]: ...
@overload
def grad(
    fun: Callable[P, tuple[Any, X]], argnums: Literal[0] = 0, *, has_aux: Literal[True], holomorphic: bool = False
) -> GradientAndAux[P, X]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    captured: Sequence[Tensor] | bool = (),
) -> Derived[P, Any]: ...
@hint_parameters("gradients")
def grad(
    fun: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    *,
    captured: Sequence[Tensor] | bool = (),
) -> Function:
    """Return a function that computes the gradient of a scalar function.

    Args:
        fun: a function that returns one real scalar (a complex one with `holomorphic`).
        argnums: the positions of the arguments to differentiate; they may be containers of floats and arrays.
        has_aux: whether `fun` returns a pair (scalar, auxiliary result).
        holomorphic: whether `fun` is complex differentiable; then its complex derivative is returned.
        captured: Tensors that `fun` closes over, to be differentiated, too; True for all that require grad, wherever
            its variables hold them.

    Returns:
        A function of the same arguments returning the gradient, or (gradient, aux); gradients have the containers,
        shapes and dtypes of the arguments, in a tuple if `argnums` is one. With `captured` in the place of the
        gradient (gradient, gradients): a list, or with True a dictionary by how the function spells each Tensor.

    Raises:
        ShapeError: `fun` returned something other than one scalar.
        DtypeError: an argument or the result has a dtype without the derivative asked for.
        UsageError: something else than Tensors is listed in `captured`, or there are none.
        GraphError: `fun` writes to what is captured.

    >>> import numpy as np
    >>> grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    >>> grad(grad(lambda x: x**3))(2.0)
    12.0
    >>> import wengert as wg
    >>> w = wg.tensor([3.0, 4.0])
    >>> grad(lambda x: np.sum(w * x**2), captured=[w])(2.0)
    (28.0, [tensor([4., 4.])])
    """
    return make_derivative(gradient_at, fun, DerivativeOptions("grad", argnums, has_aux, holomorphic, captured))


def gradient_at(fun: Function, options: DerivativeOptions, /, *args: Any, **kwargs: Any) -> Any:
    """Return what the function that `grad` makes gives for arguments."""
    run, gradient = sweep_gradient(fun, args, kwargs, options)
    return (gradient, run.aux) if options.has_aux else gradient


@overload
def elementwise_grad(fun: Callable[P, Any], argnums: Literal[0] = 0, holomorphic: bool = False) -> Gradient[P]: ...
@overload
def elementwise_grad(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, holomorphic: bool = False
) -> Derived[P, Any]: ...
@hint_parameters("gradients")
def elementwise_grad(fun: Function, argnums: int | Sequence[int] = 0, holomorphic: bool = False) -> Function:
    """Return a function that computes the derivative of each output element, summed over outputs.

    For a function that acts on each element by itself this is its derivative, element by element.

    Args:
        fun: a function that returns one array.
        argnums: the positions of the arguments to differentiate.
        holomorphic: whether `fun` is complex differentiable; then its complex derivative is returned.

    Returns:
        A function of the same arguments, whose result has the shape of the arguments differentiated.

    Raises:
        ShapeError: `fun` returned several arrays.
        DtypeError: an argument or the result has a dtype without the derivative asked for.

    >>> import numpy as np
    >>> elementwise_grad(np.sin)(np.array([0.0, np.pi]))
    array([ 1., -1.])
    >>> elementwise_grad(np.square, holomorphic=True)(np.array([1j, 2.0]))
    array([0.+2.j, 4.+0.j])
    """
    return make_derivative(
        elementwise_gradient_at, fun, DerivativeOptions("elementwise_grad", argnums, holomorphic=holomorphic)
    )


def elementwise_gradient_at(fun: Function, options: DerivativeOptions, /, *args: Any, **kwargs: Any) -> Any:
    """Return what the function that `elementwise_grad` makes gives for arguments."""
    run = record_call(fun, args, kwargs, options)
    output = single_output(options.name, run)
    require_kind(options.name, run, output, options.holomorphic)
    return options.in_form(run.cotangents([ones_for(output)], retain=False))


@overload
def vjp(
    fun: Callable[..., R], *primals: *Args, has_aux: Literal[False] = False
) -> tuple[R, Callable[[R], tuple[*Args]]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, X]], *primals: *Args, has_aux: Literal[True]
) -> tuple[R, Callable[[R], tuple[*Args]], X]: ...
@overload
def vjp(fun: Function, *primals: *Args, has_aux: bool = False) -> tuple[Any, ...]: ...
def vjp(fun: Function, *primals: *Args, has_aux: bool = False) -> tuple[Any, ...]:
    """Evaluate a function and return its result with the function that applies the transposed Jacobian.

    Args:
        fun: a function of the primals, returning arrays in any containers.
        *primals: floats, arrays or Tensors, or containers of them.
        has_aux: whether `fun` returns a pair (output, auxiliary result).

    Returns:
        (output, pullback), or (output, pullback, aux). `pullback(ct)` takes a cotangent in the containers and shapes
        of the output and returns a tuple with a cotangent for each primal; it can be called any number of times.

    Raises:
        ShapeError: a cotangent has not the containers or shapes of the output.
        DtypeError: a primal has a dtype without derivatives, or a cotangent is complex and its output real.

    >>> import numpy as np
    >>> y, pullback = vjp(lambda x: x * x, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 10.0]))
    (array([ 2., 40.]),)
    """
    return pull_back("vjp", fun, primals, has_aux)


def pull_back(
    name: str, fun: Function, primals: Sequence[Any], has_aux: bool = False, *, any_result: bool = False
) -> tuple[Any, ...]:
    """Return what `vjp` does, under the name of a transformation that uses it.

    With `any_result` results without derivative are allowed; their cotangents are not looked at.
    """
    require_callable(name, fun)
    require_flag(name, has_aux=has_aux)
    kept = tuple(map_leaves(own_copy, x) for x in primals)  # the pullback needs what the caller may write to
    run = Recording(name, fun, kept, {}, range(len(primals)), has_aux, originals=primals)
    if not any_result:
        require_differentiable_results(name, run.outputs, run.structure, run.leaves)
    result, pullback = map_leaves(own_copy, run.result()), pullback_of(run)
    return (result, pullback, map_leaves(own_copy, run.aux)) if has_aux else (result, pullback)


def pullback_of(run: Recording) -> Callable[..., tuple[Any, ...]]:
    """Return the function from a cotangent of what a recorded function returned to those of its arguments."""

    def pullback(ct: Any, *more: Any) -> tuple[Any, ...]:
        if more:
            needed = "one cotangent, like the output, is needed"
            action = "Pass those of several outputs in their container"
            raise UsageError("vjp", f"{1 + len(more)} arguments of a pullback", needed, action)
        given, structure = flatten(ct)
        if structure != run.structure:
            needed = f"that of the output, {structure_text(run.structure)}, is needed"
            action = "Build the cotangent like the output"
            raise ShapeError("vjp", f"a cotangent of structure {structure_text(structure)}", needed, action)
        cts = [match_cotangent(run.outputs[i], leaf) for i, leaf in enumerate(given)]
        return run.cotangents(cts, retain=True)

    return pullback


def match_cotangent(output: Any, ct: Any) -> Any:
    """Return a given cotangent as the sweep needs it, checking its shape."""
    require_number("vjp", "a cotangent", ct)
    value = inner_value(strengthen(ct)) if type(ct) is Tensor else np.asarray(ct)[()]
    shape = output.shape if isinstance(output, Tensor | np.ndarray) else ()
    if value.shape != shape:
        given = f"a cotangent of shape {value.shape} for an output of shape {shape}"
        raise ShapeError("vjp", given, "the same shape is needed", "Broadcast or reshape the cotangent")
    if not isinstance(output, Tensor):
        return value
    if value.dtype.kind == "c" and output.dtype.kind != "c":
        given = f"a cotangent of dtype {value.dtype} for an output of dtype {output.dtype}"
        raise DtypeError("vjp", given, "a real cotangent is needed for a real output", "Pass its .real")
    return value if value.dtype.kind in "fc" else value.astype(output.dtype)


def stop_gradient(tree: A) -> A:
    """Return the same values as constants: nothing flows back through them, at any order.

    Args:
        tree: a Tensor, or containers of them; other leaves are returned as they are.

    Returns:
        The same containers.

    >>> grad(lambda x: x * stop_gradient(x))(3.0)
    3.0
    """
    return cast(A, map_leaves(lambda leaf: apply(barrier, leaf) if type(leaf) is Tensor else leaf, tree))
