"""Patterns of Jacobians: they cover every element that is not zero, and name few others."""

import numpy as np
import pytest
from scipy.sparse import csr_array, diags_array

import wengert as wg
from tests.cases import together
from wengert.core.maps.box_maps import BoxMap, identity
from wengert.core.maps.composition import compose
from wengert.core.maps.coordinates import Coordinate
from wengert.errors import GraphError
from wengert.nn.functional import conv1d
from wengert.scipy.linalg import solve_triangular
from wengert.scipy.signal import lfilter
from wengert.scipy.special import log_softmax, softmax
from wengert.sparse import hessian_pattern, jacobian_pattern
from wengert.sparse.patterns.tangent_program import TangentProgram
from wengert.sparse.patterns.truth_matrices import power_and_sum
from wengert.sparse.plans.map_plan import Contribution, Placement, plan_by_maps

BANDED = diags_array([np.arange(1.0, 7.0), np.ones(5), np.array([0.5, 0.25])], offsets=[0, 1, -4]).tocsr()
TRIANGLE = np.tril(np.ones((6, 6)), -1)


def written(x):
    y = np.zeros(6) + 0 * x[0]
    y[:3] = x[3:] ** 2
    y[3:] += 3
    return y


def written_through_views(x):
    y = x * 1.0
    y[np.array([1, 1, 2])] += x[:1] * 2
    v = y[1:]
    v[::2] = v[::2] * 2 + y[0]
    return y


def last_write_wins(x):
    y = x * 1.0
    y[np.array([4, 2, 4])] = x[:3]
    return y


def grown(c, _):
    return wg.while_loop(lambda s: np.sum(s) < 10, lambda s: s * s + 1, c), None


def left_behind(x):
    return wg.scan(lambda c, u: (c * 0.5 + u, c * u), x[0], x)


def long_scan(x):
    c, ys = wg.scan(lambda c, u: (np.roll(c, 1) * 0.5 + u[:1], c[2:4]), x, np.tile(x, (40, 1)), reverse=True)
    return c, ys


def carried_only(x):
    return wg.fori_loop(0, 1000, lambda i, s: 0.5 * s + np.concatenate([np.zeros(1), 0.3 * s[:-1]]), x)


@wg.custom_rule
def through(x):
    return np.round(x * 3)


through.defjvp(lambda primals, tangents: (np.round(primals[0] * 3), 3 * tangents[0]))


KERNELS = np.random.default_rng(5).random((3, 2, 2))


def looking(i, state):
    out, x = state
    out[i % 6] = out[i % 6] * 0.5 + x[(i + 2) % 6] * (i > 3)
    return out, x


def reading(s, k):
    return s * 1, s[k] * s[(k + 1) % 6]


EXACT = {
    "reversed": lambda x: np.sin(x) * x[::-1],
    "rolled": lambda x: np.roll(x, 2) * x,
    "neighbours": lambda x: x[1:] * x[:-1] ** 2,
    "reshaped": lambda x: (x.reshape(2, 3).T * np.arange(1, 3.0)).reshape(-1),
    "regrouped": lambda x: x[:6].reshape(3, 2)[1:].reshape(2, 2).T.reshape(4, 1) * x[:1],
    "gathered": lambda x: x[np.array([0, 3, 3])] * x[np.array([1, 1, 2])],
    "joined": lambda x: np.concatenate([x[:3], np.cumsum(x)[-2:], x * 0.5]),
    "summed": lambda x: np.sum(x.reshape(-1, 3) ** 2, axis=1, keepdims=True) + x.reshape(-1, 3),
    "masked": lambda x: np.where(np.array([1, 0, 0, 1, 1, 0], bool), x * x, x[::-1]),
    "zeros of a matrix": lambda x: (np.diag(np.ones(6)) + np.eye(6, k=1)) @ np.sin(x),
    "zeros of an einsum": lambda x: np.einsum("i,ij->j", x, TRIANGLE[:, :5]),
    "zeros of a factor": lambda x: x.reshape(2, 3) * np.array([[0.0, 1.0, 0.0], [0.0, 2.0, 0.0]]),
    "padded factors": lambda x: np.diff(x) * np.pad(np.sin(x[2:]), (0, 1)),
    "truth as an index": lambda x: (x[True] * x[:, np.True_].T).reshape(-1),
    "substituted": lambda x: np.concatenate(
        [
            solve_triangular(TRIANGLE + 2.0 * np.eye(6), x.reshape(6, 1), lower=True, trans=trans)[:, 0]
            for trans in ("N", "T")
        ]
    ),
    "gathered padding": lambda x: (np.pad(x[:4], (1, 1)) * x[::-1])[np.array([0, 2, 5, 4])] ** 2,
    "padded outer": lambda x: np.outer(np.pad(x[:2], (0, 1)), x[-3:]) * x[:3, None],
    "padded scan": lambda x: wg.scan(lambda c, u: (c + u, (c * u, u)), x[0], np.pad(x[:2], (0, 1)))[1][0] * x[:3],
    "left by a scan": lambda x: wg.scan(lambda c, u: (c, (c * u, u)), x[0], np.pad(x[:2], (0, 1)))[1][1] * x[:3],
    "differences": lambda x: np.diff(np.exp(x))[1:] + np.pad(x[2:], (0, 1))[1:],
    "outer": lambda x: np.tril(np.outer(x[:3], x[-3:])),
    "stacked": lambda x: np.stack([x, np.flip(x)], axis=1).reshape(-1)[:7],
    "convolved": lambda x: np.convolve(x, np.array([1.0, 0.0, 2.0]))[:6] * x,
    "repeated": lambda x: np.tile(x, 2) + np.repeat(x, 2),
    "trace": lambda x: np.trace(x.reshape(2, 3)) + x[1],
    "sum from": lambda x: np.sum(x[1:], initial=x[0]) + np.sum(x.reshape(2, 3), axis=0, where=TRIANGLE[:2, :3] > 0),
    "mean": lambda x: x.reshape(2, 3).mean(0),
    "written": written,
    "through views": written_through_views,
    "last write": last_write_wins,
    "counted": lambda x: np.bincount(np.array([0, 1, 1, 2, 5, 0]), x, minlength=6),
    "segments": lambda x: np.add.reduceat(x, np.array([0, 2, 3])),
    "windows": lambda x: np.lib.stride_tricks.sliding_window_view(x, 3).sum(1) * x[:4],
    "custom rule": lambda x: through(x) + wg.stop_gradient(x) * x,
    "rounding": lambda x: np.round(x) + x[::-1],
    "short loop": lambda x: wg.fori_loop(0, 2, lambda i, s: 0.5 * s + 0.1 * np.roll(s, 1) ** 2, x),
    "counted indices": lambda x: wg.fori_loop(0, 3, lambda i, s: s + x[i] * np.eye(6)[0], x),
    "counters": lambda x: wg.fori_loop(0, 40, looking, (x * 1, x))[0],
    "rows by numbers": lambda x: wg.scan(reading, x * 1, np.arange(36) * 5 % 6, reverse=True)[1],
    "scan": left_behind,
    "long scan": long_scan,
    "long loop": carried_only,
    "branch": lambda x: wg.cond(x[0] > -100, lambda x: x * 2, lambda x: x * x, x),
    "call": lambda x: wg.checkpoint(lambda y: np.sin(y) * 2)(x),
    "while": lambda x: wg.while_loop(lambda s: np.sum(s) < 100, lambda s: s * 2 + np.pad(s[1:], (0, 1)), x),
    "gradient": wg.grad(lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2)),
    "gradient of a loop": wg.grad(lambda x: np.sum(wg.fori_loop(0, 50, lambda i, s: np.sin(s) * 0.9, x))),
    "gradient of while": wg.grad(lambda x: np.sum(wg.while_loop(lambda s: np.sum(s) < 100, lambda s: s * s + 1, x))),
    "sparse matrix": lambda x: BANDED @ np.sin(x) + x @ BANDED + (BANDED @ x.reshape(6, 1))[:, 0],
    "gradient of while in a scan": wg.grad(lambda x: np.sum(wg.scan(grown, x, None, length=3)[0])),
    "cross products": lambda x: np.cross(x.reshape(2, 3), x[:3] * x[3:]),
    "quantiles of rows": lambda x: np.quantile(x.reshape(3, 2), np.array([0.3, 0.9]), axis=1),
    "gradient of quantiles": wg.grad(lambda x: np.sum(np.quantile(x.reshape(3, 2), 0.3, axis=1, keepdims=True) ** 2)),
    "products so far": lambda x: np.cumprod(x.reshape(3, 2), axis=0),
    "windows of images": lambda x: (
        conv1d(x.reshape(1, 2, 3), KERNELS, stride=2, padding=2, dilation=2).reshape(-1) * x[:1]
    ),
    "kernels": lambda x: conv1d(KERNELS[:1], x.reshape(1, 2, 3)[..., :2], padding=1).reshape(-1),
    "softmax": lambda x: softmax(x.reshape(2, 3), axis=1) * log_softmax(x.reshape(2, 3), axis=1),
    "filtered": lambda x: lfilter([1.0, 0.5], [1.0, -0.3], x),
    "coefficients": lambda x: lfilter([1.0], np.concatenate([x[:1], x[1:3]]), np.ones(4)),
    "solved": lambda x: np.linalg.solve(np.stack([np.eye(2)] * 3) + 0.1, x.reshape(3, 2)[..., None]),
}


def dense_pattern(f, shape, points=3):
    """Where the dense Jacobian is not zero at some point."""
    found = None
    for seed in range(points):
        x = np.random.default_rng(seed).random(6) + 0.3
        leaves = wg.tree.leaves(wg.jacobian(f)(x))
        there = np.concatenate([np.reshape(leaf, (-1, 6)) for leaf in leaves]) != 0
        found = there if found is None else found | there
    return found.reshape(shape)


@together("name", list(EXACT))
def test_patterns_have_the_elements_that_are_not_zero_and_no_others(name):
    pattern = jacobian_pattern(EXACT[name], np.ones(6) * 0.5).toarray()
    seen = dense_pattern(EXACT[name], pattern.shape)
    assert (pattern | ~seen).all(), "an element that is not zero is not in the pattern"
    if name != "while":  # of which some iterations are not run
        assert (seen | ~pattern).all(), "an element that is always zero is in the pattern"


def test_contributions_to_elements_are_added_where_some_have_fewer():
    own = Contribution(np.array([0, 1, 0]), np.array([0, 1, 0]), np.array([0, 1, 1]), np.zeros(2))
    placement = Placement((2, 2), [own], [True])
    assert np.asarray(placement.elements(wg.tensor([3.0, 4.0]))).tolist() == [7.0, 4.0]
    many = Contribution(np.array([1] * 7 + [0]), np.zeros(8, int), np.arange(8), np.zeros(8))
    placement = Placement((2, 1), [many], [True])
    assert np.asarray(placement.elements(wg.tensor(np.arange(8.0)))).tolist() == [7.0, 21.0]


BY_PATTERN_ALONE = {
    "substituted",
    "long scan",
    "long loop",
    "counters",
    "rows by numbers",
    "branch",
    "while",
    "gradient of a loop",
    "gradient of while",
    "solved",
}
BY_PATTERN_ALONE |= {
    "gradient of while in a scan",
    "quantiles of rows",
    "gradient of quantiles",
    "cross products",
    "products so far",
}
BY_PATTERN_ALONE |= {"filtered", "coefficients", "softmax"}
"""Where coefficients are not carried: long loops, branches that are not known, and routines."""


def stored(plan, x):
    """What a plan by maps computes, as a matrix."""
    pattern = plan.pattern
    return csr_array((np.asarray(wg.jit(plan.elements)(x)), pattern.indices, pattern.indptr), pattern.shape).toarray()


@together("name", [*EXACT, "constant", "many in one"])
def test_plans_by_maps_compute_what_the_dense_jacobian_has(name):
    more = {
        "constant": lambda x: np.diff(x) * 2.0,
        "many in one": lambda x: x[np.array([0, 0, 0, 0, 0, 0])] * x + np.sum(x.reshape(2, 3) ** 2),
    }
    function = more.get(name) or EXACT[name]
    x = np.random.default_rng(3).random(6) + 0.3
    plan = plan_by_maps(TangentProgram("jacobian", function, (x,), (0,)), (x,))
    assert (plan is None) == (name in BY_PATTERN_ALONE)
    if plan is None:
        return
    for point in (x, x[::-1].copy()):
        dense = np.concatenate([np.reshape(leaf, (-1, 6)) for leaf in wg.tree.leaves(wg.jacobian(function)(point))])
        np.testing.assert_allclose(stored(plan, point), dense, rtol=1e-14, atol=1e-14 * abs(dense).max())


def test_plans_by_maps_are_jitted_functions_that_are_differentiated_and_run_in_lanes():
    function = lambda x: x[1:] * x[:-1] ** 2
    x = np.linspace(0.5, 1.5, 5)
    plan = plan_by_maps(TangentProgram("jacobian", function, (x,), (0,)), (x,))
    expected = wg.jacobian(lambda x: wg.jacobian(function)(x)[plan.pattern.rows, plan.pattern.indices])(x)
    np.testing.assert_allclose(wg.jacobian(wg.jit(plan.elements))(x), expected, rtol=1e-14)
    lanes = np.stack([x, x + 1])
    run = wg.jit(plan.elements)
    np.testing.assert_allclose(wg.vmap(run)(lanes)[1], run(x + 1), rtol=1e-15)


def test_places_that_depend_on_the_input_may_be_any_or_those_of_the_point():
    padded = lambda x: np.pad(x[3:], (1, 2))
    counted = lambda x: x[:3] * np.histogram(padded(x), 3, (-2.0, 2.0), weights=padded(x))[0]
    assert jacobian_pattern(counted, np.ones(6)).nnz == 12
    x = np.array([2.0, 0.0, 1.0])
    function = lambda x: x[np.argsort(x)] * x[0]
    assert jacobian_pattern(function, x).nnz == 9
    assert (jacobian_pattern(function, x, local=True).toarray() == (wg.jacobian(function)(x) != 0)).all()
    branch = lambda x: wg.cond(x[0] > 0, lambda x: x, lambda x: x[::-1], x)
    assert jacobian_pattern(branch, np.ones(4)).nnz == 8
    assert jacobian_pattern(branch, np.ones(4), local=True).nnz == 4


def test_integers_that_are_arguments_may_be_any_place():
    def scattered(x, places):
        y = x * 1.0
        y[places] += x[:2]
        return y

    x, places = np.ones(4), np.array([0, 3])
    assert jacobian_pattern(scattered, x, places).nnz == 16
    assert jacobian_pattern(scattered, x, places, local=True).nnz == 5


def test_a_program_that_cannot_be_traced_is_refused():
    def written_to_either(y):
        whole = y * 1.0
        part = whole
        if np.mean(y) > 0.27:
            part = part[::-1]
        part += 2.0
        return whole

    with pytest.raises(GraphError, match="shares memory, or not, with one that has been written to since"):
        jacobian_pattern(written_to_either, np.ones((2, 3)))


def test_branches_that_only_raise_are_passed_by():
    def require_small(scale):
        if 1.0 < scale < 2.5:
            raise ValueError("no such scale")

    def checked(x, scale):
        if scale:
            require_small(scale)
        return x[1:] * scale

    assert jacobian_pattern(checked, np.arange(3.0), -0.7).toarray().tolist() == [[0, 1, 0], [0, 0, 1]]


def test_containers_and_several_arguments_are_rows_and_columns_one_after_the_other():
    def function(p, scale):
        return {"a": p["u"] * scale, "b": p["v"][::-1]}

    p = {"u": np.ones(2), "v": np.ones((2, 2))}
    pattern = jacobian_pattern(function, p, 2.0, argnums=(1, 0)).toarray()
    assert pattern.shape == (6, 7)
    assert pattern[:2].astype(int).tolist() == [[1, 1, 0, 0, 0, 0, 0], [1, 0, 1, 0, 0, 0, 0]]
    assert pattern[2:, 3:].argmax(1).tolist() == [2, 3, 0, 1]


def test_hessians_keep_the_zeros_of_linear_and_bilinear_parts():
    pattern = hessian_pattern(lambda x: np.sum(x[:3] * x[3:]) + np.sum(x * np.arange(6)), np.ones(6))
    assert (pattern.toarray() == np.roll(np.eye(6, dtype=bool), 3, 1)).all()


@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors:DeprecationWarning")
def test_products_of_vectors_in_the_plane_depend_on_all_components():
    pattern = jacobian_pattern(lambda x: np.cross(x.reshape(3, 2), np.ones((3, 2))), np.ones(6))
    assert pattern.toarray().astype(int).tolist() == np.kron(np.eye(3, dtype=int), [1, 1]).tolist()


def test_stencils_have_as_many_elements_as_points():
    pattern = jacobian_pattern(lambda x: np.roll(x, 1) + np.roll(x, -1) - 2 * x, np.ones(10**5))
    assert pattern.nnz == 3 * 10**5


def test_a_long_loop_takes_no_longer_than_a_short_one():
    def last(length):
        return lambda x: wg.scan(lambda c, _: (c + np.pad(c[1:], (0, 1)), None), x, None, length=length)[0]

    assert jacobian_pattern(last(10**7), np.ones(20)).nnz == 210


def test_powers_and_their_sums_are_those_of_all_steps():
    for seed in range(20):
        r = np.random.default_rng(seed)
        a, power, total = r.random((5, 5)) < r.uniform(0.1, 0.5), np.eye(5, dtype=bool), np.zeros((5, 5), bool)
        count = int(r.integers(50))
        for _ in range(count):
            power, total = power @ a, total | power
        found = [matrix.toarray() for matrix in power_and_sum(csr_array(a), count)]
        np.testing.assert_array_equal(found, [power, total])


@pytest.mark.parametrize("seed", range(30))
def test_compositions_are_those_of_matrices(seed):
    r = np.random.default_rng(seed)
    between = (4, 3) if seed % 2 else (12,)

    def some(sides, shapes):
        rank = int(r.integers(1, 3))
        extents = tuple(r.integers(1, 4, rank).tolist())
        found = []
        for shape in shapes:
            side = []
            for n in shape:
                coordinate = Coordinate.at(0)
                for d in range(rank):
                    if r.random() < 0.7:
                        coordinate = coordinate.plus(Coordinate.along(d, int(r.integers(0, 3)) or 1))
                if r.random() < 0.4:
                    coordinate = coordinate.plus(Coordinate.from_table(0, r.integers(0, 3, extents[0])))
                low, high = coordinate.span(extents)
                side.append(coordinate.plus_offset(-low) if high - low < n else Coordinate.at(int(r.integers(n))))
            found.append(side)
        return BoxMap(extents, *found, float(r.integers(1, 5)) * np.ones(extents))

    def dense(one, target, source):
        matrix = np.zeros((int(np.prod(target)), int(np.prod(source))))
        np.add.at(matrix, one.pairs(target, source), np.broadcast_to(one.coefficient, one.extents).reshape(-1))
        return matrix

    outer, inner = some(None, [(5, 2), between]), some(None, [between, (7,)])
    both = compose(outer, inner, between)
    expected = dense(outer, (5, 2), between) @ dense(inner, between, (7,))
    got = np.zeros_like(expected) if both is None else dense(both.canonical(), (5, 2), (7,))
    assert np.array_equal(got, expected)


def test_identity_composes_to_the_same():
    one = BoxMap((3,), (Coordinate.along(0, 2, 1),), (Coordinate.along(0),))
    assert compose(identity((7,)), one, (7,)).canonical().key == one.canonical().key


def test_numbers_that_are_known_are_evaluated_as_numbers():
    x = np.array([0.5, 2.0])
    for fun in (
        lambda x: (np.tanh(x[0] * 0.0) + 1.0) * x[1] ** 2,
        lambda x: np.arctanh(np.sin(x[1] * 0.0)) + x[1] ** 2,
    ):
        assert wg.sparse.hessian_pattern(fun, x).toarray().tolist() == [[False, False], [False, True]]
        np.testing.assert_allclose(wg.sparse.hessian(fun)(x).toarray(), wg.hessian(fun)(x))
