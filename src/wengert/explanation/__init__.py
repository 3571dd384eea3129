"""Explanations: a function's Wengert list, each forward step with its value, each reverse step with its adjoint.

Source: R. E. Wengert, A simple automatic derivative evaluation program, Communications of the ACM 7 (8), 1964.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten, places_in
from wengert.core.diagnostics.argument_checks import require_callable
from wengert.core.values.aval import is_differentiable
from wengert.core.values.tensor import raw
from wengert.errors import DtypeError, UsageError
from wengert.explanation.listing import ForwardListing, Reference, TapeListing, elements_now, parents_of
from wengert.explanation.steps import Adjoint, ExplainedStep, Explanation, gradient_text, name_results, steps_of
from wengert.support.attributes import attribute, signature
from wengert.traces.nodes import Node
from wengert.transforms.forward import push_forward
from wengert.transforms.recorded_call import Recording, ones_for, scalar_output

__all__ = [
    "Adjoint",
    "Explanation",
    "Step",
    "explain",
    "explanation",
    "gradient_text",
    "jacobian_explanation",
    "name_results",
    "steps_of",
]

TERMS = 4  # contributions to an adjoint that are written out


def explain(fun: Callable[..., Any], *args: Any, mode: str = "reverse", **kwargs: Any) -> Explanation:
    """Evaluate a scalar function and its gradient, and list every step of both.

    Args:
        fun: a function that returns one real scalar.
        *args: floats, arrays or Tensors, or containers of them, to differentiate with respect to.
        mode: "reverse", or "forward" to list each step with its derivatives by the arguments, which are then numbers
            and arrays.
        **kwargs: further arguments, which are not differentiated.

    Returns:
        An `Explanation`. It prints as a Wengert list: each forward step with its value, then each reverse step with
        its adjoint (`v2' = v3' * dv3/dv2` is the derivative of the result with respect to `v2`), then the value and
        the gradient, which are also its attributes.

    Raises:
        ShapeError: `fun` returned something other than one scalar.
        DtypeError: an argument or the result has a dtype without derivatives.
        UsageError: there is no such mode, or it is forward and an argument is a container.

    >>> import numpy as np
    >>> explain(lambda x, y: x * np.exp(y), 3.0, 0.0)
    lambda x, y
    <BLANKLINE>
    forward
      x                     3.0
      y                     0.0
      v1 = exp(y)           1.0
      v2 = x * v1           3.0
    <BLANKLINE>
    reverse
      v2' = 1               1.0
      v1' = v2' * dv2/dv1   3.0
      y' = v1' * dv1/dy     3.0
      x' = v2' * dv2/dx     1.0
    <BLANKLINE>
    value     3.0
    gradient  (1.0, 3.0)
    >>> explain(lambda x, y: x * np.exp(y), 3.0, 0.0, mode="forward")
    lambda x, y
    <BLANKLINE>
    forward         value   d/dx   d/dy
      x             3.0     1.0    0.0
      y             0.0     0.0    1.0
      v1 = exp(y)   1.0     0.0    1.0
      v2 = x * v1   3.0     1.0    3.0
    <BLANKLINE>
    value     3.0
    gradient  (1.0, 3.0)
    """
    require_callable("explain", fun)
    names = argument_names(fun, len(args))
    title = title_of(fun, names)
    if mode == "reverse":
        return explanation(fun, args, kwargs, names, title)
    if mode != "forward":
        raise UsageError("explain", f"mode={mode!r:.40}", "a mode is needed", 'Pass mode="forward" or mode="reverse"')
    explanation(fun, args, kwargs, names, title)  # what reverse mode refuses is refused
    require_plain_arguments(names, args)
    return forward_explanation(functools.partial(fun, **kwargs), list(map(raw, args)), names, title)


def require_plain_arguments(names: Sequence[str], args: Sequence[Any]) -> None:
    """Raise a UsageError if an argument is a container, whose parts forward mode has no columns for."""
    for name, arg in zip(names, args, strict=True):
        if flatten(arg)[1] is not None:
            given = f'containers as {name} with mode="forward"'
            needed = "numbers and arrays are needed"
            raise UsageError("explain", given, needed, "Pass what is in them as arguments of their own")


def explanation(
    fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], names: Sequence[str], title: str
) -> Explanation:
    """Explain a function under a title, with given names for its arguments."""
    inputs = [name for arg, root in zip(args, names, strict=True) for name in leaf_names(arg, root)]
    run = Recording("explain", fun, args, kwargs, range(len(args)), False, TapeListing)
    output = scalar_output("explain", run, False)
    swept: dict[Node, Any] = {}
    gradient = run.cotangents([ones_for(output)], retain=False, watch=lambda node, ct: watch_cotangent(swept, node, ct))
    return explain_run(run, inputs, title, swept, gradient[0] if len(args) == 1 else gradient)


def jacobian_explanation(fun: Callable[..., Any], args: Sequence[Any], names: Sequence[str], title: str) -> Explanation:
    """Explain a function of numbers and arrays that gives a real array: one reverse pass for each of its elements.

    Adjoints have the axes of the result, and then those of the step.
    """
    run = Recording("explain", fun, args, {}, range(len(args)), False, TapeListing)
    (output,) = run.outputs
    shape = np.shape(raw(output))
    passes: list[dict[Node, Any]] = []
    rows: list[tuple[Any, ...]] = []
    for j in range(math.prod(shape)):
        unit = np.zeros(shape)
        unit.reshape(-1)[j] = 1.0
        swept: dict[Node, Any] = {}
        watch = functools.partial(watch_cotangent, swept)
        rows.append(run.cotangents([unit[()]], retain=True, watch=watch))
        passes.append(swept)
    adjoints = {
        node: stack_rows([one.get(node, np.zeros(node.shape)) for one in passes], shape)
        for node in dict.fromkeys(node for one in passes for node in one)
    }
    gradient = tuple(stack_rows([raw(x) for x in column], shape) for column in zip(*rows, strict=True))
    return explain_run(run, names, title, adjoints, gradient[0] if len(args) == 1 else gradient)


def stack_rows(rows: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Return derivatives of the elements of a result as one array, the axes of the result first."""
    found = np.stack(list(map(np.asarray, rows)))
    return found.reshape((*shape, *found.shape[1:]))[()]


def explain_run(
    run: Recording, inputs: Sequence[str], title: str, swept: Mapping[Node, Any], gradient: Any
) -> Explanation:
    """Return the explanation of what was recorded and swept."""
    listing = run.tape
    assert isinstance(listing, TapeListing)
    known = name_results(listing, run.nodes, inputs)
    return Explanation(
        title=title,
        inputs=tuple(ExplainedStep(name, "", elements_now(x)) for name, x in zip(inputs, run.leaves, strict=True)),
        forward=tuple(step for operation in listing.operations for step in steps_of(operation, known)),
        reverse=tuple(adjoints(swept, run.nodes, known, listing.same)),
        value=run.result(),
        gradient=gradient,
    )


def watch_cotangent(swept: dict[Node, Any], node: Node, ct: Any) -> None:
    """Keep the complete cotangent of a node; an operation with several results has none of its own."""
    if not isinstance(ct, list):
        swept[node] = elements_now(ct)


def adjoints(
    swept: Mapping[Node, Any],
    inputs: Sequence[Node],
    known: Mapping[Reference, str],
    same: Mapping[Reference, Reference],
) -> list[Adjoint]:
    """Return the reverse steps: those of operations in the order of the sweep, then those of the inputs.

    What is the same as something before it has no step of its own.
    """
    terms: dict[Reference, list[str]] = {}
    listed = [node for node in swept if node not in same]
    for node in listed:
        for parent in dict.fromkeys(same.get(x, x) for x in parents_of(node)):
            terms.setdefault(parent, []).append(f"{known[node]}' * d{known[node]}/d{known[parent]}")
    leaves = set(inputs)
    order = [*(node for node in listed if node not in leaves), *reversed(inputs)]
    found = []
    for node in order:
        text = sum_of(terms.get(node, ["1" if node in swept else "0"]))
        value = swept[node] if node in swept else np.zeros(node.shape, node.dtype)[()]
        found.append(Adjoint(f"{known[node]}'", text, value))
    return found


def sum_of(terms: Sequence[str]) -> str:
    """Return a sum as text, with the end of a very long one counted."""
    if len(terms) <= TERMS + 1:
        return " + ".join(terms)
    return f"{' + '.join(terms[:TERMS])} + ... ({len(terms) - TERMS} more)"


def argument_names(fun: Callable[..., Any], count: int) -> list[str]:
    """Return the names of the first positional arguments of a function."""
    try:
        parameters = list(signature(fun).parameters.values())
    except (TypeError, ValueError):  # some built-in functions do not tell
        parameters = []
    names: list[str] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}[{i}]" for i in range(count - len(names))]
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
    return names[:count] + [f"x{i + 1}" for i in range(len(names), count)]


def leaf_names(arg: Any, root: str) -> list[str]:
    """Return a name for each leaf of an argument, as one would write it: `p`, `p['w']`, `p.rate`, `p[0]`."""
    leaves, structure = flatten(arg)
    names = places_in(structure, root)
    for name, leaf in zip(names, leaves, strict=True):
        require_differentiable(name, leaf)
    return names


def require_differentiable(name: str, leaf: Any) -> None:
    """Raise a DtypeError unless a leaf of an argument is a float or complex number, array or Tensor."""
    dtype = getattr(leaf, "dtype", None)
    if isinstance(leaf, float | complex) or (isinstance(dtype, np.dtype) and is_differentiable(dtype)):
        return
    given = f"{name} of type {type(leaf).__name__}" if dtype is None else f"{name} of dtype {dtype}"
    needed = "floats, arrays or Tensors of floats (or containers of them) are needed to differentiate"
    raise DtypeError("explain", f"an argument {given}", needed, "Convert it to float, or pass it by keyword")


def title_of(fun: Callable[..., Any], names: Sequence[str]) -> str:
    """Return what an explanation of a function is headed with: its name and arguments."""
    name = str(attribute(fun, "__name__", type(fun).__name__))
    return f"lambda {', '.join(names)}" if name == "<lambda>" else f"{name}({', '.join(names)})"


def forward_explanation(fun: Callable[..., Any], args: Sequence[Any], names: Sequence[str], title: str) -> Explanation:
    """Explain a function of numbers and arrays, and how forward mode computes its derivatives.

    There is one pass for each element of each argument. The derivatives of a step by an argument have the axes of the
    step and then those of the argument.
    """
    tangents: dict[str, Sequence[Any]] = {}
    gradient: list[Any] = []
    output: Any = None
    steps: list[ExplainedStep] = []
    for i, name in enumerate(names):
        shape = np.shape(args[i])
        columns: list[list[Any]] = []
        slopes: list[Any] = []
        for seed in unit_vectors(args[i]):
            listing, output, slope, inputs = one_pass(fun, args, i, seed)
            steps = steps or name_steps(listing, inputs, names)
            slopes.append(elements_now(slope))
            columns.append([seed if j == i else None for j in range(len(args))])
            columns[-1] += [t for operation in listing.operations for t in operation.tangents]
        values = [*map(np.asarray, args), *(step.value for step in steps)]
        tangents[name] = [
            stack_tangents([np.zeros(np.shape(value)) if t is None else t for t in row], shape)
            for value, row in zip(values, zip(*columns, strict=True), strict=True)
        ]
        gradient.append(stack_tangents(slopes, shape))
    return Explanation(
        title=title,
        inputs=tuple(ExplainedStep(name, "", elements_now(x)) for name, x in zip(names, args, strict=True)),
        forward=tuple(steps),
        reverse=(),
        value=raw(output),
        gradient=gradient[0] if len(gradient) == 1 else tuple(gradient),
        tangents=tangents,
    )


def unit_vectors(x: Any) -> Iterator[Any]:
    """Yield a tangent for each element of an argument."""
    size, shape = np.size(x), np.shape(x)
    for j in range(size):
        unit = np.zeros(size)
        unit[j] = 1.0
        yield unit.reshape(shape)[()]


def one_pass(
    fun: Callable[..., Any], args: Sequence[Any], place: int, seed: Any
) -> tuple[ForwardListing, Any, Any, list[Reference]]:
    """Evaluate a function along one direction; return what was listed, value, slope, and what stands for arguments."""
    listings: list[ForwardListing] = []
    inputs: list[Reference] = []

    def make_listing(level: int, label: Callable[[], str]) -> ForwardListing:
        listings.append(ForwardListing(level, label))
        return listings[0]

    def function(*values: Any) -> Any:
        inputs.extend(listings[0].result_reference(x) for x in values)
        return fun(*values)

    directions = [seed if i == place else np.zeros(np.shape(x))[()] for i, x in enumerate(args)]
    output, slope = push_forward("explain", function, args, directions, kind=make_listing)
    return listings[0], output, slope, inputs


def name_steps(listing: ForwardListing, inputs: Sequence[Reference], names: Sequence[str]) -> list[ExplainedStep]:
    """Return the steps of a pass."""
    known = name_results(listing, inputs, names)
    return [step for operation in listing.operations for step in steps_of(operation, known)]


def stack_tangents(tangents: Sequence[Any], shape: tuple[int, ...]) -> Any:
    """Return the derivatives along unit vectors as one array, the axes of the argument last."""
    found = np.stack([np.asarray(t) for t in tangents], axis=-1) if tangents else np.zeros(0)
    return found.reshape((*found.shape[:-1], *shape))[()]
