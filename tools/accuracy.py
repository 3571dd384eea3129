"""Measure the errors of the functions of kernels: `python -m tools.accuracy --points 1000000 exp log`.

Without names all are measured. Expressions are evaluated in NumPy, which native code equals bit for bit. References are
NumPy's functions of 80-bit numbers where the processor has them, else, and where NumPy has no function, mpmath's.

`--every 1` takes all arguments of single precision instead, `--every 100` one in a hundred, and compares this machine's
native code with that of double precision.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mpmath
import numpy as np

from wengert.compile.programs import PROCESSOR
from wengert.kernel import fused
from wengert.kernel.backend import Loaded
from wengert.kernel.functions import FUNCTIONS, Features, evaluate_expression, expression_of
from wengert.kernel.kernel import Affine, Buffer, Kernel, Operation, Program, Stage, Store
from wengert.kernel.opcodes import OPCODES

__all__ = ["OF_DIGITS", "PROCESSORS", "REFERENCES", "errors", "measured", "points_of"]

Array = np.ndarray[Any, Any]
Draw = Callable[[np.random.Generator, int], Array]
LEAST = {"lgamma": 0.0, "digamma": 0.25}
"""The size of results from which errors of functions with mirror formulas are measured."""
BLOCK = 2**18
"""How many numbers native code takes at once."""
LONG = np.finfo(np.longdouble).nmant >= 63
PROCESSORS = {
    "AVX-512": Features(fma=True, scaling=True),
    "AVX2": Features(fma=True, scaling=False),
    "SSE2": Features(fma=False, scaling=False),
}


def exact(function: Callable[..., Any]) -> Callable[..., Array]:
    """Return a function of arrays that mpmath evaluates, as numbers of two doubles."""

    def evaluate(*arguments: Array) -> Array:
        found = np.empty(len(arguments[0]), np.longdouble)
        with mpmath.workprec(140):
            for place, values in enumerate(zip(*arguments, strict=True)):
                number = mpmath.re(function(*(mpmath.mpf(float(value)) for value in values)))
                high = float(number)
                found[place] = np.longdouble(high) + (float(number - high) if np.isfinite(high) else 0)
        return found

    return evaluate


def either(long: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return NumPy's function of 80-bit numbers where there are any, else mpmath's."""
    return long if LONG else exact(function)


SHORT = {
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
}
SHORT["arctan2"] = "atan2"
COMMON = "exp expm1 sinh cosh tanh log log1p log10 sin cos tan power cbrt hypot"
REFERENCES: dict[str, Callable[..., Any]] = {
    **{name: either(getattr(np, name), getattr(mpmath, SHORT.get(name, name))) for name in [*SHORT, *COMMON.split()]},
    "exp2": either(np.exp2, lambda x: mpmath.power(2, x)),
    "log2": either(np.log2, lambda x: mpmath.log(x, 2)),
    "expit": either(lambda x: 1 / (1 + np.exp(-x)), lambda x: 1 / (1 + mpmath.exp(-x))),
    "log_expit": either(lambda x: -np.log1p(np.exp(-x)), lambda x: -mpmath.log1p(mpmath.exp(-x))),
    "erf": exact(mpmath.erf),
    "erfc": exact(mpmath.erfc),
    "lgamma": exact(mpmath.loggamma),
    "digamma": exact(mpmath.digamma),
}
OF_DIGITS: dict[str, Callable[..., Any]] = {
    "tanh_derivative": fused.tanh_derivative,
    "fmod": np.fmod,
    "frexp_mantissa": fused.mantissa,
    "frexp_exponent": fused.power,
    "ldexp": fused.scale_by_power,
    "nextafter": np.nextafter,
    "spacing": np.spacing,
}
"""NumPy's functions of the digits of numbers, which are exact, and others for other dtypes."""


def uniform(low: float, high: float) -> Draw:
    """Draw numbers between two."""
    return lambda rng, count: rng.uniform(low, high, count)


def sizes(low: float, high: float) -> Draw:
    """Draw numbers of either sign, of sizes between two powers of ten."""
    return lambda rng, count: 10.0 ** rng.uniform(low, high, count) * rng.choice([-1.0, 1.0], count)


def positive(low: float, high: float) -> Draw:
    """Draw positive numbers of sizes between two powers of ten."""
    return lambda rng, count: 10.0 ** rng.uniform(low, high, count)


def above_one(rng: np.random.Generator, count: int) -> Array:
    """Draw numbers just above 1."""
    return 1 + 10.0 ** rng.uniform(-15, 0, count)


def below_one(rng: np.random.Generator, count: int) -> Array:
    """Draw numbers below 1."""
    return 1 - 10.0 ** rng.uniform(-15, 0, count)


LOGARITHM = (positive(-323, 308), uniform(0.5, 2), uniform(0.99, 1.01), uniform(0.74, 0.76))
PERIODIC = (uniform(-10, 10), uniform(-1e6, 1e6), sizes(-300, 308))
HYPERBOLIC = (uniform(-710, 710), uniform(-3, 3), sizes(-323, 1))
GAMMA = (uniform(0, 10), positive(-300, 300), uniform(-20, 0))
DOMAINS: dict[str, tuple[Draw, ...]] = {
    "exp": (uniform(-745, 709.7), uniform(-1, 1), sizes(-300, 0)),
    "exp2": (uniform(-1074, 1023.9), uniform(-1, 1)),
    "expm1": (uniform(-40, 709), uniform(-2, 2), sizes(-323, 1)),
    "sinh": HYPERBOLIC,
    "cosh": HYPERBOLIC,
    "tanh": (uniform(-20, 20), uniform(-1, 1), sizes(-323, 1)),
    "expit": (uniform(-745, 40), uniform(-3, 3)),
    "log": LOGARITHM,
    "log2": LOGARITHM,
    "log10": LOGARITHM,
    "log1p": (positive(-300, 300), uniform(-1, 3), sizes(-20, -1e-9)),
    "arcsinh": (sizes(-300, 300), uniform(-3, 3)),
    "arccosh": (positive(0, 300), uniform(1, 3), above_one),
    "arctanh": (uniform(-1, 1), sizes(-300, -1e-9), below_one),
    "log_expit": (uniform(-700, 700), uniform(-3, 3)),
    "sin": PERIODIC,
    "cos": PERIODIC,
    "tan": PERIODIC,
    "arcsin": (uniform(-1, 1), sizes(-300, -1e-9), below_one),
    "arccos": (uniform(-1, 1), sizes(-300, -1e-9), below_one),
    "arctan": (sizes(-300, 300), uniform(-3, 3)),
    "cbrt": (sizes(-323, 308), uniform(0.1, 10)),
    "erf": (uniform(-6, 6), uniform(-1.2, 1.2), sizes(-300, 0)),
    "erfc": (uniform(-6, 27.2), uniform(-1, 2)),
    "lgamma": GAMMA,
    "digamma": GAMMA,
    **dict.fromkeys(("frexp_mantissa", "frexp_exponent", "spacing"), (sizes(-323, 308),)),
}
"""How the arguments of functions of one are drawn: equally many each way."""


def drawn(name: str, rng: np.random.Generator, count: int) -> list[Array]:
    """Return arguments of a function in double precision."""
    if name == "power":  # results of every size
        base = 10.0 ** rng.uniform(-300, 300, count)
        near = rng.uniform(0.9, 1.1, count)
        powers = rng.uniform(-308, 308, count) / np.log10(base), rng.uniform(-700, 700, count) / np.log(near)
        return [np.r_[base, near, rng.uniform(0, 10, count)], np.r_[powers[0], powers[1], rng.uniform(-10, 10, count)]]
    if name == "ldexp":
        return [10.0 ** rng.uniform(-320, 308, 3 * count), np.rint(rng.uniform(-1500, 1500, 3 * count))]
    if name == "tanh_derivative":
        x = np.concatenate([draw(rng, count) for draw in HYPERBOLIC])
        return [np.tanh(x), x]
    if name in ("arctan2", "hypot", "fmod", "nextafter"):
        size = rng.uniform(-300, 300, count)
        other = np.clip(size + rng.uniform(-3, 3, count), -305, 305)
        x, y, z, w = rng.normal(size=(4, count))
        return [np.r_[x, z * 10.0**size], np.r_[y, w * 10.0**other]]
    return [np.concatenate([draw(rng, count) for draw in DOMAINS[name]])]


def points_of(name: str, dtype: Any, count: int, seed: int = 0) -> list[Array]:
    """Return about so many arguments of a function, without those that single precision has not."""
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        found = [x.astype(dtype) for x in drawn(name, rng, -(-count // max(1, len(DOMAINS.get(name, (0, 0))))))]
        keep = np.all([np.isfinite(x) for x in found], axis=0)
        if name in ("lgamma", "digamma"):
            keep &= (found[0] > 0) | (np.abs(found[0] - np.rint(found[0])) > 1e-3)
        return [x[keep] for x in found]


def unit(name: str, arguments: Sequence[Array], value: Array, dtype: Any) -> Array:
    """Return the unit in the last place of what errors are compared with."""
    size = np.abs(value)
    if name in LEAST:
        negative = arguments[0] < 0
        mirrored = np.abs(REFERENCES[name](1 - arguments[0][negative].astype(np.longdouble)))
        size = np.maximum(size, LEAST[name])
        size[negative] = np.maximum(size[negative], mirrored)
    limits = np.finfo(dtype)
    power = np.floor(np.log2(np.maximum(size, np.longdouble(limits.smallest_normal))))
    found: Array = np.exp2(power - limits.nmant)
    return found


def errors(name: str, arguments: Sequence[Array], found: Array) -> Array:
    """Return the errors of results in units in the last place; what must be infinite counts when it is not."""
    dtype = found.dtype
    with np.errstate(all="ignore"):
        own = OF_DIGITS.get(name)
        value = np.asarray(own(*arguments) if own else REFERENCES[name](*(x.astype(np.longdouble) for x in arguments)))
        off = np.abs(found - value) / unit(name, arguments, value, dtype)
        same = (found == value.astype(dtype)) | (np.isnan(found) & np.isnan(value))
        return np.where(same & ~np.isfinite(found), 0, np.where(np.isnan(off), np.inf, off)).astype(float)


def measured(name: str, dtype: Any, count: int, seed: int = 0) -> Iterator[tuple[str, float, float, list[float]]]:
    """Measure a function.

    Args:
        name: of the function.
        dtype: of its arguments.
        count: how many, about.
        seed: of those that are drawn.

    Yields:
        For each kind of processor its name, the bound, the greatest error, and where it is.
    """
    arguments = points_of(name, dtype, count, seed)
    bounds = FUNCTIONS[name].double if dtype == np.float64 else FUNCTIONS[name].single
    for processor, features in PROCESSORS.items():
        (found,) = evaluate_expression(expression_of(name, np.dtype(dtype), features), *arguments)
        off = errors(name, arguments, found)
        worst = int(np.argmax(off))
        yield processor, bounds[not features.fma], float(off[worst]), [float(x[worst]) for x in arguments]


def native(name: str, dtype: Any) -> Loaded:
    """Return native code for `BLOCK` values of a function of one argument."""
    kind, at = np.dtype(dtype), Affine(0, (0, 1))
    operations = Operation("load", (), kind, buffer="x", at=at), Operation(name, (0,), kind)
    stage = Stage((1, BLOCK), operations, (Store("y", at, 1),), lane=1)
    buffers = Buffer("x", (BLOCK,), kind, "input"), Buffer("y", (BLOCK,), kind, "output")
    return PROCESSOR.compile_program(Program(("x",), ("y",), buffers, (Kernel(1, (stage,)),)))


def compared(name: str, step: int) -> tuple[float, float]:
    """Return the greatest error of single precision among all arguments, or one in so many, and where it is."""
    single, double = native(name, np.float32), native(name, np.float64)
    worst = 0.0, 0.0
    for start in range(0, 2**32, BLOCK * step):
        x = (start + step * np.arange(BLOCK)).astype(np.uint32).view(np.float32)
        with np.errstate(invalid="ignore"):  # signalling NaN
            found, exact = single([x])[0], double([x.astype(np.float64)])[0]
        size = np.abs(exact)
        if name in LEAST:  # as in `unit`
            mirrored = np.where(x < 0, double([1 - np.minimum(x, 0).astype(np.float64)])[0], LEAST[name])
            size = np.maximum(size, np.abs(mirrored))
        with np.errstate(all="ignore"):
            off = np.abs(found - exact) / np.ldexp(1.0, np.maximum(np.frexp(size)[1] - 24, -149))
            same = (found == exact.astype(np.float32)) | (np.isnan(found) & np.isnan(exact))
        off = np.where(same & ~np.isfinite(found), 0, np.where(np.isnan(off), np.inf, off))
        place = int(np.argmax(off))
        worst = max(worst, (float(off[place]), float(x[place])))
    return worst


def main() -> None:
    """Print a line for each function and dtype."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(FUNCTIONS))
    parser.add_argument("--points", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int)
    options = parser.parse_args()
    if options.every:
        for name in (name for name in options.names if OPCODES[name].arity == 1):
            off, place = compared(name, options.every)
            print(f"{name:11s} float32 {off:5.2f} of {FUNCTIONS[name].single[0]:4.2f} at {place}", flush=True)
        return
    for name in options.names:
        for dtype in (np.float64, np.float32):
            found = list(measured(name, dtype, options.points, options.seed))
            line = "  ".join(
                f"{processor} {off:5.2f} of {bound:4.2f}" + (f" at {place}" if off > bound else "")
                for processor, bound, off, place in found
            )
            print(f"{name:11s} {np.dtype(dtype).name:8s} {line}", flush=True)


if __name__ == "__main__":
    main()
