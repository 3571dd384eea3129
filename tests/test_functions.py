"""The functions of kernels, evaluated in NumPy: errors, special values, and how they are written."""

import itertools
import zlib

import mpmath
import numpy as np
import pytest
from scipy import special

from tests.cases import together
from tools.accuracy import OF_DIGITS, PROCESSORS, REFERENCES, errors, measured
from tools.coefficients import FITS, hexadecimal, solved
from wengert.kernel.functions import FUNCTIONS, Features, evaluate_expression, expression_of, expression_of_results
from wengert.kernel.functions import coefficients as committed
from wengert.kernel.functions.expression import ExpressionBuilder, write_expression
from wengert.kernel.opcodes import OPCODES

DTYPES = [np.float64, np.float32]
ALL = [(name, dtype) for name in FUNCTIONS for dtype in DTYPES]
SPECIAL = {"expit": special.expit, "log_expit": special.log_expit, "erf": special.erf, "erfc": special.erfc}
SPECIAL |= OF_DIGITS
SPECIAL |= {"lgamma": special.gammaln, "digamma": special.digamma}


def value(name, *arguments, dtype=np.float64, features=Features()):  # noqa: B008 - it is immutable
    """What a function is for some arguments."""
    return evaluate_expression(
        expression_of(name, np.dtype(dtype), features), *(np.array(x, dtype) for x in arguments)
    )[0]


@pytest.mark.long
@together("name, dtype", ALL)
def test_errors_are_within_bounds(name, dtype):
    for processor, bound, off, place in measured(name, dtype, 700):
        assert off <= bound, (processor, place)


@together("name, dtype", ALL)
def test_special_values_are_numpys(name, dtype):
    limits = np.finfo(dtype)
    sizes = [0, 0.1, 0.5, 1, 1.5, 2, 2.5, 3, 20, 25, 100, 750, 1e-10, 1e10, 100000.5, np.inf]
    sizes += [limits.smallest_subnormal, limits.smallest_normal / 3, limits.smallest_normal, limits.max]
    numbers = np.array([*sizes, *(-x for x in sizes), -0.0, np.nan], dtype)
    if OPCODES[name].arity == 2:
        numbers = np.array([x for x in numbers if abs(x) not in (0.1, 20, 25, 100, 1e-10, 100000.5)], dtype)
    arguments = [x.ravel() for x in np.meshgrid(*[numbers] * OPCODES[name].arity)]
    with np.errstate(all="ignore"):
        if name == "ldexp":  # of whole numbers
            arguments[1] = np.nan_to_num(np.rint(arguments[1]))
        expected = np.asarray((SPECIAL.get(name) or getattr(np, name))(*arguments), dtype)
        if name == "lgamma":  # SciPy has other values for the smallest numbers than C
            expected = np.where(np.abs(arguments[0]) < limits.smallest_normal, -np.log(np.abs(arguments[0])), expected)
        if name == "expit":  # SciPy has 0 for single precision below -88
            expected = np.where(arguments[0] == -100, np.exp(arguments[0]), expected)
        scale = np.maximum(np.abs(expected), 1) if name == "lgamma" else np.abs(expected)
        for features in PROCESSORS.values():
            found = value(name, *arguments, dtype=dtype, features=features)
            same = (found == expected) & (np.signbit(found) == np.signbit(expected))
            near = np.isfinite(expected) & (expected != 0) & (np.abs(found - expected) <= 6 * np.spacing(scale))
            wrong = ~(same | near | (np.isnan(found) & np.isnan(expected)))
            assert not wrong.any(), [(*(x[wrong] for x in arguments), found[wrong], expected[wrong])]


def test_powers_of_single_numbers_are_those_of_vectors_or_nearer():
    random = np.random.default_rng(5)
    x = np.r_[np.exp(random.uniform(-700, 700, 300)), 1 + random.normal(size=300) * 1e-6, np.full(100, 0.37)]
    y = np.r_[random.uniform(-1, 1, 300), random.normal(size=300) * 1e8, np.full(100, -0.2)]
    by_tables = Features(numbers=True)
    assert errors("power", [x, y], value("power", x, y, features=by_tables)).max() <= 0.51
    sizes = [0.0, 1.0, 0.5, 3.0, 5e-324, 1e-310, 1e300, np.inf, np.nan]
    x, y = (a.ravel() for a in np.meshgrid(*[[*sizes, *(-a for a in sizes)]] * 2))
    with np.errstate(all="ignore"):
        found, known = (value("power", x, y, features=features) for features in (by_tables, Features()))
    np.testing.assert_array_max_ulp(found, known, 1)


@together("name, dtype", ALL)
def test_processors_with_fma_give_the_same_bits(name, dtype):
    rng = np.random.default_rng(3)
    arguments = [rng.normal(size=200).astype(dtype) * 3 for _ in range(OPCODES[name].arity)]
    first, second = (value(name, *arguments, dtype=dtype, features=f) for f in PROCESSORS.values() if f.fma)
    assert np.array_equal(first, second, equal_nan=True)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("features", PROCESSORS.values())
def test_arguments_next_to_multiples_of_half_pi(name, features):
    multiples = [1, 2, 3, 7, 1000, 2**20 - 1, 2**24 + 1, 2**30 + 3, 10**15 + 7]
    near = np.array([float(mpmath.mpf(n) * mpmath.pi / 2) for n in multiples])
    hardest = 6381956970095103 * 2.0**797  # of all the nearest to a multiple: J.-M. Muller, Elementary functions
    x = np.r_[near, np.nextafter(near, 0), np.nextafter(near, np.inf), hardest, 1e308, -1e22]
    assert errors(name, [x], value(name, x, features=features)).max() <= FUNCTIONS[name].double[not features.fma]
    single = near.astype(np.float32)
    found = value(name, single, dtype=np.float32, features=features)
    assert errors(name, [single], found).max() <= FUNCTIONS[name].single[not features.fma]


def test_tables_are_read_within_their_bounds_in_every_lane():
    expression = expression_of("sin", np.dtype(np.float64), Features())
    (rare,) = expression.rare
    x = np.array([0.0, -0.0, 1e-300, 1.0, 1e308, np.inf, np.nan, -1.0, 5e-324])
    evaluate_expression(rare.expression, x)  # NumPy would raise
    with np.errstate(all="ignore"):
        value("power", x, x[::-1], features=Features(numbers=True))
    sizes = {name: len(table) for name, table in committed.TABLES.items()}
    assert sizes.pop("two_over_pi") == 64 + 8
    assert set(sizes.values()) == {128}


def test_logarithms_of_powers_of_two_and_powers_of_whole_numbers_are_exact():
    n = np.arange(-1074.0, 1024.0)
    assert np.array_equal(value("log2", np.exp2(n)), n)
    assert np.array_equal(value("exp2", n), np.exp2(n))
    assert np.array_equal(value("power", np.full(9, -3.0), np.arange(9.0)), (-3.0) ** np.arange(9))
    assert np.array_equal(value("cbrt", np.arange(-20.0, 20) ** 3), np.arange(-20.0, 20))


def test_bits_are_what_they_were():
    """What changes them on purpose changes these numbers too."""
    size = np.ldexp(1 + np.arange(200) / 200, np.arange(200) - 100)
    x = np.concatenate([np.arange(-300, 301) / 10, size, -size])
    y = np.roll(x, 100)
    found = []
    for dtype in DTYPES:
        for features in (Features(), Features(fma=False, scaling=False)):
            digest = 0
            for name in sorted(FUNCTIONS):
                results = value(name, *(x, y)[: OPCODES[name].arity], dtype=dtype, features=features)
                digest = zlib.crc32(np.where(np.isnan(results), 0, results).astype(dtype).tobytes(), digest)
            found.append(digest)
    assert found == [4017880738, 2719688876, 3317881069, 3385630374]


def test_nothing_is_computed_that_no_result_needs():
    for name, fma, scaling, dtype in itertools.product(FUNCTIONS, (True, False), (True, False), "fd"):
        expression = expression_of_results(name, np.dtype(dtype), Features(fma, scaling))
        needed = {*expression.results, *(place for operation in expression.operations for place in operation.operands)}
        needed |= {place for rare in expression.rare for place in (rare.condition, *rare.operands)}
        unused = set(range(expression.arity, len(expression.operations))) - needed
        assert not unused, (name, fma, scaling, dtype)


def test_sine_and_cosine_are_one_expression():
    both = expression_of_results("sin", np.dtype(np.float64), Features())
    assert both is expression_of_results("cos", np.dtype(np.float64), Features())
    x = np.linspace(-9, 9, 50)
    assert np.array_equal(evaluate_expression(both, x)[1], value("cos", x))


def test_what_is_rare_is_computed_for_those_lanes_only():
    def reciprocal_or_zero(b, x):
        y = x * 3
        b.rarely(x.equals(0), lambda b, y: y, y)
        return 1 / x

    expression = write_expression(reciprocal_or_zero, (np.dtype(np.float64),), Features())
    assert list(evaluate_expression(expression, np.array([2.0, 0.0, 4.0]))[0]) == [0.5, 0.0, 0.25]
    (rare,) = expression.rare
    assert [operation.name for operation in rare.expression.operations] == ["argument"]


def test_equal_operations_are_one_but_zeros_of_different_sign():
    b = ExpressionBuilder(Features())
    x = b.append("argument", np.dtype(np.float64), buffer="x0")
    assert (x + 1).place == (x + 1).place
    assert (x + 0.0).place != (x + -0.0).place
    with pytest.raises(TypeError, match="a term has no truth value while it is written; use `select`"):
        bool(x < 1)


def test_functions_are_opcodes_and_are_made_of_opcodes():
    for name in FUNCTIONS:
        for features in PROCESSORS.values():
            used = {o.name for o in expression_of(name, np.dtype(np.float64), features).operations}
            assert used <= set(OPCODES) - set(FUNCTIONS)
            assert features.fma or "fma" not in used
            assert features.scaling or not used & {"exponent", "fraction", "scale"}
    assert set(FUNCTIONS) == set(REFERENCES) | set(OF_DIGITS)


@pytest.mark.parametrize("name", ["SIN", "EXPM1"])
def test_coefficients_are_those_that_the_tool_computes(name):
    (fit,) = (fit for fit in FITS if fit.name == name)
    with mpmath.workdps(50):
        found = solved(fit, "float32")
    assert [hexadecimal(c, "float32") for c in found] == committed.DATA[name]["float32"]
