"""`import wengert` loads NumPy and little else; heavy and optional packages wait for their first use.

The time it takes is measured by `python -m benchmarks import`.
"""

import functools
import os
import subprocess
import sys

DEFERRED = ("scipy", "llvmlite", "optree", "rich", "hypothesis", "jax", "torch", "autograd", "pandas", "matplotlib")

LOADED = """
import sys
import numpy
before = set(sys.modules)
import {module}
{more}
print(*sorted(set(sys.modules) - before))
"""
FIRST_RESULTS = """
f = lambda x: numpy.sum(x * x)
for call in (wengert.grad(f), wengert.jit(f), wengert.jit(wengert.value_and_grad(f, (0,)))):
    call(numpy.ones(3))
"""
COLLECTOR = """
import gc
assert not gc.isenabled()
gc.enable()
kept = gc.get_objects
import wengert
assert gc.isenabled() and len(kept(0)) + len(kept(1)) < 200, (len(kept(0)), len(kept(1)))
gc.disable()
wengert.jit
assert not gc.isenabled()
gc.enable()
wengert.vmap
assert gc.isenabled() and len(kept(0)) + len(kept(1)) < 1_000, (len(kept(0)), len(kept(1)))
gc.freeze()
frozen = gc.get_freeze_count()
wengert.optim
assert gc.get_freeze_count() >= frozen - 100 > 10_000
"""


def output_of(program: str) -> str:
    """Return what a program prints in a process of its own."""
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "WENGERT_NATIVE": "0"}  # what compiles loads LLVM
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=environment).stdout


@functools.cache
def loaded_by(module: str, more: str = "") -> set[str]:
    """Modules that importing a module, and more, adds to those of NumPy."""
    return set(output_of(LOADED.format(module=module, more=more)).split())


def test_heavy_packages_are_not_loaded():
    loaded = loaded_by("wengert, wengert.autograd, wengert.numpy")
    assert {name.split(".")[0] for name in loaded}.isdisjoint(DEFERRED)


def test_differential_equations_are_solved_without_heavy_packages():
    loaded = loaded_by("wengert.scipy.integrate")
    assert {name.split(".")[0] for name in loaded}.isdisjoint(DEFERRED)
    assert {f"numpy.{part}" for part in ("f2py", "ma", "testing")}.isdisjoint(loaded)


def test_what_native_code_is_written_with_is_not_loaded():
    unneeded = {f"wengert.native.{name}" for name in ("builder", "cache", "engine", "loader", "threads.jobs")}
    assert unneeded.isdisjoint(loaded_by("wengert"))


def test_linear_algebra_and_transforms_of_fourier_are_left_to_their_first_use():
    loaded = loaded_by("wengert")
    assert not [name for name in loaded if name.startswith(("wengert.primitives.linear_algebra", "wengert.numpy._fft"))]
    assert {"wengert.numpy._linalg", "wengert.numpy.linalg"}.isdisjoint(loaded)


def test_parts_of_numpy_that_load_on_first_use_are_left_to_it():
    assert {f"numpy.{part}" for part in ("f2py", "fft", "ma", "polynomial", "testing")}.isdisjoint(loaded_by("wengert"))


WATCHED = """
import gc, numpy
gc.collect()
found = []
gc.callbacks.append(lambda phase, info: found.append(phase))
import wengert
more = [[] for _ in range(100)]
print(len(found), gc.get_freeze_count(), gc.isenabled())
"""


def test_no_garbage_is_looked_for_in_what_is_imported():
    assert output_of(WATCHED).split() == ["0", "0", "True"]


def test_modules_of_python_that_few_programs_need_are_not_loaded():
    assert {"dataclasses", "fractions", "json", "tempfile", "tomllib"}.isdisjoint(loaded_by("wengert"))


def test_first_results_of_functions_of_arrays_need_nothing_heavy():
    loaded = loaded_by("wengert", FIRST_RESULTS)
    assert "wengert.transforms.jit" in loaded
    assert {name.split(".")[0] for name in loaded}.isdisjoint((*DEFERRED, "sysconfig", "tomllib", "typing_extensions"))


def test_the_collector_of_garbage_is_as_it_was_and_has_little_to_look_at():
    output_of("import gc; gc.disable()" + COLLECTOR)
