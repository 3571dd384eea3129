"""Tests of what is smooth although it goes through a kink: powers of roots, and roots of powers, where they are 0.

Each case is a function written with a root, and the same without one; their derivatives must agree in every mode.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.core.graph.loop_spec import Items
from wengert.core.values.aval import Aval
from wengert.scipy import linalg
from wengert.scipy.spatial import distance
from wengert.support import config
from wengert.traces.steepness import may_be_infinite

Function = Callable[[Any], Any]
norm = np.linalg.norm
ROWS = np.array([[1.0, 0.0], [2.0, -1.0], [0.5, 3.0]])


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def squared(x: Any) -> Any:
    return np.sum(x * x)


SMOOTH: list[tuple[str, Function, Function]] = [
    ("norm", lambda x: norm(x) ** 2, squared),
    ("exponential", lambda x: np.exp(-(norm(x) ** 2)), lambda x: np.exp(-squared(x))),
    ("scaled", lambda x: np.exp(-0.5 * (2 * norm(x) / 3) ** 2), lambda x: np.exp(-2 / 9 * squared(x))),
    ("square", lambda x: np.square(-norm(x)), squared),
    ("product", lambda x: (lambda n: n * n)(norm(x)), squared),
    ("fourth", lambda x: norm(x) ** 4 + norm(x) ** 2, lambda x: squared(x) ** 2 + squared(x)),
    ("power", lambda x: np.sum(np.power(np.abs(x), 2)), squared),
    ("float power", lambda x: np.sum(np.float_power(np.fabs(x), 2.0)), squared),
    ("elements", lambda x: np.abs(x)[0] ** 2 + np.abs(x)[1] ** 2, squared),
    ("hypot", lambda x: np.hypot(x[0], x[1]) ** 2, squared),
    ("root", lambda x: np.sqrt(squared(x)) ** 2, squared),
    ("rows", lambda x: np.sum(norm(ROWS * x, axis=1, keepdims=True).T ** 2), lambda x: squared(ROWS * x)),
    ("scipy", lambda x: linalg.norm(x) ** 2, squared),
    ("distance", lambda x: distance.euclidean(x, np.zeros(2)) ** 2, squared),
    ("complex", lambda x: np.abs(x[0] + 1j * x[1]) ** 2, squared),
    ("deviation", lambda x: np.std(x) ** 2, np.var),
    ("negative", lambda x: np.sum((x * norm(x)) ** 3), lambda x: np.sum(x**3) * squared(x) * norm(x)),
    ("divided by itself", lambda x: (norm(x) / np.exp(x[0])) ** 2, lambda x: squared(x) / np.exp(2 * x[0])),
    ("times itself", lambda x: (np.cos(x[1]) * norm(x)) ** 2, lambda x: np.cos(x[1]) ** 2 * squared(x)),
    ("root of a power", lambda x: np.sum(np.sqrt(x**4)), squared),
    ("cube root", lambda x: np.sum(np.cbrt(x**3) * x), squared),
    ("root of a square", lambda x: np.sum(np.sqrt(np.square(np.square(x)))), squared),
    ("root of a multiple", lambda x: np.sum(np.sqrt(4 * x**4) + np.cbrt(8 * x**3) * x), lambda x: 4 * squared(x)),
    ("half a power", lambda x: np.sum((x**4 / 4) ** 0.5), lambda x: squared(x) / 2),
    ("root of a product", lambda x: np.sqrt((np.cos(x[1]) * x[0] ** 2) ** 2), lambda x: np.cos(x[1]) * x[0] ** 2),
    ("root of a norm", lambda x: np.sqrt((3 * norm(x)) ** 4), lambda x: 9 * squared(x)),
    ("power of a cube root", lambda x: np.sum((-np.cbrt(x).reshape(2, 1)) ** 6), squared),
    ("size of a square", lambda x: np.sum(np.abs(-(x * x))), squared),
    ("sum of sizes", lambda x: np.einsum("i->", np.abs(x + 1)) ** 2, lambda x: (x[0] + x[1] + 2) ** 2),
]


def by_tape(f: Function, x: Any) -> Any:
    t = wg.tensor(x, requires_grad=True)
    (g,) = wg.autograd.grad(f(t), [t], create_graph=True)
    return np.stack([wg.autograd.grad(g[i], [t], retain_graph=True)[0].numpy() for i in range(len(x))])


def by_taylor(f: Function, x: Any) -> Any:
    def along(v: Any) -> Any:
        return 2 * wg.taylor(f, (x,), (v,), 2)[2]

    first, second = np.eye(2)
    mixed = (along(first + second) - along(first) - along(second)) / 2
    return np.array([[along(first), mixed], [mixed, along(second)]])


def in_a_loop(f: Function) -> Function:
    return lambda x: wg.fori_loop(0, 2, lambda _, total: total + f(x) / 2, 0.0)


SECOND: dict[str, Callable[[Function, Any], Any]] = {
    "hessian": lambda f, x: wg.hessian(f)(x),
    "forward over forward": lambda f, x: wg.jacfwd(wg.jacfwd(f))(x),
    "reverse over reverse": lambda f, x: wg.jacrev(wg.jacrev(f))(x),
    "reverse over forward": lambda f, x: wg.jacrev(wg.jacfwd(f))(x),
    "tape": by_tape,
    "taylor": by_taylor,
    "jit": lambda f, x: wg.jit(wg.hessian(f))(x),
    "jit of reverse over reverse": lambda f, x: wg.jit(wg.jacrev(wg.jacrev(f)))(x),
    "hessian of jit": lambda f, x: wg.hessian(wg.jit(f))(x),
    "lanes": lambda f, x: wg.vmap(wg.hessian(f))(np.stack([x, x + 1]))[0],
    "loop": lambda f, x: wg.hessian(in_a_loop(f))(x),
    "branch": lambda f, x: wg.jit(wg.hessian(lambda x: wg.cond(np.sum(x) < 9, f, squared, x)))(x),
}


@pytest.mark.long
@together("mode, point", [(m, p) for m in SECOND for p in ((0.0, 0.0), (0.3, -0.4)) if not (any(p) and "jit" in m)])
def test_powers_of_roots_have_the_second_derivatives_of_what_they_are(mode: str, point: tuple[float, ...]) -> None:
    x = np.array(point)
    for name, f, same in SMOOTH:
        np.testing.assert_allclose(SECOND[mode](f, x), wg.hessian(same)(x), atol=1e-12, err_msg=name)


@together("name, f, same", SMOOTH[::2])
def test_third_derivatives_agree_too(name: str, f: Function, same: Function) -> None:
    x = np.zeros(2)
    want = wg.jacfwd(wg.hessian(same))(x)
    for third in (wg.jacfwd(wg.hessian(f)), wg.jacrev(wg.jacrev(wg.jacrev(f))), wg.jit(wg.jacfwd(wg.hessian(f)))):
        np.testing.assert_allclose(third(x), want, atol=1e-12)


STEEP: list[tuple[str, Function, Any, Any]] = [
    ("fourth power", lambda x: np.sqrt(x**4), 0.0, 0.0),
    ("square", lambda x: np.sqrt((x - 1) ** 2 * 1.0 + 0 * x), 1.0, 0.0),
    ("cube root", lambda x: np.cbrt(x**3), 0.0, 1.0),
    ("difference", lambda x: np.sum((x - x) ** 2) ** 0.5 + x, 1.0, 1.0),
    ("product", lambda x: (x * x * x * x) ** 0.5, 0.0, 0.0),
    ("arccos", lambda x: np.arccos(np.cos(x)), 0.0, 0.0),
    ("exponential", lambda x: np.sqrt(np.exp(x**2) - 1), 0.0, 0.0),
    ("cosine", lambda x: np.sqrt(1 - np.cos(x)), 0.0, 0.0),
    ("sizes", lambda x: np.arccosh(1 + np.min(abs(x * x))) + np.sqrt(abs(x**2)[0] + 0.0), np.zeros(2), np.zeros(2)),
    ("root", np.sqrt, 0.0, np.inf),
    ("multiple", lambda x: np.sqrt(2 * x), 0.0, np.inf),
    ("dot", lambda x: np.sqrt(x @ x), np.zeros(3), np.zeros(3)),
    ("form", lambda x: np.sqrt(x @ np.diag([1.0, 2.0, 3.0]) @ x), np.zeros(3), np.zeros(3)),
    ("einsum", lambda x: np.sum(np.sqrt(np.einsum("ij,ij->i", x, x))), np.zeros((2, 3)), np.zeros((2, 3))),
    (
        "rows",
        lambda x: np.sum(np.sqrt(np.sum(x * x, 1))),
        np.array([[0.0, 0], [3, 4]]),
        np.array([[0.0, 0], [0.6, 0.8]]),
    ),
    ("matrix", lambda x: np.sum(np.sqrt((x @ np.ones((2, 2))) ** 2 * 1.0)), np.zeros((2, 2)), np.zeros((2, 2))),
]


TIMES_NOTHING: list[tuple[str, Function, Any, Any]] = [
    ("a literal", lambda x: np.sqrt(x) * 0.0, 0.0, 0.0),
    ("a value", lambda x: np.sqrt(x) * np.sin(x), 0.0, 0.0),
    ("a matrix", lambda x: np.sum(np.sqrt(x) @ np.diag([0.0, 1.0])), np.array([0.0, 4.0]), np.array([0.0, 0.25])),
    ("products", lambda x: np.sqrt(np.prod(x)), np.array([0.0, 3.0, 0.0]), np.zeros(3)),
    ("rows", lambda x: np.sum(np.sqrt(np.prod(x, 0))), np.array([[0.0, 1], [0, 4]]), np.array([[0, 1], [0, 0.25]])),
    ("a determinant", lambda x: np.sqrt(np.linalg.det(np.diag(x))), np.zeros(2), np.zeros(2)),
    ("size", lambda x: np.linalg.norm(np.cbrt(x), 3), np.array([0.0, 1.0]), np.array([0.0, 1 / 3])),
    ("a power of a norm", lambda x: np.hypot(np.cbrt(x), 0.0) ** 3, 0.0, 0.0),
]
EAGERLY: list[tuple[str, Function, Any, Any]] = [
    ("products so far", lambda x: np.sum(np.sqrt(np.cumprod(x))), np.array([1.0, 0, 3]), np.array([0.5, np.inf, 0])),
    ("a norm", lambda x: np.linalg.norm(np.cbrt(x)), np.array([0.0, 1.0]), np.array([0.0, 1 / 3])),
    ("a system", lambda x: np.sum(np.sqrt(np.linalg.solve(np.eye(2), x))), np.array([0.0, 1]), np.array([np.inf, 0.5])),
]
"""What would need two products to tell, which graphs have not."""


def gradient_on_the_tape(f: Function, x: Any) -> Any:
    t = wg.tensor(x, requires_grad=True)
    f(t).backward()
    return t.grad.numpy()


FIRST: dict[str, Callable[[Function, Any], Any]] = {
    "reverse": lambda f, x: wg.grad(f)(x),
    "tape": gradient_on_the_tape,
    "forward": lambda f, x: wg.jacfwd(f)(x),
    "jit": lambda f, x: wg.jit(wg.grad(f))(x),
    "gradient of jit": lambda f, x: wg.grad(wg.jit(f))(x),
    "lanes": lambda f, x: wg.vmap(wg.grad(f))(np.stack([x, x]))[1],
    "branch": lambda f, x: wg.grad(lambda x: wg.cond(np.sum(x) < 9, f, np.sum, x))(x),
    "checkpoint": lambda f, x: wg.grad(wg.checkpoint(f))(x),
    "taylor": lambda f, x: np.reshape([wg.taylor(f, (x,), (t,), 1)[1] for t in directions(x)], np.shape(x)),
}


def directions(x: Any) -> Any:
    return [t.reshape(np.shape(x))[()] for t in np.eye(np.size(x))]


@together("mode", FIRST)
def test_infinite_partials_meet_partials_of_zero_as_in_forward_mode(mode: str) -> None:
    traced = mode in ("jit", "gradient of jit", "branch", "checkpoint")
    for name, f, x, want in STEEP + TIMES_NOTHING + ([] if traced else EAGERLY):
        np.testing.assert_allclose(FIRST[mode](f, x), want, err_msg=name)


def test_infinite_cotangents_that_move_do_so_through_products() -> None:
    for f in (lambda x: np.sqrt(np.prod(x)), lambda x: np.sqrt(np.linalg.det(np.diag(x)))):
        found = wg.hessian(f)(np.array([0.0, 4.0]))
        assert found[0, 0] == -np.inf
        np.testing.assert_array_equal(found, wg.jit(wg.hessian(f))(np.array([0.0, 4.0])))


def flat(x: Any) -> Any:
    return x * np.sin(x)


WITHIN: list[Callable[[Function], Function]] = [
    lambda f: lambda x: wg.cond(x < 9, f, np.negative, x),
    lambda f: lambda x: wg.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (0, x))[1],
    wg.checkpoint,
    wg.jit,
]


def behind(f: Function, g: Function) -> Function:
    return lambda x: f(g(x))


def in_two_rounds(f: Function, g: Function) -> Function:
    return lambda x: wg.fori_loop(0, 2, lambda _, s: (f(s[1]), g(s[2]), s[2]), (x, x, x))[0]


def forwards(f: Function) -> Function:
    return lambda x: wg.jvp(f, (x,), (1.0,))[1]


def twice(f: Function) -> Function:
    return wg.grad(wg.grad(f))


ALONG: list[Callable[[Function], Function]] = [
    wg.grad,
    lambda f: wg.jit(wg.grad(f)),
    lambda f: wg.jit(forwards(f)),
    lambda f: forwards(wg.jit(f)),
    lambda f: wg.jit(twice(f)),
    lambda f: wg.jit(lambda x: wg.taylor(f, (x,), (1.0,), 2)),
]


@together("outer, inner", [(np.sqrt, flat), (flat, np.sqrt)])
def test_infinite_partials_pass_operations_that_run_graphs(outer: Function, inner: Function) -> None:
    """One of two functions runs within such an operation, or each in a round of a loop."""
    cases = [in_two_rounds(outer, inner)]
    for run in WITHIN:
        cases += [behind(outer, run(inner)), behind(run(outer), inner)]
    for along in ALONG:
        want = along(behind(outer, inner))(0.0)
        assert not np.any(np.isnan(want))
        for f in cases:
            np.testing.assert_array_equal(along(f)(0.0), want)


def test_native_code_guards_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "NATIVE", True)
    f = behind(np.sqrt, wg.checkpoint(in_two_rounds(flat, np.sin)))
    slopes = wg.jit(wg.vmap(wg.grad(f)), native=True)(np.array([0.0, 0.5]))
    np.testing.assert_allclose(slopes, [0.0, wg.grad(lambda x: np.sqrt(flat(np.sin(x))))(0.5)])
    series = wg.jit(lambda n, x: wg.taylor(lambda x: n * np.sqrt(x), (x,), (np.ones(2),), 1), native=True)
    np.testing.assert_array_equal(series(np.array([2, 0]), np.zeros(2))[1], [np.inf, 0.0])


@together("name, f, x", [case[:3] for case in STEEP if np.all(np.isfinite(case[3]))])
def test_second_derivatives_behind_infinite_partials_agree_in_every_mode(name: str, f: Function, x: Any) -> None:
    want = wg.hessian(f)(x)
    assert np.all(np.isfinite(want))
    for second in (wg.jacfwd(wg.jacfwd(f)), wg.jacrev(wg.jacrev(f)), wg.jacrev(wg.jacfwd(f))):
        np.testing.assert_allclose(second(x), want)
        np.testing.assert_allclose(wg.jit(second)(x), want)


BY_ORDER: list[tuple[str, Function, float, list[float]]] = [
    ("an even power within one that is not whole", lambda x: np.cbrt((x * x) ** 4.5), -1.5, [-6.75, 9.0, -6.0]),
    ("odd power", lambda x: np.sqrt(x**3), 0.0, [0.0, np.inf]),
    ("odd product", lambda x: np.sqrt(x * x * x), 4.0, [3.0, 0.375, -3 / 64]),
    ("between cubes", lambda x: np.cbrt(x**4), 0.0, [0.0, np.inf]),
    ("between cubes, below 0", lambda x: np.cbrt(x**4), -1.0, [-4 / 3, 4 / 9, 8 / 27]),
    ("between cubes, odd", lambda x: np.cbrt(x**7), 0.0, [0.0, 0.0, np.inf]),
    ("a multiple", lambda x: np.sqrt(-3 * (-3 * x**3)), 0.0, [0.0, np.inf, -np.inf]),
    ("a power of a root", lambda x: np.power(8 * np.sqrt(x), 3), 0.0, [0.0, np.inf, -np.inf]),
    ("a power times itself", lambda x: np.sqrt(x**2 * x), 0.0, [0.0, np.inf, -np.inf]),
    ("a root times another", lambda x: np.sqrt(x) * np.cbrt(2 * x), 0.0, [0.0]),
    ("a root of a polynomial", lambda x: np.arccos(1 - x), 0.0, [np.inf, -np.inf]),
    ("itself", lambda x: np.power(x**0.5, 2) + np.cbrt(-x) ** 3, 0.0, [0.0, 0.0, 0.0]),
    (
        "elements of one root",
        lambda x: (lambda v: v[0] * v[1])(np.sqrt(np.stack([x, x + 1]))) ** 2,
        1.0,
        [3.0, 2.0, 0.0],
    ),
    ("a root of a root", lambda x: np.sqrt(np.sqrt(2 * x)), 0.0, [np.inf, -np.inf, np.inf]),
    ("what is constant", lambda x: np.sqrt(x**0), 0.0, [0.0, 0.0, 0.0]),
    ("a view", lambda x: np.cbrt((np.ones(2) * x**3)[::-1])[0], 0.0, [1.0, 0.0]),
    ("a copy", lambda x: np.sum(np.cbrt((np.ones(1) * x**3).copy()) * x), 0.0, [0.0, 2.0]),
    ("with a cusp", lambda x: np.cbrt(x**5), 0.0, [0.0, 0.0]),
    ("cube root", np.cbrt, 0.0, [np.inf, -np.inf, np.inf]),
    ("cube root from below", np.cbrt, -0.0, [np.inf, np.inf, np.inf]),
    ("arccosh", np.arccosh, 1.0, [np.inf, -np.inf, np.inf]),
    ("two infinities", lambda x: np.exp(np.sqrt(x)), 0.0, [np.inf, np.nan]),
]


@together("name, f, x, want", BY_ORDER)
def test_roots_have_the_same_derivatives_in_every_order_of_modes(
    name: str, f: Function, x: float, want: list[float]
) -> None:
    along: dict[str, Callable[[Function], Function]] = {
        "forward": lambda g: lambda x: wg.jvp(g, (x,), (1.0,))[1],
        "reverse": lambda g: lambda x: wg.grad(g)(x),
    }
    for k, right in enumerate(want, 1):
        for modes in itertools.product(along, repeat=k):
            derivative = f
            for mode in modes:
                derivative = along[mode](derivative)
            np.testing.assert_allclose(derivative(x), right, err_msg=str(modes))
            if k < 3:
                np.testing.assert_allclose(wg.jit(derivative)(x), right, err_msg=f"jit of {modes}")
        np.testing.assert_allclose(wg.taylor(f, (x,), (1.0,), k)[k] * math.factorial(k), right)


@together("mode", [mode for mode in SECOND if mode in ("hessian", "reverse over reverse", "lanes", "jit")])
def test_exponents_may_be_arrays_without_axes(mode: str) -> None:
    second = SECOND[mode](lambda x: np.sum(np.abs(x) ** np.asarray(2.0)), np.zeros(2))
    np.testing.assert_array_equal(second, 2 * np.eye(2))


def test_exponents_of_one_element_keep_their_axis_in_graphs() -> None:
    twice = wg.grad(wg.grad(lambda x: np.sum(x ** np.array([3.0]))))
    assert wg.jit(twice)(2.0) == twice(2.0) == 12.0


@together("mode", ["grad", "jit", "of jit", "forward"])
def test_exponents_that_are_differentiated_are_no_literals(mode: str) -> None:
    def f(x: Any, p: Any) -> Any:
        return np.linalg.norm(x) ** p + np.sqrt(np.sum(x) ** p)

    x, p = np.array([3.0, 4.0]), 2.0
    by_x, by_p = {
        "grad": lambda: wg.grad(f, (0, 1))(x, p),
        "jit": lambda: wg.jit(wg.grad(f, (0, 1)))(x, p),
        "of jit": lambda: wg.grad(wg.jit(f), (0, 1))(x, p),
        "forward": lambda: wg.jacfwd(f, (0, 1))(x, p),
    }[mode]()
    np.testing.assert_allclose(by_x, [7.0, 9.0])
    np.testing.assert_allclose(by_p, 25 * np.log(5) + 3.5 * np.log(7))


def test_scaled_roots_behind_infinite_partials_are_what_they_are() -> None:
    weights = np.array([0.54, -0.416])

    def f(x: Any) -> Any:
        return np.sum(np.square(0.5 * np.fabs(x)) ** 3 * weights) + 0 * np.sum(np.sqrt(x * x * 1.0) @ np.eye(2))

    x = np.array([-0.6525, 1.1175])
    want = np.diag(weights * 30 * x**4 / 64)
    for mode, second in SECOND.items():
        np.testing.assert_allclose(second(f, x), want, atol=1e-12, err_msg=mode)


def written_later(x: Any) -> Any:
    """Write to what roots and powers were made of, before their powers and roots are made."""
    scaled = x * 1.0
    scaled *= np.linalg.norm(x)
    third = np.take(scaled, [1, 0]) ** 3
    base, factor = x * 1.0, np.array([2.0, 3.0])
    raised, sizes = base**4, np.abs(x) * factor
    base *= 3.0
    factor[:] = 7.0
    return np.sum(third) + np.sum(np.sqrt(raised)) + np.sum(sizes**2)


def written_never(x: Any) -> Any:
    return np.sum(x**3) * squared(x) * norm(x) + squared(x) + squared(x * np.array([2.0, 3.0]))


@together("mode", SECOND)
@pytest.mark.parametrize("point", [(0.0, 0.0), (-0.3, -0.4)])
def test_what_is_written_to_later_does_not_change_them(mode: str, point: tuple[float, ...]) -> None:
    x = np.array(point)
    np.testing.assert_allclose(SECOND[mode](written_later, x), wg.hessian(written_never)(x), atol=1e-12)


def test_large_arrays_go_past_kinks_too() -> None:
    x = np.zeros(50_000)
    x[1] = 2.0
    (step,) = wg.hvp(lambda x: np.sum(np.abs(x) ** 2 + np.sqrt(x**4)), (x,), (np.ones_like(x),))
    np.testing.assert_array_equal(step, np.full_like(x, 4.0))
    np.testing.assert_array_equal(wg.grad(lambda x: np.sum(np.sqrt(x * x * 1.0)))(x)[:3], [0.0, 1.0, 0.0])


def test_a_root_that_is_asked_for_gets_its_cotangent() -> None:
    x = wg.tensor([3.0, 4.0], requires_grad=True)
    n = np.linalg.norm(x)
    n.retain_grad()
    y = n**2
    assert wg.autograd.grad(y, [n], retain_graph=True)[0].item() == 10.0
    y.backward()
    assert n.grad.item() == 10.0
    np.testing.assert_allclose(x.grad.numpy(), [6.0, 8.0])


def test_hooks_of_a_root_and_of_what_scales_it_are_called() -> None:
    x = wg.tensor([3.0, 4.0], requires_grad=True)
    n = np.linalg.norm(x)
    scaled = n * 2
    seen: list[float] = []
    scaled.register_hook(lambda ct: seen.append(ct.item()))
    (scaled**2).backward()
    assert seen == [20.0]
    np.testing.assert_allclose(x.grad.numpy(), [24.0, 32.0])


def test_a_power_of_a_root_is_released_like_any_other() -> None:
    x = wg.tensor([3.0, 4.0], requires_grad=True)
    y = np.linalg.norm(x) ** 2
    y.backward()
    with pytest.raises(wg.errors.GraphError, match="retain_graph"):
        y.backward()


def test_the_square_of_no_root_is_no_number() -> None:
    assert np.isnan(wg.grad(lambda x: np.sqrt(x) ** 2)(-1.0))
    assert wg.grad(lambda x: np.where(x > 0, np.sqrt(x) ** 2, 0.0))(-1.0) == 0.0


@together(
    "f, guards",
    [
        (lambda x: np.sum(x / np.sqrt(np.mean(x * x) + 1e-5)), 0),
        (lambda x: np.sum(np.sin(np.sqrt(np.var(x * x) + 1.0))), 0),
        (lambda x: np.sqrt(np.sum(np.sin(x) * np.cos(x))), 4),
        (lambda x: np.sqrt(np.sum(np.exp(x)) * 3.0), 1),
    ],
)
def test_normalisations_have_no_guards_for_infinite_partials(f: Function, guards: int) -> None:
    equations = wg.graph.trace(wg.grad(f))(np.ones(3)).equations
    assert sum("steep" in e.params for e in equations if e.primitive.name == "guarded") == guards


def test_rows_of_loops_are_looked_at_one_by_one() -> None:
    rows = Aval((2, 3), np.dtype(float))
    assert not may_be_infinite(Items(rows, None))  # zeros
    assert not may_be_infinite(Items(rows, [np.ones(3), Items(Aval((3,), np.dtype(float)), None)]))
    assert may_be_infinite(Items(rows, [np.ones(3), np.array([0.0, np.inf, 1.0])]))
