"""A Brusselator in the plane, 20,000 states, by BDF beside CVODE and SciPy; Robertson's equations beside CVODE, too.

CVODE (SUNDIALS, called by scikit-sundae) has the right-hand side and the sparse Jacobian that Wengert compiles, and
factorises it by SuperLU_MT; SciPy's BDF is told the pattern. One thread for each, and processor time.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import wengert as wg
from wengert.scipy.integrate import solve_ivp

Array = np.ndarray[Any, Any]
Run = Callable[[], Any]
TOLERANCE, END = 1e-6, 1.0


def slope(_t: Any, y: Any, spread: Any) -> Any:
    """Return how two substances change that react and spread over a square whose edges they do not pass."""
    size = int(np.sqrt(y.shape[0] // 2))
    both = y.reshape(2, size, size)
    down = np.concatenate([both[:, :1], both, both[:, -1:]], axis=1)
    across = np.concatenate([both[:, :, :1], both, both[:, :, -1:]], axis=2)
    around = down[:, 2:] + down[:, :-2] + across[:, :, 2:] + across[:, :, :-2] - 4 * both
    u, v = both
    reaction = u * u * v
    change = np.stack([1.0 + reaction - 4.4 * u, 3.4 * u - reaction])
    return (change + spread * size**2 * around).reshape(-1)


def start(size: int) -> Array:
    """Return the substances at the beginning, of shape (2 size^2,)."""
    x = (np.arange(size) + 0.5) / size
    return np.concatenate([np.repeat(0.5 + x, size), np.tile(1.0 + 5.0 * x, size)])


def in_plane(library: str, size: int) -> Run | None:
    """Return what integrates over a square of so many points on a side, or the gradient of the end by the spreading."""
    y0 = start(size)

    def total(spread: Any) -> Any:
        options: dict[str, Any] = {"method": "BDF", "t_eval": [END], "rtol": TOLERANCE, "atol": TOLERANCE}
        return np.sum(solve_ivp(slope, (0.0, END), y0, args=(spread,), **options).y)

    if library in ("wengert", "wengert-value"):
        run: Any = wg.jit(total if library == "wengert-value" else wg.grad(total), native=True)
        return lambda: run(0.002)
    right = wg.jit(lambda t, y: slope(t, y, 0.002), native=True)
    if library == "scipy":
        pattern = wg.sparse.jacobian(lambda y: slope(0.0, y, 0.002))(y0)
        integrate: Any = importlib.import_module("scipy.integrate")
        options = {"method": "BDF", "t_eval": [END], "rtol": TOLERANCE, "atol": TOLERANCE, "jac_sparsity": pattern}
        return lambda: np.sum(integrate.solve_ivp(right, (0.0, END), y0, **options).y)
    return partial(by_cvode, right, y0, END, TOLERANCE) if library == "sksundae" else None


def robertson_by_cvode(slope: Callable[..., Any], p: Array, end: float, tolerance: float) -> Run:
    """Return what integrates Robertson's equations by CVODE, with a full Jacobian."""
    right = wg.jit(lambda t, y: np.stack(slope(t, y, p)), native=True)
    return partial(by_cvode, right, np.array([1.0, 0.0, 0.0]), end, tolerance)


def by_cvode(right: Callable[..., Any], y0: Array, end: float, tolerance: float) -> Any:
    """Return the sum of the end of a solution by CVODE."""
    cvode: Any = importlib.import_module("sksundae.cvode")
    few = len(y0) < 100
    derive: Any = (wg.jacobian if few else wg.sparse.jacobian)(lambda y: right(0.0, y))
    derive = wg.jit(derive, native=True) if few else derive
    options: dict[str, Any] = {"rtol": tolerance, "atol": tolerance, "max_num_steps": 100_000}
    found = derive(y0)
    if not few:
        scipy_sparse: Any = importlib.import_module("scipy.sparse")
        places = scipy_sparse.csr_matrix((np.arange(found.nnz), found.indices, found.indptr), found.shape).tocsc().data
        options |= {"linsolver": "sparse", "sparsity": found}

    def change(t: float, y: Array, out: Array) -> None:
        out[:] = right(t, y)

    def jacobian(_t: float, y: Array, _rate: Array, out: Array) -> None:
        out[:] = derive(y) if few else derive(y).data[places]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that differences are not needed then
        solver = cvode.CVODE(change, jacfn=jacobian, **options)
    return np.sum(solver.solve(np.array([0.0, end]), y0).y[-1])
