"""`wengert doctor`: what is installed, what this machine can do, and whether native code works here."""

from __future__ import annotations

import importlib.metadata
import platform
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from wengert.compile.executable import Compiled
from wengert.native.cache import object_cache
from wengert.native.cache_writing import usage_of
from wengert.native.entries.entry import Entry
from wengert.support import config
from wengert.support.machine import PROCESSOR
from wengert.support.records import NamedTuple
from wengert.transforms.jit import jit
from wengert.transforms.reverse import value_and_grad
from wengert.transforms.tracing import trace

PACKAGES = ("numpy", "scipy", "llvmlite", "optree", "rich", "matplotlib")
OPTIONAL = {"matplotlib": "the pictures of the examples need it"}
T = TypeVar("T")
CALLS = 2000
"""More than NumPy evaluates before a small function is compiled."""


class HealthFinding(NamedTuple):
    """What was found out about one thing.

    Attributes:
        subject: the thing.
        text: what is so.
        remedy: what to do; nothing if all is well.
    """

    subject: str
    text: str
    remedy: str = ""


def findings() -> Iterator[HealthFinding]:
    """Yield what is found out, one thing after the other."""
    yield HealthFinding("Wengert", importlib.metadata.version("wengert"))
    yield HealthFinding(
        "Python", f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}"
    )
    for package in PACKAGES:
        yield version(package)
    yield processor()
    yield threads()
    yield cache()
    yield entry()
    yield native_code()


def version(package: str) -> HealthFinding:
    """Tell which version of a package is installed."""
    try:
        return HealthFinding(package, importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        if package in OPTIONAL:
            return HealthFinding(package, f"not installed; {OPTIONAL[package]}")
        return HealthFinding(package, "not installed", "Install Wengert with pip, which installs what it needs")


def processor() -> HealthFinding:
    """Tell what code is made for."""
    try:
        from wengert.native.engine import host

        target = host()
    except ImportError as error:
        return HealthFinding("processor", f"{PROCESSOR}; there is no LLVM ({error})", "Install llvmlite")
    return HealthFinding("processor", f"{target.processor}, vectors of {8 * target.vector_bytes} bits")


def threads() -> HealthFinding:
    """Tell how many threads there are."""
    return HealthFinding("threads", f"{config.THREADS} (WENGERT_THREADS and OMP_NUM_THREADS set fewer)")


def cache() -> HealthFinding:
    """Tell where machine code is kept."""
    kept = object_cache()
    if kept.refusal:
        action = "Set WENGERT_CACHE to a folder of yours" if kept.folder is not None else ""
        return HealthFinding("cache", f"no machine code is kept: {kept.refusal}", action)
    return HealthFinding("cache", f"{usage_of(kept).entries} entries in {kept.folder}")


def entry() -> HealthFinding:
    """Tell how jitted functions are called."""
    native = Entry.__name__ == "NativeEntry"
    text = "native" if native else "through Python, some tens of microseconds each: this interpreter is not known"
    return HealthFinding(
        "calls", text, "" if native else "Use CPython with its global lock for calls of a hundredth of that"
    )


def native_code() -> HealthFinding:
    """Compile a function, compare what it gives with NumPy, and tell how long it took."""
    subject = "native code"
    if not config.NATIVE:
        return HealthFinding(subject, "switched off by WENGERT_NATIVE=0", "Unset WENGERT_NATIVE")
    x = np.linspace(0.5, 1.5, 1000)
    function = value_and_grad(lambda x: np.sum(np.log(x) + np.sin(x) * x))
    try:
        took, compiled = seconds(lambda: Compiled(trace(function)(x)))
        value, gradient = compiled([x])
    except RuntimeError as error:
        return HealthFinding(subject, f"fails here: {error}", "Set WENGERT_NATIVE=0, and report it with this list")
    expected, slopes = function(x)
    if not (np.isclose(value, expected, rtol=1e-13) and np.allclose(gradient, slopes, rtol=1e-13)):
        return HealthFinding(
            subject, "gives other results than NumPy", "Set WENGERT_NATIVE=0, and report it with this list"
        )
    jitted = jit(function)
    least = min([seconds(lambda: jitted(x))[0] for _ in range(CALLS)])
    return HealthFinding(
        subject, f"works: a first function took {1e3 * took:.0f} ms, calls of it take {1e6 * least:.1f} us"
    )


def seconds(call: Callable[[], T]) -> tuple[float, T]:
    """Return how long a call takes, and its result."""
    start = time.perf_counter()
    found = call()
    return time.perf_counter() - start, found
