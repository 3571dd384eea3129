"""Tests of what users' declarations claim: wrong results of their functions are errors, with both lines."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert import extend
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.errors import RegistrationError
from wengert.testing import check_rule

X = np.array([1.0, 2.0, 3.0])
NAME = "test_claims.new"


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    yield
    PRIMITIVES.pop(NAME, None)


def in_modes(primitive: Any) -> list[Any]:
    """Return what calls a primitive in several modes, and differentiates it."""

    def f(x: Any) -> Any:
        return np.sum(extend.apply(primitive, x))

    return [
        lambda: wg.grad(f)(X),
        lambda: wg.jacobian(lambda x: extend.apply(primitive, x), mode="rev")(X),
        lambda: wg.hessian(f)(X),
        lambda: wg.jit(wg.grad(f))(X),
        lambda: f(wg.tensor(X, requires_grad=True)).backward(),
    ]


EVALUATIONS = [
    (lambda x: np.sum(x), "shape () for operands of shapes (3,)"),
    (lambda x: x.tolist(), "its evaluation gave a list"),
    (lambda x: None, "its evaluation gave None"),
    (lambda x: (x, x), "its evaluation gave a tuple of 2"),
    (lambda x: np.outer(x, x), "shape (3, 3) for operands of shapes (3,)"),
    (lambda x: np.array(["a"] * 3), "its evaluation gave an ndarray of dtype <U1"),
]


@together("evaluate, text", EVALUATIONS)
def test_evaluations_that_are_not_elementwise(evaluate: Any, text: str) -> None:
    PRIMITIVES.pop(NAME, None)
    primitive = extend.elementwise(NAME, evaluate, d=lambda t, _out, _x: t)
    for call in (
        lambda: extend.apply(primitive, X),
        lambda: extend.apply(primitive, wg.tensor(X)),
        lambda: wg.jvp(lambda x: extend.apply(primitive, x), (X,), (X,)),
        lambda: wg.vmap(lambda x: extend.apply(primitive, x))(np.ones((2, 3))),
        *in_modes(primitive),
    ):
        with pytest.raises(RegistrationError, match=r"^primitive test_claims.new: its evaluation gave "):
            call()
    with pytest.raises(RegistrationError, match=re.escape(text)):
        extend.apply(primitive, X)


def test_both_lines_are_named() -> None:
    primitive = extend.elementwise(NAME, lambda x: np.sum(x), d=lambda t, _out, _x: t)
    line = test_both_lines_are_named.__code__.co_firstlineno
    text = rf"\(File .*claims.*, line {line + 5}, in .*\); \(3,\) is needed .*Correct .*claims.py, line {line + 1}\)"
    with pytest.raises(RegistrationError, match=text):
        extend.apply(primitive, X)


RULES = [
    (lambda t, _out, x: np.sum(t * x), "its rule d gave shape () for t of shape (3,)"),
    (lambda t, _out, x: np.outer(t, x), "its rule d gave shape (3, 3) for t of shape (3,)"),
    (lambda t, _out, x: None, "its rule d gave None"),
    (lambda t, _out, x: [1.0, 2.0, 3.0], "its rule d gave a list"),
]


@together("d, text", RULES)
@pytest.mark.parametrize("singular", [False, True])
def test_rules_of_elementwise_primitives(d: Any, text: str, singular: bool) -> None:
    PRIMITIVES.pop(NAME, None)
    primitive = extend.elementwise(NAME, lambda x: x * x, d=d, singular=singular)
    for call in in_modes(primitive):
        with pytest.raises(RegistrationError, match=re.escape(text.partition(" (")[0])):
            call()
    with pytest.raises(RegistrationError, match=r"its rule d gave"):
        wg.jvp(lambda x: extend.apply(primitive, x), (X,), (X,))


def test_rules_whose_tangents_broadcast_are_right() -> None:
    total = extend.elementwise(NAME, lambda x, y: x + y, d=(lambda t, _o, _x, _y: t, lambda t, _o, _x, _y: t))
    f = lambda x, y: extend.apply(total, x, y)
    found = wg.jvp(f, (X, np.ones((2, 3))), (X, np.zeros((2, 3))))[1]
    np.testing.assert_array_equal(found, [X, X])
    np.testing.assert_array_equal(wg.jvp(lambda x: f(x, np.ones((2, 3))), (X,), (X,))[1], [X, X])
    np.testing.assert_array_equal(wg.grad(lambda x: np.sum(f(x, np.ones((2, 3)))))(X), [2.0, 2.0, 2.0])


def test_numbers_of_pythons_functions_are_results() -> None:
    log_gamma = extend.elementwise(NAME, math.lgamma, d=lambda t, _out, x: float(t))
    assert extend.apply(log_gamma, 3.0) == math.lgamma(3.0)
    assert wg.grad(lambda x: extend.apply(log_gamma, x))(3.0) == 1.0


TRANSPOSES = [
    (lambda ct, _aval: None, "its transpose gave None"),
    (lambda ct, _aval: np.sum(ct), "its transpose gave a cotangent of shape (); the shape (3,) of the operand"),
    (lambda ct, _aval: ct * 2j, "its transpose gave a cotangent of dtype complex128 where all values are real"),
]


@together("transpose, text", TRANSPOSES)
def test_transposes(transpose: Any, text: str) -> None:
    PRIMITIVES.pop(NAME, None)
    primitive = extend.linear(NAME, lambda x: 2 * x, transpose, form=extend.Pointwise())
    for call in in_modes(primitive):
        with pytest.raises(RegistrationError, match=re.escape(text.partition(" (")[0].partition(" of dtype")[0])):
            call()


def test_transposes_of_any_number_of_operands_and_of_products() -> None:
    joined = extend.linear(NAME, lambda *xs: np.concatenate(xs), lambda ct, avals: [ct[:3]], variadic=True)
    with pytest.raises(RegistrationError, match=r"its transpose gave 1 cotangents .*; 2 are needed, one for each"):
        wg.grad(lambda x: np.sum(extend.apply(joined, x, x)))(X)
    del PRIMITIVES[NAME]
    product = extend.multilinear(NAME, lambda x, y: x @ y, (lambda ct, _a, y: ct * y, lambda ct, _a, x: ct))
    with pytest.raises(RegistrationError, match=r"its transpose gave a cotangent of shape \(\)"):
        wg.grad(lambda x: extend.apply(product, X, x))(X)


VJPS = [
    (lambda ct, _out, x: (np.sum(ct * x),), "its vjp gave a cotangent of shape ()"),
    (lambda ct, _out, x: ct * x * (1 + 0j), "its vjp gave a cotangent of dtype complex128 where all values are real"),
    (lambda ct, _out, x: ([0.0, 1.0, 2.0],), "its vjp gave a list"),
]


@together("vjp, text", VJPS)
def test_vjps(vjp: Any, text: str) -> None:
    PRIMITIVES.pop(NAME, None)
    primitive = extend.opaque(NAME, lambda x: x * x / 2, vjp, form=extend.Pointwise())
    with pytest.raises(RegistrationError, match=re.escape(text)):
        wg.grad(lambda x: np.sum(extend.apply(primitive, x)))(X)
    with pytest.raises(RegistrationError, match="its vjp gave"):
        wg.jit(wg.grad(lambda x: np.sum(extend.apply(primitive, x))))(X)


def test_real_parts_of_complex_cotangents_are_taken_where_results_are_complex() -> None:
    wave = extend.opaque(NAME, lambda x: np.exp(1j * x), lambda ct, out, _x: (ct * 1j * out,))
    found = wg.grad(lambda x: np.sum(np.real(extend.apply(wave, x))))(X)
    np.testing.assert_allclose(found, -np.sin(X))


def test_jvps_and_batch_rules_and_numbers_of_results() -> None:
    def declared(evaluate: Any = lambda x: (x, 2 * x), **kwargs: Any) -> Any:
        PRIMITIVES.pop(NAME, None)
        return extend.opaque(NAME, evaluate, lambda ct, _out, _x: (ct[0],), outputs=2, **kwargs)

    with pytest.raises(RegistrationError, match=r"its evaluation gave a list .*; outputs=2 was declared"):
        extend.apply(declared(lambda x: [x, x]), X)
    for jvp, text in (
        (lambda ts, _out, _x: ts[0], "an ndarray"),
        (lambda ts, _out, _x: (np.sum(ts[0]), None), "shape"),
    ):
        primitive = declared(jvp=jvp)
        with pytest.raises(RegistrationError, match=f"its jvp gave {text}"):
            wg.jvp(lambda x, primitive=primitive: extend.apply(primitive, x), (X,), (X,))
    primitive = declared(batch=lambda _primitive, _size, operands, _batched, _params: (operands[0][0], operands[0]))
    with pytest.raises(RegistrationError, match=r"its batch rule gave shape \(3,\) .*; 2 lanes in front are needed"):
        wg.vmap(lambda x: extend.apply(primitive, x))(np.ones((2, 3)))


FORMS = [
    (lambda x: x.sum(-1), extend.Routine("(n)->(n)"), {}, "shape () for operands of shapes (3,)"),
    (
        lambda x, axis: x.sum(axis),
        extend.Routine("(n)->(n)", "axis"),
        {"axis": 0},
        "(3,) is needed by its form, Routine",
    ),
    (lambda x: x, extend.Routine("(n)->()"), {}, "() is needed by its form, Routine"),
    (lambda x: x[:2], extend.Routine("(n)->(n)"), {}, "(3,) is needed by its form, Routine"),
    (lambda x: np.outer(x, x)[:2], extend.Routine("(n)->(m,n)"), {}, ""),
    (lambda x: np.outer(x, x)[:2], extend.Routine("(n)->(n,m)"), {}, "(3, any) is needed by its form, Routine"),
    (lambda x: x, extend.Pointwise(), {}, ""),
    (lambda x: np.cumsum(x)[1:], extend.Pointwise(), {}, "(3,) is needed by its form, Pointwise"),
    (lambda x, axis: np.diff(x, axis=axis), extend.Scan(np.add), {"axis": 0}, "(3,) is needed by its form, Scan"),
    (lambda x, axis, keepdims: x, extend.Reduction(), {"axis": (0,), "keepdims": True}, "(1,) is needed by its form"),
    (lambda x: x, extend.Contraction("i->"), {}, "() is needed by its form, Contraction"),
]


@together("evaluate, form, params, text", FORMS)
def test_forms(evaluate: Any, form: Any, params: Any, text: str) -> None:
    PRIMITIVES.pop(NAME, None)
    primitive = extend.constant(NAME, evaluate, form=form)
    if not text:
        extend.apply(primitive, X, **params)
        return
    with pytest.raises(RegistrationError, match=re.escape(text)):
        extend.apply(primitive, X, **params)
    with pytest.raises(RegistrationError, match="is needed by its form"):  # of examples, which may be smaller
        wg.jit(lambda x: extend.apply(primitive, x, **params))(X)


def test_generalised_ufuncs_are_not_elementwise() -> None:
    with pytest.raises(RegistrationError, match=r"the evaluation is a ufunc of signature \(n\?,k\),\(k,m\?\)"):
        extend.elementwise(NAME, np.matmul, d=(lambda t, _o, _x, y: t, None))


def test_the_library_trusts_itself() -> None:
    assert not any(p.held for name, p in PRIMITIVES.items() if "." not in name)


WRONG: list[tuple[Any, Any, str]] = [
    (
        lambda: extend.constant(NAME, lambda x: x - np.mean(x), form=extend.Pointwise()),
        (X,),
        "vmap gave .* and a loop over the lanes .*; both alike are needed. Correct the form",
    ),
    (lambda: extend.elementwise(NAME, lambda x: x**2, d=lambda t, _o, x: 2 * x), (X,), "the vjp of 2 a - 3 b is not"),
    (
        lambda: extend.elementwise(NAME, lambda x: x**2, d=lambda t, _o, x: 2 * abs(t) * x),
        (X,),
        "the vjp of 2 a - 3 b is not",
    ),
    (
        lambda: extend.elementwise(NAME, lambda x: x**2, d=lambda t, _o, x: 3 * t * x),
        (X,),
        "the vjp gives .* is needed",
    ),
    (lambda: extend.linear(NAME, lambda x: 2 * x + 1, lambda ct, _a: 2 * ct), (X,), "the jvp of 2 a - 3 b is not"),
    (lambda: extend.linear(NAME, lambda x: 2 * x, lambda ct, _a: 3 * ct), (X,), "the vjp gives .* is needed"),
    (lambda: extend.constant(NAME, lambda x: 2 * x), (X,), "the vjp gives 0 in argument 0 .* is needed"),
    (
        lambda: extend.constant(
            NAME, lambda x: np.sort(x)[: int(np.sum(x > 1.5))], form=extend.Routine("(n)->(k)"), batch=None
        ),
        (X,),
        "an evaluation gave float64.2., and from its form follows float64.0.",
    ),
]


@together("declare, args, text", WRONG)
def test_check_rule_finds_what_single_calls_do_not_show(declare: Any, args: Any, text: str) -> None:
    PRIMITIVES.pop(NAME, None)
    with pytest.raises(AssertionError, match=rf"^check_rule\({NAME}\): .*{text}"):
        check_rule(declare(), *args)


def test_check_rule_passes_what_is_right() -> None:
    def turned(ct: Any, _aval: Any, *, axis: int) -> Any:
        return np.flip(ct, axis)

    flip = extend.linear(NAME, lambda x, *, axis: np.flip(x, axis), turned, form=extend.Routine("(n)->(n)", "axis"))
    check_rule(flip, np.arange(6.0).reshape(2, 3), axis=1)
    for name, operands, params in (
        ("sin", (X,), {}),
        ("divide", (X, 2.0), {}),
        ("greater", (X, 2.0), {}),
        ("sign", (X,), {}),
        ("sum", (np.ones((2, 3)),), {"axis": (1,), "keepdims": False, "accurate": False}),
        ("cumsum", (X,), {"axis": 0, "reverse": False}),
    ):
        check_rule(PRIMITIVES[name], *operands, **params)


def sorted_back(ct: Any, _out: Any, x: Any) -> Any:
    return ct[np.argsort(np.argsort(x))]


def written_back(ct: Any, _out: Any, x: Any) -> Any:
    back = ct.copy()
    back[np.argsort(x)] = ct
    return back


def shuffled(ct: Any, _aval: Any, order: Any) -> Any:
    back = wg.numpy.zeros(len(order))
    back[order] += ct[::-1][::-1]
    return back


INDEXING = [
    lambda: extend.opaque(NAME, np.sort, vjp=sorted_back),
    lambda: extend.opaque(NAME, np.sort, vjp=written_back),
    lambda: extend.opaque(NAME, np.sort, vjp=[lambda ct, _aval, out, x: sorted_back(ct, out, x)]),
    lambda: extend.opaque(
        NAME, np.sort, vjp=sorted_back, jvp=lambda ts, _out, x: ts[0][np.argsort(x)], form=extend.Routine("(n)->(n)")
    ),
    lambda: extend.linear(NAME, lambda x, order: x[order], transpose=shuffled),
]


@together("declare", INDEXING)
def test_rules_may_index_cotangents_that_are_constants_with_what_is_traced_or_differs_between_lanes(
    declare: Callable[[], Any],
) -> None:
    PRIMITIVES.pop(NAME, None)
    primitive = declare()
    weights, x = np.arange(4.0), np.array([3.0, -1.0, 2.0, 0.5])
    order = np.argsort(x)
    constants = (np.argsort,) if primitive.kind == "linear" else ()

    def f(x: Any) -> Any:
        return np.sum(extend.apply(primitive, x, *(constant(x) for constant in constants)) * weights)

    wanted = weights[np.argsort(order)]
    np.testing.assert_array_equal(wg.grad(f)(x), wanted)
    np.testing.assert_array_equal(wg.jit(wg.grad(f))(x), wanted)
    assert wg.jvp(wg.jit(f), (x,), (x,))[1] == wanted @ x
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # lane by lane, without a form
        np.testing.assert_array_equal(wg.vmap(wg.grad(f))(np.stack([x, -x])), [wanted, 3.0 - wanted])


@together(
    "evaluate",
    [
        lambda x: x,
        lambda x: x[::-1],
        lambda x: (x, x[1:]),
    ],
)
def test_results_are_written_to_apart_from_operands(evaluate: Any) -> None:
    PRIMITIVES.pop(NAME, None)
    outputs = 2 if isinstance(evaluate(X), tuple) else 1
    primitive = extend.opaque(NAME, evaluate, vjp=lambda ct, _out, _x: None, outputs=outputs)

    def function(x: Any) -> Any:
        x = x * 1.0
        found = extend.apply(primitive, x)
        (found[1] if outputs == 2 else found)[0] = 50.0
        return np.sum(x**2)

    for way in (function, wg.jit(function)):
        np.testing.assert_allclose(way(X), np.sum(X**2))
        np.testing.assert_allclose(wg.grad(way)(X), 2 * X)
