"""Methods of Tensors take the arguments that NumPy's methods take."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import DtypeError
from wengert.numpy._methods import ArrayMethods

X = np.array([[0.7, -1.3, 2.1], [1.5, 0.2, -0.4]])
METHODS = [name for name, method in vars(ArrayMethods).items() if inspect.isfunction(method) and name[0] != "_"]
MASK = np.array([True, False, True])

CALLS: dict[str, Callable[[Any], Any]] = {
    "astype to the same": lambda x: x.astype(float, copy=False),
    "astype in another order": lambda x: x.astype(np.float32, order="F").ravel(order="K"),
    "astype within its kind": lambda x: x.astype(np.float32, casting="same_kind"),
    "sum of a dtype": lambda x: x.sum(0, np.float32),
    "sum from": lambda x: x.sum(axis=1, initial=2.0),
    "sum where": lambda x: x.sum(axis=1, where=MASK),
    "sum by position": lambda x: x.sum(0, None, None, True),
    "prod from": lambda x: x.prod(initial=2.0, where=MASK),
    "max from": lambda x: x.max(axis=0, initial=1.0),
    "min where": lambda x: x.min(initial=9.0, where=MASK),
    "max by position": lambda x: x.max(0, None, True),
    "mean where": lambda x: x.mean(axis=1, where=MASK),
    "mean of a dtype": lambda x: x.mean(0, np.float32),
    "any where": lambda x: (x > 1).any(axis=1, where=MASK),
    "all where": lambda x: (x > 0).all(where=MASK),
    "cumsum of a dtype": lambda x: x.cumsum(0, np.float32),
    "cumprod of a dtype": lambda x: x.cumprod(1, dtype=np.float32),
    "take by a mode": lambda x: x.take([4, -7], axis=1, mode="wrap"),
    "take clipped": lambda x: x.take([4, 7], mode="clip"),
    "reshape to a copy": lambda x: x.reshape(3, 2, copy=True),
    "std around a mean": lambda x: x.std(axis=0, mean=x.mean(axis=0, keepdims=True), keepdims=True),
    "var of some": lambda x: x.var(1, None, None, 1, True, where=np.array([True, True, False])),
    "trace of a dtype": lambda x: x.trace(0, 0, 1, np.float32),
    "argsort, stable": lambda x: x.argsort(0, stable=True),
    "argmax by position": lambda x: x.argmax(1, None, keepdims=True),
    "searchsorted": lambda x: x[0].searchsorted(0.5, sorter=np.argsort(X[0])),
}


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.4.0", reason="NumPy's methods have no signatures yet")
@pytest.mark.parametrize("name", METHODS)
def test_parameters_are_those_of_numpy(name: str) -> None:
    kinds = inspect.Parameter
    wanted = list(inspect.signature(getattr(np.ndarray, name)).parameters.values())
    found = list(inspect.signature(getattr(ArrayMethods, name)).parameters.values())
    given = [p.name for p in wanted if p.kind is not kinds.VAR_KEYWORD]
    positional = [p.name for p in wanted if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    assert set(given) <= {p.name for p in found}
    assert [p.name for p in found][: len(positional)] == positional


@together("name", CALLS)
def test_calls_give_what_numpy_gives(name: str) -> None:
    want = CALLS[name](X)
    found = CALLS[name](wg.tensor(X)).numpy()
    assert (found.dtype, found.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(wg.jit(CALLS[name])(X), want)


def test_gradients_follow_what_is_started_from_and_left_out() -> None:
    gradient = wg.grad(lambda x: x.sum(initial=2.0, where=MASK) + x.astype(float, copy=False)[0, 0])(X)
    np.testing.assert_array_equal(gradient, [[2.0, 0.0, 1.0], [1.0, 0.0, 1.0]])


@pytest.mark.parametrize("way", [wg.grad, lambda f: wg.jit(wg.grad(f)), wg.jacfwd], ids=["grad", "jit(grad)", "jacfwd"])
def test_what_is_started_from_is_the_extremum_after_it_is_rounded_too(way: Callable[..., Any]) -> None:
    few = np.float32([-3.0, -2.0])
    assert way(lambda start: np.max(wg.numpy.asarray(few), initial=start))(-0.516) == 1.0
    assert way(lambda start: np.min(wg.numpy.asarray(few[:0]), initial=start))(-0.516) == 1.0


def test_results_may_be_written_to_what_is_given() -> None:
    out = wg.tensor([0.0, 0.0])
    assert wg.tensor(X).sum(1, out=out) is out
    np.testing.assert_array_equal(out.numpy(), X.sum(1))


def test_errors_name_the_method_as_the_user_knows_it() -> None:
    with pytest.raises(TypeError, match=r"^Tensor\.sum\(\) got an unexpected keyword argument 'skipna'"):
        wg.tensor(X).sum(skipna=True)  # type: ignore[call-arg]
    with pytest.raises(wg.errors.DtypeError) as caught:
        wg.tensor(X).astype(int, casting="safe")
    assert str(caught.value) == (
        "astype: a Tensor of dtype float64 for dtype int64; a conversion by the rule 'safe' is needed. "
        "Pass casting='unsafe'."
    )


@pytest.mark.parametrize("transform", [lambda f: f, wg.jit, wg.value_and_grad, lambda f: wg.jit(wg.value_and_grad(f))])
def test_methods_that_write_do_nothing_to_scalars_as_in_numpy(transform: Any) -> None:
    def f(x: Any) -> Any:
        scalar = np.tanh(np.sum(x))
        scalar.fill(5.0)
        scalar.put([0], [7.0])
        array = np.array(x[0], like=x)
        array.fill(2.0)
        return scalar + array

    x = np.array([0.5, 0.25])
    found = transform(f)(x)
    assert (found[0] if isinstance(found, tuple) else found) == f(x)
    tensor = wg.tensor(1.0)
    tensor.fill(3.0)
    assert tensor.item() == 3.0


def test_flatten_of_some_axes_says_how_to_reshape() -> None:
    x = wg.tensor(np.zeros((2, 3, 4)))
    needed = "no axis is needed, because all axes become one, as NumPy has it"
    with pytest.raises(DtypeError) as error:
        x.flatten(1)  # type: ignore[arg-type]  # on purpose
    assert str(error.value) == (
        f"flatten: the axis 1; {needed}. Write x.reshape(*x.shape[:first], -1), or leave it out."
    )
    with pytest.raises(TypeError, match=r"'start_dim'; write x\.reshape\(\*x\.shape\[:start_dim\], -1\)"):
        x.flatten(start_dim=1)
    with pytest.raises(TypeError, match="'as_tuple'; write nothing: there is an array of indices for each axis"):
        x.nonzero(as_tuple=True)
