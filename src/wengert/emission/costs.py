"""What kernels and products cost, counted from records: operations, and bytes that go between them and memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from wengert.emission.plans import dependences
from wengert.kernel.functions import FUNCTIONS, Features, expression_of
from wengert.kernel.kernel import Affine, Buffer, Kernel, Product, Program, Stage
from wengert.kernel.opcodes import OPCODES, READING
from wengert.native.engine import Target
from wengert.support.records import NamedTuple


class KernelCost(NamedTuple):
    """What a kernel costs.

    Attributes:
        operations: scalar operations, a function being one.
        flops: floating-point operations, a function counting as those that its expression has.
        read: bytes of the inputs, constants and temporaries that it reads, each once.
        written: bytes of the outputs and temporaries that it writes.
    """

    operations: int
    flops: int
    read: int
    written: int


def cost_of_kernel(kernel: Kernel, program: Program, target: Target) -> KernelCost:
    """Return what a kernel of a program costs on a processor."""
    buffers = program.buffers_by_name
    features = Features(fma=target.fuses, scaling=target.scales)
    operations = flops = 0
    for stage in kernel.stages:
        for name, dtype, count in operations_of(stage, buffers):
            operations += count
            flops += count * flops_of(name, dtype, features)
    read = ((o.buffer, o.at, s) for s in kernel.stages for o in s.operations if o.name in READING)
    stores = ((x.buffer, x.at, s) for s in kernel.stages for x in s.stores)
    changed = ((x.buffer, Affine(0, (1,) * len(s.extents)), s) for s in kernel.stages for x in s.updates)
    sums = ((r.into, r.at, s) for s in kernel.stages for r in s.reductions)
    kept = sum([kernel.rows * buffers[keep.buffer].dtype.itemsize for keep in kernel.kept])
    return KernelCost(
        operations, flops, count_bytes(read, buffers), count_bytes((*stores, *changed, *sums), buffers) + kept
    )


def cost_of_product(product: Product, program: Program) -> KernelCost:
    """Return what a product of a program costs."""
    buffers, points = program.buffers_by_name, 2 * math.prod(product.extents)
    extents = product.extents, product.extents, product.sizes
    read = zip(product.reads, product.maps, extents, strict=False)
    bytes_read = count_bytes([(name, at, Stage(own)) for name, at, own in read], buffers)
    return KernelCost(
        points, points, bytes_read, count_bytes([(product.into, product.at, Stage(product.sizes))], buffers)
    )


def operations_of(stage: Stage, buffers: dict[str, Buffer]) -> Iterator[tuple[str, np.dtype[np.generic], int]]:
    """Yield what a stage computes, with its dtype and how often."""
    depends = dependences(stage, buffers)
    for operation, dimensions in zip(stage.operations, depends, strict=True):
        if not OPCODES[operation.name].moves:
            yield operation.name, operation.dtype, math.prod([stage.extents[d] for d in dimensions])
    for reduction in stage.reductions:
        yield reduction.combine, stage.operations[reduction.value].dtype, math.prod(stage.extents)


def flops_of(name: str, dtype: np.dtype[np.generic], features: Features) -> int:
    """Return how many floating-point operations an opcode is."""
    if dtype.kind != "f":
        return 0
    if name not in FUNCTIONS:
        return 2 if name == "fma" else 1
    expression = expression_of(name, dtype, features)
    inner = [o for o in expression.operations if not OPCODES[o.name].moves]
    return sum([flops_of(o.name, o.dtype, features) for o in inner])


def count_bytes(accesses: Iterable[tuple[str, Affine | None, Stage]], buffers: dict[str, Buffer]) -> int:
    """Return how many bytes of memory are accessed, none twice; what belongs to a row stays in the cache."""
    counts: dict[str, int] = {}
    for name, at, stage in accesses:
        if at is not None and name in buffers and buffers[name].kind != "row":
            own = [n for n, step in zip(stage.extents, at.coefficients, strict=True) if step]
            counts[name] = min(counts.get(name, 0) + math.prod(own), buffers[name].size)
    return sum([count * buffers[name].dtype.itemsize for name, count in counts.items()])
