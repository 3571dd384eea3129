"""Random words and numbers: functions of keys, which are constant in all else (ADR 0027)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import Generator, Philox
from numpy.random.bit_generator import ISeedSequence

from wengert.core.forms.form import Pointwise
from wengert.core.forms.routine import Routine
from wengert.core.primitives.declare import constant, elementwise
from wengert.primitives import polynomial_coefficients as coefficients
from wengert.primitives.special.incomplete import moved_by_shape

Array = np.ndarray[Any, Any]


class KeySeed(ISeedSequence):
    """Seed a bit generator with a key; making one from entropy, to replace its key later, takes eight times as long."""

    def __init__(self, key: Array) -> None:
        self.key = key

    def generate_state(self, _n_words: int, _dtype: Any = np.uint32) -> Array:
        """Return the key."""
        return self.key


def generator(key: Array, start: Any = 0, domain: int = 0) -> Philox:
    """Return NumPy's Philox4x64 for a key; its counter, four words long, stands before (start + 1, 0, 0, domain)."""
    seed: Any = KeySeed(key)  # the stub knows SeedSequence alone
    return Philox(seed, counter=np.array([start, 0, 0, domain], np.uint64))


def evaluate_words(key: Array, start: Any, *, count: int, domain: int) -> Array:
    """Evaluate `words`: the first words of a stream for each key and start."""
    starts = np.asarray(start).astype(np.uint64)
    stack = np.broadcast_shapes(key.shape[:-1], starts.shape)
    keys, starts = np.broadcast_to(key, (*stack, 2)), np.broadcast_to(starts, stack)
    found = np.empty((*stack, count), np.uint64)
    for lane in np.ndindex(stack):
        found[lane] = generator(keys[lane], starts[lane], domain).random_raw(count)
    return found


MULTIPLIERS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
"""What Philox4x64 multiplies by, and what it adds to the key after each round (Salmon et al., 2011)."""
ROUNDS, HALF = 10, 0xFFFFFFFF


def multiply_wide(x: Any, factor: int) -> tuple[Any, Any]:
    """Return the upper and the lower word of a product of words, from products of their halves."""
    low, high = x & x.constant(HALF), np.right_shift(x, 32)
    lowest, middle = low * (factor & HALF), high * (factor & HALF)
    carried = np.right_shift(lowest, 32) + (middle & x.constant(HALF)) + low * (factor >> 32)
    return high * (factor >> 32) + np.right_shift(middle, 32) + np.right_shift(carried, 32), x * factor


def words_at(key: Any, start: Any, *, count: int, domain: int) -> Any:
    """Return the words in a kernel: four of each counter."""
    ahead: Any = np.arange(-(-count // 4), like=key).astype(np.uint64) + 1
    first: Any = np.expand_dims(start.astype(np.uint64), (len(start.shape),)) + ahead
    counter = [first, (first < ahead).astype(np.uint64), first.constant(0), first.constant(domain)]
    keys = [np.expand_dims(np.take(key, k), (len(key.shape) - 1,)) for k in (0, 1)]
    for n in range(ROUNDS):
        if n:
            keys = [k + step for k, step in zip(keys, STEPS, strict=True)]
        (high, low), (other_high, other_low) = (
            multiply_wide(x, factor) for x, factor in zip(counter[::2], MULTIPLIERS, strict=True)
        )
        counter = [other_high ^ counter[1] ^ keys[0], other_low, high ^ counter[3] ^ keys[1], low]
    place: Any = np.arange(count, like=key)
    *others, found = [np.take_along_axis(x, np.right_shift(place, 2), -1) for x in counter]
    for k, x in enumerate(others):
        found = np.where((place & place.constant(3)) == k, x, found)
    return found


words = constant("random_words", evaluate_words, form=Routine("(k),()->(n)"), scalar=words_at, loop=range(2))


def evaluate_units(x: Any, *, dtype: Any) -> Any:
    """Evaluate `units` as NumPy does: 53 bits of a word for a double, 24 of half a word for a float."""
    if dtype == np.float32:
        return (x >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24)
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53


def units_at(x: Any, *, dtype: Any) -> Any:
    """Return a unit in a kernel, with the same bits."""
    dtype = np.dtype(dtype)
    lost, unit = (8, 2.0**-24) if dtype == np.float32 else (11, 2.0**-53)
    return np.right_shift(x, lost).astype(dtype) * unit


units = constant("random_units", evaluate_units, form=Pointwise(), scalar=units_at, loop=range(1))


NEAR, MIDDLE = 0.35, 2.875
"""Up to where one polynomial gives quantiles, and the root of a logarithm that is 0 for the other one."""
ROOT_HALF, LOG_2 = math.sqrt(0.5), math.log(2)
ARCTANH = tuple([2 / (2 * k + 1) for k in range(10)])
"""Taylor's series of 2 arctanh(s) / s, of s**2 for |s| < 0.172."""


def polynomial_in_place(x: Any, coefficients: Sequence[float]) -> Any:
    """Return the value of a polynomial as `polynomial` does, for arrays and in kernels alone: in half the time."""
    *rest, last = coefficients
    found = x * last
    for coefficient in rest[:0:-1]:
        found += coefficient
        found *= x
    return found + rest[0]


def offsets_at(x: Any) -> Any:
    """Return how far the middle of one of 2**52 intervals is from 1/2, exactly."""
    return (np.right_shift(x, 12).astype(np.float64) - (2.0**51 - 0.5)) * 2.0**-52


def near_normals_at(q: Any) -> Any:
    """Return the quantile of 1/2 + q, |q| <= 0.35."""
    return q * polynomial_in_place(q * q, coefficients.QUANTILE)


def far_normals_at(q: Any) -> Any:
    """Return the quantile of 1/2 + q, |q| > 0.35, by the root of the logarithm of its tail, m 2**n."""
    m, n = np.frexp(0.5 - np.absolute(q))
    s = (m - ROOT_HALF) / (m + ROOT_HALF)
    root = np.sqrt((0.5 - n) * LOG_2 - s * polynomial_in_place(s * s, ARCTANH))
    return np.copysign(root + polynomial_in_place((root - MIDDLE) / (root + MIDDLE), coefficients.NORMAL_FAR), q)


def normals_at(x: Any) -> Any:
    """Return a normal number in a kernel, with the same bits: all operations are rounded correctly."""
    q = offsets_at(x)
    return np.where(np.absolute(q) <= NEAR, near_normals_at(q), far_normals_at(q))


def evaluate_normals(x: Any) -> Any:
    """Evaluate `normals`: the quantile of the middle of one of 2**52 intervals, so that none is infinite."""
    q = offsets_at(x)
    found, far = np.array(near_normals_at(q)), np.flatnonzero(np.absolute(q) > NEAR)
    np.put(found, far, far_normals_at(np.take(q, far)))
    return found[()]


normals = constant("random_normals", evaluate_normals, form=Pointwise(), scalar=normals_at, loop=range(1))


def evaluate_drawn(key: Array, x: Array, *, method: str) -> Array:
    """Evaluate `drawn`: one draw by NumPy's generator for each element of a row of parameters, for each key."""
    stack = np.broadcast_shapes(key.shape[:-1], x.shape[:-1])
    keys, rows = np.broadcast_to(key, (*stack, 2)), np.broadcast_to(x, (*stack, *x.shape[-1:]))
    found = np.empty(rows.shape, np.int64 if method == "poisson" else x.dtype)
    for lane in np.ndindex(stack):
        found[lane] = getattr(Generator(generator(keys[lane])), method)(rows[lane])
    return found


drawn = constant("random_draws", evaluate_drawn, form=Routine("(k),(n)->(n)"))


# Gamma draws as functions of their shape: each moves so that the distribution function keeps its value (Figurnov,
# Mohamed and Mnih, *Implicit reparameterization gradients*, 2018)
gamma_path = elementwise(
    "gamma_path",
    lambda a, x: np.array(np.broadcast_to(x, np.broadcast_shapes(np.shape(a), np.shape(x))))[()],
    d=(lambda t, out, a, _x: t * moved_by_shape(a, out), None),
)
