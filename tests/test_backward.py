"""`backward` and `grad` of the tape API: accumulation, release, errors, length, and memory."""

from __future__ import annotations

import gc
import sys
import tracemalloc
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert import autograd
from wengert.core.values.tensor import raw
from wengert.errors import DtypeError, GraphError, NumericalError, ShapeError, UsageError


def leaf(*values: float, dtype: Any = float) -> wg.Tensor:
    return wg.tensor(values, dtype=dtype, requires_grad=True)


def grad_of(x: wg.Tensor) -> np.ndarray[Any, Any]:
    assert x.grad is not None
    return x.grad.numpy()


# What is recorded


def test_operations_are_recorded_iff_an_input_requires_grad() -> None:
    x, plain = leaf(1.0, 2.0), wg.tensor([1.0, 2.0])
    assert (x * plain).requires_grad
    assert (plain * x).requires_grad
    assert not (plain * plain).requires_grad
    assert not (x > 0).requires_grad
    assert not np.floor(x).requires_grad
    with wg.no_grad():
        assert not (x * x).requires_grad


def test_results_that_are_integers_are_not_recorded() -> None:
    converted = leaf(1.5, 2.5).astype(int)
    assert not converted.requires_grad
    assert converted.tolist() == [1, 2]


def test_leaf_and_grad_fn() -> None:
    x = leaf(1.0)
    y = x * 3
    assert x.is_leaf
    assert x.grad_fn is None
    assert not y.is_leaf
    assert y.grad_fn.name == "multiply"
    assert repr(y.grad_fn) == "<grad_fn multiply>"
    assert wg.tensor([1.0]).is_leaf


def test_graph_can_be_walked() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = np.sin(x * w + 1.0)
    assert y.grad_fn.name == "sin"
    (add,) = y.grad_fn.next_functions
    multiply, constant = add.next_functions
    assert constant is None
    assert [f.name for f in multiply.next_functions] == ["leaf", "leaf"]
    assert y.grad_fn.number > add.number > multiply.number
    assert y.grad_fn.metadata["shape"] == (2,)
    assert y.grad_fn.metadata["dtype"] == np.float64
    assert y.grad_fn.position.filename == __file__
    assert y.grad_fn.position.text == "y = np.sin(x * w + 1.0)"
    assert y.grad_fn == y.grad_fn
    assert len({y.grad_fn, y.grad_fn}) == 1


def test_several_results_share_one_operation() -> None:
    fraction, whole = np.modf(leaf(1.25, -2.5))
    assert fraction.grad_fn == whole.grad_fn
    assert fraction.grad_fn.next_functions[0].name == "leaf"


# Accumulation


def test_micro_batches_accumulate_in_place() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first
    np.testing.assert_array_equal(grad_of(x), [5.0, 7.0])


def test_accumulation_while_recording_is_out_of_place() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward(create_graph=True)
    first = x.grad
    (x * x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert first is not None
    np.testing.assert_array_equal(first.detach().numpy(), [2.0, 4.0])
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.detach().numpy(), [5.0, 16.0])
    (second,) = autograd.grad(x.grad.sum(), x)
    np.testing.assert_allclose(second.numpy(), [2 + 6 * 1.0, 2 + 6 * 2.0])


def test_plain_accumulation_onto_a_recorded_gradient_is_out_of_place() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward(create_graph=True)
    first = x.grad
    (x * 1.0).sum().backward()
    assert first is not None
    np.testing.assert_array_equal(first.detach().numpy(), [2.0, 4.0])
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.detach().numpy(), [3.0, 5.0])


def test_grad_never_shares_memory_with_anything() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    seed = np.array([1.0, 1.0])
    (x + w).backward(seed)
    assert not np.shares_memory(grad_of(x), grad_of(w))
    assert not np.shares_memory(grad_of(x), seed)
    (x + w).backward(seed)
    np.testing.assert_array_equal(seed, [1.0, 1.0])
    np.testing.assert_array_equal(grad_of(w), [2.0, 2.0])


def test_a_gradient_that_was_read_is_not_changed_by_later_sweeps() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    seen = grad_of(x)
    (x * x).sum().backward()
    np.testing.assert_array_equal(seen, [2.0, 4.0])
    np.testing.assert_array_equal(grad_of(x), [4.0, 8.0])


def test_same_input_twice_gives_two_arrays() -> None:
    x = leaf(1.0, 2.0)
    first, second = autograd.grad((x * x).sum(), [x, x])
    assert not np.shares_memory(first.numpy(), second.numpy())
    first[0] = 100.0
    np.testing.assert_array_equal(second.numpy(), [2.0, 4.0])


def test_same_input_twice_accumulates_once() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward(inputs=[x, x])
    np.testing.assert_array_equal(grad_of(x), [2.0, 4.0])


def test_grad_leaves_every_grad_alone() -> None:
    x = leaf(1.0, 2.0)
    hidden = x * 2
    hidden.retain_grad()
    (result,) = autograd.grad((hidden * hidden).sum(), x)
    np.testing.assert_array_equal(result.numpy(), [8.0, 16.0])
    assert x.grad is None
    assert hidden.grad is None


def test_backward_into_chosen_inputs_only() -> None:
    x, w = leaf(1.0), leaf(2.0)
    hidden = x * w
    (hidden * 3).sum().backward(inputs=[w, hidden])
    assert x.grad is None
    np.testing.assert_array_equal(grad_of(w), [3.0])
    np.testing.assert_array_equal(grad_of(hidden), [3.0])


def test_retained_gradients_accumulate() -> None:
    x = leaf(1.0, 2.0)
    hidden = x * 2
    hidden.retain_grad()
    y = (hidden * hidden).sum()
    y.backward(retain_graph=True)
    np.testing.assert_array_equal(grad_of(hidden), [4.0, 8.0])
    y.backward()
    np.testing.assert_array_equal(grad_of(hidden), [8.0, 16.0])


def test_gradients_that_are_not_retained_say_so_at_the_users_line() -> None:
    x = leaf(1.0, 2.0)
    hidden = x * 2
    hidden.sum().backward()
    with pytest.warns(UserWarning, match=r"^grad: a Tensor that multiply .*no leaf.* Call .retain_grad\(\)") as caught:
        assert hidden.grad is None
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wg.tensor([1.0]).grad is None is leaf(1.0).grad
        hidden = x * 2
        hidden.retain_grad()
        assert hidden.grad is None  # before the first sweep
        hidden = x * 2
        hidden.sum().backward(inputs=[hidden])
        np.testing.assert_array_equal(grad_of(hidden), [1.0, 1.0])


def test_several_outputs_in_one_sweep() -> None:
    x = leaf(1.0, 2.0)
    a, b = x * 2, (x * x).sum()
    autograd.backward([a, b], [np.array([1.0, 10.0]), None])
    np.testing.assert_array_equal(grad_of(x), [2 + 2.0, 20 + 4.0])
    (g,) = autograd.grad([x.sum(), x.sum()], x)
    np.testing.assert_array_equal(g.numpy(), [2.0, 2.0])


def test_backward_of_a_leaf() -> None:
    x = leaf(3.0)
    x.backward()
    x.backward(np.array([5.0]))
    np.testing.assert_array_equal(grad_of(x), [6.0])
    assert autograd.grad(x, x)[0].tolist() == [1.0]


def test_gradient_with_respect_to_what_was_computed() -> None:
    x = leaf(1.0, 2.0)
    hidden = x * 3
    y = (hidden * hidden).sum()
    g_hidden, g_x = autograd.grad(y, [hidden, x])
    np.testing.assert_array_equal(g_hidden.numpy(), [6.0, 12.0])
    np.testing.assert_array_equal(g_x.numpy(), [18.0, 36.0])
    assert autograd.grad(y, y)[0].item() == 1.0


def test_gradient_with_respect_to_a_view() -> None:
    x = leaf(1.0, 2.0, 3.0)
    part = x[1:]
    (g,) = autograd.grad((part * part).sum(), part)
    np.testing.assert_array_equal(g.numpy(), [4.0, 6.0])


def test_unused_inputs() -> None:
    x, unused = leaf(1.0), leaf(1.0, 2.0)
    y = (x * x).sum()
    with pytest.raises(GraphError) as error:
        autograd.grad(y, [x, unused], retain_graph=True)
    assert str(error.value) == (
        "grad: input 1, of shape (2,), on which no output depends; inputs that the outputs were computed from are "
        "needed. Pass allow_unused=True for None, or materialize_grads=True for zeros."
    )
    assert autograd.grad(y, [x, unused], retain_graph=True, allow_unused=True)[1] is None
    zeros = autograd.grad(y, [x, unused], materialize_grads=True)[1]
    assert zeros is not None
    np.testing.assert_array_equal(zeros.numpy(), [0.0, 0.0])


def test_grad_can_be_set_and_cleared() -> None:
    x = leaf(1.0, 2.0)
    x.grad = np.array([1.0, 1.0])
    (x * x).sum().backward()
    np.testing.assert_array_equal(grad_of(x), [3.0, 5.0])
    x.grad = None
    assert x.grad is None
    (x * x).sum().backward()
    np.testing.assert_array_equal(grad_of(x), [2.0, 4.0])


def test_a_grad_that_is_not_there_may_be_cleared() -> None:
    constant = wg.tensor([1.0, 2.0])
    constant.grad = None
    assert constant.grad is None


def test_an_array_that_became_grad_is_not_written_to() -> None:
    x = leaf(1.0, 2.0)
    given = np.array([1.0, 1.0])
    x.grad = given
    (x * x).sum().backward()
    np.testing.assert_array_equal(given, [1.0, 1.0])


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (
            np.ones(3),
            ShapeError,
            "grad: a gradient of shape (3,) for a Tensor of shape (2,); the same shape is needed. Reshape it.",
        ),
        (
            np.ones(2, int),
            DtypeError,
            "grad: a gradient of dtype int64 for a Tensor of dtype float64; the same dtype is needed. "
            "Convert it with .astype.",
        ),
    ],
)
def test_unsuitable_gradients_are_refused(value: Any, error: type[Exception], text: str) -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(error) as caught:
        x.grad = value
    assert str(caught.value) == text


# Seeds


def test_gradient_is_needed_for_more_than_one_element() -> None:
    with pytest.raises(ShapeError) as error:
        (leaf(1.0, 2.0) * 2).backward()
    assert str(error.value) == (
        "backward: an output of shape (2,) without a gradient; an output with one element is needed. "
        "Reduce it, pass gradient=, or use wengert.vjp or wengert.jacobian."
    )


def test_one_element_of_any_rank_needs_no_gradient() -> None:
    x = wg.tensor([[3.0]], requires_grad=True)
    (x * x).backward()
    assert grad_of(x).tolist() == [[6.0]]


def test_gradient_must_have_the_exact_shape() -> None:
    with pytest.raises(ShapeError) as error:
        (leaf(1.0, 2.0) * 2).backward(np.ones((1, 2)))
    assert str(error.value) == (
        "backward: a gradient of shape (1, 2) for an output of shape (2,); the same shape is needed. "
        "Broadcast or reshape the gradient."
    )
    with pytest.raises(ShapeError):
        autograd.grad(leaf(1.0, 2.0) * 2, leaf(1.0), np.float64(1))


@pytest.mark.parametrize("kind", [np.asarray, wg.tensor, list])
def test_gradient_may_be_any_array(kind: Any) -> None:
    x = leaf(1.0, 2.0)
    (x * x).backward(kind([1, 10]))
    np.testing.assert_array_equal(grad_of(x), [2.0, 40.0])


def test_complex_outputs_need_a_gradient() -> None:
    z = wg.tensor([1 + 2j], requires_grad=True)
    with pytest.raises(DtypeError) as error:
        (z * z).backward()
    assert str(error.value) == (
        "backward: an output of dtype complex128 without a gradient; a real output is needed, because a complex one "
        "has no direction of descent. Take its real part or absolute value, or pass gradient=."
    )


def test_complex_gradient_is_the_direction_of_descent() -> None:
    z = wg.tensor([1 + 2j, -0.5j], requires_grad=True)
    (z * z.conj()).sum().real.backward()
    np.testing.assert_allclose(grad_of(z), 2 * z.detach().numpy())


@pytest.mark.parametrize("outputs", [3.0, np.ones(2), [1.0]])
def test_outputs_must_be_tensors(outputs: Any) -> None:
    with pytest.raises(UsageError, match=r"^backward: a \w+; Tensors are needed\. Make one with wengert\.tensor\.$"):
        autograd.backward(outputs)


def test_number_of_gradients_must_match() -> None:
    x = leaf(1.0)
    with pytest.raises(UsageError) as error:
        autograd.backward([x * 1, x * 2], [np.ones(1)])
    assert str(error.value) == "backward: 1 gradients for 2 outputs; one for each is needed. Pass as many."


def test_outputs_and_inputs_must_require_grad() -> None:
    text = (
        "{}: a Tensor of shape (1,) that does not require grad; a Tensor recorded by the tape is needed. "
        "Set requires_grad=True on the inputs, and compute it outside no_grad; gradients are recorded by sweeps with "
        "create_graph=True."
    )
    with pytest.raises(GraphError) as error:
        wg.tensor([1.0]).backward()
    assert str(error.value) == text.format("backward")
    with pytest.raises(GraphError) as error:
        autograd.grad(leaf(1.0) * 2, wg.tensor([1.0]))
    assert str(error.value) == text.format("grad")


# Release


def test_sweeping_a_released_graph_is_an_error() -> None:
    x = leaf(2.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(GraphError) as error:
        y.backward()
    text = str(error.value)
    assert text.startswith("backward: a graph whose residuals were released by an earlier sweep (at ")
    assert f'File "{__file__}", line ' in text
    assert text.endswith(
        "a graph that was retained is needed to sweep it again. "
        "Pass retain_graph=True to the earlier sweep, or compute the output anew."
    )
    np.testing.assert_array_equal(grad_of(x), [4.0])


def test_a_sweep_that_a_hook_ends_is_an_earlier_one_too() -> None:
    x = leaf(2.0)
    y = x * x
    y.register_hook(lambda ct: ct.no_such_thing)
    z = (y * 3.0 * x).sum()
    with pytest.raises(AttributeError):
        z.backward()
    with pytest.raises(
        GraphError, match=r"by an earlier sweep.*, which may have ended with an error; a graph that was"
    ):
        z.backward()


def test_a_retained_graph_can_be_swept_again() -> None:
    x = leaf(2.0)
    y = np.exp(x * x).sum()
    y.backward(retain_graph=True)
    first = grad_of(x).copy()
    y.backward()
    np.testing.assert_array_equal(grad_of(x), 2 * first)


def test_create_graph_retains() -> None:
    x = leaf(2.0)
    y = (x * x * x).sum()
    (first,) = autograd.grad(y, x, create_graph=True)
    (second,) = autograd.grad(first, x, create_graph=True)
    (third,) = autograd.grad(second, x)
    assert [first.item(), second.item(), third.item()] == [12.0, 12.0, 6.0]
    y.backward()


def test_what_was_not_run_is_not_released() -> None:
    x = leaf(2.0)
    hidden = x * x
    (g,) = autograd.grad((hidden * 3).sum(), hidden)
    hidden.backward(g)
    np.testing.assert_array_equal(grad_of(x), [12.0])


def test_release_frees_residuals() -> None:
    x = leaf(*range(1, 100))
    hidden = np.exp(x)
    seen = weakref.ref(hidden.detach()._value.base if hidden._value.base is not None else hidden._value)
    y = (hidden * hidden).sum()
    del hidden
    assert seen() is not None
    y.backward()
    assert seen() is None


def test_leaves_and_graphs_do_not_keep_each_other_alive() -> None:
    gc.disable()
    try:
        x = leaf(1.0)
        y = np.sin(x * x)
        node = weakref.ref(y.grad_fn._node)
        kept = weakref.ref(x)
        del y
        assert node() is None
        del x
        assert kept() is None
    finally:
        gc.enable()


def test_gradient_of_a_dropped_leaf_is_dropped() -> None:
    x = leaf(2.0)
    y = (x * x).sum()
    del x
    y.backward()


# Failure


def test_a_failed_sweep_changes_no_gradient() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    (x * w).sum().backward()
    before = grad_of(x).copy(), grad_of(w).copy()
    hidden = x * 2
    hidden.retain_grad()
    y = (hidden * w).sum() + (w * w).sum()

    def fail(_: wg.Tensor) -> None:
        raise RuntimeError("on purpose")

    handle = x.register_hook(fail)
    with pytest.raises(RuntimeError, match="on purpose"):
        y.backward(retain_graph=True)
    np.testing.assert_array_equal(grad_of(x), before[0])
    np.testing.assert_array_equal(grad_of(w), before[1])
    assert hidden.grad is None
    handle.remove()
    y.backward()
    np.testing.assert_array_equal(grad_of(x), before[0] + 2 * w.detach().numpy())


def test_a_sweep_that_fails_in_the_middle_changes_no_gradient() -> None:
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    early = np.exp(x)
    early.sum().backward()
    y = (early * w).sum()
    x.grad = None
    with pytest.raises(GraphError, match="released"):
        y.backward()
    assert x.grad is None
    assert w.grad is None


# Mutation of what was saved


def test_saved_values_are_not_changed_by_later_writes() -> None:
    x = leaf(1.0, 2.0)
    weights = wg.tensor([3.0, 4.0])
    hidden = x * 2
    y = (hidden * hidden * weights).sum()
    weights[0] = 100.0
    hidden += 5.0
    with wg.no_grad():
        x -= 10.0
    y.backward()
    np.testing.assert_array_equal(grad_of(x), [8 * 3.0, 8 * 2 * 4.0])


@pytest.mark.parametrize(
    "function",
    [
        lambda a, w: a * w,
        lambda a, w: w * a,
        lambda a, w: wg.asarray(a) * w,
        lambda a, w: w * wg.asarray(a),
        lambda a, w: wg.asarray(a)[1:] * w[1:],
        lambda a, w: wg.asarray(a).detach() * w,
        lambda a, w: a @ w,
        lambda a, w: np.where(a > 2.5, a * w, w),
        lambda a, w: np.maximum(a, w * 3),
        lambda a, w: w[(a > 2.5)],
    ],
)
def test_saved_ndarrays_are_not_changed_by_later_writes(function: Any) -> None:
    gradients = []
    for write in (False, True):
        w, a = leaf(1.0, 2.0, 3.0), np.array([2.0, 3.0, 4.0])
        y = function(a, w)
        if write:
            a[...] = 0.0
        y.sum().backward()
        gradients.append(grad_of(w))
    np.testing.assert_array_equal(*gradients)


def test_saved_indices_are_not_changed_by_later_writes() -> None:
    x = leaf(1.0, 2.0, 3.0)
    array, tensor, bound = np.array([0, 1]), wg.tensor([2, 1, 0]), np.array(1)
    y = x[array].sum() + 10 * x[tensor[:1]].sum() + 100 * x[slice(bound, None)].sum()
    array[:] = 2
    tensor[0] = 0
    bound[...] = 2
    y.backward()
    np.testing.assert_array_equal(grad_of(x), [1.0, 101.0, 110.0])


def test_exported_values_are_not_changed_by_writes_and_change_nothing() -> None:
    t = wg.tensor([1.0, 2.0])
    seen = t.numpy()
    t[0] = 9.0
    np.testing.assert_array_equal(seen, [1.0, 2.0])
    assert not seen.flags.writeable


# Dtypes


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
def test_gradients_have_the_dtype_of_their_leaf(dtype: Any) -> None:
    x = wg.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    y = np.sin(x * 2.0) * x / 3 + x[0] + x.sum()
    assert y.dtype == dtype
    y.backward(np.ones(2, dtype))
    assert x.grad is not None
    assert x.grad.dtype == dtype


def test_gradients_through_mixed_dtypes() -> None:
    x = leaf(1.0, 2.0, dtype=np.float32)
    w = leaf(3.0, 4.0)
    y = (x * w).sum()
    assert y.dtype == np.float64
    y.backward()
    assert x.grad is not None
    assert w.grad is not None
    assert x.grad.dtype == np.float32
    assert w.grad.dtype == np.float64


def test_real_leaf_of_a_complex_result_gets_a_real_gradient() -> None:
    x = leaf(1.0, 2.0)
    y = (x * (1 + 2j)).real.sum()
    y.backward()
    assert x.grad is not None
    assert x.grad.dtype == np.float64
    np.testing.assert_array_equal(grad_of(x), [1.0, 1.0])


def test_zero_dimensional_and_empty() -> None:
    s = wg.tensor(2.0, requires_grad=True)
    (s * s).backward()
    assert grad_of(s).shape == ()
    assert grad_of(s) == 4.0
    e = wg.tensor(np.zeros((0, 3)), requires_grad=True)
    (e * 2).sum().backward()
    assert grad_of(e).shape == (0, 3)


# Order and depth


def test_each_operation_runs_once_after_all_its_consumers() -> None:
    x = leaf(1.0)
    hidden = x * 2
    runs: list[float] = []
    hidden.grad_fn.register_prehook(lambda cts: runs.append(cts[0].item()))
    total = hidden * 1
    for i in range(2, 30):
        total = total + hidden * i
    total.backward()
    assert runs == [sum(range(1, 30))]
    assert grad_of(x).item() == 2 * sum(range(1, 30))


@pytest.mark.long
def test_long_chains_do_not_recurse() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y * 1.0
        y = np.negative(y)
    y.backward()
    assert grad_of(x).tolist() == [1.0]


def test_long_chains_of_every_kind_are_freed_without_recursion() -> None:
    x = leaf(1.0, 2.0)
    y = x
    for _ in range(12_000):
        y = np.sin(y) + 0.5
        y = y.reshape(1, 2).reshape(2)
    del y
    buffer = x * 1.0
    for _ in range(12_000):
        buffer[0] = buffer[1] * 0.5
        buffer[1:] -= buffer[:1]
    del buffer
    (x * 1.0).sum().backward()


def test_wide_sums_of_one_leaf() -> None:
    x = leaf(1.0)
    total = wg.tensor(0.0)
    for _ in range(20_000):
        total = total + x[0]
    total.backward()
    assert grad_of(x).tolist() == [20_000.0]


def test_memory_does_not_grow_with_the_number_of_sweeps() -> None:
    x = wg.tensor(2.0, requires_grad=True)

    def sweep(times: int) -> None:
        for _ in range(times):
            (x * x).backward()

    gc.disable()
    try:
        tracemalloc.start()
        sweep(500)
        before = tracemalloc.get_traced_memory()[0]
        sweep(2_000)
        assert tracemalloc.get_traced_memory()[0] - before < 10_000
        tracemalloc.stop()
        resident = resident_bytes()
        sweep(50_000)
        assert resident_bytes() - resident < 2_000_000
    finally:
        tracemalloc.stop()
        gc.enable()


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1]) if sys.platform == "linux" else 0
    return pages * 4096


# Double backward


def test_gradient_penalty() -> None:
    x = leaf(1.0, -2.0)
    y = (np.sin(x) * x).sum()
    (g,) = autograd.grad(y, x, create_graph=True)
    penalty = (g * g).sum()
    penalty.backward()
    v = x.detach().numpy()
    first = np.cos(v) * v + np.sin(v)
    np.testing.assert_allclose(grad_of(x), 2 * first * (2 * np.cos(v) - v * np.sin(v)))


def test_gradient_of_gradient_through_mutation() -> None:
    def program(x: wg.Tensor) -> wg.Tensor:
        buffer = wg.asarray(np.zeros(4))
        buffer[0] = x[0] * x[1]
        buffer[1:3] = np.sin(x)
        buffer[1:] *= buffer[0]
        view = buffer[::2]
        view += x
        return (buffer * buffer).sum()

    x = leaf(0.7, -0.4)
    (first,) = autograd.grad(program(x), x, create_graph=True)
    (second,) = autograd.grad((first * np.array([1.0, 2.0])).sum(), x)
    step = 1e-6
    for i in range(2):
        moved = []
        for sign in (1, -1):
            point = x.detach().numpy().copy()
            point[i] += sign * step
            p = wg.tensor(point, requires_grad=True)
            moved.append(autograd.grad(program(p), p)[0].numpy() @ [1.0, 2.0])
        np.testing.assert_allclose(second.numpy()[i], (moved[0] - moved[1]) / (2 * step), rtol=1e-6)


def test_second_sweep_does_not_see_writes_after_the_first() -> None:
    x = leaf(2.0)
    hidden = x * 1.0
    y = (hidden * hidden * hidden).sum()
    (g,) = autograd.grad(y, x, create_graph=True)
    hidden *= 100.0
    (h,) = autograd.grad(g, x)
    assert h.tolist() == [12.0]


# Finding the NaN


def test_detect_anomaly_names_operation_line_and_element() -> None:
    x = leaf(4.0, 0.0)
    y = np.sqrt(x).sum()
    with wg.autograd.detect_anomaly(), pytest.raises(NumericalError) as error:
        y.backward()
    line = test_detect_anomaly_names_operation_line_and_element.__code__.co_firstlineno + 2
    assert str(error.value) == (
        f'sqrt: the cotangent of operand 0 became inf at element (1,), recorded at File "{__file__}", line {line}, '
        "in test_detect_anomaly_names_operation_line_and_element: y = np.sqrt(x).sum(); "
        "finite cotangents are needed while detect_anomaly is on. Look at the values of the operands there."
    )
    assert x.grad is None


def test_detect_anomaly_is_quiet_about_finite_sweeps_and_ends() -> None:
    x = leaf(4.0, 1.0)
    with wg.autograd.detect_anomaly():
        np.sqrt(x).sum().backward()
    y = np.sqrt(leaf(0.0))
    y.backward()
    checked = wg.autograd.detect_anomaly()(lambda t: t.backward())
    with pytest.raises(NumericalError):
        checked(np.sqrt(leaf(0.0)))


def test_detect_anomaly_in_recorded_sweeps_and_through_writes() -> None:
    x = leaf(0.0, 1.0)
    buffer = x * 1.0
    buffer[0] = np.sqrt(x[0])
    with wg.autograd.detect_anomaly(), pytest.raises(NumericalError, match=r"^sqrt: "):
        buffer.sum().backward(create_graph=True)


def test_a_large_gradient_that_is_the_given_cotangent_shares_memory_until_somebody_writes() -> None:
    x = wg.tensor(np.zeros((100, 100)), requires_grad=True)
    given = wg.tensor(np.ones((100, 100)))
    (first,) = wg.autograd.grad(x.T, [x], [given])
    (second,) = wg.autograd.grad(x.T, [x], [given])
    assert np.shares_memory(raw(first), raw(given))
    first[0, 0] = 2.0
    given[0, 1] = 3.0
    assert (first[0, 0], first[1, 0], second[0, 0], second[1, 0], given[0, 0]) == (2.0, 1.0, 1.0, 1.0, 1.0)


def test_gradients_do_not_share_memory_with_cotangents_that_their_owners_may_write_to() -> None:
    x = wg.tensor(np.zeros(5000), requires_grad=True)
    array = np.ones(5000)
    for given in (array, wg.asarray(array), wg.asarray(array)[:]):
        (found,) = wg.autograd.grad(x[:], [x], [given])
        assert not np.shares_memory(raw(found), array)


def test_gradients_that_share_a_cotangent_add_up_apart() -> None:
    x, y = (wg.tensor(np.zeros(5000), requires_grad=True) for _ in range(2))
    given = wg.tensor(np.ones(5000))
    for _ in range(2):
        wg.autograd.backward([x + y], [given])
    x.grad += 1.0
    assert (x.grad[0], y.grad[0], given[0]) == (3.0, 2.0, 1.0)


def test_the_square_of_a_difference_is_swept_once() -> None:
    x, y = wg.tensor([[1.0], [2.0]], requires_grad=True), wg.tensor([3.0, 5.0], requires_grad=True)
    difference = x - y
    (difference * difference).sum().backward()
    assert x.grad.tolist() == [[-12.0], [-8.0]]
    assert y.grad.tolist() == [6.0, 14.0]


def test_recorded_sweeps_round_as_plain_ones():
    x = wg.tensor([0.3, 1.7, 0.9, 2.2, 5.1, 0.77], requires_grad=True)
    gradients = [wg.autograd.grad((x * x + np.sin(x)).sum(), x, create_graph=flag)[0] for flag in (False, True)]
    np.testing.assert_array_equal(*(g.detach().numpy() for g in gradients))


@pytest.mark.parametrize("window", [slice(None), slice(None, None, -1)])
def test_a_gradient_that_is_given_as_a_cotangent_is_read_before_it_grows(window: slice) -> None:
    x, y, z = (wg.tensor([0.0, 0.0], requires_grad=True) for _ in range(3))
    (x * [1.0, 2.0] + y * [10.0, 20.0]).sum().backward()
    wg.autograd.backward([x + y + z], [x.grad[window]])
    given = np.array([1.0, 2.0])[window]
    np.testing.assert_array_equal(x.grad, np.array([1.0, 2.0]) + given)
    np.testing.assert_array_equal(y.grad, np.array([10.0, 20.0]) + given)
    np.testing.assert_array_equal(z.grad, given)


PASSED_ON = {
    "x[:, None]": lambda x, y: x[:, None],
    "reshape": lambda x, y: np.reshape(x, (50, -1)),
    "ravel of .T": lambda x, y: np.ravel(np.reshape(x, (50, -1)).T),
    "expand_dims": lambda x, y: np.expand_dims(x, 0),
    "reversed": lambda x, y: x[::-1],
    "sum": lambda x, y: x + y,
    "concatenate": lambda x, y: np.concatenate((x, y)),
    "stack": lambda x, y: np.stack((x, y), -1),
    "copy": lambda x, y: np.copy(x),
    "picked": lambda x, y: np.stack((x, y))[:, np.arange(5000)[::-1]],
    "written": lambda x, y: write_zeros(x * 1.0),
    "chosen": lambda x, y: np.maximum(x, y - 1.0),
}


def write_zeros(x: Any) -> Any:
    """Write zeros into a part."""
    x[np.array([3, 1])] = 0.0
    return x


@together("form", [np.asarray, wg.tensor, wg.asarray, lambda given: wg.tensor(given)[:]])
@together("function", PASSED_ON.values())
def test_nothing_that_a_sweep_touches_is_written_to_with_another(function: Any, form: Any) -> None:
    """Seed, gradients of leaves, what is retained and what hooks keep: a write to one changes none of the others."""
    x, y = (wg.tensor(np.arange(5000.0) + i, requires_grad=True) for i in range(2))
    for times in (1, 2):
        kept: list[Any] = []
        result = function(x, y)
        result.retain_grad()
        result.register_hook(kept.append)
        given = form(np.ones(result.shape))
        result.backward(given)
        things = [given, x.grad, result.grad, *kept, *([y.grad] if y.grad is not None else [])]
        before = [np.array(thing) for thing in things]
        for i, thing in enumerate(things):
            thing[...] = 7.0
            for j, other in enumerate(things):
                assert j == i or np.array_equal(other, before[j]), (times, i, j)
            thing[...] = before[i]
