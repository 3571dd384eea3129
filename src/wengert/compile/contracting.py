"""Sums of products, by their labels; large ones are left to BLAS."""

from __future__ import annotations

import math

from wengert.compile.index_maps import Index
from wengert.compile.operands import Call, Found, Refused
from wengert.compile.scalars import Scalar
from wengert.compile.sums import reduced
from wengert.compile.views import reshaped
from wengert.core.form import Contraction, form_of
from wengert.core.labels import Labels

__all__ = ["contraction"]

SMALL_PRODUCT = 1 << 15
NARROW = 32
"""Products of few elements, and those of few rows, columns or terms, are computed in kernels; BLAS does the others."""


def contraction(call: Call) -> Found:
    """Lower a sum of products by its labels."""
    form = form_of(call.primitive)
    assert isinstance(form, Contraction)
    labels = (
        form.record(call.shapes, {} if form.labels is None else call.params) if form.labels else call.params["labels"]
    )
    reason = unfit(call, labels)
    if reason:
        return Refused(reason)
    kept = list(labels.result)
    summed = [n for n in dict.fromkeys(n for own in labels.operands for n in own) if n not in kept]
    names = [*kept, *summed]
    space = labels.lengths_of(tuple(names))
    terms = []
    for i, own in enumerate(labels.operands):
        x = reshaped(call.nodes, call.converted(i, call.out.dtype), call.shapes[i], labels.lengths_of(own))
        read = tuple([Index(0, ((names.index(n), 1),) if labels.lengths[n] > 1 else ()) for n in own])
        terms.append(Scalar(call.nodes, x.through(read), space))
    product = terms[0]
    for term in terms[1:]:
        product = product * term
    found = reduced(call.nodes, "add", product.access, space, range(len(kept), len(names)))
    return reshaped(call.nodes, found, labels.lengths_of(labels.result), call.out.shape)


def unfit(call: Call, labels: Labels) -> str:
    """Return why a sum of products is not one for kernels; nothing if it is."""
    if labels.relation is not None:
        return "a convolution"
    if len(set(labels.result)) < len(labels.result):
        return "a result that is filled along a diagonal"
    if call.out.dtype.kind == "b":
        return "products of bools"
    if call.params.get("dtype") is not None or call.params.get("out") is not None:
        return f"the parameters {', '.join(call.params)}"
    work = math.prod([labels.lengths[n] for n in labels_of(labels)])
    if work > SMALL_PRODUCT and (len(call.args) > 2 or narrowest(labels) > NARROW):
        return f"{work} multiplications, for which BLAS is quicker"
    return ""


def labels_of(labels: Labels) -> set[int]:
    """Return the labels of the operands and the result."""
    return {n for own in (*labels.operands, labels.result) for n in own}


def narrowest(labels: Labels) -> int:
    """Return the number of rows, columns or terms of a product of matrices, whichever is smallest."""
    left, right = [set(own) for own in (*labels.operands, ())[:2]]
    result = set(labels.result)
    groups = (result & left) - right, (result & right) - left, (left & right) - result
    return min([math.prod([labels.lengths[n] for n in group]) for group in groups])
