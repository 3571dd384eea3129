"""Forms of what moves elements and computes nothing: views, places, selections, regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import all_lead, shift
from wengert.core.forms.element_maps import broadcast_maps, placed_maps, view_maps
from wengert.core.forms.form import (
    Flags,
    Form,
    Inputs,
    Lanes,
    Names,
    Params,
    Steps,
    is_of_numbers,
    number_result,
    told_by,
)
from wengert.core.forms.shape_probes import Results, unfilled_like
from wengert.core.maps.box_maps import BoxMap
from wengert.core.memory.memory_layout import order_of
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.signatures import rule_error
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import at_once
from wengert.errors import GraphError

SIZE = "size"


class View(Form):
    """Elements of the operand in another arrangement: what gives NumPy's views, and copies such as `roll`.

    Attributes:
        axes: the parameters that count axes from 0, each one or a tuple of them.
        front: what parameters with an entry for each axis begin with where there are lanes, by their names; `SIZE`
            stands for the number of lanes, with which shapes begin.

    >>> from wengert.core.primitives.declare import linear
    >>> from wengert.core.values.dispatch import apply
    >>> import wengert as wg
    >>> def turn_back(ct, aval, axis):
    ...     return np.flip(ct, axis)
    >>> turned = linear("example.turned", np.flip, turn_back, view=True, form=View(("axis",)))
    >>> wg.vmap(lambda x: apply(turned, x, axis=0))(np.array([[1.0, 4.0], [2.0, 3.0]]))
    array([[4., 1.],
           [3., 2.]])
    """

    axes: Names = ()
    front: tuple[tuple[str, Any], ...] = ()

    def results(self, primitive: Primitive, inputs: Inputs, params: Params) -> Results:
        """Ask for all of it: a view takes no time."""
        if is_of_numbers(primitive, inputs):
            return number_result(primitive, inputs)
        return super().results(primitive, list(map(unfilled_like, inputs)), params)

    def batch(
        self, primitive: Primitive, size: int, operands: Sequence[Any], batched: Flags, params: Params
    ) -> Lanes | None:
        """Take the same view of every lane: the batch axis stays in front of all others."""
        changed = dict(params)
        for name in self.axes:
            changed[name] = shift(changed[name])
        for name, entry in self.front:
            changed[name] = (size if entry is SIZE else entry, *changed[name])
        return operands, [(primitive, changed)]

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Ask NumPy."""
        aval = aval_of(operands[position])
        if aval.dtype.kind == "c" and out.dtype.kind != "c":  # a part of complex numbers
            return broadcast_maps(aval.shape, out.shape)
        return view_maps(aval.shape, lambda x: primitive.evaluate(x, **params), primitive.view)


class Boxes(View):
    """Copies whose maps are a few boxes, along whose dimensions both arrays go on by one element."""


class Place(View):
    """Operands that fill parts of the result, which is zero elsewhere: what views transpose to, and joins.

    >>> from wengert.core.primitives.declare import linear
    >>> from wengert.core.values.dispatch import apply
    >>> import wengert as wg
    >>> def widen(x, axis):
    ...     return np.concatenate([x, 0 * x], axis)
    >>> wider = linear("example.wider", widen, lambda ct, _, axis: np.split(ct, 2, axis)[0], form=Place(("axis",)))
    >>> wg.vmap(lambda x: apply(wider, x, axis=0))(np.array([[1.0], [2.0]]))
    array([[1., 0.],
           [2., 0.]])
    """

    def batch(
        self, primitive: Primitive, size: int, operands: Sequence[Any], batched: Flags, params: Params
    ) -> Lanes | None:
        """Fill the same parts in every lane."""
        return super().batch(primitive, size, all_lead(size, operands, batched), batched, params)

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Ask NumPy where the part is that the transpose reads."""
        own = [aval_of(x) if i == position else None for i, x in enumerate(operands)]
        return placed_maps(out.shape, lambda ct: primitive.part_of_cotangent(ct, own, position, params))


def stepwise(operands: Sequence[Any], steps: Steps) -> Any:
    """Return what some operations give, one after the other, the first of these operands."""
    for primitive, params in steps:
        operands = (at_once(primitive, *operands, **params),)
    return operands[0]


class Selection(Form):
    """As many results as the elements of an operand say: refused where these are unknown, lane by lane in lanes.

    Attributes:
        instead: what to do instead while tracing, for the error.
        decides: the operand on whose elements the shape depends.
        function: the name of the function, for the error, where it is not the primitive's.
        unless: tells from the parameters whether the shape does not depend on elements after all.

    >>> from wengert.core.primitives.declare import constant
    >>> from wengert.core.values.dispatch import apply
    >>> import wengert as wg
    >>> kept = constant("example.kept", lambda x: x[x > 0], form=Selection("Use numpy.where"))
    >>> wg.jit(lambda x: apply(kept, x))(np.ones(2))
    Traceback (most recent call last):
    wengert.errors.GraphError: example.kept: an array of shape (2,) whose elements are unknown while tracing; a result \
whose shape does not depend on elements is needed. Use numpy.where.
    """

    instead: str
    decides: int = 0
    function: str = ""
    unless: Callable[[Params], bool] | None = None

    def is_free(self, params: Params) -> bool:
        """Tell whether shapes of results do not depend on elements with these parameters."""
        return self.unless is not None and self.unless(params)

    def results(self, primitive: Primitive, inputs: Inputs, params: Params) -> Results:
        """Ask NumPy where the elements are known, else refuse."""
        deciding = inputs[self.decides]
        if self.is_free(params) or isinstance(deciding, np.ndarray | np.generic):
            return super().results(primitive, inputs, params)
        given = f"an array of shape {aval_of(deciding).shape} whose elements are unknown while tracing"
        needed = "a result whose shape does not depend on elements is needed"
        raise GraphError(self.function or primitive.name, given, needed, self.instead)


class Like(Form):
    """Results are like others in shape and dtype: for what cannot be evaluated on made-up elements, or takes long.

    Attributes:
        function: `function(*operands, **params)`: an array of the shape and dtype of the result, or a tuple of them,
            whatever its elements. What it is given has the shapes and dtypes of the operands, but may be made up.

    >>> from scipy.linalg import cho_factor, cho_solve
    >>> from wengert.extend import apply, opaque
    >>> import wengert as wg
    >>> def evaluate_solve(a, b):
    ...     return cho_solve(cho_factor(a), b)
    >>> def solve_vjp(ct, out, a, b):
    ...     back = apply(solve, a, ct)
    ...     return -np.outer(back, out), back
    >>> solve = opaque("example.cho_solve", evaluate_solve, vjp=solve_vjp, form=Like(lambda a, b: b))
    >>> wg.jit(lambda a, b: apply(solve, a, b))(4.0 * np.eye(2), np.ones(2))
    array([0.25, 0.25])
    """

    function: Callable[..., Any]

    def require_sound(self, name: str) -> None:
        """Require a function."""
        if not callable(self.function):
            needed = "a function of the operands that gives what its result is like is needed: Like(lambda x: x)"
            raise rule_error(name, f"{self.function!r:.40} in its form, Like", needed)

    def results(self, primitive: Primitive, inputs: Inputs, params: Params) -> Results:
        """Ask the function."""
        return told_by(self.function, inputs, params)


class Region(Form):
    """Graphs among the parameters: what they give.

    Attributes:
        outputs: `outputs(inputs, params)`: variables, or other things with a shape and dtype, that are as the results.
    """

    outputs: Callable[[Inputs, Params], Sequence[Any]]

    def results(self, _primitive: Primitive, inputs: Inputs, params: Params) -> Results:
        """Give what the graphs give, Python numbers included."""
        found = self.outputs(inputs, params)
        return tuple(map(aval_of, found)), order_of(found)
