"""Tests of `wengert.autograd.Function`: everything that forward can tell backward, in every mode, and its errors."""

from __future__ import annotations

import gc
import re
import weakref
from typing import Any, ClassVar

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.autograd import Function, once_differentiable
from wengert.core.values.tensor import raw
from wengert.errors import GraphError, ShapeError, UsageError
from wengert.testing import check_grads

pytestmark = pytest.mark.filterwarnings("ignore:vmap. .* has no batch rule")


class Square(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return ct * 2 * x


class Exponential(Function):
    """Save the output."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = np.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (y,) = ctx.saved_tensors
        return ct * y


class Intermediate(Function):
    """Save an input, an output, None and a value that is neither."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        cosine = np.cos(x * y)
        out = np.sin(x * y)
        ctx.save_for_backward(x, None, cosine, y, out)
        return out

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        x, nothing, cosine, y, out = ctx.saved_tensors
        assert nothing is None
        assert np.allclose(raw(out), np.sin(raw(x * y)))
        return ct * cosine * y, ct * cosine * x


class Polar(Function):
    """Have two inputs and two outputs, and save an output for the derivative."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        radius = np.hypot(x, y)
        angle = np.arctan2(y, x)
        ctx.save_for_backward(x, y, radius)
        return radius, angle

    @staticmethod
    def backward(ctx: Any, ct_radius: Any, ct_angle: Any) -> Any:
        x, y, radius = ctx.saved_tensors
        return (
            ct_radius * x / radius - ct_angle * y / radius**2,
            ct_radius * y / radius + ct_angle * x / radius**2,
        )


class Scaled(Function):
    """Take arguments that are no Tensors, keywords and attributes."""

    @staticmethod
    def forward(ctx: Any, factor: float, x: Any, name: str, *, power: int = 1) -> Any:
        ctx.power, ctx.factor, ctx.name = power, factor, name
        ctx.save_for_backward(x)
        return factor * x**power

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        (x,) = ctx.saved_tensors
        return None, ct * ctx.factor * ctx.power * x ** (ctx.power - 1), None


def scaled(x: Any) -> Any:
    return Scaled.apply(1.5, x, "name", power=3)


PROGRAMS = [
    (Square.apply, np.square, (np.array([0.5, 1.5]),)),
    (Exponential.apply, np.exp, (np.array([0.5, 1.5]),)),
    (lambda x, y: Polar.apply(x, y)[0], np.hypot, (np.array([0.5, 1.5]), np.array([1.0, -0.3]))),
    (lambda x, y: Polar.apply(x, y)[1], lambda x, y: np.arctan2(y, x), (np.array([0.5, 1.5]), np.array([1.0, -0.3]))),
    (lambda x, y: np.multiply(*Polar.apply(x, y)), lambda x, y: np.hypot(x, y) * np.arctan2(y, x), (0.5, 1.5)),
    (scaled, lambda x: 1.5 * x**3, (np.array([0.5, 1.5]),)),
]


@pytest.mark.parametrize(("f", "reference", "args"), PROGRAMS)
def test_every_mode_to_third_order(f: Any, reference: Any, args: Any) -> None:
    check_grads(f, args, order=3)
    direction = tuple(np.ones_like(x) for x in args)
    np.testing.assert_allclose(wg.taylor(f, args, direction, 4), wg.taylor(reference, args, direction, 4))
    for outer in (wg.jacfwd, wg.jacrev):
        for middle in (wg.jacfwd, wg.jacrev):
            for inner in (wg.jacfwd, wg.jacrev):
                np.testing.assert_allclose(
                    outer(middle(inner(f)))(*args), wg.jacfwd(wg.jacfwd(wg.jacfwd(reference)))(*args), atol=1e-12
                )


@pytest.mark.parametrize(("f", "reference", "args"), [*PROGRAMS, (Intermediate.apply, None, (np.array([0.5, 1]), 2.0))])
def test_vmap_goes_from_lane_to_lane(f: Any, reference: Any, args: Any) -> None:
    lanes = tuple(np.stack([x, 2 * np.asarray(x), np.asarray(x) + 0.1]) for x in args)
    total = lambda *xs: np.sum(f(*xs))
    wanted = [f(*lane) for lane in zip(*lanes, strict=True)]
    np.testing.assert_allclose(wg.vmap(f)(*lanes), wanted)
    slopes = [wg.grad(total)(*lane) for lane in zip(*lanes, strict=True)]
    np.testing.assert_allclose(wg.vmap(wg.grad(total))(*lanes), slopes)
    np.testing.assert_allclose(wg.grad(lambda *xs: np.sum(wg.vmap(f)(*xs)))(*lanes), slopes)


def test_values_saved_besides_inputs_and_outputs() -> None:
    x, y = wg.tensor(0.5, requires_grad=True), wg.tensor(2.0, requires_grad=True)
    Intermediate.apply(x, y).backward()
    assert (x.grad.item(), y.grad.item()) == pytest.approx((2 * np.cos(1.0), 0.5 * np.cos(1.0)))
    check_grads(Intermediate.apply, (0.5, 2.0), order=1)


def test_create_graph_to_third_order() -> None:
    for f, reference in ((Square.apply, np.square), (Exponential.apply, np.exp), (scaled, lambda x: 1.5 * x**3)):
        found, wanted = [], []
        for g, into in ((f, found), (reference, wanted)):
            x = wg.tensor(0.7, requires_grad=True)
            y = g(x) + 0.0 * x**3
            for _ in range(3):
                (y,) = wg.autograd.grad(y, x, create_graph=True)
                into.append(y.item())
                y = y + 0.0 * x**3
        assert found == pytest.approx(wanted)


def test_a_saved_output_among_several_is_differentiated_by_create_graph() -> None:
    x, y = wg.tensor(0.5, requires_grad=True), wg.tensor(1.5, requires_grad=True)
    radius, angle = Polar.apply(x, y)
    (slope,) = wg.autograd.grad(radius * angle, x, create_graph=True)
    (curvature,) = wg.autograd.grad(slope, x)
    wanted = wg.grad(wg.grad(lambda x, y: np.hypot(x, y) * np.arctan2(y, x)))(0.5, 1.5)
    assert curvature.item() == pytest.approx(wanted)


def test_the_tape() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = Square.apply(x)
    assert y.grad_fn.name == "Square"
    assert not y.is_leaf
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, [4.0, 8.0])
    with pytest.raises(GraphError, match=r"released by an earlier sweep \(at Square"):
        y.sum().backward()


def test_nothing_is_recorded_without_need() -> None:
    assert Square.apply(wg.tensor(2.0)).grad_fn is None
    with wg.no_grad():
        assert Square.apply(wg.tensor(2.0, requires_grad=True)).grad_fn is None
    assert Scaled.apply(2.0, 3.0, "name").item() == 6.0
    assert isinstance(Scaled.apply(2.0, np.ones(2), "name"), wg.Tensor)


def test_hooks_on_the_node() -> None:
    x = wg.tensor(3.0, requires_grad=True)
    y = Square.apply(x)
    seen: list[Any] = []
    y.grad_fn.register_prehook(lambda cts: seen.append(cts[0].item()) or (cts[0] * 10,))
    y.grad_fn.register_hook(lambda ins, outs: seen.append((ins[0].item(), outs[0].item())) or (ins[0] + 1,))
    y.backward()
    assert seen == [1.0, (60.0, 10.0)]
    assert x.grad.item() == 61.0


def test_hooks_on_the_node_of_several_results() -> None:
    x, y = wg.tensor(3.0, requires_grad=True), wg.tensor(4.0, requires_grad=True)
    radius, angle = Polar.apply(x, y)
    assert radius.grad_fn == angle.grad_fn
    seen: list[Any] = []
    radius.grad_fn.register_prehook(lambda cts: seen.append([c is None for c in cts[:2]]))
    radius.backward()
    assert seen == [[False, True]]
    assert x.grad.item() == 0.6


def test_saved_tensors_hooks_see_all_that_is_saved() -> None:
    packed: list[Any] = []
    x, y = wg.tensor(0.5, requires_grad=True), wg.tensor(2.0, requires_grad=True)
    with wg.autograd.saved_tensors_hooks(
        lambda t: packed.append(t.item()) or len(packed), lambda n: wg.tensor(packed[n - 1])
    ):
        out = Intermediate.apply(x, y)
    assert sorted(packed) == sorted([0.5, 2.0, np.cos(1.0), np.sin(1.0)])
    out.backward()
    assert x.grad.item() == pytest.approx(2 * np.cos(1.0))


def test_arguments_that_were_not_saved_are_let_go() -> None:
    class Plain(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x + 1

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct

    x = wg.tensor(np.ones(3), requires_grad=True) * 1.0
    seen = weakref.ref(x)
    y = Plain.apply(x)
    del x
    gc.collect()
    assert seen() is None
    y.sum().backward()


def test_residuals_are_let_go_after_the_sweep() -> None:
    seen: list[Any] = []

    class Kept(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            inner = x * 2
            seen.append(weakref.ref(inner))
            ctx.save_for_backward(inner)
            return x * inner

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct * 2 * ctx.saved_tensors[0]

    x = wg.tensor(np.ones(3), requires_grad=True)
    y = Kept.apply(x)
    y.sum().backward()
    gc.collect()
    assert seen[0]() is None
    np.testing.assert_array_equal(x.grad, [4.0] * 3)


# What forward can say


class Sorted(Function):
    """Return integer indices too, which have no derivative in any case, and a count that is marked."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        order = np.argsort(x)
        largest = x.max()
        ctx.mark_non_differentiable(largest)
        ctx.save_for_backward(order)
        return x[order], order, largest

    @staticmethod
    def backward(ctx: Any, ct: Any, ct_order: Any, ct_largest: Any) -> Any:
        (order,) = ctx.saved_tensors
        assert not np.any(raw(ct_order))
        assert not np.any(raw(ct_largest))
        return ct[np.argsort(order)]


def test_outputs_that_are_not_differentiable() -> None:
    x = wg.tensor([3.0, 1.0, 2.0], requires_grad=True)
    y, order, largest = Sorted.apply(x)
    assert y.requires_grad
    assert not order.requires_grad
    assert not largest.requires_grad
    (y * wg.tensor([1.0, 10.0, 100.0]) * largest).sum().backward()
    np.testing.assert_array_equal(x.grad, [300.0, 3.0, 30.0])
    f = lambda x: np.prod(Sorted.apply(x)[0][:2]) * Sorted.apply(x)[2]
    np.testing.assert_allclose(wg.jacfwd(f)(np.array([3.0, 1.0, 2.0])), [0.0, 6.0, 3.0])
    np.testing.assert_allclose(wg.vmap(wg.grad(f))(np.array([[3.0, 1.0, 2.0], [4.0, 5.0, 6.0]]))[1], [30.0, 24.0, 0.0])


class AddOne(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x += 1.0
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * 10


def test_dirty_arguments_are_the_results() -> None:
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    before = y.detach()
    z = AddOne.apply(y)
    assert z is y
    np.testing.assert_array_equal(y.detach(), [3.0, 5.0])
    np.testing.assert_array_equal(before, [2.0, 4.0])
    (y * y).sum().backward()
    np.testing.assert_array_equal(x.grad, 2 * 2 * np.array([3.0, 5.0]) * 10)


def test_dirty_views_write_through_to_their_base() -> None:
    x = wg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    AddOne.apply(y[1:])
    np.testing.assert_array_equal(y.detach(), [2.0, 5.0, 7.0])
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, [2.0, 20.0, 20.0])


def test_dirty_plain_tensors_and_leaves() -> None:
    plain = wg.tensor([1.0])
    assert AddOne.apply(plain) is plain
    assert plain.tolist() == [2.0]
    leaf = wg.tensor([1.0], requires_grad=True)
    with pytest.raises(GraphError, match="assignment: a leaf Tensor that requires grad; a Tensor that is not a leaf"):
        AddOne.apply(leaf)
    with wg.no_grad():
        AddOne.apply(leaf)
    assert leaf.tolist() == [2.0]


def test_dirty_arguments_in_transformations() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        AddOne.apply(y[:1])
        return np.sum(y * y)

    x = np.array([1.0, 2.0])
    wanted = [2 * 3.0 * 20, 2 * 4.0 * 2]
    np.testing.assert_allclose(wg.grad(f)(x), wanted)
    np.testing.assert_allclose(wg.jacfwd(f)(x), wanted)
    np.testing.assert_allclose(wg.vmap(wg.grad(f))(np.stack([x, x])), [wanted, wanted])


def test_marks_must_be_of_values_of_the_call() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_non_differentiable(x * 2)
            return x * 3

    class Worse(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x * 3

    text = (
        "Wrong.forward: mark_non_differentiable of a value that is not one of the call; the very Tensor that was "
        "passed in or is returned is needed. Mark that Tensor itself."
    )
    with pytest.raises(UsageError, match=re.escape(text)):
        Wrong.apply(wg.tensor(1.0))
    with pytest.raises(
        UsageError, match=r"Worse.forward: mark_dirty \(returned values\) of a value that is not one of"
    ):
        Worse.apply(wg.tensor(1.0))


def test_materialized_cotangents() -> None:
    class Pair(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, materialize: bool) -> Any:
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            seen.append(second)
            return (first * 2 if second is None else first * 2 + second * 3), None

    seen: list[Any] = []
    x = wg.tensor(np.ones(2), requires_grad=True)
    Pair.apply(x, True)[0].sum().backward()
    Pair.apply(x, False)[0].sum().backward()
    assert seen[0].tolist() == [0.0, 0.0]
    assert seen[1] is None
    np.testing.assert_array_equal(x.grad, [4.0, 4.0])


def test_needs_input_grad() -> None:
    seen: list[Any] = []

    class Product(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any, n: int) -> Any:
            seen.append(ctx.needs_input_grad)
            ctx.save_for_backward(x, y)
            return x * y * n

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            seen.append(ctx.needs_input_grad)
            x, y = ctx.saved_tensors
            return ct * y if ctx.needs_input_grad[0] else None, ct * x if ctx.needs_input_grad[1] else None, None

    x, y = wg.tensor(2.0, requires_grad=True), wg.tensor(3.0)
    Product.apply(x, y, 1).backward()
    assert seen == [(True, False, False)] * 2
    seen.clear()
    y.requires_grad_()
    out = Product.apply(x, y, 1)
    wg.autograd.grad(out, y)
    assert seen == [(True, True, False), (False, True, False)]


def test_integer_tensors_and_none_as_arguments() -> None:
    class Take(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, index: Any, nothing: Any) -> Any:
            assert nothing is None
            ctx.save_for_backward(index)
            ctx.shape = x.shape
            return x[index]

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            out = wg.tensor(np.zeros(ctx.shape))
            np.add.at(out, ctx.saved_tensors[0], ct)
            return out, None, None

    index = wg.tensor([0, 0, 2])
    f = lambda x: np.sum(Take.apply(x, index, None) ** 2)
    np.testing.assert_allclose(wg.grad(f)(np.array([1.0, 2.0, 3.0])), [4.0, 0.0, 6.0])


def test_complex_cotangents_are_those_of_the_tape() -> None:
    class ComplexSquare(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            seen.append(wg.stop_gradient(ct).item())
            return ct * 2 * np.conj(ctx.saved_tensors[0])

    seen: list[Any] = []
    found = []
    for square in (ComplexSquare.apply, np.square):
        z = wg.tensor(1.0 + 2.0j, requires_grad=True)
        y = square(z)
        (np.imag(y) + 3 * np.real(y)).backward()
        found.append(z.grad.item())
    assert found[0] == found[1]
    assert seen == [3 + 1j]  # 3 d/dRe + 1j d/dIm, as PyTorch has it
    for f in (ComplexSquare.apply, np.square):
        found.append(wg.jvp(f, (1.0 + 2.0j,), (1.0 - 1.0j,))[1])
    assert found[2] == pytest.approx(found[3])


def test_results_that_share_memory_with_arguments_do_not() -> None:
    class Tail(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x, x[1:]

        @staticmethod
        def backward(ctx: Any, ct: Any, ct_tail: Any) -> Any:
            ct = ct * 1.0
            ct[1:] += ct_tail
            return ct

    x = wg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1.0
    same, tail = Tail.apply(y)
    tail += 10.0
    same *= 2.0
    assert y.tolist() == [1.0, 2.0, 3.0]
    assert (same.tolist(), tail.tolist()) == ([2.0, 4.0, 6.0], [12.0, 13.0])
    (same.sum() + tail.sum()).backward()
    np.testing.assert_array_equal(x.grad, [2.0, 3.0, 3.0])


def test_results_do_not_share_memory_with_arrays_of_the_user() -> None:
    table = np.array([1.0, 2.0])

    class Table(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return table

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return None

    y = Table.apply(wg.tensor(1.0, requires_grad=True))
    y += 1.0
    assert table.tolist() == [1.0, 2.0]


def test_writes_in_backward_reach_nobody_else() -> None:
    class Careless(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            ct *= 2.0
            x = ctx.saved_tensors[0]
            x *= 0.0
            return ct + x

    x = wg.tensor([1.0, 2.0], requires_grad=True)
    given = np.ones(2)
    y = Careless.apply(x)
    (y + Careless.apply(x)).backward(given)
    assert given.tolist() == [1.0, 1.0]
    assert x.tolist() == [1.0, 2.0]
    assert x.grad.tolist() == [4.0, 4.0]


# Forward mode, once_differentiable, sweeps inside


class OwnTangent(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx: Any, ct: Any, ct_sum: Any) -> Any:
        x, y = ctx.saved_tensors
        return ct * y + ct_sum, ct * x + ct_sum

    @staticmethod
    def jvp(ctx: Any, t_x: Any, t_y: Any) -> Any:
        calls.append((t_x is None, t_y is None))
        x, y = ctx.saved_tensors
        t_x = x * 0.0 if t_x is None else t_x
        t_y = y * 0.0 if t_y is None else t_y
        return t_x * y + x * t_y, t_x + t_y


calls: list[Any] = []


def test_an_own_jvp_is_used() -> None:
    calls.clear()
    out, tangent = wg.jvp(lambda x, y: OwnTangent.apply(x, y), (2.0, 3.0), (1.0, 10.0))
    assert (out, tangent) == ((6.0, 5.0), (23.0, 11.0))
    assert wg.jvp(lambda x: OwnTangent.apply(x, 3.0 + 0 * x)[0], (2.0,), (1.0,)) == (6.0, 3.0)
    y = wg.tensor(3.0)
    assert wg.jvp(lambda x: OwnTangent.apply(x, y)[0], (2.0,), (1.0,)) == (6.0, 3.0)
    assert calls == [(False, False), (False, False), (False, True)]
    np.testing.assert_allclose(
        wg.hessian(lambda v: OwnTangent.apply(v[0], v[1])[0])(np.array([2.0, 3.0])), [[0, 1], [1, 0]]
    )
    np.testing.assert_allclose(wg.taylor(lambda t: OwnTangent.apply(t, t * t)[0], (1.0,), (1.0,), 3), [1, 3, 3, 1])


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (
            lambda t: (t, t),
            GraphError,
            "Bad.jvp: 2 tangents; 1 are needed, one for each result of forward. Return None for results without one.",
        ),
        (
            lambda t: t[0],
            ShapeError,
            "Bad.jvp: a tangent of shape () for result 0; the shape (2,) of that result is needed. Broadcast it as "
            "forward does.",
        ),
    ],
)
def test_wrong_tangents(result: Any, error: Any, text: str) -> None:
    class Bad(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1.0

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return result(t)

    with pytest.raises(error, match=re.escape(text)):
        wg.jvp(Bad.apply, (np.ones(2),), (np.ones(2),))


def test_once_differentiable() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, ct: Any) -> Any:
            assert ct.grad_fn is None
            return ct * 3 * np.square(ctx.saved_tensors[0].numpy())

    assert wg.grad(Once.apply)(2.0) == 12.0
    x = wg.tensor(2.0, requires_grad=True)
    Once.apply(x).backward(create_graph=True)
    text = (
        "once_differentiable.<locals>.Once.backward: a second differentiation, or one in forward mode; a backward that "
        "is not marked once_differentiable is needed. Write backward in operations on Tensors and remove the mark."
    )
    with pytest.raises(GraphError, match=re.escape(text)):
        x.grad.backward()
    with pytest.raises(GraphError, match=re.escape(text)):
        wg.grad(wg.grad(Once.apply))(2.0)
    with pytest.raises(GraphError, match=re.escape(text)):
        wg.jvp(wg.grad(Once.apply), (2.0,), (1.0,))


def test_a_sweep_inside_backward() -> None:
    class Inner(Function):
        """Differentiate forward's program anew by a sweep of its own."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return np.sin(x) * x

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            with wg.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                (np.sin(x) * x).backward(ct.detach())
            return x.grad

    x = wg.tensor([0.5, 1.0], requires_grad=True)
    (Inner.apply(x) * 2).sum().backward()
    np.testing.assert_allclose(x.grad, 2 * (np.cos([0.5, 1.0]) * [0.5, 1.0] + np.sin([0.5, 1.0])))


# Errors


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (
            lambda ct: ct,
            GraphError,
            "Bad.backward: 1 cotangents; 2 are needed, one for each argument of forward. Return None for arguments "
            "without one.",
        ),
        (lambda ct: (ct, ct, ct), GraphError, "Bad.backward: 3 cotangents; 2 are needed, one for each argument"),
        (
            lambda ct: (ct, ct),
            ShapeError,
            "Bad.backward: a cotangent of shape (3, 2) for argument 1; the shape (2,) of that argument is needed. Sum "
            "over what forward broadcast.",
        ),
    ],
)
def test_wrong_cotangents(result: Any, error: Any, text: str) -> None:
    class Bad(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return result(ct)

    x, y = wg.tensor(np.ones((3, 2)), requires_grad=True), wg.tensor(np.ones(2), requires_grad=True)
    with pytest.raises(error, match=re.escape(text)):
        Bad.apply(x, y).sum().backward()
    assert x.grad is None
    with pytest.raises(error, match=re.escape(text)):
        wg.grad(lambda x, y: np.sum(Bad.apply(x, y)), (0, 1))(np.ones((3, 2)), np.ones(2))


def test_surplus_nones_are_accepted() -> None:
    class Extra(Square):
        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct * 2 * ctx.saved_tensors[0], None

    assert wg.grad(Extra.apply)(3.0) == 6.0


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ([1.0], "Bad.forward: a result of type list; a Tensor or a tuple of Tensors is needed. Store other results on"),
        ((1.0, None), "Bad.forward: a result of type NoneType; a Tensor or a tuple of Tensors is needed."),
        ((), "Bad.forward: an empty tuple of results; a Tensor or a tuple of Tensors is needed. Return one at least."),
    ],
)
def test_wrong_results_of_forward(result: Any, text: str) -> None:
    class Bad(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return result

    with pytest.raises(UsageError, match=re.escape(text)):
        Bad.apply(wg.tensor(1.0))


def test_missing_methods() -> None:
    class NoBackward(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1.0

    class NoForward(Function):
        pass

    assert NoBackward.apply(wg.tensor(2.0)).item() == 2.0
    text = "NoBackward: a Function without backward; a static method backward is needed to differentiate it. Define it."
    with pytest.raises(UsageError, match=re.escape(text)):
        wg.grad(NoBackward.apply)(2.0)
    with pytest.raises(UsageError, match=r"Function: a subclass without forward; a static method forward is needed\."):
        NoForward.apply(wg.tensor(2.0))


@pytest.mark.parametrize(
    "use",
    [
        lambda: Square(wg.tensor(1.0)),
        lambda: Square(),
        lambda: wg.grad(Square)(1.0),
        lambda: wg.vmap(Square)(np.ones(2)),
        lambda: wg.jit(Square)(1.0),
        lambda: wg.jvp(Square, (1.0,), (1.0,)),
        lambda: wg.scan(Square, 1.0, np.ones(2)),
    ],
)
def test_the_class_itself(use: Any) -> None:
    text = (
        "Square: the Function itself was called, or given to a transformation; its method apply is needed. Call "
        "Square.apply, or pass that to grad, vmap or jit."
    )
    with pytest.raises(UsageError, match=re.escape(text)):
        use()


def test_tensors_for_which_backward_could_return_nothing() -> None:
    x = wg.tensor(2.0, requires_grad=True)
    text = (
        "Scaled.apply: a Tensor that is being differentiated, in a container or passed by keyword; it is needed as a "
        "positional argument, because backward returns a cotangent for each of those. Pass it by position, or "
        ".detach() it."
    )
    with pytest.raises(GraphError, match=re.escape(text)):
        Scaled.apply(1.0, x, "name", power=x)
    with pytest.raises(GraphError, match=re.escape(text)):
        Scaled.apply([x], x, "name")
    assert Scaled.apply(1.0, x, "name", power=wg.tensor(2)).item() == 4.0


def test_captured_values_that_a_transformation_differentiates() -> None:
    def f(w: Any) -> Any:
        class Captures(Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * w

        return Captures.apply(wg.tensor(2.0))

    text = (
        "Captures.forward: a result that depends on a captured value which is being differentiated; forward must take "
        "such values as arguments. Add it to the arguments, or .detach() it."
    )
    with pytest.raises(GraphError, match=re.escape(text)):
        wg.jvp(f, (3.0,), (1.0,))


def capturing(used: Any) -> Any:
    """Return a function of (x, w) whose Function has x as its argument, and `used(x, w)` as its result."""

    def function(x: Any, w: Any) -> Any:
        class Captures(Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return used(x, w)

            @staticmethod
            def backward(ctx: Any, ct: Any) -> Any:
                return ct * 2

        return np.sum(Captures.apply(x))

    return function


def filled(x: Any, w: Any) -> Any:
    target = wg.numpy.zeros(2)
    target[:] = w
    return target * x


CAPTURES = {
    "operator": lambda x, w: x * w,
    "element": lambda x, w: x * w[0],
    "assigned": filled,
    "several results": lambda x, w: x * np.split(w, 2)[0],
    "jit": lambda x, w: wg.jit(lambda x: x * w)(x),
    "grad within": lambda x, w: wg.grad(lambda z: np.sum(z * w))(x),
    "no_grad within": lambda x, w: wg.no_grad()(lambda: x * w)(),
}
DIFFERENTIATED = {
    "grad": lambda f, x, w: wg.grad(f, (0, 1))(x, w),
    "constant argument": lambda f, x, w: wg.grad(lambda w: f(wg.tensor(x), w))(w),
    "nested": lambda f, x, w: wg.grad(lambda w: np.sum(wg.grad(lambda x: f(x, w))(x)))(w),
    "vmap": lambda f, x, w: wg.grad(lambda w: np.sum(wg.vmap(lambda x: f(x, w))(np.stack([x, x]))))(w),
    "jit": lambda f, x, w: wg.grad(lambda w: wg.jit(lambda x: f(x, w))(x))(w),
    "tape": lambda f, x, w: f(wg.tensor(x, requires_grad=True), wg.tensor(w, requires_grad=True)).backward(),
}


@together("mode", DIFFERENTIATED)
@together("used", CAPTURES)
def test_forward_refuses_captured_values_on_a_tape(used: str, mode: str) -> None:
    """Their gradients would be zero in silence."""
    text = "a captured value that is being differentiated; forward must take such values as arguments.*test_function"
    if mode == "jit":  # it is an input of the graph there
        text += "|a result that depends on a captured value which is being differentiated; forward must take"
    with pytest.raises(GraphError, match=rf"(?s)^Captures\.forward: ({text})"):
        DIFFERENTIATED[mode](capturing(CAPTURES[used]), np.ones(2), np.array([2.0, 3.0]))


@pytest.mark.parametrize(
    "used",
    [
        lambda x, w: x * w.detach(),
        lambda x, w: x * wg.stop_gradient(w),
        lambda x, w: x * w.shape[0],
        lambda x, w: np.where(w > 0, x, -x),
        lambda x, w: x * w.astype(int),
        lambda x, w: wg.grad(lambda z: np.sum(z * wg.no_grad()(lambda: z * 2)()))(x),
    ],
    ids=["detach", "stop_gradient", "shape", "comparison", "integers", "no_grad within grad"],
)
def test_forward_reads_captured_values_that_have_no_derivative(used: Any) -> None:
    x, w = (wg.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    capturing(used)(x, w).backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert w.grad is None


def test_attributes_that_differ_from_lane_to_lane() -> None:
    class Stores(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.scale = [x * 2]
            return x * x

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct * ctx.scale[0]

    assert wg.grad(Stores.apply)(3.0) == 6.0
    text = (
        "Stores.forward: ctx.scale, which differs from lane to lane under vmap; attributes of ctx must be the same for "
        "all lanes. Pass what depends on values to ctx.save_for_backward."
    )
    with pytest.raises(GraphError, match=re.escape(text)):
        wg.vmap(wg.grad(Stores.apply))(np.array([1.0, 2.0]))


@pytest.mark.filterwarnings("default")
def test_vmap_warns_once_and_names_the_function() -> None:
    class Unbatched(Square):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return Square.forward(ctx, x) if x > 0 else x

    with pytest.warns(UserWarning, match="^vmap: Unbatched has no batch rule and runs lane by lane; declare one for"):
        wg.vmap(Unbatched.apply)(np.ones(3))


# In graphs


class Tenfold(Function):
    """The square of x times k, with ten times its gradient, so that nobody takes it for the derivative of forward."""

    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x * x * k

    @staticmethod
    def backward(ctx, ct):
        (x,) = ctx.saved_tensors
        return ct * 20 * x * ctx.k, None


class Product(Function):
    """Two results, in the form without a context."""

    @staticmethod
    def forward(x, y):
        return x * y, x + y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.count = len(inputs) + len(output)

    @staticmethod
    def backward(ctx, first, second):
        x, y = ctx.saved_tensors
        assert ctx.count == 4
        return first * y + second, first * x + second


def tenfold(x):
    return Tenfold.apply(x, 3.0)


CALLS = {
    "alone": tenfold,
    "scan": lambda x: wg.scan(lambda c, e: (c + tenfold(e), tenfold(c) * e), 0.5, x)[1],
    "while": lambda x: wg.while_loop(lambda s: np.sum(s) < 50.0, tenfold, x),
    "cond": lambda x: wg.cond(x[0] > 0, tenfold, lambda x: x, x),
    "call": lambda x: wg.call(tenfold, x) * 2.0,
    "several results": lambda x: np.add(*Product.apply(x, x * 2.0)),
}


@pytest.mark.parametrize("program", CALLS.values(), ids=CALLS.keys())
def test_calls_stand_in_graphs(program):
    def loss(x):
        return np.sum(program(x))

    traced, gradient = wg.jit(program), wg.grad(loss)
    for x in (np.array([0.5, 0.6]), np.array([1.5, 0.1])):  # the second runs what was traced for the first
        np.testing.assert_allclose(traced(x), program(x))
        for other in (wg.jit(gradient), wg.grad(wg.jit(loss)), wg.grad(lambda x: np.sum(traced(x)))):
            np.testing.assert_allclose(other(x), gradient(x))
        value, tangent = wg.jvp(wg.jit(program), (x,), (x,))
        np.testing.assert_allclose(wg.jit(lambda x: wg.jvp(program, (x,), (x,)))(x), (value, tangent))
        np.testing.assert_allclose(tangent, wg.jvp(program, (x,), (x,))[1])
    np.testing.assert_allclose(wg.jit(wg.vmap(program))(x[None]), [program(x)])


def test_graphs_with_calls_are_differentiated_by_their_rules():
    graph = wg.graph.trace(lambda x: np.sum(tenfold(x)))(np.ones(2))
    assert str(graph).count("Tenfold(") == 1
    np.testing.assert_array_equal(wg.graph.gradient(graph)(np.array([1.0, 2.0]))[1], [60.0, 120.0])


class Stretched(Function):
    """Keep on the context what depends on values."""

    @staticmethod
    def forward(ctx, x):
        ctx.largest = float(np.max(x.numpy()))
        return x * ctx.largest

    @staticmethod
    def backward(ctx, ct):
        return ct * ctx.largest


def test_a_traced_gradient_does_not_take_an_example_for_a_value():
    x = np.array([0.5, 0.6])
    np.testing.assert_array_equal(wg.jit(Stretched.apply)(x), x * 0.6)
    for function in (
        wg.jit(wg.grad(lambda x: np.sum(Stretched.apply(x)))),
        wg.grad(wg.jit(lambda x: np.sum(Stretched.apply(x)))),
    ):
        with pytest.raises(
            GraphError, match=r"^Stretched\.forward: ctx\.largest, which depends on values that are being"
        ):
            function(x)


class Varying(Function):
    """Save as many Tensors as the values say."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(*[wg.asarray(np.ones(2)) for _ in range(int(np.sum(x.numpy())))])
        return x * 1.0

    @staticmethod
    def backward(ctx, ct):
        return ct


def test_a_traced_call_saves_as_much_as_every_other():
    with pytest.raises(GraphError, match=r"^Varying: 2 results and saved Tensors where 3 were traced; as many in"):
        wg.jit(Varying.apply)(np.array([0.5, 0.6]))


def test_calls_leave_nothing_to_the_garbage_collector():
    x = wg.tensor(np.ones(2), requires_grad=True)
    for call in (lambda: Square.apply(x), lambda: tenfold(x).sum().backward()):
        call()
        gc.collect()
        gc.disable()
        try:
            call()
            assert gc.collect() == 0
        finally:
            gc.enable()


class Masked(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mask = np.asarray(x) > 0
        return np.where(ctx.mask, x, 0.0)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        return ct * ctx.mask


@pytest.mark.parametrize("transform", [wg.grad, wg.value_and_grad, wg.jacfwd])
def test_attributes_are_compared_where_nobody_uses_the_value(transform: Any) -> None:
    x = np.array([-1.0, 2.0])
    np.testing.assert_array_equal(wg.grad(lambda x: np.sum(Masked.apply(x)))(x), [0.0, 1.0])
    for function in (Masked.apply, lambda x: wg.cond(x[1] > 0, Masked.apply, lambda x: x * 1.0, x)):
        with pytest.raises(GraphError, match=r"ctx\.mask, which depends on values that are being traced"):
            wg.jit(transform(lambda x, function=function: np.sum(function(x))))(x)


class Held:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> Any:
        return np.array([True, True])

    __hash__ = None  # type: ignore[assignment]  # like that of a table


@pytest.mark.parametrize(
    "kept",
    [lambda: [np.arange(3.0)], lambda: {"a": np.arange(3.0)}, lambda: float("nan"), lambda: Held(2), lambda: (1, "a")],
)
def test_attributes_in_containers_and_of_any_type_are_compared(kept: Any) -> None:
    class Keeping(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.kept = kept()
            return x * 2.0

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct * 2.0 if ctx.kept else ct

    f = lambda x: np.sum(Keeping.apply(x))
    for g in (wg.grad(f), wg.jit(wg.grad(f)), wg.grad(wg.jit(f))):
        np.testing.assert_array_equal(g(np.ones(2)), [2.0, 2.0])
    np.testing.assert_array_equal(wg.vmap(wg.grad(f))(np.ones((3, 2))), np.full((3, 2), 2.0))


def keeping(keep: Any, read: Any) -> Any:
    """A Function, the cube of its argument, whose forward keeps something and whose backward reads it."""

    class Cubed(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, scale: Any = 3.0) -> Any:
            ctx.save_for_backward(x)
            ctx.kept = keep(x, scale)
            return x**3

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct * read(ctx.kept, ctx.saved_tensors[0])

    return Cubed.apply


@pytest.mark.parametrize(
    ("keep", "read"),
    [
        (lambda x, _: 3.0 * np.asarray(x) ** 2, lambda kept, _: kept),
        (lambda x, _: float(3.0 * x**2), lambda kept, _: kept),
        (lambda x, _: [x], lambda kept, _: 3.0 * kept[0] ** 2),
        (lambda x, _: {"x": x.numpy()}, lambda kept, _: 3.0 * kept["x"] ** 2),
    ],
)
def test_second_derivatives_through_attributes_that_may_depend_on_arguments(keep: Any, read: Any) -> None:
    cubed = keeping(keep, read)
    assert wg.grad(cubed)(2.0) == 12.0
    assert wg.jvp(cubed, (2.0,), (1.0,)) == (8.0, 12.0)
    text = "Cubed.backward: a second differentiation where forward stored ctx.kept, numbers that may depend on"
    for second in (wg.grad(wg.grad(cubed)), wg.hessian(cubed), wg.jacfwd(wg.grad(cubed)), wg.grad(wg.jacfwd(cubed))):
        with pytest.raises(GraphError, match=re.escape(text)):
            second(2.0)


@pytest.mark.parametrize(
    ("keep", "read"),
    [
        (lambda x, scale: scale, lambda kept, x: kept * x**2),
        (lambda x, _: np.asarray(x) > 0, lambda kept, x: np.where(kept, 3.0 * x**2, 0.0)),
        (lambda x, _: (2, x.shape), lambda kept, x: 3.0 * x ** kept[0]),
    ],
)
def test_second_derivatives_beside_attributes_that_are_constant(keep: Any, read: Any) -> None:
    cubed = keeping(keep, read)
    for second in (wg.grad(wg.grad(cubed)), wg.hessian(cubed), wg.grad(wg.jit(wg.grad(cubed)))):
        assert second(2.0) == 12.0


@pytest.mark.parametrize("mode", [lambda f: f, wg.jit], ids=["eager", "jit"])
def test_results_lie_in_memory_as_forward_leaves_them(mode: Any) -> None:
    class Squared(Function):
        @staticmethod
        def forward(ctx: Any, t: Any) -> Any:
            return 2.0 * t**2

    def program(x: Any) -> Any:
        squared = Squared.apply(x.T)
        squared.reshape(-1)[1] += 100.0  # a copy, since they are in the order of columns
        return squared

    x = np.arange(6.0).reshape(2, 3)
    for given in (x, wg.tensor(x)):
        np.testing.assert_array_equal(np.asarray(mode(program)(given)), 2.0 * x.T**2)


# The batch rule and what is saved for the forward rule, as PyTorch has them


class Multiplied(wg.autograd.Function):
    """Multiply; all lanes at once by a rule that notes what it is called with."""

    calls: ClassVar[list[Any]] = []

    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(output, *inputs)

    @staticmethod
    def backward(ctx, ct):
        x, y = ctx.saved_tensors
        return Multiplied.apply(ct, y), Multiplied.apply(ct, x)

    @staticmethod
    def jvp(ctx, dx, dy):
        product, x, y = ctx.saved_tensors
        assert product.shape == x.shape
        return (0.0 if dx is None else dx * y) + (0.0 if dy is None else x * dy)

    @staticmethod
    def vmap(info, in_dims, x, y):
        Multiplied.calls.append((info.batch_size, in_dims, x.shape, y.shape))
        x, y = (v[..., None] if d is None else np.moveaxis(v, d, -1) for v, d in zip((x, y), in_dims, strict=True))
        return Multiplied.apply(x, y), -1


def test_a_static_vmap_computes_all_lanes():
    x, y = np.arange(1.0, 7.0).reshape(2, 3), np.arange(2.0, 5.0)
    product = wg.vmap(Multiplied.apply, (0, None))

    def loss(x):
        return np.sum(product(x, y) ** 2)

    Multiplied.calls.clear()
    np.testing.assert_array_equal(product(x, y), x * y)
    assert Multiplied.calls == [(2, (0, None), (2, 3), (3,))]
    np.testing.assert_array_equal(wg.jit(product)(x, y), x * y)
    np.testing.assert_array_equal(wg.vmap(wg.vmap(Multiplied.apply, (0, None)), (None, 0))(y, y), np.outer(y, y))
    np.testing.assert_allclose(wg.grad(loss)(x), 2 * x * y**2)
    np.testing.assert_allclose(wg.jit(wg.grad(loss))(x), 2 * x * y**2)
    np.testing.assert_allclose(wg.vmap(wg.grad(lambda x: np.sum(Multiplied.apply(x, y) ** 2)))(x), 2 * x * y**2)
    np.testing.assert_allclose(wg.jvp(lambda x: product(x, y), (x,), (np.ones((2, 3)),))[1], [y, y])
    np.testing.assert_allclose(wg.vmap(wg.hessian(lambda x: np.sum(Multiplied.apply(x, x * y))))(x)[1], np.diag(2 * y))


class Doubled(wg.autograd.Function):
    """Double, with a batch rule that may be replaced."""

    @staticmethod
    def forward(x):
        return x * 2.0

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, ct):
        return ct * 2.0


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (lambda info, in_dims, x: x * 2.0, r"^Wrong.vmap: a Tensor; a pair \(results, the axes of theirs that count"),
        (lambda info, in_dims, x: (x * 2.0, 1), r"^Wrong.vmap: a result of shape \(2, 3\) whose axis 1 is to count 2"),
        (lambda info, in_dims, x: (x * 2.0, (0, 0)), r"^Wrong.vmap: 2 axes for 1 results; one for each is needed"),
    ],
)
def test_a_static_vmap_must_say_where_lanes_are(rule, text):
    wrong = type("Wrong", (Doubled,), {"vmap": staticmethod(rule)})
    with pytest.raises((UsageError, ShapeError), match=text):
        wg.vmap(wrong.apply)(np.ones((2, 3)))


def test_a_static_vmap_needs_a_context_of_its_own_and_no_other_rule():
    def rule(info, in_dims, x):
        return x * 2.0, in_dims[0]

    both = type("Both", (Doubled,), {"vmap": staticmethod(rule), "generate_vmap_rule": True})
    with pytest.raises(UsageError, match=r"^Both: generate_vmap_rule and a static vmap; one of the two is needed"):
        wg.vmap(both.apply)(np.ones(2))
    old = type("Old", (Doubled,), {"vmap": staticmethod(rule), "setup_context": wg.autograd.Function.setup_context})
    with pytest.raises(UsageError, match=r"^Old: a static vmap, and a forward that fills the context; a static method"):
        wg.vmap(old.apply)(np.ones(2))
    same = type("Same", (Doubled,), {"vmap": staticmethod(lambda info, in_dims, x: (np.ones(3), None))})
    np.testing.assert_array_equal(wg.vmap(same.apply)(np.ones(2)), np.ones((2, 3)))
