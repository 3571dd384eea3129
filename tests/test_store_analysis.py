"""Arrays that a function only reads are not copied for the sweep; what may write to them before it is found out."""

from __future__ import annotations

import dataclasses
import functools
import math
import signal
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from wengert.control import store_analysis
from wengert.control.bytecode import MANY, MayWriteError
from wengert.control.store_analysis import StoreSearch, operands_before_out, runs_alone
from wengert.core.memory import buffers

Function = Callable[..., Any]
SMALL, VECTOR = np.ones((3, 3)), np.ones(3)
PARAMETERS = {"W": SMALL, "b": VECTOR}
LAYERS = [(SMALL, VECTOR), (SMALL, VECTOR)]
BOUND = SMALL.fill
OUTPUT, NAME, TEXT = {"out": SMALL}, "fill", "%s"
MADE = np.frompyfunc(lambda _: SMALL.fill(2.0), 1, 1)
pytestmark = pytest.mark.skipif(sys.version_info >= (3, 14), reason="instructions that are not known")


@wg.tree.register
class Model:
    """Hold data, as programs do."""

    apply = np.negative

    def __init__(self) -> None:
        self.data = SMALL
        self.scale = 2

    @property
    def rows(self) -> int:
        return len(self.data)

    def loss(self, w: Any) -> Any:
        return np.sum((self.data @ w) ** 2) * self.scale


class Computed(Model):
    @property
    def computed(self) -> Any:
        SMALL[0] = 2.0
        return SMALL


class Writing(Model):
    def writes(self, w: Any) -> Any:
        self.data[0] = 2.0
        return np.sum(self.data @ w)


class Changing(Model):
    def changes(self, w: Any) -> Any:
        self.scale = 3
        return np.sum(self.data @ w)


class Multiplied(Model):
    def __matmul__(self, other: Any) -> Any:
        SMALL[0] = 2.0
        return SMALL @ other


class Said(Model):
    def __str__(self) -> str:
        SMALL[0] = 2.0
        return ""


class Converted(Model):
    @property
    def __array_interface__(self) -> Any:
        SMALL[0] = 2.0
        return SMALL.__array_interface__


class Given:
    """Be an attribute that is computed."""

    def __get__(self, *_: Any) -> Any:
        SMALL[0] = 2.0
        return SMALL


class Giving(Model):
    given = Given()


class Looked(Model):
    def __getattr__(self, name: str) -> Any:
        SMALL[0] = 2.0
        return SMALL


@dataclasses.dataclass
class Data:
    x: Any

    def loss(self, w: Any) -> Any:
        return np.sum(self.x @ w)


def write_and(result: Any, *_: Any, **__: Any) -> Any:
    SMALL[0] = 2.0
    return result


def with_attribute(name: str, entry: Any) -> Any:
    """Return an object whose class has an attribute that no instruction names."""
    return type("Boxed", (Model,), {name: entry})()


MODEL, MULTIPLIED, LOOKED, DATA = Model(), Multiplied(), Looked(), Data(SMALL)
SAID, CONVERTED, GIVING, COMPUTED = Said(), Converted(), Giving(), Computed()
WRITING, CHANGING, HELD = Writing(), Changing(), Model()
REGISTERED = type("Registered", (), {})()
wg.tree.register(type(REGISTERED), lambda x: ([write_and(x)], None), lambda _, x: x)
vars(HELD)["mean"] = lambda **_: write_and(1.0)
MEANT, SHAPED = with_attribute("mean", write_and), with_attribute("shape", property(write_and))
SINES, SWAPPED = {"a": with_attribute("sin", write_and)}, with_attribute("swapaxes", np.negative)


def sigmoid(z: Any) -> Any:
    return 1 / (1 + np.exp(-z))


def regression(w: Any) -> Any:
    p = sigmoid(SMALL @ w)
    return -np.mean(VECTOR * np.log(p) + (1 - VECTOR) * np.log(1 - p)) + 0.5 * np.sum(w**2)


def network(layers: Any, x: Any, w: Any) -> Any:
    for weights, bias in layers:
        x = np.tanh(x @ weights + bias)
    return np.mean((x - w) ** 2)


def with_helper(w: Any) -> Any:
    return np.sum(SMALL @ w) + with_helper.helper(w)  # type: ignore[attr-defined]  # it is set below


def apply_two(f: Any, a: Any, b: Any) -> Any:
    return f(a, b)


READING: list[Function] = [
    lambda w: np.sum(SMALL @ w),
    regression,
    lambda w: network(LAYERS, w, w),
    lambda w: sum([np.sum(np.maximum(x @ w, 0)) for x in PARAMETERS.values()]),
    lambda w: np.sum(SMALL @ w, axis=0, keepdims=True),
    MODEL.loss,
    lambda w: MODEL.loss(w) * math.sin(2.0) * MODEL.rows,
    lambda w: DATA.loss(w),
    lambda w: np.linalg.norm(SMALL @ w),
    lambda w: F.mse_loss(F.relu(SMALL @ w), VECTOR),
    lambda w: np.sum(np.einsum("ij,j->i", SMALL, w)),
    lambda w: np.sum(np.where(SMALL @ w > 0, np.clip(SMALL @ w, 0, 1), 0.0)),
    lambda w: (SMALL @ w).clip(0, 1).sum(),
    lambda w, *more: np.sum(SMALL.reshape(3, 3) @ w) + len(more),
    lambda w: np.sum(np.zeros(3) + np.asarray(SMALL) @ w),
    lambda w: np.sum(np.tanh(w) if len(SMALL) else w),
    functools.partial(network, LAYERS, VECTOR),
    wg.grad(regression),
    wg.vmap(wg.grad(sigmoid)),
]


def calling(function: Any) -> Function:
    return lambda w: function(w)


def ways_to_write() -> dict[str, Function]:
    """Return functions that may write to an array, each in another way."""

    def nonlocal_one() -> Function:
        f: Function = sigmoid

        def g(w: Any) -> Any:
            nonlocal f
            f = np.negative
            return f(SMALL, w)

        return g

    def in_place(w: Any) -> Any:
        x = SMALL
        x += 1.0
        return w

    def through_a_view(w: Any) -> Any:
        x = SMALL[0]
        x[0] = 2.0
        return w

    def part(w: Any) -> Any:
        SMALL[0:2] = 2.0
        return w

    def deleted(w: Any) -> Any:
        del PARAMETERS["c"]
        return w

    def caught(w: Any) -> Any:
        try:
            return np.sum(SMALL @ w)
        except ValueError:
            return w

    def in_a_context(w: Any) -> Any:
        with np.errstate(all="ignore"):
            return w

    def imported(w: Any) -> Any:
        import antigravity  # type: ignore[import-not-found]  # noqa: F401 - it is never run

        return w

    def global_beside_a_cell(w: Any) -> Any:
        BOUND = w

        def inner() -> Any:
            global BOUND
            return BOUND(2.0)

        return inner(), (lambda: BOUND)()

    def local_function(w: Any) -> Any:
        f = np.add
        return f(w, 1.0, SMALL)

    return {
        "assigned": lambda w: SMALL.__setitem__(0, 2.0),
        "keyword": lambda w: np.add(w, 1.0, out=SMALL),
        "third": lambda w: np.add(w, 1.0, SMALL),
        "third_of_max": lambda w: np.max(SMALL, 0, VECTOR),
        "second_of_method": lambda w: SMALL.max(0, VECTOR),
        "starred": lambda w: np.add(*(w, 1.0, SMALL)),
        "computed_keyword": lambda w: np.add(w, 1.0, **OUTPUT),
        "in_a_list": lambda w: [np.add][0](w, 1.0, SMALL),
        "behind_a_choice": lambda w: np.add(w, (1.0 if len(w) else 2.0), SMALL),
        "chosen": lambda w: (np.add if len(w) else np.subtract)(w, 1.0, SMALL),
        "through_map": lambda w: list(map(np.negative, [w], [SMALL])),
        "through_numpy": lambda w: np.apply_along_axis(np.negative, 0, VECTOR, SMALL[0]),
        "through_a_function": lambda w: apply_two(np.negative, w, SMALL),
        "of_a_class": lambda w: MODEL.apply(w, SMALL),
        "at": lambda w: np.add.at(SMALL, 0, 1.0),
        "copyto": lambda w: np.copyto(SMALL, 2.0),
        "nan_to_num": lambda w: np.nan_to_num(SMALL, False),
        "median": lambda w: np.median(SMALL, 0, None, True),
        "fill": lambda w: SMALL.fill(2.0),
        "bound": lambda w: BOUND(2.0),
        "sort": lambda w: SMALL.sort(),
        "getattr": lambda w: getattr(SMALL, NAME)(2.0),
        "method_type": types.MethodType(np.negative, SMALL),
        "partial": functools.partial(np.add, 1.0, out=SMALL),
        "vmap": wg.vmap(np.negative),
        "batch_norm": lambda w: F.batch_norm(SMALL * w, VECTOR, VECTOR, training=True),
        "made_ufunc": lambda w: MADE(2.0),
        "method": WRITING.writes,
        "attribute": lambda w: CHANGING.changes(w),
        "property": lambda w: COMPUTED.computed @ w,
        "operator": lambda w: MULTIPLIED @ w,
        "text": lambda w: len(TEXT % SAID),
        "interface": lambda w: np.add(w, CONVERTED),
        "descriptor": lambda w: GIVING.given @ w,
        "generator": functools.partial(network, iter(LAYERS), VECTOR),
        "getattr_of_class": lambda w: LOOKED.anything,
        "method_of_numpys": lambda w: np.mean(MEANT),
        "method_of_a_default": lambda w, held=MEANT: np.mean(held),
        "property_of_numpys": lambda w: np.sum(SHAPED),
        "method_of_an_object_loop": lambda w: np.sin(SINES["a"]),
        "method_that_is_numpys": lambda w: np.swapaxes(SWAPPED, w, SMALL),
        "method_of_an_instance": lambda w: np.mean(HELD),
        "taken_apart": lambda w, held=REGISTERED: w,
        "attribute_of_a_partial": PARTIAL,
        "of_a_function": with_helper,
        "objects": lambda w: np.array([BOUND], object)[0],
        "inner": lambda w: (lambda a: SMALL.fill(a))(w),
        "default": functools.partial(lambda w, f=BOUND: f(2.0)),
        "torch_method": lambda w: w.add_(SMALL),
        "nonlocal": nonlocal_one(),
        **{
            f.__name__: f
            for f in (
                *(in_place, through_a_view, part, deleted, caught, in_a_context, imported),
                *(global_beside_a_cell, local_function),
            )
        },
    }


PARTIAL = functools.partial(regression)
vars(PARTIAL)["mean"] = BOUND
with_helper.helper = lambda w: BOUND(2.0)  # type: ignore[attr-defined]  # as functions may have attributes


def reads(function: Function) -> bool:
    """Tell whether nothing that a function can reach writes."""
    try:
        return StoreSearch(function, (VECTOR, wg.tensor(VECTOR))).finds_no_store()
    except MayWriteError:
        return False


@pytest.mark.parametrize("function", READING)
def test_functions_that_only_read(function: Function) -> None:
    assert reads(function)


@pytest.mark.parametrize("name", list(ways_to_write()))
def test_functions_that_may_write(name: str) -> None:
    assert not reads(ways_to_write()[name])


@pytest.mark.parametrize("name", ["__getattribute__", "__class__", "__dict__", "__hash__", "__eq__"])
def test_looking_runs_nothing_of_the_users(name: str) -> None:
    members = {name: property(write_and) if name in ("__class__", "__dict__") else write_and}
    meta = type("Meta", (type,), members)
    for value in (type("Box", (), members)(), meta("Box", (), {}), meta("Box", (), {})()):
        holder = with_attribute("part", value)
        for function in (lambda w, held=value: held.foo, calling(value), lambda w, x=holder: np.sum(w)):
            SMALL.fill(1.0)  # Python may have asked
            assert not reads(function)
            np.testing.assert_array_equal(SMALL, 1.0)


def test_arguments_of_unknown_classes_may_write() -> None:
    class Scalar(np.float64):
        pass

    for value in (Scalar(1.0), SMALL.view(np.matrix), np.array([SMALL], object), memoryview(bytearray(8)), types):
        with pytest.raises(MayWriteError):
            StoreSearch(sigmoid, [value]).finds_no_store()


def test_outputs_stand_where_numpy_has_them() -> None:
    wanted = {np.add: 2, np.negative: 1, np.max: 2, np.dot: 2, np.sum: 3, np.clip: 3, np.concatenate: 2, np.round: 2}
    assert {f: operands_before_out(f) for f in wanted} == wanted
    for name, count in store_analysis.ATTRIBUTES.items():
        method = getattr(np.ndarray, name, None)
        if callable(method) and count < MANY and name not in ("conj", "conjugate"):
            x, out = np.ones((2, 2)), np.zeros(7)
            operands = {"dot": (x,), "take": (0, 0), "clip": (0, 1), "trace": (0, 0)}.get(name, (0,) * count)[:count]
            with pytest.raises((TypeError, ValueError, IndexError)):  # the next operand is an output of another shape
                method(x, *operands, *([0, float] if name == "trace" else []), out)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let functions count as all that runs, as they do outside of test runners, and small arrays as large."""
    monkeypatch.setattr(store_analysis, "runs_alone", lambda: True)
    for module in ("wengert.core.memory.buffers", "wengert.traces.eager"):
        monkeypatch.setattr(sys.modules[module], "MUCH", 1)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Count the arrays that are kept without a copy."""
    found: list[Any] = []
    original = buffers.read_only

    def noted(array: Any) -> Any:
        found.append(array)
        return original(array)

    monkeypatch.setattr(buffers, "read_only", noted)
    return found


@pytest.mark.usefixtures("alone")
def test_what_is_only_read_is_kept_without_a_copy(copies: list[Any]) -> None:
    data = np.arange(12.0).reshape(3, 4)
    w, u = np.ones(4), np.ones(3)
    for f, x in (
        (lambda w: np.sum(data @ w), w),
        (lambda u: np.sum((u @ data) ** 2), u),
        (lambda w: np.sum(data * w), w),
        (lambda w: np.sum(np.einsum("ij,j->i", data, w)), w),
        (lambda w: np.sum(np.where(data > 3, data * w, 0.0)), w),
        (lambda w: np.sum(np.arctan2(data, w)), w),
    ):
        del copies[:]
        gradient = wg.grad(f)(x)
        assert any(np.shares_memory(y, data) for y in copies), f
        np.testing.assert_array_equal(gradient, wg.grad(lambda x, f=f: (f(x), None), has_aux=True)(x)[0])
        assert not np.shares_memory(gradient, data)
        assert gradient.flags.writeable


@pytest.mark.usefixtures("alone")
def test_second_derivatives_and_lanes_of_what_is_only_read() -> None:
    data, w = np.arange(12.0).reshape(3, 4) / 10, np.linspace(0.1, 0.4, 4)

    def loss(w: Any) -> Any:
        return np.sum(np.tanh(data @ w) ** 2)

    want = wg.hessian(lambda w: np.sum(np.tanh(wg.tensor(data) @ w) ** 2))(w)
    np.testing.assert_allclose(wg.hessian(loss)(w), want, rtol=1e-14)
    np.testing.assert_allclose(wg.jacobian(wg.grad(loss))(w), want, rtol=1e-14)
    np.testing.assert_allclose(wg.grad(lambda w: np.sum(wg.grad(loss)(w) * w))(w), want @ w + wg.grad(loss)(w))
    rows = np.stack([w, 2 * w])
    np.testing.assert_allclose(wg.vmap(wg.grad(loss))(rows), np.stack([wg.grad(loss)(x) for x in rows]), rtol=1e-14)
    np.testing.assert_allclose(wg.jit(wg.grad(loss))(w), wg.grad(loss)(w), rtol=1e-14)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.__setitem__(0, 7.0),
        lambda x: x.fill(7.0),
        lambda x: np.add(x, 1.0, out=x),
        lambda x: np.multiply(x, 2.0, x),
        lambda x: np.copyto(x, 7.0),
        lambda x: x[1:].sort(),
        lambda x: memoryview(x).cast("B").__setitem__(0, 1),
    ],
)
def test_gradients_are_those_of_the_values_at_the_time_of_use(write: Function) -> None:
    data = np.arange(1.0, 13.0).reshape(3, 4)
    view, before = data[1:], data.copy()
    w = np.linspace(1.0, 2.0, 4)

    def direct(w: Any) -> Any:
        s = np.sum(data @ w) + np.sum(np.sin(data * w))
        write(data)
        return s

    def by_view(w: Any) -> Any:
        s = np.sum(data @ w) + np.sum(np.sin(data * w))
        write(view)
        return s

    def nested(w: Any) -> Any:
        return np.sum(wg.grad(direct)(w) ** 2)

    want = wg.grad(lambda w: np.sum(before @ w) + np.sum(np.sin(before * w)))(w)
    for f in (direct, by_view):
        np.testing.assert_array_equal(wg.grad(f)(w), want)
        data[...] = before
    second = wg.grad(lambda w: np.sum(wg.grad(lambda v: np.sum(before @ v) + np.sum(np.sin(before * v)))(w) ** 2))(w)
    np.testing.assert_allclose(wg.grad(nested)(w), second, rtol=1e-14)


@pytest.mark.usefixtures("alone")
def test_what_an_object_of_the_users_runs_writes_after_the_use() -> None:
    data, w = np.full(4, 2.0), np.ones(4)

    class Box:
        foo = 1.0

    def fill(*_: Any, **__: Any) -> float:
        data.fill(9.0)
        return 1.0

    box = Box()
    asked, meant = wg.grad(lambda w: np.sum(w * data) * box.foo), wg.grad(lambda w: np.sum(w * data) * np.mean(box))  # type: ignore[call-overload]  # any object
    np.testing.assert_array_equal(asked(w), 2.0)
    for name, gradient in (("mean", meant), ("__getattribute__", asked)):
        setattr(Box, name, fill)
        np.testing.assert_array_equal(gradient(w), 2.0)
        np.testing.assert_array_equal(data, 9.0)
        data.fill(2.0)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    "loss",
    [
        lambda x, v: np.sum((x * v) ** 2 + v / x + np.arctan2(x, v)),
        lambda x, v: np.sum(np.tanh(x @ v)) + np.sum(np.sin(v @ x)),
        lambda x, v: np.sum(np.where(x > 5.0, v * v * x, v) + x**v),
        lambda x, v: np.sum(np.einsum("ij,j->i", x, v) ** 2) + np.sum(np.outer(v, x) ** 2),
        lambda x, v: np.sum(np.linalg.solve(x + 30.0 * np.eye(4), v) ** 2) + np.sum(np.concatenate([x[0], v]) ** 3),
    ],
)
def test_what_an_inner_gradient_kept_is_copied_for_an_outer_one(loss: Function, copies: list[Any]) -> None:
    start, w = np.arange(1.0, 17.0).reshape(4, 4), np.linspace(0.5, 1.0, 4)

    def nested(data: Any, way: int, write: bool) -> Any:
        def inner(v: Any) -> Any:
            return loss(data, v)

        def outer(v: Any) -> Any:
            found = [
                lambda: wg.grad(inner)(v),
                lambda: wg.vjp(inner, v)[1](np.float64(1.0))[0],
                lambda: wg.jvp(wg.grad(inner), (v,), (v,))[1],
                lambda: wg.hessian(inner)(v),
                lambda: wg.vmap(wg.grad(inner))(np.stack([v, 2.0 * v])),
            ][way]()
            total = np.sum(found**2)
            if write:
                data[...] = 7.0
            return total

        return outer

    for way in range(5):
        fixed = start.copy()
        fixed.flags.writeable = False
        want = wg.grad(nested(fixed, way, write=False))(w)
        np.testing.assert_allclose(wg.grad(nested(start.copy(), way, write=True))(w), want, rtol=1e-12)
    assert copies


@pytest.mark.usefixtures("alone")
def test_pullbacks_and_tapes_keep_what_was_used() -> None:
    data, w = np.arange(1.0, 13.0).reshape(3, 4), np.ones(4)
    want = data.sum(0)
    _, pullback = wg.vjp(lambda w: np.sum(data @ w), w)
    leaf = wg.tensor(w, requires_grad=True)
    total = (data @ leaf).sum()
    (_, extra) = wg.grad(lambda w: (np.sum(data @ w), data.fill(7.0)), has_aux=True)(w)
    total.backward()
    np.testing.assert_array_equal(leaf.grad, want)
    np.testing.assert_array_equal(pullback(np.float64(1.0))[0], want)
    assert extra is None


@pytest.mark.usefixtures("alone")
def test_memory_of_others_is_copied(copies: list[Any]) -> None:
    shared = np.frombuffer(bytearray(np.ones(4).tobytes()))
    assert shared.flags.writeable
    wg.grad(lambda w: np.sum(shared * w))(np.ones(4))
    assert not copies


def test_nothing_else_may_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("gettrace", "getprofile"):
        monkeypatch.setattr(sys, name, lambda: None)
    if sys.version_info >= (3, 12):
        monkeypatch.setattr(sys.monitoring, "get_tool", lambda _: None)
    monkeypatch.setattr(store_analysis, "SIGNALS", (signal.SIGUSR1,))
    monkeypatch.setattr(sys, "_current_frames", lambda: {1: None})
    assert runs_alone()
    handler = signal.signal(signal.SIGUSR1, lambda *_: None)
    assert not runs_alone()
    signal.signal(signal.SIGUSR1, handler)
    with np.errstate(call=lambda *_: None):
        assert not runs_alone()
    with wg.autograd.saved_tensors_hooks(lambda x: x, lambda x: x):
        assert not runs_alone()
    monkeypatch.undo()
    monkeypatch.setattr(store_analysis, "SIGNALS", ())
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    assert not runs_alone()
    done.set()
    other.join()
