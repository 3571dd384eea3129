"""Control flow: eager, batched and traced evaluation agree, and derivatives are those of what really happened."""

import tracemalloc
from collections import namedtuple
from functools import cache
from typing import Any

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.cases import some_of, together
from wengert.control import subgraph_gradients, subgraphs
from wengert.core.graph.graph import evaluate
from wengert.core.graph.graph_checker import check
from wengert.core.primitives.opaque_kinds import Opaque
from wengert.core.primitives.structured import NOTHING_PASSED
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.traces.dual import propagate_opaque
from wengert.transforms.tracing import gradient, trace

LANES = np.array([0.6, 1.2, 1.7, 2.3, 3.1])
ROW = np.linspace(0.1, 0.9, 4)


# Programs of one number


def newton(a):
    """The square root, by iterations until it is found."""
    return wg.while_loop(lambda x: abs(x * x - a) > 1e-13 * a, lambda x: (x + a / x) / 2, a * 1.0)


def carried_newton(a):
    """The same with everything carried, and a counter."""
    start = {"root": a * 1.0, "of": a, "steps": 0}
    final = wg.while_loop(
        lambda s: abs(s["root"] ** 2 - s["of"]) > 1e-13 * s["of"],
        lambda s: {"root": (s["root"] + s["of"] / s["root"]) / 2, "of": s["of"], "steps": s["steps"] + 1},
        start,
    )
    return final["root"]


def hailstone(x):
    """Branches that depend on the data inside of a loop, as in Collatz's sequence."""

    def body(s):
        x, n = s
        return wg.cond(x > 1.0, lambda x: wnp.sqrt(x) * 1.5, lambda x: x**3 + 0.2, x), n + 1

    return wg.while_loop(lambda s: s[1] < 6, body, (x, 0))[0]


def captured_branch(x):
    y = wnp.sin(x)
    return wg.cond(x > 1, lambda: y * x, lambda: y**2 * 3.0)


def four_ways(x):
    ways = [wnp.sin, wnp.exp, lambda x: x**3, lambda x: x * 0.0 + 1.0]
    return wg.switch(wnp.floor(x).astype(int), ways, x)


def powers(x):
    return wg.fori_loop(0, 5, lambda i, y: y * x + wnp.sin(y) * i, x)


def as_many_as_the_data_say(x):
    return wg.fori_loop(0, wnp.floor(x).astype(int) + 2, lambda i, y: y * x + wnp.sin(y) * i, x)


def loops_in_loops(x):
    def outer(s):
        i, y = s
        z = wg.while_loop(lambda z: z < 4.0, lambda z: z * 1.3 + 0.1 * y + 0.1, wnp.abs(y) * 0.3 + 0.2)
        return i + 1, wnp.sin(z) + 0.3 * x * y

    return wg.while_loop(lambda s: s[0] < 3, outer, (0, x))[1]


def triangle_of_loops(x):
    def outer(i, y):
        return wg.fori_loop(0, i + 1, lambda j, z: wnp.sin(z) * x + 0.1 * j, y)

    return wg.fori_loop(0, 3, outer, x)


def loop_in_a_branch(x):
    """The loop would never end for x < 1, and lanes that do not take the branch must not run it."""
    return wg.cond(x > 1.5, lambda x: wg.while_loop(lambda z: z < 10.0, lambda z: z * x, x), lambda x: wnp.cos(x), x)


def adaptive_steps(x):
    """Solve y' = -x y up to t = 1 by Heun's method with a controlled step."""

    def body(s):
        t, y, h = s
        h = wnp.minimum(h, 1.0 - t)
        k1 = -x * y
        k2 = -x * (y + h * k1)
        error = abs(h * (k2 - k1)) / 2
        fine = error < 1e-3
        factor = wnp.minimum(2.0, wnp.maximum(0.3, 0.9 * wnp.sqrt(1e-3 / (error + 1e-12))))
        return wnp.where(fine, t + h, t), wnp.where(fine, y + h * (k1 + k2) / 2, y), wg.stop_gradient(h * factor)

    return wg.while_loop(lambda s: s[0] < 1.0, body, (0.0, 1.0, 0.3))[1]


def undefined_after_the_end(x):
    """Finished lanes would take the root of a negative number."""
    return wg.while_loop(lambda y: y > 0.5, lambda y: y - wnp.sqrt(y - 0.5) * 0.5 - 0.1, x)


def never_entered(x):
    return wg.while_loop(lambda y: y < 0, lambda y: wnp.sqrt(y), x * x)


def scanned(x):
    c, ys = wg.scan(lambda c, a: (wnp.sin(c * a) + x, c * c), x, ROW)
    return c + ys.sum()


def scanned_backwards(x):
    c, ys = wg.scan(lambda c, a: (wnp.sin(c * a) + x, (c * c, {"k": a * c})), x, ROW * x, reverse=True)
    return c + (ys[0] * wnp.arange(4)).sum() + ys[1]["k"][1]


def scanned_without_arrays(x):
    return wg.scan(lambda c, _: (c * x + 0.1, None), x, None, length=3)[0]


def scanned_over_nothing(x):
    c, ys = wg.scan(lambda c, a: (c * x + a, c), x, np.zeros((0,)))
    return c * c + ys.sum()


def scanned_over_loops(x):
    def step(c, a):
        z = wg.while_loop(lambda z: z < 3.0, lambda z: z * (1.2 + a) + 0.1 * c, wnp.abs(c) + 0.1)
        w = wg.cond(z > 3.5, lambda z: wnp.sin(z), lambda z: z * z * 0.1, z)
        return w * 0.5 + 0.2 * x, z

    c, ys = wg.scan(step, x, ROW)
    return c + ys.sum()


def recurrent_network(x):
    weights = np.arange(9.0).reshape(3, 3) / 9
    c, ys = wg.scan(lambda c, a: (wnp.tanh(weights @ c * x + a), c[0]), wnp.ones(3) * x, ROW)
    return c.sum() + (ys**2).sum()


def indexed(x):
    y = x * np.arange(5.0)
    return wg.fori_loop(0, 5, lambda i, s: s + wnp.sin(y[i]) * s, x)


def called(x):
    def block(x, p):
        return wnp.tanh(x * p[0] + p[1]), x * 2

    y, z = wg.call(block, x, (x, 0.3))
    y, z = wg.call(block, y + z, (x, 0.3))
    return y * z


def power(x, n):
    return x * wg.call(power, x, n - 1) if n else 1.0


def recursive(x):
    """The depth is a Python number."""
    return wg.call(power, x, 3)


def loop_in_a_call(x):
    return wg.call(lambda y: wg.while_loop(lambda z: z < 4.0, lambda z: z * (1.1 + x), y) * y, x)


PROGRAMS = [
    *(newton, carried_newton, hailstone, captured_branch, four_ways, powers, as_many_as_the_data_say),
    *(loops_in_loops, triangle_of_loops, loop_in_a_branch, adaptive_steps, undefined_after_the_end, never_entered),
    *(scanned, scanned_backwards, scanned_without_arrays, scanned_over_nothing, scanned_over_loops),
    *(recurrent_network, indexed, called, recursive, loop_in_a_call),
]
programs = pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)


def slope(f):
    """The derivative in forward mode."""
    return lambda x: wg.jvp(f, (x,), (1.0,))[1]


def total(f):
    """The sum over lanes of a function of one number."""
    return lambda x: wg.vmap(f)(x).sum()


G, J = wg.grad, wg.jit
FIRST = {
    "jvp": slope,
    "jit grad": lambda f: J(G(f)),
    "grad jit": lambda f: G(J(f)),
    "jit jvp": lambda f: J(slope(f)),
    "jvp jit": lambda f: slope(J(f)),
}
SECOND = {
    "jit grad grad": lambda f: J(G(G(f))),
    "grad jit grad": lambda f: G(J(G(f))),
    "jit jvp grad": lambda f: J(slope(G(f))),
    "jit grad jvp": lambda f: J(G(slope(f))),
    "jit jvp jvp": lambda f: J(slope(slope(f))),
}
ACROSS = {
    "vmap grad": lambda f: wg.vmap(G(f)),
    "grad vmap": lambda f: G(total(f)),
    "jit vmap grad": lambda f: J(wg.vmap(G(f))),
    "jit grad vmap": lambda f: J(G(total(f))),
    "vmap jit grad": lambda f: wg.vmap(J(G(f))),
    "jit vmap jvp": lambda f: J(wg.vmap(slope(f))),
}
SECOND_ACROSS = {
    "vmap grad grad": lambda f: wg.vmap(G(G(f))),
    "jit vmap grad grad": lambda f: J(wg.vmap(G(G(f)))),
    "jit grad vmap grad": lambda f: J(G(total(G(f)))),
    "jit grad grad vmap": lambda f: J(G(lambda x: G(total(f))(x).sum())),
}


def agree(found, expected):
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-9, atol=1e-12)


@cache
def gradients(program):
    """The eager gradients of a program in every lane."""
    return [G(program)(x) for x in LANES]


@cache
def curvatures(program):
    """The eager second derivatives of a program in every lane."""
    return [G(G(program))(x) for x in LANES]


@programs
def test_traced_values_are_the_eager_ones(program):
    expected = [program(x) for x in LANES]
    jitted = J(program)
    agree([jitted(x) for x in LANES], expected)
    agree(wg.vmap(program)(LANES), expected)
    agree(J(wg.vmap(program))(LANES), expected)
    agree(wg.vmap(J(program))(LANES), expected)


@programs
@together("way", FIRST)
def test_first_derivatives_agree(program, way):
    derivative = FIRST[way](program)
    agree([derivative(x) for x in LANES], gradients(program))


@programs
def test_first_derivatives_are_those_of_differences(program):
    step = 1e-6
    expected = [(program(x + step) - program(x - step)) / (2 * step) for x in LANES]
    found = gradients(program)
    if program is not adaptive_steps:  # whose steps are held fixed
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@programs
def test_second_derivatives_agree(program):
    expected = G(G(program))(1.7)
    for way in some_of(list(SECOND), program.__name__, 3):
        agree(SECOND[way](program)(1.7), expected)


@programs
def test_third_derivatives_agree(program):
    expected = G(G(G(program)))(1.7)
    for third in some_of([G, slope], program.__name__, 2):
        agree(J(third(G(G(program))))(1.7), expected)


@programs
def test_power_series_agree(program):
    def series(x):
        return wnp.stack(wg.taylor(program, (x,), (1.0,), 3))

    agree(J(series)(1.7), series(1.7))
    agree(wg.taylor(J(program), (1.7,), (1.0,), 0), [program(1.7)])


@programs
def test_lanes_with_different_trip_counts_agree(program):
    for way in some_of(list(ACROSS), program.__name__, 2):
        agree(ACROSS[way](program)(LANES), gradients(program))


@programs
def test_second_derivatives_of_lanes_agree(program):
    for way in some_of(list(SECOND_ACROSS), program.__name__, 3):
        agree(SECOND_ACROSS[way](program)(LANES), curvatures(program))


@programs
def test_graphs_are_well_formed(program):
    for graph in (trace(program)(1.7), gradient(trace(program)(1.7))):
        check(graph)
        assert str(graph)
    agree(evaluate(gradient(trace(program)(1.7)), (1.7,))[1], G(program)(1.7))


# Closed forms


@pytest.mark.parametrize("program", [newton, carried_newton])
def test_newton_differentiates_as_the_square_root(program):
    for a in (0.3, 2.0, 90.0):
        agree(program(a), a**0.5)
        agree(J(G(program))(a), 0.5 * a**-0.5)
        agree(J(G(G(program)))(a), -0.25 * a**-1.5)
        agree(J(G(G(G(program))))(a), 0.375 * a**-2.5)


def test_taylor_series_of_a_loop():
    agree(wg.taylor(newton, (4.0,), (1.0,), 3), [2.0, 0.25, -1 / 64, 1 / 512])


def test_an_adaptive_solver_differentiates_as_the_solution():
    np.testing.assert_allclose(J(adaptive_steps)(1.3), np.exp(-1.3), rtol=1e-2)
    np.testing.assert_allclose(J(G(adaptive_steps))(1.3), -np.exp(-1.3), rtol=2e-2)


def test_a_loop_of_matrices():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 3)) / 3, rng.normal(size=3)

    def power(a, b):
        return (wg.fori_loop(0, 4, lambda _, v: a @ v, b) ** 2).sum()

    def unrolled(a, b):
        return ((a @ (a @ (a @ (a @ b)))) ** 2).sum()

    for found, expected in zip(J(G(power, (0, 1)))(a, b), G(unrolled, (0, 1))(a, b), strict=True):
        agree(found, expected)
    agree(J(wg.hessian(power))(a, b), wg.hessian(unrolled)(a, b))
    agree(J(wg.jacrev(lambda b: wg.fori_loop(0, 4, lambda _, v: a @ v, b)))(b), np.linalg.matrix_power(a, 4))
    agree(J(wg.jacfwd(lambda b: wg.fori_loop(0, 4, lambda _, v: a @ v, b)))(b), np.linalg.matrix_power(a, 4))


@wg.custom_rule
def with_a_rule(x):
    return x * x


with_a_rule.defvjp(lambda x: (x * x, x), lambda x, ct: (2.0 * x * ct,))


def part_of_what_is_carried(x):
    """What a loop carries besides has no part in the result, and its slope, infinite at first, none in derivatives."""

    def body(c):
        t, s, u, i = c
        return t * wnp.sin(x) + with_a_rule(s), s * x, wnp.sqrt(u) * x, i + 1

    t, *_ = wg.while_loop(lambda c: c[3] < 5, body, (x, x + 1.0, x * 0.0, 0))
    return wnp.where(t > -100.0, t, 0.0)


def test_a_loop_runs_once_though_part_of_it_is_differentiated():
    def written_out(x):
        t, s = x, x + 1.0
        for _ in range(5):
            t, s = t * wnp.sin(x) + s * s, s * x
        return t

    f, x = part_of_what_is_carried, 0.7
    both = J(wg.value_and_grad(f))
    agree(both(x), wg.value_and_grad(written_out)(x))
    names = [equation.primitive.name for equation in both.lower(x).graph.equations]
    assert names.count("while_loop") == 1 == names.count("scan")
    agree(wg.grad(f)(x), wg.grad(written_out)(x))
    agree(wg.vmap(wg.grad(f))(np.array([x, 0.3])), [wg.grad(written_out)(x), wg.grad(written_out)(0.3)])


def test_a_pullback_can_be_called_twice():
    def twice(x):
        y, pullback = wg.vjp(newton, x)
        return pullback(y)[0] + 2 * pullback(3.0 * y)[0]

    agree(J(twice)(9.0), 3.5)
    agree(J(G(twice))(9.0), 0.0)


def test_scan_follows_numpy():
    xs = np.arange(1.0, 6.0)
    for f in (lambda x: x, J):
        sums = f(lambda xs: wg.scan(lambda s, x: (s + x, s + x), 0.0, xs))
        last, every = sums(xs)
        agree(every, np.cumsum(xs))
        assert last == 15.0
        last, every = f(lambda xs: wg.scan(lambda s, x: (s + x, s + x), 0.0, xs, reverse=True, unroll=2))(xs)
        agree(every, np.cumsum(xs[::-1])[::-1])


def halve(x):
    return x / 2, {"x": x, "powers": np.stack([x, x * x])}


def halves(x, most=None):
    return wg.while_loop(lambda x: x > 1.0, halve, x, rows=True, max_rounds=most)


def weigh(x, most=None):
    last, rows = halves(x, most)[:2]
    return last + np.sum(rows["x"] ** 2) + np.sum(rows["powers"] * np.array([0.5, 0.25]))


@pytest.mark.parametrize(("start", "count"), [(6.0, 3), (1.5, 1), (0.5, 0)])
def test_loops_leave_as_many_rows_as_there_are_rounds(start, count):
    expected = start / 2.0 ** np.arange(count)
    for most in (None, 4, 3, 2, 0):
        length = count if most is None else most
        rounds = min(count, length)
        ways = [halves] if most is None else [halves, wg.jit(halves, static_argnames="most")]
        for function in ways:
            last, rows, *counted = function(start, most=most)
            assert last == start / 2**rounds
            assert counted == ([] if most is None else [rounds])
            np.testing.assert_array_equal(rows["x"], np.pad(expected[:rounds], (0, length - rounds)))
            assert rows["powers"].shape == (length, 2)
            np.testing.assert_array_equal(rows["powers"], np.stack([rows["x"], rows["x"] ** 2], axis=1))
            assert rows["x"].dtype == float


def test_rows_of_loops_are_differentiated_in_all_modes():
    rows = 6.0 / 2.0 ** np.arange(3)
    first = 0.125 + np.sum((2.5 * rows + 0.5) * rows / 6.0)
    second = np.sum(2.5 * (rows / 6.0) ** 2)

    def bounded(x):
        return weigh(x, 5)

    for f in (weigh, bounded, wg.jit(bounded)):
        assert wg.grad(f)(6.0) == pytest.approx(first)
        assert wg.jvp(f, (6.0,), (1.0,))[1] == pytest.approx(first)
        for outer, inner in ((wg.grad, wg.grad), (wg.jacfwd, wg.grad), (wg.grad, wg.jacfwd), (wg.jacfwd, wg.jacfwd)):
            assert outer(inner(f))(6.0) == pytest.approx(second)
    assert wg.jit(wg.grad(wg.grad(bounded)))(6.0) == pytest.approx(second)
    leaf = wg.tensor(6.0, requires_grad=True)
    weigh(leaf).backward()
    assert leaf.grad == pytest.approx(first)


@pytest.mark.parametrize("way", [lambda f: f, wg.jit])
def test_rows_of_lanes_that_end_are_zero(way):
    lanes = np.array([6.0, 1.5, 0.5])
    last, rows, count = way(wg.vmap(lambda x: halves(x, 4)))(lanes)
    assert np.asarray(count).tolist() == [3, 1, 0]
    for i, x in enumerate(lanes):
        alone = halves(float(x), 4)
        assert last[i] == alone[0]
        np.testing.assert_array_equal(rows["powers"][i], alone[1]["powers"])
    gradients = way(wg.vmap(wg.grad(lambda x: weigh(x, 4))))(lanes)
    np.testing.assert_allclose(gradients, [wg.grad(weigh)(float(x)) for x in lanes])
    np.testing.assert_allclose(wg.grad(lambda xs: wg.vmap(lambda x: weigh(x, 4))(xs).sum())(lanes), gradients)


def test_rows_of_unknown_number_are_an_error_where_shapes_are_known_first():
    for function, start in ((wg.jit(halves), 6.0), (wg.vmap(halves), np.array([6.0, 3.0]))):
        with pytest.raises(UsageError, match=r"rows=True without max_rounds .* Pass max_rounds; the count comes"):
            function(start)
    for wrong in (lambda: wg.while_loop(lambda x: x > 1, lambda x: x / 2, 6.0, rows=True),):
        with pytest.raises(UsageError, match="while_loop: a function that returned a float; a pair"):
            wrong()
    with pytest.raises(ShapeError, match="while_loop: the body left behind shape"):
        wg.while_loop(lambda n: n < 3, lambda n: (n + 1, np.ones(n)), 1, rows=True)


def test_a_loop_ends_after_so_many_rounds():
    def power(x, most):
        return wg.while_loop(lambda s: True, lambda s: [s[0] + 1, s[1] * x], [0, 1.0], max_rounds=most)[1]

    for f in (power, wg.jit(power, static_argnums=1)):
        assert [f(2.0, most) for most in (0, 1, 3)] == [1.0, 2.0, 8.0]
        assert wg.grad(f)(2.0, 3) == 12.0
    with pytest.raises(UsageError, match="the same containers are needed"):
        wg.while_loop(lambda x: x < 3, lambda x: (x, x), 1.0, max_rounds=2)


def test_keys_of_dictionaries_are_in_one_order_whichever_branch_is_taken():
    def chosen(x):
        return wg.cond(x > 0, lambda: {"b": x, "a": 2 * x}, lambda: {"a": 2 * x, "b": x})

    assert [*chosen(1.0)] == ["b", "a"]
    assert [*chosen(-1.0)] == ["a", "b"]
    for transformed in (wg.jit(chosen), lambda x: wg.vmap(chosen)(np.array([x, -x]))):
        with pytest.raises(UsageError, match=r"cond: false_fun is {'a': \*, 'b': \*} and true_fun is {'b'"):
            transformed(1.0)


def test_structures_pass_through():
    pair = namedtuple("pair", "left right")
    start = {"p": pair(np.ones(2), 3.0)}
    for f in (lambda x: x, J):
        found = f(lambda s: wg.while_loop(lambda s: s["p"].right > 0, step, s))(start)
        assert type(found["p"]) is pair
        agree(found["p"].left, [8.0, 8.0])


def step(s):
    return {"p": s["p"]._replace(left=s["p"].left * 2, right=s["p"].right - 1)}


def test_what_is_given_is_not_written_to():
    def doubled(x):
        x *= 2.0
        return x

    x = np.ones(3)
    agree(wg.fori_loop(0, 3, lambda _, x: doubled(x), x), [8.0] * 3)
    agree(J(lambda x: wg.fori_loop(0, 3, lambda _, x: doubled(x), x))(x), [8.0] * 3)
    agree(wg.cond(True, doubled, lambda x: x, x), [2.0] * 3)
    agree(x, [1.0] * 3)


def test_results_have_the_form_of_what_was_given():
    assert type(wg.fori_loop(0, 2, lambda _, x: x * 2, np.ones(2))) is np.ndarray
    assert type(wg.fori_loop(0, 2, lambda _, x: x * 2, wg.tensor(1.0))) is wg.Tensor
    assert type(wg.cond(True, lambda x: x + 1, lambda x: x, 1.0)) is float


# What may be given


def test_python_numbers_take_the_dtype_of_what_the_body_makes_of_them():
    def program(x):
        return wg.while_loop(lambda s: s[1] < 3, lambda s: (s[0] + x, s[1] + 1), (0, 0))[0]

    agree(J(program)(1.5), 4.5)
    agree(program(1.5), 4.5)


def test_an_index_beyond_the_ends_chooses_the_first_or_last():
    ways = [lambda x: x, lambda x: 2 * x]
    for f in (lambda x: x, J):
        choose = f(lambda i, x: wg.switch(i, ways, x))
        assert [float(choose(i, 1.0)) for i in (-5, 0, 1, 7)] == [1.0, 1.0, 2.0, 2.0]


def test_the_base_tape_records_loops():
    x = wg.tensor(9.0, requires_grad=True)
    newton(x).backward()
    agree(x.grad, 1 / 6)
    x = wg.tensor(9.0, requires_grad=True)
    J(newton)(x).backward()
    agree(x.grad, 1 / 6)


def traced_and_eager(f):
    return pytest.mark.parametrize("wrap", [lambda f: f, J], ids=["eager", "jit"])(f)


@traced_and_eager
def test_containers_that_change_are_an_error(wrap):
    with pytest.raises(UsageError, match=r"while_loop: the value that the body returned is .* the same containers"):
        wrap(lambda x: wg.while_loop(lambda s: s[0] < 3, lambda s: s[0], (x, x)))(1.0)
    with pytest.raises(UsageError, match="scan: a function that returned a Tensor; a pair"):
        wrap(lambda x: wg.scan(lambda c, a: c * a, x, wnp.ones(2)))(1.0)


def test_errors_about_loops_over_integers_leave_out_their_counters():
    text = r"^fori_loop: the value that the body returned is \(\*, \*\) and the value that it was given is one array"
    for loop in (
        lambda x, n: wg.fori_loop(0, n, lambda i, y: (y, y), x),  # with a bound that is traced
        lambda x, n: wg.fori_loop(0, 3, lambda i, y: (y, y), x),
    ):
        with pytest.raises(UsageError, match=text):
            wg.jit(loop)(1.0, 3)
    text = r"^fori_loop: the body was given shape \(\) as value 0 of what is carried and returned \(2,\)"
    with pytest.raises(ShapeError, match=text):
        wg.jit(lambda x, n: wg.fori_loop(0, n, lambda i, y: wnp.stack([y, y]), x))(1.0, 3)


@traced_and_eager
def test_shapes_that_change_are_an_error(wrap):
    line = r" \(File .*wnp.stack.*\)" if wrap is J else ""
    text = (
        rf"^fori_loop: the body was given shape \(\) as value 0 of what is carried and returned \(2,\){line}; the shape"
    )
    with pytest.raises(
        ShapeError, match=text + r" of each carried value must stay. Start from one of shape \(2,\), or"
    ):
        wrap(lambda x: wg.fori_loop(0, 3, lambda i, x: wnp.stack([x, x]), x))(1.0)


@traced_and_eager
def test_dtypes_that_change_are_an_error(wrap):
    with pytest.raises(DtypeError, match="dtype float64 as value 0 of what is carried and returned float32"):
        wrap(lambda x: wg.while_loop(lambda x: x.sum() < 3, lambda x: x.astype("float32"), x))(np.zeros(2))


def test_branches_that_differ_are_an_error():
    with pytest.raises(ShapeError, match=r"cond: value 0 of false_fun has shape \(\) and of true_fun \(2,\)"):
        J(lambda x: wg.cond(x > 0, lambda x: wnp.stack([x, x]), lambda x: x, x))(1.0)
    with pytest.raises(UsageError, match="switch: branch 0 is one array and branch 1 is"):
        J(lambda x: wg.switch(x.astype(int), [lambda x: x, lambda x: (x, x)], x))(1.0)
    with pytest.raises(ShapeError, match=r"cond: value 0 of false_fun has shape \(\) and of true_fun \(2,\)"):
        wg.vmap(lambda x: wg.cond(x > 0, lambda x: wnp.stack([x, x]), lambda x: x, x))(np.array([1.0, -1.0]))


@traced_and_eager
def test_predicates_are_one_value(wrap):
    with pytest.raises(ShapeError, match=r"cond: a predicate of shape \(2,\); one value"):
        wrap(lambda x: wg.cond(x > 0, lambda: 1.0, lambda: 2.0))(np.ones(2))
    with pytest.raises(ShapeError, match=r"while_loop: cond_fun returned shape \(2,\); one boolean"):
        wrap(lambda x: wg.while_loop(lambda x: x > 0, lambda x: x - 1, x))(np.ones(2))
    with pytest.raises(
        DtypeError, match=r"while_loop: cond_fun returned dtype float64; one boolean .* the first function"
    ):
        wrap(lambda x: wg.while_loop(lambda x: x * 2, lambda x: x < 9, x))(1.0)  # swapped: it would never end
    assert wrap(lambda n: wg.while_loop(lambda n: n, lambda n: n - 1, n))(5) == 0
    with pytest.raises(DtypeError, match="switch: an index of dtype float64; an integer"):
        wrap(lambda x: wg.switch(x, [lambda: 1.0]))(1.0)
    with pytest.raises(DtypeError, match="fori_loop: a bound of dtype float64; an integer"):
        wrap(lambda x: wg.fori_loop(0, x, lambda i, y: y, 1.0))(1.0)


def test_arguments_of_scan_are_checked():
    with pytest.raises(UsageError, match="scan: neither xs nor a length; one of them is needed"):
        wg.scan(lambda c, _: (c, None), 1.0)
    with pytest.raises(ShapeError, match="scan: lengths 2 and 3; one length"):
        wg.scan(lambda c, _: (c, None), 1.0, (np.ones(2), np.ones(3)))
    with pytest.raises(ShapeError, match=r"scan: xs with an array of shape \(\)"):
        wg.scan(lambda c, _: (c, None), 1.0, np.float64(1.0))
    with pytest.raises(UsageError, match="switch: no branches"):
        wg.switch(0, [])


def test_recursion_without_end_is_an_error():
    def endless(x):
        return wg.call(endless, x - 1)

    with pytest.raises(GraphError, match=r"call: .*endless calls itself with arguments that differ only in values"):
        J(endless)(1.0)


# What it costs


@pytest.mark.parametrize("wrap", [lambda f: f, J], ids=["eager", "jit"])
def test_memory_of_reverse_mode_grows_with_the_number_of_iterations(wrap):
    def peak(n):
        derivative = wrap(G(lambda x: wg.while_loop(lambda s: s[0] < n, body, (0, x))[1].sum()))
        derivative(np.ones(1000))
        tracemalloc.start()
        derivative(np.ones(1000))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    def body(s):
        return s[0] + 1, wnp.sin(s[1])

    small, large = peak(50), peak(200)
    assert large < 5 * small


def test_what_does_not_change_is_computed_before_the_loop():
    def program(x, w):
        def body(s):
            v, y = s
            return v, wnp.tanh(w.T @ y * wnp.exp(v))

        return wg.fori_loop(0, 5, lambda _, s: body(s), (x, wnp.ones(2)))[1]

    graph = trace(program)(1.0, np.eye(2))
    loop = graph.equations[-1]
    assert [e.primitive.name for e in graph.equations] == ["transpose", "exp", "scan"]
    assert [e.primitive.name for e in loop.params["body"].equations] == ["matmul", "multiply", "tanh"]
    assert loop.params["spec"].carried == 1


def test_what_might_not_be_computed_at_all_stays_in_the_loop():
    def program(x):
        return wg.while_loop(lambda s: s[0] < 0.0, lambda s: (s[0] + wnp.exp(s[1]) * s[1], s[1]), (x, x))[0]

    with np.errstate(all="raise"):
        assert J(program)(1000.0) == 1000.0
        assert G(J(program))(1000.0) == 1.0
        assert J(G(program))(1000.0) == 1.0


@pytest.mark.parametrize("program", [newton, captured_branch, loop_in_a_branch, scanned_over_loops])
def test_no_lanes_at_all(program):
    for f in (wg.vmap(program), J(wg.vmap(program)), wg.vmap(G(program))):
        assert f(np.zeros(0)).shape == (0,)


def test_lanes_that_are_done_do_no_harm():
    def overflowing(x):
        body = lambda s: (s[0] * wnp.exp(s[1] * s[0]), s[1] + 1.0)
        return wg.while_loop(lambda s: s[1] < x, body, (x * 0.01, 0.0))[0]

    lanes = np.array([0.5, 7.0, 3.0, -1.0])
    expected = [G(overflowing)(x) for x in lanes]
    with np.errstate(all="raise"):
        for derivative in (wg.vmap(G(overflowing)), J(wg.vmap(G(overflowing))), J(G(total(overflowing)))):
            agree(derivative(lanes), expected)


@pytest.mark.filterwarnings("ignore::wengert.errors.DetachedWarning")
def test_lanes_that_are_done_read_within_bounds():
    x = np.arange(1.0, 4.0) / 3

    def program(n, x):
        return wg.fori_loop(0, n, lambda i, s: s + x[i] ** 2 * s, 1.0)

    expected = [G(program, 1)(n, x) for n in (1, 3, 0)]
    for wrap in (lambda f: f, J):
        agree(wrap(wg.vmap(lambda n: G(program, 1)(n, x)))(np.array([1, 3, 0])), expected)


@pytest.mark.parametrize("reverse", [False, True])
def test_unrolled_scans_leave_no_loop_and_change_no_result(reverse):
    def running(x, unroll):
        return wg.scan(lambda s, a: (s * a + x, np.sin(s)), x, np.arange(1.0, 5.0), reverse=reverse, unroll=unroll)

    def names(unroll):
        graph = wg.graph.trace(lambda x: running(x, unroll))(0.3)
        return {equation.primitive.name for equation in graph.equations}

    assert "scan" in names(1)
    assert "scan" not in names(4)
    assert "scan" not in names(True)
    for unroll in (1, 2, 4, True):
        for got, want in zip(wg.jit(lambda x, u=unroll: running(x, u))(0.3), running(0.3, 1), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-15)
        found = wg.jit(wg.grad(lambda x, u=unroll: running(x, u)[0]))(0.3)
        np.testing.assert_allclose(found, wg.grad(lambda x: running(x, 1)[0])(0.3), rtol=1e-14)


def test_functions_that_set_variables_of_enclosing_ones_are_refused_while_traced():
    def program(x):
        kept = x

        def double(v):
            nonlocal kept
            kept = x * 2.0
            return v

        return wg.cond(np.sum(x) > 0, lambda v: v, double, x), kept

    x = np.array([0.5, 0.6])
    np.testing.assert_array_equal(program(x)[1], x)
    with pytest.raises(
        GraphError, match=r"cond: a function that changes kept, which is not its own(.|\n)*program: return wg"
    ):
        wg.jit(program)(x)
    with pytest.raises(GraphError, match="scan: a function that changes kept, which is not its own"):
        wg.jit(sums)(x)


def sums(x):
    kept = x

    def step(carried, row):
        nonlocal kept
        kept = kept + row
        return carried, None

    return wg.scan(step, 0.0, x)[0], kept


def test_predicates_are_not_converted() -> None:
    graph = wg.graph.trace(lambda x: wg.cond(x > 0, wnp.sin, wnp.cos, x))(1.0)
    assert [equation.primitive.name for equation in graph.equations] == ["greater", "cond"]


# Errors


YES = (True,)
ZERO = np.float64(0.0)
CUTS = {
    "pushed": lambda run, graph: subgraphs.forward_graph(graph, YES, YES, None, NOTHING_PASSED),
    "series": lambda run, graph: subgraphs.forward_graph(graph, YES, YES, 2, NOTHING_PASSED),
    "batched": lambda run, graph: subgraphs.batched_graph(
        lambda x: run(graph, [x]), 3, [graph.inputs[0].aval], YES, YES
    ),
    "halves": lambda run, graph: subgraph_gradients.split_gradient(
        graph, YES, YES, at_hand=YES, fixed=YES, summed=(False,), name="halves"
    ),
    "jvp": lambda run, graph: propagate_opaque(
        Opaque("test.failing", np.sin, vjp=lambda ct, _out, _x: run(graph, [ct])), [1.0], ZERO, [ZERO], {}
    ),
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=list(CUTS))
def test_traces_end_where_what_they_run_raises(cut, monkeypatch):
    """A value that such a function has let out is refused afterwards, not taken for a live one."""

    def failing(_, args):
        raise LookupError(*args)

    graph = trace(lambda x: x * x)(1.0)
    monkeypatch.setattr(subgraphs, "evaluate", failing)
    monkeypatch.setattr(subgraph_gradients, "evaluate", failing)
    with pytest.raises(LookupError) as raised:
        cut(failing, graph)
    seen = raised.value.args
    assert all(x._trace.ended for x in seen)
    assert seen


@pytest.mark.parametrize("transform", [lambda f: f, wg.jit])
def test_results_that_are_operands_have_memory_of_their_own(transform):
    def f(x):
        chosen = wg.cond(x[0] > 0, lambda x: x, lambda x: 2 * x, x)
        kept = wg.fori_loop(0, 0, lambda _, x: x, x)
        chosen += 1.0
        kept += 1.0
        return x * 1.0

    for x in (np.ones(2), wg.tensor([1.0, 1.0])):
        np.testing.assert_array_equal(transform(f)(x), [1.0, 1.0])


def test_errors_about_the_value_of_a_counted_loop_count_it_alone() -> None:
    for transform in (lambda f: f, wg.jit):
        for stop in (3, np.array(3)):
            f = transform(lambda x, stop: wg.fori_loop(0, stop, lambda i, y: y / 2, x))
            with pytest.raises(DtypeError, match="dtype int64 as value 0 of what is carried and returned float64"):
                f(np.arange(3), stop)


CAPTURING = {
    "cond": lambda x, i: wg.cond(i < 5, lambda: x[i] * 2, lambda: x[0]),
    "switch": lambda x, i: wg.switch(i // 5, [lambda: x[i] * 2, lambda: x[0]]),
    "a view": lambda x, i: of_view(x[1:], i),
    "containers": lambda x, i: of_containers([x, {"index": i}], i),
    "for no steps": lambda x, i: wg.fori_loop(0, np.where(i < 5, 2, 0), lambda _k, s: s + x[i], x[0] * 0),
    "while never": lambda x, i: wg.while_loop(lambda c: c < i % 5, lambda c: c + x[i], x[0] * 0 + 0.5),
}


def of_view(x: Any, i: Any) -> Any:
    return wg.cond(i < 4, lambda: x[i] + x[0], lambda: x[0])


def of_containers(data: Any, i: Any) -> Any:
    return wg.cond(i < 5, lambda: data[0][data[1]["index"]], lambda: data[0][0])


@together("way", ["jit", "jit of grad", "grad of jit", "jit of vmap"])
@together("case", CAPTURING)
def test_what_a_branch_or_body_computes_of_captured_values_is_computed_where_it_runs_alone(case: str, way: str) -> None:
    function, x = CAPTURING[case], np.arange(1.0, 6.0)
    want: Any = function
    if way == "jit":
        call: Any = wg.jit(function)
    elif way == "jit of vmap":
        call, want = wg.jit(wg.vmap(function, (0, None))), wg.vmap(function, (0, None))
        x = np.stack([x, x + 1])
    else:
        want = wg.grad(function)
        call = wg.jit(want) if way == "jit of grad" else wg.grad(wg.jit(function))
    for i in (1, 2, 10):
        if case == "while never" and i < 5:
            continue
        np.testing.assert_array_equal(call(x, np.int64(i)), want(x, np.int64(i)))


# Batches of batches


def halved_below(x, limit):
    """Choose, with operands of which one belongs to each batch."""
    return wg.cond(x > limit, lambda x: x * 2.0, lambda x: x - 1.0, x)


def shared_operand(x, limit):
    """Choose by what one batch has alone, with an operand that both have."""
    return wg.cond(limit > 1.5, lambda y: y[0] * 2.0, lambda y: y[1] - 1.0, np.stack([x * limit, x]))


def switched(x, limit):
    return wg.switch(np.floor(limit).astype(int), [np.sin, lambda x: x * x, np.cos], x)


def within_bounds(x, limit):
    """Read at a place that is within bounds only for those who take this branch."""
    place = np.floor(limit * 2).astype(int)
    return wg.cond(place < 3, lambda i: wnp.array([1.0, 2.0, 3.0])[i] * x, lambda i: x, place)


def ending(x, limit):
    """Repeat what ends only for those who take this branch."""
    return wg.cond(
        limit < 1.5, lambda y: wg.while_loop(lambda y: y < 9.0, lambda y: y * 2.0, y), np.sin, x * (1.5 - limit)
    )


def counted_by_both(x, limit):
    steps = np.floor(limit * 2).astype(int)
    return wg.fori_loop(steps - 2, steps + (x > 1.0), lambda i, y: np.sin(y) + i, x)


def written_by_some(x, limit):
    """Write to what is carried, which is the same for all lanes at first."""

    def body(carried):
        y, i = carried
        y[i % 2] += 0.5
        return np.stack([x, x]), i + 1

    return wg.while_loop(lambda c: c[1] < limit * 2, body, (np.zeros(2), 0))[0][1]


def scanned(x, limit):
    rows = np.array([0.2, 0.4])
    return wg.scan(lambda y, row: (halved_below(y, limit) + row, y), x, rows)[0]


OF_BOTH = (halved_below, shared_operand, switched, within_bounds, ending, counted_by_both, written_by_some, scanned)
IN_BATCHES = {
    "one each": lambda f: wg.vmap(wg.vmap(f, (0, None)), (None, 0)),
    "the other way": lambda f: wg.vmap(wg.vmap(f, (None, 0), out_axes=-1), (0, None), out_axes=1),
    "both": lambda f: lambda x, y: wg.vmap(wg.vmap(f, (0, None)), (1, 0))(np.stack([x] * len(y), 1), y),
    "jitted inside": lambda f: wg.vmap(wg.vmap(wg.jit(f), (0, None)), (None, 0)),
    "jitted between": lambda f: wg.vmap(wg.jit(wg.vmap(f, (0, None))), (None, 0)),
    "jitted": lambda f: wg.jit(wg.vmap(wg.vmap(f, (0, None)), (None, 0))),
}


@together("function", OF_BOTH)
@together("way", IN_BATCHES)
def test_batches_of_batches_are_loops_over_calls(function, way):
    x, limits = np.array([0.5, 1.4, 1.7]), np.array([1.1, 2.0])
    one_by_one = np.array([[float(function(a, b)) for a in x] for b in limits])
    slopes = np.array([[wg.grad(function)(a, b) for a in x] for b in limits])
    run = IN_BATCHES[way](function)
    np.testing.assert_allclose(run(x, limits), one_by_one, rtol=1e-12)
    np.testing.assert_allclose(wg.grad(lambda x: np.sum(run(x, limits)))(x), slopes.sum(0), rtol=1e-12)
    np.testing.assert_allclose(wg.jvp(lambda x: run(x, limits), (x,), (np.ones(3),))[1], slopes, rtol=1e-12)


CAPTURED_ALONE = {
    "a loop": lambda x: wg.cond(x > 0, lambda: wg.while_loop(lambda v: v < 9.0, lambda v: v + x, 0.0 * x), lambda: x),
    "a jitted loop": lambda x: wg.cond(
        x > 0, lambda: wg.jit(lambda y: wg.while_loop(lambda v: v < 9.0, lambda v: v + y, 0.0 * y))(x), lambda: x
    ),
    "a count": lambda x: wg.cond(
        x > 0, lambda: wg.fori_loop(0, (1e9 * (2.0 - x)).astype(int) + 3, lambda _, v: v + 1.0, x), lambda: x
    ),
    "an index": lambda x: wg.cond(x > 0, lambda: wnp.array([1.0, 2.0, 3.0])[(2 - x).astype(int)] * x, lambda: x),
    "a write": lambda x: wg.cond(x > 0, lambda: written_at((4 - 2 * x).astype(int), x), lambda: x),
    "a matrix": lambda x: wg.cond(x > 0, lambda: np.linalg.inv(np.eye(2) * (x + 3.0))[0, 0], lambda: x),
}
"""What ends, is within bounds, and can be inverted, for those who take the branch."""


def written_at(place, x):
    found = wnp.zeros(3)
    found[place] = x
    return np.sum(found)


@together("function", CAPTURED_ALONE.values())
def test_what_branches_capture_is_read_for_those_who_take_them(function):
    x = np.array([2.0, -3.0])
    values, slopes = [function(a) for a in x], [wg.grad(function)(a) for a in x]
    for run in (wg.vmap(function), wg.vmap(lambda x: wg.vmap(function)(x[None])[0]), wg.jit(wg.vmap(function))):
        np.testing.assert_allclose(run(x), values)
        np.testing.assert_allclose(wg.vjp(run, x)[1](np.ones(2))[0], slopes)
    np.testing.assert_allclose(wg.vmap(wg.grad(function))(x), slopes)


# Writes stay where they belong


@pytest.mark.parametrize("made", [np.zeros, wnp.zeros], ids=["ndarray", "Tensor"])
def test_a_body_does_not_write_to_what_it_returned(made):
    kept = made(2)

    def add(i, value):
        value[0] += 1.0
        return kept

    loops = (
        lambda: wg.fori_loop(0, 3, add, np.ones(2)),
        lambda: wg.while_loop(lambda c: c[1] < 3, lambda c: (add(c[1], c[0]), c[1] + 1), (np.ones(2), 0))[0],
        lambda: wg.scan(lambda c, _: (add(0, c), None), np.ones(2), length=3)[0],
    )
    for run in loops:
        np.testing.assert_array_equal(run(), [0.0, 0.0])
        np.testing.assert_array_equal(kept, [0.0, 0.0])


def test_branches_and_bodies_in_lanes_do_not_write_to_what_others_receive():
    def one(y):
        y[0] = 5.0
        return y

    def step(c):
        c[0][0] += 1.0
        return np.full(2, 7.0), c[1] + 1

    def chosen(x):
        return wg.cond(x > 0, one, lambda y: y * 2.0, np.ones(2))

    def repeated(x):
        return wg.while_loop(lambda c: c[1] < x, step, (np.ones(2), 0))[0]

    x = np.array([1.0, -1.0])
    for function, wanted in ((chosen, [[5.0, 1.0], [2.0, 2.0]]), (repeated, [[7.0, 7.0], [1.0, 1.0]])):
        np.testing.assert_array_equal(wg.vmap(function)(x), wanted)
        np.testing.assert_array_equal(wg.jit(wg.vmap(function))(x), wanted)


@pytest.mark.parametrize(
    ("wrap", "limit"),
    [(lambda f: f, 1.5), (wg.jit, 1.5), (lambda f: wg.vmap(f, (None, 0)), LANES)],
    ids=["eager", "jit", "vmap"],
)
def test_what_shares_memory_is_not_written_to(wrap, limit):
    def write(one, other):
        one[0] = 5.0
        return one + other

    def step(value):
        one, other, i = value
        one[0] += 1.0
        return one, other, i + 1

    programs = (
        lambda x, y: wg.cond(y > 0, write, lambda one, other: one + other, x, x[::-1]),
        lambda x, y: wg.switch(np.floor(y).astype(int), [write, write], x, x),
        lambda x, y: wg.while_loop(lambda value: value[2] < y, step, (x, x, 0))[1],
    )
    for program in programs:
        with pytest.raises(GraphError, match=r"arguments 0 and 1 .* that share memory, of which the function"):
            wrap(program)(wg.tensor(np.ones(2)), limit)


@pytest.mark.parametrize("in_axes", [0, -1])
def test_rows_that_lanes_leave_are_written_to_through_views_as_without_lanes(in_axes: int) -> None:
    def program(x: Any) -> Any:
        _, rows = wg.scan(lambda c, row: (c, np.stack([row, 2 * row])), 0.0, x)
        rows.ravel()[::2] *= 0.0
        return rows

    x = np.arange(6.0).reshape(2, 3)
    want = np.stack([np.asarray(program(wg.tensor(lane))) for lane in np.moveaxis(x, in_axes, 0)])
    lanes = wg.vmap(program, in_axes=in_axes)
    for f in (lanes, wg.jit(lanes), wg.vmap(wg.jit(program), in_axes=in_axes)):
        np.testing.assert_array_equal(np.asarray(f(x)), want)


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        (lambda c: (c, c) if c < 2 else c, UsageError),
        (lambda c: (c,) if c < 2 else c, UsageError),
        (lambda c: np.ones(int(c)), ShapeError),
    ],
)
def test_steps_leave_behind_rows_of_one_kind(rows, error):
    with pytest.raises(error, match=r"scan: .*left behind"):
        wg.scan(lambda c, _: (c + 1, rows(c)), 1.0, length=3)
    with pytest.raises(error, match=r"while_loop: .*left behind"):
        wg.while_loop(lambda c: c < 3, lambda c: (c + 1, rows(c)), 1.0, rows=True)
