"""Compiled graphs in the cache, keyed by the graph: a process that traces what an earlier one traced only loads code.

What is kept says which equations a segment has, by their numbers, what it reads and gives, by those of the variables,
and has what the back end built: numbers, strings and bytes. Whose digest is wrong is not looked at.

Large constants of the graph lie beside it. The key has sums of them alone; who finds an entry compares them, and a
program reads those of the graph, so that a process neither digests nor copies them.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.compile.programs import BACKEND
from wengert.core.forms.form import Pointwise, form_of
from wengert.core.forms.routine import Routine
from wengert.core.forms.view_forms import Like, Selection
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph, subgraphs
from wengert.core.graph.identity import digest
from wengert.core.memory.buffers import may_change
from wengert.core.memory.memory_layout import Joined, Strides, axes_in_memory, ways_of, without_repetition
from wengert.core.primitives.primitive import Primitive
from wengert.native.cache import object_cache
from wengert.native.executable import Image
from wengert.native.lapack import installation
from wengert.passes.pipeline import flatten_calls
from wengert.passes.segments import Segment, Segments, buffers_of
from wengert.support.caches import cached
from wengert.support.machine import MEASURED

if TYPE_CHECKING:  # what was kept is loaded without it
    from wengert.kernel.backend import Backend

OUT_OF_BOUNDS = "|b1", ()
"""The last result of programs that may find a place out of bounds: whether they did."""
LARGE = 1 << 15
"""Bytes of a constant from which it is compared with what was kept: below, a digest is as fast."""
SUMS = 64
"""Pieces of a large constant whose sums keys have."""
APART = 16
"""Bytes that the places of constants are multiples of, as those of the memory of Python and NumPy."""


class Keeper:
    """Know what is kept of a graph.

    It is known by the graph as it was traced, so that one which a single program computes is found before the passes
    that come before lowering, which take as long as all else that finding it does. One that no digest tells may have
    one without its calls, as calls of functions with rules of the user do.

    Args:
        traced: the graph as it was traced; without calls, if `is_apart`.
        is_apart: whether each loop, and each routine of small matrices, is a program by itself.

    Attributes:
        key: what graphs share whose code is the same where their large constants are, too; None if other processes
            cannot know this one again.
        beside: the large constants.
    """

    def __init__(self, traced: Graph, is_apart: bool = False) -> None:
        self.traced, self.is_apart, self.backend = traced, is_apart, BACKEND.get()
        kind = f"{self.backend.name} {'apart' if is_apart else 'graph'}"
        self.key, known = key_of(traced, kind), traced
        if self.key is None and not is_apart:
            self.key, known = key_of(self.graph, kind), self.graph
        self.beside = list(map(elements, large_constants(known)))

    @cached
    def graph(self) -> Graph:
        """The graph that is lowered."""
        return self.traced if self.is_apart else flatten_calls(self.traced)

    def load_segments(self) -> Segments | None:
        """Return the segments that were kept; None if there are none."""
        if self.key is None:
            return None
        found: Segments | None = object_cache().get(self.key, self.beside, self.read_segments)
        return found

    def read_segments(self, packed: bytes) -> Segments:
        """Return the segments that bytes describe."""
        image, described = marshal.loads(packed)
        if described is None:
            whole = Segment(self.traced, self.backend.unpack(image, self.beside), (), (), is_whole=True)
            return Segments(self.traced, (check_program(whole),))
        return Segments(self.graph, restore(self.graph, described, self.backend, self.beside))


def check_program(part: Segment) -> Segment:
    """Return a segment; raise a ValueError if its machine code is for arrays of other dtypes or shapes."""
    if isinstance(part.program, Image):
        own, meant = [*part.program.inputs, *part.program.outputs], buffers_of(part.graph)
        if len(part.program.inputs) != len(part.graph.inputs) or own not in (meant, [*meant, OUT_OF_BOUNDS]):
            raise ValueError(f"code for {own}, where {meant} are meant")
    return part


def large_constants(graph: Graph) -> list[Any]:
    """Return the operands of a graph that are compared with what was kept, each once."""
    arrays = [x for e in graph.equations for x in e.inputs if type(x) is np.ndarray and x.dtype.kind in "biufc"]
    return list({id(x): x for x in arrays if x.nbytes >= LARGE and without_repetition(x).nbytes >= LARGE}.values())


def elements(constant: Any) -> Any:
    """Return the bytes of a constant in C order, where code may read them and nobody writes."""
    content = as_bytes(constant)
    return content.copy() if may_change(content) or content.__array_interface__["data"][0] % APART else content


def as_bytes(constant: Any) -> Any:
    """Return the bytes of a constant in C order."""
    return np.ascontiguousarray(without_repetition(constant)).reshape(-1).view(np.uint8)


def without_elements(graph: Graph) -> Graph:
    """Return a graph with what tells large constants apart, most of them at least, in their places."""
    stand_ins = {id(x): ("constant", n, *outline(x)) for n, x in enumerate(large_constants(graph))}
    if not stand_ins:
        return graph
    equations = [
        e
        if stand_ins.keys().isdisjoint(map(id, e.inputs))
        else e.using(tuple([stand_ins.get(id(x), x) for x in e.inputs]))
        for e in graph.equations
    ]
    return Graph(graph.inputs, equations, graph.outputs)


def outline(constant: Any) -> tuple[Any, ...]:
    """Return how a large constant lies in memory, and sums of its pieces."""
    core = without_repetition(constant)
    content = as_bytes(constant)
    most = content.nbytes // (8 * SUMS) * 8 * SUMS
    sums = np.add.reduce(content[:most].view(np.uint64).reshape(SUMS, -1), axis=1)
    return constant.dtype.str, constant.shape, axes_in_memory(core), core.shape, sums.tobytes()


def key_of(graph: Graph, kind: str = "processor graph") -> str | None:
    """Return what graphs share whose code is the same; None if one holds functions of the user.

    How arguments lie in memory is part of it, because results lie as they do; and whose LAPACK may be called. Of large
    constants only sums are.
    """
    primitives = primitives_of(graph)
    if not all(p.occasion is None or not writes_kernels(p) for p in primitives):
        return None  # users declare theirs anew, so their names do not say what kernels compute for them
    library = installation() if any(p.routine is not None for p in primitives) else ""
    made = digest(
        (without_elements(graph).structure(), tuple([named_strides(v.strides) for v in variables_of(graph)]), library)
    )
    return None if made is None else f"{kind} {made.hex()}{MEASURED}"


def primitives_of(graph: Graph) -> set[Primitive]:
    """Return the primitives of a graph, and of those in it."""
    found = {equation.primitive for equation in graph.equations}
    if any(primitive.structured for primitive in found):
        inner = [own for e in graph.equations if e.primitive.structured for _, own in subgraphs(e.params)]
        found.update(*map(primitives_of, inner))
    return found


def writes_kernels(primitive: Primitive) -> bool:
    """Tell whether kernels may be written from what a primitive is declared with."""
    is_called = isinstance(form_of(primitive), Pointwise | Like | Routine | Selection) or primitive.form is None
    spoken = primitive.scalar is not None or primitive.routine is not None
    return not is_called or spoken or isinstance(primitive.evaluate, np.ufunc)


def named_strides(strides: Strides) -> Any:
    """Return strides as plain data; those of a value that lies in one of several ways as all of these, in order."""
    return strides if type(strides) is not Joined else sorted(ways_of(strides), key=repr)


def variables_of(graph: Graph) -> list[Variable]:
    """Return all variables of a graph, in order."""
    return [*graph.inputs, *chain.from_iterable([equation.outputs for equation in graph.equations])]


def restore(
    graph: Graph, described: Any, backend: Backend[Any, Any], beside: Sequence[Any] = ()
) -> tuple[Segment, ...]:
    """Return the segments of a graph that plain data describe, and what lies beside them."""
    variables = variables_of(graph)

    def look_up(numbers: Iterable[int]) -> tuple[Any, ...]:
        return tuple([variables[n] if n >= 0 else graph.outputs[-1 - n] for n in numbers])

    def part_of(own: Graph, image: Any, reasons: Any, dropped: Any, is_whole: bool) -> Segment:
        program = None if image is None else backend.unpack(image, beside)
        return check_program(Segment(own, program, reasons, look_up(dropped), is_whole))

    return tuple(
        [
            part_of(Graph(look_up(inputs), [graph.equations[n] for n in equations], look_up(outputs)), *rest)
            for equations, inputs, outputs, *rest in described
        ]
    )
