"""Memory for rows that grow: a pool of the call, whose memory comes first from its arena, then from the system.

The pieces from the system are each twice as large as the one before; all are given back when the call ends. What a
part of a program took of the last one is used again after it, if its results are no rows that grow: so the rows of an
inner loop take as much as for one iteration of the outer one.
"""

from __future__ import annotations

from wengert.native.builder import Builder
from wengert.native.executable import ENDLESS
from wengert.native.functions import NativeFunction, external
from wengert.native.growing_rows import GROWING
from wengert.native.structs import BOOL, I8, I64, POINTER, VOID, Pointer, Signature, Struct
from wengert.native.values import Value
from wengert.support.machine import MACHINE

POOL = Struct(
    "Pool",
    memory=POINTER,
    used=I64,  # bytes of it
    size=I64,
    pieces=POINTER,  # the last of those that came from the system, each of which begins with the address of another
)

allocate = external("malloc", POINTER, I64)
allocate_aligned = external("aligned_alloc", POINTER, I64, I64)
free = external("free", VOID, POINTER)
move_bytes = external("memcpy", POINTER, POINTER, POINTER, I64)


def take_room(b: Builder, pool: Value, rows: Value, count: Value, step: Value, before: Value) -> None:
    """Give rows more room, and copy those there are; return whether there is none."""
    size = (count * step + (MACHINE.apart - 1)) & -MACHINE.apart
    with b.when(pool.get("size") < pool.get("used") + size):
        twice = pool.get("size") * 2
        more = (b.select(twice < size, size, twice) + (MACHINE.apart - 1)) & -MACHINE.apart
        piece = b.call(allocate_aligned, MACHINE.apart, more + MACHINE.apart)
        with b.when(piece.equals(None)):
            b.give(True)
        piece.to(POINTER).store(pool.get("pieces"))
        pool.set("pieces", piece)
        pool.set("memory", piece.to(I8).at(MACHINE.apart).as_address())
        pool.set("used", 0)
        pool.set("size", more)
    room = pool.get("memory").to(I8).at(pool.get("used")).as_address()
    pool.set("used", pool.get("used") + size)
    with b.when(before.differs(0)):
        b.do(move_bytes, room, rows.get("first"), before * step)
    rows.set("first", room)
    rows.set("step", step)
    b.give(False)


TAKE_ROOM = "take_room"
room_for_rows = NativeFunction(
    TAKE_ROOM, Signature(BOOL, (Pointer(POOL), Pointer(GROWING), I64, I64, I64)), take_room, rare=True, brief=True
)


def repeat_row(rows: Value, row: Value) -> None:
    """Write that one row stands for all rows."""
    described = rows.to(GROWING)
    described.set("first", row.as_address())
    described.set("step", 0)
    described.set("count", ENDLESS)


def begin_pool(pool: Value, memory: Value, size: int) -> None:
    """Write that a pool begins with some memory."""
    pool.set("memory", memory.as_address())
    pool.set("used", 0)
    pool.set("size", size)
    pool.set("pieces", None)


def mark_pool(pool: Value) -> tuple[Value, Value]:
    """Return the last piece of a pool, and how much of its memory is used."""
    return pool.get("pieces"), pool.get("used")


def reuse_pool(b: Builder, pool: Value, mark: tuple[Value, Value]) -> None:
    """Write that a pool forgets what lies behind a mark; if there is another piece since, all that is in it."""
    piece, used = mark
    pool.set("used", b.select(pool.get("pieces").equals(piece), used, b.constant(I64, 0)))


def release_pool(b: Builder, pool: Value) -> None:
    """Write that all pieces of a pool are given back."""
    with b.section() as leave, b.forever():
        piece = pool.get("pieces")
        with b.when(piece.equals(None)):
            leave()
        pool.set("pieces", piece.to(POINTER).load())
        b.do(free, piece)


def hand_out(b: Builder, rows: Value) -> Value:
    """Write that rows get memory of their own, which the caller gives back; return whether there is none."""
    size = rows.get("count") * rows.get("step")
    room = b.call(allocate, size + 1)
    is_absent = room.equals(None)
    with b.when(room.differs(None)):
        b.do(move_bytes, room, rows.get("first"), size)
        rows.set("first", room)
    return is_absent
