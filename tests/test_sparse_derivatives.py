"""Sparse Jacobians and Hessians against dense ones: containers, formats, plans in files, and what is refused."""

import warnings

import numpy as np
import pytest
from scipy import sparse as sp
from scipy.optimize import NonlinearConstraint

import wengert as wg
from tests.cases import together
from wengert import optim, sparse
from wengert.core.containers.tree_leaves import flatten
from wengert.core.values.dispatch import apply
from wengert.errors import DtypeError, FileFormatError, ShapeError, UsageError
from wengert.primitives.conversion import number
from wengert.primitives.sparse.sparse_tensor import SparseTensor
from wengert.sparse import derivatives, low_fill
from wengert.sparse.plans import element_plan, plan_choice
from wengert.sparse.plans.value_walk import ValueWalk
from wengert.support import config


def differences(x):
    return x[1:] * x[:-1] + np.sin(x[1:])


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def arrow(x):
    return np.concatenate([np.sum(x * x)[None], x[1:] ** 2 * x[0]])


def in_containers(p, scale, times):
    for _ in range(times):
        p = {"a": p["a"] * scale, "b": p["b"]}
    return {"sums": p["a"][:, 0] + p["a"][:, 1], "both": (p["b"] ** 2, np.sum(p["b"]))}


def with_loop(x):
    total = x
    while np.sum(total * total) < 10.0:  # follows a traced value
        total = total * 2.0
    return total[1:] - total[:-1]


def at_places(x, k):
    return x[k] ** 2


FORMATS = ("bsr", "coo", "csc", "csr", "dia")


def by_matrices(p):
    return {"sum": sum([np.sin(p[name] @ POINT[:3]) for name in FORMATS]) * p["x"], "last": p["csr"] * p["x"][0]}


def of_nothing(x):
    """Matrices without stored elements, and gathers and sums of segments of which there are none."""
    found = [np.add.reduceat(x**2, NOWHERE), x[NOWHERE] ** 2 + np.sum(x[NOWHERE])]
    for name in FORMATS:
        matrix = sp.csr_array((3, 5)).asformat(name)
        found += [matrix.T @ (matrix @ x**2) + x]
    return np.concatenate(found)


def float_of(x):
    """A Python number, as sums are that begin with one."""
    return apply(number, x)


POINT = np.array([0.3, 1.2, -0.7, 0.9, 2.1])
NOWHERE = np.zeros(0, int)
MATRICES = {name: sp.csr_array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]]).asformat(name) for name in FORMATS}
TREE = {"a": np.arange(1.0, 7.0).reshape(3, 2), "b": np.array([0.5, 2.0])}

JACOBIANS = [
    (differences, (POINT,), 0),
    (lambda x: differences(x) + x[1:], (POINT.astype(np.float32),), 0),
    (arrow, (np.linspace(1.0, 2.0, 9),), 0),
    (in_containers, (TREE, 2.0, 3), 0),
    (in_containers, (TREE, 2.0, 3), (0, 1)),
    (in_containers, (TREE, 2.0, 2), (1, 0)),
    (lambda x: x**2, (3.0,), 0),
    (lambda x: np.sum(x[:2]), (POINT,), 0),
    (lambda x: float_of(np.sum(x[1:] ** 2)) * x, (POINT,), 0),
    (lambda x: x[:0], (POINT,), 0),
    (at_places, (POINT, np.array([1, 1, 4])), 0),
    (of_nothing, (POINT,), 0),
    (by_matrices, ({**MATRICES, "x": POINT[:2]},), 0),
    (lambda a: a @ POINT[:3], (MATRICES["dia"],), 0),
    (with_loop, (POINT,), 0),
    (lambda x, y: x[:, None] * y, (POINT[:2], POINT[:3]), (1, 0)),
]


def matrix_of(dense, output, leaf):
    return np.reshape(np.asarray(dense), (np.size(output), np.size(leaf)))


def matrices_in(found, dense):
    """The matrices in containers, in the order of leaves; these are the containers of others."""
    if sp.issparse(found):
        assert not isinstance(dense, dict | list | tuple)
        return [found]
    dense = dense.data if isinstance(dense, SparseTensor) else dense  # of a result that is a matrix
    assert type(found) is type(dense)
    keys = sorted(found) if isinstance(found, dict) else range(len(found))
    assert len(found) == len(dense)
    return [matrix for key in keys for matrix in matrices_in(found[key], dense[key])]


@together("case", JACOBIANS)
def test_jacobians_are_the_dense_ones_at_each_leaf(case):
    fun, args, argnums = case
    dense = wg.jacobian(fun, argnums)(*args)
    chosen = [args[argnums]] if isinstance(argnums, int) else [args[i] for i in argnums]
    outputs, leaves = flatten(fun(*args))[0], flatten(chosen)[0]
    for format, plan in (("csr", "auto"), ("csc", "colors"), ("csr", "dense")):
        found = sparse.jacobian(fun, argnums, format=format, plan=plan)(*args)
        expected = flatten(dense)[0]
        matrices = matrices_in(found, dense)
        pairs = [(output, leaf) for output in outputs for leaf in leaves]
        for matrix, block, (output, leaf) in zip(matrices, expected, pairs, strict=True):
            assert matrix.format == format
            assert matrix.dtype == np.asarray(block).dtype
            np.testing.assert_allclose(matrix.toarray(), matrix_of(block, output, leaf), rtol=1e-6, atol=1e-12)
    flat = sparse.jacobian(fun, argnums, format="flat")(*args)
    blocks = [matrix_of(x, *pair) for x, pair in zip(expected, pairs, strict=True)]
    rows = [np.hstack(blocks[i : i + len(leaves)]) for i in range(0, len(blocks), len(leaves))]
    np.testing.assert_allclose(flat.toarray(), np.vstack(rows), rtol=1e-6, atol=1e-12)


MADE_BY_MAPS = ("csr", sparse.value_and_jacobian), ("csc", sparse.jacobian), ("flat", sparse.value_and_jacobian)
BY_MAPS = [case for case in JACOBIANS if case[0] not in (with_loop, at_places)]


@together("case, way", [(case, MADE_BY_MAPS[k % len(MADE_BY_MAPS)]) for k, case in enumerate(BY_MAPS)])
def test_jacobians_by_maps_are_those_by_colours(case, way):
    fun, args, argnums = case
    format, make = way
    by_maps, by_colors = (
        make(fun, argnums, format=format, plan=plan, reuse=True).prepare(*args) for plan in ("maps", "colors")
    )
    assert by_maps.plan(*args).method == "maps"
    (found, structure), (other, same) = flatten(by_maps(*args)), flatten(by_colors(*args))
    assert structure == same
    for left, right in zip(found, other, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6, atol=1e-12)


CHAINED = sp.random_array((20, 20), density=0.2, rng=np.random.default_rng(0)).tocsr()


@together("step", ["sines", "sums", "gathers", "loop", "lanes"])
@pytest.mark.parametrize("second", [False, True])
def test_maps_are_given_up_before_their_tables_outgrow_other_plans(step, second, monkeypatch):
    points, composed = [0], ValueWalk.compose_maps

    def measured(*args):
        found = composed(*args)
        points.append(sum([one.size for one in found if one is not None]))
        return found

    monkeypatch.setattr(ValueWalk, "compose_maps", measured)
    monkeypatch.setattr(plan_choice, "FEW_POINTS", 2000)
    monkeypatch.setattr(element_plan, "FEW_POINTS", 800)
    for name in ("color_general", "color_symmetric"):
        monkeypatch.delattr(
            element_plan, name, raising=False
        )  # blocks are as many as the whole matrix has, and get no colours
    places, several = CHAINED.indices[:20], CHAINED.indices[:80].reshape(20, 4)
    last = 3 if second else 6
    once = {
        "sines": lambda x: x + 0.1 * (CHAINED @ np.sin(x)),
        "sums": lambda x: np.bincount(places, np.sin(x), 20) + x * np.sum(x),
        "gathers": lambda x: x + np.sum(np.sin(x[several]), axis=1),
        "lanes": lambda x: np.sin(wg.vmap(lambda y: CHAINED @ y)(np.stack([x, x * x]))[0]) + x,
    }

    def chain(x):
        if step == "loop":
            return wg.fori_loop(0, last, lambda _, y: once["sines"](y), x)
        for _ in range(last):
            x = once[step](x)
        return x

    fun, make = (lambda x: np.sum(np.cos(chain(x))), sparse.hessian) if second else (chain, sparse.jacobian)
    with warnings.catch_warnings(action="ignore"):
        assert make(fun).plan(np.ones(20)).method == "colors"
    assert max(points) <= 2000


def test_the_plan_that_takes_less_is_chosen(monkeypatch):
    def step(u):
        for _ in range(4):
            change = np.concatenate([np.zeros(1), u[2:] - 2 * u[1:-1] + u[:-2], np.zeros(1)])
            u = u + 0.1 * (change + u * (1 - u))
        return u

    plan = sparse.jacobian(step).plan(np.ones(2000))
    assert (plan.method, plan.coloring.count) == ("colors", 9)  # of nine diagonals, in many pieces by maps
    assert sparse.jacobian(step, plan="maps").plan(np.ones(2000)).maps > 9
    for fun in (differences, arrow):
        assert sparse.jacobian(fun).plan(np.ones(2000)).method == "maps"
    assert sparse.hessian(rosenbrock).plan(np.ones(2000)).method == "maps"
    monkeypatch.delattr(plan_choice, "plan_by_maps")  # which is not asked where its equations alone take longer

    def number_by_number(x):
        return sum([(x[0] * np.exp(x[1] * k) - np.sin(k)) ** 2 for k in range(20)])

    found = sparse.hessian(number_by_number)(POINT[:2])
    np.testing.assert_allclose(found.toarray(), wg.hessian(number_by_number)(POINT[:2]))


def test_hessians_are_the_dense_ones():
    def energy(p, scale):
        return scale * np.sum(p["a"] ** 3) + np.sum(p["a"][:, 0]) * p["b"][0] + p["b"][1] ** 4

    dense = wg.hessian(energy)(TREE, 2.0)
    for plan in ("auto", "maps", "colors"):
        found = sparse.hessian(energy, plan=plan)(TREE, 2.0)
        for one in "ab":
            for other in "ab":
                expected = matrix_of(dense[one][other], TREE[one], TREE[other])
                np.testing.assert_allclose(found[one][other].toarray(), expected)
    flat = sparse.hessian(energy, format="flat")(TREE, 2.0)
    lower = sparse.hessian(energy, format="flat", lower=True)(TREE, 2.0)
    np.testing.assert_allclose(np.tril(flat.toarray()), lower.toarray())
    assert lower.nnz == (flat.nnz + 8) // 2 - (8 - np.count_nonzero(flat.diagonal())) // 2
    by_two = sparse.hessian(lambda x, y: np.sum(x * y[::-1]), (0, 1))(POINT, POINT)
    np.testing.assert_allclose(by_two[0][1].toarray(), np.eye(5)[::-1])
    assert by_two[0][0].nnz == 0
    matrix = MATRICES["dia"]

    def quadratic(a):
        return np.sum((a @ POINT[:3]) ** 2)

    expected = wg.hessian(lambda data: quadratic(wg.tree.map(lambda _: data, matrix)))(matrix.data)
    second = sparse.hessian(lambda p: quadratic(p["a"]))
    lanes = wg.jit(wg.vmap(lambda t: second({"a": matrix * t})["a"]["a"]))(np.ones(2))
    for found in (second({"a": matrix})["a"]["a"], lanes[1]):
        np.testing.assert_allclose(found.toarray(), matrix_of(expected, matrix.data, matrix.data))


def test_guards_do_not_act_where_what_says_so_comes_by_other_maps(monkeypatch):
    """Natively, where they do not look at the product, whole elements were left out by maps, which follow none now."""
    monkeypatch.setattr(config, "NATIVE", True)

    def behind_mask(x):
        x[~(x > 0)]
        return np.interp(0.4, [0.0, 1.0, 2.0], np.cos(x)) + np.sum(np.sin(x) ** 2)

    point = np.array([0.5, -0.5, 0.5])
    with pytest.raises(UsageError, match="an operation that maps do not follow"):
        wg.jit(sparse.hessian(behind_mask, plan="maps"), native=True)(point)
    found = sparse.hessian(behind_mask)(point)
    np.testing.assert_allclose(found.toarray(), wg.hessian(behind_mask)(point), rtol=1e-13, atol=1e-15)


def test_values_auxiliary_results_and_names():
    def f(x, *, power, word="sum"):
        return differences(x) ** power, {"word": len(word), "sum": np.sum(x)}

    value, matrix, aux = sparse.value_and_jacobian(f, has_aux=True)(POINT, power=2, word="total")
    np.testing.assert_allclose(value, differences(POINT) ** 2)
    np.testing.assert_allclose(matrix.toarray(), wg.jacobian(lambda x: differences(x) ** 2)(POINT))
    assert aux["word"] == 5
    assert aux["sum"] == pytest.approx(POINT.sum())
    value, matrix = sparse.value_and_hessian(rosenbrock)(POINT)
    assert value == pytest.approx(rosenbrock(POINT))
    np.testing.assert_allclose(matrix.toarray(), wg.hessian(rosenbrock)(POINT))


def test_the_hessian_of_a_lagrangian_has_one_pattern_for_all_multipliers():
    def constraints(x):
        return {"products": x[1:] * x[:-1], "last": x[-1] ** 3}

    multipliers = {"products": np.array([1.0, 0.0, -2.0, 3.0]), "last": 0.5}
    for weight, plan in ((1.0, "auto"), (0.0, "maps"), (-2.0, "colors"), (-2.0, "maps")):
        h = sparse.lagrangian_hessian(rosenbrock, constraints, lower=True, plan=plan)

        def lagrangian(x, weight=weight):
            found = constraints(x)
            return weight * rosenbrock(x) + np.sum(multipliers["products"] * found["products"]) + 0.5 * found["last"]

        matrix = h(POINT, multipliers, weight)
        assert matrix.nnz == 9
        np.testing.assert_allclose(matrix.toarray(), np.tril(wg.hessian(lagrangian)(POINT)), atol=1e-12)
    with pytest.raises(ShapeError, match=r"lagrangian_hessian: multipliers of shapes \(3,\); \(4,\) is needed"):
        sparse.lagrangian_hessian(rosenbrock, differences)(POINT, np.ones(3))


def test_the_same_memory_is_written_to_where_that_is_asked_for():
    for plan in ("maps", "colors"):
        derivative = sparse.jacobian(differences, reuse=True, plan=plan)
        first = derivative(POINT)
        address, before = first.data.ctypes.data, first.toarray()
        second = derivative(2 * POINT)
        assert second.data.ctypes.data == address
        assert not np.array_equal(first.toarray(), before)
        np.testing.assert_allclose(second.toarray(), wg.jacobian(differences)(2 * POINT))
    squares = sparse.value_and_jacobian(lambda x: x**2, reuse=True)
    value, matrix = squares(POINT)
    for _ in range(3):
        expected = matrix.data.copy()
        value, matrix = squares(matrix.data)  # of what is written to
        assert (value.tolist(), matrix.data.tolist()) == ((expected**2).tolist(), (2 * expected).tolist())
    other = sparse.jacobian(differences)
    assert other(POINT).data.ctypes.data != other(POINT).data.ctypes.data


def test_plans_say_what_is_done_and_can_be_kept(tmp_path):
    plan = sparse.jacobian(arrow, plan="colors").plan(np.ones(30))
    assert (plan.method, plan.coloring.count, plan.nnz, plan.shape) == ("colors", 3, 88, (30, 30))
    lines = str(plan).splitlines()
    assert lines[0] == "jacobian of 30 x 30: 88 elements (9.8 %), by 2 colours of columns and 1 of rows"
    assert lines[1] == "3 products in place of 30: 0.1 of the dense derivative"
    assert len(lines[2:]) == 12
    assert all(len(line) == 26 for line in lines[2:])
    assert plan._repr_svg_().count("<rect") == 89
    plan.save(tmp_path / "plan")
    derivative = sparse.jacobian(arrow, plan=sparse.load_plan(tmp_path / "plan"))
    x = np.linspace(1.0, 2.0, 30)
    np.testing.assert_allclose(derivative(x).toarray(), wg.jacobian(arrow)(x))
    for fun, point, text in (
        (lambda x: 2.0 * arrow(x), x, "a plan of another function, or of another version of this one"),
        (arrow, np.ones(29), r"a plan for arguments \(float64\[30\]\), not \(float64\[29\]\)"),
    ):
        with pytest.raises(UsageError, match=rf"sparse.jacobian: {text}.*; one of this function is needed\. Leave"):
            sparse.jacobian(fun, plan=sparse.load_plan(tmp_path / "plan"))(point)
    plan = sparse.jacobian(arrow).plan(np.ones(30))
    assert (plan.method, plan.coloring, str(plan).splitlines()[0]) == (
        "maps",
        None,
        f"jacobian of 30 x 30: 88 elements (9.8 %), by {plan.maps} maps",
    )
    plan.save(tmp_path / "maps")
    derivative = sparse.jacobian(arrow, plan=sparse.load_plan(tmp_path / "maps"))
    np.testing.assert_allclose(derivative(x).toarray(), wg.jacobian(arrow)(x))
    with pytest.raises(UsageError, match=r"sparse.hessian: a plan of a jacobian; one of this function is needed"):
        sparse.hessian(rosenbrock, plan=plan)(x)
    damaged = bytearray((tmp_path / "plan").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "plan").write_bytes(damaged)
    with pytest.raises(
        FileFormatError, match=r"sparse.load_plan: a file .*; one that Plan.save wrote is needed\. Make"
    ):
        sparse.load_plan(tmp_path / "plan")


def test_a_function_that_was_prepared_takes_arguments_of_that_kind():
    derivative = sparse.jacobian(differences).prepare(POINT)
    np.testing.assert_allclose(derivative(POINT).toarray(), wg.jacobian(differences)(POINT))
    text = (
        r"sparse.jacobian: arguments \(float64\[4\]\); \(float64\[5\]\) is needed, as it was prepared for\. Call prep"
    )
    with pytest.raises(ShapeError, match=text):
        derivative(POINT[:4])
    assert derivative.prepare(POINT[:4])(POINT[:4]).shape == (3, 4)


def test_a_pattern_of_the_user_is_checked():
    band = sp.diags_array([1.0, 1.0], offsets=[0, 1], shape=(4, 5))
    exact = sparse.jacobian(differences, pattern=band, check=True)(POINT)
    np.testing.assert_allclose(exact.toarray(), wg.jacobian(differences)(POINT))
    text = r"a pattern of 4 x 5 without the element at row 0, column 1, .*; every element .*\n.*x\[1:\] \* x\[:-1\]"
    with pytest.raises(ShapeError, match=text):
        sparse.jacobian(differences, pattern=np.eye(4, 5), check=True)(POINT)
    with pytest.raises(ShapeError, match=r"sparse.jacobian: a pattern of 5 x 5; 4 x 5 is needed, all results by all"):
        sparse.jacobian(differences, pattern=np.eye(5))(POINT)
    with pytest.raises(ShapeError, match="without the element at row 0, column 1, -120"):
        sparse.hessian(rosenbrock, pattern=np.eye(5), check=True)(POINT)


def test_many_colours_are_told_once_with_their_cause():
    def mixed(x):
        return np.sum(x) * x

    line = r"multiply makes it dense, File .*, in .*mixed: return np.sum\(x\) \* x"
    with pytest.warns(
        UserWarning, match=rf"30 colours for 30 x 30, .* the longest rows are 0 \(30 elements\).*; {line}"
    ):
        derivative = sparse.jacobian(mixed, plan="colors").prepare(np.ones(30))
    plans = [sparse.jacobian(fun).plan(np.ones(30)) for fun in (mixed, arrow)]
    assert plans[0].explain().splitlines()[1:] == [*plans[0].reasons]
    assert plans[1].explain() == f"by {plans[1].maps} maps\nnothing makes it dense"
    with warnings.catch_warnings(action="error"):
        np.testing.assert_allclose(derivative(np.ones(30)).toarray(), wg.jacobian(mixed)(np.ones(30)))
        sparse.jacobian(mixed, plan="dense")(np.ones(30))


def test_what_cannot_be_used_is_refused():
    with pytest.raises(
        ShapeError, match=r"sparse.hessian: a function that returned shape \(4,\); one number is needed"
    ):
        sparse.hessian(differences)(POINT)
    with pytest.raises(DtypeError, match=r"sparse.jacobian: .*int64"):
        sparse.jacobian(differences)(np.arange(5))
    with pytest.raises(
        DtypeError, match=r"sparse.jacobian: an argument of dtype complex128; a real one is needed\. Use wengert"
    ):
        sparse.jacobian(differences)(POINT + 0j)
    with pytest.raises(UsageError, match=r"sparse.jacobian: format='coo'; 'csr', 'csc' or 'flat' is needed"):
        sparse.jacobian(differences, format="coo")
    with pytest.raises(UsageError, match=r"sparse.jacobian: a pattern beside plan='maps'; one of them is needed"):
        sparse.jacobian(differences, plan="maps", pattern=np.ones((4, 5)))(POINT)
    with pytest.raises(UsageError, match=r"sparse.jacobian: a pattern beside a plan; one of them is needed\. Leave"):
        sparse.jacobian(differences, plan=sparse.jacobian(differences).plan(POINT), pattern=np.ones((4, 5)))(POINT)
    with pytest.raises(ShapeError, match=r"sparse.hessian: a pattern with \(0, 1\) and without \(1, 0\); a symmetric"):
        sparse.hessian(rosenbrock, pattern=np.eye(5) + np.eye(5, k=1))(POINT)
    with pytest.raises(ShapeError, match=r"hessian_pattern: a function that returned shape \(4,\)"):
        sparse.hessian_pattern(differences, POINT)
    with pytest.raises(
        UsageError, match=r"sparse.jacobian: plan='maps' of a function with an operation that maps do not"
    ):
        sparse.jacobian(with_loop, plan="maps")(POINT)
    with pytest.raises(UsageError, match=r"sparse.jacobian: plan='best'; a plan, 'auto', .* or 'dense' is needed"):
        sparse.jacobian(differences, plan="best")


def test_sparse_derivatives_in_every_mode():
    def dense(x):
        return wg.jacobian(differences)(x)

    batch = np.stack([POINT, 2 * POINT, POINT - 1.0])
    for plan in ("maps", "colors"):
        jacobian = sparse.jacobian(differences, plan=plan)

        def loss(x, jacobian=jacobian):
            return np.sum((jacobian(x) @ x) ** 2)

        def other(x):
            return np.sum((dense(x) @ x) ** 2)

        for transform in (wg.grad, wg.hessian, lambda f: wg.jit(wg.grad(f)), lambda f: wg.jacfwd(wg.grad(f))):
            np.testing.assert_allclose(transform(loss)(POINT), transform(other)(POINT), rtol=1e-12, atol=1e-12)
        traced = wg.jit(lambda x, jacobian=jacobian: jacobian(x))(POINT)
        assert traced.format == "csr"
        np.testing.assert_allclose(traced.toarray(), dense(POINT))
        lanes = wg.vmap(lambda x, jacobian=jacobian: jacobian(x) @ x)(batch)
        np.testing.assert_allclose(lanes, [dense(x) @ x for x in batch])

        def descend(x, derivative=jacobian):
            return wg.fori_loop(0, 3, lambda _, y: y - 0.01 * (derivative(y).T @ differences(y)), x)

        def descend_densely(x):
            return wg.fori_loop(0, 3, lambda _, y: y - 0.01 * (dense(y).T @ differences(y)), x)

        for transform in (lambda f: f, wg.jit, wg.jacobian):
            np.testing.assert_allclose(transform(descend)(POINT), transform(descend_densely)(POINT), rtol=1e-12)
        t = wg.tensor(POINT, requires_grad=True)
        loss(t).backward()
        np.testing.assert_allclose(t.grad.numpy(), wg.grad(other)(POINT))
        assert jacobian(wg.tensor(POINT)).format == "csr"


def test_what_a_function_captures_is_differentiated():
    def sum_of_slopes(a):
        return np.sum(sparse.jacobian(lambda x: a * x[1:] * x[:-1])(POINT).data)

    expected = 2 * POINT.sum() - POINT[0] - POINT[-1]
    assert wg.grad(sum_of_slopes)(2.0) == pytest.approx(expected)
    assert wg.jit(wg.grad(sum_of_slopes))(2.0) == pytest.approx(expected)
    assert wg.jvp(sum_of_slopes, (2.0,), (1.0,))[1] == pytest.approx(expected)


def test_drivers_of_many_unknowns_use_sparse_derivatives_where_few_elements_are_stored(monkeypatch):
    target = np.linspace(1.0, 2.0, 320)

    def residuals(p):
        return np.concatenate([p["a"] ** 2 - target, 0.1 * (p["a"][1:] - p["a"][:-1])])

    found = optim.least_squares(residuals, {"a": np.ones(320)})
    assert sp.issparse(found.jac)
    np.testing.assert_allclose(wg.grad(lambda p: np.sum(residuals(p) ** 2))(found.x)["a"], 0.0, atol=1e-6)
    dense = optim.least_squares(residuals, {"a": np.ones(320)}, tr_solver="exact")
    assert not sp.issparse(dense.jac)
    np.testing.assert_allclose(found.x["a"], dense.x["a"], rtol=1e-6)

    def energy(p):
        return np.sum((p["a"] - target) ** 4) + np.sum((p["a"] - target) ** 2)

    circles = optim.constraint(lambda p: p["a"][1:] ** 2 + p["a"][:-1] ** 2, -np.inf, 4.0)
    ordinary = NonlinearConstraint(lambda p: np.sum(p["a"] ** 2), 0.0, 400.0)  # whose Jacobian is dense
    options = {"maxiter": 8}
    start = {"a": np.full(320, 0.5)}
    found = optim.minimize(energy, start, method="trust-constr", constraints=[circles, ordinary], options=options)
    assert sp.issparse(found.jac[0])
    assert found.fun < energy(start)
    for module in (low_fill, derivatives):  # plans are kept for what holds the same
        monkeypatch.setattr(module, "make_program", None)
    again = optim.minimize(energy, start, method="trust-constr", constraints=[circles, ordinary], options=options)
    assert again.fun == found.fun
    target[0] = 1.5
    with pytest.raises(TypeError):
        optim.minimize(energy, start, method="trust-constr", constraints=[circles, ordinary], options=options)


def test_constraints_have_sparse_derivatives():
    constraint = optim.constraint(lambda x: x[1:] ** 2 + x[:-1] ** 2, -np.inf, 4.0)
    np.testing.assert_allclose(constraint.fun(POINT), POINT[1:] ** 2 + POINT[:-1] ** 2)
    slope = constraint.jac(POINT)
    np.testing.assert_allclose(slope.toarray(), wg.jacobian(lambda x: x[1:] ** 2 + x[:-1] ** 2)(POINT))
    np.testing.assert_allclose(constraint.fun(POINT), POINT[1:] ** 2 + POINT[:-1] ** 2)  # what came with the Jacobian
    assert constraint.hess(POINT, np.ones(4)).nnz == 5
    with pytest.raises(DtypeError, match=r"optim.constraint: .* function"):
        optim.constraint(3.0, 0.0, 1.0)


class Scaled:
    """Hold a factor as an attribute, and one as an array."""

    def __init__(self):
        self.factor, self.each = 2.0, np.ones(1000)

    def square(self, x):
        return self.factor * self.each * x**2


def test_what_functions_capture_is_read_anew():
    factor, traced = 2.0, 0

    def cube(x):
        nonlocal traced
        traced += 1
        return np.sum(factor * x**3)

    scaled, ones = Scaled(), np.ones(1000)
    first, second, of_method = sparse.jacobian(wg.grad(cube)), sparse.hessian(cube), sparse.jacobian(scaled.square)
    of_method.prepare(ones)
    for factor in (2.0, 5.0, 2.0):
        assert first(np.ones(2)).diagonal().tolist() == second(np.ones(2)).data.tolist() == [6 * factor] * 2
        scaled.factor = factor
        assert of_method(ones).data[3] == 2 * factor
        scaled.each[3] = factor  # in place
        assert of_method(ones).data[2:4].tolist() == [2 * factor, 2 * factor * factor]
        scaled.each[3] = 1.0
    count = traced
    first(np.ones(2)), second(np.ones(2))
    assert traced == count  # which the function changes itself
    with pytest.raises(ShapeError, match="as it was prepared for"):
        of_method(np.ones(3))


@pytest.mark.parametrize("reuse", [False, True])
def test_changes_of_a_result_are_none_of_later_ones(reuse):
    derivative = sparse.jacobian(lambda x: x[1:] * x[:-1], reuse=reuse)
    derivative(np.ones(3))
    with pytest.raises(ValueError, match="read-only"):
        derivative(np.zeros(3)).eliminate_zeros()  # moves indices, which all results share
    own = derivative(np.zeros(3)).copy()
    own.eliminate_zeros()
    assert own.nnz == 0
    assert derivative(np.array([1.0, 2.0, 3.0])).toarray().tolist() == [[2.0, 1.0, 0.0], [0.0, 3.0, 2.0]]


@pytest.mark.parametrize("plan", ["auto", "colors"])
def test_programs_are_of_one_order_in_memory(plan):
    def weighted(x):
        return np.arange(1.0, 7.0) * x.ravel("K") ** 2

    def total(x):
        return np.sum(weighted(x) * x.ravel("K")[::-1])

    jacobian, hessian = sparse.jacobian(weighted, plan=plan), sparse.hessian(total, plan=plan)
    rows = np.arange(6.0).reshape(2, 3)
    jacobian.prepare(rows)
    for x in (rows, np.asfortranarray(rows), rows.reshape(3, 2)[::-1].T):
        np.testing.assert_allclose(jacobian(x).toarray(), wg.jacobian(weighted)(x).reshape(6, 6))
        np.testing.assert_allclose(hessian(x).toarray(), wg.hessian(total)(x).reshape(6, 6))


EDGES = np.array([[0, 3, 1], [2, 1, 4], [4, 4, 0], [0, 2, 2]])


def springs(x, scale=2.0):
    ends = x.reshape(5, 2)[EDGES]
    lengths = np.sqrt(np.sum((ends[:, 1] - ends[:, 0]) ** 2, axis=1) + 0.5)
    return scale * np.sum(lengths**3 * np.cos(ends[:, 2, 0]))


def observations(p, k):
    near, far = p["a"][EDGES[:, 0] % 3], np.concatenate([p["b"], p["b"] ** 2])[EDGES[:, 1] % 4]
    known = np.where(k > 1, p["a"][:, 1][k % 3], 0.0)
    return {"seen": near / (1.0 + far * far)[:, None], "rest": known * far, "same": p["b"]}


def grown(x):
    def body(_, y):
        return y * np.roll(y, 1, axis=1) + x[EDGES % 4]

    return wg.fori_loop(0, 3, body, x[EDGES % 5])[:, 1:]


@wg.custom_rule
def bent(x):
    return np.abs(x)


bent.defjvp(lambda primals, tangents: (np.abs(primals[0]), 3.0 * tangents[0]))

BY_ELEMENTS = [
    (observations, (TREE, np.arange(4)), 0),
    (grown, (POINT,), 0),
    (lambda x, scale: bent(x[EDGES] * scale) + wg.stop_gradient(x)[EDGES], (POINT, 0.5), (1, 0)),
    (lambda x: np.where(EDGES > 2, x[EDGES], x[EDGES] ** 2), (POINT.astype(np.float32),), 0),
    (lambda x: (x[EDGES], np.sum(x[EDGES] ** 2)), (POINT,), 0),
    (lambda x: np.sin(-x[EDGES]) * np.cos(np.where(EDGES > 2, x[EDGES], 0.0)), (POINT,), 0),
]


@together("case", BY_ELEMENTS)
def test_jacobians_by_elements_are_the_dense_ones(case):
    compare_by_elements(*case)


def compare_by_elements(fun, args, argnums):
    made = sparse.value_and_jacobian(fun, argnums, plan="elements", format="flat")
    plan = made.plan(*args)
    assert plan.method == "elements"
    dense = sparse.jacobian(fun, argnums, plan="dense", format="flat")(*args)
    chosen = [args[i] for i in np.atleast_1d(argnums)]
    leaves = flatten(chosen)[0]
    blocks = flatten(wg.jacobian(fun, argnums)(*args))[0]
    expected = [np.reshape(x, (-1, np.size(leaf))) for x, leaf in zip(blocks, leaves * 9, strict=False)]
    rows = [np.hstack(expected[i : i + len(leaves)]) for i in range(0, len(expected), len(leaves))]
    value, found = made(*args)
    bound = 1e-6 if found.dtype == np.float32 else 1e-12
    for matrix in (found.toarray(), dense.toarray()):
        np.testing.assert_allclose(matrix, np.vstack(rows), rtol=bound, atol=bound)
    for leaf, other in zip(flatten(value)[0], flatten(fun(*args))[0], strict=True):
        np.testing.assert_allclose(leaf, other, rtol=max(bound, 1e-7), atol=bound)
    return plan


LANES = np.random.default_rng(1).integers(0, 9, (20, 3))
LANES[4, 1] = LANES[4, 0]  # one with the same node twice
NODES = np.linspace(-1.0, 1.5, 27)
FRAMES = np.random.default_rng(2).standard_normal((20, 3, 3))


def stretched(x, scale=1.0):
    ends = x.reshape(9, 3)[LANES]
    frames = np.einsum("eka,ekb->eab", ends - np.mean(ends, axis=1, keepdims=True), FRAMES.astype(x.dtype))
    return frames @ frames.swapaxes(1, 2) * scale


def stable_lengths(x, y):
    first, second = x.reshape(9, 3)[LANES[:, 0]], y[LANES[:, 1:]]
    square = np.sum(first * first, axis=1)
    tiny = square < 0.5
    lengths = np.where(tiny, 0.0, np.sqrt(np.where(tiny, 1.0, square)))
    return np.concatenate([(2.0 * second[1:] - second[:-1]).reshape(-1), lengths, np.diff(lengths), 1.0 - y * y])


def nodal_forces(x):
    forces = np.log(1.0 + stretched(x) ** 2)
    total = wg.numpy.zeros((9, 3))
    np.add.at(total, LANES, forces)
    return {"forces": total, "work": np.sum(forces, axis=(1, 2))[::-1]}


BY_LANES = [
    (stretched, (NODES,), 0),
    (stretched, (NODES.astype(np.float32), np.float32(0.5)), 0),
    (stable_lengths, (NODES, NODES[:20] + 0.3), (1, 0)),
    (lambda x, y: stable_lengths(x[::-1], y)[20:60], (NODES, NODES[:20] + 0.3), 0),
    (nodal_forces, (NODES,), 0),
    (lambda x: np.sum((x[LANES] - 0.3) ** 2, axis=1, initial=2.0) ** 2, (NODES,), 0),
]


@together("case", BY_LANES)
def test_jacobians_by_numbers_of_lanes_are_the_dense_ones(case):
    assert compare_by_elements(*case).coloring is None


def bent_energy(x, weights):
    first, second, third = np.moveaxis(x.reshape(9, 3)[LANES], 1, 0)
    volumes = np.sum(first * second * third, axis=1)
    return np.sum(weights * np.sin(volumes)) + 3.0 * np.sum(np.exp(0.1 * x[LANES[:16, 0]])) + np.sum(x * x)


def test_hessians_by_numbers_of_lanes_are_differentiated_batched_and_kept_in_files(tmp_path):
    weights = np.linspace(0.5, 2.0, 20)
    made = sparse.hessian(bent_energy, plan="elements")
    plan = made.plan(NODES, weights)
    assert (plan.method, plan.coloring) == ("elements", None)
    plan.save(tmp_path / "plan")
    again = sparse.hessian(bent_energy, plan=sparse.load_plan(tmp_path / "plan"))
    assert str(again.plan(NODES, weights)) == str(plan)
    full = wg.hessian(bent_energy)(NODES, weights)
    assert plan.pattern.toarray()[full != 0].all()
    for one in (made, again, sparse.hessian(bent_energy, plan="elements", lower=True)):
        expected = np.tril(full) if one.request.lower else full
        np.testing.assert_allclose(one(NODES, weights).toarray(), expected, rtol=1e-12, atol=1e-12)
    slopes = wg.jacobian(wg.jit(lambda x, w: made(x, w) @ np.ones(27)), (0, 1))(NODES, weights)
    dense = wg.jacobian(lambda x, w: wg.hessian(bent_energy)(x, w) @ np.ones(27), (0, 1))(NODES, weights)
    for found, expected in zip(slopes, dense, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)
    batch = wg.vmap(lambda w: made(NODES, w) @ np.ones(27))(np.stack([weights, weights + 1.0]))
    np.testing.assert_allclose(batch[1], wg.hessian(bent_energy)(NODES, weights + 1.0).sum(axis=1), rtol=1e-12)


def test_second_derivatives_of_many_lanes_are_added_up_tile_by_tile(monkeypatch):
    monkeypatch.setattr("wengert.sparse.plans.lane_tiles.TILE_BYTES", 1)
    generator = np.random.default_rng(3)
    ends, stiffness = generator.integers(0, 40, (300, 2)), generator.uniform(1.0, 2.0, 300)
    ends[7, 1] = ends[7, 0]

    def energy(x, weights):
        points, frames = x.reshape(40, 2)[ends], np.sin(weights)
        first, second = points[:, 0], points[:, 1]
        bent = np.sum(first * second[:, ::-1], axis=1) * stiffness + 0.5 * np.sum(first, axis=1) ** 2
        return np.sum(frames * np.exp(0.1 * bent)) + np.mean(second[:, 0] ** 2)

    x, weights = generator.standard_normal(80), generator.uniform(0.5, 1.0, 300)
    made, dense = sparse.hessian(energy), wg.hessian(energy)
    tiles = made.program(x, weights)
    assert (tiles.plan.method, tiles.plan.maps) == ("elements", 10)
    np.testing.assert_allclose(made(x, weights).toarray(), dense(x, weights), rtol=1e-11, atol=1e-13)
    slope = wg.grad(wg.jit(lambda x, w: np.sum(np.sin(made(x, w) @ x))), 1)(x, weights)
    expected = wg.grad(lambda x, w: np.sum(np.sin(dense(x, w) @ x)), 1)(x, weights)
    np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-12)
    batch = wg.vmap(lambda w: made(x, w) @ x)(np.stack([weights, weights + 1.0]))
    np.testing.assert_allclose(batch[1], dense(x, weights + 1.0) @ x, rtol=1e-10, atol=1e-12)


def test_hessians_by_elements_are_differentiated_batched_and_kept_in_files(tmp_path):
    x = np.linspace(-1.0, 1.5, 10)
    made = sparse.hessian(springs, plan="elements")
    dense = wg.hessian(springs)
    plan = made.plan(x)
    assert (plan.method, plan.coloring.sparsity.shape) == ("elements", (20, 20))
    assert "colours of columns behind gathers" in str(plan)
    plan.save(tmp_path / "plan")
    again = sparse.hessian(springs, plan=sparse.load_plan(tmp_path / "plan"))
    assert str(again.plan(x)) == str(plan)
    for one in (made, again, sparse.hessian(springs, plan="elements", lower=True)):
        full = dense(x)
        expected = np.tril(full) if one.request.lower else full
        np.testing.assert_allclose(one(x).toarray(), expected, rtol=1e-12, atol=1e-12)
    lanes = np.stack([x, x + 0.2])
    batch = wg.vmap(lambda y: made(y) @ np.ones(10))(lanes)
    np.testing.assert_allclose(batch, np.stack([dense(y).sum(axis=1) for y in lanes]), rtol=1e-12, atol=1e-12)
    slope = wg.grad(wg.jit(lambda y: np.sum(np.sin(made(y) @ y))))(x)
    np.testing.assert_allclose(slope, wg.grad(lambda y: np.sum(np.sin(dense(y) @ y)))(x), rtol=1e-10, atol=1e-12)


def test_plans_by_elements_are_taken_where_arguments_are_shared():
    generator = np.random.default_rng(0)
    tets = generator.integers(0, 900, (3000, 4))

    def energy(x):
        ends = x.reshape(-1, 3)[tets]
        edges = ends[:, 1:] - ends[:, :1]
        return np.sum(np.log(1.0 + np.sum(edges * edges, axis=(1, 2)) ** 2) * np.sum(edges[:, 0], axis=1))

    x = generator.standard_normal(2700)
    made = sparse.hessian(energy)
    plan = made.plan(x)
    assert (plan.method, plan.coloring, plan.maps) == ("elements", None, 78)
    assert "by elements: 78 numbers of each" in str(plan)
    direction = generator.standard_normal(2700)
    product = wg.jvp(wg.grad(energy), (x,), (direction,))[1]
    np.testing.assert_allclose(made(x) @ direction, product, rtol=1e-9, atol=1e-9 * np.abs(product).max())
    with pytest.raises(UsageError, match="gathers nothing"):
        sparse.jacobian(lambda x: x**2, plan="elements")(np.ones(3))
    with pytest.raises(UsageError, match="beside plan='elements'"):
        sparse.jacobian(lambda x: x[1:], pattern=np.eye(2, 3), plan="elements")(np.ones(3))


def test_memory_of_matrices_is_shared_within_one_thread():
    import threading

    made = sparse.jacobian(differences, reuse=True)
    first = made(POINT)
    others = []
    thread = threading.Thread(target=lambda: others.extend([made(2.0 * POINT), made(POINT)]))
    thread.start()
    thread.join()
    assert np.shares_memory(first.data, made(POINT).data)
    assert np.shares_memory(others[0].data, others[1].data)
    assert not np.shares_memory(first.data, others[0].data)


def test_derivatives_of_power_flow_are_those_written_by_hand():
    buses, generator = 12, np.random.default_rng(3)
    lines = np.triu(generator.uniform(size=(buses, buses)) < 0.2, 1) + np.eye(buses, k=1)
    admittance = sp.csr_array((lines + lines.T + np.eye(buses)) * generator.normal(size=(buses, buses)) * (1 - 8j))
    here, there = np.repeat(np.arange(buses), np.diff(admittance.indptr)), admittance.indices
    g, b, weights = admittance.data.real.copy(), admittance.data.imag.copy(), generator.normal(size=2 * buses)

    def powers(state):
        angles, sizes = state[:buses], state[buses:]
        apart, product = angles[here] - angles[there], sizes[here] * sizes[there]
        active = np.bincount(here, product * (g * np.cos(apart) + b * np.sin(apart)), buses)
        return np.concatenate([active, np.bincount(here, product * (g * np.sin(apart) - b * np.cos(apart)), buses)])

    def by_matrix(state):
        voltages = state[buses:] * np.exp(1j * state[:buses])
        found = voltages * np.conj(admittance @ voltages)
        return np.concatenate([found.real, found.imag])

    state = np.concatenate([generator.normal(size=buses) * 0.1, generator.uniform(0.9, 1.1, size=buses)])
    voltages, y = state[buses:] * np.exp(1j * state[:buses]), admittance.toarray()
    currents, phases = y @ voltages, np.exp(1j * state[:buses])
    by_angle = 1j * np.diag(voltages) @ np.conj(np.diag(currents) - y @ np.diag(voltages))
    by_size = np.diag(voltages) @ np.conj(y @ np.diag(phases)) + np.diag(np.conj(currents) * phases)
    first = np.block([[by_angle.real, by_size.real], [by_angle.imag, by_size.imag]])
    second = wg.hessian(lambda state: weights @ powers(state))(state)
    for function in (powers, by_matrix):
        np.testing.assert_allclose(sparse.jacobian(function)(state).toarray(), first, atol=1e-12 * abs(first).max())
        hessian = sparse.hessian(lambda state, f=function: np.sum(weights * f(state)))
        np.testing.assert_allclose(hessian(state).toarray(), second, atol=1e-12 * abs(second).max())
    derivative = sparse.jacobian(powers)
    derivative(state)
    g *= 2.0
    b *= 2.0
    np.testing.assert_allclose(derivative(state).toarray(), 2 * first, atol=1e-12 * abs(first).max())


def test_pieces_of_a_norm_meet_those_that_guard_them(monkeypatch):
    """What is broadcast along an axis of length one has the maps of what it guards."""
    monkeypatch.setattr("wengert.support.config.NATIVE", True)
    y = np.array([[-1.0, 0.5], [2.0, -0.7]])

    def f(y):
        return np.linalg.norm(y[:, 1:])

    found = wg.jit(sparse.hessian(f, plan="maps"), native=True)(y).toarray()
    np.testing.assert_allclose(found, wg.hessian(f)(y).reshape(4, 4), atol=1e-12)
