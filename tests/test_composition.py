"""Every composition of grad, jvp, vmap and jit, to third order, over small programs.

A transformation here makes a scalar function of a vector from another: the derivative along a direction, by reverse
or by forward mode, a weighted sum over lanes, or itself, traced. Any chain of them is compared with the same chain of
differences and loops in numbers of 60 digits, on which the same programs run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import wengert as wg
from tests.cases import Failures, some_of, together
from wengert.errors import WengertError

Function = Callable[[Any], Any]
Program = Callable[[Any, Any], Any]

POINT = np.array([0.7, 1.3, 0.4])
DIRECTIONS = np.array([[0.6, -0.3, 0.8], [-0.2, 0.9, 0.5], [0.7, 0.4, -0.6]])
SCALES, SHIFTS, WEIGHTS = np.array([1.0, 0.8]), np.array([0.02, 0.05]), np.array([0.75, -0.5])
ORDERS = np.array([[0, 1], [2, 2]])

A = np.array([[0.5, -0.25, 0.125], [0.75, 0.5, -0.5], [0.25, 1.0, 0.375]])
B = np.array([[1.5, -0.5], [0.25, 0.75], [-1.0, 0.5]])

mpmath.mp.dps = 60
STEP = mpmath.mpf(10) ** -13


# The programs: `m` is numpy, or `EXTENDED` with numbers of 60 digits


def polynomial(x: Any, m: Any) -> Any:
    return m.sum(x**3 * m.array([1.0, -2.0, 0.5])) + x[0] * x[1] * x[2]


def transcendental(x: Any, m: Any) -> Any:
    return m.sum(m.sin(x) * m.exp(-x) + m.log(x) / (1.0 + x**2) + m.tanh(x * x) + m.sqrt(x))


def mutation(x: Any, m: Any) -> Any:
    y = m.copy(x)
    y[0] = y[1] * y[2]
    y[1:] *= y[0]
    y += x
    return m.sum(y * y * x)


def write_into_constant(x: Any, m: Any) -> Any:
    buffer = m.constant([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    buffer[0] = x * x
    buffer[1, ::2] = m.exp(x[1:])
    buffer[0, 1] *= buffer[1, 2]
    return m.sum(buffer * buffer)


def constants(x: Any, m: Any) -> Any:
    weights = m.constant([0.5, -1.0, 2.0])
    return m.sum(weights * x**3 - weights / x + 2.0 * (weights - m.sin(x)) * m.maximum(weights, x))


def views(x: Any, m: Any) -> Any:
    y = m.outer(x, x)
    row, column = y[1], y.T[2]
    y[1, 2] = x[0] ** 3
    row[0] = column[1] * x[1]
    flat = y.reshape(9)
    flat[::4] *= 2.0
    return m.sum(m.sin(row) * column) + m.sum(y * y)


def fancy(x: Any, m: Any) -> Any:
    y = m.copy(x)
    y[[0, 2]] = x[[1, 1]] ** 2
    return m.sum(y[ORDERS] ** 2 * m.array([[1.0, 2.0], [3.0, 4.0]])) * x[2]


def repeated_index(x: Any, m: Any) -> Any:
    picked = x[np.array([0, 0, 2, 1, 0])]
    return m.sum(picked * picked * picked * m.arange(1.0, 6.0))


def computed_index(x: Any, m: Any) -> Any:
    order = m.argsort(x)
    y = x[order]
    z = m.copy(y)
    z[order] = y * m.array([1.0, 2.0, 3.0]) * x
    return m.sum(z * z * y)


def write_at_computed_index(x: Any, m: Any) -> Any:
    y = m.constant([1.0, 2.0, 3.0])
    y[m.argmax(x)] = x[0] * x[1] ** 2
    return m.sum(y**2 * x)


def take_along(x: Any, m: Any) -> Any:
    y = m.outer(x, x**2)
    return m.sum(m.take_along_axis(y, m.argsort(y, axis=1), axis=1) * m.array(A))


def reductions(x: Any, m: Any) -> Any:
    y = m.outer(x, m.exp(x))
    return m.mean(y, axis=0)[1] * m.prod(x) + m.sum(y, axis=1)[2] * m.max(y) + m.min(x**2)


def spread(x: Any, m: Any) -> Any:
    y = x * x
    centred = y - m.mean(y)
    return m.sqrt(m.mean(centred * centred)) * m.prod(x)


def selection(x: Any, m: Any) -> Any:
    y = m.where(x > 0.5, x**3, m.sin(x))
    return m.sum(m.maximum(y, x[::-1]) * m.minimum(x, 1.0 + x**2) * m.abs(x - 0.5))


def boolean_weights(x: Any, m: Any) -> Any:
    return m.sum((x > 0.5) * x**3) * m.sum(m.clip(x, 0.3, 0.9) ** 2)


def matmul(x: Any, m: Any) -> Any:
    hidden = m.tanh(m.matmul(m.array(A), x))
    weights = m.outer(hidden, x)
    return m.sum(m.matmul(weights, m.array(B)) ** 2) + m.dot(x, hidden)


def einsum(x: Any, m: Any) -> Any:
    y = m.einsum("i,jk,k->ij", x, m.array(A), x)
    return m.sum(m.einsum("ij,jk->ik", y, y) * m.array(A)) + m.einsum("ii->", y)


def containers(x: Any, m: Any) -> Any:
    state = {"position": x[:2], "rest": [x[2], {"all": x}]}
    state["position"] = m.exp(state["position"]) * state["rest"][0]
    first, *others = [state["position"], *[item * item for item in (x, x[::-1])]]
    return m.sum(first) * m.sum(others[0] * others[1])


def loop(x: Any, m: Any) -> Any:
    y = x
    for k in range(1, 4):
        y = m.sin(y) + x / k
    return m.sum(y * x)


def growing_list(x: Any, m: Any) -> Any:
    parts = [x[0]]
    for k in range(4):
        parts.append(parts[-1] * x[k % 3] + x[1])
    return m.sum(m.stack(parts) ** 2)


def broadcasting(x: Any, m: Any) -> Any:
    y = x[:, None] * x[None, :2] + x.reshape(1, 3, 1)
    return m.sum(m.concatenate([y, y * y], axis=0) ** 2) + m.sum(m.broadcast_to(x[0], (2, 2)) ** 3)


def cumulative(x: Any, m: Any) -> Any:
    return m.sum(m.cumsum(x * x) ** 2) + m.sum(m.cumprod(x) * x) + m.sum(m.diff(m.cumsum(x)) ** 3)


def sorting(x: Any, m: Any) -> Any:
    return m.sum(m.sort(x * x) ** 2 * m.array([1.0, 2.0, 3.0])) + m.sort(x)[1] ** 3


def norms(x: Any, m: Any) -> Any:
    return m.norm(x) * m.norm(m.matmul(m.array(A), x)) + m.norm(m.outer(x, x) + m.array(A)) ** 3


def powers(x: Any, m: Any) -> Any:
    return x[0] ** x[1] + m.sum(2.0**x) + m.sum(x**-1.5) + x[2] ** 2 * x[0] ** 3


def log_sum_exp(x: Any, m: Any) -> Any:
    top = m.max(x * 2.0)
    return m.log(m.sum(m.exp(x * 2.0 - top))) + top


def softmax_cross_entropy(x: Any, m: Any) -> Any:
    logits = m.matmul(m.array(A), x)
    terms = m.exp(logits - m.max(logits))
    return -m.sum(m.array([0.2, 0.3, 0.5]) * m.log(terms / m.sum(terms)))


def newton_solver(x: Any, m: Any) -> Any:
    root = x * 0.0 + 1.0
    for _ in range(8):  # solves root**3 + root == 1 + x
        root = root - (root**3 + root - 1.0 - x) / (3.0 * root**2 + 1.0)
    return m.sum(root * root * x)


def linear_solve(x: Any, m: Any) -> Any:
    return m.sum(m.solve(m.array(4.0 * np.eye(3) + A) + m.outer(x, x), x) ** 2)


def shapes(x: Any, m: Any) -> Any:
    y = m.stack([x, x**2, m.flip(x)])
    z = m.moveaxis(m.reshape(m.tile(y, 2), (3, 2, 3)), 1, 0)
    return m.sum(m.roll(z, 1) * z * m.swapaxes(z, 1, 2)) + m.trace(y) ** 2


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (
        polynomial,
        transcendental,
        mutation,
        write_into_constant,
        constants,
        views,
        fancy,
        repeated_index,
        computed_index,
        write_at_computed_index,
        take_along,
        reductions,
        spread,
        selection,
        boolean_weights,
        matmul,
        einsum,
        containers,
        loop,
        growing_list,
        broadcasting,
        cumulative,
        sorting,
        norms,
        powers,
        log_sum_exp,
        softmax_cross_entropy,
        newton_solver,
        linear_solve,
        shapes,
    )
}


# Programs whose control flow looks at values, which lanes cannot


def branch(x: Any, m: Any) -> Any:
    y = m.sum(x * x)
    return m.sin(y) * x[0] if y > 1 else m.exp(y)


def early_return(x: Any, m: Any) -> Any:
    total = x[0] * 0.0
    for value in x:
        if value < 0.5:
            return total * value**2
        total = total + value**3
    return total


def solve_until_converged(x: Any, m: Any) -> Any:
    root, change = x[0] * 0.0 + 1.0, 1.0
    while abs(change) > 1e-9:
        change = (root**3 + root - 1.0 - x[0] * x[1]) / (3.0 * root**2 + 1.0)
        root = root - change
    change = (root**3 + root - 1.0 - x[0] * x[1]) / (3.0 * root**2 + 1.0)
    return (root - change) * x[2]


BRANCHING: dict[str, Program] = {p.__name__: p for p in (branch, early_return, solve_until_converged)}


# Programs that transform functions themselves: captured values are differentiated from outside


def inner_grad(x: Any, m: Any) -> Any:
    if m is EXTENDED:
        return m.sum(2 * x * x + m.cos(x) * x)
    return np.sum(wg.grad(lambda y: np.sum(y * y * x + np.sin(y) * x))(x))


def inner_jvp(x: Any, m: Any) -> Any:
    if m is EXTENDED:
        return m.sum(2 * x * x * x) + m.sum(x * m.cos(x))
    return np.sum(wg.jvp(lambda y: y * y * x + np.sin(y), (x,), (x,))[1])


def inner_vmap(x: Any, m: Any) -> Any:
    if m is EXTENDED:
        return m.sum(m.outer(x, x * x) * m.array(A) ** 2) * x[1]
    return np.sum(wg.vmap(lambda row, scale: scale * x * x * row**2)(np.array(A), x)) * x[1]


def inner_hessian(x: Any, m: Any) -> Any:
    if m is EXTENDED:
        return m.sum(6 * x * x) + 2 * m.sum(x**2)
    return np.trace(wg.hessian(lambda y: np.sum(y**3 * x))(x)) + np.sum(
        wg.hessian(lambda y: np.sum(y * x) ** 2)(x).diagonal()
    )


def inner_linearize(x: Any, m: Any) -> Any:
    if m is EXTENDED:
        return m.sum(3 * x**2 * x * x)
    _, push = wg.linearize(lambda y: np.sum(y**3 * x), x)
    return push(x)


def inner_checkpoint(x: Any, m: Any) -> Any:
    if m is EXTENDED:
        return m.sum(m.sin(x * x) * x)
    return np.sum(wg.checkpoint(lambda y: np.sin(y * x) * x)(x))


def inner_custom_rule(x: Any, m: Any) -> Any:
    if m is EXTENDED:
        return m.sum(m.sin(x) * x)
    return np.sum(sine(x) * x)


def inner_forward_rule(x: Any, m: Any) -> Any:
    if m is EXTENDED:
        return m.sum(x * m.exp(x[0] * x))
    return np.sum(scaled_exponential(x[0], x))


def inner_paired_rule(x: Any, m: Any) -> Any:
    if m is EXTENDED:
        return m.sum(m.sin(x) * x[1]) * m.sum(m.cos(x * x[1]))
    sines, cosines = sine_and_cosine(x, x[1])
    return np.sum(sines) * np.sum(cosines)


def inner_function(x: Any, m: Any) -> Any:
    if m is EXTENDED:
        return m.sum(m.tanh(x * x[2]) ** 2)
    return np.sum(Saturated.apply(x, x[2]) ** 2)


def inner_paired_function(x: Any, m: Any) -> Any:
    if m is EXTENDED:
        return m.sum(x**3) * m.sum(x * x[0]) ** 2
    cube, product = CubeAndProduct.apply(x, x[0])
    return np.sum(cube) * np.sum(product) ** 2


def _declared_sine() -> Any:
    rule = wg.custom_rule(lambda y: np.sin(y))
    rule.defvjp(lambda y: (np.sin(y), y), lambda y, ct: (ct * np.cos(y),))
    rule.defbatch(lambda _size, batched, y: (np.sin(y), batched[0]))
    return rule


def _declared_exponential() -> Any:
    rule = wg.custom_rule(lambda scale, y: y * np.exp(scale * y))

    def push(primals: Any, tangents: Any) -> Any:
        (scale, y), (dscale, dy) = primals, tangents
        power = np.exp(scale * y)
        return y * power, dy * power * (1.0 + scale * y) + dscale * y * y * power

    rule.defjvp(push)
    return rule


def _declared_pair() -> Any:
    rule = wg.custom_rule(lambda y, scale: (np.sin(y) * scale, np.cos(y * scale)))

    def pull(saved: Any, cts: Any) -> Any:
        (y, scale), (left, right) = saved, cts
        slope = -np.sin(y * scale) * right
        return left * np.cos(y) * scale + slope * scale, np.sum(left * np.sin(y) + slope * y)

    rule.defvjp(lambda y, scale: ((np.sin(y) * scale, np.cos(y * scale)), (y, scale)), pull)
    return rule


class Saturated(wg.autograd.Function):
    """Save the output; forward mode is derived."""

    @staticmethod
    def forward(ctx: Any, y: Any, scale: Any) -> Any:
        out = np.tanh(y * scale)
        ctx.save_for_backward(y, scale, out)
        return out

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        y, scale, out = ctx.saved_tensors
        slope = ct * (1.0 - out * out)
        return slope * scale, np.sum(slope * y)


class CubeAndProduct(wg.autograd.Function):
    """Have two outputs, and rules for both modes."""

    @staticmethod
    def forward(ctx: Any, y: Any, scale: Any) -> Any:
        ctx.save_for_backward(y, scale)
        return y * y * y, y * scale

    @staticmethod
    def backward(ctx: Any, left: Any, right: Any) -> Any:
        y, scale = ctx.saved_tensors
        return left * 3.0 * y * y + right * scale, np.sum(right * y)

    @staticmethod
    def jvp(ctx: Any, dy: Any, dscale: Any) -> Any:
        y, scale = ctx.saved_tensors
        return dy * 3.0 * y * y, dy * scale + y * dscale


sine, scaled_exponential, sine_and_cosine = _declared_sine(), _declared_exponential(), _declared_pair()

CAPTURING: dict[str, Program] = {
    p.__name__: p
    for p in (
        *(inner_grad, inner_jvp, inner_vmap, inner_hessian, inner_linearize, inner_checkpoint),
        *(inner_custom_rule, inner_forward_rule, inner_paired_rule, inner_function, inner_paired_function),
    )
}


# Numbers of 60 digits


class Extended:
    """Be numpy for arrays of mpmath numbers: what NumPy does not do with objects is written here."""

    def __init__(self) -> None:
        for name in ("exp", "log", "sin", "cos", "tanh", "sqrt"):
            setattr(self, name, np.frompyfunc(getattr(mpmath, name), 1, 1))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def array(values: Any) -> Any:
        return np.frompyfunc(mpmath.mpf, 1, 1)(np.array(values))

    constant = array

    def norm(self, x: Any) -> Any:
        return mpmath.sqrt(np.sum(x * x))

    @staticmethod
    def solve(a: Any, b: Any) -> Any:
        return np.array(list(mpmath.lu_solve(mpmath.matrix(a.tolist()), mpmath.matrix(b.tolist()))), dtype=object)

    @staticmethod
    def abs(x: Any) -> Any:
        return np.frompyfunc(abs, 1, 1)(x)


class Traced:
    """Be numpy, with the names that programs use besides."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    norm = staticmethod(np.linalg.norm)
    solve = staticmethod(np.linalg.solve)
    constant = staticmethod(wg.tensor)


EXTENDED, TRACED = Extended(), Traced()


# Transformations of scalar functions, and what they mean


def by_grad(f: Function, direction: Any) -> Function:
    return lambda x: np.sum(wg.grad(f)(x) * direction)


def by_jvp(f: Function, direction: Any) -> Function:
    return lambda x: wg.jvp(f, (x,), (direction,))[1]


def by_vmap(f: Function, _direction: Any) -> Function:
    def summed(x: Any) -> Any:
        lanes = x * SCALES[:, None] + SHIFTS[:, None]
        return np.sum(wg.vmap(f)(lanes) * WEIGHTS)

    return summed


def by_jit(f: Function, _direction: Any) -> Function:
    return wg.jit(f)


def by_itself(f: Function, _direction: Any) -> Function:
    return f


def by_differences(f: Function, direction: Any) -> Function:
    return lambda x: (f(x + STEP * direction) - f(x - STEP * direction)) / (2 * STEP)


def by_loop(f: Function, _direction: Any) -> Function:
    lanes = [[mpmath.mpf(float(number)) for number in row] for row in zip(SCALES, SHIFTS, WEIGHTS, strict=True)]
    return lambda x: sum(weight * f(x * scale + shift) for scale, shift, weight in lanes)


TRANSFORMATIONS = {
    "grad": (by_grad, by_differences),
    "jvp": (by_jvp, by_differences),
    "vmap": (by_vmap, by_loop),
    "jit": (by_jit, by_itself),
}
CHAINS = list(itertools.product(TRANSFORMATIONS, repeat=3))
REFERENCES: dict[Any, float] = {}


def composed(chain: tuple[str, ...], program: Program) -> Any:
    """Return the value of a chain of transformations, the first one outermost."""
    function: Function = lambda x: program(x, TRACED)
    for position, name in reversed(list(enumerate(chain))):
        function = TRANSFORMATIONS[name][0](function, DIRECTIONS[position])
    return function(POINT.copy())


def reference(chain: tuple[str, ...], program: Program) -> float:
    """Return the same value by differences and loops in extended precision."""
    meaning = tuple(TRANSFORMATIONS[name][1] for name in chain)
    key = (program, meaning)
    if key not in REFERENCES:
        function: Function = lambda x: program(x, EXTENDED)
        for position, transformation in reversed(list(enumerate(meaning))):
            function = transformation(function, EXTENDED.array(DIRECTIONS[position]))
        REFERENCES[key] = float(function(EXTENDED.array(POINT)))
    return REFERENCES[key]


@pytest.mark.parametrize("name", [*PROGRAMS, *CAPTURING])
def test_compositions_to_third_order(name: str) -> None:
    program = {**PROGRAMS, **CAPTURING}[name]
    failures = Failures()
    for chain in some_of(CHAINS, name):
        with failures.of("-".join(chain)):
            np.testing.assert_allclose(composed(chain, program), reference(chain, program), rtol=1e-10, atol=1e-10)
    failures.tell()


@together("chain", [chain for chain in CHAINS if not {"vmap", "jit"} & set(chain)])
@together("name", BRANCHING)
def test_control_flow_may_look_at_differentiated_values(name: str, chain: tuple[str, ...]) -> None:
    program = BRANCHING[name]
    np.testing.assert_allclose(composed(chain, program), reference(chain, program), rtol=1e-10, atol=1e-10)


@together("chain", [("vmap",), ("grad", "vmap"), ("vmap", "grad"), ("vmap", "jvp")])
@together("name", BRANCHING)
def test_control_flow_may_not_look_at_lanes(name: str, chain: tuple[str, ...]) -> None:
    with pytest.raises(WengertError, match=r"a value that differs from lane to lane of vmap\("):
        composed(chain, BRANCHING[name])
