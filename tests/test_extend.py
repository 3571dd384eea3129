"""Tests of `wengert.extend`: a primitive of each kind declared from outside, and what a declaration must have."""

from __future__ import annotations

import copy
import copyreg
import functools
import importlib
import math
import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import linalg, special

import wengert as wg
from tests.cases import together
from tests.samples.base import normal
from wengert import extend
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.numpy_overrides import FUNCTIONS
from wengert.errors import DtypeError, GraphError, RegistrationError, TracedTruthError, UsageError
from wengert.kernel.evaluation import evaluate
from wengert.lowering.partition import partition_graph
from wengert.lowering.rules.lower import lower
from wengert.testing import check_grads
from wengert.transforms.tracing import trace


@functools.cache
def declared() -> SimpleNamespace:
    """Declare the primitives once, when a test asks: another test looks at what the library itself declares."""
    log_gamma = extend.elementwise(
        "test_extend.log_gamma", special.gammaln, d=lambda t, _out, x: t * extend.apply(polygamma, x, n=0)
    )
    polygamma = extend.elementwise(
        "test_extend.polygamma",
        lambda x, *, n: special.polygamma(n, x),
        d=lambda t, _out, x, *, n: t * extend.apply(polygamma, x, n=n + 1),
    )
    beta = extend.elementwise(
        "test_extend.betaln",
        special.betaln,
        d=(
            lambda t, _out, x, y: t * (extend.apply(polygamma, x, n=0) - extend.apply(polygamma, x + y, n=0)),
            lambda t, _out, x, y: t * (extend.apply(polygamma, y, n=0) - extend.apply(polygamma, x + y, n=0)),
        ),
    )
    shifted = extend.linear(
        "test_extend.shift",
        lambda x, *, axis: np.concatenate(
            [np.zeros_like(x.take([0], axis)), x.take(range(x.shape[axis] - 1), axis)], axis
        ),
        transpose=lambda ct, _aval, *, axis: np.flip(extend.apply(shifted, np.flip(ct, axis), axis=axis), axis),
        form=extend.Routine("(n)->(n)", "axis"),
    )
    cross = extend.multilinear(
        "test_extend.area",
        lambda x, y: x[0] * y[1] - x[1] * y[0],
        (lambda ct, _aval, y: ct * np.stack([y[1], -y[0]]), lambda ct, _aval, x: ct * np.stack([-x[1], x[0]])),
    )
    log_sum = extend.opaque("test_extend.logsumexp", special.logsumexp, vjp=lambda ct, out, x: ct * np.exp(x - out))
    count = extend.constant("test_extend.count", np.count_nonzero)
    return SimpleNamespace(
        log_gamma=log_gamma, polygamma=polygamma, beta=beta, shifted=shifted, cross=cross, log_sum=log_sum, count=count
    )


X, Y = np.array([0.7, 1.5]), np.array([2.0, 0.4])


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x: extend.apply(declared().log_gamma, x), (X,)),
        (lambda x: extend.apply(declared().beta, x, Y), (X,)),
        (lambda x, y: extend.apply(declared().beta, x[:, None], y), (X, Y)),
        (lambda x: extend.apply(declared().shifted, x, axis=0), (X,)),
        (lambda x, y: extend.apply(declared().cross, x, y), (X, Y)),
        (lambda x: extend.apply(declared().log_sum, x), (X,)),
        (lambda x: x * extend.apply(declared().count, x), (X,)),
    ],
)
def test_a_primitive_of_each_kind(f: Any, args: Any) -> None:
    check_grads(f, args, order=2)
    direction = tuple(np.ones_like(x) for x in args)
    _, moved = wg.jvp(f, args, direction)
    _, pullback = wg.vjp(f, *args)
    ct = normal(*np.shape(moved))
    assert np.sum(ct * moved) == pytest.approx(sum(np.sum(c) for c in pullback(ct)))
    series = wg.taylor(f, args, direction, 2)
    np.testing.assert_allclose(series[1], moved)
    twice = wg.jvp(lambda *xs: wg.jvp(f, xs, direction)[1], args, direction)[1]
    np.testing.assert_allclose(series[2], twice / 2, atol=1e-12)
    lanes = [np.stack([x, 2 * x, x + 1]) for x in args]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "vmap: test_extend.* has no batch rule")
        found = wg.vmap(f)(*lanes)
    np.testing.assert_allclose(found, [f(*lane) for lane in zip(*lanes, strict=True)])


def test_the_hessian_of_a_function_from_scipy() -> None:
    found = wg.hessian(lambda x: np.sum(extend.apply(declared().log_gamma, x)))(X)
    np.testing.assert_allclose(found, np.diag(special.polygamma(1, X)))


def test_a_function_of_scipy_takes_tensors_once_something_implements_it(monkeypatch: pytest.MonkeyPatch) -> None:
    special.entr(wg.tensor(X))  # the library's own rule, which other tests are about, is there from now on
    monkeypatch.setitem(FUNCTIONS, special.entr, None)
    entr = extend.elementwise("test_extend.entr", special.entr, d=lambda t, _out, x: t * (-1 - np.log(x)))
    extend.implements(special.entr)(lambda x: extend.apply(entr, x))
    check_grads(special.entr, (X,), order=3)


def test_the_registry_can_be_read_but_not_written() -> None:
    assert extend.PRIMITIVES["add"] is PRIMITIVES["add"]
    assert dict(extend.PRIMITIVES) == PRIMITIVES
    with pytest.raises(TypeError):
        extend.PRIMITIVES["new"] = PRIMITIVES["add"]  # type: ignore[index]


SCALED = """
import wengert as wg
from wengert import extend

scaled = extend.opaque("test_extend.scaled", lambda x: {k} * x, vjp=lambda ct, _out, _x: {k} * ct)

def steps(x):
    return wg.fori_loop(0, {n}, lambda _i, y: extend.apply(scaled, y), x)

slope = wg.jit(wg.grad(steps))
"""


def test_a_module_that_is_reloaded_declares_its_primitives_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "declares_scaled.py"
    file.write_text(SCALED.format(k=2.0, n=3))
    module = importlib.import_module("declares_scaled")
    former, slope, graph = module.scaled, module.slope, wg.graph.trace(module.steps)(1.0)
    assert hash(graph) == hash(wg.graph.trace(module.steps)(1.0))
    assert slope(1.0) == 8.0
    file.write_text(SCALED.format(k=3.25, n=3))
    importlib.reload(module)
    assert extend.PRIMITIVES["test_extend.scaled"] is module.scaled
    assert module.scaled is not former
    assert wg.grad(module.steps)(1.0) == module.slope(1.0) == 3.25**3
    assert wg.vmap(module.slope)(np.ones(2)).tolist() == [3.25**3] * 2
    assert slope(2.0) == 8.0  # what was traced before stays
    anew = wg.graph.trace(module.steps)(1.0)
    assert anew != graph
    assert anew(1.0) == (3.25**3,)
    assert graph(1.0) == (8.0,)
    assert pickle.loads(pickle.dumps(module.scaled)) is module.scaled
    with pytest.raises(UsageError, match=r"save: the operation test_extend\.scaled, which is not registered"):
        wg.graph.save(wg.graph.trace(lambda x: extend.apply(former, x))(1.0), tmp_path / "never")


def test_a_name_that_another_module_declares_or_a_function_again_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    code = "from wengert import extend\nextend.constant('test_extend.same', abs)"
    for name in ("declares_same", "declares_same_too"):
        (tmp_path / f"{name}.py").write_text(code)
    importlib.import_module("declares_same")
    text = r"primitive test_extend\.same: the name is already registered by declares_same; each primitive is declared"
    with pytest.raises(RegistrationError, match=text):
        importlib.import_module("declares_same_too")

    def declare() -> None:
        extend.constant("test_extend.again", abs)

    declare()
    with pytest.raises(RegistrationError, match=r"is already registered by tests\.test_extend; "):
        declare()


@together(
    "declare, text",
    [
        (
            lambda: extend.constant("add", np.add),
            "primitive add: the name is already registered; each primitive is declared once, outside of functions. "
            "Correct its declaration.",
        ),
        (
            lambda: extend.constant("test_extend.new", 3),  # type: ignore[arg-type]
            "primitive test_extend.new: the evaluation is 3; a callable is needed. Correct its declaration.",
        ),
        (
            lambda: extend.elementwise("test_extend.new", np.sin, d=lambda t, x: t),
            "primitive test_extend.new: a rule takes 2 positional arguments; 2 + 1 are needed.",
        ),
        (
            lambda: extend.elementwise("test_extend.new", np.add, d=lambda t, _out, x: t),
            "primitive test_extend.new: 1 rules were given; 2 operands need one each. Correct its declaration.",
        ),
        (
            lambda: extend.elementwise("test_extend.new", np.sin, d=[None]),
            "primitive test_extend.new: no rule was given; a function d(t, out, *xs) is needed for some operand.",
        ),
        (
            lambda: extend.elementwise("test_extend.new", np.sin, d=["rule"]),  # type: ignore[list-item]
            "primitive test_extend.new: a rule is 'rule'; a function is needed. Correct its declaration.",
        ),
        (
            lambda: extend.elementwise("test_extend.new", np.sin),
            "primitive test_extend.new: no rule was given; a function d(t, out, *xs) is needed for some operand.",
        ),
        (
            lambda: extend.opaque("test_extend.new", np.sin),
            "primitive test_extend.new: no vjp was given; a function vjp(ct, out, *operands) is needed.",
        ),
        (
            lambda: extend.linear("test_extend.new", np.sum, transpose=[]),
            "primitive test_extend.new: no transpose was given; one for each linear operand is needed.",
        ),
        (
            lambda: extend.linear("test_extend.new", np.sum, transpose=lambda ct: ct),
            "primitive test_extend.new: a rule takes 1 positional arguments; at least 2 are needed.",
        ),
        (
            lambda: extend.multilinear("test_extend.new", np.dot, (lambda ct, _, y: ct * y,)),
            "primitive test_extend.new: 1 transposes were given; two or more are needed, one per operand.",
        ),
        (
            lambda: extend.opaque("test_extend.new", np.sin, vjp=lambda ct: ct),
            "primitive test_extend.new: a rule takes 1 positional arguments; at least 2 are needed.",
        ),
    ],
)
def test_declarations_that_lack_something(declare: Any, text: str) -> None:
    with pytest.raises(RegistrationError, match=re.escape(text)):
        declare()
    assert "test_extend.new" not in extend.PRIMITIVES


def test_a_vjp_gives_a_cotangent_for_each_operand() -> None:
    product = extend.opaque("test.lacking", lambda a, b: a * b, vjp=lambda ct, _out, _a, b: (ct * b,))
    try:
        text = "^test.lacking: its vjp gave 1 cotangents; 2 are needed, one for each operand. Give None for operands"
        with pytest.raises(GraphError, match=text):
            wg.grad(lambda x: extend.apply(product, x, x))(1.0)
    finally:
        del PRIMITIVES["test.lacking"]


def test_one_cotangent_alone_is_that_of_the_first_operand_only_where_no_other_is_differentiated() -> None:
    product = extend.opaque(
        "test.alone", lambda a, b: a * b, vjp=lambda ct, _out, _a, b: ct * b, form=extend.Pointwise()
    )

    def f(x: Any, y: Any) -> Any:
        return np.sum(extend.apply(product, x, y))

    x, y = np.arange(2.0), np.array([3.0, 5.0])
    try:
        np.testing.assert_array_equal(wg.grad(f)(x, y), y)
        np.testing.assert_array_equal(wg.jit(wg.grad(f))(x, y), y)
        text = "^test.alone: its vjp gave one value that is no tuple; 2 are needed, one for each operand. Give None for"
        for argnums in (1, (0, 1)):
            for transformed in (wg.grad(f, argnums), wg.jit(wg.grad(f, argnums)), wg.vmap(wg.grad(f, argnums))):
                with pytest.raises(GraphError, match=text):
                    transformed(x, y)
    finally:
        del PRIMITIVES["test.alone"]


def test_rules_of_operands_run_where_cotangents_are_wanted() -> None:
    called = []

    def of_first(ct: Any, aval: Any, _out: Any, _a: Any, b: Any, _c: Any) -> Any:
        called.append("first")
        return np.broadcast_to(ct * b, aval.shape)

    def of_second(ct: Any, _aval: Any, out: Any, _a: Any, b: Any, _c: Any) -> Any:
        called.append("second")
        return ct * out / b

    scaled = extend.opaque("test.apart", lambda a, b, _c: a * b, (of_first, of_second, None), form=extend.Pointwise())
    x, y, z = np.arange(2.0), np.array([3.0, 5.0]), np.zeros(2)

    def f(x: Any, y: Any) -> Any:
        return np.sum(extend.apply(scaled, x, y, z))

    try:
        for argnums, want, ran in ((0, y, ["first"]), (1, x, ["second"]), ((0, 1), (y, x), ["first", "second"])):
            for transformed in (wg.grad(f, argnums), wg.jit(wg.grad(f, argnums))):
                called.clear()
                np.testing.assert_array_equal(transformed(x, y), want)
                assert called == ran
        check_grads(f, (x, y), order=2)
        assert scaled.saving((True, False, False)) == (False, (1,))
        assert scaled.saving((False, True, False)) == (True, (1,))
        assert scaled.saving((False, False, True)) == (False, ())
        wrong = extend.opaque("test.wrong", np.multiply, (lambda ct, _aval, _out, _a, b: ct.sum() * b.sum(), None))
        with pytest.raises(RegistrationError, match="its vjp gave a cotangent of shape"):
            wg.grad(lambda x: np.sum(extend.apply(wrong, x, y)))(x)
    finally:
        for name in ("test.apart", "test.wrong"):
            PRIMITIVES.pop(name, None)
    with pytest.raises(RegistrationError, match="no vjp was given"):
        extend.opaque("test_extend.new", np.multiply, (None, None))
    with pytest.raises(RegistrationError, match=re.escape("a rule takes 2 positional arguments; 3 + 2 are needed")):
        extend.opaque("test_extend.new", np.multiply, (lambda ct, aval: ct, None))


def test_primitives_and_graphs_are_pickled() -> None:
    cube = extend.elementwise("test.pickled", lambda x: x**3, d=lambda t, _out, x: t * 3 * x**2)
    try:
        data = pickle.dumps(cube)
        assert pickle.loads(data) is copy.deepcopy(cube) is cube
        graph = wg.graph.trace(lambda x: np.sin(extend.apply(cube, x)))(2.0)
        for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), copy.copy(graph)):
            assert again == graph
            assert again(2.0) == graph(2.0)
    finally:
        del PRIMITIVES["test.pickled"]
    with pytest.raises(UsageError, match=r"^pickle: the primitive test.pickled, which is unknown here; a registered"):
        pickle.loads(data)


def test_graphs_say_what_pickling_needs() -> None:
    graph = wg.graph.trace(np.sin)(1.0)
    kept = copyreg.dispatch_table.pop(type(graph))
    try:
        with pytest.raises(UsageError, match=r"^pickle: a graph, before wengert.graph was.*Write import wengert.graph"):
            pickle.dumps(graph)
    finally:
        copyreg.dispatch_table[type(graph)] = kept


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (linalg.solve_banded, "solve_banded"),
        (linalg.cholesky, "cholesky"),
        (len, "len"),
        ("sin", "'sin'"),
        ((np.add, "sideways"), r"\(<ufunc 'add'>, 'sideways'\)"),
    ],
)
def test_what_does_not_dispatch_cannot_be_implemented(function: Any, name: str) -> None:
    with pytest.raises(UsageError, match=f"implements: {name}, which does not dispatch on its arguments; a ufunc"):
        extend.implements(function)


@pytest.mark.parametrize("function", [np.add, np.sum, np.ones, np.zeros, np.linalg.inv, np.fft.fft, (np.add, "reduce")])
def test_what_dispatches_can_be_implemented(function: Any) -> None:
    assert callable(extend.implements(function))


def test_a_primitive_that_is_called_says_what_to_write() -> None:
    text = "^primitive sin: it was called, and is no function; .* Write wengert.extend.apply.primitive, ...."
    with pytest.raises(DtypeError, match=text):
        PRIMITIVES["sin"](1.0)


@pytest.mark.filterwarnings("ignore:vmap")
def test_rules_that_want_numbers_say_that_they_call_a_primitive() -> None:
    def each(function: Callable[[float], float], x: Any) -> Any:
        return np.array([function(number) for number in np.asarray(x)])

    sine = extend.opaque(
        "test.sine_by_numbers", lambda x: each(math.sin, x), vjp=lambda ct, _out, x: ct * each(math.cos, x)
    )

    def f(x: Any) -> Any:
        return np.sum(extend.apply(sine, x))

    np.testing.assert_array_equal(wg.grad(f)(np.zeros(2)), np.ones(2))
    for transformed, x in (
        (wg.jit(wg.grad(f)), np.ones(2)),
        (wg.grad(wg.jit(f)), np.ones(2)),
        (wg.vmap(wg.grad(f)), np.ones((3, 2))),
    ):
        with pytest.raises(GraphError) as error:
            transformed(x)
        assert str(error.value).endswith(
            ". Declare the function that wants numbers as a primitive, by wengert.extend.opaque, and apply that in the "
            "rule."
        )


def test_custom_rules_that_want_numbers_while_they_are_traced_say_so_too() -> None:
    sine = wg.custom_rule(np.sin)
    sine.defvjp(lambda x: (sine(x), x), lambda x, ct: (ct * math.cos(x),))
    assert wg.grad(sine)(0.0) == 1.0
    with pytest.raises(TracedTruthError, match="Declare the function that wants numbers as a primitive"):
        wg.jit(wg.grad(sine))(0.0)
    sine.defvjp(lambda x: (sine(x), x), lambda x, ct: (ct * float(f"{x:.1f}"),))
    with pytest.raises(TracedTruthError, match="write it into text outside"):
        wg.jit(wg.grad(sine))(0.0)


def bent(x: Any) -> Any:
    return np.where(x > 0, x * x, 3 * x)


def slope(ct: Any, _out: Any, x: Any) -> Any:
    if np.sum(x) > 0:
        return ct * 2 * x
    return ct * 3


def moved(tangents: Any, _out: Any, x: Any) -> Any:
    steps = 0
    while np.sum(x) > 0 and steps < 1:
        steps += 1
    return slope(tangents[0], None, x) * (steps if np.sum(x) > 0 else 1)


@functools.cache
def deciding() -> list[Callable[[Any], Any]]:
    """Declare primitives whose rules choose and repeat, and return functions that apply them."""
    by_each = extend.elementwise("test_extend.bent", bent, d=slope)
    by_vjp = extend.opaque("test_extend.bent_by_vjp", bent, vjp=slope)
    by_both = extend.opaque("test_extend.bent_by_both", bent, vjp=slope, jvp=moved)
    along = extend.linear(
        "test_extend.along", lambda t, x: np.where(x > 0, 2 * t, 3 * t), transpose=lambda ct, _a, x: slope(ct, None, x)
    )
    return [
        *(functools.partial(extend.apply, primitive) for primitive in (by_each, by_vjp, by_both)),
        lambda x: extend.apply(along, np.sin(x), wg.stop_gradient(x)),
    ]


def test_rules_decide_under_jit() -> None:
    for function in deciding():
        tangent = functools.partial(lambda f, x: wg.jvp(f, (x,), (1.0,))[1], function)
        traced = wg.jit(wg.grad(function)), wg.grad(wg.jit(function)), wg.jit(tangent)
        twice = wg.jit(wg.grad(wg.grad(function)))
        for x in (1.5, -2.0):
            for run in traced[: 3 if function is not deciding()[-1] else 2]:
                np.testing.assert_allclose(run(x), wg.grad(function)(x))
            np.testing.assert_allclose(twice(x), wg.grad(wg.grad(function))(x))


# What a primitive computes at one point


def test_a_scalar_gives_a_kernel() -> None:
    def growth(x: Any) -> Any:
        return np.where(x == 0, 0.5, np.expm1(x) / x - np.logaddexp(x, 0.0))

    primitive = extend.elementwise("test_extend.growth", growth, d=lambda t, _out, x: t * np.exp(x), scalar=growth)
    x = np.linspace(-3.0, 3.0, 7)[:3]
    graph = trace(lambda x: extend.apply(primitive, x))(x)
    assert not lower(graph).refused
    segments = partition_graph(graph)
    np.testing.assert_allclose(segments.run([x], evaluate)[0], growth(x), rtol=1e-14)


def test_a_scalar_of_functions_that_kernels_lack_leaves_it_to_numpy() -> None:
    primitive = extend.elementwise("test_extend.bessel", np.i0, d=lambda t, _out, x: t, scalar=np.fft.fft)
    (refused,) = lower(trace(lambda x: extend.apply(primitive, x))(np.ones(3))).refused.values()
    assert refused.reason == "no opcodes for fft"
