"""Greedy colouring in machine code, with sets of colours as bits; `greedy_coloring` says what each function does.

All arrays are of I32 but for sets of colours, which are of I64: `words` of them a set.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from wengert.native.builder import Builder, program
from wengert.native.functions import NativeFunction, native
from wengert.native.loader import kept_code
from wengert.native.structs import I8, I32, I64, VOID, Pointer
from wengert.native.values import Operand, Value
from wengert.support import config

P32, P64 = Pointer(I32), Pointer(I64)
WORD = 64
LIST_LENGTH = 16
"""Neighbours of a row up to which their colours are read one by one, rather than the set of them."""


def load_index(place: Value, i: Operand) -> Value:
    """Load a number that is not negative, as one to count with."""
    return place.at(i).load().widen(I64)


def place_of(b: Builder, sets: Value, owner: Operand, words: Value, colour: Value) -> Value:
    """Return the address of the word of a set that a colour is in; the sets are those of `owner`s."""
    word = b.binary("lshr", colour, 6)
    return sets.at(word if isinstance(owner, int) else owner * words + word)


def holds(b: Builder, sets: Value, owner: Operand, words: Value, colour: Value) -> Value:
    """Return whether a set has a colour."""
    word = place_of(b, sets, owner, words, colour).load()
    return (b.binary("lshr", word, colour & (WORD - 1)) & 1).differs(0)


def put_colour(b: Builder, sets: Value, owner: Operand, words: Value, colour: Value) -> None:
    """Add a colour to a set."""
    place = place_of(b, sets, owner, words, colour)
    place.store(place.load() | b.binary("shl", b.constant(I64, 1), colour & (WORD - 1)))


def unite(b: Builder, into: Value, sets: Value, owner: Operand, words: Value) -> None:
    """Add all colours of a set to another."""
    first = sets if isinstance(owner, int) else sets.at(owner * words)
    with b.loop(words, certain=True) as word:
        place = into.at(word.index)
        place.store(place.load() | first.at(word.index).load())


def clear(b: Builder, words: Value, *sets: Value) -> None:
    """Take all colours out of sets."""
    with b.loop(words, certain=True) as word:
        for one in sets:
            one.at(word.index).store(0)


@native(I64, P64, I64)
def first_free(b: Builder, taken: Value, words: Value) -> None:
    """Return the least colour that a set has not; as many as it can hold if it has all."""
    with b.loop(words, certain=True) as word:
        free = b.binary("xor", taken.at(word.index).load(), -1)
        with b.when(free.differs(0)):
            b.give(b.intrinsic("cttz", I64, free, True, of=(I64,)) + word.index * WORD)
    b.give(words * WORD)


@native(I64, I64, P32, P32, P32, P32, P32, P32, P32, P64, P64, I64)
def color_apart(
    b: Builder,
    count: Value,
    order: Value,
    starts: Value,
    rows: Value,
    row_starts: Value,
    columns: Value,
    owners: Value,
    colours: Value,
    sets: Value,
    taken: Value,
    words: Value,
) -> None:
    """Colour columns in an order, so that those of one row differ; return how many colours, or -1 if sets are full.

    Rows have sets of the colours of their columns, number `owners[row]`; short ones (-1) have none.
    """
    with b.loop(count, carry=[0]) as each:
        v = load_index(order, each.index)
        low, high = load_index(starts, v), load_index(starts, v + 1)
        clear(b, words, taken)
        with b.loop(high, low) as k:
            row = load_index(rows, k.index)
            owner = owners.at(row).load()
            with b.when(owner >= 0) as listed:
                unite(b, taken, sets, owner.widen(I64), words)
            with listed, b.loop(load_index(row_starts, row + 1), load_index(row_starts, row)) as j:
                colour = colours.at(load_index(columns, j.index)).load()
                with b.when(colour >= 0):
                    put_colour(b, taken, 0, words, colour.widen(I64))
        chosen = b.call(first_free, taken, words)
        b.give_if(chosen >= words * WORD, -1)
        with b.loop(high, low) as k:
            owner = owners.at(load_index(rows, k.index)).load()
            with b.when(owner >= 0):
                put_colour(b, sets, owner.widen(I64), words, chosen)
        colours.at(v).store(b.convert("trunc", chosen, I32))
        most = each.values[0]
        each.next(b.select(chosen >= most, chosen + 1, most))
    b.give(each.results[0])


@native(I64, I64, P32, P32, P32, P32, P64, P64, P64, P64, I64)
def color_stars(
    b: Builder,
    count: Value,
    order: Value,
    starts: Value,
    neighbours: Value,
    colours: Value,
    near: Value,
    twice: Value,
    hubs: Value,
    taken: Value,
    words: Value,
) -> None:
    """Colour vertices in an order, so that two colours make stars; return how many, or -1 if sets are full."""
    with b.loop(count, carry=[0]) as each:
        v = load_index(order, each.index)
        clear(b, words, taken)
        unite(b, taken, near, v, words)
        with b.loop(load_index(starts, v + 1), load_index(starts, v)) as k:
            w = load_index(neighbours, k.index)
            with b.when(colours.at(w).load() >= 0) as has_colour:
                unite(b, taken, hubs, w, words)
            with has_colour:
                unite(b, taken, near, w, words)
        chosen = b.call(first_free, taken, words)
        b.give_if(chosen >= words * WORD, -1)
        b.do(enter_stars, v, chosen, starts, neighbours, colours, near, twice, hubs, words)
        colours.at(v).store(b.convert("trunc", chosen, I32))
        most = each.values[0]
        each.next(b.select(chosen >= most, chosen + 1, most))
    b.give(each.results[0])


@native(VOID, I64, I64, P32, P32, P32, P64, P64, P64, I64)
def enter_stars(
    b: Builder,
    v: Value,
    chosen: Value,
    starts: Value,
    neighbours: Value,
    colours: Value,
    near: Value,
    twice: Value,
    hubs: Value,
    words: Value,
) -> None:
    """Note the stars that a vertex of a chosen colour, which `colours` has not yet, makes with its neighbours."""
    mark = b.convert("trunc", chosen, I32)
    with b.loop(load_index(starts, v + 1), load_index(starts, v)) as k:
        w = load_index(neighbours, k.index)
        colour = colours.at(w).load()
        with b.when(colour >= 0), b.when(holds(b, near, w, words, chosen)):  # w is the hub of v and others
            colour = colour.widen(I64)
            put_colour(b, hubs, v, words, colour)
            with b.when(holds(b, twice, w, words, chosen).equals(0)):
                put_colour(b, twice, w, words, chosen)
                with b.loop(load_index(starts, w + 1), load_index(starts, w)) as j:
                    x = load_index(neighbours, j.index)
                    with b.when(colours.at(x).load().equals(mark)):
                        put_colour(b, hubs, x, words, colour)
        put_colour(b, near, w, words, chosen)


@native(VOID, I64, P32, P32, P32, P64, P64, Pointer(I8))
def mark_repeated(
    b: Builder,
    count: Value,
    starts: Value,
    neighbours: Value,
    colours: Value,
    seen: Value,
    again: Value,
    repeated: Value,
) -> None:
    """Tell of each neighbour of each vertex whether another one has its colour."""
    with b.loop(count) as each:
        v, mark = each.index, each.index + 1
        low, high = load_index(starts, v), load_index(starts, v + 1)
        with b.loop(high, low) as k:
            colour = load_index(colours, load_index(neighbours, k.index))
            with b.when(seen.at(colour).load().equals(mark)):
                again.at(colour).store(mark)
            seen.at(colour).store(mark)
        with b.loop(high, low) as k:
            colour = load_index(colours, load_index(neighbours, k.index))
            both = again.at(colour).load().equals(mark)
            repeated.at(k.index).store(b.select(both, b.constant(I8, 1), 0))


def unlink(b: Builder, v: Value, key: Value, heads: Value, following: Value, before: Value) -> None:
    """Take a vertex out of the list of those that have a key."""
    after, ahead = following.at(v).load(), before.at(v).load()
    with b.when(ahead >= 0) as first:
        following.at(ahead.widen(I64)).store(after)
    with first:
        heads.at(key).store(after)
    with b.when(after >= 0):
        before.at(after.widen(I64)).store(ahead)


def link(b: Builder, v: Value, key: Value, heads: Value, following: Value, before: Value) -> None:
    """Put a vertex in front of the list of those that have a key."""
    after = heads.at(key).load()
    mark = b.convert("trunc", v, I32)
    following.at(v).store(after)
    before.at(v).store(-1)
    heads.at(key).store(mark)
    with b.when(after >= 0):
        before.at(after.widen(I64)).store(mark)


@native(VOID, I64, I64, I64, I64, I64, P32, P32, P32, P32, P32, P32, P32, P32, P32)
def order_by_degree(
    b: Builder,
    count: Value,
    first: Value,
    search: Value,
    change: Value,
    longest: Value,
    starts: Value,
    rows: Value,
    row_starts: Value,
    columns: Value,
    keys: Value,
    heads: Value,
    following: Value,
    before: Value,
    order: Value,
) -> None:
    """Take columns one by one by their keys, which change by `change` for those that share a row with what was taken.

    `heads` are lists of the columns of a key, `search` is 1 to take the least key and -1 for the largest, from `first`
    on, and what was taken has the key -1. Rows longer than `longest` change nothing.
    """
    at = b.stack(I64)
    at.store(first)
    with b.loop(count) as each:
        with b.section() as leave, b.forever():
            with b.when(heads.at(at.load()).load() >= 0):
                leave()
            at.store(at.load() + search)
        v = load_index(heads, at.load())
        unlink(b, v, at.load(), heads, following, before)
        keys.at(v).store(-1)
        order.at(each.index).store(b.convert("trunc", v, I32))
        with b.loop(load_index(starts, v + 1), load_index(starts, v)) as k:
            row = load_index(rows, k.index)
            low, high = load_index(row_starts, row), load_index(row_starts, row + 1)
            with b.when(high - low <= longest), b.loop(high, low) as j:
                u = load_index(columns, j.index)
                key = keys.at(u).load()
                with b.when(key >= 0):
                    old = key.widen(I64)
                    new = old + change
                    unlink(b, u, old, heads, following, before)
                    link(b, u, new, heads, following, before)
                    keys.at(u).store(b.convert("trunc", new, I32))
                    with b.when(((at.load() - new) * search) > 0):
                        at.store(new)


EXPORTED: tuple[NativeFunction, ...] = (color_apart, color_stars, mark_repeated, order_by_degree)


@functools.cache
def functions() -> dict[str, Any] | None:
    """Return the functions by their names, to be called with arrays; None where there is no native code."""
    if not config.NATIVE:
        return None
    try:
        addresses = kept_code(program(*EXPORTED)).addresses
    except (AttributeError, ImportError, OSError, RuntimeError):
        return None
    found = {}
    for function in EXPORTED:
        kinds = [ctypes.c_int64 if kind == I64 else ctypes.c_void_p for kind in function.signature.parameters]
        returns = ctypes.c_int64 if function.signature.returns == I64 else None
        found[function.name] = with_arrays(ctypes.CFUNCTYPE(returns, *kinds)(addresses[function.name]))
    return found


def with_arrays(function: Any) -> Any:
    """Return a native function that takes arrays, which are in C order, in place of addresses."""

    def call(*arguments: Any) -> Any:
        return function(*(x.ctypes.data if isinstance(x, np.ndarray) else int(x) for x in arguments))

    return call
