"""Our own functions on large arrays, outside of programs: in the form of NumPy's inner loops, which a team shares."""

from __future__ import annotations

import numpy as np

from wengert.emission.instructions import in_register
from wengert.emission.mathematics import Specialisation, function_of_body, template_of
from wengert.kernel.opcodes import OPCODES
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.functions import Function
from wengert.native.inner_loops import INNER_LOOP
from wengert.native.jobs import ALL, clear_conditions, met_conditions, raise_conditions
from wengert.native.processor import CONDITIONS
from wengert.native.structs import BOOL, I32, Array, like, vector_of
from wengert.native.values import Value

LOOP = "loop"
REPORTED = CONDITIONS["invalid"] | CONDITIONS["divide"] | CONDITIONS["over"]


def inner_loop(name: str, function: str, dtype: np.dtype[np.generic], target: Target) -> Function:
    """Return one of our functions as an inner loop: of elements side by side, or of one number and such elements.

    It raises conditions where NumPy might report one, and none else: where a result is no number of numbers, or
    infinite of finite ones. NumPy then computes again, and knows which.
    """
    own, result = function_of_body(function)
    width = target.vector_bytes // dtype.itemsize
    scalar, kind = in_register(dtype), vector_of(in_register(dtype), width)
    form = Specialisation(own, dtype, width, target)

    def body(b: Builder, addresses: Value, sizes: Value, strides: Value, _data: Value) -> None:
        count, before = sizes.load(), b.call(met_conditions, ALL)
        places, steps = [], []
        for n in range(OPCODES[function].arity):
            place = addresses.at(n).load().to(scalar)
            same = b.stack(Array(scalar, width))
            same.to(kind).store(b.spread(place.load(), width))
            step = strides.at(n).load() // dtype.itemsize
            places.append(b.select(step.equals(0), same, place))
            steps.append(step)
        out = addresses.at(len(places)).load().to(scalar)
        lanes = b.numbers(I32, range(width))
        with b.loop(count, step=width, carry=[b.constant(vector_of(BOOL, width), 0)]) as loop:
            left = b.convert("trunc", b.least(count - loop.index, width), I32)
            there = b.compare("slt", lanes, b.spread(left, width))
            pairs = zip(places, steps, strict=True)
            xs = [place.at(loop.index * step).to(kind).load_where(there) for place, step in pairs]
            found = b.paste(template_of(form), *xs)[result]
            out.at(loop.index).to(kind).store_where(found, there)
            loop.next(loop.values[0] | suspect(b, found, xs))
        bad = b.intrinsic("vector.reduce.or", BOOL, loop.results[0], of=(loop.results[0].type,))
        b.do(clear_conditions, ALL)
        b.do(raise_conditions, b.select(bad, before | REPORTED, before))

    return Function(name, INNER_LOOP, body)


def suspect(b: Builder, found: Value, xs: list[Value]) -> Value:
    """Return where a result is no number though all arguments are, or is not finite though they are."""
    infinite, none = b.constant(found.type, np.inf), b.constant(like(found.type, BOOL), 0)
    endless, nan = none, none  # where an argument is not finite, and where one is no number
    for x in xs:
        endless = endless | b.compare("uge", b.intrinsic("fabs", x.type, x), infinite)
        nan = nan | b.compare("uno", x, x)
    size = b.intrinsic("fabs", found.type, found)
    return b.select(endless, none, b.compare("uge", size, infinite)) | b.select(nan, none, b.compare("uno", size, size))
