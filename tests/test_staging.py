"""Staging: what every sample gives when it is traced to a graph first, and what cannot be traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.samples import SAMPLES
from tests.samples.base import Sample
from tests.samples.calls import call_of, float_leaves, leaves_of, random_like, same_bits, same_traced
from tests.samples.running import LOOKING, over
from wengert.core.forms import abstract_evaluation as shapes
from wengert.core.forms.abstract_evaluation import abstract
from wengert.core.graph.graph import Graph, Variable, evaluate
from wengert.core.graph.graph_checker import check
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.aval import Aval, aval_of
from wengert.errors import EscapedValueError, GraphError
from wengert.transforms.tracing import trace

LOOKING_FUNCTIONS = {
    *("nonzero", "argwhere", "flatnonzero", "extract", "unique", "unique_values", "unique_counts", "unique_all"),
    *("unique_inverse", "union1d", "intersect1d", "setdiff1d", "setxor1d", "trim_zeros", "compress", "bincount"),
    *("real_if_close", "<lambda>"),
}
"""Functions whose shapes, dtypes or truth values depend on elements; lambdas call `where` and masks."""


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def array(value: Any) -> Any:
    return np.asarray(value.numpy() if isinstance(value, wg.Tensor) else value)


def traced(function: Callable[..., Any], *args: Any) -> Graph | None:
    """Trace a function; None if it says that this cannot be done, because elements decide about the result."""
    try:
        graph: Graph = trace(function)(*args)
    except GraphError as error:
        text = str(error)
        assert "unknown while" in text or "were asked for while" in text, text
        return None
    check(graph)
    return graph


@over(SAMPLES, third=True)
def test_the_graph_of_a_sample_gives_what_it_gives_eagerly(sample: Sample) -> None:
    call = call_of(sample)
    graph = traced(lambda *xs: leaves_of(call(*xs)), *call.leaves)
    if graph is None:
        assert sample.primitive in LOOKING
        assert sample.function.__name__ in LOOKING_FUNCTIONS
        return
    want = leaves_of(call(*map(wg.asarray, call.copies())))
    found = evaluate(graph, call.copies())
    assert len(found) == len(want)
    for x, y in zip(found, want, strict=True):
        assert same_bits(array(x), array(y))


@over([s for s in SAMPLES if call_of(s).leaves], few=True, third=True)
def test_the_graph_of_a_gradient_gives_what_the_gradient_is_eagerly(sample: Sample) -> None:
    call = call_of(sample)
    results, pullback = wg.vjp(lambda *xs: float_leaves(call(*xs)), *call.copies())
    if not results:
        return
    cts = [random_like(x) for x in results]
    want = pullback(cts)

    def gradients(*xs: Any) -> Any:
        return list(wg.vjp(lambda *ys: float_leaves(call(*ys)), *xs)[1](cts))

    if traced(lambda *xs: leaves_of(call(*xs)), *call.leaves) is None:
        return
    graph = trace(gradients)(*call.copies())
    check(graph)
    for found, expected in zip(evaluate(graph, call.copies()), want, strict=True):
        assert same_bits(found, expected)


# What cannot be traced

REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "nonzero": (wnp.nonzero, r"^nonzero: a mask of shape \(3,\) whose elements are unknown while tracing; "),
    "argwhere": (wnp.argwhere, r"^argwhere: an array of shape \(3,\) whose elements are unknown while tracing; "),
    "where with one argument": (
        lambda x: wnp.where(x > 0),
        r"^nonzero: .* Use numpy\.where\(mask, x, 0\), mask\.sum\(\)",
    ),
    "lanes": (lambda x: wg.vmap(np.unique)(x[None]), r"^unique: .* Find the distinct elements outside of the traced"),
    **{
        name: (function, rf"^{name}: an array of shape \(3,\) .* {marked}; choose by numpy\.where\. Find the distinct")
        for name, function, marked in [
            ("unique", wnp.unique, r"with s = np\.sort\(x\) they are where np\.append\(True, s\[1:\] != s\[:-1\]\) .*"),
            ("unique_counts", wnp.unique_counts, "and its sum is their number"),
            ("union1d", lambda x: np.union1d(x, np.ones(3)), r"of x = np\.append\(ar1, ar2\), with s = .*"),
            ("intersect1d", lambda x: np.intersect1d(np.ones(3), x), r"np\.isin\(ar1, ar2\) tells .*"),
            ("setdiff1d", lambda x: np.setdiff1d(x, x), r"np\.isin\(ar1, ar2, invert=True\) tells .*"),
            ("setxor1d", lambda x: np.setxor1d(x, np.ones(2)), r"np\.isin\(ar2, ar1, invert=True\) tell .*"),
        ]
    },
    "bincount": (
        lambda x: wnp.bincount(x.astype(int)),
        r"^bincount: .* Pass minlength, greater than each number",
    ),
    "histogram": (lambda x: wnp.histogram(x, "auto"), r"^histogram: .* Pass the number of bins, or their edges\.$"),
    "mask": (lambda x: x[x > 0], r"^getitem: a mask of shape \(3,\) .* Use numpy\.where\(mask, x, 0\), "),
    "float": (lambda x: float(x[0]), r"a value in `float\(x\[0\]\)` \(float64\[\]\) were asked for"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_depends_on_elements_is_refused(name: str) -> None:
    function, text = REFUSED[name]
    with pytest.raises(GraphError, match=text):
        trace(function)(np.array([1.0, -2.0, 3.0]))


def test_what_is_said_of_distinct_elements_marks_them() -> None:
    def marked(x: Any, y: Any) -> Any:
        s = np.sort(np.append(x, y))
        first = np.append(True, s[1:] != s[:-1])
        return s, first, first.sum(), np.sum(np.where(first, s**2, 0.0)), np.isin(x, y, invert=True)

    x, y = np.array([3.0, 1.0, 3.0]), np.array([2.0, 1.0])
    for function in (marked, wg.jit(marked)):
        s, first, number, total, other = function(x, y)
        np.testing.assert_array_equal(s[first], np.union1d(x, y))
        assert (number, total) == (3, 14.0)
        np.testing.assert_array_equal(x[other], [3.0, 3.0])
    gradients = wg.jit(wg.grad(lambda x, y: marked(x, y)[3], argnums=(0, 1)))(x, y)
    wanted = wg.grad(lambda x, y: np.sum(np.union1d(x, y) ** 2), argnums=(0, 1))(x, y)
    np.testing.assert_array_equal(gradients[0], wanted[0])
    np.testing.assert_array_equal(gradients[1], wanted[1])


def test_masks_assign_although_their_elements_are_unknown() -> None:
    def function(x: Any) -> Any:
        y = wnp.copy(x)
        y[y < 0] = 0.0
        return y

    x = np.array([1.0, -2.0, np.nan, -0.0])
    assert same_bits(evaluate(trace(function)(x), (x,))[0], function(wg.asarray(x)).numpy())
    graph = trace(wg.grad(lambda x: wnp.sum(function(x) * x)))(x)
    assert same_bits(evaluate(graph, (x,))[0], wg.grad(lambda x: wnp.sum(function(x) * x))(x))


def test_masks_and_indices_that_are_known_choose_elements() -> None:
    mask, places = np.array([True, False, True]), np.array([2, 0, 2, 1])
    graph = trace(lambda x: (x[mask], x[places], wnp.bincount(places, x[places])))(np.ones(3))
    check(graph)
    assert [v.shape for v in graph.outputs] == [(2,), (4,), (3,)]


def test_checks_of_values_are_left_out_where_values_are_unknown() -> None:
    x, weights = np.arange(6.0).reshape(2, 3) ** 2, np.array([1.0, 2.0, 0.5])
    for function in (
        lambda x, w: wnp.average(x, axis=1, weights=w),
        lambda x, w: wnp.cov(x, aweights=w),
        lambda x, w: wnp.cov(x, fweights=np.array([1, 2, 1]), aweights=w),
        lambda x, w: wnp.geomspace(w, x[1], 4),
        lambda x, w: wnp.piecewise(x, [x < 2, x >= 2], [lambda y: y * y, wnp.sqrt]),
    ):
        graph = trace(function)(x, weights)
        check(graph)
        want = function(wg.asarray(x), wg.asarray(weights)).numpy()
        assert same_bits(evaluate(graph, (x, weights))[0], want)


def test_a_constant_is_copied_once_unless_it_is_written_to() -> None:
    weights = np.asfortranarray(np.ones((200, 200)))

    def function(x: Any) -> Any:
        zeros = np.zeros(3)
        y = x @ weights + x @ weights
        before = y[:3] * zeros
        zeros[0] = -0.0
        return y, before, y[:3] * zeros

    graph = trace(function)(np.ones(200))
    products = [e for e in graph.equations if e.primitive.name == "matmul"]
    assert len(products) == 1
    found = products[0].inputs[1]
    assert not np.shares_memory(found, weights)
    assert not found.flags.writeable
    assert found.flags.f_contiguous  # BLAS multiplies as it does eagerly
    assert sum(e.primitive.name == "multiply" for e in graph.equations) == 2


@pytest.mark.parametrize("dtype", [float, complex, np.complex64, np.int8, bool])
def test_an_array_that_is_used_often_is_one_constant(dtype: Any) -> None:
    array = np.arange(4).astype(dtype)[::2]
    graph = trace(lambda x: (x * array, x + array, x - array))(np.ones(2))
    assert len({id(x) for e in graph.equations for x in e.inputs if type(x) is np.ndarray}) == 1


def test_tensors_are_constants_without_a_copy_that_later_writes_do_not_reach() -> None:
    weights = wg.tensor(np.arange(3.0))
    memory = weights.numpy()
    graph = trace(lambda x: x * weights)(np.ones(3))
    assert np.shares_memory(graph.equations[0].inputs[1], memory)
    weights[0] = 5.0
    assert same_bits(evaluate(graph, (np.ones(3),))[0], np.arange(3.0))

    array = np.arange(3.0)
    shared = wg.asarray(array)
    graph = trace(lambda x: x * shared)(np.ones(3))
    array[0] = 5.0
    assert same_bits(evaluate(graph, (np.ones(3),))[0], np.arange(3.0))


# Shapes


def test_shapes_are_asked_for_once_for_each_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    original = shapes.found_for

    def counting(primitive: Any, inputs: Any, params: Any) -> Any:
        asked.append(primitive.name)
        return original(primitive, inputs, params)

    monkeypatch.setattr(shapes, "found_for", counting)
    monkeypatch.setattr(shapes, "KNOWN", {})

    def function(x: Any) -> Any:
        for _ in iter(range(50)):  # an iterator, so that it is written out
            x = wnp.sin(x) * 2.0
        return x

    trace(function)(np.ones(7))
    assert asked == ["sin", "multiply"]


def test_the_type_of_a_number_and_the_values_of_integers_tell_signatures_apart() -> None:
    x = np.ones(3, np.float32)
    for number in (2, 2.0, np.float64(2), 2j, True):
        assert trace(lambda x, n=number: x * n)(x).outputs[0].dtype == (x * number).dtype
    with pytest.raises(OverflowError):
        trace(lambda x: (x + 1, x + 300))(np.ones(3, np.uint8))


N = 30_000
LARGE: list[tuple[str, list[tuple[int, ...]], dict[str, Any], tuple[int, ...]]] = [
    ("matmul", [(N, N), (N, N)], {}, (N, N)),
    ("sum", [(N, N)], {"axis": (1,), "keepdims": False}, (N,)),
    ("mean", [(N, N)], {"axis": (0, 1), "keepdims": True}, (1, 1)),
    ("dot", [(N, N), (N,)], {}, (N,)),
    ("tensordot", [(N, N), (N, N)], {"axes": ((0,), (1,))}, (N, N)),
    ("einsum", [(N, N), (N, N)], {"subscripts": "ij,kj->ik", "optimize": False}, (N, N)),
    ("getitem", [(N, N)], {"index": (slice(None, 10),)}, (10, N)),
    ("tanh", [(N, N)], {}, (N, N)),
]


@pytest.mark.parametrize(("name", "operands", "params", "shape"), LARGE, ids=[case[0] for case in LARGE])
def test_large_operations_are_not_carried_out_for_their_shapes(
    name: str, operands: list[tuple[int, ...]], params: dict[str, Any], shape: tuple[int, ...]
) -> None:
    inputs = [Variable(operand, np.dtype(np.float32)) for operand in operands]
    assert abstract(PRIMITIVES[name], inputs, params) == (Aval(shape, np.dtype(np.float32)),)


def test_rules_of_shapes_agree_with_numpy() -> None:
    generator = np.random.default_rng(0)
    pairs = [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((4, 2, 3), (3, 5)),
        ((2, 3), (4, 3, 5)),
        ((1, 2, 3), (4, 3, 2)),
    ]
    for left, right in pairs:
        for dtype in (np.float32, np.complex128, np.int8):
            x, y = (generator.normal(size=shape).astype(dtype) for shape in (left, right))
            variables = [Variable(x.shape, x.dtype), Variable(y.shape, y.dtype)]
            for name in ("matmul", "dot"):
                want = PRIMITIVES[name].evaluate(x, y)
                assert abstract(PRIMITIVES[name], variables, {}) == (aval_of(want),)


@pytest.mark.parametrize(("make", "kind"), [(lambda x: x * 2, "computed"), (lambda x: x, "an argument")])
def test_values_that_escape_name_the_line_that_made_them(make: Callable[..., Any], kind: str) -> None:
    kept = []
    wg.jit(lambda x: kept.append(make(x)) or x)(np.ones(2))
    with pytest.raises(EscapedValueError) as error:
        kept[0] + 1
    text = str(error.value)
    assert f'a value that escaped, created at File "{__file__}", line ' in text
    assert ("x * 2" in text) == (kind == "computed")
    assert text.endswith("; values of a transformation may be used only until it ends. Return it from the function.")


def test_constants_do_not_share_memory_that_is_written_to_later():
    def program(x):
        weights = np.array([0.5, -1.25, 2.0])
        rows, window = np.broadcast_to(weights, (3, 3)), np.lib.stride_tricks.sliding_window_view(weights, 2)
        found = np.sum(rows * x) + np.sum(window) * x[0]
        weights[...] *= 0.5
        return found

    x = np.array([0.3, 0.4, 0.5])
    assert same_traced(wg.jit(program)(x), program(x))


def test_repeated_constants_stay_one_element():
    row = np.broadcast_to(np.arange(3.0), (1000, 3))
    (equation,) = trace(lambda x: x * row)(np.ones((1000, 3))).equations
    constant = next(x for x in equation.inputs if isinstance(x, np.ndarray))
    assert constant.strides == (0, 8)
    assert not np.shares_memory(constant, row)


def test_equal_views_of_a_captured_array_are_one_literal() -> None:
    weights = np.arange(6.0).reshape(2, 3)

    def f(x: Any) -> Any:
        for _ in range(3):
            x = np.tanh(x * weights.T[1:]) + weights[:, :2].T
        return x

    x = np.ones((2, 2))
    graph = trace(f)(x)
    literals = {id(y) for equation in graph.equations for y in equation.inputs if isinstance(y, np.ndarray)}
    assert len(literals) == 2
    assert np.array_equal(graph(x)[0], f(x))


def test_views_of_what_is_written_to_while_tracing_are_literals_of_their_own() -> None:
    def f(x: Any) -> Any:
        weights = np.arange(6.0).reshape(2, 3)
        found = x * weights.T
        weights[0] = 7.0
        return found + weights.T

    x = np.ones((3, 2))
    assert np.array_equal(trace(f)(x)(x)[0], f(x))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["mean", "var", "std", "median", "nanmean", "norm"])
@pytest.mark.parametrize("options", [{}, {"axis": -1}, {"axis": 0, "keepdims": True}], ids=str)
def test_statistics_of_any_axes_are_traced(name: str, options: dict[str, Any]) -> None:
    function = np.linalg.norm if name == "norm" else getattr(np, name)
    x = np.arange(20.0).reshape(4, 5)
    for more in ({}, {"ddof": 2}) if name in ("var", "std") else ({},):
        np.testing.assert_array_equal(
            trace(lambda x, more=more: function(x, **options, **more))(x)(x)[0], function(x, **options, **more)
        )
