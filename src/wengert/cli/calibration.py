"""`wengert doctor --calibrate`: what decisions are made by, measured on this machine and kept beside machine code."""

from __future__ import annotations

import ctypes
import json
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from wengert.compile.codegen import compile_segments
from wengert.compile.executable import Compiled
from wengert.native.builder import Builder, program
from wengert.native.cache import object_cache
from wengert.native.cache_writing import for_me_alone
from wengert.native.functions import native
from wengert.native.loader import kept_code
from wengert.native.structs import I64
from wengert.native.values import Value
from wengert.passes.pipeline import flatten_calls
from wengert.support import config
from wengert.support.machine import PLACE, Machine, is_likely
from wengert.transforms.jit import jit
from wengert.transforms.tracing import trace

ROUNDS, LATENCY = 200_000, 3
"""Rounds of eight multiplications, each of the one before, and after how many cycles processors have one of them."""
EQUATIONS = 101


@native(I64, I64)
def multiply_on(b: Builder, rounds: Value) -> None:
    """Multiply a number with itself again and again."""
    with b.loop(rounds, carry=[3]) as loop:
        (x,) = loop.values
        for _ in range(8):
            x = x * x
        loop.next(x)
    b.give(loop.results[0])


def calibrate() -> str:
    """Measure, keep what was measured for processes to come, and tell it in a line."""
    refusal = object_cache().refusal
    if refusal or PLACE is None:
        return f"nothing is kept: {refusal}"
    values = {name: value for name, value in measured_fields().items() if is_likely(name, value)}
    begun = f"{PLACE}.{os.getpid()}"
    with open(begun, "x", encoding="utf-8", opener=for_me_alone) as file:
        json.dump(values, file)
    os.replace(begun, PLACE)
    return ", ".join([f"{name} {value}" for name, value in values.items()])


def measured_fields() -> dict[str, Any]:
    """Return the fields of the record that were measured."""
    x = np.ones(4)
    one, many = chain_operations(1), chain_operations(EQUATIONS)
    compiling = [least(partial(compile_segments, flatten_calls(trace(function)(x))), 3) for function in (one, many)]
    evaluating = [least(partial(jit(function), x), 50) for function in (one, many)]  # few enough not to be compiled
    compiled = Compiled(trace(one)(x))
    large, into = np.ones(1 << 20), np.empty(1 << 20)
    found = {
        "clock": 8 * LATENCY * ROUNDS / least(chain(), 20),
        "second_cache": second_cache(),
        "compiling": line(*compiling),
        "evaluating": line(*evaluating),
        "calling": least(lambda: compiled([x]), 1000),
        "passing": least(lambda: np.copyto(into, large), 20) / large.size,
    }
    if config.AT_ONCE:
        del found["evaluating"]
    return found


def chain() -> Callable[[], None]:
    """Return what takes so many cycles as multiplications one after the other do."""
    address = kept_code(program(multiply_on)).addresses[multiply_on.name]
    function = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)
    return lambda: function(ROUNDS)


def chain_operations(equations: int) -> Callable[[Any], Any]:
    """Return a function of so many operations, one after the other."""

    def function(x: Any) -> Any:
        for _ in range(equations):
            x = x * 1.5
        return x

    return function


def line(one: float, many: float) -> list[float]:
    """Return what everything takes but for the equations, and what each of these takes."""
    each = max(many - one, 0.0) / (EQUATIONS - 1)
    return [max(one - each, 0.0), each]


def second_cache() -> int:
    """Return how large the system says that a processor's own caches are; what is usual, if it does not."""
    try:
        return os.sysconf("SC_LEVEL2_CACHE_SIZE") or Machine.second_cache
    except (AttributeError, OSError, ValueError):
        return Machine.second_cache


def least(call: Callable[[], object], times: int) -> float:
    """Return the least of the times that some calls take, in microseconds."""
    found = []
    for _ in range(times):
        start = time.perf_counter_ns()
        call()
        found.append(time.perf_counter_ns() - start)
    return min(found) / 1e3
