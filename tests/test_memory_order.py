"""Results lie in memory as NumPy's do, in every mode, so that views of them are views or copies as NumPy's are.

`python -m tools.check_order` does the same for every function.
"""

import copy
import itertools
import pickle
import re
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wengert as wg
from tests.cases import some_of, together
from tools.check_order import CALLS, LAYOUTS, mismatch
from wengert.core.graph.identity import identity
from wengert.core.memory.memory_layout import example, grown, in_normal_form, of_array, shrunk, strides_of
from wengert.core.values.tensor import raw


@pytest.mark.long
@together("call", CALLS)
def test_writes_through_views_of_results_reach_what_they_do_in_numpy(call):
    layouts = [name for name, layout in LAYOUTS.items() if len(call.shape) >= layout.least]
    ways = list(itertools.product(layouts, ("itself", "ravel", "reshape F", "half"), ("eager", "jit", "vmap")))
    checked = [
        (name, probe, mode, found)
        for name, probe, mode in some_of(ways, call.name)
        if (found := mismatch(call, LAYOUTS[name], probe, mode)) is not None
    ]
    wrong = [row for row in checked if row[-1] and not row[-1].startswith("refused: AssertionError")]
    assert checked
    assert not wrong


def test_jit_traces_arguments_of_each_memory_order():
    @wg.jit
    def f(x):
        x.ravel()[0] = 5.0
        return x * 1.0

    a = np.arange(6.0).reshape(2, 3)
    assert f(a)[0, 0] == 5.0
    assert f(np.asfortranarray(a))[0, 0] == 0.0
    assert f.trace_count == 2


def test_jit_traces_parts_of_wide_and_of_narrow_arrays_once():
    f = wg.jit(lambda x: x * 2.0)
    for width in range(4, 9):
        np.testing.assert_array_equal(f(np.ones((3, width))[:, :3]), np.full((3, 3), 2.0))
    assert f.trace_count == 1
    f(np.ones((4, 3))[::-1])
    f(np.ones((3, 4)).T)
    assert f.trace_count == 3


def views(array):
    """Return for every way of NumPy to read an array in other shapes whether that is a view, and how copies lie."""
    shapes = [(rows, -1) for rows in range(1, array.size + 1) if array.size % rows == 0]
    found = [np.shares_memory(array.reshape(shape, order=order), array) for shape in shapes for order in "CF"]
    return found, np.copy(array, order="K").strides, (array * 2.0).strides, array.flags.c_contiguous


@given(hnp.array_shapes(max_dims=3, max_side=6), st.data())
def test_strides_in_normal_form_have_the_same_views_and_copies(shape, data):
    x = np.zeros(shape)[data.draw(hnp.basic_indices(shape, allow_newaxis=False, allow_ellipsis=False))]
    x = np.transpose(x, data.draw(st.permutations(range(np.ndim(x)))))
    if np.ndim(x) and x.size:
        assert views(example(x.shape, in_normal_form(x.shape, of_array(x), 8), float)) == views(x)


def test_examples_lie_as_what_they_stand_for():
    for x in (np.zeros((4, 5)).T, np.zeros((4, 6))[::-1, ::2], np.broadcast_to(np.zeros(3), (2, 3))):
        made = example(x.shape, strides_of(x), x.dtype)
        assert (made.shape, made.strides, made.dtype) == (x.shape, x.strides, x.dtype)
    assert shrunk((5, 7), (8, -40), 8) == ((2, 2), (8, -16))
    assert grown((5, 7), (8, 16), 4) == (4, 20)


# 0-d values: scalars and arrays

VIEWS = {
    "[...]": lambda s: s[...],
    "[None]": lambda s: s[None],
    "reshape": lambda s: s.reshape(1),
    "ravel": lambda s: s.ravel(),
    "T": lambda s: s.T,
    "atleast_2d": np.atleast_2d,
    "squeeze": np.squeeze,
    "itself": lambda s: s,
    "real": lambda s: s.real,
    "[None][0, ...]": lambda s: s[None][0, ...],
}
ZERO_D = {
    "x[0]": lambda x: x[0],
    "x.sum()": lambda x: x.sum(),
    "x[0] * 2.": lambda x: x[0] * 2.0,
    "array(0., like)": lambda x: np.array(0.0, like=x),
    "array(x[0])": lambda x: np.array(x[0], like=x),
    "asarray(x[0])": lambda x: np.asarray(x[0], like=x),
    "copy(x[0])": lambda x: np.copy(x[0]),
    "x[0].copy()": lambda x: x[0].copy(),
    "zeros((), like)": lambda x: np.zeros((), like=x),
    "zeros_like(0-d)": lambda x: np.zeros_like(x[0]),
    "full_like(0-d)": lambda x: np.full_like(x[0], 2.0),
    "x[0, ...]": lambda x: x[0, ...],
    "x[0, ...] * 2": lambda x: x[0, ...] * 2.0,
    "squeeze(x[1:2])": lambda x: np.squeeze(x[1:2]),
    "x[0, ...].copy()": lambda x: x[0, ...].copy(),
    "sum(out=)": lambda x: np.sum(x, out=np.zeros((), like=x)),
    "where": lambda x: np.where(x[0] > 0, x[0], x[1]),
    "take": lambda x: np.take(x, np.array(0)),
    "polyval": lambda x: np.polyval(x, 2.0),
    "max": lambda x: x.max(),
    "inner": lambda x: np.inner(x, x),
    "norm": lambda x: np.linalg.norm(x),
    "sum of the kept": lambda x: np.reshape(np.sum(x, keepdims=True), ()),
}


def fill(v, x):
    v[...] = x[2]
    return v


def add(v, x):
    v += x[2]
    return v


def multiply(v, x):
    return np.multiply(x[2], 3.0, out=v)


WRITES = {"fill": fill, "add": add, "out=": multiply}
MODES = {
    "eager": lambda run, data: run(wg.tensor(data)),
    "vjp": lambda run, data: wg.vjp(run, data)[0],
    "vjp of vjp": lambda run, data: wg.vjp(lambda x: wg.vjp(run, x)[0], data)[0],
    "jvp": lambda run, data: wg.jvp(run, (data,), (data,))[0],
    "jit": lambda run, data: wg.jit(run)(data),
    "vmap": lambda run, data: [r[0] for r in wg.vmap(run)(np.stack([data, data]))],
    "jit of vmap": lambda run, data: [r[0] for r in wg.jit(wg.vmap(run))(np.stack([data, data]))],
    "vmap of vjp": lambda run, data: [r[0] for r in wg.vmap(lambda x: wg.vjp(run, x)[0])(np.stack([data, data]))],
}


@pytest.mark.parametrize("make", ZERO_D.values(), ids=ZERO_D)
def test_writes_through_views_of_0d_values_reach_what_they_do_in_numpy(make):
    data = np.array([1.0, 2.0, 4.0])
    compared = 0
    for name, view in VIEWS.items():
        for write in some_of(list(WRITES.values()), name):

            def run(x, view=view, write=write):
                s = make(x)
                v = view(s)
                alias = v
                v = write(v, x)
                return x, s * 1.0, v * 1.0, alias * 1.0

            try:
                wanted = run(data.copy())
            except (TypeError, ValueError):  # NumPy has no scalars that can be written to
                continue
            for mode in some_of(list(MODES), f"{name}, {write.__name__}, {make.__name__}", 3):
                found = MODES[mode](run, data.copy())
                compared += 1
                for a, b in zip(wanted, found, strict=True):
                    np.testing.assert_allclose(raw(b), a, err_msg=f"{name}, {write.__name__}, {mode}")
    assert compared > 5


def rebinds(x):
    a = x
    a += 1.0
    return x * 2.0


@together("argument", [3.0, np.float64(3.0), np.array(3.0)])
@together(
    "mode",
    [
        lambda x: wg.jit(rebinds)(x),
        lambda x: wg.value_and_grad(rebinds)(x)[0],
        lambda x: wg.jvp(rebinds, (x,), (1.0,))[0],
        lambda x: wg.jit(wg.value_and_grad(rebinds))(x)[0],
    ],
)
def test_arguments_without_axes_are_scalars_or_arrays_as_they_are_in_numpy(mode, argument):
    wanted = rebinds(copy.copy(argument))
    assert mode(copy.copy(argument)) == wanted
    assert mode(copy.copy(argument)) == wanted  # of the trace that there is now


def test_leaves_without_axes_are_changed_in_place():
    parameters = [wg.tensor(3.0, requires_grad=True), wg.tensor([1.0, 2.0], requires_grad=True)]
    (parameters[0] ** 2 * parameters[1].sum()).backward()
    with wg.no_grad():
        for p in parameters:
            p -= 0.1 * p.grad
    assert [p.tolist() for p in parameters] == [pytest.approx(1.2), [pytest.approx(0.1), pytest.approx(1.1)]]
    assert all(p.is_leaf and p.requires_grad for p in parameters)


def test_copies_and_pickles_keep_scalars_and_arrays_apart():
    for x in (wg.tensor(3.0), wg.tensor([3.0])[0]):
        for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
            assert type(raw(made)) is type(raw(x))


WITHOUT_AXES = {
    "array": lambda v: np.array(v[0], like=v) if isinstance(v, wg.Tensor) else np.array(v[0]),
    "scalar": lambda v: v[0],
    "product": lambda v: v[0] * v[1],
    "view": lambda v: v[0, ...],
    "sum": lambda v: v.sum(),
}
DUPLICATES = {
    "copy": lambda t: t.copy(),
    "numpy.array": lambda t: np.array(t, like=t) if isinstance(t, wg.Tensor) else np.array(t),
    "numpy.copy": np.copy,
    "astype": lambda t: t.astype(np.float32),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "numpy.real_if_close": lambda t: np.real_if_close(t * 1),
    "numpy.flip": lambda t: np.flip(t),
}


@pytest.mark.parametrize("duplicate", DUPLICATES)
@together("make", WITHOUT_AXES)
def test_copies_without_axes_are_arrays_where_numpys_are(make, duplicate):
    def added_to(v):
        one = DUPLICATES[duplicate](WITHOUT_AXES[make](v))
        other = one
        other += 1.0
        return one * one

    v = np.array([2.0, 3.0])
    want = added_to(v.copy())
    leaf = wg.tensor(v, requires_grad=True)
    assert added_to(wg.tensor(v)).item() == want
    assert added_to(leaf * 1).item() == want
    assert wg.value_and_grad(added_to)(v)[0] == want
    assert wg.jvp(added_to, (v,), (v,))[0] == want
    assert wg.jit(added_to)(v) == want
    assert wg.vmap(added_to)(np.stack([v, v]))[0] == want


def test_a_flipped_array_without_axes_is_a_scalar():
    x = wg.tensor(2.0)
    flipped = np.flip(x)
    flipped += 1.0
    assert (x.item(), flipped.item()) == (2.0, 3.0)


# Branches that leave arrays in different orders

SQUARE = np.arange(1.0, 5.0).reshape(2, 2)


def written_through_ravel(x):
    a = x * SQUARE if x[0] > 1 else (x * SQUARE).T * 1.0
    a.ravel()[1] = 5.0
    return np.sum(a * SQUARE)


def written_after_ravel(x):
    a = x * SQUARE if x[0] > 1 else (x * SQUARE).T * 1.0
    v = np.reshape(a, -1)
    a[0, 1] = 5.0
    return np.sum(v)


def written_through_ravel_of_what_follows(x):
    a = x * SQUARE
    if x[0] > 1:
        a = a.T * 1.0
    b = np.sin(a) + 1.0
    b.ravel()[1] = 5.0
    return np.sum(b * SQUARE)


def handed_through_another_branch(x):
    a = x * SQUARE if x[0] > 1 else (x * SQUARE).T * 1.0
    for _ in range(2):
        if x[1] > 0:
            a.T.ravel()[1] = 5.0
    return np.sum(a * SQUARE)


def written_in_an_order_that_both_have(x):
    a = x * SQUARE if x[0] > 1 else (x * SQUARE).T * 1.0
    a[0, 1] = 5.0
    a.T[0, 1] = 6.0
    c = np.copy(a, order="C")
    c.ravel()[2] = 7.0
    s = (a + 1.0)[0].ravel()
    s[0] = 3.0
    d = a * 2.0
    e = np.sum(d.ravel())
    return np.sum(a * SQUARE + c * 3.0) + np.sum(s) + e


UNKNOWN_ORDER = [
    written_through_ravel,
    written_after_ravel,
    written_through_ravel_of_what_follows,
    handed_through_another_branch,
]
POINTS = [np.array(x) for x in ((0.5, 2.0), (2.0, -1.0), (-3.0, 1.0))]


@pytest.mark.parametrize("program", UNKNOWN_ORDER, ids=lambda f: f.__name__)
def test_a_write_through_what_may_be_a_view_is_refused(program):
    for transformed in (wg.jit(program), wg.jit(wg.grad(program)), wg.grad(wg.jit(program))):
        with pytest.raises(
            wg.errors.GraphError, match=rf"as its memory order decides that(.|\n)*in {program.__name__}"
        ):
            transformed(POINTS[0])


def test_where_the_order_does_not_matter_nothing_is_refused():
    program = written_in_an_order_that_both_have
    for x in POINTS:
        np.testing.assert_allclose(wg.jit(program)(x), program(x))
        np.testing.assert_allclose(wg.jit(wg.grad(program))(x), wg.grad(program)(x))
        np.testing.assert_allclose(wg.grad(wg.jit(program))(x), wg.grad(program)(x))
    np.testing.assert_allclose(wg.jit(wg.vmap(program))(np.stack(POINTS)), [program(x) for x in POINTS])


def spread(x):
    return x[:, None] * np.ones(2)


def in_columns(a):
    return np.array(a, order="F", like=a)


def halved(a, row):
    row.ravel()[0] = 0.5
    return a * row[0], in_columns(row[:, None] * np.ones(3))


def counted(a, times):
    for _ in range(times):
        a = in_columns(a * 1.5)
    return a


def increased(a, least):
    while a[0, 0] < least:
        a = in_columns(a * 1.5 + 1.0)
    return a


KNOWN_ORDER = {
    "scan": lambda x: wg.scan(lambda a, u: (in_columns(a) * u, None), spread(x), x)[0],
    "scan_from": lambda x: wg.scan(lambda a, u: (a * u, None), in_columns(spread(x)), x)[0],
    "scan_back": lambda x: wg.scan(lambda a, u: (np.copy(a, order="C") * u, None), in_columns(spread(x)), x)[0],
    "what_scan_leaves": lambda x: wg.scan(lambda a, u: (a, in_columns(spread(x)) * u), x, x)[1][0],
    "rows_of_scan": lambda x: wg.scan(halved, 1.0, in_columns(spread(x)))[1][0],
    "while_loop": lambda x: wg.while_loop(lambda a: a[0, 0] < 5, lambda a: a + 1.0, in_columns(spread(x))),
    "fori_loop": lambda x: wg.fori_loop(0, 2, lambda i, a: in_columns(a) + 1.0, spread(x)),
    "cond": lambda x: wg.cond(x[0] > 0, lambda a: in_columns(a) + 1.0, lambda a: in_columns(a) - 1.0, spread(x)),
    "cond_from": lambda x: wg.cond(x[0] > 0, lambda a: a + 1.0, lambda a: a - 1.0, in_columns(spread(x))),
    "call": lambda x: wg.call(lambda a: a + 1.0, in_columns(spread(x))),
    "for": lambda x: counted(in_columns(spread(x)), np.argmax(x) + 1),
}
ORDER_OF_SOME = {
    "scan": lambda x: wg.scan(lambda a, u: (in_columns(written_in_a_row(a)) * u, None), spread(x), x)[0],
    "while_loop": lambda x: wg.while_loop(lambda a: a[0, 0] < 5, lambda a: in_columns(a) + 1.0, spread(x)),
    "cond": lambda x: wg.cond(x[0] > 0, lambda a: in_columns(a) + 1.0, lambda a: a + 1.0, spread(x)),
    "for": lambda x: counted(spread(x), np.argmax(x) + 1),
    "while": lambda x: increased(spread(x), 2.5),
}
THREE = [np.array(x) for x in ((0.5, 2.0, 0.7), (2.0, -1.0, 3.0), (-3.0, 1.0, -4.0))]


def written_in_a_row(a):
    a.ravel()[1] = 9.0
    return a


def flattened(function):
    """Return a function of which results are written to through what is a view of them in C order only."""

    def program(x):
        array = function(x)
        return np.sum(np.stack([array.ravel(), written_in_a_row(array).ravel()]) * np.arange(12.0).reshape(2, 6) * x[0])

    return program


@pytest.mark.parametrize("name", KNOWN_ORDER)
def test_what_structured_primitives_leave_lies_in_memory_as_without_them(name):
    program = flattened(KNOWN_ORDER[name])
    jitted = wg.jit(program)
    gradients = wg.jit(wg.grad(program)), wg.grad(wg.jit(program)), wg.jit(wg.jacfwd(program))
    for x in THREE:
        expected, gradient = program(wg.tensor(x)).numpy(), wg.grad(program)(x)
        np.testing.assert_allclose(jitted(x), expected)
        for found in gradients:
            np.testing.assert_allclose(found(x), gradient)
    expected = [program(wg.tensor(x)).numpy() for x in THREE]
    np.testing.assert_allclose(wg.vmap(wg.jit(program))(np.stack(THREE)), expected)
    np.testing.assert_allclose(wg.jit(wg.vmap(wg.jit(program)))(np.stack(THREE)), expected)


@pytest.mark.parametrize("name", ORDER_OF_SOME)
def test_writes_to_what_structured_primitives_leave_in_different_orders_are_refused(name):
    program = flattened(ORDER_OF_SOME[name])
    for transformed in (wg.jit(program), wg.jit(wg.grad(program)), wg.grad(wg.jit(program))):
        with pytest.raises(wg.errors.GraphError, match=r"as its memory order decides that|shares memory, or not"):
            transformed(THREE[0])


def test_literals_that_lie_differently_are_two():
    assert identity(np.asfortranarray(SQUARE)) != identity(SQUARE)
    assert identity(np.ones((2, 1)).T) == identity(np.ones((1, 2)))


def test_gradients_of_writes_through_views_of_arrays_without_axes():
    def program(x, s):
        array = np.array(s * 1.0, like=x)
        np.tanh(s * x[0], out=array.T)
        return array * x[1]

    x = np.array([0.5, 0.6])
    expected = wg.grad(program, (0, 1))(x, 0.3)
    for gradient in (wg.grad(wg.jit(program), (0, 1)), wg.jit(wg.grad(program, (0, 1)))):
        for found, wanted in zip(gradient(x, 0.3), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-15)


def turned(x):
    array = np.outer(x, [1.0, 2.0])
    if x[0] > 0:
        array = array.T.copy().T
    return array


def of_every_other(x):
    found = np.append(x, x)[::2] if x[0] > 0 else x * 1.0
    flat = found.ravel()
    flat *= 10.0
    return found * 1.0


READ_IN_MEMORY = {
    "ravel": lambda x: turned(x).ravel("K"),
    "A": lambda x: np.ravel(turned(x), order="A"),
    "reshape": lambda x: turned(x).reshape((2, 3), order="A"),
    "flatten": lambda x: (turned(x) * 2.0).flatten("K"),
}


@pytest.mark.parametrize("name", READ_IN_MEMORY)
def test_elements_in_the_order_of_memory_are_refused_where_traced_values_decide_it(name):
    with pytest.raises(wg.errors.GraphError) as caught:
        wg.jit(READ_IN_MEMORY[name])(THREE[0])
    text, place = str(caught.value).split("\n")
    assert text == (
        f"{name if name == 'reshape' else 'ravel'}: the elements in the order in which they lie in memory, which "
        "traced values decide; it must be known which order that is. Read them in order='C' or 'F', or copy the array "
        "so before."
    )
    assert "turned(x)" in place


def test_writes_to_what_is_flat_and_contiguous_in_one_branch_only_are_refused():
    with pytest.raises(wg.errors.GraphError, match="as its memory order decides that"):
        wg.jit(of_every_other)(THREE[0])


def test_what_loops_return_early_lies_in_memory_as_it_does_without_them():
    def found(rows):
        for row in rows:
            if row[0] < 0:
                return rows.T * 1.0
        return rows.T * 2.0

    def program(x):
        array = found(np.outer(x, [1.0, 2.0]))
        array.T.ravel()[1] = 9.0
        return np.append(array.ravel("K"), array)

    for x in THREE:
        np.testing.assert_array_equal(wg.jit(program)(x), program(x))


def doubled_flat(c):
    flat = c.ravel()
    flat *= 2.0
    return c * 1.0


def in_an_order_that_the_sign_decides(x):
    columns = x[:, None] * np.ones(2)
    return doubled_flat(wg.cond(x[0] > 4, lambda c: np.array(c, order="F", like=c), lambda c: c * 1.0, columns))


def in_an_order_that_iterations_leave(x):
    found = wg.while_loop(lambda c: c[0, 0] < 5, lambda c: np.array(c + 1, order="F", like=c), x[:, None] * np.ones(2))
    return doubled_flat(found)


@pytest.mark.parametrize("function", [in_an_order_that_the_sign_decides, in_an_order_that_iterations_leave])
def test_lanes_that_lie_in_different_orders_are_not_written_through_what_may_be_a_view(function):
    x = np.array([[1.0, 2.0], [9.0, 3.0]])
    for transform in (wg.vmap, lambda f: wg.jit(wg.vmap(f)), lambda f: wg.vmap(wg.jit(f))):
        with pytest.raises(wg.errors.GraphError, match="as its memory order decides"):
            transform(function)(x)


def test_lanes_that_iterate_alike_are_written_through_views():
    x = np.array([1.0, 2.0])
    found = wg.vmap(in_an_order_that_iterations_leave)(np.stack([x, x]))
    np.testing.assert_array_equal(found[0], in_an_order_that_iterations_leave(x))


def in_either_order(a):
    return np.array(a, order="F", like=a) if a[0, 0] > 0.5 else np.array(a, order="C", like=a)


def by_cond(a):
    return wg.cond(a[0, 0] > 0.5, in_columns, lambda a: np.array(a, order="C", like=a), a)


def filled(array):
    array[...] = 3.0
    return array


FOLLOWING_AN_ORDER = {
    "zeros_like": np.zeros_like,
    "zeros_like of a shape": lambda x: np.zeros_like(x, dtype=int, shape=(2, 3)),
    "ones_like in order A": lambda x: np.ones_like(x, order="A"),
    "empty_like": lambda x: filled(np.empty_like(x)),
    "full_like": lambda x: np.full_like(x, x[0, 1]),
    "asarray": lambda x: np.asarray(x, order="C", like=x),
    "asfortranarray": lambda x: np.asfortranarray(x, like=x),
    "ascontiguousarray of a view": lambda x: np.ascontiguousarray(x.T, like=x),
    "array": lambda x: np.array(x, like=x),
    "copy": lambda x: np.copy(x, order="A"),
    "astype": lambda x: x.astype(float, order="F", copy=False),
    "pad": lambda x: np.pad(x, 1, mode="edge"),
    "pad with the array": lambda x: np.pad(x, 1, constant_values=x[0, 0]),
    "insert": lambda x: np.insert(x, 1, 5.0, axis=1),
    "delete": lambda x: np.delete(x, 1, axis=0),
    "delete several": lambda x: np.delete(x, [0, 1], axis=1),
    "gradient": lambda x: np.gradient(x, axis=0),
    "piecewise": lambda x: np.piecewise(x, [x > 0.3], [lambda y: y * 2.0, 1.0]),
    "select": lambda x: np.select([x > 0.3], [x], 0.0),
    "part": lambda x: x[1:] * 2.0,
    "part of a part": lambda x: x[1:],
    "out=": lambda x: np.multiply(x, 2.0, out=np.zeros_like(x)),
    "assigned": lambda x: x.__setitem__(0, 9.0) or x,
}


PROBES = {"itself": lambda r: r, "ravel": lambda r: r.ravel(), "reshape F": lambda r: r.reshape(-1, order="F")}


@together("name", FOLLOWING_AN_ORDER)
def test_what_follows_an_order_that_a_branch_decides_is_written_to_as_in_numpy_or_not_at_all(name):
    def program(x, arrange, probe):
        a = arrange(x)
        made = FOLLOWING_AN_ORDER[name](a)
        PROBES[probe](made)[...] = 77.0
        return a * 1.0, made * 1.0

    for first in (0.1, 0.9):
        x = np.array([[first, 0.2, 0.3], [0.4, 0.6, 0.7], [0.8, 0.25, 0.35]])
        lanes = np.stack([x, np.eye(3) - x])
        for probe in PROBES:
            wanted = program(x, in_either_order, probe)
            in_graph, in_lanes = (partial(program, arrange=a, probe=probe) for a in (in_either_order, by_cond))
            for transformed, argument, lane in ((wg.jit(in_graph), x, ...), (wg.vmap(in_lanes), lanes, 0)):
                try:
                    found = transformed(argument)
                except wg.errors.GraphError as error:
                    assert re.search("as its memory order decides|in which they lie in memory", str(error))  # noqa: PT017
                    continue
                for one, other in zip(found, wanted, strict=True):
                    np.testing.assert_array_equal(one[lane], other)


def test_elements_that_repeat_along_axes_are_read_in_numpys_order():
    base = np.arange(6.0).reshape(3, 1, 2)
    for stretched in (np.broadcast_to(base[0, 0], (3, 2)), np.broadcast_to(base, (3, 4, 2)).transpose(1, 2, 0)):
        expected = stretched.ravel("K")
        np.testing.assert_array_equal(wg.asarray(stretched).ravel("K").numpy(), expected)
        np.testing.assert_array_equal(wg.jit(lambda x: x.ravel("K"))(stretched), expected)


FORTRAN = np.arange(12.0).reshape(4, 3).T


def of_loop(x: Any) -> Any:
    """Return a number that depends on how the array lies that a loop without rounds is given."""
    y = wg.while_loop(lambda y: np.sum(y) < -x, lambda y: y * x, FORTRAN)
    return x * np.sum(y.ravel("K")[:2])


@pytest.mark.parametrize("jitted", [lambda f: f, wg.jit])
def test_writable_arrays_of_structured_operations_keep_their_order(jitted: Any) -> None:
    assert jitted(wg.grad(of_loop))(1.2) == 1.0
    assert jitted(lambda x: wg.jvp(of_loop, (x,), (1.0,))[1])(1.2) == 1.0
    assert jitted(lambda x: wg.taylor(of_loop, (x,), (1.0,), 2))(1.2)[1:] == [1.0, 0.0]


@pytest.mark.parametrize("orders", ["CF", "FC"])
def test_branches_by_lanes_lie_as_the_array_that_they_are_given(orders: str) -> None:
    xs = np.array([1.0, -2.0, 3.0])
    for order in orders:  # what is known of arrays in one order is not what is so in another
        array = FORTRAN.copy(order=order)

        def part(x: Any, array: Any = array) -> Any:
            return wg.cond(x > 0, lambda y: y + x, lambda y: y * x, array).ravel("K")

        expected = np.stack([part(x) for x in xs])
        for mapped in (wg.vmap(part), wg.vmap(wg.jit(part)), wg.jit(wg.vmap(part))):
            np.testing.assert_array_equal(mapped(xs), expected)
