"""Derivatives of the equations of power flow, beside those that PYPOWER's authors wrote by hand for sparse matrices.

The network is the largest that PYPOWER has, of 300 buses: R. D. Zimmerman, C. E. Murillo-Sanchez, R. J. Thomas,
MATPOWER, IEEE Trans. Power Systems 26 (2011). Both are given once the powers at all buses, as a function of angles and
magnitudes of voltages. Every library has one thread, and processor time is measured.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse as scipy_sparse

from benchmarks.measure import Case, Program, timed

__all__ = ["cases", "powers_of"]

WARM = 300
"""Calls after which a derivative is compiled."""
CALLS = 20
"""Calls of one program, as iterations make them."""
EXACT = 1e-12
"""How far elements may differ, of the largest."""


def powers_of(admittance: Any) -> Callable[[Any], Any]:
    """Return the function of angles and magnitudes that gives active and reactive powers at all buses.

    Args:
        admittance: the matrix of the network, a complex `scipy.sparse.csr_matrix`.
    """
    buses = admittance.shape[0]
    here, there = np.repeat(np.arange(buses), np.diff(admittance.indptr)), admittance.indices.astype(np.intp)
    conductance, susceptance = admittance.data.real.copy(), admittance.data.imag.copy()

    def powers(state: Any) -> Any:
        angles, sizes = state[:buses], state[buses:]
        apart, product = angles[here] - angles[there], sizes[here] * sizes[there]
        cosine, sine = np.cos(apart), np.sin(apart)
        active = np.bincount(here, product * (conductance * cosine + susceptance * sine), buses)
        reactive = np.bincount(here, product * (conductance * sine - susceptance * cosine), buses)
        return np.concatenate([active, reactive])

    return powers


def network() -> Any:
    """Return the admittances of the network of 300 buses."""
    api, outer, inner = (importlib.import_module(f"pypower.{name}") for name in ("api", "makeYbus", "ext2int"))
    case = inner.ext2int(api.case300())
    return scipy_sparse.csr_matrix(outer.makeYbus(case["baseMVA"], case["bus"], case["branch"])[0])


def by_hand(admittance: Any, weights: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return PYPOWER's Jacobian, and its Hessian of the sum of powers with weights."""
    first, second = (getattr(importlib.import_module(f"pypower.{name}"), name) for name in ("dSbus_dV", "d2Sbus_dV2"))
    buses = admittance.shape[0]

    def voltages(state: Any) -> Any:
        return state[buses:] * np.exp(1j * state[:buses])

    def jacobian(state: Any) -> Any:
        by_size, by_angle = first(admittance, voltages(state))
        parts = [[by_angle.real, by_size.real], [by_angle.imag, by_size.imag]]
        return scipy_sparse.bmat(parts, format="csr")

    def hessian(state: Any) -> Any:
        active, reactive = (second(admittance, voltages(state), part) for part in np.split(weights, 2))
        blocks = [a.real + b.imag for a, b in zip(active, reactive, strict=True)]
        return scipy_sparse.bmat([blocks[:2], blocks[2:]], format="csr")

    return jacobian, hessian


def derivatives(powers: Callable[[Any], Any], weights: Any, state: Any) -> tuple[Callable[[Any], Any], ...]:
    """Return our Jacobian and Hessian, compiled."""
    import wengert as wg

    both = wg.sparse.jacobian(powers), wg.sparse.hessian(lambda state: np.sum(weights * powers(state)))
    for derivative in both:
        for _ in range(WARM):
            derivative(state)
    return both


def cases(_threads: int) -> Iterator[Case]:
    """Yield the Jacobian and the Hessian."""
    if importlib.util.find_spec("pypower") is None:
        return
    admittance, generator = network(), np.random.default_rng(0)
    buses = admittance.shape[0]
    state = np.concatenate([0.1 * generator.random(buses), 1 + 0.05 * generator.random(buses)])
    weights = generator.random(2 * buses)
    ways = derivatives(powers_of(admittance), weights, state), by_hand(admittance, weights)
    for which, name in enumerate(("Jacobian", "Hessian")):
        found, expected = (way[which](state) for way in ways)
        if abs(found - expected).max() > EXACT * abs(expected).max():
            raise ArithmeticError(f"the {name} of power flow is not PYPOWER's")

        def program(library: str, which: int = which) -> Program | None:
            if library not in ("wengert", "pypower"):
                return None
            derivative = ways[library == "pypower"][which]
            return timed(lambda: [derivative(state) for _ in range(CALLS)], time.process_time)

        yield Case(f"power flow, 300 buses, {name}", CALLS, program, rounds=101)
