"""Fit the nonlinear regression problems that the National Institute of Standards and Technology certifies.

    python examples/certified_regression.py [FOLDER] [--jit]

The `.dat` files of a folder (https://www.itl.nist.gov/div898/strd/nls/nls_main.shtml; six of them lie in `data/nist`)
hold data, two starting points, the parameters to eleven digits, and their standard deviations. A model is written once,
as its formula: `wengert.jacfwd` gives SciPy's solver the Jacobian, and the standard deviations at the solution.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize

import wengert as wg

DATA = Path(__file__).parent / "data" / "nist"


Array = np.ndarray[Any, Any]


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


class Fit(NamedTuple):
    """Hold parameters, their standard deviations, and how often residuals and Jacobian were computed."""

    parameters: Array
    deviations: Array
    evaluations: tuple[int, int]


def read(path: Path) -> Problem:
    """Read a file as it is published."""
    text = path.read_text()
    rows = re.findall(r"^ *b\d+ *= *(.*)$", text, re.MULTILINE)
    first, second, certified, deviations = np.array([row.split() for row in rows], float).T
    table = np.array([line.split() for line in text[text.rindex("Data:") :].splitlines()[1:] if line.strip()], float)
    y, *x = table.T
    response = np.log(y) if "log[y]" in text else y
    return Problem(path.stem, np.array([first, second]), certified, deviations, np.array(x).squeeze(), response)


def deviations(problem: Problem, b: Array, jacobian: Callable[[Any], Any]) -> Array:
    """Return the standard deviations of parameters, by the triangular factor of a Jacobian with columns of length 1."""
    matrix, r = jacobian(b), problem.residuals(b)
    lengths = np.linalg.norm(matrix, axis=0)
    inverse = scipy.linalg.solve_triangular(np.linalg.qr(matrix / lengths)[1], np.eye(len(b)))
    found: Array = np.linalg.norm(inverse, axis=1) / lengths * np.sqrt(r @ r / (len(r) - len(b)))
    return found


def fit(problem: Problem, start: Array, jacobian: Callable[[Any], Any]) -> Fit:
    """Minimise the sum of squares by the method of Levenberg and Marquardt, in units of the starting point."""
    tight = dict.fromkeys(("ftol", "xtol", "gtol"), 1e-15)
    with np.errstate(over="ignore", invalid="ignore"):  # steps that are too long, which the method takes back
        found = scipy.optimize.least_squares(
            problem.residuals, start, jacobian, method="lm", x_scale=np.abs(start), max_nfev=20000, **tight
        )
    return Fit(found.x, deviations(problem, found.x, jacobian), (found.nfev, found.njev))


def main(folder: Path = DATA, jit: bool = False) -> dict[str, list[Fit]]:
    """Fit the problems of a folder from both starting points, print how near that comes, and return the fits."""
    fits = {}
    print("largest relative errors of   parameters  deviations   evaluations")
    for problem in map(read, sorted(folder.glob("*.dat"))):
        jacobian = wg.jit(wg.jacfwd(problem.residuals)) if jit else wg.jacfwd(problem.residuals)
        fits[problem.name] = [fit(problem, start, jacobian) for start in problem.starts]
        for number, found in enumerate(fits[problem.name], 1):
            far = np.max(np.abs(found.parameters / problem.certified - 1))
            wide = np.max(np.abs(found.deviations / problem.deviations - 1))
            print(f"{problem.name:10} from start {number:7}  {far:10.1e}  {wide:10.1e}   {found.evaluations}")
    return fits


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=DATA)
    parser.add_argument("--jit", action="store_true", help="compile the Jacobians")
    main(**vars(parser.parse_args()))
