"""Tests of lanes of `autograd.Function`: one call for all in every composition, lane by lane only where needed."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from tests.samples.base import normal
from wengert.autograd import Function, once_differentiable
from wengert.core.containers.tree_leaves import flatten
from wengert.errors import GraphError

CALLS: list[str] = []
X, Y = normal(4, 3), normal(4)


class Rich(Function):
    """Have two results and a count, one of them constant, and save an argument, a result and something else."""

    @staticmethod
    def forward(x: Any, y: Any, power: int) -> Any:
        CALLS.append("forward")
        scaled = x * y
        return scaled**power, np.sum(x), np.argmax(x), scaled * 0.0 + 1.0

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, y, ctx.power = inputs
        ctx.mark_non_differentiable(output[3])
        ctx.save_for_backward(x, output[1], None, x * y * 1.0, y)

    @staticmethod
    def backward(ctx: Any, ct: Any, ct_sum: Any, _ct_index: Any, ct_ones: Any) -> Any:
        CALLS.append("backward")
        x, total, nothing, _, y = ctx.saved_tensors
        assert nothing is None
        assert total.shape == ct_sum.shape == ()
        assert ct_ones is None or ct_ones.shape == x.shape
        inner = ct * ctx.power * (x * y) ** (ctx.power - 1)
        return inner * y + ct_sum, np.sum(inner * x), None


class Own(Rich):
    """Have a forward rule, too."""

    @staticmethod
    def jvp(ctx: Any, t_x: Any, t_y: Any, _t_power: Any) -> Any:
        CALLS.append("jvp")
        x, _, _, _, y = ctx.saved_tensors
        t_x = np.zeros_like(x) if t_x is None else t_x
        t_y = np.zeros_like(y) if t_y is None else t_y
        return ctx.power * (x * y) ** (ctx.power - 1) * (t_x * y + x * t_y), np.sum(t_x), None, None


def plain(x: Any, y: Any) -> Any:
    return np.sum((x * y) ** 3) * np.sum(x) + x[0]


def of(function: Any) -> Any:
    """Return the same as `plain`, by a Function."""

    def program(x: Any, y: Any) -> Any:
        scaled, total, index, ones = function.apply(x, y, 3)
        return np.sum(scaled * ones) * total + index * 0.0 + x[0]

    return program


def one_direction(f: Any) -> Any:
    return lambda x, y: wg.jvp(f, (x, y), (x * x, y))


def summed(f: Any) -> Any:
    return lambda x, y: np.sum(wg.vmap(f)(x, y) ** 2)


COMPOSITIONS = {
    "vmap": wg.vmap,
    "vmap, shared": lambda f: lambda x, y: wg.vmap(f, (0, None))(x, y[0]),
    "vmap, other axes": lambda f: lambda x, y: wg.vmap(lambda y, x: f(x, y), (0, 1))(y, x.T),
    "vmap(grad)": lambda f: wg.vmap(wg.grad(f, (0, 1))),
    "vmap(vjp)": lambda f: wg.vmap(lambda x, y: wg.vjp(f, x, y)[1](np.float64(2.0))),
    "vmap(jvp)": lambda f: wg.vmap(one_direction(f)),
    "vmap(hessian)": lambda f: wg.vmap(wg.jacfwd(wg.grad(f))),
    "vmap(grad(grad))": lambda f: wg.vmap(wg.grad(lambda x, y: np.sum(wg.grad(f)(x, y) ** 2))),
    "grad(vmap)": lambda f: wg.grad(summed(f), (0, 1)),
    "grad(vmap), shared": lambda f: lambda x, y: wg.grad(lambda y: np.sum(wg.vmap(f, (0, None))(x, y)))(y[0]),
    "jvp(vmap)": lambda f: one_direction(wg.vmap(f)),
    "jacfwd(grad(vmap))": lambda f: lambda x, y: wg.jacfwd(wg.grad(lambda y: summed(f)(x, y)))(y),
    "vmap(vmap)": lambda f: wg.vmap(wg.vmap(f, (None, 0)), (0, None)),
    "vmap(vmap(grad))": lambda f: wg.vmap(wg.vmap(wg.grad(f, (0, 1)), (None, 0)), (0, None)),
    "grad(vmap(vmap))": lambda f: wg.grad(
        lambda x, y: np.sum(wg.vmap(wg.vmap(f, (None, 0)), (0, None))(x, y) ** 2), (0, 1)
    ),
    "taylor(vmap)": lambda f: lambda x, y: wg.taylor(wg.vmap(f), (x, y), (x, y), 2),
}


@together("traced", [False, True])
@together("function", [Rich, Own])
@together("composition", COMPOSITIONS)
def test_one_call_for_all_lanes(composition: str, function: Any, traced: bool) -> None:
    compose = COMPOSITIONS[composition]
    program = wg.jit(compose(of(function))) if traced else compose(of(function))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (1.0, 0.5):  # the second runs what was traced for the first
            CALLS.clear()
            found, wanted = flatten(program(X * scale, Y))[0], flatten(compose(plain)(X * scale, Y))[0]
            for value, expected in zip(found, wanted, strict=True):
                np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)
            assert CALLS.count("forward") < 8 if traced else CALLS.count("forward") == 1
    if not traced and function is Own:
        assert ("jvp" in CALLS) == any(mode in composition for mode in ("jvp", "hessian", "taylor", "jacfwd"))


def test_vmap_of_traced_functions() -> None:
    for function in (Rich, Own):
        found = wg.vmap(wg.jit(wg.grad(of(function))))(X, Y)
        np.testing.assert_allclose(found, wg.vmap(wg.grad(plain))(X, Y))


class Looking(Function):
    """Look at elements in one method."""

    where = "forward"

    @staticmethod
    def seen(method: str, x: Any) -> Any:
        CALLS.append(method)
        return wg.asarray(x.numpy() * 1.0) if method == Looking.where else x

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return Looking.seen("forward", x) ** 2

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, ct: Any) -> Any:
        return 2 * ctx.saved_tensors[0] * Looking.seen("backward", ct)

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return 2 * ctx.saved_tensors[0] * Looking.seen("jvp", t)


@pytest.mark.filterwarnings("ignore:vmap. Looking has no batch rule")
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("where", ["forward", "backward", "jvp"])
def test_what_looks_at_elements_runs_lane_by_lane(where: str, depth: int, monkeypatch: Any) -> None:
    def lanes_of(f: Any) -> Any:
        return wg.vmap(f) if depth == 1 else wg.vmap(wg.vmap(f))

    monkeypatch.setattr(Looking, "where", where)
    square = lambda x: np.sum(Looking.apply(x))
    lanes = X if depth == 1 else X[None]
    CALLS.clear()
    np.testing.assert_array_equal(lanes_of(Looking.apply)(lanes), lanes**2)
    assert (CALLS.count("forward") == 1) == (where != "forward")
    np.testing.assert_array_equal(lanes_of(wg.grad(square))(lanes), 2 * lanes)
    np.testing.assert_array_equal(wg.grad(lambda x: np.sum(lanes_of(square)(x)))(lanes), 2 * lanes)
    np.testing.assert_array_equal(wg.jvp(lanes_of(Looking.apply), (lanes,), (lanes,))[1], 2 * lanes**2)
    moved = lanes_of(lambda x: wg.jvp(Looking.apply, (x,), (x,))[1])
    np.testing.assert_array_equal(moved(lanes), 2 * lanes**2)


def test_the_warning_names_the_function() -> None:
    class Single(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2 if x > 0 else x

    text = "^vmap: Single has no batch rule and runs lane by lane; declare one for speed$"
    with pytest.warns(UserWarning, match=text) as caught:
        wg.vmap(Single.apply)(Y)
    assert caught[0].filename == __file__


def test_results_that_are_the_same_in_all_lanes() -> None:
    class Shares(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, w: Any) -> Any:
            return np.ones(2), w * 2.0, x

        @staticmethod
        def backward(ctx: Any, ct: Any, ct_w: Any, ct_x: Any) -> Any:
            return ct_x, ct_w * 2.0

    ones, doubled, same = wg.vmap(Shares.apply, (0, None))(X, wg.tensor(Y))
    np.testing.assert_array_equal(ones, np.ones((4, 2)))
    np.testing.assert_array_equal(doubled, np.tile(2 * Y, (4, 1)))
    np.testing.assert_array_equal(same, X)
    found = wg.grad(lambda w: np.sum(wg.vmap(Shares.apply, (0, None))(X, w)[1]))(Y)
    np.testing.assert_array_equal(found, np.full(4, 8.0))


def test_writes_in_lanes_reach_nobody_else() -> None:
    class Writes(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x += 1.0
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            ct *= 10.0
            return ct

    def program(x: Any) -> Any:
        y = x * 2.0
        Writes.apply(y[1:])
        return y

    lanes = X.copy()
    wanted = lanes * 2.0 + [0.0, 1.0, 1.0]
    np.testing.assert_array_equal(wg.vmap(program)(lanes), wanted)
    np.testing.assert_array_equal(lanes, X)
    slopes = wg.grad(lambda x: np.sum(wg.vmap(program)(x)))(lanes)
    np.testing.assert_array_equal(slopes, np.tile([2.0, 20.0, 20.0], (4, 1)))
    np.testing.assert_array_equal(wg.jit(wg.vmap(program))(lanes), wanted)


def test_attributes_of_lanes() -> None:
    class Stores(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            ctx.parts = [x * 2, factor] if factor > 1 else factor
            return x * x

    np.testing.assert_array_equal(wg.vmap(lambda x: Stores.apply(x, 1.0))(Y), Y**2)
    with pytest.raises(GraphError, match=r"^Stores\.forward: ctx\.parts, which differs from lane to lane under vmap"):
        wg.vmap(lambda x: Stores.apply(x, 2.0))(Y)


def test_captured_values_in_lanes() -> None:
    class Saves(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(weight)
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct * ctx.saved_tensors[0]

    weight = wg.tensor(3.0, requires_grad=True)
    x = wg.tensor(Y, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wg.vmap(Saves.apply)(x).sum().backward()
    np.testing.assert_array_equal(x.grad, np.full(4, 3.0))


@pytest.mark.parametrize("native", [False, True])
def test_python_numbers_give_way_in_lanes_of_graphs_as_they_do_in_one(native):
    def counted(x):
        return x + 0.5 * wg.while_loop(lambda c: (c[0] < 3) & (c[1] < 1), lambda c: (c[0] + 1, c[1] * 2), (0, x))[0]

    f = wg.jit(wg.vmap(lambda c, x: wg.cond(c > 0, counted, lambda x: x, x)), native=native)
    found = f(np.array([1, -1, 1]), np.array([0.25, 0.5, 2.0], np.float32))
    assert found.dtype == np.float32
    assert found.tolist() == [1.25, 0.5, 2.0]


def test_rules_that_choose_in_loops_that_go_on_in_some_lanes() -> None:
    def chosen(t: Any) -> Any:
        return wg.cond(np.sum(t) > 0.3, np.sin, lambda t: t * 0.5 + 0.1, t)

    def pull(t: Any, ct: Any) -> Any:
        return (wg.cond(np.sum(t) > 0.3, lambda t, ct: ct * np.cos(t), lambda t, ct: ct * 0.5, t, ct),)

    rule = wg.custom_rule(chosen)
    rule.defvjp(lambda t: (chosen(t), t), pull)

    def end(f: Any, x: Any, r: Any, n: Any) -> Any:
        return wg.while_loop(lambda c: c[1] < n, lambda c: (f(r * 1.0) + 0.0 * c[0], c[1] + 1), (np.sin(x), 0))[0]

    def total(f: Any, x: Any, r: Any) -> Any:
        return np.sum(wg.vmap(lambda r, n: end(f, x, r, n))(r, np.array([1, 0, 2])) ** 2)

    x, r = np.array([0.2, 0.7]), np.array([0.2, 0.4, 0.6])
    for transform in (lambda f: wg.jvp(f, (x, r), (x, r)), lambda f: wg.jvp(wg.grad(f, (0, 1)), (x, r), (x, r))):
        found, expected = (transform(lambda x, r, f=f: total(f, x, r)) for f in (rule, chosen))
        for one, other in zip(flatten(found)[0], flatten(expected)[0], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
