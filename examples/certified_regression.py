"""Fit the nonlinear regression problems that the National Institute of Standards and Technology certifies.

The `.dat` files (https://www.itl.nist.gov/div898/strd/nls/nls_main.shtml; six of them lie in `data/nist`) hold data,
two starting points, the parameters to eleven digits, and their standard deviations. A model is written once, as its
formula: `wengert.jacfwd` gives SciPy's solver the Jacobian, and the standard deviations at the solution.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize

import wengert as wg
from examples._program import DATA, Array, on_files


def saturation(b: Any, x: Any) -> Any:
    """Return what approaches a limit exponentially."""
    return b[0] * (1 - np.exp(-b[1] * x))


def peaks(b: Any, x: Any) -> Any:
    """Return two bells on what decays."""
    first, second = np.exp(-((x - b[3]) ** 2) / b[4] ** 2), np.exp(-((x - b[6]) ** 2) / b[7] ** 2)
    return b[0] * np.exp(-b[1] * x) + b[2] * first + b[5] * second


def decays(b: Any, x: Any) -> Any:
    """Return what decays in three ways."""
    return b[0] * np.exp(-b[1] * x) + b[2] * np.exp(-b[3] * x) + b[4] * np.exp(-b[5] * x)


MODELS: dict[str, Callable[[Any, Any], Any]] = {
    "Bennett5": lambda b, x: b[0] * (b[1] + x) ** (-1 / b[2]),
    "BoxBOD": saturation,
    "Chwirut1": lambda b, x: np.exp(-b[0] * x) / (b[1] + b[2] * x),
    "DanWood": lambda b, x: b[0] * x ** b[1],
    "Eckerle4": lambda b, x: b[0] / b[1] * np.exp(-0.5 * ((x - b[2]) / b[1]) ** 2),
    "Gauss1": peaks,
    "Gauss3": peaks,
    "Kirby2": lambda b, x: (b[0] + b[1] * x + b[2] * x**2) / (1 + b[3] * x + b[4] * x**2),
    "Lanczos2": decays,
    "Lanczos3": decays,
    "MGH09": lambda b, x: b[0] * (x**2 + x * b[1]) / (x**2 + x * b[2] + b[3]),
    "MGH17": lambda b, x: b[0] + b[1] * np.exp(-x * b[3]) + b[2] * np.exp(-x * b[4]),
    "Misra1a": saturation,
    "Misra1b": lambda b, x: b[0] * (1 - (1 + b[1] * x / 2) ** -2),
    "Misra1c": lambda b, x: b[0] * (1 - (1 + 2 * b[1] * x) ** -0.5),
    "Misra1d": lambda b, x: b[0] * b[1] * x * (1 + b[1] * x) ** -1,
    "Nelson": lambda b, x: b[0] - b[1] * x[0] * np.exp(-b[2] * x[1]),
    "Rat42": lambda b, x: b[0] / (1 + np.exp(b[1] - b[2] * x)),
    "Rat43": lambda b, x: b[0] / (1 + np.exp(b[1] - b[2] * x)) ** (1 / b[3]),
    "Roszman1": lambda b, x: b[0] - b[1] * x - np.arctan(b[2] / (x - b[3])) / np.pi,
}


class Problem(NamedTuple):
    """Hold what a file says: starting points, what is certified, and the data."""

    name: str
    starts: Array
    certified: Array
    deviations: Array
    x: Array
    y: Array

    def residuals(self, b: Any) -> Any:
        """Return what the model with parameters `b` leaves unexplained."""
        return self.y - MODELS[self.name](b, self.x)


def read(path: Path) -> Problem:
    """Read a file as it is published."""
    text = path.read_text()
    rows = re.findall(r"^ *b\d+ *= *(.*)$", text, re.MULTILINE)
    first, second, certified, deviations = np.array([row.split() for row in rows], float).T
    table = np.array([line.split() for line in text[text.rindex("Data:") :].splitlines()[1:] if line.strip()], float)
    y, *x = table.T
    y = np.log(y) if "log[y]" in text else y
    return Problem(path.stem, np.array([first, second]), certified, deviations, np.array(x).squeeze(), y)


def deviations(problem: Problem, b: Array, jacobian: Callable[[Any], Any]) -> Any:
    """Return the standard deviations of parameters, by the triangular factor of a Jacobian with columns of length 1."""
    matrix, r = jacobian(b), problem.residuals(b)
    lengths = np.linalg.norm(matrix, axis=0)
    inverse = scipy.linalg.solve_triangular(np.linalg.qr(matrix / lengths)[1], np.eye(len(b)))
    return np.linalg.norm(inverse, axis=1) / lengths * np.sqrt(r @ r / (len(r) - len(b)))


def fit(problem: Problem, start: Array, jacobian: Callable[[Any], Any]) -> Any:
    """Minimise the sum of squares by the method of Levenberg and Marquardt, in units of the starting point."""
    options = {"method": "lm", "x_scale": np.abs(start), "max_nfev": 20000, "ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15}
    with np.errstate(over="ignore", invalid="ignore"):  # steps that are too long, which the method takes back
        return scipy.optimize.least_squares(problem.residuals, start, jacobian, **options)


def main(paths: Sequence[Path] = tuple(sorted(DATA.glob("nist/*.dat"))), jit: bool = False) -> dict[str, float]:
    """Fit problems from both starting points, print how near that comes, and return the errors of parameters."""
    errors: dict[str, float] = {}
    print("largest relative errors of   parameters  deviations   evaluations")
    for problem in map(read, paths):
        jacobian = wg.jit(wg.jacfwd(problem.residuals)) if jit else wg.jacfwd(problem.residuals)
        for number, start in enumerate(problem.starts, 1):
            found = fit(problem, start, jacobian)
            far = np.max(np.abs(found.x / problem.certified - 1))
            wide = np.max(np.abs(deviations(problem, found.x, jacobian) / problem.deviations - 1))
            print(f"{problem.name:10} from start {number:7}  {far:10.1e}  {wide:10.1e}   {found.nfev, found.njev}")
            errors[problem.name] = max(errors.get(problem.name, 0.0), far)
    return errors


if __name__ == "__main__":
    on_files(main)
