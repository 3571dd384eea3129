"""Hooks: when they fire, what they see, what they replace, and what they may do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert import autograd
from wengert.errors import GraphError, ShapeError, UsageError


def leaf(*values: float) -> wg.Tensor:
    return wg.tensor(values, requires_grad=True)


def grad_of(x: wg.Tensor) -> list[Any]:
    assert x.grad is not None
    return x.grad.tolist()


# Hooks on Tensors


def test_a_hook_sees_the_complete_cotangent_once() -> None:
    x = leaf(1.0, 2.0)
    hidden = x * 2
    seen: list[Any] = []
    hidden.register_hook(lambda ct: seen.append(ct.tolist()))
    (hidden * 3 + hidden * 4 + hidden).sum().backward()
    assert seen == [[8.0, 8.0]]
    assert grad_of(x) == [16.0, 16.0]


@pytest.mark.parametrize("of_leaf", [False, True])
def test_what_a_hook_returns_is_propagated_and_captured(of_leaf: bool) -> None:
    x = leaf(1.0, 2.0)
    hidden = x * 2
    (x if of_leaf else hidden).register_hook(lambda ct: ct * 10)
    y = (hidden * 3).sum()
    g_hidden, g_x = autograd.grad(y, [hidden, x], retain_graph=True)
    assert g_hidden.tolist() == ([3.0, 3.0] if of_leaf else [30.0, 30.0])
    assert g_x.tolist() == [60.0, 60.0]
    y.backward()
    assert grad_of(x) == [60.0, 60.0]


def test_backward_and_grad_treat_hooks_alike() -> None:
    fired: list[str] = []
    x = leaf(1.0)
    x.register_hook(lambda ct: fired.append("hook"))
    x.register_post_accumulate_grad_hook(lambda t: fired.append("accumulated"))
    autograd.grad((x * 2).sum(), x)
    assert fired == ["hook"]
    (x * 2).sum().backward()
    assert fired == ["hook", "hook", "accumulated"]


def test_hooks_fire_in_order_of_registration_and_see_earlier_results() -> None:
    x = leaf(1.0)
    seen: list[float] = []

    def hook(factor: float) -> Any:
        return lambda ct: (seen.append(ct.item()), ct * factor)[1]

    for factor in (2.0, 3.0, 5.0):
        x.register_hook(hook(factor))
    (x * 1).sum().backward()
    assert seen == [1.0, 2.0, 6.0]
    assert grad_of(x) == [30.0]


def test_handles_remove_their_own_hook_only() -> None:
    x = leaf(1.0)
    first = x.register_hook(lambda ct: ct * 2)
    x.register_hook(lambda ct: ct * 3)
    (x * 1).sum().backward()
    first.remove()
    first.remove()
    (x * 1).sum().backward()
    with x.register_hook(lambda ct: ct * 5):
        (x * 1).sum().backward()
    (x * 1).sum().backward()
    assert grad_of(x) == [6.0 + 3.0 + 15.0 + 3.0]


def test_a_hook_may_remove_itself() -> None:
    x = leaf(1.0)
    handle = x.register_hook(lambda ct: (handle.remove(), ct * 2)[1])
    (x * 1).sum().backward()
    (x * 1).sum().backward()
    assert grad_of(x) == [3.0]


def test_a_hook_that_is_not_on_the_way_does_not_fire() -> None:
    x, w = leaf(1.0), leaf(1.0)
    w.register_hook(lambda ct: pytest.fail("fired"))
    autograd.grad((x * w).sum(), x)


def test_a_hook_on_a_view_sees_the_view() -> None:
    x = leaf(1.0, 2.0, 3.0)
    part = x[1:]
    part.register_hook(lambda ct: ct * 10)
    ((part * part).sum() + x.sum()).backward()
    assert grad_of(x) == [1.0, 41.0, 61.0]


def test_writes_of_a_hook_do_not_reach_the_sweep() -> None:
    for create in (False, True):
        x = leaf(1.0, 2.0)
        hidden, other = x * 2, x * 3

        def spoil(ct: wg.Tensor) -> None:
            ct *= 100.0
            ct[0] = -1.0

        hidden.register_hook(spoil)
        (hidden + other).sum().backward(create_graph=create)
        assert grad_of(x) == [5.0, 5.0]


def test_a_cotangent_that_a_hook_keeps_does_not_change() -> None:
    x = leaf(1.0, 2.0)
    kept: list[wg.Tensor] = []
    x.register_hook(kept.append)
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert [ct.tolist() for ct in kept] == [[2.0, 2.0], [2.0, 2.0]]


def test_hooks_see_complex_cotangents_as_the_tape_api_shows_them() -> None:
    z = wg.tensor([1 + 2j], requires_grad=True)
    hidden = z * (2 - 1j)
    hidden.retain_grad()
    seen: list[Any] = []
    hidden.register_hook(lambda ct: (seen.append(ct.numpy().copy()), ct * 1j)[1])
    (hidden * hidden.conj()).sum().real.backward()
    value = (1 + 2j) * (2 - 1j)
    np.testing.assert_allclose(seen, [[2 * value]])
    np.testing.assert_allclose(grad_of(hidden), [2j * value])
    np.testing.assert_allclose(grad_of(z), [2j * value * np.conj(2 - 1j)])


def test_hooks_are_recorded_with_the_sweep() -> None:
    x = leaf(3.0)
    hidden = x * x
    hidden.register_hook(lambda ct: ct * x)
    (first,) = autograd.grad((hidden * 1).sum(), x, create_graph=True)
    assert first.tolist() == [18.0]
    assert autograd.grad(first, x)[0].tolist() == [12.0]


def test_the_result_of_a_hook_must_have_the_same_shape() -> None:
    x = leaf(1.0, 2.0)
    x.register_hook(lambda ct: ct[:1])
    with pytest.raises(ShapeError) as error:
        (x * 2).sum().backward()
    assert str(error.value) == (
        "register_hook: a hook returned a cotangent of shape (1,); the shape (2,) is needed. "
        "Return an array of that shape, or None to leave the cotangent as it is."
    )
    assert x.grad is None


@pytest.mark.parametrize("result", [np.array([1, 2]), [1.0, 2.0], np.array([1.0, 2.0], np.float32)])
def test_a_hook_may_return_any_array(result: Any) -> None:
    x = leaf(1.0, 1.0)
    x.register_hook(lambda ct: result)
    (x * 5).sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == np.float64
    assert grad_of(x) == [1.0, 2.0]


def test_hooks_need_a_tensor_that_requires_grad() -> None:
    plain = wg.tensor([1.0])
    for name in ("register_hook", "register_post_accumulate_grad_hook"):
        with pytest.raises(GraphError) as error:
            getattr(plain, name)(print)
        assert str(error.value) == (
            f"{name}: a Tensor of shape (1,) that does not require grad; a Tensor that is being differentiated is "
            "needed. Call .requires_grad_() first."
        )
    with pytest.raises(GraphError) as error:
        plain.retain_grad()
    assert str(error.value).startswith("retain_grad: ")


def test_hooks_need_a_tensor_that_is_recorded_itself() -> None:
    def hooked(x: Any) -> Any:
        (x * 2).register_hook(print)

    for beneath in (lambda x: wg.vmap(hooked)(np.stack([x, x])), wg.jacfwd(hooked)):
        with pytest.raises(GraphError, match=r"register_hook: a Tensor of shape \(3,\) that is recorded beneath lanes"):
            wg.grad(beneath)(np.ones(3))


# Values that are written to later; the numbers are PyTorch's


@pytest.mark.parametrize("write", ["*=", "[...]", "[0]", "rebound", "of a view"])
def test_retained_gradients_follow_the_tensor_and_hooks_stay_with_the_value(write: str) -> None:
    y = leaf(1.0, 2.0) * 2
    y.retain_grad()
    seen: list[Any] = []
    y.register_hook(lambda ct: seen.append(ct.tolist()))
    if write == "*=":
        y *= 3
    elif write == "[...]":
        y[...] = 3.0
    elif write == "[0]":
        y[0] = 3.0
    elif write == "rebound":
        y.sin_()
    else:
        y[1:] *= 3
    (y * 5).sum().backward(retain_graph=True)
    assert grad_of(y) == [5.0, 5.0]
    y[1] = 0.0
    (y * 2).sum().backward()
    assert grad_of(y) == [7.0, 7.0]
    if write != "rebound":
        factors = {"*=": [3.0, 3.0], "[...]": [0.0, 0.0], "[0]": [0.0, 1.0], "of a view": [1.0, 3.0]}[write]
        assert seen == [[5 * f for f in factors], [2 * factors[0], 0.0]]


@together("write", ["base", "other", "itself", "no_grad", "no_grad itself", "view of it"])
def test_views_whose_base_is_written_to(write: str) -> None:
    """A view has another `grad_fn` afterwards: gradients are those of the value that it has now."""
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x if write.startswith("no_grad") else x * 2
    view = y[1:][:2]
    before = view * 5
    view.retain_grad()
    seen: list[Any] = []
    view.register_hook(lambda ct: seen.append(ct.tolist()))
    recorded = view.grad_fn
    if write == "base":
        y *= 2
    elif write == "other":
        y[:3][1:] *= 2
    elif write == "itself":
        view *= 2
    elif write == "no_grad":
        with wg.no_grad():
            y[0] = 7.0
    elif write == "no_grad itself":
        with wg.no_grad():
            view[0] = 7.0
    else:
        view[1:].reshape(1, 1)[...] = 0.0
    assert view.grad_fn != recorded
    assert (view.requires_grad, view.is_leaf) == (True, False)
    late: list[Any] = []
    view.register_hook(lambda ct: late.append(ct.tolist()))
    after = (view * wg.tensor([3.0, 4.0])).sum()
    assert autograd.grad(after + before.sum(), view, retain_graph=True)[0].tolist() == [3.0, 4.0]
    assert autograd.grad([view, before], [view], [wg.tensor([1.0, 1.0])] * 2, retain_graph=True)[0].tolist() == [1, 1]
    seen.clear()
    late.clear()
    (after + before.sum()).backward(retain_graph=True)
    assert grad_of(view) == [3.0, 4.0]
    assert late == [[3.0, 4.0]]
    through = {"base": [5, 5], "other": [5, 5], "no_grad": [5, 5], "no_grad itself": [5, 5], "view of it": [5, 5]}
    assert seen == [through.get(write, [11, 13])]
    total = {"base": [22, 26], "other": [22, 26], "itself": [22, 26], "view of it": [16, 10]}
    assert grad_of(x) == [0.0, *total.get(write, [8, 9]), 0.0]
    after.backward()
    assert grad_of(view) == [6.0, 8.0]


def test_a_view_that_is_not_used_after_a_write_keeps_its_gradient_from_before() -> None:
    y = leaf(1.0, 2.0, 3.0) * 2
    view = y[:2]
    view.retain_grad()
    before = (view * 3).sum()
    y *= 2
    (before + y.sum()).backward(retain_graph=True)
    assert grad_of(view) == [3.0, 3.0]
    (before + (view * 5).sum()).backward()
    assert grad_of(view) == [8.0, 8.0]


def test_a_leaf_that_required_no_grad_meanwhile_is_the_same_leaf() -> None:
    w = leaf(1.0, 2.0)
    view, seen = w[:1], []
    w.register_hook(lambda ct: seen.append(ct.tolist()))
    recorded = view.grad_fn
    (view * 2).sum().backward(retain_graph=True)
    w.requires_grad_(False)
    assert view.grad_fn == recorded
    (view * 2).sum().backward(retain_graph=True)
    assert grad_of(w) == [2.0, 0.0]
    w.requires_grad_()
    assert view.grad_fn == recorded
    (view * 2).sum().backward(retain_graph=True)
    assert grad_of(w) == [4.0, 0.0]
    assert seen == [[2.0, 0.0]] * 3


@pytest.mark.parametrize("write", ["[0]", "[...]", "+="])
def test_a_leaf_that_requires_no_grad_any_more_may_be_computed(write: str) -> None:
    w, x = leaf(1.0, 2.0).requires_grad_(False), wg.tensor(3.0, requires_grad=True)
    if write == "[0]":
        w[0] = x * 2
    elif write == "[...]":
        w[...] = x * 2
    else:
        w += x * 2
    w.sum().backward()
    assert x.grad is not None
    assert x.grad.item() == (2.0 if write == "[0]" else 4.0)


def test_what_is_copied_has_hooks_of_its_own() -> None:
    for copy in (np.copyto, wg.Tensor.copy_, lambda t, o: np.positive(o, out=t), lambda t, o: t.__setitem__(..., o)):
        o, t = leaf(1.0, 2.0) * 2, wg.tensor([0.0, 0.0])
        copy(t, o)
        t.register_hook(lambda ct: ct * 10)
        t.retain_grad()
        (t + o).sum().backward()
        assert o.grad_fn != t.grad_fn
        assert grad_of(t) == [10.0, 10.0]


# Hooks after accumulation


def test_post_accumulate_hooks_see_the_new_gradient() -> None:
    x, w = leaf(1.0), leaf(2.0)
    seen: list[Any] = []

    def step(t: wg.Tensor) -> None:
        seen.append((t is x, grad_of(t), w.grad is None))
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * w).sum().backward()
    assert seen == [(True, [2.0], False)]
    assert x.grad is None


def test_post_accumulate_hooks_are_for_leaves() -> None:
    with pytest.raises(GraphError) as error:
        (leaf(1.0) * 2).register_post_accumulate_grad_hook(print)
    assert str(error.value) == (
        "register_post_accumulate_grad_hook: a Tensor that multiply computed; a leaf is needed. "
        "Use register_hook for others."
    )


# Hooks on operations


def test_hooks_on_operations_see_and_replace_cotangents() -> None:
    x, w = leaf(1.0), leaf(10.0)
    y = x * w
    seen: list[Any] = []
    y.grad_fn.register_prehook(lambda cts: (seen.append([ct.item() for ct in cts]), (cts[0] * 2,))[1])
    y.grad_fn.register_hook(
        lambda inputs, outputs: (
            seen.append(([ct.item() for ct in inputs], [ct.item() for ct in outputs])),
            (inputs[0] + 1, inputs[1]),
        )[1]
    )
    y.backward()
    assert seen == [[1.0], ([20.0, 2.0], [2.0])]
    assert (grad_of(x), grad_of(w)) == ([21.0], [2.0])


def test_what_is_captured_comes_before_the_operation_hooks() -> None:
    x = leaf(1.0)
    hidden = x * 3
    hidden.grad_fn.register_prehook(lambda cts: (cts[0] * 100,))
    hidden.register_hook(lambda ct: ct * 2)
    g_hidden, g_x = autograd.grad((hidden * 5).sum(), [hidden, x])
    assert (g_hidden.tolist(), g_x.tolist()) == ([10.0], [3000.0])


def test_an_operation_that_does_not_run_fires_no_hooks() -> None:
    x = leaf(1.0)
    hidden = x * 3
    hidden.grad_fn.register_prehook(lambda cts: pytest.fail("fired"))
    hidden.grad_fn.register_hook(lambda inputs, outputs: pytest.fail("fired"))
    autograd.grad((hidden * 5).sum(), hidden)


def test_hooks_on_operations_with_several_results() -> None:
    x = leaf(1.25, -2.5)
    fraction, _ = np.modf(x)
    seen: list[Any] = []
    fraction.grad_fn.register_prehook(lambda cts: seen.append([ct if ct is None else ct.tolist() for ct in cts]))
    fraction.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 2,))
    (fraction * 3).sum().backward()
    assert seen == [[[3.0, 3.0], None]]
    assert grad_of(x) == [6.0, 6.0]


def test_none_stops_a_cotangent_between_operations() -> None:
    x, w = leaf(1.0), leaf(2.0)
    y = x * w
    y.grad_fn.register_hook(lambda inputs, outputs: (None, inputs[1]))
    y.backward()
    assert x.grad is None
    assert grad_of(w) == [1.0]


def test_hooks_on_operations_that_work_in_place() -> None:
    x = leaf(1.0, 2.0, 3.0)
    buffer = x * 1.0
    buffer[0] = x[1] * 2
    written = buffer.grad_fn
    seen: list[Any] = []
    written.register_hook(lambda inputs, outputs: seen.append([None if ct is None else ct.tolist() for ct in inputs]))
    part = buffer[1:]
    part.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10,))
    part.sum().backward()
    assert seen == [[[0.0, 10.0, 10.0], 0.0]]
    assert grad_of(x) == [0.0, 10.0, 10.0]


@pytest.mark.parametrize(
    ("register", "result", "count"),
    [("register_prehook", (1.0, 2.0), 1), ("register_hook", (np.ones(1),), 2)],
)
def test_number_of_cotangents_must_match(register: str, result: Any, count: int) -> None:
    y = leaf(1.0) * leaf(2.0)
    getattr(y.grad_fn, register)(lambda *_: result)
    name = "register_prehook" if register == "register_prehook" else "grad_fn.register_hook"
    with pytest.raises(UsageError) as error:
        y.backward()
    assert str(error.value) == (
        f"{name}: a hook returned {len(result)} cotangents; {count} are needed. "
        "Return as many as the hook received, None where there is none, or None alone to change nothing."
    )


def test_shapes_from_operation_hooks_must_match() -> None:
    y = leaf(1.0, 2.0) * 2
    y.grad_fn.register_hook(lambda inputs, outputs: (np.ones(3), None))
    with pytest.raises(ShapeError, match=r"^grad_fn\.register_hook: a hook returned a cotangent of shape \(3,\);"):
        y.sum().backward()


# Sweeps inside hooks


def test_a_hook_may_sweep_another_graph() -> None:
    x, w = leaf(2.0), leaf(3.0)

    def inner(ct: wg.Tensor) -> wg.Tensor:
        with wg.enable_grad():
            (w * w).sum().backward()
            (g,) = autograd.grad((w * w * w).sum(), w)
        return ct * g

    hidden = x * 5
    hidden.register_hook(inner)
    (hidden + w).sum().backward()
    assert grad_of(x) == [5.0 * 27.0]
    assert grad_of(w) == [6.0 + 1.0]


def test_a_hook_may_sweep_the_same_leaves() -> None:
    x = leaf(2.0)
    depth = 0

    def inner(_: wg.Tensor) -> None:
        nonlocal depth
        if depth < 3:
            depth += 1
            with wg.enable_grad():
                (x * x).sum().backward()

    x.register_hook(inner)
    (x * 10).sum().backward()
    assert depth == 3
    assert grad_of(x) == [4.0 * 3 + 10.0]


def test_a_hook_may_sweep_the_graph_it_is_in() -> None:
    x = leaf(2.0)
    hidden = x * x
    y = (hidden * hidden).sum()
    inner: list[float] = []

    def sweep_again(_: wg.Tensor) -> None:
        handle.remove()
        inner.append(autograd.grad(y, x, retain_graph=True)[0].item())

    handle = hidden.register_hook(sweep_again)
    y.backward(retain_graph=True)
    assert inner == [32.0]
    assert grad_of(x) == [32.0]


def test_hooks_run_without_recording_unless_the_sweep_records() -> None:
    x = leaf(2.0)
    modes: list[bool] = []
    x.register_hook(lambda ct: modes.append(wg.is_grad_enabled()))
    (x * x).sum().backward()
    (x * x).sum().backward(create_graph=True)
    assert modes == [False, True]
    assert wg.is_grad_enabled()


def test_failing_hooks_leave_modes_as_they_were() -> None:
    x = leaf(2.0)
    x.register_hook(lambda ct: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * x).sum().backward()
    assert wg.is_grad_enabled()
    assert x.grad is None


# Saved-tensor hooks


def test_saved_tensors_pass_through_pack_and_unpack() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    packed: list[Any] = []
    unpacked: list[Any] = []

    def pack(t: wg.Tensor) -> Any:
        packed.append(t.tolist())
        return t.numpy().astype(np.float32)

    def unpack(kept: Any) -> Any:
        unpacked.append(kept.tolist())
        return kept.astype(np.float64)

    with autograd.saved_tensors_hooks(pack, unpack):
        y = np.exp(x * w)
    after = (y * x).sum()
    assert packed == [[1.0, 2.0], [3.0, 4.0], y.tolist()]
    assert unpacked == []
    after.backward()
    assert len(unpacked) == 3
    v, u = x.detach().numpy(), w.detach().numpy()
    np.testing.assert_allclose(grad_of(x), np.exp(v * u) * (1 + v * u), rtol=1e-6)


def test_innermost_saved_tensor_hooks_apply() -> None:
    used: list[str] = []

    def pair(name: str) -> Any:
        return autograd.saved_tensors_hooks(lambda t: (used.append(name), t)[1], lambda t: t)

    x = leaf(1.0)
    with pair("outer"):
        np.exp(x)
        with pair("inner"):
            np.exp(x)
        np.exp(x)
    np.exp(x)
    assert used == ["outer", "inner", "outer"]


def test_pack_hooks_may_compute_and_write_without_harm() -> None:
    x = leaf(1.0, 2.0)

    def pack(t: wg.Tensor) -> wg.Tensor:
        t += 1.0
        t[0] *= 2
        return t * 0.5

    with autograd.saved_tensors_hooks(pack, lambda t: (t * 2 - 1) * np.array([0.0, 1.0]) + [x.detach()[0].item(), 0]):
        y = x * x
    assert x.tolist() == [1.0, 2.0]
    y.sum().backward()
    assert grad_of(x) == [2.0, 4.0]


def test_saved_tensor_hooks_as_decorator_and_with_recorded_sweeps() -> None:
    @autograd.saved_tensors_hooks(lambda t: t.tolist(), wg.tensor)
    def cube(t: wg.Tensor) -> wg.Tensor:
        return t * t * t

    x = leaf(2.0)
    (first,) = autograd.grad(cube(x), x, create_graph=True)
    (second,) = autograd.grad(first, x)
    assert (first.tolist(), second.tolist()) == ([12.0], [12.0])


def test_saved_results_of_several_outputs_are_packed() -> None:
    x = leaf(3.0, 5.0)
    with autograd.saved_tensors_hooks(lambda t: ("packed", t.numpy()), lambda kept: kept[1]):
        mantissa, _ = np.frexp(x)
    mantissa.sum().backward()
    np.testing.assert_array_equal(grad_of(x), [0.25, 0.125])


@pytest.mark.parametrize(("wrong", "given"), [(np.ones(3), "shape (3,)"), (None, "a NoneType"), ([1.0], "a list")])
def test_unpack_must_return_what_was_packed(wrong: Any, given: str) -> None:
    x = leaf(1.0, 2.0)
    with autograd.saved_tensors_hooks(lambda t: t, lambda t: wrong):
        y = np.exp(x)
    with pytest.raises(UsageError) as error:
        y.sum().backward()
    assert str(error.value) == (
        f"saved_tensors_hooks: unpack returned {given} for a Tensor of shape (2,); a Tensor or ndarray of the same "
        "shape is needed. Return what pack was given."
    )


def test_a_failing_pack_hook_leaves_the_mode_as_it_was() -> None:
    x = leaf(1.0)
    with pytest.raises(ZeroDivisionError), autograd.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
        np.exp(x)
    (g,) = autograd.grad(np.exp(x), x)
    assert g.tolist() == [np.exp(1.0)]


def test_what_a_hook_keeps_is_not_changed_by_writes_to_an_array_that_another_returned() -> None:
    array, kept = np.ones(5000), []
    x = wg.tensor(np.zeros(5000), requires_grad=True)
    y = x[::-1]
    z = np.reshape(y, (50, 100))
    y.register_hook(kept.append)
    z.register_hook(lambda ct: array.reshape(50, 100))
    z.backward(np.zeros((50, 100)))
    array[:] = 7.0
    for found in (kept[0], x.grad):
        np.testing.assert_array_equal(found, np.ones(5000))
