"""Random numbers with explicit keys: a key says which numbers come, in every mode and with any number of threads.

The functions are those of NumPy's generators, with a key in front. A key is an ndarray of two unsigned integers that
batches and traces as others do; each is for one use, and `split` makes new ones of it. Numbers are Tensors.

>>> import numpy as np
>>> import wengert as wg
>>> from wengert import random
>>> first, second = random.split(random.key(0))
>>> random.normal(first, size=3)
tensor([ 1.16481315,  0.92670372, -1.09674179])
>>> same = wg.jit(lambda key: random.normal(key, size=3))(first)
>>> bool(np.all(same == random.normal(first, size=3)))
True

Draws are differentiable in what places and scales them, and in the shapes of gamma, beta and Dirichlet distributions.
Parameters that NumPy's generators refuse are refused. Where their numbers are not known, under `jit` and in lanes,
draws that they scale or shape are NaN then, and whole numbers, truths and choices mean nothing.
Words come from Philox4x64 with ten rounds, a function of the key and a counter, as `numpy.random.Philox` computes it:
`uniform(key(seed), size=n)` is `numpy.random.Generator(numpy.random.Philox(seed)).random(n)`.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.core.diagnostics.argument_checks import (
    as_dtype,
    as_whole,
    elements,
    positive,
    refuse_wrong,
    require_number,
    shown,
)
from wengert.core.values.aval import is_number
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.tensor import Tensor, innermost_trace, is_concrete
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.primitives import random as primitives
from wengert.support.hints import hint_parameters, names_on_demand
from wengert.transforms.reverse import stop_gradient

__all__ = [
    "bernoulli",
    "beta",
    "bits",
    "categorical",
    "choice",
    "dirichlet",
    "exponential",
    "fold_in",
    "gamma",
    "integers",
    "key",
    "normal",
    "permutation",
    "poisson",
    "split",
    "uniform",
]

if not TYPE_CHECKING:  # checkers know the names
    __getattr__ = names_on_demand("wengert.random")

SMALLEST = 1e-300
"""What stands for a shape of 0, whose gamma draws are 0: they are less than exp(-1e280)."""
DRAW, SPLIT, FOLD = 0, 1, 2
"""The highest words of the counters of numbers, and of keys made of a key: their streams have nothing in common."""


# Keys


def key(seed: int) -> Any:
    """Return the key of a seed: two words, those with which `numpy.random.Philox(seed)` begins.

    Args:
        seed: a whole number, 0 or more. Fold a traced number into a key with `fold_in`.

    Returns:
        An ndarray of shape (2,) and dtype uint64.

    Raises:
        UsageError: the seed is no such number.
        GraphError: it is traced, or differs from lane to lane.

    >>> key(7)
    array([16920295385781661272,   610735763742393210], dtype=uint64)
    """
    if isinstance(seed, Tensor) and not is_concrete(seed):
        needed = "a plain number is needed"
        action = "Fold it into a key: fold_in(key(0), seed)"
        raise GraphError("random.key", "a seed that is traced, or one for each lane", needed, action)
    words = np.random.SeedSequence(as_whole("key", "seed", seed, 0)).generate_state(2, np.uint64)
    words.flags.writeable = False
    return words


def as_key_like(key: Any, words: Tensor) -> Any:
    """Return keys as what the key is that they were made of, an ndarray or a Tensor, if they are not traced."""
    return words if type(key) is Tensor or innermost_trace(words) is not None else words.numpy()


def draw_words(name: str, source: Any, count: int, domain: int = DRAW, start: Any = 0) -> Any:
    """Return random words of a key."""
    x = as_tensor(source)
    if x.dtype != np.uint64 or x.shape != (2,):
        given = f"{shown(source)}, of shape {x.shape} and dtype {x.dtype}, as the key"
        action = "Make one with wengert.random.key or split; use vmap for one call for each of several keys"
        raise DtypeError(name, given, "two words of dtype uint64 are needed", action)
    return apply(primitives.words, x, start, count=count, domain=domain)


def split(key: Any, num: int = 2) -> Any:
    """Return new keys, whose numbers are independent of each other's and of those of the given one.

    Args:
        key: the key, which should not be used for anything else.
        num: how many there shall be.

    Returns:
        An array of shape (num, 2), whose rows are keys; a Tensor if the key is one.

    >>> [row.shape for row in split(key(0), 3)]
    [(2,), (2,), (2,)]
    """
    count = as_whole("split", "num", num, 0)
    return as_key_like(key, draw_words("split", key, 2 * count, SPLIT).reshape(count, 2))


def fold_in(key: Any, data: Any) -> Any:
    """Return a new key made of a key and an integer, such as the number of a step or of a lane; both may be traced.

    Args:
        key: the key, which may be folded with other integers too.
        data: the integer.

    Returns:
        The key: an array of two words of uint64; a Tensor where an argument is one.

    Raises:
        DtypeError: the data are no integer.

    >>> wg_keys = [fold_in(key(0), step) for step in range(2)]
    >>> bool(np.any(wg_keys[0] == wg_keys[1]))
    False
    """
    if not is_number(data):
        require_number("fold_in", "data", data)
    x = data if is_number(data) else as_tensor(data)
    if np.result_type(x).kind not in "iu" or np.shape(x) != ():
        given = f"{shown(data)} of shape {np.shape(x)} and dtype {np.result_type(x)}"
        raise DtypeError("fold_in", given, "an integer is needed", "Use vmap for several")
    return as_key_like(key, draw_words("fold_in", key, 2, FOLD, x))


# Numbers


def draw_shape(size: Any, *parameters: Any) -> tuple[int, ...]:
    """Return the shape of draws: as given, or what parameters broadcast to."""
    wide = np.broadcast_shapes(*map(np.shape, parameters))
    if size is None:
        return wide
    shape = (operator.index(size),) if not isinstance(size, tuple | list) else tuple(map(operator.index, size))
    if wide and np.broadcast_shapes(wide, shape) != shape:  # draws would be repeated along the axes that size lacks
        given = f"size={size} for parameters of shape {wide}"
        raise ShapeError("random", given, "a size to which they broadcast is needed", "Leave size out")
    return shape


def number(value: Any) -> Any:
    """Return a parameter as a Python number or a Tensor."""
    return value if is_number(value) else as_tensor(value)


def refuse_shape(name: str, parameter: str, value: Any) -> Any:
    """Return the first parameter of a distribution, which must not look like a shape, as it is the shape in JAX."""
    if isinstance(value, tuple) and all(type(entry) is int for entry in value):
        given = f"the tuple {value} for {parameter}"
        needed = "a number or an array is needed there"
        raise UsageError(name, given, needed, f"Write size={value} if it is the shape, or make it a list")
    return number(value)


def float_dtype(name: str, dtype: Any) -> np.dtype[Any]:
    """Return a dtype of draws, which must be float64 or float32."""
    found = as_dtype(name, dtype)
    if found not in (np.float64, np.float32):
        raise DtypeError(name, f"dtype {found}", "float64 or float32 is needed", "Convert with .astype")
    return found


@hint_parameters("random")
def bits(key: Any, size: Any = ()) -> Any:
    """Return random words, of dtype uint64.

    Args:
        key: the key.
        size: the shape.

    Returns:
        A Tensor of that shape.

    >>> bits(key(7), 2).numpy()
    array([8648156199155761070, 7861003179181181637], dtype=uint64)
    """
    shape = draw_shape(size)
    return draw_words("bits", key, math.prod(shape)).reshape(shape)


def units(name: str, key: Any, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """Return numbers from 0 on, less than 1."""
    count = math.prod(shape)
    if dtype == np.float64:
        found = draw_words(name, key, count)
    else:  # two halves of each word, the lower one first
        pairs = draw_words(name, key, (count + 1) // 2)
        found = np.stack([pairs & np.uint64(0xFFFFFFFF), pairs >> np.uint64(32)], axis=-1).reshape(-1)[:count]
    return apply(primitives.units, found, dtype=dtype).reshape(shape)


@hint_parameters("random", "between")
def uniform(key: Any, low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = float) -> Any:
    """Return numbers that lie evenly between two bounds, in which they are differentiable.

    Args:
        key: the key.
        low: the lower bound, which is included.
        high: the upper bound. Where the bounds are not known, under `jit` and in lanes, numbers lie between them in
            whatever order these are.
        size: the shape; that of the bounds, broadcast, if it is not given.
        dtype: float64 or float32.

    Returns:
        A Tensor of that shape and dtype.

    Raises:
        UsageError: the upper bound is below the lower one, or one is infinite, or `low` is a tuple like a shape.

    >>> uniform(key(7), size=3)
    tensor([0.46881749, 0.42614584, 0.3629817 ])
    """
    low, high = refuse_shape("uniform", "low", low), number(high)
    found = units("uniform", key, draw_shape(size, low, high), float_dtype("uniform", dtype))
    if is_number(low) and is_number(high) and (low, high) == (0, 1):
        return found
    lowest, highest = elements(low), elements(high)
    if lowest is not None and highest is not None:
        span = np.subtract(highest, lowest, dtype=np.float64)
        refuse_wrong(
            "uniform", "high - low", span, ~((span >= 0) & (span < np.inf)), "0 or more, and finite, is needed"
        )
    return low + (high - low) * found


@hint_parameters("random")
def normal(key: Any, loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = float) -> Any:
    """Return normal numbers, differentiable in mean and standard deviation.

    Args:
        key: the key.
        loc: the mean.
        scale: the standard deviation.
        size: the shape; that of the parameters, broadcast, if it is not given.
        dtype: float64 or float32.

    Returns:
        A Tensor of that shape and dtype.

    Raises:
        UsageError: a standard deviation is negative, or `loc` is a tuple like a shape.

    >>> import wengert as wg
    >>> round(wg.grad(lambda scale: normal(key(0), 0.0, scale, size=100).std())(2.0), 3)
    1.073
    """
    loc, scale = refuse_shape("normal", "loc", loc), positive("normal", "scale", number(scale))
    shape, dtype = draw_shape(size, loc, scale), float_dtype("normal", dtype)
    found = apply(primitives.normals, draw_words("normal", key, math.prod(shape))).reshape(shape).astype(dtype)
    return found if is_number(loc) and is_number(scale) and (loc, scale) == (0, 1) else loc + scale * found


@hint_parameters("random")
def exponential(key: Any, scale: Any = 1.0, size: Any = None, dtype: Any = float) -> Any:
    """Return exponentially distributed numbers, differentiable in their mean.

    Args:
        key: the key.
        scale: the mean.
        size: the shape; that of the mean if it is not given.
        dtype: float64 or float32.

    Returns:
        A Tensor of that shape and dtype.

    Raises:
        UsageError: a mean is negative, or a tuple like a shape.

    >>> exponential(key(7), 2.0, size=2)
    tensor([1.2652992 , 1.11075997])
    """
    scale = positive("exponential", "scale", refuse_shape("exponential", "scale", scale))
    return scale * standard_exponential("exponential", key, draw_shape(size, scale), float_dtype("exponential", dtype))


def standard_exponential(name: str, key: Any, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """Return exponentially distributed numbers with the mean 1."""
    return -np.log1p(-units(name, key, shape, dtype))


@hint_parameters("random")
def bernoulli(key: Any, p: Any = 0.5, size: Any = None) -> Any:
    """Return truth values.

    Args:
        key: the key.
        p: the probability of True.
        size: the shape; that of p if it is not given.

    Returns:
        A Tensor of truth values.

    Raises:
        UsageError: a probability is not from 0 to 1.

    >>> bernoulli(key(7), 0.4, size=4).tolist()
    [False, False, True, True]
    """
    p = number(p)
    known = elements(p)
    if known is not None:
        refuse_wrong(
            "bernoulli", "p", known, ~((np.asarray(known) >= 0) & (np.asarray(known) <= 1)), "0 to 1 is needed"
        )
    return units("bernoulli", key, draw_shape(size, p)) < p


@hint_parameters("random")
def categorical(key: Any, logits: Any, axis: int = -1, size: Any = None) -> Any:
    """Return places along an axis, drawn by probabilities that are the softmax of logits.

    Args:
        key: the key.
        logits: logarithms of probabilities, up to a constant.
        axis: the axis of the alternatives.
        size: the shape, to which that of the logits without the axis broadcasts; this if it is not given.

    Returns:
        A Tensor of int64.

    Raises:
        UsageError: a logit is NaN or infinity, or all along the axis are minus infinity.

    >>> categorical(key(7), np.log([0.1, 0.0001, 0.9]), size=5).tolist()
    [2, 2, 2, 2, 2]
    """
    weights: Any = as_tensor(logits)
    weights = np.moveaxis(weights, axis, -1)
    shape, known = draw_shape(size, np.zeros(weights.shape[:-1])), elements(weights)
    if known is not None:
        refuse_wrong("categorical", "logits", known, ~(known < np.inf), "logarithms of probabilities are needed")
        most = np.max(known, axis=-1, initial=-np.inf)
        refuse_wrong("categorical", "the largest logits", most, most == -np.inf, "some alternative must be possible")
    noise = -np.log(standard_exponential("categorical", key, (*shape, weights.shape[-1])))
    return np.argmax(weights + noise, axis=-1)


@hint_parameters("random", "between")
def integers(key: Any, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64) -> Any:
    """Return integers from a lower bound on, less than an upper one.

    Each comes with the same probability, to the number of integers times 2**-64.

    Args:
        key: the key.
        low: the lower bound; the upper one, after 0, where it is alone.
        high: the upper bound.
        size: the shape; that of the bounds, broadcast, if it is not given.
        dtype: the dtype of the integers.

    Returns:
        A Tensor of that shape and dtype.

    Raises:
        UsageError: there are no integers between the bounds, or the dtype does not hold them.
        DtypeError: the dtype is not one of integers.

    >>> integers(key(7), 1, 7, size=6).tolist()
    [3, 4, 4, 3, 4, 3]
    """
    low, high = (0, low) if high is None else (low, high)
    low, high = number(low), number(high)
    lowest, highest = elements(low), elements(high)
    if lowest is not None and highest is not None and np.any(wrong := np.greater_equal(lowest, highest)):
        first = [np.broadcast_to(bound, np.shape(wrong))[wrong].flat[0] for bound in (lowest, highest)]
        raise UsageError("integers", f"bounds {first[0]} and {first[1]}", "a lower one below is needed", "Swap them")
    shape, kind = draw_shape(size, low, high), as_dtype("integers", dtype)
    if kind.kind not in "iu":
        raise DtypeError("integers", f"dtype {kind}", "a dtype of integers is needed", "Use .astype")
    room = np.iinfo(kind)
    for bound in (low, high - 1 if is_number(high) else high):
        if is_number(bound) and not room.min <= bound <= room.max:
            given = f"numbers from {low} up to {high} of dtype {kind}"
            raise UsageError("integers", given, "a dtype that holds them is needed", "Pass a wider one")
    span = as_tensor(high - low).astype(np.uint64)
    offset = draw_words("integers", key, math.prod(shape)).reshape(shape) % span
    return (offset.astype(np.int64) + low).astype(kind)


@hint_parameters("random")
def poisson(key: Any, lam: Any = 1.0, size: Any = None) -> Any:
    """Return numbers of events, by NumPy's generator of this key.

    Args:
        key: the key.
        lam: the expected number.
        size: the shape; that of `lam` if it is not given.

    Returns:
        A Tensor of int64.

    Raises:
        UsageError: an expected number is negative or NaN; where it is not known, NumPy's ValueError.

    >>> poisson(key(7), 3.0, size=5).tolist()
    [3, 2, 4, 1, 1]
    """
    known = elements(lam)
    if known is not None:
        refuse_wrong("poisson", "lam", known, ~(np.asarray(known) >= 0), "0 or more is needed")
    return draws("poisson", key, "poisson", lam, size)


def draws(name: str, key: Any, method: str, parameter: Any, size: Any) -> Any:
    """Return one draw by a method of NumPy's generators for each element of a parameter, whose gradient is zero."""
    draw_words(name, key, 0)
    x = as_tensor(parameter)
    x = x if x.dtype == np.float64 else x.astype(float)
    shape = draw_shape(size, x)
    rows = np.broadcast_to(x, shape).reshape(-1)
    return apply(primitives.drawn, as_tensor(key), rows, method=method).reshape(shape)


def log_gammas(name: str, key: Any, a: Any, shape: tuple[int, ...]) -> Any:
    """Return logarithms of gamma draws, which do not vanish for small shapes.

    A draw is one of a shape larger by 1, times u**(1 / shape) (Marsaglia and Tsang, *A simple method for generating
    gamma variables*, 2000).
    """
    draw_words(name, key, 0)
    keys = split(key)
    a = np.broadcast_to(as_tensor(a), shape)
    a = a if a.dtype == np.float64 else a.astype(float)
    larger = a + 1.0
    found = apply(primitives.gamma_path, larger, draws(name, keys[0], "standard_gamma", stop_gradient(larger), shape))
    return np.log(found) - standard_exponential(name, keys[1], shape) / np.maximum(a, SMALLEST)


def gamma(key: Any, shape: Any, scale: Any = 1.0, size: Any = None) -> Any:
    """Return gamma distributed numbers, differentiable in shape and scale.

    Args:
        key: the key.
        shape: the shape parameter.
        scale: the scale.
        size: the shape of the result; that of the parameters, broadcast, if it is not given.

    Returns:
        A Tensor of float64.

    Raises:
        UsageError: a shape or scale is negative.

    >>> gamma(key(7), 2.0, size=2)
    tensor([2.18831431, 1.01433598])
    """
    shape, scale = positive("gamma", "shape", number(shape)), positive("gamma", "scale", number(scale))
    return scale * np.exp(log_gammas("gamma", key, shape, draw_shape(size, shape, scale)))


@hint_parameters("random")
def beta(key: Any, a: Any, b: Any, size: Any = None) -> Any:
    """Return beta distributed numbers, differentiable in both parameters.

    Args:
        key: the key.
        a: the first parameter.
        b: the second parameter.
        size: the shape of the result; that of the parameters, broadcast, if it is not given.

    Returns:
        A Tensor of float64.

    Raises:
        UsageError: a parameter is not positive.

    >>> beta(key(7), 2.0, 3.0, size=2)
    tensor([0.3739572 , 0.86840089])
    """
    a, b = positive("beta", "a", number(a), zero=False), positive("beta", "b", number(b), zero=False)
    shape = draw_shape(size, a, b)
    keys = split(key)
    first, second = (log_gammas("beta", k, x, shape) for k, x in zip((keys[0], keys[1]), (a, b), strict=True))
    return 0.5 + 0.5 * np.tanh(0.5 * (first - second))


@hint_parameters("random")
def dirichlet(key: Any, alpha: Any, size: Any = ()) -> Any:
    """Return probabilities that are Dirichlet distributed, differentiable in the parameters.

    Args:
        key: the key.
        alpha: the parameters, along the last axis.
        size: the shape before those of the parameters.

    Returns:
        A Tensor of float64, of shape (*size, number of parameters).

    Raises:
        UsageError: a parameter is negative. A probability whose parameter is 0 is 0.

    >>> dirichlet(key(7), [1.0, 2.0, 3.0])
    tensor([0.12379986, 0.15182079, 0.72437935])
    """
    a = as_tensor(positive("dirichlet", "alpha", as_tensor(alpha)))
    logs = log_gammas("dirichlet", key, a, draw_shape(size) + a.shape)
    terms = np.exp(logs - stop_gradient(np.max(logs, axis=-1, keepdims=True)))
    return terms / np.sum(terms, axis=-1, keepdims=True)


# Orders and choices


def permutation(key: Any, x: Any, axis: int = 0) -> Any:
    """Return the slices of an array along an axis, or the integers below a number, in random order.

    Args:
        key: the key.
        x: the array, which is differentiated, or the number.
        axis: the axis.

    Returns:
        A Tensor like the array, or one of int64.

    >>> permutation(key(0), 5).tolist()
    [0, 3, 1, 2, 4]
    """
    array = as_tensor(x)
    if not array.ndim:
        return random_order("permutation", key, operator.index(x))
    return np.take(array, random_order("permutation", key, array.shape[axis]), axis=axis)


def random_order(name: str, key: Any, count: int) -> Any:
    """Return the numbers below one in random order."""
    return np.argsort(draw_words(name, key, count), kind="stable")


@hint_parameters("choice")
def choice(key: Any, a: Any, size: Any = None, replace: bool = True, p: Any = None, axis: int = 0) -> Any:
    """Return slices of an array along an axis, or integers below a number, chosen at random.

    Args:
        key: the key.
        a: the array, which is differentiated, or the number.
        size: how many, or the shape that they come in; one if it is not given.
        replace: whether any may come more than once.
        p: the probability of each; equal ones if it is not given. Where they are not known, they are divided by their
            sum and not looked at.
        axis: the axis.

    Returns:
        A Tensor whose axes of `size` take the place of the axis.

    Raises:
        UsageError: more are wanted than there are, or than have a probability, and none may come twice; probabilities
            are negative or NaN, or do not sum to 1.
        ShapeError: there are more probabilities than slices, or fewer.

    >>> choice(key(1), [10.0, 20.0, 30.0], 4, p=[0.5, 0.3, 0.2])
    tensor([10., 10., 10., 30.])
    """
    array = as_tensor(a)
    length = array.shape[axis] if array.ndim else operator.index(a)
    shape = draw_shape(() if size is None else size)
    places = choose_places(key, length, shape, replace, None if p is None else as_tensor(p))
    return np.take(array, places, axis=axis) if array.ndim else places


def choose_places(key: Any, length: int, shape: tuple[int, ...], replace: bool, p: Any) -> Any:
    """Return the places of a choice."""
    count = math.prod(shape)
    if p is not None and p.shape != (length,):
        raise ShapeError("choice", f"p of shape {p.shape} for {length} slices", "one for each is needed", "Correct p")
    known = None if p is None else elements(p)
    if known is not None:
        require_probabilities(known, 0 if replace else count)
    if replace and p is None:
        return integers(key, length, size=shape)
    if replace:
        sums: Any = np.cumsum(p)
        return np.searchsorted(sums / sums[-1], units("choice", key, shape), side="right")
    if count > length:
        given = f"{count} of {length} without replacement"
        raise UsageError("choice", given, "as many as there are, or fewer, are needed", "Pass replace=True")
    if p is None:
        return random_order("choice", key, length)[:count].reshape(shape)
    waits = standard_exponential("choice", key, (length,)) / p  # whoever waits least comes first
    return np.argsort(waits, kind="stable")[:count].reshape(shape)


def require_probabilities(p: Any, most: int) -> None:
    """Raise a UsageError unless an array holds probabilities, as many positive ones as shall come at most once each.

    As in NumPy the sum may differ from 1 by the root of the precision.
    """
    refuse_wrong("choice", "p", p, ~(p >= 0), "probabilities are needed")
    total = math.fsum(p)
    rough = np.finfo(p.dtype if p.dtype.kind == "f" else np.float64).eps
    if not abs(total - 1) <= math.sqrt(max(rough, np.finfo(np.float64).eps)):
        given = f"p with the sum {total:.9g}"
        raise UsageError("choice", given, "probabilities with the sum 1 are needed", "Pass p / p.sum()")
    if np.count_nonzero(p) < most:
        given = f"{most} without replacement of {np.count_nonzero(p)} with a probability"
        raise UsageError("choice", given, "as many, or fewer, are needed", "Pass replace=True")
