"""The form of sums of products: one record of labels, closed under batching and transposition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from wengert.core.forms.element_maps import contracted_maps
from wengert.core.forms.form import Flags, Form, Inputs, Lanes, Params, Shape
from wengert.core.forms.labels import Labels, labelled
from wengert.core.forms.shape_probes import Results, resize_results, unfilled_like
from wengert.core.maps.box_maps import BoxMap
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
from wengert.core.values.aval import Aval, aval_of, shape_of
from wengert.core.values.dispatch import apply


class Contraction(Form):
    """Sums of products by labels, which NumPy evaluates in its own way; lanes and cotangents are `contract`.

    Attributes:
        labels: as for `numpy.einsum`, "ij,jk->ik"; or a function `labels(*shapes, **params)`, the record for operands
            of these shapes; a ValueError if they do not fit. Without it the record is the parameter `labels`.
        matrices: whether two operands with two axes each are multiplied as matrices. Their cotangents are such
            products, too: a small one takes 1 us so, and 4 by labels.
        stacked: whether the evaluation takes stacks of such matrices.
        tangents: whether tangents are `contract` too, as NumPy evaluates in loops of its own that take up to ten times
            as long as BLAS.

    >>> from wengert.core.values.dispatch import apply
    >>> from wengert.core.primitives.declare import multilinear
    >>> import wengert as wg
    >>> area = multilinear("example.area", np.outer, form=Contraction("i,j->ij"))
    >>> wg.grad(lambda x, y: np.sum(apply(area, x, y)))(np.ones(2), np.ones(3))
    array([3., 3.])
    """

    labels: Callable[..., Labels] | str | None = None
    matrices: bool = False
    stacked: bool = False
    tangents: bool = False

    def tangent(self, primitive: Primitive, operands: Sequence[Any], params: Params) -> tuple[Primitive, Params]:
        """Return what multiplies a tangent with the other operands: a primitive and its parameters."""
        if not self.tangents or len(params) > 2:  # a dtype, say, in which it calculates
            return primitive, params
        return PRIMITIVES["contract"], {"labels": self.record(list(map(shape_of, operands)), params)}

    def record(self, shapes: Sequence[Shape], params: Params) -> Labels:
        """Return the record for operands of these shapes."""
        if isinstance(self.labels, str):
            operands, _, result = self.labels.partition("->")
            return labelled(shapes, operands.split(","), result)
        if self.labels is not None:
            return self.labels(*shapes, **params)
        labels: Labels = params["labels"]
        labels.require(shapes)
        return labels

    def results(self, primitive: Primitive, inputs: Inputs, params: Params) -> Results:
        """Take the lengths of the result's labels; where lengths do not fit, the evaluation says so."""
        avals = [aval_of(x) for x in inputs]
        try:
            labels = self.record([aval.shape for aval in avals], params)
        except ValueError:
            return super().results(primitive, inputs, params)
        if self.labels is None:
            return (Aval(labels.shape, np.result_type(*[aval.dtype for aval in avals])),), None
        if primitive.view and labels.rearranges:  # it takes no time to ask for all of it
            return super().results(primitive, list(map(unfilled_like, inputs)), params)
        small = [Aval((1,) * len(aval.shape), aval.dtype) for aval in avals] if not labels.shape else inputs
        return resize_results(primitive.strict, small, params, labels.shape)

    def shapes(self, shapes: Sequence[Shape], params: Params) -> Sequence[Shape] | None:
        """Take the lengths of the result's labels."""
        return (self.record(shapes, params).shape,)

    def batch(
        self, primitive: Primitive, size: int, operands: Sequence[Any], batched: Flags, params: Params
    ) -> Lanes | None:
        """Give the batch axis a label of its own, or let NumPy multiply stacks of matrices."""
        arrays = {np.ndarray}.issuperset(map(type, operands))
        if self.stacked and arrays and all(batched) and {x.ndim for x in operands} == {3}:
            return operands, [(primitive, params)]
        shapes = [shape_of(x)[flag:] for x, flag in zip(operands, batched, strict=True)]
        try:
            labels = self.record(shapes, params).add_lane(size, batched)
        except ValueError:
            avals = [Aval(shape, aval_of(x).dtype) for shape, x in zip(shapes, operands, strict=True)]
            self.results(primitive, avals, params)  # which says what does not fit
            raise
        if primitive.view:
            return operands, [(primitive, {**params, "subscripts": (*labels.operands, labels.result)})]
        # dispatching takes 1 us
        found = labels.evaluate(*operands) if arrays else apply(PRIMITIVES["contract"], *operands, labels=labels)
        dtype = params.get("dtype")
        return [found if dtype is None else found.astype(dtype)], []

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Read off the labels; the other operands are coefficients."""
        shapes = list(map(shape_of, operands))
        return contracted_maps(self.record(shapes, params), position, operands, shapes)

    def transpose(self, i: int, ct: Any, aval: Aval, others: Sequence[Any], params: Params) -> Any:
        """Return the cotangent of operand i: it and the result change places."""
        shape, other = aval.shape, cast(Any, others[0] if len(others) == 1 else None)
        plain = type(other) is np.ndarray and (type(ct) is np.ndarray or isinstance(ct, np.generic))
        if plain and self.matrices and 0 < len(shape) < 3 and 0 < other.ndim < 3:
            return right_factor(ct, other, len(shape)) if i else left_factor(ct, other, len(shape))
        if not others and (order := self.record([shape], params).permutation) is not None:
            return ct.transpose([order.index(axis) for axis in range(len(order))])  # a view, as the operation is
        if not plain:
            shapes = list(map(shape_of, others))
            shapes.insert(i, shape)
            if self.matrices and [*map(len, shapes)] == [2, 2]:
                return others[0].T @ ct if i else ct @ others[0].T
            labels = self.record(shapes, params).transpose(i)
            found = apply(PRIMITIVES["contract"], ct, *others, labels=labels)
        else:  # no Tensors: dispatching takes 1 us
            shapes = [other.shape, shape] if i else [shape, other.shape]
            found = self.record(shapes, params).transpose(i).evaluate(ct, other)
        return found if found.shape == shape else found.reshape(shape)


def left_factor(ct: Any, right: Any, ndim: int) -> Any:
    """Return the cotangent of a matrix or vector on the left of another: 1 us where `contract` takes 4.

    `dot` calls the same functions of BLAS as `matmul` in half of the time, and also for cotangents that are repeated.
    """
    if right.ndim == 2:
        return ct.dot(right.T) if ndim == 2 else right.dot(ct)
    return ct[:, None] * right if ndim == 2 else ct * right


def right_factor(ct: Any, left: Any, ndim: int) -> Any:
    """Return the cotangent of a matrix or vector on the right of another."""
    if left.ndim == 2:
        return left.T.dot(ct) if ndim == 2 else ct.dot(left)
    return left[:, None] * ct if ndim == 2 else left * ct
