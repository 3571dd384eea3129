"""The delay of methane's ignition by GRI-Mech 3.0, with respect to a factor of each of its 325 rates, beside Cantera.

A mixture of methane and air is held in a constant volume at first 1500 K until it has reached 2000 K. Wengert
integrates the program that pyrometheus writes by BDF, and takes the gradient of the time of that event; Cantera's
reactor has forward sensitivities (CVODES) with its own tolerances for these, 1e-4.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import wengert as wg
from wengert.scipy.integrate import solve_ivp

__all__ = ["ignition"]

Array = np.ndarray[Any, Any]
START, IGNITED, END = 1500.0, 2000.0, 0.02
MIXTURE = "CH4:0.5,O2:1,N2:3.76"
RTOL, ATOL = 1e-6, 1e-12
GAS_CONSTANT = 8314.46261815324


def prepared(gas: Any) -> Any:
    """Return Cantera's object with the mixture at the beginning."""
    gas.TPX = START, 101325.0, MIXTURE
    return gas


def by_wengert(mechanism: Callable[[], Any], program: Callable[[], Any]) -> Callable[[], Array]:
    """Return what computes the derivatives of the delay."""
    gas = prepared(mechanism())
    density, weights, start = gas.density, gas.molecular_weights, np.concatenate([[START], gas.Y])

    def slope(_t: Any, y: Any, factors: Any) -> Any:
        chemistry, temperature, fractions = program()(np), y[0], y[1:]
        rates = chemistry.get_net_rates_of_progress
        chemistry.get_net_rates_of_progress = lambda *given: factors * rates(*given)
        made = chemistry.get_net_production_rates(density, temperature, fractions)
        energies = (chemistry.get_species_enthalpies_rt(temperature) - 1.0) * GAS_CONSTANT * temperature
        heat = density * chemistry.get_mixture_specific_heat_cv_mass(temperature, fractions)
        return np.concatenate([np.reshape(-np.sum(energies * made) / heat, (1,)), made * weights / density])

    def ignited(_t: Any, y: Any, _factors: Any) -> Any:
        return y[0] - IGNITED

    ignited.terminal = True  # type: ignore[attr-defined]  # SciPy's

    def delay(factors: Any) -> Any:
        options: dict[str, Any] = {"events": ignited, "rtol": RTOL, "atol": ATOL}
        return solve_ivp(slope, (0.0, END), start, "BDF", [END], args=(factors,), **options).t_events[0][0]

    run, ones = wg.jit(wg.grad(delay), native=True), np.ones(gas.n_reactions)
    return lambda: run(ones)


def by_cantera(mechanism: Callable[[], Any]) -> Callable[[], Array]:
    """Return what computes the same by forward sensitivities of the temperature where it has ignited."""
    cantera = importlib.import_module("cantera")

    def run() -> Array:
        gas = prepared(mechanism())
        reactor = cantera.IdealGasReactor(gas, clone=False)
        net, count = cantera.ReactorNet([reactor]), gas.n_reactions
        for reaction in range(count):
            reactor.add_sensitivity_reaction(reaction)
        net.rtol, net.atol = RTOL, ATOL
        while reactor.T < IGNITED:
            net.step()
        change = -np.dot(gas.partial_molar_int_energies, gas.net_production_rates) / (gas.density * gas.cv_mass)
        relative = np.array([net.sensitivity("temperature", reaction) for reaction in range(count)])
        found: Array = -relative * reactor.T / change
        return found

    return run


def ignition(library: str, mechanism: Callable[[], Any], program: Callable[[], Any]) -> Callable[[], Array] | None:
    """Return what computes the derivatives of the delay in a library, None if it has not got it."""
    if library == "wengert":
        return by_wengert(mechanism, program)
    return by_cantera(mechanism) if library == "cantera" else None
