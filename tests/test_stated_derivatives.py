"""What docstrings of wengert.numpy say of derivatives is what is found by taking them: parameters, zeros, kinks."""

from __future__ import annotations

import importlib
import inspect
import re
from functools import cache
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from tests.samples import SAMPLES
from tests.samples.base import Fixed, Sample, fixed, normal, positive
from tests.samples.calls import leaves_of
from tools import supported
from wengert.core.values.numpy_overrides import FUNCTIONS
from wengert.numpy._derivatives import KINKS

MODULES = ("wengert.numpy", "wengert.numpy.linalg", "wengert.numpy.fft")
X, Y, P = normal(4), normal(4, seed=1), positive(4)
OPTIONS: dict[str, Sample] = {
    "average": supported.of(X, weights=P),
    "corrcoef": supported.of(X, Y),
    "cov": supported.of(X, Y, aweights=P),
    "diff": supported.of(X, prepend=1.0, append=2.0),
    "ediff1d": supported.of(X, 1.0, 2.0),
    "histogram": supported.of(fixed(X), weights=P),
    "histogram2d": supported.of(fixed(X), fixed(Y), weights=P),
    "histogramdd": supported.of(fixed(normal(4, 2)), weights=P),
    "kaiser": supported.of(4, 2.0),
    "logspace": supported.of(0.5, 1.0, 3, base=2.0),
    **dict.fromkeys(("amax", "amin", "max", "min", "nanmax", "nanmin"), supported.of(np.ones(3), initial=1.0)),
    **dict.fromkeys(("nanprod", "nansum", "prod", "sum"), supported.of(X, initial=1.0)),
    "nan_to_num": supported.of(np.array([np.nan, np.inf, -np.inf, 1.0]), nan=1.0, posinf=2.0, neginf=3.0),
    "polyfit": supported.of(np.arange(4.0), X, 1, w=P),
    "polyint": supported.of(X, k=1.0),
    **dict.fromkeys(("percentile", "quantile", "nanpercentile", "nanquantile"), supported.of(X, 0.3)),
}
"""Calls with arguments that samples do not differentiate, or not as arguments of NumPy's own function."""

CASES = [
    (module, name)
    for module in MODULES
    for name, function in vars(importlib.import_module(module.removeprefix("wengert."))).items()
    if callable(function) and not isinstance(function, type) and function in FUNCTIONS and not name.startswith("_")
]


@cache
def stated(module: str, name: str) -> str:
    """The second paragraph of a docstring."""
    text = inspect.getdoc(getattr(importlib.import_module(module), name)) or ""
    return text.split("\n\n")[1]


def calls(module: str, name: str, function: Any) -> list[Sample]:
    """The calls of a function from which one sees by what it is differentiated."""
    other = supported.counterpart(module, name)
    exact = [s for s in SAMPLES if s.function in (function, other)]
    given = supported.CALLS.get(module, {}).get(name)
    return [s for s in (OPTIONS.get(name), given) if s] + exact or [supported.call_for(module, name)]


def value(argument: Any) -> Any:
    """An argument of a sample, as it is passed."""
    if type(argument) in (list, tuple):
        return type(argument)(map(value, argument))
    return argument.value if isinstance(argument, Fixed) else argument


def asking(argument: Any, leaves: list[wg.Tensor]) -> Any:
    """An argument with leaves of the tape in place of its floats."""
    if type(argument) in (list, tuple):
        return type(argument)(asking(item, leaves) for item in argument)
    if isinstance(argument, dict):
        return {key: asking(item, leaves) for key, item in argument.items()}
    if type(argument) is float or (isinstance(argument, np.ndarray) and argument.dtype.kind in "fc"):
        leaves.append(wg.tensor(argument, requires_grad=True))
        return leaves[-1]
    return value(argument)


def differentiated(name: str, function: Any, sample: Sample) -> set[str]:
    """The parameters that get a gradient in a call."""
    try:
        bound = inspect.signature(function).bind(*sample.args, **sample.kwargs)
    except TypeError:  # a call of our function in ways that NumPy's has not
        return set()
    found = set()
    for parameter, argument in bound.arguments.items():
        leaves: list[wg.Tensor] = []
        given = {key: value(other) for key, other in bound.arguments.items()}
        given[parameter] = asking(argument, leaves)
        if not leaves or isinstance(argument, Fixed):
            continue
        written = next(iter(given))
        if name in supported.WRITING:
            given[written] = wg.asarray(given[written]) * 1.0
        called = inspect.BoundArguments(bound.signature, given)  # type: ignore[arg-type]  # in the order of the signature
        try:
            result = function(*called.args, **called.kwargs)
        except wg.errors.WengertError:  # no derivative by that is refused, rather than zero
            continue
        for tensor in leaves_of(given[written] if name in supported.WRITING else result):
            if isinstance(tensor, wg.Tensor) and tensor.requires_grad:
                wg.numpy.sum(abs(tensor)).backward(retain_graph=True)
        if any(leaf.grad is not None for leaf in leaves):
            found.add(parameter)
    return found


@pytest.mark.filterwarnings("ignore")
@together("module, name", [case for case in CASES if case[1] not in supported.NOTHING])
def test_by_what_functions_are_differentiated(module: str, name: str) -> None:
    function = getattr(importlib.import_module(module), name)
    said = re.match(r"Differentiable by (.*?)\.|Its derivative is zero\.", stated(module, name))
    assert said is not None, stated(module, name)
    expected = set(re.findall(r"`(\w+)`", said[1] or ""))
    found: set[str] = set()
    with np.errstate(all="ignore"):
        for sample in calls(module, name, function):
            found |= differentiated(name, function, sample)
            if expected and found == expected:
                break
    assert found == expected


@together("module, name", [case for case in CASES if case[1] in supported.NOTHING])
def test_functions_in_which_nothing_is_differentiated(module: str, name: str) -> None:
    assert stated(module, name) == "There is nothing to differentiate."


def gradients(function: Any, *arguments: Any) -> list[Any]:
    """The gradients of the sum of what a function gives, by all of its arguments."""

    def total(*xs: Any) -> Any:
        return np.sum(function(*xs))

    with np.errstate(all="ignore"):
        return list(wg.grad(total, argnums=tuple(range(len(arguments))))(*arguments))


TIED = np.array([1.0, 2.0, 2.0, 2.0])
SHARED = [0.0, 1 / 3, 1 / 3, 1 / 3]
MATRIX = np.array([[2.0, 1.0], [1.0, 3.0]])


def tied(name: str) -> list[Any]:
    return gradients(getattr(np, name), -TIED if "min" in name else TIED)


AT_KINKS: dict[str, Any] = {
    **{name: (lambda name=name: gradients(getattr(np, name), 0.0), [0.0]) for name in ("abs", "absolute", "fabs")},
    "linalg.norm": (lambda: gradients(np.linalg.norm, np.zeros(2)), [[0.0, 0.0]]),
    "linalg.vector_norm": (lambda: gradients(np.linalg.vector_norm, np.zeros(2)), [[0.0, 0.0]]),
    "linalg.matrix_norm": (lambda: gradients(np.linalg.matrix_norm, np.zeros((2, 2))), [np.zeros((2, 2))]),
    "hypot": (lambda: gradients(np.hypot, 0.0, 0.0), [0.0, 0.0]),
    "sign": (lambda: gradients(np.sign, 0.0) + gradients(lambda z: np.sign(z).real, 0j), [0.0, 0j]),
    **{
        name: (lambda name=name: gradients(getattr(np, name), 1.0, 1.0), [0.5, 0.5])
        for name in ("maximum", "minimum", "fmax", "fmin")
    },
    "clip": (lambda: gradients(np.clip, 1.0, 1.0, 2.0) + gradients(np.clip, 2.0, 1.0, 2.0), [0.5, 0.5, 0, 0.5, 0, 0.5]),
    **{
        name: (lambda name=name: tied(name), [SHARED])
        for name in ("amax", "amin", "max", "min", "nanmax", "nanmin", "median", "nanmedian")
    },
    "ptp": (lambda: gradients(np.ptp, TIED), [[-1.0, *SHARED[1:]]]),
    **{
        name: (lambda name=name, q=q: gradients(lambda x: getattr(np, name)(x, q), TIED), [SHARED])
        for name, q in (("quantile", 1), ("nanquantile", 1), ("percentile", 100), ("nanpercentile", 100))
    },
    "where": (lambda: gradients(lambda x: np.where(x > 0, np.sqrt(x), 0.0), -1.0), [0.0]),
    "select": (lambda: gradients(lambda x: np.select([x > 0], [np.sqrt(x)], 0.0), -1.0), [0.0]),
    "choose": (lambda: gradients(lambda x: wg.numpy.choose(0, [2.0 * x, np.sqrt(x)]), -1.0), [2.0]),
    **{
        name: (lambda name=name: gradients(lambda x: getattr(np, name)(x, 0.0), np.array([0.0, 2.0])), [[0.0, 0.0]])
        for name in ("power", "pow", "float_power")
    },
    **{name: (lambda name=name: gradients(getattr(np, name), np.ones(3)), [np.zeros(3)]) for name in ("std", "nanstd")},
    **{
        name: (lambda name=name: gradients(getattr(np, name), 4.0, 2.0), [1.0, -2.0])
        for name in ("remainder", "mod", "fmod")
    },
    "divmod": (lambda: gradients(lambda x, y: np.divmod(x, y)[1], 4.0, 2.0), [1.0, -2.0]),
    "interp": (lambda: gradients(lambda x: np.interp(x, [0.0, 1.0, 2.0], [0.0, 1.0, 3.0]), 1.0), [2.0]),
    "nan_to_num": (lambda: gradients(np.nan_to_num, np.array([np.nan, 1.0, np.inf])), [[0.0, 1.0, 0.0]]),
    "unique": (lambda: gradients(np.unique, TIED), [[1.0, 1.0, 0.0, 0.0]]),
    "unique_values": (lambda: gradients(np.unique_values, TIED), [[1.0, 1.0, 0.0, 0.0]]),
    "unique_all": (lambda: gradients(lambda x: np.unique_all(x)[0], TIED), [[1.0, 1.0, 0.0, 0.0]]),
    "linalg.cholesky": (lambda: np.triu(gradients(np.linalg.cholesky, MATRIX)[0], 1), np.zeros((2, 2))),
    "linalg.eigvalsh": (lambda: np.triu(gradients(lambda a: np.linalg.eigvalsh(a)[0], MATRIX)[0], 1), np.zeros((2, 2))),
    "linalg.eigh": (lambda: np.triu(gradients(lambda a: np.linalg.eigh(a)[0][0], MATRIX)[0], 1), np.zeros((2, 2))),
    "linalg.eig": (lambda: gradients(lambda a: np.sum(np.linalg.eig(a)[0]).real, np.eye(2)), [np.eye(2)]),
    "linalg.svd": (lambda: gradients(lambda a: np.linalg.svd(a)[1], np.zeros((2, 2))), [np.zeros((2, 2))]),
    "linalg.svdvals": (lambda: gradients(np.linalg.svdvals, np.zeros((2, 2))), [np.zeros((2, 2))]),
    "linalg.pinv": (lambda: gradients(np.linalg.pinv, np.zeros((2, 2))), [np.zeros((2, 2))]),
    "linalg.lstsq": (lambda: gradients(lambda a: np.linalg.lstsq(a, X[:2])[0], np.zeros((2, 2))), [np.zeros((2, 2))]),
}


def test_each_kink_that_is_stated_is_tried() -> None:
    assert AT_KINKS.keys() == KINKS.keys()


@together("name", AT_KINKS)
def test_what_kinks_give(name: str) -> None:
    found, expected = AT_KINKS[name]
    np.testing.assert_allclose(np.asarray(found()), np.asarray(expected), rtol=1e-12, atol=1e-300)


def test_help_says_so() -> None:
    expected = (
        "Calculate the absolute value element-wise; see `numpy.absolute`.\n\n"
        "Differentiable by `x`. At 0 the derivative is 0."
    )
    assert inspect.getdoc(wg.numpy.abs) == expected
    infinite = "Where the derivative is infinite, values on which nothing depends get 0, not NaN."
    assert stated("wengert.numpy", "sqrt") == f"Differentiable by `x`. {infinite}"
    assert gradients(lambda x: np.sqrt(x) * np.array([0.0, 1.0]), np.array([0.0, 4.0]))[0].tolist() == [0.0, 0.25]
    assert (inspect.getdoc(wg.numpy.array) or "").endswith(
        "\n>>> import wengert as wg\n" + (">>> wg.grad(lambda x: array([x, [2 * x, 1.0][0]]).sum())(1.0)\n3.0")
    )
