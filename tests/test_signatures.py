"""Tests of functions of the user's that have the wrong parameters, or give what is no array: errors name them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.autograd import Function
from wengert.errors import DtypeError, UsageError


class Square(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * 2 * ctx.saved_tensors[0]


def variant(name: str, **methods: Any) -> Any:
    return type(name, (Square,), {key: staticmethod(method) for key, method in methods.items()})


def with_vjp(forward: Any, backward: Any) -> Any:
    def f(x: Any) -> Any:
        return np.sin(x)

    f.__qualname__ = "f"
    rule = wg.custom_rule(f)
    rule.defvjp(forward, backward)
    return rule


def with_jvp(pushforward: Any) -> Any:
    def f(x: Any) -> Any:
        return np.sin(x)

    f.__qualname__ = "f"
    rule = wg.custom_rule(f)
    rule.defjvp(pushforward)
    return rule


def with_batch(batch: Any) -> Any:
    def f(x: Any) -> Any:
        return np.sin(x)

    f.__qualname__ = "f"
    rule = wg.custom_rule(f)
    rule.defbatch(batch)
    return rule


def saved(x: Any) -> Any:
    return np.sin(x), x


CALLS = {
    "A.forward: parameters (x); a call with (ctx, *args), 2 arguments,": lambda: variant(
        "A", forward=lambda x: x
    ).apply(1.0),
    "Square.forward: parameters (ctx, x); a call with (ctx, *args), 2 arguments, y=,": lambda: Square.apply(1.0, y=2),
    "A.setup_context: parameters (ctx); a call with (ctx, inputs, output), 3 arguments,": lambda: variant(
        "A", forward=lambda x: x, setup_context=lambda ctx: None
    ).apply(1.0),
    "A.backward: parameters (ct); a call with (ctx, *cts), 2 arguments,": lambda: wg.grad(
        variant("A", backward=lambda ct: ct).apply
    )(1.0),
    "A.jvp: parameters (ctx); a call with (ctx, *tangents), 2 arguments,": lambda: wg.jacfwd(
        variant("A", jvp=lambda ctx: ctx).apply
    )(1.0),
    "f (forward rule): parameters (); a call with (*args), 1 argument,": lambda: wg.grad(
        with_vjp(lambda: 1, lambda r, ct: (ct,))
    )(1.0),
    "f (backward rule): parameters (r); a call with (residuals, ct), 2 arguments,": lambda: wg.grad(
        with_vjp(saved, lambda r: r)
    )(1.0),
    "f (jvp rule): parameters (p); a call with (primals, tangents), 2 arguments,": lambda: wg.jacfwd(
        with_jvp(lambda p: p)
    )(1.0),
    "f (batch rule): parameters (n); a call with (size, batched, *args), 3 arguments,": lambda: wg.vmap(
        with_batch(lambda n: n)
    )(np.ones(2)),
    "scan (f): parameters (c); a call with (carried, x), 2 arguments,": lambda w: w(
        lambda x: wg.scan(lambda c: (c, c), x, np.ones(3))
    )(1.0),
    "fori_loop (body_fun): parameters (y); a call with (i, value), 2 arguments,": lambda w: w(
        lambda x: wg.fori_loop(0, 3, lambda y: y, x)
    )(1.0),
    "while_loop (cond_fun): parameters (); a call with (value), 1 argument,": lambda w: w(
        lambda x: wg.while_loop(lambda: True, lambda y: y, x)
    )(1.0),
    "while_loop (body_fun): parameters (); a call with (value), 1 argument,": lambda w: w(
        lambda x: wg.while_loop(lambda y: y < 2, lambda: 1, x)
    )(1.0),
    "cond (true_fun): parameters (); a call with (*operands), 1 argument,": lambda w: w(
        lambda x: wg.cond(x > 0, lambda: 1.0, lambda y: y, x)
    )(1.0),
    "call (fun): parameters (x, y); a call with (*args), 1 argument,": lambda w: w(
        lambda x: wg.call(lambda x, y: x, x)
    )(1.0),
    "switch (branch 1): parameters (); a call with (*operands), 1 argument,": lambda w: w(
        lambda i, x: wg.switch(i, [np.sin, lambda: 1.0], x)
    )(1, 1.0),
}


@pytest.mark.parametrize("traced", [False, True], ids=["", "jit"])
@pytest.mark.parametrize("text", CALLS)
def test_wrong_parameters(text: str, traced: bool) -> None:
    program = CALLS[text]
    takes_jit = program.__code__.co_argcount == 1
    if traced and not takes_jit:
        return
    expected = text + " must be possible. Change them, or what is passed."
    with pytest.raises(DtypeError, match="^" + re.escape(expected) + "$"):
        program(wg.jit if traced else lambda f: f) if takes_jit else program()


def test_errors_inside_of_functions_stay_as_they_are() -> None:
    def inner() -> None:
        pass

    with pytest.raises(TypeError, match=r"inner\(\) takes 0 positional arguments but 1 was given") as caught:
        wg.fori_loop(0, 3, lambda i, x: inner(x), 1.0)  # type: ignore[call-arg]
    assert not isinstance(caught.value, DtypeError)
    with pytest.raises(TypeError, match=r"object of type 'int' has no len\(\)") as caught:
        wg.grad(variant("A", backward=lambda ctx, ct: len(3)).apply)(1.0)
    assert not isinstance(caught.value, DtypeError)


NEEDED = "; a Tensor, a numeric array or a number is needed. Return that, or None where there is none."


@pytest.mark.parametrize(
    ("result", "given"),
    [
        ("text", "of type str"),
        ({"a": 1.0}, "of type dict"),
        ([1.0], "of type list"),
        (np.array("text"), "of dtype <U4"),
        (abs, "of type builtin_function_or_method"),
    ],
)
def test_results_that_are_no_arrays(result: Any, given: str) -> None:
    def expect(error: Any, text: str, program: Any) -> None:
        with pytest.raises(error, match="^" + re.escape(text) + "$"):
            program()

    backward = variant("A", backward=lambda ctx, ct: result)
    x = wg.tensor(1.0, requires_grad=True)
    text = f"A.backward: a cotangent for argument 0 {given}{NEEDED}"
    expect(DtypeError, text, lambda: wg.grad(backward.apply)(1.0))
    expect(DtypeError, text, lambda: backward.apply(x).backward())
    pushed = variant("A", jvp=lambda ctx, t: result)
    expect(DtypeError, f"A.jvp: a tangent for result 0 {given}{NEEDED}", lambda: wg.jacfwd(pushed.apply)(1.0))
    ruled = with_vjp(saved, lambda r, ct: (result,))
    if not isinstance(result, dict | list):
        text = f"f (vjp rule): a cotangent for leaf 0 of the arguments {given}{NEEDED}"
        expect(DtypeError, text, lambda: wg.grad(ruled)(1.0))
        text = f"f (jvp rule): a tangent {given}{NEEDED}"
        rule = with_jvp(lambda p, t: (p[0], result))
        expect(DtypeError, text, lambda: wg.jacfwd(rule)(1.0))
        expect(DtypeError, text, lambda: wg.grad(rule)(1.0))  # which was 0
        batched = with_batch(lambda n, flags, x: (result, True))
        expect(DtypeError, f"f (batch rule): an output {given}{NEEDED}", lambda: wg.vmap(batched)(np.ones(2)))
    else:
        kind = type(result).__name__
        text = f"f (jvp rule): a tangent of type {kind}; the containers of the output are needed. Build it like the "
        text += "output."
        expect(UsageError, text, lambda: wg.grad(with_jvp(lambda p, t: (p[0], result)))(1.0))


def test_batch_rules_that_do_not_give_a_pair_of_output_and_truth() -> None:
    for batch, text in (
        (
            lambda n, flags, x: (None, True),
            "f (batch rule): an output without arrays; at least one is needed. Return the results.",
        ),
        (
            lambda n, flags, x: (x, "yes"),
            "f (batch rule): 'yes' for whether the output has lanes; True or False is needed. Return a pair (output, "
            "whether it has lanes).",
        ),
    ):
        with pytest.raises(UsageError, match="^" + re.escape(text) + "$"):
            wg.vmap(with_batch(batch))(np.ones(2))


def test_containers_in_errors_of_branches_and_loops() -> None:
    text = "cond: false_fun is one array and true_fun is (*, *); the same containers are needed. Build both alike."
    with pytest.raises(UsageError, match="^" + re.escape(text) + "$"):
        wg.jit(lambda x: wg.cond(x > 0, lambda y: (y, y), lambda y: y, x))(1.0)
    text = (
        "while_loop: the value that the body returned is (*, *) and the value that it was given is one array; the same "
        "containers are needed. Build both alike."
    )
    with pytest.raises(UsageError, match="^" + re.escape(text) + "$"):
        wg.while_loop(lambda x: x < 2, lambda x: (x, x), 1.0)
