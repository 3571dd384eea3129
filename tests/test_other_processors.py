"""Native code for AArch64 with NEON, run by an emulator where one and a cross compiler are installed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases import some_of
from tests.kernels import as_if, inputs_for, random_program
from tests.test_emission import DOUBLE, SPECIAL, functions_of, halves, rosenbrock, without_functions
from wengert.emission.external_functions import function_named
from wengert.emission.rendering import emit_program
from wengert.kernel.evaluation import evaluate
from wengert.kernel.functions import FUNCTIONS, Features, evaluate_expression, expression_of
from wengert.kernel.kernel import Program
from wengert.kernel.opcodes import OPCODES
from wengert.native.builder import program
from wengert.native.engine import Target, emit_assembly, emit_object

ARM = Target("aarch64-unknown-linux-gnu", "generic", "+neon")
COMPILER, EMULATOR = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64-static")
FLAT = np.dtype(np.int64)

pytestmark = pytest.mark.skipif(not (COMPILER and EMULATOR), reason="there is no cross compiler or no emulator")

HARNESS = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void run(void **addresses, void *memory, void *team);

static void *room(int64_t bytes) {
    void *made = aligned_alloc(128, (bytes / 128 + 1) * 128);
    memset(made, 0, bytes);
    return made;
}

static int64_t number(void) {
    int64_t found;
    if (fread(&found, sizeof found, 1, stdin) != 1) exit(2);
    return found;
}

static void filled(char *place, int64_t bytes) {
    if (fread(place, 1, bytes, stdin) != (size_t)bytes) exit(3);
}

int main(void) {
    int64_t inputs = number(), outputs = number(), constants = number();
    char *memory = room(number());
    int64_t *sizes = room(8 * (inputs + outputs));
    void **addresses = room(8 * (inputs + outputs));
    for (int64_t n = 0; n < inputs + outputs; n++) addresses[n] = room(sizes[n] = number());
    for (int64_t n = 0; n < constants; n++) {
        int64_t place = number(), bytes = number();
        filled(memory + place, bytes);
    }
    for (int64_t n = 0; n < inputs; n++) filled(addresses[n], sizes[n]);
    run(addresses, memory, NULL);
    for (int64_t n = inputs; n < inputs + outputs; n++) fwrite(addresses[n], 1, sizes[n], stdout);
    return 0;
}
"""


def object_of(text: str) -> bytes:
    """Return a module's object code; LLVM may have been built without this processor."""
    try:
        return emit_object(text, ARM)
    except RuntimeError as error:
        pytest.skip(str(error))


def emulated(made: Program, arrays: Sequence[Any], folder: Path) -> list[Any]:
    """Return the outputs of a program as an emulated processor computes them, without a team."""
    code = emit_program(made, ARM)
    objects = {"run": object_of(code.text)}
    for name in code.outside:
        objects[name] = object_of(program(function_named(name, ARM)))
    (folder / "main.c").write_text(HARNESS)
    for name, image in objects.items():
        (folder / f"{name}.o").write_bytes(image)
    files = [f"{name}.o" for name in objects]
    build = [str(COMPILER), "-static", "-O1", "-o", "whole", "main.c", *files, "-lm"]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    buffers = made.buffers_by_name
    outputs = [buffers[name] for name in made.outputs]
    sizes = [array.nbytes for array in arrays] + [b.size * b.dtype.itemsize for b in outputs]
    given = np.array([len(arrays), len(outputs), len(code.constants), code.size, *sizes], FLAT).tobytes()
    for place, contents in code.constants:
        given += np.array([place, len(contents)], FLAT).tobytes() + contents
    given += b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    answer = subprocess.run([str(EMULATOR), "./whole"], cwd=folder, check=True, capture_output=True, input=given)
    found, rest = [], answer.stdout
    for buffer in outputs:
        size = buffer.size * buffer.dtype.itemsize
        found.append(np.frombuffer(rest[:size], buffer.dtype).reshape(buffer.shape))
        rest = rest[size:]
    assert not rest
    return found


def test_vectors_are_of_neon() -> None:
    text = emit_assembly(emit_program(rosenbrock(200), ARM).text, ARM)
    assert ".2d" in text  # two numbers in a register


def test_neighbours(tmp_path: Path) -> None:
    made = rosenbrock(200)
    x = np.random.default_rng(0).normal(size=200)
    for got, expected in zip(emulated(made, [x], tmp_path), evaluate(made, [x]), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", some_of(range(45), "aarch64"))
def test_random_programs(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_if(monkeypatch, written_vectors=(0, 1, 4)[seed % 3])  # so that short loops are loops, too
    made = without_functions(random_program(seed))
    inputs = halves(inputs_for(made, seed))
    for got, expected in zip(emulated(made, inputs, tmp_path), evaluate(made, inputs), strict=True):
        rounding = {"d": 1e-12, "f": 1e-5}.get(got.dtype.char, 0)
        np.testing.assert_allclose(got, expected, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("dtype", [DOUBLE, np.dtype(np.float32)], ids=str)
def test_functions_have_the_bits_of_their_expressions(dtype: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        x = np.concatenate([SPECIAL, random.normal(size=63) * 5, random.normal(size=20) * 1e3]).astype(dtype)
    y = random.permutation(x)
    names = tuple(FUNCTIONS)
    found = emulated(functions_of(names, dtype, len(x), 1), [x, y], tmp_path)
    features = Features(fma=ARM.fuses, scaling=ARM.scales)
    for name, got in zip(names, found, strict=True):
        (expected,) = evaluate_expression(expression_of(name, dtype, features), *(x, y)[: OPCODES[name].arity])
        np.testing.assert_array_equal(got, expected, name)
