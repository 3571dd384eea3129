"""The fused multiply-add and the parts of numbers in NumPy, against rational numbers."""

from fractions import Fraction

import numpy as np
import pytest

from wengert.kernel.fused import exponent, fma, fraction, nearest_float, scale_by_power

SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    np.inf,
    -np.inf,
    np.nan,
    5e-324,
    1e-310,
    2.2250738585072014e-308,
    1.7e308,
    1e-200,
    -1e200,
]


def exact(x, y, z):
    """x y + z, rounded once."""
    if not all(map(np.isfinite, (x, y, z))):
        return z if np.isfinite(x) and np.isfinite(y) else x * y + z
    number = Fraction(x) * Fraction(y) + Fraction(z)
    return nearest_float(number) if number else x * y + z


def same(found, expected):
    """Equal bits, but for those of NaN."""
    return np.array_equal(found, expected, equal_nan=True) and np.array_equal(np.signbit(found), np.signbit(expected))


def test_fused_multiply_add_of_double_precision():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 2000)) * 2.0 ** rng.integers(-30, 30, (2, 2000))
    z = np.where(rng.random(2000) < 0.5, -x * y, rng.normal(size=2000)) * (1 + rng.integers(-2, 3, 2000) * 2.0**-52)
    assert same(fma(x, y, z), np.array([exact(*map(float, t)) for t in zip(x, y, z, strict=True)]))


def test_fused_multiply_add_of_extremes():
    x, y, z = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        expected = np.array([exact(*map(float, t)) for t in zip(x, y, z, strict=True)])
    found = fma(x, y, z)
    assert np.array_equal(found, expected, equal_nan=True)


def test_fused_multiply_add_of_single_precision_rounds_once():
    x, y = np.float32(1 + 2.0**-12), np.float32(1 + 2.0**-12)  # x y = 1 + 2**-11 + 2**-24 is between two numbers
    assert fma(x, y, np.float32(2.0**-70)) == np.float32(1 + 2.0**-11 + 2.0**-23)
    assert fma(x, y, np.float32(-(2.0**-70))) == np.float32(1 + 2.0**-11)
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 1000)).astype(np.float32)
    c = (-a * b * (1 + rng.normal(size=1000) * 1e-6)).astype(np.float32)
    with np.errstate(all="ignore"):
        whole = [Fraction(float(i)) * Fraction(float(j)) + Fraction(float(k)) for i, j, k in zip(a, b, c, strict=True)]
    error = [abs(Fraction(float(f)) - w) for f, w in zip(fma(a, b, c), whole, strict=True)]
    assert all(e <= Fraction(float(np.spacing(np.abs(f)))) / 2 for e, f in zip(error, fma(a, b, c), strict=True))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_are_their_parts(dtype):
    x = np.array([1.0, 0.75, 1.49, 1.5, 3.0, 1e-40, 1e30, np.finfo(dtype).smallest_subnormal], dtype)
    power, digits = exponent(x), fraction(x)
    assert np.all((digits >= 0.75) & (digits < 1.5))
    assert np.array_equal(scale_by_power(digits, power + (digits < 1)), x)
    assert power.dtype == digits.dtype == dtype
    zero = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
    assert np.array_equal(exponent(zero), [-np.inf, -np.inf, np.inf, np.inf, np.nan], equal_nan=True)
    assert np.array_equal(fraction(zero), [1, 1, 1, np.nan, np.nan], equal_nan=True)


def test_scaling_rounds_once_and_overflows():
    assert scale_by_power(np.float64(1.5), np.float64(-1074)) == 2.0**-1073
    assert scale_by_power(np.float64(1.0), np.float64(1024)) == np.inf
    assert np.isnan(scale_by_power(np.float64(np.nan), np.float64(0)))
