"""Calls of jitted functions that need no Python: what is native from the second call on, and what is not."""

from __future__ import annotations

import dataclasses
import functools
import gc
import weakref
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import wengert as wg
from tests.test_entry import Named, changed, same
from wengert.core.containers.tree_leaves import flatten
from wengert.errors import DtypeError, GraphError, UsageError
from wengert.scipy.sparse import csr_array
from wengert.support import config
from wengert.transforms import jit as jit_module

pytest.importorskip("llvmlite")


@dataclasses.dataclass
class Plain:
    w: Any
    b: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: Any
    b: Any

    def __post_init__(self) -> None:
        if self.w is None:
            raise ValueError("weights are needed")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("it is not for comparing")


@dataclasses.dataclass(slots=True)
class InSlots:
    w: Any
    b: Any


@dataclasses.dataclass
class Layer:
    weight: Any
    name: str = ""
    bend: Callable[..., Any] = np.sin


@wg.tree.register
class Line:
    def __init__(self, offset: Any, width: Any) -> None:
        self.width, self.offset = width, offset


class ByFunction:
    def __init__(self, value: Any) -> None:
        self.value = value


wg.tree.register(ByFunction, lambda x: ((x.value,), None), lambda _, children: ByFunction(*children))

X = np.linspace(0.5, 1.5, 10)
GRID = np.arange(12.0).reshape(3, 4)
SQUARE = np.arange(9.0).reshape(3, 3)
SPARSE = sparse.csr_array(np.diag(X))


@pytest.fixture(autouse=True)
def _native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(config, "AT_ONCE", True)


class Refused(Exception):
    """Say that Python ran."""


def refuse(*_: Any) -> Any:
    raise Refused


def again(monkeypatch: pytest.MonkeyPatch, f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of the third call, while those that need Python raise; the second one made it native."""
    f(*args, **kwargs)
    with monkeypatch.context() as patched:
        patched.setattr(jit_module, "call_form", refuse)
        return f(*args, **kwargs)


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def power(x: Any, times: Any, scale: Any = 1.0) -> Any:
    for _ in range(times):
        x = x * x
    return x * scale


NATIVE: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "an array": (wg.jit(lambda x: x * 2.0), (X,), {}),
    "several arrays": (wg.jit(lambda x, y: (x + y, x * y)), (X, X[::-1].copy()), {}),
    "an array that is not used": (wg.jit(lambda x, y, z: z * 2.0), (X, GRID, 3.0), {}),
    "numbers": (wg.jit(lambda x, y, z: (x * y, x > y, x * 1j, z * x)), (2.5, 0.5, 3), {}),
    "scalars": (wg.jit(lambda x, y: (x * y, x > y)), (np.float64(2.5), np.float32(0.5)), {}),
    "single precision": (wg.jit(lambda x: (x * 2, x.sum())), (X.astype(np.float32),), {}),
    "complex numbers": (wg.jit(lambda x, y: (x * y, (x * y).real + 1.0)), (X * 1j, 2.0 + 1j), {}),
    "integers and booleans": (wg.jit(lambda n, b: (n * 2, ~b, n > 3)), (np.arange(5), np.arange(5) > 2), {}),
    "Fortran's order": (wg.jit(lambda x, y: (x * 2.0, x + y, x @ x.T, x.sum(0))), (np.asfortranarray(GRID), GRID), {}),
    "complex numbers in Fortran's order": (wg.jit(lambda x: (x * 2.0, x.T * x.T)), (np.asfortranarray(GRID * 1j),), {}),
    "axes in another order": (
        wg.jit(lambda x: (x + 1.0, x.sum(1))),
        (np.ones((2, 3, 4, 1)).transpose(2, 0, 3, 1),),
        {},
    ),
    "a transposed result": (wg.jit(lambda x: (x * 2.0).T), (GRID,), {}),
    "a part of an array": (wg.jit(lambda x: x * 2.0), (GRID[:, 1],), {}),
    "parts in containers": (wg.jit(lambda p, y: p[0] * y), ((GRID[::-1, ::2],), GRID[:, 1:3]), {}),
    "an array repeated": (wg.jit(lambda x: x.sum(0)), (np.broadcast_to(X, (3, 10)),), {}),
    "a sum": (wg.jit(rosenbrock), (X,), {}),
    "value and gradient": (wg.jit(wg.value_and_grad(rosenbrock)), (X,), {}),
    "gradients by name": (wg.jit(wg.grad(lambda p: rosenbrock(p["w"]) * p["b"])), ({"w": X, "b": 2.0},), {}),
    "lanes": (wg.jit(wg.vmap(rosenbrock)), (GRID,), {}),
    "a derivative in a direction": (wg.jit(lambda x, t: wg.jvp(rosenbrock, (x,), (t,))), (X, X), {}),
    "containers": (wg.jit(lambda p: [p[0] * p[1]["a"], {"s": p[0] + 1.0}, None]), ((X, {"a": 2.0}),), {}),
    "arguments by name": (wg.jit(lambda x, y, z: x * y - z), (X,), {"z": X, "y": 2.0}),
    "one that is no argument": (wg.jit(lambda x, y: None if y is None else x), (X, 1.0), {}),
    "an argument as a result": (wg.jit(lambda x, y: (x, y, x + 1.0)), (X, 2.5), {}),
    "known results": (wg.jit(lambda x: (2.5, np.arange(3.0), x + np.arange(10.0))), (X,), {}),
    "only a known array": (wg.jit(lambda x: np.ones(3)), (X,), {}),
    "known arrays without elements": (wg.jit(lambda x: (np.zeros(0), x * 2, np.zeros((0, 3)), x * 3)), (X,), {}),
    "static arguments": (wg.jit(power, static_argnums=1), (X, 3), {}),
    "static arguments by name": (wg.jit(power, static_argnames="times"), (X,), {"times": 3, "scale": 2.0}),
    "static functions": (wg.jit(lambda f, x: f(x), static_argnums=0), (rosenbrock, X), {}),
    "a matrix carried with swapped axes": (
        wg.jit(lambda x: wg.fori_loop(0, 2, lambda _, y: y.T + 1.0, x)),
        (SQUARE,),
        {},
    ),
    "rows of swapped axes": (wg.jit(lambda x: wg.scan(lambda y, _: (y.T * 2.0, y[0]), x, length=2)), (SQUARE,), {}),
    "a branch with swapped axes": (
        wg.jit(lambda x, p: wg.cond(p, lambda: x + 1.0, lambda: x.T * 2.0)),
        (SQUARE, True),
        {},
    ),
    "named tuples": (wg.jit(lambda p: Named(p.b, p.w * p.b)), (Named(X, 2.0),), {}),
    "named tuples with defaults": (wg.jit(lambda p: Named(p.b * p.w)), (Named(X),), {}),
    "dataclasses": (wg.jit(lambda p: Plain(p.b, [p.w * p.b])), (Plain(X, 2.0),), {}),
    "frozen dataclasses": (wg.jit(lambda p: Frozen(p.b, p.w * p.b)), (Frozen(X, 2.0),), {}),
    "dataclasses with slots": (wg.jit(lambda p: InSlots(p.w * 3.0, p)), (InSlots(X, None),), {}),
    "static fields": (wg.jit(lambda p: Layer(p.weight * 2.0, p.name, p.bend)), (Layer(X, "one", np.tanh),), {}),
    "registered objects": (wg.jit(lambda p: Line(p.offset, p.width * p.offset)), (Line(X, 2.0),), {}),
    "gradients of objects": (wg.jit(wg.grad(lambda p: rosenbrock(p.w) * p.b)), (Frozen(X, 2.0),), {}),
    "keys that are made": (wg.jit(lambda p: {1: p["a b"[::-1]] * 2.0}), ({"b a": X, 0: 1.0},), {}),
    "many numbers": (wg.jit(lambda p: (p[0] + p[-1], [x * 2.0 for x in p[:3]])), ([1.5] * 300,), {}),
    "static text": (wg.jit(lambda x, c: x * c[1], static_argnums=1), (X, ("times", 2.0)), {}),
    "computed places": (wg.jit(lambda x, i: (x[i] * 2.0, np.sum(x[i]))), (X, np.array([3, -1, 0])), {}),
    "gradients at computed places": (wg.jit(wg.grad(lambda x, i: np.sum(x[i] ** 2))), (X, np.array([3, -1, 3])), {}),
    "Tensors": (wg.jit(lambda p, y: (p["w"] * y, p["w"].sum() * p["n"])), ({"w": wg.tensor(X), "n": 3}, X), {}),
    "Tensors without axes": (wg.jit(lambda x, y: (x * y, x)), (wg.tensor(2.5), wg.tensor(X).sum()), {}),
    "parts of Tensors": (wg.jit(lambda x: (x + 1.0, x.sum(0))), (wg.asarray(GRID.T[:, ::2]),), {}),
    "gradients of Tensors": (wg.jit(wg.grad(rosenbrock)), (wg.tensor(X),), {}),
    "a sparse array of a Tensor": (wg.jit(lambda a, x: (a @ x, a * 2.0)), (csr_array(SPARSE), X), {}),
    "a calls in a call": (wg.jit(lambda x: wg.jit(rosenbrock)(x) + 1.0), (X,), {}),
}


@pytest.mark.parametrize("case", NATIVE)
def test_the_third_call_is_native(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, args, kwargs = NATIVE[case]
    first = f(*args, **kwargs)
    second = again(monkeypatch, f, *args, **kwargs)
    assert same(first, second), (first, second)
    expected = f.__wrapped__(*args, **kwargs)
    assert type(expected) is type(second)
    for x, y in zip(flatten(expected)[0], flatten(second)[0], strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-12)
        assert type(x) is type(y)
        x, y = (z.numpy() if type(z) is wg.Tensor else z for z in (x, y))
        assert np.ndim(x) == 0 or x.strides == y.strides
    assert f.trace_count == 1


def test_tensors_made_natively_are_anybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = wg.jit(lambda x: (x, x * 2.0)), wg.tensor(X)
    f(x)
    for result in again(monkeypatch, f, x):
        result *= 3.0
        result.requires_grad_().sum().backward()
        assert same(result.grad, wg.tensor(np.ones(10)))
    assert same(x, wg.tensor(X))

    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        made = f(x)[1]
        made[0] = row  # allowed while steps are traced, as it was made there
        return made + carry, made.sum()

    rows = wg.jit(functools.partial(wg.scan, step))(X, X)[1]
    np.testing.assert_allclose(rows, X + 2 * X[1:].sum())
    x.requires_grad_()
    assert f(x)[1].requires_grad


def test_scalars_are_no_arrays_without_axes_natively() -> None:
    def add_to(x: Any) -> tuple[Any, Any]:
        made = x
        made += 1.0
        return x, made

    f, array, scalar = wg.jit(add_to), wg.tensor(2.5), wg.tensor(X[:2]).sum()
    for _ in range(4):
        for x in (array, scalar):
            assert list(map(float, f(x))) == list(map(float, add_to(x * 1.0 if x is scalar else wg.tensor(x))))


def test_arguments_that_are_written_to_are_native(monkeypatch: pytest.MonkeyPatch) -> None:
    f = wg.jit(written)
    assert same(f(X), again(monkeypatch, f, X))
    assert X[0] == 0.5
    read_only = X.copy()
    read_only.flags.writeable = False
    for _ in range(3):
        with pytest.raises(UsageError, match="a read-only array as argument 0"):
            f(read_only)


def stepped(p: Any, g: Any) -> Any:
    """Take a step in place; return what it came from, and what it led to."""
    before = p["a"] * 1.0
    p["a"] -= g[0]
    p["b"][:, 0] = g[1]
    return before, p["a"]


def test_donated_arguments_are_overwritten_natively(monkeypatch: pytest.MonkeyPatch) -> None:
    f, step = wg.jit(stepped, donate_argnums=0), (np.ones(4), 7.0)
    memory = np.arange(24.0)
    p = {"a": memory[:4], "b": memory[4:20].reshape(4, 4)}
    for _ in range(2):
        f(p, step)
    before, after = again(monkeypatch, f, p, step)
    assert same(before, memory[:4] + 1)
    assert same(after, memory[:4])
    assert not np.shares_memory(after, memory)
    assert memory.tolist()[:9] == [-4, -3, -2, -1, 7, 5, 6, 7, 7]
    assert memory.tolist()[20:] == [20, 21, 22, 23]
    kept = memory.copy()
    for wrong in ({"a": memory[2:6], "b": p["b"]}, {"a": memory[4:8], "b": p["b"]}):
        with pytest.raises(GraphError, match=r"arguments 0 and 1 .* that share memory"):
            f(wrong, step)
    with pytest.raises(GraphError, match="arguments 0 and 2"):
        f(p, (p["a"], 7.0))
    assert same(memory, kept)
    f(p, (memory[20:], 7.0))
    assert memory.tolist()[:4] == [-24, -24, -24, -24]


def test_donated_arguments_in_other_orders_and_after_errors() -> None:
    f = wg.jit(lambda x, i: x.__setitem__(i, 9.0), donate_argnums=0)
    for x in (np.zeros((4, 3)), np.zeros((4, 3), order="F"), np.zeros((8, 3))[::2], np.zeros((4, 3), np.int16)):
        for _ in range(4):
            x[...] = 0
            f(x, np.array([1]))
            assert x.tolist() == [[0] * 3, [9] * 3, [0] * 3, [0] * 3]
        with pytest.raises(IndexError, match="out of bounds"):
            f(x, np.array([7]))
        assert x.tolist() == [[0] * 3, [9] * 3, [0] * 3, [0] * 3]


def exchange(x: Any, y: Any) -> None:
    before = x * 1.0
    x[:] = y
    y[:] = before


def add_each_other(x: Any, y: Any) -> None:
    x += y
    y += x


def scale_parts(x: Any, y: Any) -> Any:
    x[:5] *= 2.0
    x[5:] += y[:-5]
    return x.sum()


def shift(x: Any, y: Any) -> None:
    x[1:] = x[:-1] * y[1:]


def smooth(x: Any, y: Any) -> None:
    x[1:-1] = 0.5 * (x[2:] + x[:-2]) + y[1:-1]


def turn(x: Any, y: Any) -> None:
    x[:] = x[::-1] + y


def normalise(x: Any, y: Any) -> None:
    x /= x.sum()
    y -= y.mean(0)


def scale_sums(x: Any, y: Any) -> Any:
    """Keep sums in memory, which may be that of the result, until what rows of them give is known."""
    sums = np.cumsum(y)
    most = np.max(np.sum(np.sin(sums[: len(sums) // 6 * 6].reshape(6, -1)), axis=1))
    x[:] = x + sums * most
    return most


@pytest.mark.parametrize(
    ("function", "is_in_place"),
    [
        *((function, True) for function in (exchange, add_each_other, scale_parts)),
        *((function, False) for function in (shift, smooth, turn)),
        (normalise, None),
        (scale_sums, None),
    ],
)
def test_donated_arguments_are_changed_in_place_where_each_point_reads_what_it_writes(
    function: Callable[..., Any], is_in_place: bool | None
) -> None:
    f = wg.jit(function, donate_argnums=(0, 1))
    for size in (19, 19, 19, 1000, 1000, 1000):
        own, other = ([np.linspace(0.5, 1.5, size), np.cos(np.arange(size))] for _ in range(2))
        result, expected = f(*own), function(*other)
        np.testing.assert_allclose(own, other, rtol=1e-12)
        assert result is expected is None or result == pytest.approx(expected)
    assert len(f.variants()) == 2
    for form in f.forms.values():
        assert is_in_place in (None, (0, function is scale_parts) in form.native.callee.overwritten)


def test_captured_tensors_are_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    weight = wg.tensor([2.0] * 10, requires_grad=True)
    f = wg.jit(lambda x: (x * weight, x))
    assert type(f(X)[0]) is wg.Tensor
    weight.requires_grad_(False)
    f(X)
    assert same(again(monkeypatch, f, X), (X * 2.0, X))
    weight += 1.0
    assert same(again(monkeypatch, f, X), (X * 3.0, X))
    view = weight[:]
    view *= 2.0
    assert same(f(X), (X * 6.0, X))
    weight.requires_grad_()
    assert type(f(X)[0]) is wg.Tensor
    with wg.no_grad():
        assert same(f(X), (X * 6.0, X))


def test_objects_that_change_are_other_arguments() -> None:
    f = wg.jit(lambda p: len(vars(p)) * p.width)
    line = Line(2.0, 1.5)
    assert [f(line) for _ in range(3)] == [3.0] * 3
    line.more = 1.0
    assert [f(line) for _ in range(3)] == [4.5] * 3
    g = wg.jit(lambda p: p.weight * len(p.name))
    layer = Layer(2.0, "abc")
    assert [g(layer) for _ in range(3)] == [6.0] * 3
    layer.name = "ab"
    assert [g(layer) for _ in range(3)] == [4.0] * 3
    del layer.name  # the class has one
    assert [g(layer) for _ in range(3)] == [0.0] * 3
    assert len(g.variants()) == 3
    g(changed(layer, weight=X))[0] = 1.0
    assert X[0] == 0.5


def test_attributes_that_become_computed_are_held_while_they_are_needed() -> None:
    class Given(Plain):
        pass

    f = wg.jit(lambda p: (p.w * 2.0, p.b))
    for _ in range(3):
        f(Given(X, 1.0))
    thing, tables = Given(X, 1.0), []
    Given.w = property(lambda _: tables.append(1) or np.full(10, float(len(tables))))
    for _ in range(3):
        assert f(thing)[0][0] == 2.0 * len(tables)


def test_a_place_out_of_bounds_is_numpys_error_from_native_calls_too() -> None:
    f = wg.jit(lambda p, i: {"all": p["x"][i] * 2.0, "first": p["x"][i[0]]})
    at, beyond = np.array([2, 0]), np.array([2, 10])
    for _ in range(2):
        f({"x": X[::2]}, at)  # a copy is made for native code
    known = len(f.variants())
    for _ in range(3):
        with pytest.raises(IndexError, match="index 10 is out of bounds for axis 0 with size 5"):
            f({"x": X[::2]}, beyond)
        assert same(f({"x": X[::2]}, at)["all"], X[::2][at] * 2.0)
    assert known == len(f.variants()) == 1


def twice(x: Any) -> Any:
    y = x * 2.0
    return y, y


def parts(x: Any) -> Any:
    y = x * 2.0
    return y, y[2:]


def written(x: Any) -> Any:
    x[0] = 5.0
    return x * 2.0


WEIGHT = wg.tensor(2.0, requires_grad=True)

PYTHON: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "Tensors that require grad": (wg.jit(lambda x: x * 2.0), (wg.tensor(X, requires_grad=True),)),
    "views of Tensors": (wg.jit(lambda x: x * 2.0), (wg.tensor(X)[2:],)),
    "Tensors that are written to": (wg.jit(written), (wg.tensor(X),)),
    "captured Tensors": (wg.jit(lambda x: x * WEIGHT), (X,)),
    "one array twice": (wg.jit(twice), (X,)),
    "an array and a part of it": (wg.jit(parts), (X,)),
    "equations that NumPy computes": (wg.jit(lambda x: np.partition(x, 0)), (X,)),
    "static objects that compare otherwise": (wg.jit(lambda x, d: x * float(d), static_argnums=1), (X, Fraction(1, 2))),
    "objects that are taken apart by a function": (wg.jit(lambda p: p.value * 2.0), (ByFunction(X),)),
}


@pytest.mark.parametrize("case", PYTHON)
def test_some_calls_need_python(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, args = PYTHON[case]
    first = f(*args)
    with pytest.raises(Refused):
        again(monkeypatch, f, *args)
    assert same(repr(first), repr(f(*args)))


def test_results_share_memory_where_numpy_has_them_share_it() -> None:
    for f in (twice, parts):
        for _ in range(2):
            y, z = wg.jit(f)(X)
            assert np.shares_memory(y, z)
    y, z = wg.jit(lambda x: (x * 2.0, x * 2.0))(X)
    assert not np.shares_memory(y, z)


def test_each_kind_of_arguments_is_native_on_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    f = wg.jit(lambda x: x * 2.0)
    kinds = (X, X[:3], 2.0, np.float64(2.0), np.array(2.0), X.astype(np.float32), 3.0 + 1j)
    for x in kinds:
        f(x)
    for x in kinds:
        np.testing.assert_array_equal(again(monkeypatch, f, x), x * 2.0)
    assert f.trace_count == 7
    assert len(f.variants()) == len(kinds)
    with pytest.raises(Refused):
        again(monkeypatch, f, np.ones(7))


def test_static_values_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    f = wg.jit(lambda x, s: x * (3.0 if s is True else s), static_argnums=1)
    for s in (1, True, 1.0, -0.0, 0.0):
        f(X, s)
    for s in (1, True, 1.0, -0.0, 0.0):
        assert same(again(monkeypatch, f, X, s), X * (3.0 if s is True else s))


class Model:
    def __init__(self, rate: float) -> None:
        self.rate = rate

    @wg.jit
    def step(self, x: Any) -> Any:
        return x * self.rate


class Attributes:
    scale = 2.0

    def __init__(self, rate: float) -> None:
        self.rate = rate

    @wg.jit
    def step(self, x: Any) -> Any:
        return x * self.rate

    @property
    @wg.jit
    def doubled(self) -> Any:
        return np.ones(2) * self.rate * 2

    @functools.cached_property
    @wg.jit
    def kept(self) -> Any:
        return np.ones(2) * self.rate

    @classmethod
    @wg.jit
    def scaled(cls, x: Any) -> Any:
        return x * cls.scale

    @staticmethod
    @wg.jit
    def squared(x: Any) -> Any:
        return x * x


def test_jitted_functions_are_what_properties_and_methods_of_classes_call() -> None:
    for one in (Attributes(2.0), Attributes(3.0)):
        for _ in range(3):
            assert (one.doubled.tolist(), one.kept.tolist()) == ([2 * one.rate] * 2, [one.rate] * 2)
            assert Attributes.step(one, 1.5) == one.step(1.5) == 1.5 * one.rate
            assert Attributes.scaled(3.0) == one.scaled(3.0) == 6.0
            assert Attributes.squared(3.0) == 9.0
            assert wg.grad(lambda x, one=one: one.scaled(x) * Attributes.step(one, x))(1.0) == 4.0 * one.rate
    with pytest.raises(DtypeError, match="jit: an argument of type str at x; ") as error:
        Attributes.step(Attributes(1.0), "x")
    assert error.value.__context__ is None or error.value.__suppress_context__
    with pytest.raises(DtypeError, match=r"jit: an argument of type .*Attributes; "):
        wg.jit(lambda one: one.rate)(Attributes(1.0))


def test_methods_are_native_and_let_their_instance_go(monkeypatch: pytest.MonkeyPatch) -> None:
    models = [Model(2.0), Model(3.0)]
    for model in models:
        model.step(X)
    for model in models:
        np.testing.assert_array_equal(again(monkeypatch, model.step, X), X * model.rate)
    gone = weakref.ref(models[0])
    del models[:], model
    gc.collect()
    assert gone() is None


def test_functions_with_native_code_are_collected() -> None:
    f = wg.jit(rosenbrock)
    f(X)
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("fun", [rosenbrock, lambda x: (np.exp(x) * 2.0).sum(), lambda x: np.exp(x)[3]])
def test_halves_of_calls_under_a_tape_are_native(fun: Callable[[Any], Any]) -> None:
    f = wg.jit(fun)
    expected = wg.grad(fun)(X)
    for _ in range(2):
        np.testing.assert_allclose(wg.grad(f)(X), expected, rtol=1e-12)
    (partition,) = next(iter(f.forms.values())).partitions.values()
    assert [len(half.variants()) for half in (partition.forward, partition.backward)] == [1, 1]
    np.testing.assert_allclose(wg.hessian(f)(X), wg.hessian(fun)(X), rtol=1e-12)


def test_what_the_sweep_reads_can_be_a_result() -> None:
    f = wg.jit(np.exp)
    x = wg.tensor(X, requires_grad=True)
    for _ in range(2):
        y = f(x)
        y += 1.0  # the sweep still reads exp(x)
        (gradient,) = wg.autograd.grad(y, x, np.ones(10))
        np.testing.assert_allclose(gradient.numpy(), np.exp(X), rtol=1e-14)
    (partition,) = next(iter(f.forms.values())).partitions.values()
    assert len(partition.forward.variants()) == 1  # an entry


# Results that are views

VIEWS: dict[str, Callable[..., Any]] = {
    "reversed": lambda x: np.sin(x)[::-1],
    "gaps": lambda x: np.sin(x)[:, ::2],
    "a column": lambda x: np.sin(x)[:, 1],
    "repeated": lambda x: np.broadcast_to(np.sin(x), (2, 3, 4)),
    "the argument": lambda x: (x, x * 2.0),
    "of the argument": lambda x: (x[::-1], x.T, x[1:], x[:, ::-2], x[0]),
    "transposed": lambda x: x.T,
    "complex": lambda x: (x * 1j)[::-1],
    "several": lambda x: {"sine": np.sin(x)[::-1], "cosine": [np.cos(x)[:, ::2]]},
}


@pytest.mark.parametrize("case", VIEWS)
@pytest.mark.parametrize("native", [True, False])
def test_results_that_are_views_fill_memory_of_their_own(
    case: str, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "NATIVE", native)
    x = np.linspace(0.1, 1.2, 12).reshape(3, 4)
    function = wg.jit(VIEWS[case])
    for _ in range(4):
        found = function(x)
        for ours, theirs in zip(wg.tree.leaves(found), wg.tree.leaves(VIEWS[case](x)), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-15)
            assert ours.strides == theirs.copy(order="K").strides
            assert not np.shares_memory(ours, x)
            ours.flat[0] = 7.0
            assert np.count_nonzero(ours == 7.0) == 1
    assert len(function.variants()) == native


CAPTURED = np.arange(4.0)
KNOWN: dict[str, Callable[[Any], Any]] = {
    "without elements": lambda x: (x * 2, np.zeros((0, 3))),
    "of integers": lambda x: [np.zeros((2, 0), int), x * 2],
    "in a dictionary": lambda x: {"a": x * 2, "b": np.zeros(0, complex)},
    "of half precision": lambda x: (x * 2, np.zeros((0, 1), np.float16)),
    "captured": lambda x: (x * 2, CAPTURED, CAPTURED[:0]),
    "carried by a loop": lambda x: wg.fori_loop(0, 3, lambda _, c: (c[0] * 2, c[1]), (x, np.zeros((0, 2)))),
    "computed": lambda x: (x * 2, x[:0] * 3),
    "alone": lambda _: np.zeros((0, 3)),
}


@pytest.mark.parametrize("case", KNOWN)
def test_each_call_gives_arrays_of_its_own_also_those_without_elements(case: str) -> None:
    f = wg.jit(KNOWN[case])
    calls = [[x for x in flatten(f(X))[0] if isinstance(x, np.ndarray)] for _ in range(5)]
    expected = [x for x in flatten(KNOWN[case](X))[0] if isinstance(x, np.ndarray)]
    for k, found in enumerate(calls):
        assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in expected]
        assert all(x is not y and not np.shares_memory(x, y) for x in found for before in calls[:k] for y in before)
        for x, value in zip(found, expected, strict=True):
            np.testing.assert_array_equal(x, value)
            x[...] = 77
        for x in found:
            if not x.size:
                x.shape = (0, 7)  # also written to: it is nobody else's
                break


def test_results_that_are_parts_of_one_array_still_are() -> None:
    def parts(x: Any) -> Any:
        y, z = np.sin(x), x[[0, 2, 1]]
        return y, y[::-1], z, z[::-1]

    function = wg.jit(parts)
    for _ in range(4):
        found = function(np.ones(3))
        for whole, part in (found[:2], found[2:]):
            part[0] = 7.0
            assert whole[2] == 7.0


BEHIND: dict[str, Callable[[Any], Any]] = {
    "a mask": lambda r: np.sum(np.where(r > 0.5, r * r, 0.0)),
    "masks": lambda r: np.sum(np.where(r > 0.5, np.where(r < 0.7, r**3, 1.0), np.sin(r))),
    "an index": lambda r: r[-1] * r[0],
    "a selection": lambda r: np.sum(r[r > 0.5] ** 2),
    "a decision": lambda r: np.sum(r) if r[0] > 9 else np.sum(r[1:] ** 2),
}
"""What is made of a result; of others nothing is."""


@pytest.mark.parametrize("behind", BEHIND.values(), ids=list(BEHIND))
@pytest.mark.parametrize("wait", [0, 1])
def test_tapes_are_differentiated_before_and_after_calls_become_native(
    monkeypatch: pytest.MonkeyPatch, behind: Callable[[Any], Any], wait: int
) -> None:
    monkeypatch.setattr("wengert.compile.executable.calls_to_wait", lambda _: wait)

    def two(x: Any) -> Any:
        return np.sin(x) * x, np.exp(x)

    def loss(x: Any, function: Callable[[Any], Any]) -> Any:
        first, _ = function(x)
        _, second = function(x + np.where(x > 1.0, behind(first), 0.0))
        return behind(first) + behind(second)

    jitted, x = wg.jit(two), np.linspace(0.2, 1.4, 7)
    gradient, hessian = wg.grad(loss)(x, two), wg.hessian(lambda x: loss(x, two))(x)
    for _ in range(4):
        leaf = wg.tensor(x, requires_grad=True)
        (found,) = wg.autograd.grad(loss(leaf, jitted), [leaf], create_graph=True)
        np.testing.assert_allclose(found.detach(), gradient, rtol=1e-12)
        np.testing.assert_allclose(wg.autograd.grad(np.sum(found * x), [leaf])[0], hessian @ x, rtol=1e-11)


def add_sums(x: Any) -> None:
    x[:] = x + np.sum(x, axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_nothing_is_written_beside_the_last_of_short_numbers(dtype: type) -> None:
    f = wg.jit(add_sums, donate_argnums=0, native=True)
    for columns in (3, 9, 17):
        memory = np.arange(7 * columns + 20).astype(dtype)
        expected = memory.copy()
        x, y = (whole[: 7 * columns].reshape(7, columns) for whole in (memory, expected))
        for _ in range(3):
            f(x)
            add_sums(y)
        assert memory.tolist() == expected.tolist()
    assert all((0, 0) in form.native.callee.overwritten for form in f.forms.values())
