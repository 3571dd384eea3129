"""The special cases of the Python Array API standard 2024.12, all that its text names, of real and complex numbers.

A case is written `arguments:result`; complex numbers are two of either. Numbers may stand for several: `p` positive
finite ones, `n` negative ones, `d` both, `z` zeros, `f` all finite ones, `i` infinities, `a` any, `m` those that are
not NaN. Of a result, `x` and `y` are the first and second argument, `|x|` is an absolute value, `~` before a number
leaves its sign open, and `*cis` is its product with cos(b) + i sin(b).

Values are NumPy's, bit for bit, also where these differ from the text: in the signs of the zeros of
expm1(-0 + 0i) and tanh(inf + bi), in expm1 of infinities and of nan + 0i, which have NaN in a part, in
sign(nan + inf i), which is i, and in the roots of -inf + bi and inf + bi, which the text exchanges.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.cases import together

POSITIVE, NEGATIVE, ZEROS, INFINITIES = [0.25, 3.0], [-0.25, -3.0], [0.0, -0.0], [np.inf, -np.inf]
FINITE = [*POSITIVE, *NEGATIVE, *ZEROS]
CLASSES = {
    "p": POSITIVE,
    "n": NEGATIVE,
    "d": [*POSITIVE, *NEGATIVE],
    "z": ZEROS,
    "f": FINITE,
    "i": INFINITIES,
    "a": [*FINITE, *INFINITIES, np.nan],
    "m": [*FINITE, *INFINITIES],
}
NUMBERS = {"pi": np.pi, "pi/2": np.pi / 2, "pi/4": np.pi / 4, "3pi/4": 3 * np.pi / 4}

ODD = "nan:nan 0:0 -0:-0 "
ROUNDING = ODD + "inf:inf -inf:-inf 2:2 -7:-7"
LOGARITHM = "nan:nan n:nan -inf:nan z:-inf 1:0 inf:inf"
UNARY = {
    "abs": "nan:nan -0:0 -inf:inf",
    "acos": "nan:nan 1.5:nan inf:nan -1.5:nan -inf:nan 1:0",
    "acosh": "nan:nan 0.5:nan n:nan -inf:nan 1:0 inf:inf",
    "asin": ODD + "1.5:nan inf:nan -1.5:nan -inf:nan",
    "asinh": ODD + "inf:inf -inf:-inf",
    "atan": ODD + "inf:pi/2 -inf:-pi/2",
    "atanh": ODD + "-1.5:nan 1.5:nan i:nan -1:-inf 1:inf",
    "ceil": ROUNDING,
    "cos": "nan:nan z:1 i:nan",
    "cosh": "nan:nan z:1 i:inf",
    "exp": "nan:nan z:1 inf:inf -inf:0",
    "expm1": ODD + "inf:inf -inf:-1",
    "floor": ROUNDING,
    "isfinite": "i:0 nan:0 f:1",
    "isinf": "i:1 nan:0 f:0",
    "isnan": "nan:1 i:0 f:0",
    "log": LOGARITHM,
    "log1p": ODD + "-1.5:nan -inf:nan -1:-inf inf:inf",
    "log2": LOGARITHM,
    "log10": LOGARITHM,
    "negative": "nan:nan 0:-0 -0:0 inf:-inf -inf:inf",
    "positive": "nan:nan 0:0 -0:-0 inf:inf -inf:-inf",
    "reciprocal": "nan:nan 0:inf -0:-inf inf:0 -inf:-0",
    "round": ROUNDING + " 0.5:0 1.5:2 2.5:2 -0.5:-0 -1.5:-2",
    "sign": "n:-1 z:0 p:1 nan:nan inf:1 -inf:-1",
    "signbit": "0:0 -0:1 inf:0 -inf:1 p:0 n:1 nan:0",
    "sin": ODD + "i:nan",
    "sinh": ODD + "inf:inf -inf:-inf",
    "sqrt": ODD + "n:nan -inf:nan inf:inf",
    "square": "nan:nan z:0 i:inf",
    "tan": ODD + "i:nan",
    "tanh": ODD + "inf:1 -inf:-1",
    "trunc": ROUNDING,
}
NAN = "nan,a:nan a,nan:nan "
QUOTIENT = NAN + (
    "i,i:nan z,z:nan 0,p:0 -0,p:-0 0,n:-0 -0,n:0 p,0:inf p,-0:-inf n,0:-inf n,-0:inf inf,0:inf -inf,0:-inf "
    "0,inf:0 -0,inf:-0 0,-inf:-0 -0,-inf:0 p,inf:0 n,-inf:0 "
)
BINARY = {
    "add": NAN + "inf,-inf:nan -inf,inf:nan inf,inf:inf -inf,-inf:-inf inf,f:inf -inf,f:-inf f,inf:inf f,-inf:-inf "
    "-0,-0:-0 -0,0:0 0,-0:0 0,0:0 z,d:y d,z:x 3,-3:0 -3,3:0",
    "atan2": NAN
    + "p,z:pi/2 inf,z:pi/2 0,p:0 0,inf:0 0,0:0 0,-0:pi 0,n:pi 0,-inf:pi -0,p:-0 -0,inf:-0 -0,0:-0 -0,-0:-pi "
    "-0,n:-pi -0,-inf:-pi n,z:-pi/2 -inf,z:-pi/2 p,inf:0 p,-inf:pi n,inf:-0 n,-inf:-pi inf,f:pi/2 -inf,f:-pi/2 "
    "inf,inf:pi/4 inf,-inf:3pi/4 -inf,inf:-pi/4 -inf,-inf:-3pi/4",
    "copysign": "m,n:-|x| m,-0:-|x| m,0:|x| m,p:|x| m,inf:|x| m,-inf:-|x| m,nan:|x| m,-nan:-|x| nan,p:nan nan,0:nan "
    "nan,n:-nan nan,-0:-nan nan,nan:nan nan,-nan:-nan",
    "divide": QUOTIENT + "inf,p:inf inf,n:-inf -inf,p:-inf -inf,n:inf p,-inf:-0 n,inf:-0",
    "equal": "nan,a:0 a,nan:0 inf,inf:1 -inf,-inf:1 inf,-inf:0 z,z:1 3,3:1 3,0.25:0 f,i:0 i,f:0",
    "floor_divide": QUOTIENT + "i,d:nan p,-inf:-1 n,inf:-1",  # as Python's, where the standard lets a library choose
    "greater": "nan,a:0 a,nan:0 inf,f:1 f,-inf:1 z,z:0",
    "greater_equal": "nan,a:0 a,nan:0 inf,m:1 z,z:1",
    "hypot": "i,a:inf a,i:inf z,f:|y| f,z:|x| f,nan:nan nan,f:nan nan,nan:nan",
    "less": "nan,a:0 a,nan:0 -inf,f:1 f,inf:1 z,z:0",
    "less_equal": "nan,a:0 a,nan:0 -inf,m:1 z,z:1",
    "logaddexp": NAN + "inf,m:inf m,inf:inf",
    "maximum": NAN,
    "minimum": NAN,
    "multiply": NAN + "i,z:nan z,i:nan inf,inf:inf -inf,-inf:inf inf,-inf:-inf -inf,inf:-inf inf,p:inf inf,n:-inf "
    "-inf,p:-inf -inf,n:inf p,inf:inf n,inf:-inf p,-inf:-inf n,-inf:inf 0,p:0 0,n:-0 -0,p:-0 -0,n:0",
    "nextafter": NAN + "-0,0:0 0,-0:-0",
    "not_equal": "nan,a:1 a,nan:1 inf,-inf:1 -inf,inf:1 3,0.25:1 inf,inf:0 -inf,-inf:0 z,z:0 f,i:1",
    "pow": "0.5,nan:nan n,nan:nan i,nan:nan z,nan:nan nan,d:nan nan,i:nan a,z:1 3,inf:inf -3,inf:inf 3,-inf:0 "
    "-3,-inf:0 inf,inf:inf -inf,inf:inf i,-inf:0 1,i:1 -1,i:1 1,m:1 1,nan:1 0.25,inf:0 -0.25,inf:0 z,inf:0 "
    "0.25,-inf:inf -0.25,-inf:inf inf,p:inf inf,n:0 -inf,3:-inf -inf,2:inf -inf,0.25:inf -inf,-3:-0 -inf,-2:0 "
    "-inf,-0.25:0 0,p:0 0,n:inf -0,3:-0 -0,2:0 -0,0.25:0 -0,-3:-inf -0,-2:inf -0,-0.25:inf n,0.25:nan n,-0.25:nan",
    "remainder": NAN + "i,i:nan z,z:nan z,p:0 z,n:-0 d,z:nan i,z:nan i,d:nan p,inf:x p,-inf:y n,inf:y n,-inf:x",
    "subtract": NAN
    + "inf,inf:nan -inf,-inf:nan inf,-inf:inf -inf,inf:-inf inf,f:inf f,inf:-inf -0,0:-0 0,0:0 3,3:0 -0,-0:0",
}
COMPLEX = {
    "abs": "i,a:inf,0 a,i:inf,0 z,f:|y|,0 f,z:|x|,0 nan,f:nan,0 f,nan:nan,0 nan,nan:nan,0",
    "acos": "z,0:pi/2,-0 z,nan:pi/2,nan f,inf:pi/2,-inf d,nan:nan,nan -inf,p:pi,-inf inf,p:0,-inf -inf,inf:3pi/4,-inf "
    "inf,inf:pi/4,-inf i,nan:nan,~inf nan,f:nan,nan nan,inf:nan,-inf nan,nan:nan,nan",
    "acosh": "z,0:0,pi/2 f,inf:inf,pi/2 d,nan:nan,nan 0,nan:nan,~pi/2 -inf,p:inf,pi inf,p:inf,0 -inf,inf:inf,3pi/4 "
    "inf,inf:inf,pi/4 i,nan:inf,nan nan,f:nan,nan nan,inf:inf,nan nan,nan:nan,nan",
    "asinh": "0,0:0,0 p,inf:inf,pi/2 f,nan:nan,nan inf,p:inf,0 inf,inf:inf,pi/4 nan,0:nan,0 nan,d:nan,nan "
    "nan,inf:~inf,nan nan,nan:nan,nan",
    "atanh": "0,0:0,0 0,nan:0,nan 1,0:inf,0 p,inf:0,pi/2 d,nan:nan,nan inf,p:0,pi/2 inf,inf:0,pi/2 inf,nan:0,nan "
    "nan,f:nan,nan nan,inf:~0,pi/2 nan,nan:nan,nan",
    "cosh": "0,0:1,0 0,inf:nan,~0 0,nan:nan,~0 d,inf:nan,nan d,nan:nan,nan inf,0:inf,0 inf,d:inf*cis inf,inf:~inf,nan "
    "inf,nan:inf,nan nan,z:nan,~0 nan,d:nan,nan nan,nan:nan,nan",
    "exp": "z,0:1,0 f,inf:nan,nan f,nan:nan,nan inf,0:inf,0 -inf,f:0*cis inf,d:inf*cis -inf,inf:~0,~0 inf,inf:~inf,nan "
    "-inf,nan:~0,~0 inf,nan:~inf,nan nan,0:nan,0 nan,d:nan,nan nan,nan:nan,nan",
    "expm1": "z,0:~0,0 f,inf:nan,nan f,nan:nan,nan nan,d:nan,nan nan,nan:nan,nan",
    "isfinite": "nan,a:0,0 a,nan:0,0 i,a:0,0 a,i:0,0 f,f:1,0",
    "isinf": "i,a:1,0 a,i:1,0 nan,f:0,0 f,nan:0,0 f,f:0,0",
    "isnan": "nan,a:1,0 a,nan:1,0 m,m:0,0",
    "log": "-0,0:-inf,pi 0,0:-inf,0 f,inf:inf,pi/2 f,nan:nan,nan -inf,p:inf,pi inf,p:inf,0 -inf,inf:inf,3pi/4 "
    "inf,inf:inf,pi/4 i,nan:inf,nan nan,f:nan,nan nan,inf:inf,nan nan,nan:nan,nan",
    "log1p": "-1,0:-inf,0 f,inf:inf,pi/2 f,nan:nan,nan -inf,p:inf,pi inf,p:inf,0 -inf,inf:inf,3pi/4 inf,inf:inf,pi/4 "
    "i,nan:inf,nan nan,f:nan,nan nan,inf:inf,nan nan,nan:nan,nan",
    "sign": "z,z:0,0 nan,f:nan,nan nan,nan:nan,nan f,nan:nan,nan",
    "sinh": "0,0:0,0 0,inf:~0,nan 0,nan:~0,nan p,inf:nan,nan p,nan:nan,nan inf,0:inf,0 inf,p:inf*cis inf,inf:~inf,nan "
    "inf,nan:~inf,nan nan,0:nan,0 nan,d:nan,nan nan,nan:nan,nan",
    "sqrt": "z,0:0,0 a,inf:inf,inf f,nan:nan,nan -inf,p:0,inf inf,p:inf,0 -inf,nan:nan,~inf inf,nan:inf,nan "
    "nan,f:nan,nan nan,nan:nan,nan",
    "tanh": "0,0:0,0 d,inf:nan,nan d,nan:nan,nan inf,p:1,~0 inf,inf:1,~0 inf,nan:1,~0 nan,0:nan,0 nan,d:nan,nan "
    "nan,nan:nan,nan",
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def numbers(text: str) -> list[float]:
    """Return what a letter or number stands for."""
    return CLASSES[text] if text in CLASSES else [number(text)]


def number(text: str) -> float:
    """Return a number; NaN has the sign that is written."""
    sign, size = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
    return float(np.copysign(NUMBERS[size] if size in NUMBERS else float(size), sign))


def cases(text: str) -> Iterator[tuple[tuple[float, ...], str]]:
    """Yield arguments and how the result is written."""
    for case in text.split():
        given, _, result = case.partition(":")
        for arguments in itertools.product(*map(numbers, given.split(","))):
            yield arguments, result


def expected(text: str, arguments: tuple[float, ...]) -> float:
    """Return the result that is written, with its sign if that is fixed."""
    if text.endswith(("x", "y", "|")):
        value = arguments["xy".index(text.strip("-|"))]
        return float(np.copysign(value, -1 if text[0] == "-" else 1)) if "|" in text else value
    return number(text.removeprefix("~"))


def agree(found: float, text: str, arguments: tuple[float, ...]) -> bool:
    """Tell whether a result is what is written."""
    want = expected(text, arguments)
    if np.isnan(want):
        return bool(np.isnan(found))
    if text.startswith("~"):
        found, want = abs(found), abs(want)
    return bool(np.isclose(found, want, rtol=1e-15, atol=0) and np.signbit(found) == np.signbit(want))


def evaluated(name: str, columns: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """Return the results of a function on plain Tensors, on Tensors that require grad, and of a jitted function."""
    function = getattr(wnp, name)
    taped = [wg.tensor(column, requires_grad=True) for column in columns]
    plain = function(*map(wg.asarray, columns))
    return [np.asarray(plain), np.asarray(function(*taped).detach()), np.asarray(wg.jit(function)(*columns))]


@together("name, text", [*UNARY.items(), *BINARY.items()])
def test_special_cases_of_real_numbers(name: str, text: str) -> None:
    listed = list(cases(text))
    columns = tuple(np.array(column) for column in zip(*(arguments for arguments, _ in listed), strict=True))
    for results in evaluated(name, columns):
        for found, (arguments, want) in zip(results.astype(float), listed, strict=True):
            assert agree(found, want, arguments), (arguments, want, found)


def test_signs_of_nan_are_copied() -> None:
    nan = np.array([np.nan, -np.nan, np.nan, np.nan])
    found = wnp.copysign(nan, np.array([-1.0, 1.0, -0.0, -np.nan]))
    assert np.signbit(np.asarray(found)).tolist() == [True, False, True, True]
    assert np.asarray(wnp.signbit(nan[:2])).tolist() == [False, True]


@together("name, text", list(COMPLEX.items()))
def test_special_cases_of_complex_numbers(name: str, text: str) -> None:
    listed = list(cases(text))
    z = np.empty(len(listed), complex)
    z.real, z.imag = zip(*(arguments for arguments, _ in listed), strict=True)
    for results in evaluated(name, (z,)):
        for found, (arguments, want) in zip(results.astype(complex), listed, strict=True):
            parts = (want, want) if want.endswith("*cis") else want.split(",")
            for part, turn, text in zip((found.real, found.imag), (np.cos, np.sin), parts, strict=True):
                if text.endswith("*cis"):
                    size = number(text.removesuffix("*cis")) * turn(arguments[1])
                    assert part == size, (arguments, want, found)
                    assert np.signbit(part) == np.signbit(size), (arguments, want, found)
                else:
                    assert agree(part, text, arguments), (arguments, want, found)


@together("name", ["acos", "acosh", "asinh", "atanh", "cosh", "exp", "expm1", "log", "log1p", "sinh", "sqrt", "tanh"])
def test_functions_of_conjugates_are_conjugate(name: str) -> None:
    z = np.array([complex(a, b) for a, b in itertools.product(FINITE, FINITE)])
    function = getattr(wnp, name)
    found, mirrored = np.asarray(function(z)), np.asarray(function(np.conj(z)))
    np.testing.assert_array_equal(mirrored.view(float), np.conj(found).view(float))


@together("outer, inner", [("asin", "asinh"), ("atan", "atanh"), ("cos", "cosh"), ("sin", "sinh"), ("tan", "tanh")])
def test_functions_are_their_hyperbolic_ones_of_turned_numbers(outer: str, inner: str) -> None:
    z = np.array([complex(a, b) for a, b in itertools.product(FINITE, FINITE)])
    turned = np.array([complex(-b, a) for a, b in zip(z.real, z.imag, strict=True)])
    found, other = np.asarray(getattr(wnp, outer)(z)), np.asarray(getattr(wnp, inner)(turned))
    want = other if outer == "cos" else np.array([complex(b, -a) for a, b in zip(other.real, other.imag, strict=True)])
    np.testing.assert_allclose(found.view(float), want.view(float), rtol=1e-14, atol=1e-300)


CLIPPED = [(np.nan, 0.0, 1.0), (0.5, np.nan, 1.0), (0.5, 0.0, np.nan)]


def test_clip_keeps_nan() -> None:
    for arguments in CLIPPED:
        assert np.isnan(np.asarray(wnp.clip(*map(np.asarray, arguments))))


@together(
    "name, x, want",
    [
        *[(name, [1.0, np.nan, 2.0], np.nan) for name in ("max", "min", "mean", "sum", "prod", "std", "var")],
        ("sum", [], 0.0),
        ("prod", [], 1.0),
        ("mean", [], np.nan),
        ("std", [], np.nan),
        ("var", [], np.nan),
        ("all", [], True),
        ("any", [], False),
        ("all", [np.nan, np.inf, -np.inf], True),
        ("any", [np.nan], True),
        ("count_nonzero", [np.nan, 0.0, -0.0, np.inf], 2),
        ("argmax", [1.0, np.nan, 3.0], 1),
        ("argmin", [1.0, np.nan, 3.0], 1),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_special_cases_of_reductions(name: str, x: list[float], want: float) -> None:
    np.testing.assert_array_equal(np.asarray(getattr(wnp, name)(np.array(x))), want)


def test_unique_values_tell_every_nan_apart_and_zeros_not() -> None:
    x = np.array([np.nan, 0.0, -0.0, np.nan, 1.0])
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        assert np.asarray(getattr(wnp, name)(x)[0]).shape == (4,)
    assert np.asarray(wnp.unique_values(x)).shape == (4,)
