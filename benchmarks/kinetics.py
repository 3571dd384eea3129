"""Jacobians of the rates of GRI-Mech 3.0, which pyrometheus writes as a program of NumPy's, beside JAX and Cantera.

G. P. Smith and others, GRI-Mech 3.0: 53 species, 325 reactions. The program runs as it was written; for JAX the method
that puts numbers into an array is replaced. Values are compared with Cantera's. Every library has one thread, and
processor time is measured; JAX needs half a minute to compile one cell, and one and a half for 10,000, Wengert one and
a half for the gradient of an ignition delay (`benchmarks/ignition.py`).
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.ignition import ignition
from benchmarks.measure import Case, Program, timed

__all__ = ["cases"]

DENSITY, TEMPERATURE = 0.3, 1500.0
CELLS = 10_000
WARM = 300
EXACT = 1e-12
Derivative = Callable[..., Any]


def mechanism() -> Any:
    """Return Cantera's object of GRI-Mech 3.0."""
    return importlib.import_module("cantera").Solution("gri30.yaml")


@functools.cache
def program_of_mechanism() -> Any:
    """Return the class that pyrometheus writes."""
    generator = importlib.import_module("pyrometheus.codegen.python").PythonCodeGenerator
    return generator.get_thermochem_class(mechanism())


def fractions(cells: int | None = None) -> Any:
    """Return mass fractions of all species."""
    found = np.random.default_rng(0).random((cells or 1, 53))
    found /= found.sum(1, keepdims=True)
    return found if cells else found[0]


def arguments(cells: int | None) -> tuple[Any, ...]:
    """Return densities, temperatures and mass fractions of a cell, or of several."""
    if cells is None:
        return np.float64(DENSITY), np.float64(TEMPERATURE), fractions()
    return np.full(cells, DENSITY), np.linspace(800.0, 2000.0, cells), fractions(cells)


def of_wengert(cells: int | None) -> Derivative:
    """Return the Jacobian of the rates by the mass fractions."""
    import wengert as wg

    derivative = wg.jacobian(program_of_mechanism()(np).get_net_production_rates, 2, mode="fwd")
    return wg.jit(derivative if cells is None else wg.vmap(derivative))


def of_jax(cells: int | None) -> Derivative:
    """Return the same by JAX."""
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    chemistry = program_of_mechanism()(jax.numpy)
    chemistry._pyro_make_array = types.MethodType(lambda _, items: jax.numpy.stack(list(items)), chemistry)
    derivative = jax.jacfwd(chemistry.get_net_production_rates, 2)
    compiled = jax.jit(derivative if cells is None else jax.vmap(derivative))
    return lambda *args: jax.block_until_ready(compiled(*args))


WAYS: dict[str, Callable[[int | None], Derivative]] = {"wengert": of_wengert, "jax-jit": of_jax}


def require_rates() -> None:
    """Raise an ArithmeticError unless rates are Cantera's."""
    gas, chemistry = mechanism(), program_of_mechanism()(np)
    gas.TDY = TEMPERATURE, DENSITY, fractions()
    found, expected = chemistry.get_net_production_rates(*arguments(None)), gas.net_production_rates
    if np.max(np.abs(found.astype(float) - expected)) > EXACT * np.max(np.abs(expected)):
        raise ArithmeticError("the rates of GRI-Mech 3.0 are not Cantera's")


def cases(_threads: int) -> Iterator[Case]:
    """Yield the first call, one cell, and many."""
    if any(importlib.util.find_spec(name) is None for name in ("cantera", "pyrometheus")):
        return
    require_rates()

    def program(library: str, first: bool, cells: int | None) -> Program | None:
        if library not in WAYS:
            return None
        if first:
            return timed(lambda: WAYS[library](None)(*arguments(None)), time.process_time)
        derivative, given = WAYS[library](cells), arguments(cells)
        for _ in range((20 if cells else WARM) if library == "wengert" else 1):
            derivative(*given)
        return timed(lambda: derivative(*given), time.process_time)

    for name, first, cells, rounds in (
        ("first call", True, None, 3),
        ("one cell", False, None, 101),
        (f"{CELLS:,} cells", False, CELLS, 7),
    ):
        make = functools.partial(program, first=first, cells=cells)
        yield Case(f"GRI-Mech 3.0, Jacobian, {name}", 1, make, rounds=rounds, budget=60.0)

    def delay(library: str) -> Program | None:
        run = ignition(library, mechanism, program_of_mechanism)
        return None if run is None else timed(run, time.process_time)

    yield Case("GRI-Mech 3.0, ignition delay by 325 rates", 1, delay, rounds=3, budget=60.0)
