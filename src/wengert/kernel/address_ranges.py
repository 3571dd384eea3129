"""Which elements of buffers the stages of a program read and write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wengert.kernel.kernel import Affine, Guard, Kernel, Program, Reduce, Stage
from wengert.kernel.opcodes import READING
from wengert.support.records import NamedTuple


class Address(NamedTuple):
    """An index map into a buffer where a guard holds, in a space of some extents."""

    place: str
    buffer: str
    at: Affine
    guard: Guard
    extents: tuple[int, ...]


def stages(program: Program) -> Iterator[tuple[str, Kernel, Stage]]:
    """Yield each stage with its kernel and where it stands."""
    for k, kernel in enumerate(program.kernels):
        for s, stage in enumerate(kernel.stages):
            yield f"kernel {k}, stage {s}", kernel, stage


def reads(place: str, stage: Stage) -> Iterator[Address]:
    """Yield what the loads and gathers of a stage read."""
    for i, op in enumerate(stage.operations):
        if op.name in READING and op.at is not None:
            yield Address(f"{place}, %{i}", op.buffer, op.at, op.guard, stage.extents)


def store_addresses(place: str, stage: Stage) -> Iterator[Address]:
    """Yield where the stores of a stage write."""
    for store in stage.stores:
        yield Address(f"{place}, store {store.buffer}", store.buffer, store.at, store.guard, stage.extents)


def reduction_addresses(place: str, stage: Stage) -> Iterator[Address]:
    """Yield where the reductions of a stage write."""
    for reduction in stage.reductions:
        if reduction.at is not None:
            where = f"{place}, reduce {reduction.into}"
            extents = stage.extents if reduction.kind == "scan" else kept_extents(stage, reduction)
            yield Address(where, reduction.into, reduction.at, (), extents)


def keep_addresses(place: str, kernel: Kernel) -> Iterator[Address]:
    """Yield where a kernel keeps its numbers."""
    for keep in kernel.kept:
        yield Address(f"{place}, keep {keep.number}", keep.buffer, keep.at, (), (kernel.rows,))


def kept_extents(stage: Stage, reduction: Reduce) -> tuple[int, ...]:
    """Return the extents of what is left of a space when it is reduced."""
    return tuple([1 if d in reduction.over else n for d, n in enumerate(stage.extents)])


def addresses(program: Program) -> Iterator[Address]:
    """Yield all index maps into buffers."""
    for place, _, stage in stages(program):
        yield from reads(place, stage)
        yield from store_addresses(place, stage)
        yield from reduction_addresses(place, stage)
    for k, kernel in enumerate(program.kernels):
        yield from keep_addresses(f"kernel {k}", kernel)


def reach(at: Affine, extents: tuple[int, ...], guard: Guard = ()) -> tuple[int, int] | None:
    """Return the least and the greatest value of an index map where a guard holds; None where it never does.

    >>> reach(Affine(-1, (0, 1)), (1, 8), ())
    (-1, 6)
    """
    low = high = at.constant
    for (start, stop), coefficient in zip(ranges(extents, guard), at.coefficients, strict=True):
        if start >= stop:
            return None
        ends = coefficient * start, coefficient * (stop - 1)
        low, high = low + min(ends), high + max(ends)
    return low, high


def ranges(extents: tuple[int, ...], guard: Guard) -> list[tuple[int, int]]:
    """Return from where to where each dimension runs within a guard."""
    found = [(0, n) for n in extents]
    for bound in guard:
        low, high = found[bound.dimension]
        found[bound.dimension] = max(low, bound.low), min(high, bound.high)
    return found


def alternate(one: Address, other: Address, own: bool) -> bool:
    """Tell whether two writes of a space share no cell, as of parts of complex numbers: they are a dimension more."""
    spans = ranges(one.extents, one.guard)
    if one.at.coefficients != other.at.coefficients or spans != ranges(other.extents, other.guard):
        return False
    apart = Affine(0, (*one.at.coefficients, other.at.constant - one.at.constant))
    return apart.coefficients[-1] != 0 and is_injective(apart, (*spans, (0, 2)), own)


def is_injective(at: Affine, spans: Iterable[tuple[int, int]], own: bool) -> bool:
    """Tell whether different points have different cells: every step goes further than all smaller ones together.

    Args:
        at: the index map.
        spans: from where to where each dimension runs.
        own: whether each row has cells of its own.
    """
    covered = 0
    steps = [(abs(c), stop - start) for c, (start, stop) in zip(at.coefficients, spans, strict=True)]
    for step, count in sorted(steps[own:]):
        if count > 1 and step <= covered:
            return False
        covered += step * (count - 1)
    return True
