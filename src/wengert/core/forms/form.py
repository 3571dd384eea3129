"""Forms: how primitives run over their elements, as plain data beside the kinds of their Jacobians.

A primitive declares its form in its one statement, and two things follow that it need not say:

* `results`: shapes, dtypes and memory order of what it gives. NumPy is asked, with operands as small as will do.
* `batch`: how it reads with a batch axis in front of some operands.

The forms are a closed set, so that other layers can tell them apart: how a compiler runs a primitive follows too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import aligned, lead, shift
from wengert.core.forms.element_maps import broadcast_maps, reduced_maps, running_maps
from wengert.core.forms.shape_probes import (
    Results,
    dummy,
    grown_order,
    probe_strictly,
    resize_results,
    small_example,
    strong_aval,
)
from wengert.core.maps.box_maps import BoxMap
from wengert.core.memory.memory_layout import order_of, strides_of
from wengert.core.memory.views import Step
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import UNKNOWN, Aval, aval_of, is_number, misfit, shape_of
from wengert.core.values.python_numbers import calculate
from wengert.support.records import FieldRecord

Inputs = Sequence[Any]
Flags = Sequence[bool]
Params = Mapping[str, Any]
Names = tuple[str, ...]
Shape = tuple[int, ...]
Steps = Sequence[tuple[Primitive, Params]]
Lanes = tuple[Sequence[Any], Steps]
"""Operands, and operations that are applied one after the other, the first to these; without any the result alone."""


class Form(FieldRecord):
    """Say how a primitive runs over its elements; this one says nothing: NumPy evaluates it, lane by lane."""

    def require_sound(self, name: str) -> None:
        """Raise a RegistrationError where a user declares for a primitive of this name what cannot be."""

    def evaluation(self, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        """Return what a primitive is to be evaluated by: what it was declared with, or that in its surroundings."""
        return evaluate

    def rule(self, rule: Callable[..., Any], leading: int) -> Callable[..., Any]:
        """Return the function that is called for a rule; `leading` arguments stand before its operands."""
        return rule

    def results(self, primitive: Primitive, inputs: Inputs, params: Params) -> Results:
        """Return avals and memory order of the results, here as NumPy gives them for examples of full length.

        Args:
            primitive: the operation.
            inputs: numbers, arrays, variables or anything else with a shape, dtype and strides.
            params: its parameters.
        """
        try:
            return told_by(primitive.strict, inputs, params)
        except Exception as error:
            if primitive.held:
                error.add_note(
                    f"{primitive.name} was evaluated on made-up elements, to learn the shape and dtype of its result. "
                    "If it cannot be, say what the result is like by wengert.extend.Like: form=Like(lambda x: x)."
                )
            raise

    def shapes(self, shapes: Sequence[Shape], params: Params) -> Sequence[Shape] | None:
        """Return the shapes of the results, as far as the form alone tells: UNKNOWN for other lengths, None for others.

        Args:
            shapes: those of the operands.
            params: the parameters of the primitive.
        """
        return None

    def batch(
        self, primitive: Primitive, size: int, operands: Sequence[Any], batched: Flags, params: Params
    ) -> Lanes | None:
        """Return what gives the result of all lanes, batch axis in front; None where lanes are computed one by one.

        Args:
            primitive: the operation.
            size: the number of lanes.
            operands: its operands, those that are marked in `batched` with their batch axes in front.
            batched: which they are.
            params: its parameters.
        """
        return None

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Return which elements of an operand the elements of a result depend on; None where each depends on all.

        Args:
            primitive: the operation.
            position: that of the operand.
            operands: all operands; those that are arrays are known.
            out: the shape and dtype of the result.
            params: the parameters of the primitive.
            which: the position of the result among several.

        Returns:
            Maps from the operand to the result, with the coefficients of a linear operation where these are not 1.
        """
        return None

    def compose(self, primitive: Primitive, params: Params, shape: Shape, before: Step) -> Steps | None:
        """Return the views that are, one after the other, `before` and this one, in fewer steps or in the usual order.

        Args:
            primitive: the view.
            params: its parameters.
            shape: the shape of the array that the step before is taken of.
            before: that step.

        Returns:
            The views; None where they are these two.
        """
        return None


def told_by(evaluate: Callable[..., Any], inputs: Inputs, params: Params) -> Results:
    """Return avals and memory order of what a function gives for examples of full length."""
    found = probe_strictly(evaluate, inputs, params)
    return tuple(map(strong_aval, found)), order_of(found)


def is_of_numbers(primitive: Primitive, inputs: Inputs) -> bool:
    """Tell whether an operation is one of Python's operators between Python's numbers."""
    return primitive.operator is not None and all(aval_of(x).weak for x in inputs)


def number_result(primitive: Primitive, inputs: Inputs) -> Results:
    """Return the type of the Python number that an operator gives."""
    assert primitive.operator is not None
    number = calculate(primitive.name, primitive.operator, primitive.evaluate, list(map(small_example, inputs)))
    return (aval_of(number),), None


class Pointwise(Form):
    """Each element by itself, operands broadcast: ufuncs and all that is elementwise, without saying so.

    >>> from wengert.core.primitives.declare import constant
    >>> from wengert.core.values.dispatch import apply
    >>> import wengert as wg
    >>> odd = constant("example.odd", lambda x: x % 2 == 1, form=Pointwise())
    >>> wg.vmap(lambda x: apply(odd, x))(np.array([1.0, 2.0]))
    array([ True, False])
    """

    def results(self, primitive: Primitive, inputs: Inputs, params: Params) -> Results:
        """Return the broadcast shape, and what NumPy gives for one element, or for two where the order matters."""
        if primitive.view:
            return super().results(primitive, inputs, params)
        shape = broadcast_shape(primitive.name, [aval_of(x).shape for x in inputs])
        if is_of_numbers(primitive, inputs):
            return number_result(primitive, inputs)
        if params or primitive.held or any(map(strides_of, inputs)):  # a parameter may name an order
            samples = list(map(small_example, inputs))
        else:
            samples = [x if is_number(x) else one_of(aval_of(x)) for x in inputs]
        found = probe_strictly(primitive.strict, samples, params)
        avals = tuple([Aval(shape, strong_aval(x).dtype) for x in found])
        if primitive.gives_number:
            avals = tuple([aval._replace(weak=True) for aval in avals])
        return avals, grown_order(found, avals)

    def shapes(self, shapes: Sequence[Shape], _params: Params) -> Sequence[Shape] | None:
        """Broadcast."""
        return (np.broadcast_shapes(*shapes),)

    def batch(
        self, primitive: Primitive, _size: int, operands: Sequence[Any], batched: Flags, params: Params
    ) -> Lanes | None:
        """Align the ranks."""
        return operands if len(operands) == 1 else aligned(operands, batched), [(primitive, params)]

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Broadcast."""
        return broadcast_maps(shape_of(operands[position]), out.shape)


def one_of(aval: Aval) -> Any:
    """Return an element of an aval; in an array if it is a truth of one, since NumPy squares these otherwise."""
    return dummy(aval._replace(shape=(1,) if aval.shape and aval.dtype.kind == "b" else ()))


def broadcast_shape(name: str, shapes: Sequence[Shape]) -> Shape:
    """Return the shape that shapes broadcast to; of sequences, whose lengths are not known, that of their arrays."""
    if all(shape == shapes[0] for shape in shapes):
        return shapes[0]
    depth = shapes[0].count(UNKNOWN)
    try:
        if depth and all(shape.count(UNKNOWN) == depth for shape in shapes):
            return (UNKNOWN,) * depth + np.broadcast_shapes(*[shape[depth:] for shape in shapes])
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise misfit(name, shapes) from error


class Reduction(Form):
    """All elements along axes become one: parameters `axis`, a tuple from 0, and `keepdims`.

    Attributes:
        combine: the ufunc that reduces, or the parameter that holds it; None for a routine with steps of its own.
        operands: what the operands after the first are, where no parameter `extras` tells: "where", a mask, and
            "initial", a starting value.

    >>> from wengert.core.primitives.declare import constant
    >>> from wengert.core.values.dispatch import apply
    >>> import wengert as wg
    >>> def evaluate_range(x, axis, keepdims):
    ...     return np.ptp(x, axis=axis, keepdims=keepdims)
    >>> spread = constant("example.range", evaluate_range, form=Reduction())
    >>> wg.vmap(lambda x: apply(spread, x, axis=(0,), keepdims=False))(np.array([[1.0, 4.0], [2.0, 2.0]]))
    array([3., 0.])
    """

    combine: np.ufunc | str | None = None
    operands: Names = ()

    def results(self, primitive: Primitive, inputs: Inputs, params: Params) -> Results:
        """Leave the axes out; masks and starting values decide about neither shape nor dtype."""
        shape = aval_of(inputs[0]).shape
        found = self.shapes([shape], params)
        if 0 in shape or found is None or params.get("ddof", 0) >= 2:  # of nothing, or of two elements, NumPy complains
            return super().results(primitive, inputs, params)
        return resize_results(primitive.strict, inputs, params, *found)

    def shapes(self, shapes: Sequence[Shape], params: Params) -> Sequence[Shape] | None:
        """Leave the axes out."""
        axis = params["axis"]
        if axis is None or any(i < 0 for i in axis):  # as norm's may be
            return None
        return (tuple([1 if i in axis else n for i, n in enumerate(shapes[0]) if params["keepdims"] or i not in axis]),)

    def spread(self, ct: Any, aval: Aval, params: Params) -> Any:
        """Return for each element of an operand with this aval the result's that it has a part in."""
        axis, rank = params["axis"], len(aval.shape)
        axes = range(rank) if axis is None else [i % rank for i in axis]
        if not params["keepdims"]:
            ct = ct.reshape(tuple([1 if i in axes else n for i, n in enumerate(aval.shape)]))
        return np.broadcast_to(ct, aval.shape)

    def batch(
        self, primitive: Primitive, size: int, operands: Sequence[Any], batched: Flags, params: Params
    ) -> Lanes | None:
        """Reduce the same axes behind the batch axis; of starting values NumPy wants one for all lanes."""
        if len(operands) > 1:
            names = params.get("extras", self.operands)
            if "initial" in names and batched[1 + names.index("initial")]:
                return None
            operands = aligned((lead(operands[0], batched[0], size), *operands[1:]), (True, *batched[1:]))
        return operands, [(primitive, {**params, "axis": shift(params["axis"])})]

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Leave the axes out; a starting value is in every element."""
        shape, axis = shape_of(operands[position]), params["axis"]
        if position:
            return broadcast_maps(shape, out.shape)
        axes = range(len(shape)) if axis is None else [i % len(shape) for i in axis]
        (found,) = reduced_maps(shape, axes, params["keepdims"])
        return [found.using(primitive.weights(operands, out, params))]


class Scan(Form):
    """Results so far, along the axis that the parameter `axis` counts from 0.

    Attributes:
        combine: the ufunc that accumulates, or the parameter that holds it.

    >>> from wengert.core.primitives.declare import constant
    >>> from wengert.core.values.dispatch import apply
    >>> import wengert as wg
    >>> highest = constant("example.highest", lambda x, axis: np.maximum.accumulate(x, axis), form=Scan(np.maximum))
    >>> wg.vmap(lambda x: apply(highest, x, axis=0))(np.array([[1.0, 4.0, 3.0], [2.0, 0.0, 5.0]]))
    array([[1., 4., 4.],
           [2., 2., 5.]])
    """

    combine: np.ufunc | str

    def results(self, primitive: Primitive, inputs: Inputs, params: Params) -> Results:
        """Keep the shape."""
        return resize_results(primitive.strict, inputs, params, aval_of(inputs[0]).shape)

    def shapes(self, shapes: Sequence[Shape], _params: Params) -> Sequence[Shape] | None:
        """Keep the shape."""
        return (shapes[0],)

    def batch(
        self, primitive: Primitive, _size: int, operands: Sequence[Any], _batched: Flags, params: Params
    ) -> Lanes | None:
        """Run along the same axis behind the batch axis."""
        return operands, [(primitive, {**params, "axis": shift(params["axis"])})]

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Depend on what is before, and on the element itself."""
        return running_maps(shape_of(operands[position]), params["axis"], bool(params.get("reverse")))


POINTWISE, UNSAID = Pointwise(), Form()


def form_of(primitive: Primitive) -> Form:
    """Return the form that a primitive declares; what is elementwise, or evaluated by a ufunc, is pointwise."""
    if primitive.form is not None:
        return primitive.form  # type: ignore[return-value]  # all forms are of this class
    return POINTWISE if is_elementwise(primitive) else UNSAID


def is_elementwise(primitive: Primitive) -> bool:
    """Tell whether a primitive broadcasts its operands as ufuncs do, and raises for none of their elements."""
    evaluate = primitive.evaluate
    return primitive.kind == "elementwise" or (isinstance(evaluate, np.ufunc) and evaluate.signature is None)
