"""Products in another order: of several factors two by two, and one after a loop for those that its rounds add up.

The gradient of a matrix that every round multiplies by is a sum of outer products, one of each round. The loop leaves
their factors behind as rows then, and no round reads and writes a matrix for it. That rounds in another order. If one
of several branches multiplies, and the others add zeros, the factors are zeros in theirs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import form_of
from wengert.core.forms.labels import Labels, Names, labelled
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.memory.memory_layout import strides_of_stack
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.passes.dead_code import eliminate_dead
from wengert.passes.equations import branches_of, holds_graphs, loop_parameters, throughout
from wengert.primitives.arithmetic import add, negative, subtract
from wengert.primitives.conversion import astype
from wengert.primitives.shapes import transpose
from wengert.support.records import NamedTuple

LEAST = 4
"""Rounds from which on there is a product after the loop."""
LARGE = 2048
"""Elements of a sum from which on it costs more to read and write it in each round than to leave factors behind."""
SMALL = 1 << 16
"""Bytes that factors may take; more of them only if they take no more than the sum, or than the rows of the loop.

The loop does not carry the sum then, and what a byte budget counts bounds the rows.
"""


class BranchProduct(NamedTuple):
    """Hold the factors of a product in one of several branches, and what the equation that chooses is to give."""

    choice: Equation
    place: int
    factors: Sequence[Variable]
    results: Sequence[Variable]


class ProductOfRows(NamedTuple):
    """Hold a product that each round adds: factors that change from round to round, and the labels of their axes.

    It is subtracted if it is negated. Where a branch multiplies, the factors are what all branches are to give.
    """

    factors: Sequence[Variable]
    labels: Labels
    is_negated: bool = False
    of_branch: BranchProduct | None = None


@throughout
def multiply_after_loops(graph: Graph) -> Graph:
    """Return a graph whose loops of known length leave factors behind, rather than carry the sums of their products."""
    if not holds_graphs(graph):
        return graph
    equations = [own for equation in graph.equations for own in without_sums(equation)]
    if len(equations) == len(graph.equations):
        return graph
    return eliminate_dead(Graph(graph.inputs, equations, graph.outputs))


def without_sums(equation: Equation) -> list[Equation]:
    """Return a loop, which may carry what nobody needs then, and what comes after it; other equations as they are."""
    params = loop_parameters(equation)
    if params is None or params is not equation.params or params["cond"] is not None:
        return [equation]
    if (params["spec"].length or 0) < LEAST:
        return [equation]
    loop = SumsOfLoop(equation)
    for i in range(params["spec"].carried):
        loop.move(i)
    return [loop.equation, *loop.after] if loop.after else [equation]


class SumsOfLoop:
    """Take sums of products out of a loop of known length.

    Attributes:
        makers: the equations of the body, by what they bind.
        uses: how often each variable of it is used.
        rows: for what changes from round to round, and is read from a sequence or left in one: that sequence.
        left: what the rounds leave behind besides.
        results: what the loop gives.
        after: the equations after it.
        branch_products: the products whose factors branches are to give, by the equations that choose these.
    """

    def __init__(self, equation: Equation) -> None:
        self.whole, self.body, self.spec = equation, equation.params["body"], equation.params["spec"]
        own, carried = self.spec.constants, self.spec.carried
        self.steady = frozenset(self.body.inputs[:own])
        self.makers = {v: inner for inner in self.body.equations for v in inner.outputs}
        read = [*self.body.outputs, *[x for inner in self.body.equations for x in inner.inputs]]
        self.uses = Counter([x for x in read if type(x) is Variable])
        self.rows: dict[Any, Any] = {}
        self.enter(self.body.outputs[carried:], equation.outputs[carried:])
        self.enter(self.body.inputs[own + carried :], equation.inputs[own + carried :])
        self.left: list[Variable] = []
        self.results = list(equation.outputs)
        self.after: list[Equation] = []
        self.branch_products: dict[Equation, list[BranchProduct]] = {}

    def enter(self, values: Iterable[Any], sequences: Iterable[Any]) -> None:
        """Enter sequences of values of each round."""
        self.rows |= {x: rows for x, rows in zip(values, sequences, strict=True) if type(x) is Variable}

    @property
    def equation(self) -> Equation:
        """The loop with what it leaves behind now."""
        equations = [
            with_factors(e, self.branch_products[e]) if e in self.branch_products else e for e in self.body.equations
        ]
        body = Graph(self.body.inputs, equations, (*self.body.outputs, *self.left))
        changed = {**self.whole.params, "body": body}
        return Equation(self.whole.primitive, self.whole.inputs, changed, tuple(self.results), self.whole.origin)

    def move(self, i: int) -> None:
        """Let products after the loop give a result that it carries, if that is a sum of products and worth it."""
        result, start = self.whole.outputs[i], self.whole.inputs[self.spec.constants + i]
        products = self.products(i) if math.prod(result.shape) >= LARGE and lies_plainly(result) else []
        if not products or not self.has_room(products, result):
            return
        total = None if type(start) is not Variable and not np.any(start) else start
        if total is not None and not lies_plainly(total):
            return
        self.results[i] = Variable.of(result.aval, result.name)
        for n, product in enumerate(products, 1):
            rows = tuple(map(self.rows_of, product.factors))
            if product.of_branch is not None:
                self.branch_products.setdefault(product.of_branch.choice, []).append(product.of_branch)
            out = result if n == len(products) else Variable.of(result.aval)
            is_last = total is None and not product.is_negated
            term = out if is_last else Variable.of(result.aval)
            self.append(PRIMITIVES["contract"], rows, {"labels": product.labels}, term)
            if total is not None:
                self.append(subtract if product.is_negated else add, (total, term), {}, out)
            elif product.is_negated:
                self.append(negative, (term,), {}, out)
            total = out

    def append(self, primitive: Primitive, inputs: tuple[Any, ...], params: dict[str, Any], out: Variable) -> None:
        """Append an equation after the loop."""
        self.after.append(Equation(primitive, inputs, params, (out,), self.whole.origin))

    def rows_of(self, x: Variable) -> Any:
        """Return the sequence of what changes from round to round, which the loop leaves behind from now on."""
        if x not in self.rows:
            shape = self.spec.length, *x.shape
            strides = strides_of_stack(shape, x.strides, x.dtype.itemsize)
            self.rows[x] = Variable.of(Aval(shape, x.dtype), x.name, strides)
            self.left.append(x)
            self.results.append(self.rows[x])
        return self.rows[x]

    def has_room(self, products: Sequence[ProductOfRows], result: Variable) -> bool:
        """Tell whether what the loop would leave behind is small, or no larger than the sum, or than what it reads."""
        new = {x for product in products for x in product.factors if x not in self.rows}
        rows = self.whole.inputs[self.spec.constants + self.spec.carried :]
        added, summed, read = (sum(map(bytes_of, xs)) for xs in (new, [result], rows))
        length: int = self.spec.length
        return length * added <= max(SMALL, summed, read)

    def products(self, i: int) -> list[ProductOfRows]:
        """Return the products that each round adds to what it carries, if it does nothing else with that."""
        start, todo = self.body.inputs[self.spec.constants + i], [(self.body.outputs[i], False)]
        found, begun = list[ProductOfRows](), False
        while todo:
            x, is_negated = todo.pop()
            maker = self.makers.get(x) if type(x) is Variable else None
            if x is start and not is_negated:
                begun = True
            elif maker is None or self.uses[x] > 1 or x.shape != start.shape or x.dtype != start.dtype:
                return []
            elif maker.primitive is add and not maker.params:
                todo += [(term, is_negated) for term in maker.inputs]
            elif maker.primitive is negative:
                todo.append((maker.inputs[0], not is_negated))
            elif (product := self.product_of(maker) or self.product_of_branch(maker, x)) is not None:
                found.append(product._replace(is_negated=product.is_negated is not is_negated))
            else:
                return []
        return found if begun and self.uses[start] == 1 else []

    def product_of_branch(self, choice: Equation, result: Variable) -> ProductOfRows | None:
        """Return a product that one branch gives where all others give zeros; None of all else."""
        graphs = branches_of(choice) or ()
        outputs = [graph.outputs[choice.outputs.index(result)] for graph in graphs]
        places = [n for n, x in enumerate(outputs) if type(x) is Variable or np.any(x)]
        if len(places) != 1 or type(outputs[places[0]]) is not Variable:
            return None
        makers = {v: e for e in graphs[places[0]].equations for v in e.outputs}
        maker, is_negated = makers.get(outputs[places[0]]), False
        while maker is not None and maker.primitive is negative:
            maker, is_negated = makers.get(maker.inputs[0]), not is_negated
        labels = None if maker is None else labels_of_product(maker)
        if maker is None or labels is None or len(maker.inputs) != 2 or labels.relation is not None:
            return None
        if any(type(x) is not Variable or not lies_plainly(x) for x in maker.inputs):
            return None
        factors = tuple([Variable.of(x.aval, x.name) for x in maker.inputs])
        own = BranchProduct(choice, places[0], maker.inputs, factors)
        return self.with_rounds(factors, labels.operands, labels, result.dtype, is_negated, own)

    def with_rounds(
        self,
        factors: Sequence[Variable],
        operands: Sequence[Names],
        labels: Labels,
        dtype: Any,
        is_negated: bool = False,
        of_branch: BranchProduct | None = None,
    ) -> ProductOfRows | None:
        """Return the sum over all rounds of a product of some dtype; None if lengths or dtypes do not allow it."""
        if any(UNKNOWN in x.shape for x in factors) or np.result_type(*[x.dtype for x in factors]) != dtype:
            return None
        names = tuple([(len(labels.lengths), *own) for own in operands])
        summed = labels.replace(operands=names, lengths=(*labels.lengths, self.spec.length))
        return ProductOfRows(factors, summed, is_negated, of_branch)

    def product_of(self, equation: Equation) -> ProductOfRows | None:
        """Return a product, or one whose axes are permuted, of factors that change; None of all else."""
        axes, inner = None, equation
        if equation.primitive is transpose and self.uses[equation.inputs[0]] == 1:
            axes, inner = equation.params["axes"], self.makers.get(equation.inputs[0], equation)
        labels = labels_of_product(inner)
        if labels is None or len(inner.inputs) != 2 or labels.relation is not None:
            return None
        if axes is not None and labels.merged is None:
            labels = labels.replace(result=tuple([labels.result[axis] for axis in axes]))
        elif axes is not None:
            return None
        factors, operands = [], []
        for x, own in zip(inner.inputs, labels.operands, strict=True):
            factor, names = self.before_views(x, own)
            if type(factor) is not Variable or factor in self.steady:
                return None
            factors.append(factor)
            operands.append(names)
        return self.with_rounds(factors, operands, labels, equation.outputs[0].dtype)

    def before_views(self, x: Any, own: Names) -> tuple[Any, Names]:
        """Return what a factor was before its axes were permuted, with its labels, if no row holds it as it is."""
        while type(x) is Variable and x not in self.rows and x in self.makers:
            maker = self.makers[x]
            if maker.primitive is not transpose or len(own) != len(x.shape):
                break
            names = dict(zip(maker.params["axes"], own, strict=True))
            x, own = maker.inputs[0], tuple([names[axis] for axis in range(len(own))])
        return x, own


def with_factors(choice: Equation, products: Sequence[BranchProduct]) -> Equation:
    """Return a choice of a branch that gives the factors of products besides, zeros where branches have none."""
    graphs = []
    for n, graph in enumerate(choice.params["branches"]):
        factors = [x if n == own.place else zeros_like(x) for own in products for x in own.factors]
        graphs.append(Graph(graph.inputs, graph.equations, (*graph.outputs, *factors)))
    results = (*choice.outputs, *[x for own in products for x in own.results])
    return Equation(
        choice.primitive, choice.inputs, {**choice.params, "branches": tuple(graphs)}, results, choice.origin
    )


def zeros_like(x: Variable) -> Any:
    """Return zeros of the shape and dtype of a variable, in memory for one."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape)


def bytes_of(x: Any) -> int:
    """Return how many bytes an array has."""
    aval = aval_of(x)
    return math.prod(aval.shape) * aval.dtype.itemsize


def lies_plainly(x: Any) -> bool:
    """Tell whether an array lies in C order."""
    return x.strides is None if type(x) is Variable else type(x) is np.ndarray and x.flags.c_contiguous


LABELLED = frozenset(("labels", "subscripts", "optimize"))
"""Parameters that say nothing but labels, and in which order NumPy multiplies."""


def multiply_in_pairs(graph: Graph) -> Graph:
    """Return a graph without products of several factors, or with sums of one alone, which are summed first.

    Their sums are rounded as those of two then. `einsum("abc,ad->bda", x, y)` multiplies as many times fewer.
    """
    if not any(labels_of_several(equation) for equation in graph.equations):
        return graph
    return Graph(graph.inputs, [own for equation in graph.equations for own in in_pairs(equation)], graph.outputs)


def labels_of_several(equation: Equation) -> Labels | None:
    """Return the labels of a product of several factors, or of two with sums of their own; None of all else.

    It is None, too, where lengths are not known.
    """
    labels = labels_of_product(equation) if len(equation.inputs) > 1 else None
    if labels is None or labels.relation is not None:
        return None
    return labels if len(equation.inputs) > 2 or any(lone_labels(labels)) else None


def lone_labels(labels: Labels) -> list[set[int]]:
    """Return for each operand those labels that are in no other one, nor in the result, and not of length one."""
    counts = Counter([n for own in (*labels.operands, labels.result) for n in set(own)])
    return [{n for n in own if counts[n] == 1 and labels.lengths[n] > 1} for own in labels.operands]


def labels_of_product(equation: Equation) -> Labels | None:
    """Return the labels of a sum of products; None of all else, and where lengths are not known, or none."""
    form = form_of(equation.primitive) if equation.primitive.registered else None
    if not isinstance(form, Contraction) or not LABELLED.issuperset(equation.params):
        return None
    shapes = [aval_of(x).shape for x in equation.inputs]
    return None if any(n < 1 for shape in shapes for n in shape) else form.record(shapes, equation.params)


def in_pairs(equation: Equation) -> list[Equation]:
    """Return a sum of products of several factors as those of two, in its dtype; other equations as they are."""
    labels = labels_of_several(equation)
    if labels is None:
        return [equation]
    (out,), found = equation.outputs, list[Equation]()

    def new(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any], v: Variable) -> Variable:
        found.append(Equation(primitive, tuple(inputs), params, (v,), equation.origin))
        return v

    def like(shape: tuple[int, ...]) -> Variable:
        return Variable.of(Aval(shape, out.dtype))

    factors = [
        x if aval_of(x).dtype == out.dtype else new(astype, [x], {"dtype": out.dtype}, like(aval_of(x).shape))
        for x in equation.inputs
    ]
    lone, operands = lone_labels(labels), list(labels.operands)
    for i, names in enumerate(lone):
        if names:
            kept = tuple([n for n in dict.fromkeys(operands[i]) if n not in names])
            sums = labelled([labels.lengths_of(operands[i])], [operands[i]], kept)
            factors[i] = new(PRIMITIVES["contract"], [factors[i]], {"labels": sums}, like(sums.shape))
            operands[i] = kept
    if any(lone):
        shapes, lengths = list(map(labels.lengths_of, operands)), {n: labels.lengths[n] for n in labels.result}
        flags, merged = labels.conjugated, labels.merged
        labels = labelled(shapes, operands, labels.result, conjugated=flags, lengths=lengths, merged=merged)
    for n, (left, right, own) in enumerate(labels.pairs, 1):
        v = out if n == len(labels.pairs) else like(own.shape)
        made = new(PRIMITIVES["contract"], [factors[left], factors[right]], {"labels": own}, v)
        factors = [made, *[x for i, x in enumerate(factors) if i not in (left, right)]]
    return found
