"""`import wengert` loads NumPy and little else; heavy and optional packages wait for their first use.

The time it takes is measured by `python -m benchmarks import`.
"""

import functools
import subprocess
import sys

DEFERRED = ("scipy", "llvmlite", "optree", "rich", "hypothesis", "jax", "torch", "autograd", "pandas", "matplotlib")

LOADED = """
import sys
import numpy
before = set(sys.modules)
import {module}
print(*sorted(set(sys.modules) - before))
"""


@functools.cache
def loaded_by(module: str) -> set[str]:
    """Modules that importing a module adds to those of NumPy."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED.format(module=module)], capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


def test_heavy_packages_are_not_loaded():
    loaded = loaded_by("wengert, wengert.autograd, wengert.numpy")
    assert {name.split(".")[0] for name in loaded}.isdisjoint(DEFERRED)


def test_what_native_code_is_written_with_is_not_loaded():
    unneeded = {f"wengert.native.{name}" for name in ("builder", "cache", "engine", "jobs", "loader")}
    assert unneeded.isdisjoint(loaded_by("wengert"))


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
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["0", "0", "True"]


def test_modules_of_python_that_few_programs_need_are_not_loaded():
    assert {"dataclasses", "fractions", "json", "tempfile"}.isdisjoint(loaded_by("wengert"))
