"""Reverse mode: `grad`, `value_and_grad`, `elementwise_grad`, `vjp`, `stop_gradient`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, TypeVarTuple, cast, overload

import numpy as np

from wengert._tree import flatten, map_leaves, unflatten, unflatten_each
from wengert.control.apart import place_of, require_apart, standing_for
from wengert.core.dispatch import apply, strengthened
from wengert.core.objects import leaves_of_result
from wengert.core.requirements import require_callable, require_flag, require_number
from wengert.core.stores import called
from wengert.core.tensor import Tensor, innermost_trace
from wengert.core.trace import next_level
from wengert.errors import DtypeError, ShapeError, describe
from wengert.primitives.barriers import barrier
from wengert.traces.sweep import sweep
from wengert.traces.tape import Node, Tape, make_leaf
from wengert.transforms.boundary import (
    as_given,
    inner_value,
    name_of,
    positions,
    require_argument,
    require_complex,
    result_below,
    result_example,
    returned,
    selected_leaves,
    split_aux,
)
from wengert.transforms.captured import Standing, captured_tensors
from wengert.transforms.results import require_differentiable_results
from wengert.transforms.transformed import transformed
from wengert.transforms.typing import Derived, Gradient, GradientAndAux, ValueAndGradient

__all__ = [
    "Recording",
    "elementwise_grad",
    "grad",
    "gradient_function",
    "ones_for",
    "pulled",
    "scalar_output",
    "stop_gradient",
    "value_and_grad",
    "vjp",
]

Function = Callable[..., Any]
P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")
X = TypeVar("X")
Args = TypeVarTuple("Args")


class Recording:
    """Run a function on leaves of a new tape, and keep what is needed to sweep it.

    Attributes:
        leaves: the differentiated leaves as given.
        outputs: the leaves of the function's result.
        structure: the containers of the result.
        aux: the auxiliary result, as seen one level below.

    Where the arguments are copies, `originals` are what they are copies of, which may share memory.
    """

    def __init__(
        self,
        name: str,
        function: Function,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        argnums: Sequence[int],
        has_aux: bool,
        tape: type[Tape] = Tape,
        originals: Sequence[Any] = (),
    ) -> None:
        self.name = name
        self.tape = tape(next_level(), functools.partial(name_of, name, function))
        self.leaves: list[Any] = []
        self.structures: list[tuple[Any, int]] = []
        self.inputs: list[Tensor] = []
        arguments = list(args)
        for position in argnums:
            require_argument(name, args[position])
            found, structure = flatten(args[position])
            chosen = selected_leaves(name, function, position, args[position], found)
            traced = [make_leaf(inner_value(leaf), self.tape) for leaf in chosen]
            for leaf, tensor in zip(found, traced, strict=True):
                tensor._kept = isinstance(leaf, np.ndarray | Tensor)
                standing_for(tensor, leaf)
            self.leaves += found
            self.inputs += traced
            self.structures.append((structure, len(found)))
            arguments[position] = unflatten(structure, traced)
        self.nodes: list[Node] = [tensor._node for tensor in self.inputs]
        try:
            result = called(function, arguments, kwargs)
            if [x._node for x in self.inputs] != self.nodes:
                self.require_apart(originals or args, arguments)
            self.aux = None
            if has_aux:
                result, aux = split_aux(name, result)
                self.aux = map_leaves(self.in_given_form, aux)
            found, self.structure = leaves_of_result(result)
            self.outputs = [returned(leaf, self.tape) if type(leaf) is Tensor else leaf for leaf in found]
        finally:
            self.tape.end()

    def require_apart(self, args: Sequence[Any], arguments: Sequence[Any]) -> None:
        """Raise if the function wrote to an argument that shares memory with another."""
        changed = {id(x) for x, node in zip(self.inputs, self.nodes, strict=True) if x._node is not node}
        leaves = flatten(tuple(arguments))[0]
        written = {i: place_of(x) for i, x in enumerate(leaves) if id(x) in changed}
        require_apart(self.name, flatten(tuple(args))[0], written)

    def in_given_form(self, leaf: Any) -> Any:
        """Return a leaf of a result in the form in which the differentiated leaves were given."""
        if type(leaf) is not Tensor:
            return leaf
        return as_given(result_below(leaf, self.tape), result_example(self.leaves))

    def values(self) -> list[Any]:
        """Return the leaves of the function's result as they are one level below."""
        return [result_below(leaf, self.tape) for leaf in self.outputs]

    def result(self) -> Any:
        """Return the function's result."""
        return unflatten(self.structure, [self.in_given_form(leaf) for leaf in self.outputs])

    def cotangents(
        self, cts: Sequence[Any], *, retain: bool, watch: Callable[[Node, Any], None] | None = None
    ) -> tuple[Any, ...]:
        """Sweep from cotangents of the outputs; return those of the differentiated arguments, in their form."""
        found = self.swept(cts, retain=retain, watch=watch)
        return self.structured([as_given(ct, leaf) for ct, leaf in zip(found, self.leaves, strict=True)])

    def swept(self, cts: Sequence[Any], *, retain: bool, watch: Callable[[Node, Any], None] | None = None) -> list[Any]:
        """Sweep from cotangents of the outputs; return those of the differentiated leaves as they are below."""
        seeds = [
            (leaf._node, ct)
            for leaf, ct in zip(self.outputs, cts, strict=True)
            if type(leaf) is Tensor and leaf._trace is self.tape and ct is not None
        ]
        run = sweep(seeds, retain=retain, watch=watch)
        found = [(node, run.result(node)) for node in self.nodes]
        return [np.zeros(node.shape, node.dtype)[()] if ct is None else ct for node, ct in found]

    def structured(self, found: Sequence[Any]) -> tuple[Any, ...]:
        """Return one value for each differentiated leaf in the containers of their arguments."""
        return tuple(unflatten_each(self.structures, found))


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
    require_callable("value_and_grad", fun)
    require_flag("value_and_grad", has_aux=has_aux, holomorphic=holomorphic)
    return transformed("value_and_grad", value_and_gradient_at, fun, argnums, has_aux, holomorphic, captured)


def value_and_gradient_at(
    fun: Function,
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    captured: Sequence[Tensor] | bool,
    /,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Return what the function that `value_and_grad` makes gives for arguments."""
    run, gradient = swept("value_and_grad", fun, args, kwargs, argnums, has_aux, holomorphic, captured)
    return ((run.result(), run.aux), gradient) if has_aux else (run.result(), gradient)


def swept(
    name: str,
    fun: Function,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    captured: Sequence[Tensor] | bool = (),
) -> tuple[Recording, Any]:
    """Call a scalar function; return the recording of the call and the gradient."""
    if not isinstance(captured, tuple | list) or captured:
        return swept_with_captured(name, fun, args, kwargs, argnums, has_aux, holomorphic, captured)
    run = Recording(name, fun, args, kwargs, positions(name, argnums, len(args)), has_aux)
    require_differentiable_results(name, run.outputs, run.structure, run.leaves)
    output = scalar_output(name, run, holomorphic)
    gradients = run.cotangents([ones_for(output)], retain=False)
    return run, gradients[0] if isinstance(argnums, int) else gradients


def swept_with_captured(
    name: str,
    fun: Function,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    captured: Any,
) -> tuple[Recording, Any]:
    """Do what `swept` does with captured Tensors in front of the arguments."""
    tensors = captured_tensors(name, fun, captured)
    listed = list(tensors.values()) if isinstance(tensors, dict) else tensors
    chosen = [0, *(1 + position for position in positions(name, argnums, len(args)))]
    with Standing(name, fun, listed) as standing:
        run, (found, *gradients) = swept(name, standing.called, (listed, *args), kwargs, chosen, has_aux, holomorphic)
    return run, (
        gradients[0] if isinstance(argnums, int) else tuple(gradients),
        dict(zip(tensors, found, strict=True)) if isinstance(tensors, dict) else found,
    )


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
    return gradient_function("grad", fun, argnums, has_aux, holomorphic, captured)


def gradient_function(
    name: str,
    fun: Function,
    argnums: int | Sequence[int],
    has_aux: bool = False,
    holomorphic: bool = False,
    captured: Sequence[Tensor] | bool = (),
) -> Function:
    """Return what `grad` does, under the name of a transformation that uses it."""
    require_callable(name, fun)
    require_flag(name, has_aux=has_aux, holomorphic=holomorphic)
    return transformed(name, gradient_at, fun, name, argnums, has_aux, holomorphic, captured)


def gradient_at(
    fun: Function,
    name: str,
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
    captured: Sequence[Tensor] | bool,
    /,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Return what the function that `grad` makes gives for arguments."""
    run, gradient = swept(name, fun, args, kwargs, argnums, has_aux, holomorphic, captured)
    return (gradient, run.aux) if has_aux else gradient


@overload
def elementwise_grad(fun: Callable[P, Any], argnums: Literal[0] = 0, holomorphic: bool = False) -> Gradient[P]: ...
@overload
def elementwise_grad(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, holomorphic: bool = False
) -> Derived[P, Any]: ...
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
    require_callable("elementwise_grad", fun)
    require_flag("elementwise_grad", holomorphic=holomorphic)
    return transformed("elementwise_grad", elementwise_gradient_at, fun, argnums, holomorphic)


def elementwise_gradient_at(
    fun: Function, argnums: int | Sequence[int], holomorphic: bool, /, *args: Any, **kwargs: Any
) -> Any:
    """Return what the function that `elementwise_grad` makes gives for arguments."""
    chosen = positions("elementwise_grad", argnums, len(args))
    run = Recording("elementwise_grad", fun, args, kwargs, chosen, False)
    require_differentiable_results("elementwise_grad", run.outputs, run.structure, run.leaves)
    output = single_output("elementwise_grad", run)
    require_kind("elementwise_grad", run, output, holomorphic)
    gradients = run.cotangents([ones_for(output)], retain=False)
    return gradients[0] if isinstance(argnums, int) else gradients


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
    return pulled("vjp", fun, primals, has_aux)


def pulled(
    name: str, fun: Function, primals: Sequence[Any], has_aux: bool = False, *, any_result: bool = False
) -> tuple[Any, ...]:
    """Return what `vjp` does, under the name of a transformation that uses it.

    Args:
        name: the transformation, for errors.
        fun: see `vjp`.
        primals: see `vjp`.
        has_aux: see `vjp`.
        any_result: whether results without derivative are allowed; their cotangents are not looked at.
    """
    require_callable(name, fun)
    require_flag(name, has_aux=has_aux)
    kept = tuple(map_leaves(copied, x) for x in primals)
    run = Recording(name, fun, kept, {}, range(len(primals)), has_aux, originals=primals)
    if not any_result:
        require_differentiable_results(name, run.outputs, run.structure, run.leaves)

    def pullback(ct: Any) -> tuple[Any, ...]:
        given, structure = flatten(ct)
        if structure != run.structure:
            raise ShapeError(
                describe(
                    "vjp",
                    f"a cotangent of structure {shown_structure(structure)}",
                    f"that of the output, {shown_structure(run.structure)}, is needed",
                    "Build the cotangent like the output",
                )
            )
        cts = [matched(run.outputs[i], leaf) for i, leaf in enumerate(given)]
        return run.cotangents(cts, retain=True)

    result = map_leaves(copied, run.result())
    return (result, pullback, map_leaves(copied, run.aux)) if has_aux else (result, pullback)


def copied(leaf: Any) -> Any:
    """Return a copy of an ndarray: what the caller may write to, while the pullback needs the original."""
    return leaf.copy(order="K") if isinstance(leaf, np.ndarray) else leaf


def shown_structure(structure: Any) -> str:
    """Return how errors show the containers of a value."""
    return "one array" if structure is None else str(structure)


def matched(output: Any, ct: Any) -> Any:
    """Return a given cotangent as the sweep needs it, checking its shape."""
    require_number("vjp", "a cotangent", ct)
    value = inner_value(strengthened(ct)) if type(ct) is Tensor else np.asarray(ct)[()]
    shape = output.shape if isinstance(output, Tensor | np.ndarray) else ()
    if value.shape != shape:
        raise ShapeError(
            describe(
                "vjp",
                f"a cotangent of shape {value.shape} for an output of shape {shape}",
                "the same shape is needed",
                "Broadcast or reshape the cotangent",
            )
        )
    if not isinstance(output, Tensor):
        return value
    if value.dtype.kind == "c" and output.dtype.kind != "c":
        raise DtypeError(
            describe(
                "vjp",
                f"a cotangent of dtype {value.dtype} for an output of dtype {output.dtype}",
                "a real cotangent is needed for a real output",
                "Pass its .real",
            )
        )
    return value if value.dtype.kind in "fc" else value.astype(output.dtype)


def single_output(name: str, run: Recording) -> Any:
    """Return the one array that a function returned."""
    if run.structure is not None or len(run.outputs) != 1:
        raise ShapeError(
            describe(
                name,
                f"a function that returned a container of {len(run.outputs)} values",
                "one array is needed",
                "Return further results through has_aux=True, or use wengert.vjp",
            )
        )
    return run.outputs[0]


def scalar_output(name: str, run: Recording, holomorphic: bool) -> Any:
    """Return the one scalar that a function returned, checking that its dtype suits."""
    output = single_output(name, run)
    shape = np.shape(output) if type(output) is not Tensor else output.shape
    if shape != ():
        raise ShapeError(
            describe(
                name,
                f"a function that returned shape {shape}",
                "a scalar, of shape (), is needed",
                "Reduce it, for instance with .sum(), or use wengert.vjp or wengert.jacobian",
            )
        )
    require_kind(name, run, output, holomorphic)
    return output


def require_kind(name: str, run: Recording, output: Any, holomorphic: bool) -> None:
    """Raise a DtypeError unless an output is real, or with `holomorphic` it and the arguments are complex."""
    if holomorphic:
        require_complex(name, "an argument", run.leaves, True, "Convert it with .astype(complex)")
    dtype = output.dtype if isinstance(output, Tensor) else np.asarray(output).dtype
    if (dtype.kind == "c") != holomorphic and (holomorphic or type(output) is Tensor):
        raise DtypeError(
            describe(
                name,
                f"a function that returned dtype {dtype} with holomorphic={holomorphic}",
                "a complex result is needed" if holomorphic else "a real result is needed",
                "Pass holomorphic=True for a complex differentiable function"
                if not holomorphic
                else "Leave holomorphic out, or pass complex arguments",
            )
        )


def ones_for(output: Any) -> Any:
    """Return the cotangent of ones for an output."""
    if type(output) is not Tensor or innermost_trace(output) is None:
        return None
    shape = output.shape
    return np.ones(shape, output.dtype) if shape else output.dtype.type(1)


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
