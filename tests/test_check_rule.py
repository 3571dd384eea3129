"""Tests of `testing.check_rule`, and of the modes of `check_grads`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert import extend
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.errors import DtypeError, UsageError
from wengert.testing import check_grads, check_rule

X, Y = np.array([1.0, 2.0]), np.array([0.5, -1.0])


def product(
    backward: Any = lambda residuals, ct: (ct * residuals[1], ct * residuals[0]),
    push: Any = lambda primals, tangents: (
        primals[0] * primals[1],
        tangents[0] * primals[1] + primals[0] * tangents[1],
    ),
) -> Any:
    """Return the product with some rules."""
    f = wg.custom_rule(lambda x, y: x * y)
    if backward is not None:
        f.defvjp(lambda x, y: (x * y, (x, y)), backward)
    if push is not None:
        f.defjvp(push)
    return f


class Product(wg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, n: int = 1) -> Any:
        ctx.save_for_backward(x, y)
        return x * y * n, x + y

    @staticmethod
    def backward(ctx: Any, ct: Any, ct_sum: Any) -> Any:
        x, y = ctx.saved_tensors
        return ct * y + ct_sum, ct * x + ct_sum

    @staticmethod
    def jvp(ctx: Any, t_x: Any, t_y: Any) -> Any:
        x, y = ctx.saved_tensors
        return t_x * y + x * t_y, t_x + t_y


class OnlyBackward(wg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tree: str, x: Any, n: int) -> Any:
        ctx.save_for_backward(x)
        return x**3 * n

    @staticmethod
    @wg.autograd.once_differentiable
    def backward(ctx: Any, ct: Any) -> Any:
        return None, ct * 3 * ctx.saved_tensors[0] ** 2, None


class WrongBackward(Product):
    @staticmethod
    def backward(ctx: Any, ct: Any, ct_sum: Any) -> Any:
        x, y = ctx.saved_tensors
        return ct * y + ct_sum, ct * x


@pytest.mark.parametrize("rules", [{}, {"backward": None}, {"push": None}])
def test_right_rules_pass(rules: Any) -> None:
    check_rule(product(**rules), X, Y)
    check_rule(product(**rules), 2.0, 3.0)
    check_rule(product(**rules), X.astype(np.float32), Y.astype(np.float32))
    check_rule(product(**rules), X + 1j, Y - 2j)
    check_rule(product(**rules), wg.tensor(X), wg.tensor(Y))
    check_rule(product(**rules), X, 3)


def test_right_functions_pass() -> None:
    check_rule(Product, X, Y)
    check_rule(OnlyBackward, "name", X, 1)


NUMBER = r"-?[\d.e+-]+"
DIFFERS = (
    rf"check_rule\(.*\): the {{}} gives {NUMBER} in argument {{}} along a random direction; {NUMBER} is needed by "
    rf"differences good to {NUMBER}\. Correct the {{}}, or choose a point away from kinks and jumps\."
)


@pytest.mark.parametrize(
    ("rule", "name", "argument"),
    [
        (product(backward=lambda r, ct: (ct * r[1], ct * r[0] * 1.001)), "vjp", 1),
        (product(backward=lambda r, ct: (None, ct * r[0])), "vjp", 0),
        (product(backward=lambda r, ct: (ct * r[1], 0.9 * ct * r[0]), push=None), "vjp", 1),
        (product(push=lambda p, t: (p[0] * p[1], t[0] * p[1])), "jvp", 1),
        (product(push=lambda p, t: (p[0] * p[1], -t[0] * p[1] + t[1] * p[0]), backward=None), "jvp", 0),
        (WrongBackward, "vjp", 1),
    ],
)
def test_wrong_rules(rule: Any, name: str, argument: int) -> None:
    with pytest.raises(AssertionError) as caught:
        check_rule(rule, X, Y)
    assert re.fullmatch(DIFFERS.format(name, argument, name), str(caught.value))


@pytest.mark.parametrize(
    ("rule", "name", "vectors"),
    [
        (product(backward=lambda r, ct: (ct * abs(ct) * r[1], ct * r[0])), "vjp", "cotangent"),
        (product(push=lambda p, t: (p[0] * p[1], t[0] * p[1] + p[0] * t[1] + 1)), "jvp", "tangents"),
    ],
)
def test_rules_that_are_not_linear(rule: Any, name: str, vectors: str) -> None:
    text = (
        rf"check_rule\(.*\): the {name} of 2 a - 3 b is not twice that of a less three times that of b; a {name} "
        rf"linear in its {vectors} is needed\. Correct that rule\."
    )
    with pytest.raises(AssertionError, match=text):
        check_rule(rule, X, Y)


def test_rules_that_differ_from_each_other_by_less_than_differences_can_tell() -> None:
    text = (
        rf"check_rule\(.*\): the vjp gives {NUMBER} and the jvp {NUMBER} in argument 1 along a random direction; the "
        r"same number is needed\. Correct the less accurate rule\."
    )
    with pytest.raises(AssertionError, match=text):
        check_rule(product(backward=lambda r, ct: (ct * r[1], ct * r[0] * (1 + 1e-10))), X, Y)


@pytest.mark.parametrize(
    ("fun", "args", "text"),
    [
        (
            np.sin,
            (X,),
            "check_rule: <ufunc 'sin'>, which has no derivative rule of its own; a custom_rule with a vjp or",
        ),
        (product(None, None), (X, Y), "which has no derivative rule of its own; a custom_rule with a vjp or jvp, a"),
        (wg.autograd.Function, (X,), "is needed. Use check_grads for other functions."),
        (
            product(),
            (1, 2),
            "check_rule: no float or complex argument; something to differentiate is needed. Pass one.",
        ),
    ],
)
def test_what_cannot_be_checked(fun: Any, args: Any, text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(text)):
        check_rule(fun, *args)


# The modes of check_grads


def program(tree: Any, y: Any) -> Any:
    return {"a": np.sin(tree["x"]) * y, "b": [np.sum(np.exp(y * tree["x"]))], "n": 3}


@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("fwd", "rev"), ["rev", "fwd"]])
def test_both_modes_and_their_combinations(modes: Any) -> None:
    check_grads(program, ({"x": X}, 0.3), order=3, modes=modes)
    check_grads(lambda z: z * np.exp(z), (X[:1] + 0.5j,), order=3, modes=modes)
    check_grads(np.tanh, (wg.tensor(X),), order=2, modes=modes)
    check_grads(np.tanh, (X.astype(np.float32),), order=2, modes=modes)


def wrong_forward(x: Any) -> Any:
    f = product(push=lambda p, t: (p[0] * p[1], t[0] * p[1]))
    return f(x, x)


def test_a_wrong_mode_is_named() -> None:
    check_grads(wrong_forward, (X,), order=1, modes=("rev",))
    with pytest.raises(AssertionError, match=r"a derivative of order 1 in argument 0 \(mode 'fwd'\) is"):
        check_grads(wrong_forward, (X,), order=1, modes=("rev", "fwd"))


def wrong_second(x: Any) -> Any:
    """Have a right vjp whose forward derivative is wrong."""
    cosine = wg.custom_rule(np.cos)
    cosine.defjvp(lambda p, t: (np.cos(p[0]), t[0] * np.sin(p[0])))
    cosine.defvjp(lambda x: (np.cos(x), x), lambda x, ct: (-ct * np.sin(x),))
    sine = wg.custom_rule(np.sin)
    sine.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (ct * cosine(x),))
    sine.defjvp(lambda p, t: (np.sin(p[0]), t[0] * np.cos(p[0])))
    return sine(x)


def test_wrong_combinations_are_named() -> None:
    check_grads(wrong_second, (X,), order=2, modes=("rev",))
    check_grads(wrong_second, (X,), order=2, modes=("fwd",))
    with pytest.raises(AssertionError, match=r"a derivative of order 2 in .* \(mode 'fwd over rev'\) is"):
        check_grads(wrong_second, (X,), order=2, modes=("rev", "fwd"))


def test_unknown_modes_and_arguments() -> None:
    with pytest.raises(
        UsageError, match=r"check_grads: mode 'forward'; one of 'rev', 'fwd' is needed. Leave it out of"
    ):
        check_grads(np.sin, (1.0,), modes=("forward",))
    with pytest.raises(
        DtypeError, match="check_grads: argument 0 has dtype int64; floats, arrays or Tensors of a float"
    ):
        check_grads(np.sin, (1,), modes=("fwd",))
    with pytest.raises(
        UsageError, match=r"check_grads: a function that returned no float or complex array; a result that"
    ):
        check_grads(lambda x: x > 0, (X,), modes=("fwd",))


def test_errors_call_the_function_by_the_class_of_the_user() -> None:
    class Doubled(wg.autograd.Function):
        @staticmethod
        def forward(_ctx: Any, x: Any) -> Any:
            return 2.0 * x

        @staticmethod
        def backward(_ctx: Any, ct: Any) -> Any:
            return 3.0 * ct

    with pytest.raises(AssertionError, match=r"^check_grads\(.*Doubled\.apply\): a derivative of order 1"):
        check_grads(Doubled.apply, 1.0)


ALL = np.zeros(2)


def written(x: Any) -> Any:
    x *= 2.0
    return x + 0.0


def same_memory(x: Any) -> Any:
    np.multiply(x, 2.0, out=ALL)
    return ALL


MEMORY = {
    "an evaluation wrote to an operand": written,
    "an evaluation wrote to the result of the one before": same_memory,
}


@pytest.mark.parametrize("text", MEMORY)
def test_evaluations_leave_the_memory_of_others_alone(text: str) -> None:
    PRIMITIVES.pop("test_check_rule.memory", None)
    rule = extend.opaque("test_check_rule.memory", MEMORY[text], vjp=lambda ct, _out, _x: 2 * ct)
    del PRIMITIVES["test_check_rule.memory"]
    with pytest.raises(AssertionError, match=text):
        check_rule(rule, X.copy())
