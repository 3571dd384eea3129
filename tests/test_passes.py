"""Graph passes: what each rewrites and what it must not, and that random programs keep their values to the bit."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wengert as wg
from tests.cases import together
from tests.samples.calls import same_bits
from wengert.control.call import primitive as declared_call
from wengert.control.cond import cond
from wengert.control.scan import scan
from wengert.control.while_loop import fori_loop, while_loop
from wengert.core.graph.graph import Equation, Graph, Variable, evaluate
from wengert.core.graph.graph_checker import check
from wengert.core.memory.memory_layout import strides_of
from wengert.core.memory.views import current
from wengert.core.primitives.opaque_kinds import Constant
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import apply
from wengert.core.values.recording import next_level
from wengert.errors import GraphError
from wengert.passes import pipeline, states_of_loops
from wengert.passes.common_subexpressions import merge_common
from wengert.passes.dead_code import eliminate_dead
from wengert.passes.inlining import inline_calls
from wengert.passes.pipeline import BEFORE_LOWERING, PIPELINE, flatten_calls, simplify_graph
from wengert.passes.rows_in_loops import compute_rows_in_loops
from wengert.passes.simplify import simplify
from wengert.primitives.arithmetic import add, multiply, negative
from wengert.primitives.conversion import overwritten
from wengert.support import config
from wengert.support.machine import MACHINE
from wengert.traces.staging import Staging
from wengert.transforms.tracing import trace

FLOAT = np.dtype(float)


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def staged(function: Callable[..., Any], *examples: Any) -> Graph:
    """Trace a function without running any pass."""
    stage = Staging(next_level(), "staged")
    try:
        results = function(*[stage.input(aval_of(x)) for x in examples])
        results = results if isinstance(results, tuple) else (results,)
        return stage.graph([current(x) if isinstance(x, wg.Tensor) else x for x in results])
    finally:
        stage.end()


def operations(graph: Graph) -> list[str]:
    return [equation.primitive.name for equation in graph.equations]


# Values that distinguish identities that hold from those that nearly do

SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, -1e-310, 1.0, -1.0, 0.5, -2.5, 3e38])
ROWS = SPECIAL.reshape(3, 4)
WITH_IMAGINARY = np.stack([SPECIAL, SPECIAL[::-1]], axis=-1).view(complex)[:, 0]
TRUTHS = np.array([True, False, True, True])


def written_to_all(x: Any, y: Any) -> Any:
    x[:, -4:] = y * y
    return x


# Each: what is traced, its arguments, and the operations that are left

REWRITTEN: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[str]]] = {
    "times one": (lambda x: x * 1.0, (SPECIAL,), []),
    "one times": (lambda x: 1 * x, (SPECIAL,), []),
    "times an array of ones": (lambda x: x * np.ones(12), (SPECIAL,), []),
    "times minus one": (lambda x: x * -1.0, (SPECIAL,), ["negative"]),
    "integers times minus one": (lambda x: -1 * x, (np.arange(3),), ["negative"]),
    "divided by one": (lambda x: x / 1.0, (SPECIAL,), []),
    "divided by minus one": (lambda x: x / -1, (SPECIAL,), ["negative"]),
    "minus zero": (lambda x: x - 0.0, (SPECIAL,), []),
    "plus negative zero": (lambda x: x + -0.0, (SPECIAL,), []),
    "double negation": (lambda x: np.negative(-x), (SPECIAL,), []),
    "product of negated": (lambda x, y: (-x) * (-y), (SPECIAL, SPECIAL[::-1]), ["multiply"]),
    "quotient of negated": (lambda x, y: (-x) / (-y), (SPECIAL, SPECIAL[::-1]), ["divide"]),
    "inversion of bits twice": (lambda x: ~~x, (np.arange(3),), []),
    "conjugate of a real": (np.conjugate, (SPECIAL,), []),
    "conjugate of a conjugate": (lambda x: np.conjugate(np.conjugate(x)), (WITH_IMAGINARY,), []),
    "real part of a real": (np.real, (SPECIAL,), []),
    "plus sign": (lambda x: +x, (SPECIAL,), []),
    "copy": (np.copy, (SPECIAL,), []),
    "same dtype": (lambda x: x.astype(float), (SPECIAL,), []),
    "condition true": (lambda x, y: np.where(np.ones(12, bool), x, y), (SPECIAL, SPECIAL[::-1]), []),
    "condition false": (lambda x: np.where(np.False_, x, 7.0), (SPECIAL,), []),
    "condition chooses the narrower": (lambda x, y: np.where(True, x, y), (ROWS[0], ROWS), ["where"]),
    "equal choices": (lambda x: np.where(x > 0, x, x), (SPECIAL,), []),
    "and with true": (lambda c: c & np.ones(4, bool), (TRUTHS,), []),
    "and with false": (lambda c: np.zeros(4, bool) & c, (TRUTHS,), []),
    "or with true": (lambda c: c | True, (TRUTHS,), []),
    "or with false": (lambda c: np.logical_or(c, False), (TRUTHS,), []),
    "integers are never NaN": (lambda x: x != x, (np.arange(3),), []),
    "integers equal themselves": (lambda x: x == x, (np.arange(3),), []),
    "whole part": (lambda x: x[:, ...], (ROWS,), []),
    "whole part by its lengths": (lambda x: x[0:3][:, -4:9], (ROWS,), []),
    "write to all": (written_to_all, (ROWS, SPECIAL[::-1].reshape(3, 4)), ["multiply"]),
    "part of a part": (lambda x: x[::-1][1:, 2], (ROWS,), ["getitem"]),
    "element of a row": (lambda x: x[1][-1], (ROWS,), ["getitem"]),
    "parts of parts": (lambda x: x[..., ::2][1][::-1], (ROWS,), ["getitem"]),
    "new axes and back": (lambda x: x[:, None, :, None].reshape(3, 4), (ROWS,), []),
    "reshaped twice": (lambda x: x.reshape(4, 3).reshape(2, 6), (ROWS,), ["reshape"]),
    "reshaped back": (lambda x: x.reshape(12).reshape(3, 4), (ROWS,), []),
    "transposed back": (lambda x: x.T.T, (ROWS,), []),
    "transposed twice": (
        lambda x: np.transpose(np.transpose(x, (1, 2, 0)), (0, 2, 1)),
        (SPECIAL.reshape(3, 2, 2),),
        ["transpose"],
    ),
    "broadcast twice": (
        lambda x: np.broadcast_to(np.broadcast_to(x, (3, 4)), (2, 3, 4)),
        (ROWS[0],),
        ["broadcast_to"],
    ),
    "broadcast to its shape": (lambda x: np.broadcast_to(x, (3, 4)), (ROWS,), []),
    "broadcast into an operation": (lambda x, y: np.broadcast_to(x, (3, 4)) * y, (ROWS[0], ROWS), ["multiply"]),
    "uniform literal": (lambda x: x * np.full((3, 4), 2.0), (ROWS,), ["multiply"]),
    "guard of a constant divisor": (lambda x: wg.grad(lambda y: np.sum(y / 3.0))(x), (SPECIAL,), []),
}

KEPT: dict[str, tuple[Callable[..., Any], tuple[Any, ...], list[str]]] = {
    "plus zero": (lambda x: x + 0.0, (SPECIAL,), ["add"]),
    "minus negative zero": (lambda x: x - -0.0, (SPECIAL,), ["subtract"]),
    "zero minus": (lambda x: 0.0 - x, (SPECIAL,), ["subtract"]),
    "times zero": (lambda x: x * 0.0, (SPECIAL,), ["multiply"]),
    "minus itself": (lambda x: x - x, (SPECIAL,), ["subtract"]),
    "divided by itself": (lambda x: x / x, (SPECIAL,), ["divide"]),
    "equal to itself": (lambda x: x == x, (SPECIAL,), ["equal"]),
    "complex times one": (lambda x: x * 1.0, (WITH_IMAGINARY,), ["multiply"]),
    "complex divided by one": (lambda x: x / 1.0, (WITH_IMAGINARY,), ["divide"]),
    "complex minus negative zero": (lambda x: x + -0.0, (WITH_IMAGINARY,), ["add"]),
    "times one in another dtype": (lambda x: x * np.float64(1), (SPECIAL.astype(np.float32),), ["multiply"]),
    "integers divided by one": (lambda x: x / 1, (np.arange(3),), ["divide"]),
    "times ones of another shape": (lambda x: x * np.ones((3, 1)), (ROWS[0],), ["multiply"]),
    "backwards": (lambda x: x[::-1], (SPECIAL,), ["getitem"]),
    "part by an array": (lambda x: x[:2][np.array([1, 0])], (ROWS,), ["getitem", "getitem"]),
    "reshaped in Fortran's order": (lambda x: x.reshape(4, 3).reshape(12, order="F"), (ROWS,), ["reshape", "reshape"]),
    "broadcast that gives the shape": (
        lambda x, y: np.broadcast_to(x, (3, 4)) * y,
        (ROWS[0], ROWS[1]),
        ["broadcast_to", "multiply"],
    ),
    "another dtype": (lambda x: x.astype(np.float32).astype(float), (SPECIAL,), ["astype", "astype"]),
}


@together("name", [*REWRITTEN, *KEPT])
def test_a_rewrite_leaves_these_operations_and_the_same_bits(name: str) -> None:
    function, args, left = {**REWRITTEN, **KEPT}[name]
    before = staged(function, *args)
    after = eliminate_dead(simplify(before))
    check(after)
    assert operations(after) == left
    for found, want in zip(evaluate(after, args), evaluate(before, args), strict=True):
        assert same_bits(found, want)
        assert same_bits(want, np.asarray(function(*args)))


def random_index(generator: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return a basic index of some of the axes, the first or, behind an ellipsis, the last."""

    def bound(n: int) -> int | None:
        return None if generator.random() < 0.3 else int(generator.integers(-n - 2, n + 3))

    def entry(n: int) -> Any:
        if n and generator.random() < 0.3:
            return int(generator.integers(-n, n))
        return slice(bound(n), bound(n), generator.choice([None, 1, 2, 3, -1, -2, -3]))

    count = int(generator.integers(len(shape) + 1))
    if generator.random() < 0.3:
        return (Ellipsis, *map(entry, shape[len(shape) - count :]))
    return tuple(map(entry, shape[:count]))


def test_parts_of_parts_are_read_at_once() -> None:
    generator = np.random.default_rng(0)
    for _ in range(500):
        x = np.arange(12.0 * generator.integers(4)).reshape(-1, 3, 4)
        variable, value, equations = Variable(x.shape, FLOAT), x, []
        before = variable
        for _ in range(3):
            index = random_index(generator, value.shape)
            value = value[index]
            after = Variable(value.shape, FLOAT, "", strides_of(value) or None)
            equations.append(Equation(PRIMITIVES["getitem"], (before,), {"index": index}, (after,)))
            before = after
        graph = eliminate_dead(simplify(Graph((variable,), equations, (before,))))
        assert len(graph.equations) <= 1
        assert same_bits(np.asarray(evaluate(graph, (x,))[0]), value)


DIFFERENTIABLE = [name for name, (_, args, _) in REWRITTEN.items() if all(x.dtype.kind in "fc" for x in args)]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@pytest.mark.filterwarnings("ignore::wengert.errors.DetachedWarning")
def test_a_rewrite_leaves_the_derivatives(name: str) -> None:
    function, args, _ = REWRITTEN[name]
    before = staged(function, *args)
    after = eliminate_dead(simplify(before))

    def cotangents(graph: Graph) -> Any:
        results, pullback = wg.vjp(lambda *xs: evaluate(graph, xs), *args)
        return pullback(tuple(np.ones(x.shape, x.dtype) for x in results))

    for found, expected in zip(cotangents(after), cotangents(before), strict=True):
        assert same_bits(found, expected)


def test_every_rewrite_is_of_a_primitive_and_says_why_values_are_preserved() -> None:
    for rewrite in {r for primitive in PRIMITIVES.values() for r in primitive.rewrites}:
        assert rewrite.__doc__
        assert ":" in rewrite.__doc__ or "." in rewrite.__doc__.splitlines()[0]


def test_a_guard_stays_where_the_divisor_may_vanish() -> None:
    graph = simplify_graph(staged(lambda x, y: wg.grad(lambda t: np.sum(t / y))(x * y), SPECIAL, SPECIAL))
    assert "divide" in operations(graph)
    zero = simplify_graph(staged(lambda x: wg.grad(lambda t: np.sum(t / 0.0))(x) * x, SPECIAL))
    want = wg.grad(lambda t: np.sum(t / 0.0))(SPECIAL) * SPECIAL
    assert same_bits(evaluate(zero, (SPECIAL,))[0], want)


def test_literals_are_folded_unless_they_are_large_or_fail() -> None:
    x = Variable((), FLOAT)
    y, z = Variable((), FLOAT), Variable((), FLOAT)
    graph = Graph((x,), (Equation(multiply, (np.float64(2.0), 3.0), {}, (y,)), Equation(add, (x, y), {}, (z,))), (z,))
    folded = simplify(graph)
    assert operations(folded) == ["add"]
    assert folded.equations[0].inputs[1] == 6.0
    assert isinstance(folded.equations[0].inputs[1], np.float64)  # a Python number would give way to other dtypes

    wide = Variable((1000, 1000), FLOAT)
    large = Graph((), (Equation(negative, (np.ones((1000, 1000)),), {}, (wide,)),), (wide,))
    assert operations(simplify(large)) == ["negative"]

    singular = Variable((2, 2), FLOAT)
    failing = Graph((), (Equation(PRIMITIVES["inv"], (np.zeros((2, 2)),), {}, (singular,)),), (singular,))
    assert operations(simplify(failing)) == ["inv"]


# Common and dead code


def test_passes_that_change_nothing_give_the_graph_itself_with_what_was_derived_of_it() -> None:
    def rounds(x: Any) -> Any:
        return wg.while_loop(lambda y: y < 9.0, lambda y: y * x + 1.0, x)

    graph = simplify_graph(staged(rounds, np.float64(2.0)))
    again = Graph(graph.inputs, graph.equations, graph.outputs)
    for step in PIPELINE:
        assert step(again) is again, step.__name__


def test_common_expressions_are_computed_once() -> None:
    graph = merge_common(staged(lambda x: (np.sin(x) + np.sin(x)) * np.sum(x, axis=0), ROWS))
    assert operations(graph).count("sin") == 1


def test_literals_of_different_bits_are_different() -> None:
    for left, right in ((0.0, -0.0), (1, 1.0), (1.0, np.float64(1.0)), (True, 1)):
        graph = merge_common(staged(lambda x, a=left, b=right: (x * a, x * b), ROWS.astype(np.float32)))
        assert len(graph.equations) == 2, (left, right)
    graph = merge_common(staged(lambda x: (x * np.nan, x * np.nan), ROWS))
    assert len(graph.equations) == 1


def test_large_literals_of_the_same_bits_are_one_array() -> None:
    ones = np.linspace(0.0, 1.0, 10_000).reshape(100, 100)
    others = {"same": ones.copy(), "sign": np.where(ones == 0.0, -0.0, ones), "order": np.asfortranarray(ones)}
    for name, other in others.items():
        graph = merge_common(staged(lambda x, a=other: (x * ones, x + a, x * a), ROWS[0, 0]))
        literals = [x for e in graph.equations for x in e.inputs if type(x) is np.ndarray]
        assert len({id(x) for x in literals}) == (1 if name == "same" else 2), name
        assert len(graph.equations) == (2 if name == "same" else 3), name


def test_parameters_tell_expressions_apart() -> None:
    graph = merge_common(staged(lambda x: (x.sum(axis=0), x.sum(axis=1), x.sum(axis=0)), ROWS))
    assert len(graph.equations) == 2
    graph = merge_common(staged(lambda x: (x[:2], x[1:], x[:2], x[np.array([0, 1])], x[np.array([0, 2])]), ROWS))
    assert len(graph.equations) == 4


def test_what_nothing_uses_is_dropped() -> None:
    def function(x: Any) -> Any:
        np.exp(np.sin(x))
        return np.cos(x)

    assert operations(eliminate_dead(staged(function, ROWS))) == ["cos"]

    for dtype, kept in ((np.int64, []), (np.uint8, []), (np.uint64, ["whole"])):  # which may have no room in 64 bits
        unread = trace(lambda x, n: (fori_loop(0, n, lambda _, y: y * x, x), np.cos(x))[1])(1.0, dtype(3))
        assert operations(unread) == [*kept, "cos"]


def test_dropping_does_not_recurse() -> None:
    def chain(x: Any) -> Any:
        for _ in range(5000):
            x = x * 1.5
        return x

    graph = simplify_graph(staged(chain, 1.0))
    assert len(graph.equations) == 5000


# Sub-graphs


class Call(Constant):
    """Stand for a structured operation that is not declared, whatever its name."""

    structured = True

    def __init__(self) -> None:
        super().__init__("call", lambda *xs, graph, name: evaluate(graph, xs), outputs=0)


def calling(call: Primitive) -> Graph:
    """A graph that calls another one twice, once with a Python number."""
    x, y = Variable((), np.dtype(np.float32)), Variable((), np.dtype(np.float32))
    one, two = Variable((), np.dtype(np.float32)), Variable((), np.dtype(np.float32))
    unused, out = Variable((), np.dtype(np.float32)), Variable((), np.dtype(np.float32))
    body = Graph(
        (x, y),
        (
            Equation(negative, (x,), {}, (unused,)),
            Equation(multiply, (x, 1), {}, (one,)),
            Equation(multiply, (one, y), {}, (out,)),
        ),
        (out,),
    )
    z = Variable((), np.dtype(np.float32))
    first, total = Variable((), np.dtype(np.float32)), Variable((), np.dtype(np.float32))
    equations = (
        Equation(call, (z, z), {"graph": body, "name": "body"}, (first,)),
        Equation(call, (first, 2.0), {"graph": body, "name": "body"}, (two,)),
        Equation(add, (first, two), {}, (total,)),
    )
    return Graph((z,), equations, (total,))


def test_calls_are_inlined_in_variables_of_their_own() -> None:
    graph = inline_calls(calling(declared_call))
    bound = [v for equation in graph.equations for v in equation.outputs]
    assert len(set(bound)) == len(bound)
    assert operations(graph) == ["negative", "multiply", "multiply"] * 2 + ["add"]
    check(graph)
    z = np.float32(3)
    assert same_bits(evaluate(graph, (z,))[0], np.float32(9 + 18))
    assert operations(flatten_calls(calling(declared_call))) == ["multiply", "multiply", "add"]
    assert operations(simplify_graph(calling(declared_call))) == ["call", "call", "add"]


def test_passes_reach_into_sub_graphs_that_are_not_inlined() -> None:
    graph = simplify_graph(calling(Call()))
    inner = graph.equations[0].params["graph"]
    assert operations(inner) == ["multiply"]


def unused_carried(x: Any, n: Any) -> Any:
    """A loop whose counter decides, whose product is used, and whose other values only keep each other up to date."""
    body: Callable[..., Any] = lambda s: (s[0] + 1, s[1] * x, np.sin(s[2]) + s[3], np.cos(s[3]))
    return while_loop(lambda s: s[0] < n, body, (0, x, x, x))[1]


def unused_left(x: Any) -> Any:
    """A scan of which one carried value and one sequence are not used."""

    def step(carried: Any, element: Any) -> Any:
        total, product = carried
        return (total + element, product * element), (total, np.exp(product))

    (total, _), (totals, _) = scan(step, (x[0], x[1]), x)
    return total, totals


def unused_choice(x: Any) -> Any:
    """A choice of which one result is not used."""
    branches = (lambda x, y: (x * 2, np.sin(y)), lambda x, y: (x * 3, np.cos(y)))
    return cond(x[0] > 0, *branches, x, np.exp(x))[0]


def test_branches_and_loops_lose_what_nothing_needs() -> None:
    x = np.array([1.5, -2.0])
    loop = trace(unused_carried)(x, np.int64(3))
    assert [len(e.outputs) for e in loop.equations] == [2]
    assert operations(loop.equations[0].params["body"]) == ["add", "multiply"]

    series = trace(unused_left)(x)
    (found,) = [e for e in series.equations if e.primitive.name == "scan"]
    assert (len(found.inputs), len(found.outputs)) == (2, 2)
    assert operations(found.params["body"]) == ["add"]

    choice = trace(unused_choice)(x)
    assert "exp" not in operations(choice)
    assert [operations(graph) for graph in choice.equations[-1].params["branches"]] == [["multiply"], ["multiply"]]

    for function, args in ((unused_carried, (x, np.int64(3))), (unused_left, (x,)), (unused_choice, (x,))):
        graph = trace(function)(*args)
        check(graph)
        want = function(*args)
        for found_value, expected in zip(
            evaluate(graph, args), want if len(graph.outputs) > 1 else (want,), strict=True
        ):
            assert same_bits(found_value, expected)
        gradient = trace(wg.grad(lambda y, f=function, rest=args[1:]: np.sum(leaf(f(y, *rest)))))(x)
        check(gradient)
        eager = wg.grad(lambda y, f=function, rest=args[1:]: np.sum(leaf(f(y, *rest))))(x)
        assert same_bits(evaluate(gradient, (x,))[0], eager)


def test_code_computes_once_what_differs_by_barriers_alone() -> None:
    def run(x: Any, scale: Any) -> Any:
        def inner(y: Any) -> Any:
            held = wg.stop_gradient(scale)
            known = apply(overwritten, np.exp(held[0] + y), y)  # where derivatives come from is not computed
            return known * np.sin(y * scale[0]) * np.sin(y * held[0])

        def outer(y: Any, _: Any) -> Any:
            return while_loop(lambda y: y > 0.5, inner, y), ()

        return scan(outer, x, np.arange(3.0))[0]

    args = np.float64(1.5), np.array([0.7])
    graph = flatten_calls(trace(run)(*args))
    check(graph)
    (outside,) = [e for e in graph.equations if e.primitive.name == "scan"]
    (loop,) = [e for e in outside.params["body"].equations if e.primitive.name == "while_loop"]
    assert (outside.params["spec"].constants, loop.params["spec"].constants) == (1, 1)
    assert operations(loop.params["body"]) == ["multiply", "sin", "multiply", "multiply"]
    assert same_bits(evaluate(graph, args)[0], run(*args))


def rows_for_loop(x: Any, row: Any, number: Any) -> list[Any]:
    """Sequences that a loop may compute row by row, and two that it may not: one costly, the other read elsewhere."""
    square = x * x
    return [2.0 * square * number, x * row, x + np.broadcast_to(np.float64(3.0), x.shape), np.sqrt(x), x - 1]


@pytest.mark.parametrize("length", [2048, 2047], ids=["long", "short"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
def test_loops_compute_long_rows_that_they_alone_read(reverse: bool, length: int) -> None:
    def run(x: Any, row: Any, number: Any) -> Any:
        sequences = rows_for_loop(x, row, number)

        def step(total: Any, rows: Any) -> Any:
            a, b, c, d, e = rows
            return total * c + a, b * d - e

        total, left = scan(step, row, tuple(sequences), reverse=reverse)
        return total, left, sequences[-1]

    x = np.random.default_rng(3).normal(size=(3, length))
    x[:, :12] = SPECIAL
    args = x, np.arange(float(length)), np.float64(0.5)
    graph = compute_rows_in_loops(trace(run)(*args))
    check(graph)
    (loop,) = [e for e in graph.equations if e.primitive.name == "scan"]
    outside = ["scan", "sqrt", "subtract"] if length == 2048 else ["add", *["multiply"] * 4, "scan", "sqrt", "subtract"]
    assert sorted(operations(graph)) == outside
    assert len(loop.params["body"].equations) == 4 + (5 if length == 2048 else 0)
    want = run(*args)
    for results in (evaluate(graph, args), wg.jit(run)(*args)):
        assert all(map(same_bits, results, want))


def recurrence(w: Any, start: Any, xs: Any, how: str) -> Any:
    """Return a sum of the states of a network; also of those before rounds, if that is asked for."""

    def step(state: Any, x: Any) -> Any:
        following = np.tanh(state @ w + x)
        return following, (following, state) if how == "read besides" else (following,)

    if how == "lanes":
        states = wg.vmap(lambda start, xs: wg.scan(step, start, xs)[1], (0, 1))(start, xs)
    else:
        states = wg.scan(step, start, xs, reverse=how == "reverse")[1]
    return sum([np.sum(x**2) for x in states])


@together(
    "how, starts_at_zeros",
    list(itertools.product(["", "reverse", "lanes", "read besides", "short", "few rounds"], [False, True])),
)
def test_products_read_states_before_rounds_among_those_after(
    how: str, starts_at_zeros: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(len(how))
    rounds, size = 3 if how == "few rounds" else 7, 50
    monkeypatch.setattr(states_of_loops, "MACHINE", MACHINE.replace(second_cache=1 << 30 if how == "short" else 64))
    w, xs = random.normal(size=(size, size)) / 7, random.normal(size=(rounds, 5, size))
    start = np.zeros((5, size)) if starts_at_zeros else random.normal(size=(5, size))

    def gradient(w: Any, xs: Any) -> Any:
        return wg.grad(lambda w: recurrence(w, start, xs, how))(w)

    unused = trace(wg.grad(lambda w, v: recurrence(w, start, xs, how), (0, 1)))(w, w)
    check(flatten_calls(unused))  # zeros are a result


def leaf(result: Any) -> Any:
    """The last of several results."""
    return result[-1] if isinstance(result, tuple) else result


# Random programs

OPERATIONS: list[tuple[int, Callable[..., Any]]] = [
    (1, lambda x: -x),
    (1, lambda x: +x),
    (1, np.copy),
    (1, np.abs),
    (1, np.sqrt),
    (1, np.conjugate),
    (1, lambda x: x.T),
    (1, lambda x: x.reshape(-1)),
    (1, lambda x: np.broadcast_to(x, (2, *x.shape)) if x.ndim < 3 else x),
    (1, lambda x: x.astype(np.float32)),
    (1, lambda x: x.astype(float)),
    (1, lambda x: x * 1),
    (1, lambda x: x * -1.0),
    (1, lambda x: x / np.float32(1)),
    (1, lambda x: x - 0),
    (1, lambda x: x + 0.0),
    (1, lambda x: x + -0.0),
    (1, lambda x: x * np.ones(x.shape, x.dtype)),
    (1, lambda x: np.full(x.shape, -0.0, x.dtype) - x),
    (1, lambda x: np.where(np.ones(x.shape, bool), x, 0.0)),
    (1, lambda x: np.where((x != x) & (x * 0 == 0), 0.0, x)),
    (1, lambda x: np.where(((x / 2) != (x / 2)) & (x == 0), 0.0, x / 2)),
    (1, lambda x: np.where(np.zeros(x.shape, bool) & (x > 0), 1.0, x)),
    (1, lambda x: wg.grad(lambda y: np.sum(y / 4.0))(x) * x),
    (1, lambda x: wg.grad(lambda y: np.sum(np.sqrt(y)))(x)),
    (2, lambda x, y: x + y),
    (2, lambda x, y: x - y),
    (2, lambda x, y: x * y),
    (2, lambda x, y: x / y),
    (2, lambda x, y: (-x) * (-y)),
    (2, np.maximum),
    (2, lambda x, y: np.where(x > y, x, y)),
    (2, lambda x, y: np.where(x == x, y, x)),
]
"""Operations whose results have bits that do not depend on how arrays lie in memory."""

Step = tuple[int, int, int]
programs = st.lists(
    st.tuples(st.integers(0, len(OPERATIONS) - 1), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12
)
numbers = st.sampled_from([float(x) for x in SPECIAL]) | st.floats(width=32)


def run(steps: Sequence[Step], *inputs: Any) -> tuple[Any, ...]:
    """Carry out a program: each step takes values among the inputs and earlier results; what does not fit is left."""
    values = list(inputs)
    for operation, first, second in steps:
        arity, function = OPERATIONS[operation]
        chosen = [values[i % len(values)] for i in (first, second)[:arity]]
        try:
            np.broadcast_shapes(*(x.shape for x in chosen))
        except ValueError:
            continue
        values.append(function(*chosen))
    return tuple(values[len(inputs) :][-4:])


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(programs, st.lists(numbers, min_size=10, max_size=10))
def test_random_programs_keep_their_bits_through_every_pass(steps: list[Step], elements: list[float]) -> None:
    with np.errstate(all="ignore"):
        args = (
            np.array(elements[:6]).reshape(2, 3),
            np.array(elements[6:9], np.float32),
            np.array([elements[9]]),
        )
        want = [np.asarray(x.numpy()) for x in run(steps, *map(wg.asarray, args))]
        graph = staged(lambda *xs: run(steps, *xs), *args)
        for step in (*PIPELINE, *BEFORE_LOWERING):
            for found, value in zip(evaluate(graph, args), want, strict=True):
                assert same_bits(found, value), graph
            graph = step(graph)
            check(graph)
        for found, value in zip(evaluate(graph, args), want, strict=True):
            assert same_bits(found, value), graph


# Debugging


def test_a_pass_that_breaks_a_graph_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(graph: Graph) -> Graph:
        return Graph(graph.inputs, graph.equations[1:], graph.outputs)

    monkeypatch.setattr(config, "DEBUG", True)
    monkeypatch.setattr(pipeline, "PIPELINE", (careless,))
    with pytest.raises(GraphError, match=r"^pass careless: a graph with a mistake .*is used before it is bound"):
        simplify_graph(staged(lambda x: np.sin(np.cos(x)), ROWS))


def test_the_environment_asks_for_graphs_after_each_pass() -> None:
    program = "import numpy, wengert as wg; from wengert.transforms.tracing import trace; trace(numpy.sin)(1.0)"
    environment = {**os.environ, "WENGERT_LOG": "passes", "WENGERT_DEBUG": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert [line for line in done.stderr.splitlines() if line.startswith("after ")] == [
        f"after {step.__name__}:" for step in PIPELINE
    ]
    assert "v1 = sin(" in done.stderr


@pytest.mark.usefixtures("evaluated")  # bits
def test_literal_arrays_beside_a_guard_are_not_compared() -> None:
    weights = np.array([1.0, 2.0])
    for f in (lambda x: np.logaddexp2(x, weights), lambda x: np.logaddexp(weights[:1], x), lambda x: x**weights):
        x = np.array([0.5, 0.6])
        slope = wg.elementwise_grad(f)
        assert same_bits(wg.jit(slope)(x), slope(x))


IN_ANOTHER_ORDER: dict[str, Callable[[Any], Any]] = {
    "copy of a transpose": lambda x: x.T.copy(),
    "copy of reversed rows": lambda x: x[::-1].copy(),
    "positive of a part with gaps": lambda x: +x[:, ::2],
    "part with gaps times one": lambda x: x[:, ::2] * 1.0,
    "negated twice": lambda x: np.negative(-x[:, ::-1]),
    "reshaped there and back": lambda x: x.T.reshape(-1).reshape(7, 5),
    "chosen": lambda x: np.where(True, x[::-1], 0.0),
}


@pytest.mark.usefixtures("evaluated")  # bits
@pytest.mark.parametrize("name", IN_ANOTHER_ORDER)
def test_sums_of_what_lay_otherwise_in_memory_keep_their_bits(name: str) -> None:
    function = IN_ANOTHER_ORDER[name]
    total = wg.jit(lambda x: function(x).sum())
    generator = np.random.default_rng(0)
    for _ in range(40):
        x = generator.normal(size=(5, 7)) * 10.0 ** generator.uniform(-3, 3, size=(5, 7))
        assert total(x) == function(x).sum()


def test_equal_graphs_become_one_object():
    def steps(x, times):
        return wg.while_loop(lambda v: v[0] < times, lambda v: (v[0] + 1, np.sin(v[1]) * 2.0), (0, x))[1]

    def other(x):
        return wg.while_loop(lambda v: v[0] < 5, lambda v: (v[0] + 1, np.sin(v[1]) * 2.0), (0, x))[1]

    graph = flatten_calls(wg.graph.trace(lambda x: steps(x, 3) + steps(2.0 * x, 3) + steps(x, 4) + other(x))(1.0))
    bodies = [id(e.params["body"]) for e in graph.equations if "body" in e.params]
    assert len(bodies) == 4
    assert len({*bodies}) == 2  # of another line
