"""Forms: what primitives say of how they run over their elements, and that it is so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.core.abstract import placed
from wengert.core.aval import Aval
from wengert.core.form import Form, Reduction, Routine, Scan, Selection, form_of
from wengert.core.primitive import PRIMITIVES, Primitive
from wengert.errors import GraphError
from wengert.extend import apply, linear

X = np.random.default_rng(0).uniform(0.5, 2.0, (2, 3, 4))


def declared(kind: type[Form]) -> list[Primitive]:
    """Return the primitives of a form."""
    return [p for p in PRIMITIVES.values() if isinstance(form_of(p), kind) and p.name.isidentifier()]


def test_every_form_is_a_hashable_record() -> None:
    for primitive in PRIMITIVES.values():
        form = form_of(primitive)
        assert hash(form) == hash(form)
        assert form == form_of(primitive)


@pytest.mark.parametrize("primitive", declared(Reduction), ids=lambda p: p.name)
def test_a_reduction_combines_by_its_ufunc(primitive: Primitive) -> None:
    form: Any = form_of(primitive)
    if form.combine is None or "initial" in form.operands:
        return
    ufunc = np.multiply if form.combine == "ufunc" else form.combine
    params = {"ufunc": ufunc} if form.combine == "ufunc" else {}
    for axis, keepdims in (((1,), False), ((0, 2), True), ((0, 1, 2), False)):
        found = primitive.evaluate(X, axis=axis, keepdims=keepdims, **params)
        np.testing.assert_allclose(found, ufunc.reduce(X, axis=axis, keepdims=keepdims), rtol=1e-14)


@pytest.mark.parametrize("primitive", declared(Scan), ids=lambda p: p.name)
def test_a_scan_accumulates_by_its_ufunc(primitive: Primitive) -> None:
    form: Any = form_of(primitive)
    ufunc = np.multiply if form.combine == "ufunc" else form.combine
    params = {"ufunc": ufunc} if form.combine == "ufunc" else {"reverse": False}
    for axis in range(3):
        np.testing.assert_array_equal(primitive.evaluate(X, axis=axis, **params), ufunc.accumulate(X, axis))


def test_results_of_reductions_take_no_time_to_find() -> None:
    huge = Aval((10**6, 10**6), np.dtype(float))
    for name in ("sum", "max", "prod"):
        (aval,), order = placed(PRIMITIVES[name], [huge], {"axis": (0,), "keepdims": True})
        assert (aval, order) == (Aval((1, 10**6), np.dtype(float)), None)


def test_selections_ask_where_the_elements_are_known_and_refuse_where_not() -> None:
    (aval,), _ = placed(PRIMITIVES["nonzero"], [np.array([0.0, 2.0, 3.0])], {})
    assert aval.shape == (1, 2)
    for primitive in declared(Selection):
        form: Any = form_of(primitive)
        unknown = [Aval((3,), np.dtype(int))] * (form.decides + 1)
        with pytest.raises(GraphError, match="whose elements are unknown while tracing"):
            placed(primitive, unknown, {"bins": "auto", "range": None} if form.unless else {})


def test_a_routine_of_a_user_takes_stacks_of_lanes() -> None:
    reverse = linear(
        "test_forms.reverse",
        lambda x, axis: np.flip(x, axis),
        transpose=lambda ct, _aval, axis: apply(reverse, ct, axis=axis),
        form=Routine("(n)->(n)", "axis"),
    )
    for axis in (0, 1, -1):
        found = wg.vmap(lambda x, axis=axis: apply(reverse, x, axis=axis))(X)
        np.testing.assert_array_equal(found, np.stack([np.flip(x, axis) for x in X]))
