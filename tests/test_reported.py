"""Programs that went wrong, most of them from public reports about libraries of this kind: right in every mode.

Each case is a function, its arguments, and what is known of it: the value, the gradient by each argument, and the
second derivative by the first one. Every mode that a case can run in has to give that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.special

import wengert as wg
from tests.cases import together
from wengert.nn import functional
from wengert.scipy import linalg, special, stats

Function = Callable[..., Any]


class Case(NamedTuple):
    """Hold a program and what is known of it."""

    name: str
    f: Function
    args: tuple[Any, ...]
    value: Any = None
    gradient: tuple[Any, ...] | None = None
    second: Any = None
    rtol: float = 1e-7


def attention(q: Any) -> Any:
    mask = np.tril(np.ones((4, 4), bool))
    mask[2] = False
    return np.sum(functional.scaled_dot_product_attention(q, q, q, mask)[0, [0, 1, 3]] ** 2)


def masked_determinant(a: Any) -> Any:
    sign, log = np.linalg.slogdet(a)
    return np.sum(np.where(sign > 0, log, 0.0))


def symmetric(a: Any) -> Any:
    return (a + a.T) / 2


def kernel(x: Any, y: Any) -> Any:
    return np.exp(-(np.linalg.norm(x - y) ** 2))


@wg.custom_rule
def parabola(x: Any) -> Any:
    return x * x


def parabola_backward(x: Any, ct: Any) -> Any:
    if x > 0:
        return (2 * x * ct,)
    return (3 * x * ct,)


parabola.defvjp(lambda x: (parabola(x), x), parabola_backward)

QUERY = np.arange(12.0).reshape(1, 4, 3) / 10
ROTATION = np.array([[0.0, 1.0], [-1.0, 0.0]])
LARGE = np.array([[30.0, 1, 2], [3, -30, 1], [1, 2, 15]])
WEIGHTS = np.arange(1.0, 17).reshape(2, 8)
DIFFERENCES = np.pad(-np.diff(np.pad(WEIGHTS, ((0, 0), (1, 1)))), 0)
x37 = np.array([37.43, 0.0])

CASES = [
    Case(
        "truncnorm of floats",
        lambda a, b: stats.truncnorm.logpdf(-9.5, a, b),
        (-10.0, -9.0),
        -2.41572190092385,
        (0.000681835657256489, -9.10913812366967),
        rtol=1e-6,
    ),
    Case("mean of halves", np.mean, (np.ones(70_000, np.float16),), None, (np.full(70_000, 1 / 70_000),), rtol=2e-2),
    Case("sigmoid", functional.sigmoid, (-40.0,), 4.248354255291589e-18, (4.248354255291589e-18,)),
    Case("log of sigmoid", lambda x: np.log(functional.sigmoid(x)), (-40.0,), -40.0, (1.0,)),
    Case("silu", functional.silu, (-40.0,), -1.69934170211664e-16, (-1.65685816e-16,)),
    Case("spence", scipy.special.spence, (1e-15,), None, (-34.538776394910684,), 1e15, rtol=1e-6),
    Case("norm squared", lambda x: np.linalg.norm(x) ** 2, (np.zeros(2),), 0.0, (np.zeros(2),), 2 * np.eye(2)),
    Case("size squared", lambda x: np.abs(x) ** 2, (0.0,), 0.0, (0.0,), 2.0),
    Case("kernel", kernel, (np.ones(2), np.ones(2)), 1.0, (np.zeros(2), np.zeros(2)), -2 * np.eye(2)),
    Case("root of a power", lambda x: np.sqrt(x**4), (0.0,), 0.0, (0.0,), 2.0),
    Case("root of a square", lambda x: np.sqrt((x - 1) ** 2), (1.0,), 0.0, (0.0,)),
    Case("root of nothing", lambda x: np.sum((x - x) ** 2) ** 0.5 + x[0], (np.array([1.0, 2.0]),), 1.0, ([1.0, 0.0],)),
    Case("cube root", lambda x: np.cbrt(x**3), (0.0,), 0.0, (1.0,)),
    Case("tanh", np.tanh, (20.0,), None, (1.6993417021166355e-17,), rtol=1e-6),
    Case("log_softmax", lambda z: special.log_softmax(z)[0], (x37,), None, ([5.55077e-17, -5.55077e-17],), rtol=1e-2),
    Case("softmax", lambda z: special.softmax(z)[0], (x37,), None, ([5.55077e-17, -5.55077e-17],), rtol=1e-2),
    Case(
        "cross entropy",
        lambda z: functional.cross_entropy(z, np.array([0])),
        (x37[None],),
        None,
        ([[-5.55077e-17, 5.55077e-17]],),
        rtol=1e-2,
    ),
    Case("logsumexp", special.logsumexp, (x37,), None, None, 5.55e-17 * np.array([[1, -1], [-1, 1]]), rtol=2e-2),
    Case("binom", special.binom, (2.0, 3.0), 0.0, (1 / 3, -1 / 3)),
    Case("struve", lambda x: scipy.special.struve(0, x), (1e-5,), None, None, -4.2441318157e-06),
    Case("modstruve", lambda x: scipy.special.modstruve(0, x), (1e-5,), None, None, 4.2441318159e-06),
    Case(
        "eigenvalues",
        lambda a: np.sum(np.linalg.eigvalsh(symmetric(a)) ** 2),
        (np.eye(1),),
        1.0,
        ([[2.0]],),
        [[[[2.0]]]],
    ),
    Case(
        "determinant by eigenvalues",
        lambda t: np.sum(np.log(np.linalg.eigvalsh(np.eye(2) * (1 + t)))),
        (0.0,),
        0.0,
        (2.0,),
        -2.0,
    ),
    Case(
        "masked determinant",
        masked_determinant,
        (np.stack([2 * np.eye(2), np.zeros((2, 2))]),),
        2 * np.log(2),
        ([0.5 * np.eye(2), np.zeros((2, 2))],),
    ),
    Case("attention", attention, (QUERY,)),
    Case("decision in a rule", parabola, (3.0,), 9.0, (6.0,)),
    Case("differences", lambda x: np.sum(np.diff(x) * WEIGHTS), (np.zeros((2, 9)),), 0.0, (DIFFERENCES,)),
    Case("expm", lambda t: linalg.expm(LARGE + t * np.eye(3))[0, 0], (0.0,), None, (12863672308413.6,), rtol=1e-6),
    Case("vonmises", lambda x: stats.vonmises.cdf(x, 1.0), (0.0,), 0.5, (0.3417104886,), rtol=1e-6),
    Case("logistic", lambda x: stats.logistic.logpdf(x), (0.0,), None, (0.0,), -0.5),
    Case("negative base", lambda x: x**2.0, (-2.0,), 4.0, (-4.0,), 2.0),
]


def by_tape(f: Function, args: Sequence[Any]) -> Any:
    tensors = [wg.tensor(x, requires_grad=True) for x in args]
    f(*tensors).backward()
    return tuple(t.grad.numpy() for t in tensors)


def forward(f: Function, args: Sequence[Any]) -> Any:
    """Return the gradient by forward mode, along each direction; of many elements along the first."""
    found = []
    for i, x in enumerate(args):
        size = np.size(x)
        basis = np.eye(size, dtype=np.result_type(x)) if size <= 64 else np.eye(1, size, dtype=np.result_type(x))
        along = [
            wg.jvp(lambda v, i=i: f(*args[:i], v, *args[i + 1 :]), (x,), (type_of(x, e.reshape(np.shape(x))),))[1]
            for e in basis
        ]
        found.append(np.array(along).reshape(np.shape(x) if size <= 64 else (1,)))
    return tuple(found)


def type_of(x: Any, value: Any) -> Any:
    return float(value) if isinstance(x, float) else value


def by_linearize(f: Function, args: Sequence[Any]) -> Any:
    return forward(lambda *xs: f(*xs), args) if len(args) > 1 else (linearized(f, args[0]),)


def linearized(f: Function, x: Any) -> Any:
    size = min(np.size(x), 8)
    _, push = wg.linearize(f, x)
    basis = np.eye(size, np.size(x), dtype=np.result_type(x))
    along = [push(type_of(x, e.reshape(np.shape(x)))) for e in basis]
    return np.array(along).reshape(np.shape(x)) if size == np.size(x) else np.array(along)


def natively(f: Function, args: Sequence[Any]) -> Any:
    """Call a jitted function until it is compiled, and once more."""
    jitted = wg.jit(f)
    return [jitted(*args) for _ in range(3)][-1]


def in_lanes(f: Function, args: Sequence[Any]) -> Any:
    found = wg.vmap(f)(*[np.stack([x, x]) for x in args])
    return wg.tree.map(lambda x: np.asarray(x)[1], found)


def gradient(f: Function, args: Sequence[Any]) -> Function:
    return wg.grad(f, tuple(range(len(args))))


GRADIENTS: dict[str, Callable[[Function, Sequence[Any]], Any]] = {
    "grad": lambda f, args: gradient(f, args)(*args),
    "tape": by_tape,
    "forward": forward,
    "linearize": by_linearize,
    "jit": lambda f, args: natively(gradient(f, args), args),
    "of jit": lambda f, args: gradient(wg.jit(f), args)(*args),
    "lanes": lambda f, args: in_lanes(gradient(f, args), args),
    "jitted lanes": lambda f, args: in_lanes(wg.jit(gradient(f, args)), args),
}
VALUES: dict[str, Callable[[Function, Sequence[Any]], Any]] = {
    "eager": lambda f, args: f(*args),
    "tensors": lambda f, args: f(*map(wg.tensor, args)),
    "jit": natively,
    "lanes": in_lanes,
    "jitted lanes": lambda f, args: in_lanes(wg.jit(f), args),
}
SECOND: dict[str, Callable[[Function, Any], Any]] = {
    "hessian": lambda f, x: wg.hessian(f)(x),
    "jit": lambda f, x: wg.jit(wg.hessian(f))(x),
    "of jit": lambda f, x: wg.hessian(wg.jit(f))(x),
    "reverse over reverse": lambda f, x: wg.jacrev(wg.jacrev(f))(x),
    "forward over forward": lambda f, x: wg.jacfwd(wg.jacfwd(f))(x),
    "reverse over forward": lambda f, x: wg.jacrev(wg.jacfwd(f))(x),
    "lanes": lambda f, x: in_lanes(wg.hessian(f), (x,)),
}


@together("mode", VALUES)
def test_reported_programs_have_their_values(mode: str) -> None:
    for case in CASES:
        if case.value is not None:
            found = VALUES[mode](case.f, case.args)
            np.testing.assert_allclose(np.asarray(found), case.value, case.rtol, 1e-300, err_msg=case.name)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@together("mode", GRADIENTS)
def test_reported_programs_have_their_gradients(mode: str) -> None:
    for case in CASES:
        if case.gradient is None:
            continue
        if case.name == "decision in a rule" and "lanes" in mode:
            continue  # lanes decide each for itself in jit(vmap(f)) alone
        for found, want in zip(GRADIENTS[mode](case.f, case.args), case.gradient, strict=True):
            known = np.ravel(np.asarray(found, float))
            np.testing.assert_allclose(
                known, np.ravel(want)[: known.size], case.rtol, 1e-18 * np.max(np.abs(want)), err_msg=case.name
            )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@together("mode", SECOND)
def test_reported_programs_have_their_second_derivatives(mode: str) -> None:
    for case in CASES:
        if case.second is not None:
            found = SECOND[mode](lambda x, case=case: case.f(x, *case.args[1:]), case.args[0])
            np.testing.assert_allclose(np.asarray(found), case.second, case.rtol, err_msg=case.name)


def test_attention_to_nothing_is_zero() -> None:
    for f in (wg.grad(attention), wg.jit(wg.grad(attention))):
        np.testing.assert_allclose(f(QUERY)[0, 0], [0.11068538, 0.39740888, 0.68413238], 1e-6)
