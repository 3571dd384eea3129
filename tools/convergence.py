"""Draw docs/pictures/convergence.svg: how errors of solutions and of gradients follow the tolerance, method by method.

Run `python -m tools.convergence` after methods of `solve_ivp` changed; it prints what it draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import wengert as wg
from examples import _program
from wengert.scipy.integrate import solve_ivp

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "convergence.svg"
METHODS = ("RK23", "RK45", "Tsit5", "DOP853", "Radau", "BDF", "Kvaerno5", "Rodas5P")
TOLERANCES = 10.0 ** -np.arange(3.0, 10.5, 0.5)
START, END = np.array([0.5, 0.0, 0.0, 3.0**0.5, 1.0]), 6.0
"""An ellipse of eccentricity 1/2, once around nearly, and the mass that it is about."""


def orbit(_t: Any, y: Any, mass: Any) -> Any:
    """Return how place and speed of a planet change."""
    pull = -mass / (y[0] ** 2 + y[1] ** 2) ** 1.5
    return [y[2], y[3], pull * y[0], pull * y[1]]


def place(x: Any, method: str, tolerance: float) -> Any:
    """Return where a planet is at the end, of its state at the beginning and the mass."""
    options: dict[str, Any] = {"method": method, "rtol": tolerance, "atol": tolerance, "args": (x[4],)}
    return solve_ivp(orbit, (0.0, END), x[:4], t_eval=[END], **options).y[0, 0]


def errors(method: str, tolerances: Sequence[float], want: tuple[Any, Any]) -> Any:
    """Return the errors of the place and of its gradient at each tolerance, as parts of what they are."""
    found = [wg.value_and_grad(place)(START, method, tolerance) for tolerance in tolerances]
    sizes = [np.max(np.abs(x)) for x in want]
    return np.array(
        [[np.max(np.abs(x - y)) / size for x, y, size in zip(row, want, sizes, strict=True)] for row in found]
    )


def order(tolerances: Any, errors: Any) -> float:
    """Return the power of the tolerance that errors follow, by least squares."""
    return float(np.polyfit(np.log(tolerances), np.log(errors), 1)[0])


def main() -> None:
    """Draw the picture."""
    want = wg.value_and_grad(place)(START, "DOP853", 3e-14)
    drawn, axes = _program.figure(1, 2, sharex=True, sharey=True)
    for i, method in enumerate(METHODS):
        found = errors(method, TOLERANCES.tolist(), want)
        print(
            f"{method:10} solution {order(TOLERANCES, found[:, 0]):.2f}, gradient {order(TOLERANCES, found[:, 1]):.2f}"
        )
        for axis, column in zip(axes, found.T, strict=True):
            axis.loglog(TOLERANCES, column, "o-" if i < 4 else "s--", markersize=3, label=method)
    for axis, title in zip(axes, ("error of the solution", "error of the gradient"), strict=True):
        axis.minorticks_off()
        axis.set(title=title, xlabel="tolerance")
    axes[1].legend(fontsize="small", ncols=2)
    _program.save(drawn, PICTURE)


if __name__ == "__main__":
    main()
