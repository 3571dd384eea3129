"""One block of memory for a program, laid out while it is compiled: memory is used again after its last kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from wengert.kernel.kernel import Buffer, Kernel

__all__ = ["Arena", "laid_out", "names_of"]

LINE = 64
APART = 2112
"""Bytes after each buffer: two that lie 64 bytes apart modulo 4096 make loads wait for stores, which costs 30 %."""


@dataclass(frozen=True)
class Arena:
    """Where buffers lie.

    Attributes:
        places: in bytes from the beginning, by name.
        size: in bytes.
    """

    places: dict[str, int]
    size: int


def names_of(kernel: Kernel) -> Iterator[str]:
    """Iterate over the names of the buffers and numbers that a kernel uses."""
    for stage in kernel.stages:
        yield from (operation.buffer for operation in stage.operations if operation.buffer)
        yield from (store.buffer for store in stage.stores)
        yield from (reduction.into for reduction in stage.reductions)
    yield from (keep.buffer for keep in kernel.kept)


def laid_out(kernels: tuple[Kernel, ...], buffers: dict[str, Buffer], size: Callable[[Buffer], int]) -> Arena:
    """Lay out what no caller gives.

    Args:
        kernels: in order.
        buffers: by name.
        size: gives the bytes of a buffer.
    """
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for n, kernel in enumerate(kernels):
        for name in names_of(kernel):
            if name in buffers and buffers[name].kind not in ("input", "output"):
                first.setdefault(name, n)
                last[name] = n
    for name, buffer in buffers.items():
        if buffer.kind == "constant":
            first[name], last[name] = 0, len(kernels)
    places: dict[str, int] = {}
    taken: list[tuple[int, int, int, int]] = []  # (begin, end) in memory and (first, last) in time
    for name in sorted(first, key=lambda name: (buffers[name].kind != "constant", first[name])):
        length = -(-size(buffers[name]) // LINE) * LINE + APART
        busy = sorted(t[:2] for t in taken if t[2] <= last[name] and first[name] <= t[3])
        place = gap(busy, length)
        places[name] = place
        taken.append((place, place + length, first[name], last[name]))
    return Arena(places, max((t[1] for t in taken), default=0))


def gap(busy: list[tuple[int, int]], length: int) -> int:
    """Return the first place that is free for so many bytes."""
    place = 0
    for begin, end in busy:
        if begin - place >= length:
            break
        place = max(place, end)
    return place
