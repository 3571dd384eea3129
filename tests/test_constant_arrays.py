"""Arrays that are not differentiated, indices for instance: what the user writes to them later is not seen."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.samples import SAMPLES
from tests.samples.base import Fixed, Sample
from tests.samples.calls import float_leaves, random_like
from wengert.control import reachable_state

LARGE = np.linspace(0.0, 1.0, 70_000)


def filled(argument: Any, constants: Iterator[Any], differentiated: Any) -> Any:
    """Return an argument of a sample with its arrays replaced; the first one of floats is what is differentiated."""
    if isinstance(argument, Fixed):
        argument = argument.value
    if isinstance(argument, np.ndarray):
        return differentiated[1] if argument is differentiated[0] else next(constants)
    if isinstance(argument, list | tuple) and not hasattr(argument, "_fields"):
        return type(argument)([filled(item, constants, differentiated) for item in argument])
    return argument


def arrays_of(argument: Any) -> list[Any]:
    """Return the arrays in an argument of a sample."""
    if isinstance(argument, Fixed):
        return arrays_of(argument.value)
    if isinstance(argument, list | tuple):
        return [array for item in argument for array in arrays_of(item)]
    return [argument] if isinstance(argument, np.ndarray) else []


def free(argument: Any) -> list[Any]:
    """Return the arrays in an argument that are differentiated."""
    if isinstance(argument, list | tuple):
        return [array for item in argument for array in free(item)]
    return [argument] if isinstance(argument, np.ndarray) and argument.dtype.kind in "fc" else []


def overwrite(array: Any) -> None:
    """Write other elements into an array, such as are indices where its elements are."""
    if array.dtype.kind in "fc":
        array[...] = array * 3 + 1
    elif array.dtype.kind == "b":
        array[...] = ~array
    elif array.size:
        array[...] = array.flat[0]


def gradient(sample: Sample, wrap: Callable[[Any], Any], *, written: bool) -> Any:
    """Return the gradient for one array of a sample; its others are written to before the sweep, if at all."""
    arrays = arrays_of((sample.args, tuple(sample.kwargs.values())))
    differentiated = free(sample.args)[0]
    leaf = wg.tensor(differentiated, requires_grad=True)
    constants = [array.copy() for array in arrays if array is not differentiated]
    rest = iter(list(map(wrap, constants)))
    args = [filled(argument, rest, (differentiated, leaf)) for argument in sample.args]
    kwargs = {name: filled(argument, rest, (differentiated, leaf)) for name, argument in sample.kwargs.items()}
    results = [x for x in float_leaves(sample.function(*args, **kwargs)) if x.requires_grad]
    total = sum(((x * random_like(x)).sum() for x in results), leaf.sum() * 0)
    if written:
        for array in constants:
            overwrite(array)
    total.real.backward()
    assert leaf.grad is not None
    return leaf.grad.numpy()


WITH_CONSTANTS = [
    s for s in SAMPLES if s.order and free(s.args) and len(arrays_of((s.args, tuple(s.kwargs.values())))) > 1
]
WRAPPINGS: dict[str, Callable[[Any], Any]] = {
    "ndarrays": lambda array: array,
    "Tensors": wg.asarray,
    "views": lambda array: wg.asarray(array)[...],
}


@pytest.mark.parametrize("given", [pytest.param(x, marks=[pytest.mark.long] * (x == "views")) for x in WRAPPINGS])
def test_gradients_are_of_the_constants_that_were_there(given: str) -> None:
    wrong = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in WITH_CONSTANTS:
            try:
                want = gradient(sample, WRAPPINGS[given], written=False)
            except (TypeError, ValueError):  # parameters that must be ndarrays
                continue
            if not np.array_equal(gradient(sample, WRAPPINGS[given], written=True), want, equal_nan=True):
                wrong.append(sample.name)
    assert not wrong


def choices(x: Any, index: Any) -> Any:
    """Choose among two."""
    return np.choose(index, [x, x * 10])


def reversed_elements(x: Any, index: Any) -> Any:
    """Read at the places of a view."""
    return x[wg.asarray(index)[::-1]] * np.array([1.0, 3.0])


def broadcast(x: Any, index: Any) -> Any:
    """Write at places that are broadcast."""
    y = x * 1
    y[np.broadcast_to(wg.asarray(index), (2,))] = x * np.array([2.0, 3.0])
    return y


@pytest.mark.parametrize("program", [choices, reversed_elements, broadcast])
def test_indices_are_those_that_were_there(program: Callable[[Any, Any], Any]) -> None:
    x = np.array([1.0, 2.0])
    index = np.array([0, 1])
    want_value, want = program(x, index), wg.vjp(lambda x: program(x, index), x)[1](np.ones(2))[0]
    found = wg.vjp(lambda x: program(x, index), x)[1]
    jitted = wg.jit(lambda x: program(x, index))
    np.testing.assert_array_equal(jitted(x), want_value if isinstance(want_value, np.ndarray) else want_value.numpy())
    before = jitted(x)
    index[:] = 1
    np.testing.assert_array_equal(found(np.ones(2))[0], want)
    np.testing.assert_array_equal(jitted(x), before)


def shared() -> tuple[Any, Callable[[], None]]:
    """Return a view of a Tensor that shares memory with an ndarray, and a function that writes to that."""
    array = np.array([1.0, 2.0])
    return wg.asarray(array)[:], lambda: array.fill(9.0)


def owned() -> tuple[Any, Callable[[], None]]:
    """Return a view of a Tensor, and a function that writes to that."""
    base = wg.tensor([1.0, 2.0])
    return base[:], lambda: base.fill(9.0)


@pytest.mark.parametrize("make", [shared, owned])
def test_views_that_transformations_are_given_are_as_they_were(make: Callable[[], Any]) -> None:
    view, write = make()
    _, pullback = wg.vjp(np.sin, view)
    write()
    np.testing.assert_array_equal(pullback(np.ones(2))[0].numpy(), np.cos([1.0, 2.0]))

    view, write = make()
    t = wg.tensor([1.0, 1.0], requires_grad=True)
    total = wg.checkpoint(lambda t, v: np.sin(t * v))(t, view).sum()
    write()
    total.backward()
    assert t.grad is not None
    np.testing.assert_array_equal(t.grad.numpy(), np.cos([1.0, 2.0]) * [1.0, 2.0])


@pytest.mark.parametrize("make", [shared, owned])
def test_views_that_graphs_return_are_as_they_were(make: Callable[[], Any]) -> None:
    view, write = make()
    returned = wg.jit(lambda x: (view, x))
    chosen = wg.jit(lambda x: wg.cond(x > 0, lambda _: view, lambda _: view * 2, x))
    read = wg.jit(lambda x: view[np.astype(x, int)])
    returned(1.0), chosen(1.0), read(1.0)
    write()
    np.testing.assert_array_equal(returned(1.0)[0], [1.0, 2.0])
    np.testing.assert_array_equal(chosen(1.0), [1.0, 2.0])
    assert read(1.0) == 2.0


def test_long_arrays_of_one_number_are_one_in_memory() -> None:
    """As the cotangents of a sum are; what is computed of them has the bits and the order that NumPy's has."""
    x = np.linspace(0.5, 1.5, 70_000)

    def f(x: Any) -> Any:
        return np.sum(np.log(x) - np.sin(x))

    graph = wg.graph.trace(wg.grad(f))(x)
    literals = [y for e in graph.equations for y in e.inputs if isinstance(y, np.ndarray)]
    assert all(not any(y.strides) for y in literals)
    assert graph(x)[0].tobytes() == wg.grad(f)(x).tobytes()
    ones = np.ones((300, 300))
    for y in (np.full((300, 300), 2.0), np.full((300, 300), 2.0).T):
        assert wg.jit(lambda y: y * ones)(y).strides == (y * ones).strides


def test_arrays_from_outside_are_summed_up_once_before_and_once_after_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    summed: list[int] = []
    monkeypatch.setattr(reachable_state, "checksum", lambda array: summed.append(array.size) or 0)
    wg.jit(lambda x: np.sum(LARGE * x))(2.0)
    assert summed == [LARGE.size] * 2
