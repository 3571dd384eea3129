"""A back end that prints programs in C: what a further one takes. It is slow, and for one thread.

    with using(C()):
        wg.jit(f)(x)

A program is a function that gets the addresses of its inputs and outputs, and tells whether it failed; a kernel is
loops in it, and an operation a constant with a name. What the C library does not have is refused.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wengert.kernel.backend import Backend
from wengert.kernel.kernel import (
    Affine,
    Buffer,
    Copy,
    Guard,
    Kernel,
    Loop,
    Operation,
    Program,
    ProgramStep,
    Reduce,
    Run,
    Stage,
    Switch,
)
from wengert.kernel.opcodes import SEARCHING

COMPILER = shutil.which("cc")
OPTIONS = ("-O1", "-fwrapv", "-ffp-contract=off", "-fPIC", "-shared", "-x", "c", "-")
HEAD = """#include <tgmath.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef struct { char *first; int64_t step, room; } rows;
static void grow(rows *x, int64_t k, int64_t size) {
  if (k < x->room) return;
  int64_t room = 2 * k + 8;
  x->first = realloc(x->first, room * size);
  memset(x->first + x->room * size, 0, (room - x->room) * size);
  x->room = room;
  x->step = size;
}
"""
INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "product": "*",
    "divide": "/",
    "equal": "==",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "and": "&",
    "or": "|",
    "xor": "^",
}
OF_BOOL = {"add": "|", "multiply": "&", "product": "&", "subtract": "^"}
CALLED = {
    **{name: name for name in ("sqrt", "floor", "ceil", "rint", "trunc", "copysign", "fma", "hypot", "cbrt", "fmod")},
    **{name: name for name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "erf")},
    **{name: name for name in ("sinh", "cosh", "tanh", "erfc", "nextafter")},
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "power": "pow",
    "long_remainder": "fmod",
}
WRITTEN = {
    "negative": "-{0}",
    "absolute": "({0} < 0 ? -{0} : {0} == 0 ? 0 : {0})",
    "maximum": "({0} >= {1} || {0} != {0} ? {0} : {1})",
    "minimum": "({0} <= {1} || {0} != {0} ? {0} : {1})",
    "floor_divide": "({1} == 0 ? 0 : {0} / {1} - ({0} % {1} != 0 && ({0} < 0) != ({1} < 0)))",
    "select": "({0} ? {1} : {2})",
    "guarded": "({1} == 0 ? 0 : {0})",
    "tanh_derivative": "1 / (cosh({1}) * cosh({1}))",
    "expit": "1 / (1 + exp(-{0}))",
    "log_expit": "-log1p(exp(-{0}))",
}
START = {"add": "0", "multiply": "1", "or": "0", "and": "-1"}


class Code(NamedTuple):
    """A program in C, and the dtypes and shapes of its inputs and outputs."""

    text: str
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]


class C(Backend[Code, "tuple[Any, ...]"]):
    """Carry out programs by what the system's C compiler makes of them."""

    name = "c"

    def render(self, program: Program) -> Code:
        """Return a program in C."""
        buffers = program.buffers_by_name
        if any(buffers[name].grows for name in (*program.inputs, *program.outputs)):
            raise NotImplementedError("rows that grow have no words in C where programs hand them on")
        inputs, outputs = (
            tuple((buffers[name].dtype.str, buffers[name].shape) for name in names)
            for names in (program.inputs, program.outputs)
        )
        lines = function(program, itertools.count())
        return Code("\n".join([HEAD, *lines, "int run(char **a) { return p0(a); }", ""]), inputs, outputs)

    def build(self, code: Code) -> tuple[Any, ...]:
        """Return a shared library."""
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "program.so"
            command = [COMPILER or "cc", *OPTIONS, "-o", str(made), "-lm"]
            done = subprocess.run(command, input=code.text, text=True, capture_output=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr)
            return made.read_bytes(), code.inputs, code.outputs

    def load(self, image: tuple[Any, ...]) -> Callable[[Sequence[Any]], list[Any]]:
        """Return what calls a shared library."""
        content, _, outputs = image
        with tempfile.NamedTemporaryFile(suffix=".so") as file:
            file.write(content)
            file.flush()
            run = ctypes.CDLL(file.name).run

        def call(arrays: Sequence[Any]) -> list[Any]:
            made = [np.zeros(shape, dtype) for dtype, shape in outputs]
            given = [np.asarray(array, order="C") for array in arrays]
            run((ctypes.c_void_p * (len(given) + len(made)))(*[x.ctypes.data for x in (*given, *made)]))
            return made

        return call


# Programs and steps


def c_type(dtype: np.dtype[Any], grows: bool = False) -> str:
    """Return C's name of a dtype, or of rows that grow."""
    if grows:
        return "rows"
    if dtype.kind == "f":
        return "double" if dtype.itemsize == 8 else "float"
    return "_Bool" if dtype.kind == "b" else f"{'u' * (dtype.kind == 'u')}int{8 * dtype.itemsize}_t"


def size_of(buffer: Buffer) -> int:
    """Return the bytes of a buffer; rows that grow have theirs elsewhere."""
    return 24 if buffer.grows else buffer.size * buffer.dtype.itemsize


def function(program: Program, numbers: Iterator[int]) -> list[str]:
    """Return the lines of a program, those that its steps run in front."""
    number, before = next(numbers), list[str]()
    lines = [f"static int p{number}(char **a) {{"]
    given = {name: n for n, name in enumerate((*program.inputs, *program.outputs))}
    for b in program.buffers:
        kind = c_type(b.dtype, b.grows)
        if b.name in given:
            lines.append(f"{kind} *{b.name} = ({kind} *)a[{given[b.name]}];")
        elif b.kind == "constant":
            lines.append(f"static const _Alignas(8) char {b.name}_[] = {{{', '.join(map(str, b.contents))}}};")
            lines.append(f"const {kind} *{b.name} = (const {kind} *){b.name}_;")
        else:
            lines.append(f"static {kind} {b.name}[{1 if b.grows else max(b.size, 1)}];")
    if program.failing and program.is_nested:
        lines.append(f"*{program.failing} = 1;")
    buffers = program.buffers_by_name
    for step in program.steps:
        lines += list(kernel(step, buffers)) if isinstance(step, Kernel) else other(step, buffers, numbers, before)
    if program.failing and program.is_nested:
        lines.append(f"*{program.failing} = 0;")
    failed = f"*{program.failing}" if program.failing else "0"
    return [*before, *lines, f"return {failed};", "}"]


def other(step: ProgramStep, buffers: dict[str, Buffer], numbers: Iterator[int], before: list[str]) -> list[str]:
    """Return the lines of a step that is no kernel; programs that it runs are put before."""
    if isinstance(step, Copy) and buffers[step.target].holds_rows_of(buffers[step.source]):
        return [f"{step.target}->first = (char *){step.source}; {step.target}->step = 0;"]
    if isinstance(step, Copy):
        return [f"memcpy({step.target}, {step.source}, {size_of(buffers[step.source])});"]
    if isinstance(step, Run):
        inner = called(step.program, numbers, before)
        own = ["_Bool failed = 0;"] * bool(step.program.failing)
        table = [*step.arguments, *["&failed"] * bool(step.program.failing)]
        pointers = ", ".join(f"(char *){name}" for name in table)
        return ["{", *own, f"char *table[] = {{{pointers}}};", f"if ({inner}(table)) return 1;", "}"]
    if isinstance(step, Switch):
        cases = [
            [f"case {n}:" if n else "default:", *other(x, buffers, numbers, before), "break;"]
            for n, x in enumerate(step.cases)
        ]
        return [f"switch (*{step.index}) {{", *itertools.chain(*cases), "}"]
    if isinstance(step, Loop):
        return list(loop(step, called(step.body, numbers, before), {name for name, b in buffers.items() if b.grows}))
    raise NotImplementedError(f"{step} has no words in C")


def called(program: Program, numbers: Iterator[int], before: list[str]) -> str:
    """Put a program before; return the name of its function."""
    lines = function(program, numbers)
    before += lines
    return next(line for line in reversed(lines) if line.startswith("static int p")).split("(")[0].split()[-1]


def loop(step: Loop, body: str, growing: set[str]) -> Iterator[str]:
    """Yield the lines of a loop: what is carried has memory of its own, into which each result is copied."""
    program, own = step.body, step.body.buffers_by_name
    names = (*program.inputs, *program.outputs)
    constants, rows = ({x.row: x.buffer for x in some} for some in (step.constants, step.rows))
    yield "{"
    for n, name in enumerate(names):
        if name not in constants and name not in rows:
            yield f"static _Alignas(8) char own{n}[{max(size_of(own[name]), 1)}];"
    place = {name: n for n, name in enumerate(names)}
    for x in step.carried:
        yield f"memcpy(own{place[x.into]}, {x.start}, {size_of(own[x.into])});"
    yield f"int64_t rounds = {f'*{step.count}' if step.count else step.rounds}, n = 0;"
    yield f"_Bool going = {f'*{step.starts}' if step.starts else 1};"
    yield f"if (rounds > {step.rounds}) return 1;"
    yield f"char *table[{len(names)}];"
    yield "for (; n < rounds && going; n++) {"
    yield f"int64_t k = {'rounds - 1 - n' if step.reverse else 'n'};"
    for name, n in place.items():
        row = f"(char *){rows.get(name)} + k * {size_of(own[name])}"
        if rows.get(name) in growing:
            row = f"{rows[name]}->first + k * {rows[name]}->step"
            if name in program.outputs:
                yield f"grow({rows[name]}, k, {size_of(own[name])});"
        place_of = row if name in rows else f"(char *){constants[name]}" if name in constants else f"own{n}"
        yield f"table[{n}] = {place_of};"
    yield f"if ({body}(table)) return 1;"
    for x in step.carried:
        source = f"table[{place[x.out]}]" if x.out else x.known
        if x.out != x.into:
            yield f"memcpy(own{place[x.into]}, {source}, {size_of(own[x.into])});"
    yield f"going = {f'*table[{place[step.going]}]' if step.going else 1};"
    yield "}"
    if step.going:
        yield "if (going) return 1;"
    for x in step.carried:
        yield f"memcpy({x.result}, own{place[x.into]}, {size_of(own[x.into])});"
    yield "}"


# Kernels


def kernel(step: Kernel, buffers: dict[str, Buffer]) -> Iterator[str]:
    """Yield the lines of a kernel: its stages, one after the other, for each row."""
    shared = [(s, r) for s in step.stages for r in s.reductions if r.kind in ("total", "column")]
    yield "{"
    for stage, reduction in shared:
        yield from started(stage, reduction, (0, *range(1, len(stage.extents))))
    yield f"for (int64_t at0 = 0; at0 < {step.rows}; at0++) {{"
    for stage in step.stages:
        for r in stage.reductions:
            kind = c_type(stage.operations[r.value].dtype)
            if r.kind == "row":
                yield f"{kind} {r.into} = {start(r, stage)};"
            elif r.kind == "nested":
                yield from started(stage, r, range(1, len(stage.extents)))
        yield from nested(stage, range(1, len(stage.extents)), body(stage))
    for keep in step.kept:
        yield f"{keep.buffer}[{index(keep.at)}] = {keep.number};"
    yield "} }"


def started(stage: Stage, reduction: Reduce, dimensions: Sequence[int]) -> Iterator[str]:
    """Yield what fills the cells of a reduction at first."""
    assert reduction.at is not None
    kept = [d for d in dimensions if d not in reduction.over]
    yield from nested(stage, kept, [f"{reduction.into}[{index(reduction.at)}] = {start(reduction, stage)};"])


def nested(stage: Stage, dimensions: Sequence[int], lines: Sequence[str]) -> Iterator[str]:
    """Yield lines in loops over some dimensions."""
    for d in dimensions:
        yield f"for (int64_t at{d} = 0; at{d} < {stage.extents[d]}; at{d}++)"
    yield from ["{", *lines, "}"]


def start(reduction: Reduce, stage: Stage) -> str:
    """Return what changes nothing where it is combined with a number."""
    dtype = stage.operations[reduction.value].dtype
    if reduction.combine in START:
        return START[reduction.combine]
    is_least = reduction.combine == "maximum"
    if dtype.kind == "f":
        return "-INFINITY" if is_least else "INFINITY"
    if dtype.kind == "b":
        return "0" if is_least else "1"
    return constant(getattr(np.iinfo(dtype), "min" if is_least else "max"))


def body(stage: Stage) -> list[str]:
    """Return the lines of what is done at each point."""
    lines = []
    for n, operation in enumerate(stage.operations):
        lines.append(f"const {c_type(operation.dtype)} op{n} = {value(operation, stage)};")
    for store in stage.stores:
        lines.append(f"if ({holds(store.guard)}) {store.buffer}[{index(store.at)}] = op{store.value};")
    for update in stage.updates:
        lines.append(f"{update.buffer}[op{update.index}] {'+' * update.add}= op{update.value};")
    for r in stage.reductions:
        cell = r.into if r.at is None else f"{r.into}[{index(r.at)}]"
        dtype = stage.operations[r.value].dtype
        if r.kind != "scan":
            lines.append(f"{cell} = {computed(r.combine, dtype, [cell, f'op{r.value}'])};")
            continue
        assert r.at is not None
        (over,) = r.over
        before = f"{r.into}[{index(Affine(r.at.constant - r.at.coefficients[over], r.at.coefficients))}]"
        scaled = before if r.factor is None else f"({before} * op{r.factor})"
        lines.append(f"{cell} = at{over} ? {computed(r.combine, dtype, [scaled, f'op{r.value}'])} : op{r.value};")
    return lines


def value(operation: Operation, stage: Stage) -> str:
    """Return what computes an operation."""
    name, operands = operation.name, [f"op{n}" for n in operation.operands]
    if name == "constant":
        return constant(operation.value)
    if name == "number":
        return operation.buffer
    if name == "pick":
        return f"{holds(operation.guard)} ? {operands[0]} : {operands[1]}"
    if name == "convert":
        return converted(operands[0], stage.operations[operation.operands[0]].dtype, operation.dtype)
    if name in SEARCHING:
        raise NotImplementedError(f"{name} has no words in C")
    if operation.at is None:
        dtype = stage.operations[operation.operands[-1]].dtype
        return computed(name, dtype, operands)
    where = " + ".join([index(operation.at), *operands])
    return where if name == "index" else f"{holds(operation.guard)} ? {operation.buffer}[{where}] : 0"


def computed(name: str, dtype: np.dtype[Any], operands: Sequence[str]) -> str:
    """Return what an opcode makes of operands."""
    if name in INFIX:
        sign = OF_BOOL.get(name, INFIX[name]) if dtype.kind == "b" else INFIX[name]
        return f"({operands[0]} {sign} {operands[1]})"
    if name == "not":
        return f"{'!' if dtype.kind == 'b' else '~'}{operands[0]}"
    if name in CALLED and dtype.kind == "f":
        return f"{CALLED[name]}({', '.join(operands)})"
    if name not in WRITTEN:
        raise NotImplementedError(f"{name} of {dtype} has no words in C")
    return WRITTEN[name].format(*operands)


def converted(x: str, given: np.dtype[Any], wanted: np.dtype[Any]) -> str:
    """Return a number as one of another dtype; small integers come from larger ones."""
    through = "(int64_t)" if given.kind == "f" and wanted.kind in "iu" and wanted.itemsize < 8 else ""
    return f"({c_type(wanted)}){through}{x}"


def constant(number: float) -> str:
    """Return a number to the bit."""
    if isinstance(number, float):
        special = "NAN" if math.isnan(number) else "INFINITY" if math.isinf(number) else abs(number).hex()
        return f"{'-' * (math.copysign(1, number) < 0)}{special}"
    return f"({number + 1} - 1)" if number == -(1 << 63) else f"({int(number)})"


def index(at: Affine) -> str:
    """Return an index map as a sum."""
    return " + ".join([str(at.constant), *[f"{c} * at{d}" for d, c in enumerate(at.coefficients) if c]])


def holds(guard: Guard) -> str:
    """Return whether a guard holds."""
    return " && ".join([f"{b.low} <= at{b.dimension} && at{b.dimension} < {b.high}" for b in guard]) or "1"
