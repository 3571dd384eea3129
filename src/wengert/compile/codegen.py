"""From graphs to what a back end builds, which is kept: all that is loaded only if a graph was not compiled before."""

from __future__ import annotations

import marshal
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.compile.compilation_cache import Keeper, variables_of
from wengert.compile.programs import BACKEND
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph
from wengert.kernel.backend import Backend
from wengert.kernel.grammar import text
from wengert.kernel.kernel import Program
from wengert.kernel.schedule import with_schedule
from wengert.lowering.costs import is_worthwhile
from wengert.lowering.partition import partition_graph
from wengert.native.cache import object_cache
from wengert.native.cache_writing import put
from wengert.passes.segments import Segments, with_programs
from wengert.support import config

MOST_CONSTANT = 1 << 25
"""Bytes of constants up to which programs are kept: to write and compare more takes longer than to make code."""
DIGITS = 64
"""Hexadecimal digits of constants that are printed."""


def compile_segments(graph: Graph, is_apart: bool = False) -> Segments:
    """Return a graph in segments, built by the back end where kernels can compute them.

    Args:
        graph: without calls; see `wengert.passes.pipeline.flatten_calls`.
        is_apart: whether each loop, and each routine of small matrices, is a program by itself.

    Raises:
        MissingLLVMError: there is no LLVM.
        NotImplementedError: an opcode has no instructions.
    """
    return with_programs(partition_graph(graph, is_worthwhile, is_apart=is_apart), build_program)


def build_program(program: Program) -> Any:
    """Return a program as the back end builds it."""
    start = time.perf_counter()
    program = with_schedule(program)
    backend = BACKEND.get()
    image = backend.build(backend.render(program))
    if "kernels" in config.LOGGED:
        from wengert.support.logs import say

        took = f"{1e3 * (time.perf_counter() - start):.1f} ms"
        size = len(marshal.dumps(backend.pack(image, {})))
        say("kernels", f"compiled to {size} bytes in {took}:\n{text(program, DIGITS)}")
    return image


def keep(keeper: Keeper, segments: Segments) -> None:
    """Keep what a graph was compiled to, unless most of it are constants, or other processes cannot know it again."""
    if keeper.key is not None and constant_bytes(keeper.graph) <= MOST_CONSTANT:
        numbers = {array.tobytes(): n for n, array in enumerate(keeper.beside)}
        if stands_for(segments, keeper.traced):
            described: Any = keeper.backend.pack(segments.whole, numbers), None
        else:
            described = None, plain_data(segments, keeper.backend, numbers)
        put(object_cache(), keeper.key, marshal.dumps(described), keeper.beside)


def stands_for(segments: Segments, traced: Graph) -> bool:
    """Tell whether one program gives all that a graph gives, of the same types and lying in memory alike."""
    if segments.whole is None:
        return False
    graph = segments.parts[0].graph
    return (graph.inputs, len(graph.outputs)) == (traced.inputs, len(traced.outputs)) and all(
        type(x) is type(y) is Variable and (x.aval, x.strides) == (y.aval, y.strides)
        for x, y in zip(graph.outputs, traced.outputs, strict=True)
    )


def constant_bytes(graph: Graph) -> int:
    """Return how many bytes the arrays take that are constants of a graph."""
    arrays = [x for e in graph.equations for x in e.inputs if type(x) is np.ndarray and any(x.strides)]
    return sum({id(x): x.nbytes for x in arrays}.values())


def plain_data(segments: Segments, backend: Backend[Any, Any], beside: Mapping[bytes, int]) -> Any:
    """Return segments as plain data; what lies beside them is left out."""
    graph = segments.graph
    numbers = {v: n for n, v in enumerate(variables_of(graph))}
    places = {id(equation): n for n, equation in enumerate(graph.equations)}

    def numbers_of(values: Iterable[Any]) -> list[int]:
        return [numbers[x] if type(x) is Variable else -1 - index_of(x, graph.outputs) for x in values]

    return [
        (
            [places[id(equation)] for equation in part.graph.equations],
            numbers_of(part.graph.inputs),
            numbers_of(part.graph.outputs),
            None if part.program is None else backend.pack(part.program, beside),
            part.reasons,
            numbers_of(part.dropped),
            part.is_whole,
        )
        for part in segments.parts
    ]


def index_of(value: Any, values: Sequence[Any]) -> int:
    """Return the place of a value that is known."""
    return next(n for n, other in enumerate(values) if other is value)
