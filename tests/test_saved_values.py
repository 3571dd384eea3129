"""Tests of values that `Function.forward` saves besides arguments and results: their derivative is not known."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.autograd import Function, once_differentiable
from wengert.errors import GraphError


class Sine(Function):
    """Save what is neither an argument nor a result."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        slope = np.cos(x)
        ctx.save_for_backward(slope)
        return np.sin(x)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * ctx.saved_tensors[0]


class Both(Sine):
    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t * ctx.saved_tensors[0]


class Attribute(Sine):
    """Save it as an attribute."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.slope = np.cos(x)
        return np.sin(x)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * ctx.slope


X = np.array([0.5, 0.6])


def create_graph(f: Any) -> Any:
    def second(x: Any) -> Any:
        x = wg.tensor(x, requires_grad=True)
        return wg.autograd.grad(wg.autograd.grad(f(x), x, create_graph=True)[0], x)[0]

    return second


def twice(f: Any) -> Any:
    return lambda x: wg.scan(lambda c, _: (f(c), None), x, None, length=2)[0]


SECOND = {
    "grad(grad)": lambda f: wg.grad(wg.grad(f)),
    "jacfwd(grad)": lambda f: wg.jacfwd(wg.grad(f)),
    "jacfwd(jacfwd)": lambda f: wg.jacfwd(wg.jacfwd(f)),
    "grad(jacfwd)": lambda f: wg.grad(wg.jacfwd(f)),
    "hvp": lambda f: lambda x: wg.hvp(f, (x,), (1.0,)),
    "jvp(grad)": lambda f: lambda x: wg.jvp(wg.grad(f), (x,), (1.0,)),
    "taylor": lambda f: lambda x: wg.taylor(f, (x,), (1.0,), 2),
    "create_graph": create_graph,
    "vmap": lambda f: lambda x: wg.vmap(wg.grad(wg.grad(f)))(x * X),
    "of vmap": lambda f: lambda x: wg.jacfwd(wg.grad(lambda x: np.sum(wg.vmap(f)(x))))(x * X),
    "grad(jit(grad))": lambda f: wg.grad(wg.jit(wg.grad(f))),
    "jacfwd(jit(jacfwd))": lambda f: wg.jacfwd(wg.jit(wg.jacfwd(f))),
    "scan": lambda f: wg.grad(wg.grad(twice(f))),
    "jvp of scan": lambda f: wg.jacfwd(wg.grad(twice(f))),
    "checkpoint": lambda f: wg.grad(wg.grad(wg.checkpoint(f))),
}


@together("function", [Sine, Both, Attribute])
@together(
    "mode, traced",
    [(mode, traced) for mode in SECOND for traced in (False, True)[: 1 + (mode not in ("create_graph", "checkpoint"))]],
)
def test_a_derivative_through_a_saved_value_is_refused(mode: str, function: Any, traced: bool) -> None:
    program = SECOND[mode](lambda x: function.apply(x))
    text = (
        f"{function.__name__}.forward: a value that it saved, neither an argument nor a result, by which backward or "
        f'jvp is differentiated (at File "{__file__}", line '
    )
    with pytest.raises(GraphError, match=re.escape(text)) as caught:
        (wg.jit(program) if traced else program)(0.5)
    assert "program = SECOND[mode](lambda x: function.apply(x))" in str(caught.value)
    assert str(caught.value).endswith(
        "its derivative is not known. Return it as a further result, or compute it in backward from the arguments; if "
        "it is a constant, pass it to ctx.mark_non_differentiable."
    )


FIRST = {
    "grad": lambda f: wg.grad(f)(0.5),
    "jacfwd": lambda f: wg.jacfwd(f)(0.5),
    "jit(grad)": lambda f: wg.jit(wg.grad(f))(0.5),
    "grad(jit)": lambda f: wg.grad(wg.jit(f))(0.5),
    "vmap(grad)": lambda f: wg.vmap(wg.grad(f))(np.array([0.5]))[0],
    "vmap(jacfwd)": lambda f: wg.vmap(wg.jacfwd(f))(np.array([0.5]))[0],
    "grad(scan)": lambda f: wg.grad(lambda x: wg.scan(lambda c, _: (f(c), None), x, None, length=1)[0])(0.5),
    "taylor": lambda f: wg.taylor(f, (0.5,), (1.0,), 1)[1],
    "grad(grad) by something else": lambda f: wg.grad(lambda y: wg.grad(lambda x: f(x) * y)(0.5))(2.0),
    "jacfwd(grad) by something else": lambda f: wg.jacfwd(lambda y: wg.grad(lambda x: f(x) * y)(0.5))(2.0),
    "grad(value and grad)": lambda f: wg.grad(lambda x: wg.value_and_grad(f)(x)[0])(0.5),
    "jacfwd(value and grad)": lambda f: wg.jacfwd(lambda x: wg.vjp(f, x)[0])(0.5),
}


@together("function", [Sine, Both, Attribute])
@together("mode", FIRST)
def test_other_derivatives_are_allowed(mode: str, function: Any) -> None:
    assert FIRST[mode](function.apply) == pytest.approx(np.cos(0.5))


class Rectified(Function):
    """Save a constant, and one that was passed in."""

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float, *, offset: Any) -> Any:
        mask = (x > 0) * 1.0
        ctx.save_for_backward(mask, factor, offset)
        ctx.mark_non_differentiable(mask)
        return (x * factor + offset) * mask

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        mask, factor, _ = ctx.saved_tensors
        return ct * mask * factor, None


class Cube(Function):
    """Keep an argument and a number as attributes."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.x, ctx.power = x, 3
        return x**3

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * ctx.power * ctx.x ** (ctx.power - 1)


PROGRAMS = {
    "marked, or passed in": (lambda x: Rectified.apply(x, 3.0, offset=np.float64(1.0)) ** 2, lambda x: 18.0),
    "attributes": (Cube.apply, lambda x: 6.0 * x),
}


@together("mode", [m for m in SECOND if m not in ("hvp", "jvp(grad)", "taylor", "scan", "jvp of scan")])
@together("program", PROGRAMS)
def test_constants_and_attributes(program: str, mode: str) -> None:
    function, wanted = PROGRAMS[program]
    found = SECOND[mode](function)(0.5)
    expected = wanted(0.5 * X) * np.ones(2) if "vmap" in mode else wanted(0.5)
    np.testing.assert_allclose(found, np.diag(expected) if mode == "of vmap" else expected)


def test_attributes_of_a_backward_that_cannot_be_differentiated() -> None:
    class Once(Cube):
        @staticmethod
        @once_differentiable
        def backward(ctx: Any, ct: Any) -> Any:
            assert not ctx.x.requires_grad
            return wg.asarray(ct.numpy() * 3 * ctx.x.numpy() ** 2)

    x = wg.tensor(2.0, requires_grad=True)
    (slope,) = wg.autograd.grad(Once.apply(x), x, create_graph=True)
    assert slope.item() == 12.0
    with pytest.raises(GraphError, match="a second differentiation, or one in forward mode"):
        slope.backward()
