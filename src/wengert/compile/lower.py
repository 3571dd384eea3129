"""Lowering: from the equations of a graph to nodes, by the forms of their primitives.

What no rule knows is refused, with the reason, and computed by NumPy between kernels. Whether an equation is refused
follows from its primitive, its parameters and the types of its operands alone, literals included; parameters that a
rule does not name are refused, not ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.compile.index_maps import Index, aligned
from wengert.compile.joins import Part, added, concatenated, scattered, written
from wengert.compile.nodes import BOOL, Access, Node, Nodes, Shape
from wengert.compile.pointwise import BOOLEAN, COPIES, PARAMETERS, WHOLE, expression_of, loop_dtypes
from wengert.compile.scalars import Scalar, convert, operate, select
from wengert.compile.sums import reduced, restored
from wengert.compile.views import arranged, reshaped, viewed
from wengert.core.aval import Aval, aval_of, is_number
from wengert.core.form import Contraction, Form, Pointwise, Reduction, Region, Routine, Scan, Selection, View, form_of
from wengert.core.graph import Equation, Graph, Variable
from wengert.core.labels import Labels
from wengert.core.primitive import Primitive
from wengert.kernel.checking import DTYPES
from wengert.primitives.indexing import join_index

__all__ = ["Lowered", "Refused", "lower"]

DType = np.dtype[Any]
SMALL_PRODUCT = 1 << 15
NARROW = 32
"""Products of few elements, and those of few rows, columns or terms, are computed in kernels; BLAS does the others."""
MOST_WINDOWS = 32


@dataclass(frozen=True)
class Refused:
    """Say why an equation is not computed in a kernel."""

    reason: str


Found = Access | Refused


@dataclass(frozen=True)
class Lowered:
    """Hold what a graph computes as nodes.

    Attributes:
        nodes: all of them.
        inputs: a buffer for each input.
        outputs: for each output what it reads, and its shape.
        refused: the equations that are not among the nodes, by their place, and why.
    """

    nodes: Nodes
    inputs: tuple[Node | None, ...]
    outputs: tuple[tuple[Access, Shape] | None, ...]
    refused: Mapping[int, Refused]


@dataclass(frozen=True)
class Call:
    """Hold an equation while it is lowered.

    Attributes:
        nodes: what makes nodes.
        primitive, params: what it does.
        operands: variables and literals.
        args: what the operands read.
        avals: shapes and dtypes of the operands.
        out: those of the result.
        alone: for each operand whether no other equation reads it.
    """

    nodes: Nodes
    primitive: Primitive
    params: Mapping[str, Any]
    operands: Sequence[Any]
    args: Sequence[Access]
    avals: Sequence[Aval]
    out: Aval
    alone: Sequence[bool]

    @property
    def shapes(self) -> list[Shape]:
        """The shapes of the operands."""
        return [aval.shape for aval in self.avals]

    def has_only(self, *names: str) -> bool:
        """Tell whether all parameters that say something are among some names."""
        return all(name in names or value is None or value == () for name, value in self.params.items())

    def scalar(self, i: int, dtype: DType, shape: Shape | None = None) -> Scalar:
        """Return an operand at a point of the result, or of another space, as a value of a dtype."""
        space = self.out.shape if shape is None else shape
        x = self.args[i]
        read = x.through(aligned(self.shapes[i], len(space))) if x.map else x
        return convert(Scalar(self.nodes, read, space), dtype)

    def converted(self, i: int, dtype: DType) -> Access:
        """Return an operand, in its own shape, as values of a dtype."""
        return self.scalar(i, dtype, self.shapes[i]).access

    def literals(self, start: int) -> list[Any] | None:
        """Return the operands from one on as arrays; None if one of them is not known."""
        rest = self.operands[start:]
        return None if any(type(x) is Variable for x in rest) else list(map(np.asarray, rest))


def lower(graph: Graph) -> Lowered:
    """Return what a graph computes as nodes; what an equation gives that is refused is a buffer of its own."""
    nodes = Nodes()
    known: dict[Variable, Access] = {}
    uses = counted(graph)

    def value(x: Any) -> Access:
        return known[x] if type(x) is Variable else literal(nodes, x)

    def given(variable: Variable, name: str) -> None:
        if is_native(variable.aval):
            known[variable] = nodes.input(name, variable.shape, variable.dtype)

    for i, variable in enumerate(graph.inputs):
        given(variable, f"x{i}")
    refused: dict[int, Refused] = {}
    for i, equation in enumerate(graph.equations):
        found = refusal(equation)
        if found is None:
            alone = [uses.get(x, 0) == 1 if type(x) is Variable else False for x in equation.inputs]
            args = list(map(value, equation.inputs))
            avals = list(map(aval_of, equation.inputs))
            (out,) = equation.outputs
            call = Call(nodes, equation.primitive, equation.params, equation.inputs, args, avals, out.aval, alone)
            result = rule_of(equation.primitive)(call)
            if isinstance(result, Access):
                known[out] = result
                continue
            found = result
        refused[i] = found
        for j, variable in enumerate(equation.outputs):
            given(variable, f"e{i}_{j}")
    inputs = tuple([known[v].node if v in known else None for v in graph.inputs])
    outputs = tuple([(value(x), aval_of(x).shape) if is_native(aval_of(x)) else None for x in graph.outputs])
    return Lowered(nodes, inputs, outputs, refused)


def counted(graph: Graph) -> dict[Variable, int]:
    """Return how often each variable is used."""
    found: dict[Variable, int] = {}
    for values in (*[equation.inputs for equation in graph.equations], graph.outputs):
        for x in values:
            if type(x) is Variable:
                found[x] = found.get(x, 0) + 1
    return found


def is_native(aval: Aval) -> bool:
    """Tell whether kernels have values of a type."""
    return aval.dtype in DTYPES and min(aval.shape, default=1) > 0


def refusal(equation: Equation) -> Refused | None:
    """Return why an equation is refused whatever its rule says; None if it is not."""
    if len(equation.outputs) != 1:
        return Refused("several results")
    avals = [aval_of(x) for x in (*equation.inputs, *equation.outputs)]
    for aval in avals:
        if aval.dtype not in DTYPES:
            return Refused(f"values of dtype {aval.dtype}")
        if not is_native(aval):
            return Refused("arrays without elements")
    if avals[-1].weak and avals[-1].dtype.kind in "iu":
        return Refused("whole numbers of Python's, which have no size")
    if any(type(x) is int and not -(1 << 63) <= x < 1 << 63 for x in equation.inputs):
        return Refused("a whole number of more than 64 bits")
    return None


def literal(nodes: Nodes, value: Any) -> Access:
    """Return a number or array of the graph."""
    if is_number(value):
        return nodes.constant(value, aval_of(value).dtype)
    return nodes.array(np.asarray(value))


# Pointwise


def pointwise(call: Call) -> Found:
    """Lower what does the same at every point."""
    primitive, out = call.primitive, call.out
    name = primitive.name
    if name in COPIES:
        return call.args[0]
    if name == "astype":
        return call.scalar(0, out.dtype).access
    expression = expression_of(primitive)
    if expression is None:
        return Refused("no opcodes for it yet")
    if not call.has_only(*PARAMETERS.get(name, ())):
        return Refused(f"the parameters {', '.join(call.params)}")
    loop = loop_dtypes(primitive, list(map(own_type, call.avals)), out.dtype)
    if not DTYPES.issuperset(loop):
        return Refused(f"values of dtype {', '.join(map(str, loop))}")
    xs = [call.scalar(i, dtype) for i, dtype in enumerate(loop)]
    if loop[0].kind in "biu" and name in WHOLE:
        found: Scalar | None = xs[0]
    elif loop[0].kind == "b" and name in BOOLEAN:
        found = operate(BOOLEAN[name], *xs)
    elif loop[0].kind == "b" and name in ORDERED:
        found = expression(*[convert(x, np.dtype(np.uint8)) for x in xs])
    elif all(x.access.node.kind == "constant" for x in xs) and not out.shape:
        return Refused("numbers that are known")
    else:
        found = expression(*xs, **call.params)
    return Refused("operands that no opcode takes") if found is None else convert(found, out.dtype).access


ORDERED = frozenset({"less", "less_equal", "greater", "greater_equal"})


def own_type(aval: Aval) -> Any:
    """Return what NumPy is asked with about an operand: its dtype, or Python's type of a number that gives way."""
    return aval.number if aval.weak and aval.dtype.kind != "b" else aval.dtype


# Reductions


COMBINING = {
    np.add: "add",
    np.multiply: "multiply",
    np.maximum: "maximum",
    np.minimum: "minimum",
    np.logical_and: "and",
    np.logical_or: "or",
    np.bitwise_and: "and",
    np.bitwise_or: "or",
}


def reduction(call: Call) -> Found:
    """Lower a sum, product, extremum, or a predicate of all elements or any."""
    combine = call.params.get("ufunc", getattr(form_of(call.primitive), "combine", None))
    if combine not in COMBINING:
        return Refused("several passes over its operand")
    if len(call.args) > 1 and call.primitive.name != "sum":
        return Refused("starting values or masks")
    if not call.has_only("axis", "keepdims", "accurate", "ufunc", "dtype", "skipna") or call.params.get("skipna"):
        return Refused(f"the parameters {', '.join(call.params)}")
    logical = combine in (np.logical_and, np.logical_or)
    return reduced_call(call, COMBINING[combine], call.converted(0, BOOL if logical else call.out.dtype))


def reduced_call(call: Call, combine: str, x: Access) -> Found:
    """Return the combination of an array in the shape of the first operand; a mask is the second."""
    shape, axis = call.shapes[0], call.params["axis"]
    if x.node.dtype.kind == "b" and combine not in ("and", "or"):
        combine = BOOLEAN[combine]
    if len(call.args) > 1:
        mask = call.scalar(1, BOOL, shape)
        x = select(mask, Scalar(call.nodes, x, shape), 0).access
    found = reduced(call.nodes, combine, x, shape, axis)
    return restored(found, call.out.shape, axis) if call.params["keepdims"] else found


def mean(call: Call) -> Found:
    """Lower a mean: the sum by the count, which a mask tells."""
    if call.out.dtype.kind != "f" or not call.has_only("axis", "keepdims", "dtype"):
        return Refused(f"the parameters {', '.join(call.params)}")
    total = reduced_call(call, "add", call.converted(0, call.out.dtype))
    assert isinstance(total, Access)
    shape, axis = call.shapes[0], call.params["axis"]
    count = call.nodes.constant(math.prod([shape[k] for k in axis]), call.out.dtype)
    if len(call.args) > 1:
        counted_mask = call.scalar(1, BOOL, shape)
        count = reduced(call.nodes, "add", convert(counted_mask, call.out.dtype).access, shape, axis)
        count = restored(count, call.out.shape, axis) if call.params["keepdims"] else count
    return call.nodes.point("divide", call.out.dtype, call.out.shape, total, count)


def count_nonzero(call: Call) -> Found:
    """Lower the number of elements that are not zero."""
    flags = Scalar(call.nodes, call.converted(0, BOOL), call.shapes[0])
    return reduced_call(call, "add", convert(flags, call.out.dtype).access)


def variance(call: Call) -> Found:
    """Lower a variance, or its root: the mean of the squares of deviations from the mean."""
    dtype, shape, axis = call.out.dtype, call.shapes[0], call.params["axis"]
    if len(call.args) > 1 or not call.has_only("axis", "keepdims", "ddof", "dtype"):
        return Refused("masks or means that are given")
    if call.avals[0].dtype != dtype:
        return Refused("deviations of whole numbers")
    count = math.prod([shape[k] for k in axis])
    x = Scalar(call.nodes, call.args[0], shape)
    center = reduced(call.nodes, "add", x.access, shape, axis)
    kept = tuple([1 if k in axis else n for k, n in enumerate(shape)])
    spread = restored(center, kept, axis).through(aligned(kept, len(shape)))
    deviation = x - Scalar(call.nodes, spread, shape) / float(count)
    total = reduced(call.nodes, "add", (deviation * deviation).access, shape, axis)
    total = restored(total, call.out.shape, axis) if call.params["keepdims"] else total
    found = Scalar(call.nodes, total, call.out.shape) / float(max(count - call.params["ddof"], 0))
    return (operate("sqrt", found) if call.primitive.name == "std" else found).access


def logsumexp(call: Call) -> Found:
    """Lower log(sum(exp(x))), from the largest element."""
    dtype, shape, axis = call.out.dtype, call.shapes[0], call.params["axis"]
    if not call.has_only("axis", "keepdims"):
        return Refused(f"the parameters {', '.join(call.params)}")
    kept = tuple([1 if k in axis else n for k, n in enumerate(shape)])
    x = call.scalar(0, dtype, shape)
    top = restored(reduced(call.nodes, "maximum", x.access, shape, axis), kept, axis)
    largest = Scalar(call.nodes, top, kept)
    finite = select(operate("absolute", largest) < math.inf, largest, 0)
    there = Scalar(call.nodes, finite.access.through(aligned(kept, len(shape))), shape)
    total = restored(reduced(call.nodes, "add", operate("exp", x - there).access, shape, axis), kept, axis)
    found = finite + operate("log", Scalar(call.nodes, total, kept))
    return reshaped(call.nodes, found.access, kept, call.out.shape)


# Products


def contraction(call: Call) -> Found:
    """Lower a sum of products by its labels."""
    form = form_of(call.primitive)
    assert isinstance(form, Contraction)
    labels = (
        form.record(call.shapes, {} if form.labels is None else call.params) if form.labels else call.params["labels"]
    )
    reason = unfit(call, labels)
    if reason:
        return Refused(reason)
    kept = list(labels.result)
    summed = [n for n in dict.fromkeys(n for own in labels.operands for n in own) if n not in kept]
    names = [*kept, *summed]
    space = labels.lengths_of(tuple(names))
    terms = []
    for i, own in enumerate(labels.operands):
        x = reshaped(call.nodes, call.converted(i, call.out.dtype), call.shapes[i], labels.lengths_of(own))
        read = tuple([Index(0, ((names.index(n), 1),) if labels.lengths[n] > 1 else ()) for n in own])
        terms.append(Scalar(call.nodes, x.through(read), space))
    product = terms[0]
    for term in terms[1:]:
        product = product * term
    found = reduced(call.nodes, "add", product.access, space, range(len(kept), len(names)))
    return reshaped(call.nodes, found, labels.lengths_of(labels.result), call.out.shape)


def unfit(call: Call, labels: Labels) -> str:
    """Return why a sum of products is not one for kernels; nothing if it is."""
    if labels.relation is not None:
        return "a convolution"
    if len(set(labels.result)) < len(labels.result):
        return "a result that is filled along a diagonal"
    if call.out.dtype.kind == "b":
        return "products of bools"
    if call.params.get("dtype") is not None or call.params.get("out") is not None:
        return f"the parameters {', '.join(call.params)}"
    work = math.prod([labels.lengths[n] for n in labels_of(labels)])
    if work > SMALL_PRODUCT and (len(call.args) > 2 or narrowest(labels) > NARROW):
        return f"{work} multiplications, for which BLAS is quicker"
    return ""


def labels_of(labels: Labels) -> set[int]:
    """Return the labels of the operands and the result."""
    return {n for own in (*labels.operands, labels.result) for n in own}


def narrowest(labels: Labels) -> int:
    """Return the number of rows, columns or terms of a product of matrices, whichever is smallest."""
    left, right = [set(own) for own in (*labels.operands, ())[:2]]
    result = set(labels.result)
    groups = (result & left) - right, (result & right) - left, (left & right) - result
    return min([math.prod([labels.lengths[n] for n in group]) for group in groups])


# Views


def view(call: Call) -> Found:
    """Lower what arranges elements anew: by an index map, or element by element if they are few."""
    if len(call.args) != 1:
        return Refused("several operands")

    def arrange(whole: Any) -> Any:
        return call.primitive.evaluate(whole, **call.params)

    found = viewed(call.nodes, call.args[0], call.shapes[0], arrange) if call.primitive.view else None
    if found is None:
        found = arranged(call.nodes, call.args[0], call.shapes[0], arrange)
    return Refused("places of many elements that no index map tells") if found is None else found


def imaginary(call: Call) -> Found:
    """Lower the imaginary part of real numbers."""
    return call.nodes.constant(0, call.out.dtype)


def part(call: Call) -> Found:
    """Lower a part at an index of numbers and slices, or with arrays of known places."""
    index = call.params["index"]
    if len(call.args) == 1:
        whole = index if Ellipsis in index else (*index, ...)  # no scalars, which would be read
        found = viewed(call.nodes, call.args[0], call.shapes[0], lambda x: x[whole])
        return Refused("a copy") if found is None else found
    arrays = call.literals(1)
    if arrays is None:
        return Refused("places that are computed, which may be out of bounds")
    found = arranged(call.nodes, call.args[0], call.shapes[0], lambda x: x[join_index(index, arrays)])
    return Refused("places of many elements") if found is None else found


def triangle(call: Call) -> Found:
    """Lower the part of matrices on one side of a diagonal: a comparison of the row's index with the column's."""
    shape, upper = call.out.shape, call.params["upper"]
    rank = len(shape)
    offset = call.params["k"] - 1 if upper else call.params["k"]
    at = Index(offset, tuple([(d, step) for d, step in ((rank - 2, 1), (rank - 1, -1)) if shape[d] > 1]))
    below = Scalar(call.nodes, call.nodes.index(at, sum(shape[-2:])), shape) >= 0
    x = call.scalar(0, call.out.dtype)
    return (select(below, 0, x) if upper else select(below, x, 0)).access


def trace(call: Call) -> Found:
    """Lower the sum of a diagonal."""
    x, shape = call.converted(0, call.out.dtype), call.shapes[0]
    diagonal = viewed(call.nodes, x, shape, lambda whole: whole.diagonal(**call.params))
    length = np.empty(shape, np.int8).diagonal(**call.params).shape
    if diagonal is None or 0 in length:
        return Refused("arrays without elements")
    return reduced(call.nodes, "add", diagonal, length, (len(length) - 1,))


def difference(call: Call) -> Found:
    """Lower the differences of neighbours along an axis."""
    if call.out.dtype.kind == "b":
        return Refused("differences of bools")
    before = (slice(None),) * call.params["axis"]
    x, shape = call.args[0], call.shapes[0]
    early = viewed(call.nodes, x, shape, lambda whole: whole[(*before, slice(None, -1))])
    late = viewed(call.nodes, x, shape, lambda whole: whole[(*before, slice(1, None))])
    assert early is not None
    assert late is not None
    return call.nodes.point("subtract", call.out.dtype, call.out.shape, late, early)


# Joins and writes


def concatenate(call: Call) -> Found:
    """Lower arrays one behind the other."""
    xs = [call.converted(i, call.out.dtype) for i in range(len(call.args))]
    return concatenated(call.nodes, xs, call.shapes, call.params["axis"], call.alone)


def stack(call: Call) -> Found:
    """Lower arrays along a new axis."""
    axis = call.params["axis"]
    shapes = [(*shape[:axis], 1, *shape[axis:]) for shape in call.shapes]
    xs = [
        reshaped(call.nodes, call.converted(i, call.out.dtype), call.shapes[i], shape) for i, shape in enumerate(shapes)
    ]
    return concatenated(call.nodes, xs, shapes, axis, call.alone)


def pad(call: Call) -> Found:
    """Lower an array with zeros around it."""
    widths, shape = call.params["widths"], call.shapes[0]
    box = tuple([(left, left + n) for (left, _), n in zip(widths, shape, strict=True)])
    shift = tuple([Index(-left, ((k, 1),)) for k, (left, _) in enumerate(widths)])
    return added(
        call.nodes, call.out.shape, call.out.dtype, None, [Part(call.args[0].through(shift), box, False)], False
    )


def place_windows(call: Call) -> Found:
    """Lower the sum of windows, each at its place."""
    window, axis, shape = call.params["window"], call.params["axis"], call.out.shape
    if math.prod(window) > MOST_WINDOWS:
        return Refused("many windows")
    x, rank = call.args[0], len(shape)
    parts = []
    for offsets in np.ndindex(window):
        starts = [0] * rank
        for d, offset in zip(axis, offsets, strict=True):
            starts[d] += offset
        box = tuple([(start, start + n) for start, n in zip(starts, call.shapes[0], strict=False)])
        read = [Index(-start, ((d, 1),)) for d, start in enumerate(starts)]
        parts.append(Part(x.through((*read, *map(Index, offsets))), box, False))
    return added(call.nodes, shape, call.out.dtype, None, parts, False)


def assign(call: Call) -> Found:
    """Lower a write to a part of an array, or an addition to it."""
    path, index, add = call.params["path"], call.params["index"], call.params["add"]
    arrays = call.literals(2)
    if arrays is None:
        return Refused("places that are computed, which may be out of bounds")
    value = call.converted(1, call.out.dtype)
    shapes = call.shapes[0], call.shapes[1]
    if add and call.out.dtype.kind == "b":
        return Refused("sums of bools")

    def window(whole: Any) -> Any:
        for primitive, params in path:
            whole = primitive.evaluate(whole, **dict(params))
        return whole

    found = None
    if not arrays:
        entries = index if Ellipsis in index else (*index, ...)
        found = written(call.nodes, call.args[0], value, shapes, lambda x: window(x)[entries], add, call.alone[0])
    if found is None:
        key = join_index(index, arrays)
        size = (
            window(np.empty(shapes[0], np.int8))[key].shape
            if arrays
            else window(np.empty(shapes[0], np.int8))[entries].shape
        )

        def assigned(board: Any, order: Any) -> Any:
            return call.primitive.evaluate(board, order, *arrays, path=path, index=index, add=add)

        found = scattered(call.nodes, call.args[0], value, shapes, assigned, size, add)
    return Refused("places of many elements, or the same ones repeatedly") if found is None else found


# Which rule


Rule = Callable[[Call], Found]


def refusing(reason: str) -> Rule:
    """Return the rule that refuses."""
    return lambda _call: Refused(reason)


NAMED: dict[str, Rule] = {
    "mean": mean,
    "count_nonzero": count_nonzero,
    "var": variance,
    "std": variance,
    "logaddexp_reduce": logsumexp,
    "getitem": part,
    "imag": imaginary,
    "real": pointwise,
    "read_only": pointwise,
    "triangle": triangle,
    "trace": trace,
    "difference": difference,
    "concatenate": concatenate,
    "stack": stack,
    "pad": pad,
    "place_windows": place_windows,
    "assign": assign,
}
"""The rules of single primitives."""

OF_FORMS: tuple[tuple[type[Form], Rule], ...] = (
    (Pointwise, pointwise),
    (Reduction, reduction),
    (Contraction, contraction),
    (View, view),
    (Scan, refusing("results that follow one from the other")),
    (Routine, refusing("a routine of NumPy")),
    (Selection, refusing("a shape that depends on elements")),
    (Region, refusing("control flow")),
    (Form, refusing("no form")),
)
"""The rules of all others, by their forms."""


def rule_of(primitive: Primitive) -> Rule:
    """Return the rule of a primitive."""
    if not primitive.registered:
        return refusing("a function with rules of its own")
    named = NAMED.get(primitive.name)
    if named is not None:
        return named
    form = form_of(primitive)
    return next(rule for kind, rule in OF_FORMS if isinstance(form, kind))
