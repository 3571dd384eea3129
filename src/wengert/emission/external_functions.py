"""Functions that programs call and do not have: compiled once for all of them, since they take as long as a program.

Their names say what they are, so that code which was kept needs nothing but the names: `function_named` knows the rest.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from wengert.emission.instructions import Case, from_memory, in_memory, in_register, instructions_of
from wengert.emission.mathematics import Specialisation, function_of_body, is_rare, rare_of, template_of
from wengert.emission.products.correlation_tiles import correlation_kernel
from wengert.emission.products.correlations import CORRELATION, CORRELATIONS
from wengert.emission.products.product_functions import PRODUCTS, product
from wengert.emission.products.product_plans import PRODUCT
from wengert.emission.routines.band_routines import BANDED, band_kernel
from wengert.emission.routines.front_routines import FRONTS, front_kernel
from wengert.emission.routines.lapack_problems import LAPACK
from wengert.emission.routines.lapack_routines import lapack_kernel
from wengert.emission.routines.matrix_lanes import LANES, lanes_kernel
from wengert.emission.routines.matrix_problems import MATRICES
from wengert.emission.routines.matrix_routines import SMALL, small
from wengert.emission.routines.sort_routines import SORTS, sort_kernel
from wengert.emission.routines.sparse_routines import SPARSE, sparse_kernel
from wengert.emission.stages import added_exactly, correct_total
from wengert.kernel.opcodes import OPCODES
from wengert.native.builder import Builder, program
from wengert.native.engine import Target, emit_object, host, link_object
from wengert.native.functions import NativeFunction
from wengert.native.interrupts import LOOK_UP, look_up_now
from wengert.native.loader import kept_function, load_code
from wengert.native.row_pool import TAKE_ROOM, room_for_rows
from wengert.native.structs import (
    BOOL,
    I8,
    I32,
    I64,
    VOID,
    Array,
    Pointer,
    Signature,
    Struct,
    Type,
    like,
    vector_of,
)
from wengert.native.threads.job_tables import INNER_LOOP
from wengert.native.threads.jobs import ALL, SHARE, clear_conditions, met_conditions, raise_conditions, share
from wengert.native.values import Value
from wengert.support.machine import CONDITIONS
from wengert.support.records import NamedTuple


@functools.cache
def declaration_of(name: str, target: Target) -> NativeFunction:
    """Return a function as programs call it, which do not have its body."""
    return function_named(name, target).replace(body=None)


def address_of(name: str, target: Target) -> int:
    """Return the address of a function, which is compiled once, or taken from the cache."""
    return kept_function(name, text_of) if target == host() else address_for(name, target)


def text_of(name: str) -> str:
    """Return the module of a function for this processor."""
    return program(function_named(name, host()))


@functools.cache
def address_for(name: str, target: Target) -> int:
    """Return the address of a function as if this were another processor, which can do less."""
    code = load_code(link_object(emit_object(program(function_named(name, target)), target)))
    code.stay()
    return code.addresses[name]


def function_named(name: str, target: Target) -> NativeFunction:
    """Return the function of a name: one of OWN or of mathematics, or as "merge.add.float64" says."""
    if name in OWN:
        return OWN[name]
    if is_rare(name):
        return rare_of(Specialisation.from_name(name, target))
    what = name.partition(".")[0]
    if what in ROUTINES:
        return ROUTINES[what].write(name, target)
    _, own, dtype = name.split(".")
    write = {LOOP: inner_loop, TOTAL: total_function}.get(what, merge_function)
    return write(name, own, np.dtype(dtype), target)


class RoutineFamily(NamedTuple):
    """Say what routines of one kind are given, and what writes one.

    Attributes:
        fields: what stands at the beginning of their arena, by the names of an `Invoke`; its field `work` says how many
            bytes it is from there to the memory that they need.
        write: gives the function of a name, a KERNEL.
    """

    fields: Struct
    write: Callable[[str, Target], NativeFunction]


ROUTINES = {
    SMALL: RoutineFamily(MATRICES, small),
    LAPACK: RoutineFamily(MATRICES, lapack_kernel),
    BANDED: RoutineFamily(MATRICES, band_kernel),
    FRONTS: RoutineFamily(MATRICES, front_kernel),
    SPARSE: RoutineFamily(MATRICES, sparse_kernel),
    LANES: RoutineFamily(MATRICES, lanes_kernel),
    SORTS: RoutineFamily(MATRICES, lambda name, _: sort_kernel(name)),
    PRODUCTS: RoutineFamily(PRODUCT, product),
    CORRELATIONS: RoutineFamily(CORRELATION, correlation_kernel),
}
"""The routines that programs invoke, by what their names begin with, up to the first "."."""


TOTAL = "total"
OWN = {SHARE: share, TAKE_ROOM: room_for_rows, LOOK_UP: look_up_now}


def total_function(name: str, combine: str, dtype: np.dtype[np.generic], target: Target) -> NativeFunction:
    """Return the function that adds what rows have added up to totals, and begins anew.

    Its arguments are the address of what they have added up, how many numbers that are, and how far from it totals lie,
    and from these what their roundings have lost, but for those of what is not finite.
    """
    scalar = in_memory(dtype)
    whole = vector_of(scalar, target.vector_bytes // dtype.itemsize)

    def add(b: Builder, kind: Type, place: Value, room: Value) -> None:
        part, total, lost = (x.to(kind) for x in (place, place.at(room), place.at(room + room)))
        new, error = added_exactly(total.load(), part.load())
        is_finite = b.compare("olt", b.intrinsic("fabs", kind, new), b.constant(kind, math.inf))
        total.store(new)
        lost.store(lost.load() + b.select(is_finite, error, b.constant(kind, 0)))
        part.store(b.constant(kind, 0))

    def body(b: Builder, place: Value, size: Value, room: Value) -> None:
        with b.when(size.equals(1)):  # numbers are read as they were written
            add(b, scalar, place, room)
            b.give()
        with b.loop(size, step=whole.count) as cells:
            add(b, whole, place.at(cells.index), room)

    return NativeFunction(name, Signature(VOID, (Pointer(scalar), I64, I64)), body)


def merge_function(name: str, combine: str, dtype: np.dtype[np.generic], target: Target) -> NativeFunction:
    """Return the function that combines what parts have given, in their order: whole vectors, as parts have room for.

    Its arguments are the address of the result, that of the first part's numbers, how many numbers there are, how far
    parts lie apart, and where parts stop. What the roundings of a sum lose is added in the end.
    """
    scalar = in_memory(dtype)
    kind = vector_of(scalar, target.vector_bytes // dtype.itemsize)
    case = Case(dtype, dtype, target)

    def merge_parts(b: Builder, first: Value, apart: Value, stop: Value) -> Value:
        start = from_memory(first.to(kind).load(), dtype)
        with b.loop(stop, apart, [start, *lost_at_first(b, start)]) as others:
            others.step = apart
            more = from_memory(first.at(others.index).to(kind).load(), dtype)
            total, *lost = others.values
            if lost:
                new, error = added_exactly(total, more)
                others.next(new, lost[0] + error)
            else:
                others.next(instructions_of(combine)(b, case, more, total))
        total, *lost = others.results
        return correct_total(total, *lost) if lost else total

    def lost_at_first(b: Builder, start: Value) -> list[Value]:
        return [b.constant(start.type, 0)] if combine == "add" and dtype.kind == "f" else []

    def body(b: Builder, result: Value, parts: Value, size: Value, apart: Value, stop: Value) -> None:
        with b.loop(size, step=kind.count) as cells:
            first = parts.at(cells.index)
            found = merge_parts(b, first, apart, stop)
            first.to(kind).store(b.convert("zext", found, I8) if dtype.kind == "b" else found)
        with b.loop(size) as cells:
            result.at(cells.index).store(parts.at(cells.index).load())

    return NativeFunction(name, Signature(VOID, (Pointer(scalar), Pointer(scalar), I64, I64, I64)), body)


# Our own functions on large arrays, outside of programs: in the form of NumPy's inner loops, which a team shares

LOOP = "loop"
REPORTED = CONDITIONS["invalid"] | CONDITIONS["divide"] | CONDITIONS["over"]
"""The floating-point conditions that NumPy reports by default."""


def inner_loop(name: str, function: str, dtype: np.dtype[np.generic], target: Target) -> NativeFunction:
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

    return NativeFunction(name, INNER_LOOP, body)


def suspect(b: Builder, found: Value, xs: list[Value]) -> Value:
    """Return where a result is no number though all arguments are, or is not finite though they are."""
    infinite, none = b.constant(found.type, np.inf), b.constant(like(found.type, BOOL), 0)
    endless, nan = none, none  # where an argument is not finite, and where one is no number
    for x in xs:
        endless = endless | b.compare("uge", b.intrinsic("fabs", x.type, x), infinite)
        nan = nan | b.compare("uno", x, x)
    size = b.intrinsic("fabs", found.type, found)
    return b.select(endless, none, b.compare("uge", size, infinite)) | b.select(nan, none, b.compare("uno", size, size))
