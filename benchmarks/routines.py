"""Routines: decompositions, transforms, normalisations and convolutions, value and gradient, in both precisions.

One thread for every library, and processor time. A program calls the routine some times, as a longer computation would,
and pulls all results back at once.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.agreement import check_agreement
from benchmarks.measure import Case, Program, timed
from benchmarks.routine_list import ROUTINES, Routine

__all__ = ["cases", "gradients"]

Array = np.ndarray[Any, Any]
Run = Callable[[], Sequence[Any]]
TOLERANCE = {"float64": 1e-9, "float32": 1e-3}


def cases(_threads: int) -> Iterator[Case]:
    """Yield the cases."""
    for routine in ROUTINES:
        for dtype in TOLERANCE:
            yield case(routine, dtype)


def case(routine: Routine, dtype: str) -> Case:
    """Return the case of a routine in one precision."""
    name, expected = f"{routine.name}, {dtype}", []  # type: tuple[str, list[Any]]

    def make(library: str) -> Program | None:
        if library not in routine.functions:
            return None
        run = gradients(library, routine, dtype)
        found = [comparable(values, routine.symmetric) for values in run()]
        expected.extend(() if expected else found)  # Wengert is asked first
        check_agreement(found, expected, f"{library}: {name}", TOLERANCE[dtype])
        return timed(run, time.process_time)

    return Case(name, routine.repeats, make, rounds=31, budget=2.0, labels={"dtype": dtype})


def comparable(gradient: Any, symmetric: bool) -> Any:
    """Return a gradient as all libraries give it; of symmetric matrices that is what symmetric changes see of it."""
    return gradient + gradient.mT if symmetric else gradient


def gradients(library: str, routine: Routine, dtype: str) -> Run:
    """Return the program that calls the routine and finds the gradients of its operands.

    The cotangents are multiples of the values, so that gradients agree where libraries choose vectors of other signs.
    """
    function, times = routine.functions[library](), range(routine.repeats)
    arrays = [operand.astype(dtype) for operand in routine.operands]
    return BY_LIBRARY[library](function, arrays, times)


def of_wengert(function: Callable[..., Any], arrays: Sequence[Array], times: range) -> Run:
    """Return the program of Wengert's tape."""
    wg = importlib.import_module("wengert")
    leaves = [[wg.tensor(values, requires_grad=True) for values in arrays] for _ in times]
    found = [value.detach().numpy() for value in flat(function(*leaves[0]))]
    cotangents = [wg.tensor(weight(value) * value) for value in found]
    return on_tape(function, leaves, cotangents, wg.autograd.grad)


def of_torch(function: Callable[..., Any], arrays: Sequence[Array], times: range) -> Run:
    """Return the program of PyTorch's tape."""
    torch = importlib.import_module("torch")
    leaves = [[torch.tensor(values, requires_grad=True) for values in arrays] for _ in times]
    found = [value.detach().resolve_conj() for value in flat(function(*leaves[0]))]
    cotangents = [torch.tensor(weight(value.numpy())) * value for value in found]
    return on_tape(function, leaves, cotangents, torch.autograd.grad)


def on_tape(
    function: Callable[..., Any], leaves: list[list[Any]], cotangents: list[Any], grad: Callable[..., Any]
) -> Run:
    """Return the program of a library with leaves."""
    inputs, every, count = [leaf for each in leaves for leaf in each], cotangents * len(leaves), len(leaves[0])

    def run() -> Sequence[Any]:
        found = [value for each in leaves for value in flat(function(*each))]
        return grad(found, inputs, every)[:count]  # type: ignore[no-any-return]  # of modules without types

    return run


def of_autograd(function: Callable[..., Any], arrays: Sequence[Array], times: range) -> Run:
    """Return the program of autograd, which pulls each result back by itself."""
    make_vjp = importlib.import_module("autograd.core").make_vjp
    operands, value = tuple(arrays), function(*arrays)
    cotangents = tuple([weight(x) * np.conj(x) for x in flat(value)])  # its convention for complex numbers
    cotangent = cotangents if isinstance(value, tuple) else cotangents[0]

    def run() -> Sequence[Any]:
        for _ in times:
            found = make_vjp(lambda leaves: function(*[leaves[i] for i in range(len(operands))]), operands)[0](
                cotangent
            )
        return found  # type: ignore[no-any-return]  # of a module without types

    return run


def flat(value: Any) -> Sequence[Any]:
    """Return the results of a routine, one or several, as a list."""
    return value if isinstance(value, tuple | list) else [value]


def weight(value: Array) -> Array:
    """Return numbers of either sign, in the precision of a value."""
    return np.cos(np.arange(value.size)).reshape(value.shape).astype(value.real.dtype)


BY_LIBRARY = {"wengert": of_wengert, "torch": of_torch, "autograd": of_autograd}
