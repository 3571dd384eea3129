"""Sparse matrices as values: arguments of whatever differentiates, batches and traces, with SciPy's operations."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import wengert as wg
from tests.cases import together
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.graph import load, save, trace
from wengert.primitives.sparse.storage_pattern import pattern_of
from wengert.scipy import sparse

RNG = np.random.default_rng(1)
X, V, U, FULL = RNG.normal(size=(5, 2)), RNG.normal(size=5), RNG.normal(size=4), RNG.normal(size=(4, 5))
FORMATS = ("csr", "csc", "coo", "dia", "bsr")


def random_matrix(rows: int, columns: int, format: str, seed: int = 0) -> Any:
    """Return a random sparse array, half of whose elements are stored."""
    rng = np.random.default_rng(seed)
    full = rng.normal(size=(rows, columns)) * (rng.uniform(size=(rows, columns)) < 0.5)
    return getattr(scipy.sparse, f"{format}_array")(full)


OTHER, LEFT = random_matrix(4, 5, "csc", 3), random_matrix(3, 4, "csr", 4)
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "transpose": lambda a: a.T,
    "vector": lambda a: a @ V,
    "matrix": lambda a: a @ X,
    "from the left": lambda a: U @ a,
    "dot": lambda a: a.dot(V),
    "multiples": lambda a: (2.0 * a - a / 3.0) * 1.5,
    "negative": lambda a: -a,
    "times array": lambda a: FULL * a,
    "times row": lambda a: a.multiply(V),
    "times column": lambda a: a.multiply(U[:, None]),
    "divided": lambda a: a / FULL,
    "plus array": lambda a: a + FULL,
    "array minus": lambda a: FULL - a,
    "twice": lambda a: a + a,
    "plus other": lambda a: a + OTHER,
    "other minus": lambda a: OTHER - a,
    "elements": lambda a: a.multiply(OTHER) * a,
    "product": lambda a: LEFT @ a,
    "square": lambda a: a @ a.T,
    "diagonal scaling": lambda a: scipy.sparse.diags_array(U) @ a @ scipy.sparse.diags_array(V),
    "sum": lambda a: a.sum(),
    "columns": lambda a: a.sum(axis=0),
    "rows": lambda a: a.mean(axis=1),
    "diagonals": lambda a: np.concatenate([a.diagonal(), a.diagonal(1), a.diagonal(-2)]),
    "trace": lambda a: a.trace(),
    "full": lambda a: a.toarray(),
    "formats": lambda a: a.tocsr().tocoo().todia().tobsr().tocsc(),
    "slice": lambda a: a.tocsr()[1:3],
    "rows by list": lambda a: a.tocsr()[[2, 0, 2]],
    "columns by step": lambda a: a.tocsr()[:, ::-2],
    "one row": lambda a: a.tocsr()[1] @ V,
    "elements by place": lambda a: a.tocsr()[1, 2] + a.tocsr()[0, 0],
    "powers": lambda a: abs(a) ** 3 + a.power(2),
    "function": lambda a: a.sin() + a.expm1(),
    "reshape": lambda a: a.reshape((10, 2)),
}


def in_full(result: Any) -> Any:
    return result.toarray() if hasattr(result, "toarray") else result


def number(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda a: np.sum(np.cos(in_full(function(a))))


@together("name", OPERATIONS)
def test_operations_of_every_format(name: str) -> None:
    operation, loss = OPERATIONS[name], number(OPERATIONS[name])
    for format in FORMATS:
        matrix = random_matrix(4, 5, format)
        found = operation(sparse.coo_array(matrix).asformat(format))
        np.testing.assert_allclose(np.asarray(in_full(found)), in_full(operation(matrix)), atol=1e-13)
        gradient = wg.grad(loss)(matrix)
        assert type(gradient) is type(matrix)
        assert pattern_of(gradient) is pattern_of(matrix)
        direction = matrix.copy()
        direction.data = RNG.normal(size=matrix.data.shape)
        near = [loss(matrix + h * direction) for h in (1e-6, -1e-6)]
        slope = np.sum(gradient.data * direction.data)
        if format != "dia":  # of which elements outside of the matrix have no meaning
            np.testing.assert_allclose(slope, (near[0] - near[1]) / 2e-6, atol=1e-6)
        np.testing.assert_allclose(wg.jvp(loss, (matrix,), (direction,))[1], slope, rtol=1e-9, atol=1e-12)


@together("format", FORMATS)
def test_every_mode(format: str) -> None:
    matrix = random_matrix(4, 5, format)
    stored = np.argwhere(scipy.sparse.coo_array(matrix).toarray())

    def energy(a: Any, x: Any) -> Any:
        return np.sum((a @ x) ** 3)

    want = 3 * np.outer((matrix @ V) ** 2, V)
    for run in (wg.grad(energy), wg.jit(wg.grad(energy)), wg.grad(wg.jit(energy))):
        np.testing.assert_allclose(run(matrix, V).toarray()[*stored.T], want[*stored.T], rtol=1e-12)
    (second,) = wg.hvp(lambda a: energy(a, V), (matrix,), (matrix,))
    np.testing.assert_allclose(second.data, 2 * wg.grad(energy)(matrix, V).data, rtol=1e-12)
    both = wg.grad(energy, (0, 1))(matrix, V)
    np.testing.assert_allclose(both[1], 3 * matrix.T @ (matrix @ V) ** 2, rtol=1e-12)
    jacobian = wg.jacrev(lambda a: a @ V)(matrix)
    np.testing.assert_allclose(wg.jacfwd(lambda a: a @ V)(matrix).data, jacobian.data, rtol=1e-12)
    _, push = wg.linearize(lambda a: a @ V, matrix)
    np.testing.assert_allclose(push(matrix), matrix @ V)
    held = sparse.coo_array(matrix).asformat(format)
    stack = np.stack([matrix.data, 2.0 * matrix.data, matrix.data**2])
    for axes, x in (((0, None), V), ((0, 0), np.stack([V, -V, V**2])), ((0, None), X)):
        lanes = wg.vmap(lambda d, x: held.with_data(d) @ x, in_axes=axes)(stack, x)
        alone = [np.asarray(held.with_data(d) @ (x[i] if axes[1] == 0 else x)) for i, d in enumerate(stack)]
        np.testing.assert_allclose(lanes, alone, rtol=1e-12)
    gradients = wg.vmap(wg.grad(lambda d, x: energy(held.with_data(d), x)), in_axes=(0, None))(stack, V)
    np.testing.assert_allclose(gradients[1], 4 * wg.grad(energy)(matrix, V).data, rtol=1e-12)
    scaled = wg.vmap(lambda t: wg.grad(energy)(matrix * t, V).data)(np.array([1.0, 2.0]))
    np.testing.assert_allclose(scaled[1], 4 * scaled[0], rtol=1e-12)


def test_loops_and_tape() -> None:
    matrix = scipy.sparse.csr_array(np.diag([0.5, 0.25]) + np.array([[0.0, 0.1], [0.0, 0.0]]))

    def run(a: Any) -> Any:
        return np.sum(wg.fori_loop(0, 3, lambda _i, x: a @ x + 1.0, np.ones(2)))

    def plain(a: Any) -> Any:
        x = np.ones(2)
        for _ in range(3):
            x = a @ x + 1.0
        return np.sum(x)

    want = wg.grad(plain)(matrix).data
    for f in (wg.grad(run), wg.jit(wg.grad(run)), wg.jit(wg.grad(plain))):
        np.testing.assert_allclose(f(matrix).data, want, rtol=1e-12)
    grown = wg.jit(lambda a: wg.fori_loop(0, 3, lambda _i, b: b * 2.0, a))(matrix)
    np.testing.assert_allclose(grown.toarray(), 8.0 * matrix.toarray())
    leaf = wg.tensor(matrix.data, requires_grad=True)
    a = sparse.csr_array((leaf, matrix.indices, matrix.indptr), shape=(2, 2))
    plain(a).backward()
    np.testing.assert_allclose(leaf.grad, want, rtol=1e-12)


@together("format", FORMATS)
def test_values_leave_as_a_matrix_of_scipys_and_not_as_an_array(format: str) -> None:
    matrix = random_matrix(4, 5, format)
    a = sparse.csr_array(matrix).asformat(format)
    found = a.detach().numpy()
    assert type(found) is type(matrix)
    np.testing.assert_array_equal(found.toarray(), matrix.toarray())
    for convert in (np.asarray, np.trace, lambda a: np.dot(a, V), lambda a: np.einsum("ij,j", a, V)):
        with pytest.raises(UsageError, match=r"^asarray: a sparse array of shape \(4, 5\) .* \.toarray\(\), or "):
            convert(a)
    with pytest.raises(GraphError, match=r"numpy: a Tensor of shape .* that is being differentiated"):
        wg.grad(lambda t: np.sum((a * t).numpy().data))(2.0)


def test_jitted_calls_know_patterns_by_identity_and_see_changes() -> None:
    product = wg.jit(lambda a, x: a @ x)
    matrix = scipy.sparse.csr_array(np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]]))
    x = np.array([1.0, 10.0, 100.0])
    for other in (matrix, matrix.copy(), 3.0 * matrix):
        np.testing.assert_allclose(product(other, x), other @ x)
    assert product.trace_count == 1
    matrix.indices[0] = 2  # the same array, with other places
    np.testing.assert_allclose(product(matrix, x), [100.0, 2.0])
    assert product.trace_count == 2
    wide = matrix.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_allclose(product(wide, x), [100.0, 2.0])
    gradient = wg.grad(lambda a: np.sum(a @ x))(wide)
    assert gradient.indices.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):  # the places of what is given are those of the argument
        gradient.indices[0] = 1


@together("kind", [scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array])
def test_degenerate_matrices(kind: Any) -> None:
    for shape in ((0, 3), (3, 0), (1, 1), (4, 3)):
        matrix = kind(shape)
        gradient = wg.jit(wg.grad(lambda a: np.sum((a @ np.ones(a.shape[1])) ** 2 + a.sum())))(matrix)
        assert (gradient.shape, gradient.nnz) == (shape, 0)
    rows, columns = np.array([2, 0, 2, 2]), np.array([1, 1, 1, 0])  # row 1 is empty, (2, 1) is there twice
    matrix = scipy.sparse.coo_array((np.array([1.0, 2.0, 0.0, 4.0]), (rows, columns)), shape=(3, 2))
    x = np.array([3.0, 5.0])
    ways: list[Callable[[Any], Any]] = [lambda a: a @ x, lambda a: a.tocsr() @ x, lambda a: a.toarray() @ x]
    ways += [lambda a: (a + a.T.T) @ x / 2, lambda a: a.tocsc()[[0, 1, 2]] @ x]
    for way in ways:
        np.testing.assert_allclose(wg.grad(lambda a, f=way: f(a)[2] + 2 * f(a)[0])(matrix).data, [5.0, 10.0, 5.0, 3.0])
    unsorted = scipy.sparse.csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 2, 3])), (2, 3))
    np.testing.assert_allclose(wg.grad(lambda a: (a.tocsc() @ V[:3])[0])(unsorted).data, [V[2], V[0], 0.0])
    twice = wg.grad(lambda a, b: np.sum(a @ (b.T @ V[:2])), (0, 1))(unsorted, unsorted)
    np.testing.assert_allclose(twice[0].data, wg.grad(lambda a: np.sum(a @ (unsorted.T @ V[:2])))(unsorted).data)
    roomy = scipy.sparse.csr_array(np.eye(2))
    roomy.data, roomy.indices = np.array([1.0, 2.0, 9.0]), np.array([1, 0, 0], np.int32)
    np.testing.assert_allclose(wg.grad(lambda a: np.sum(a @ x))(roomy).data, [5.0, 3.0, 0.0])


def test_threads_enter_patterns_of_their_own() -> None:
    def enter(rows: int) -> list[Any]:
        index = np.array([0])
        return [pattern_of(scipy.sparse.csr_array((np.ones(1), (index, index)), shape=(rows, i))) for i in range(1, 60)]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(enter, range(1, 5)))
    finally:
        sys.setswitchinterval(interval)
    assert [[pattern.shape for pattern in own] for own in found] == [
        [(rows, i) for i in range(1, 60)] for rows in range(1, 5)
    ]


def test_dtypes() -> None:
    for dtype in (np.float32, np.complex64, np.complex128):
        matrix = random_matrix(4, 5, "csr").astype(dtype)
        gradient = wg.grad(lambda a: np.sum(np.abs(a @ V.astype(a.dtype)) ** 2))(matrix)
        assert gradient.dtype == dtype
    real = random_matrix(4, 5, "csr")
    assert wg.grad(lambda a: np.sum(np.abs(a @ (V + 1j)) ** 2))(real).dtype == np.float64
    counts = scipy.sparse.csr_array(np.array([[True, False, True]]))
    assert wg.jit(lambda a: a.sum(axis=1))(counts).tolist() == [2]
    text = r"^grad: dtype int64 at a\.data; a float or complex dtype is needed to differentiate\."
    with pytest.raises(DtypeError, match=text):
        wg.grad(lambda a: a.sum())(scipy.sparse.csr_array(np.eye(2, dtype=np.int64)))


def test_matrices_multiply_by_star() -> None:
    matrix = scipy.sparse.csr_matrix(FULL * (FULL > 0))
    found = wg.jit(lambda a: (a * V, a.T * a, a.sum(axis=1), (a * a.T) ** 2))(matrix)
    for got, want in zip(
        found, (matrix * V, matrix.T * matrix, matrix.sum(axis=1), (matrix * matrix.T) ** 2), strict=True
    ):
        np.testing.assert_allclose(in_full(got), in_full(want))
    assert type(found[1]) is scipy.sparse.csr_matrix


def test_one_axis() -> None:
    vector = scipy.sparse.coo_array(np.array([0.0, 2.0, 3.0]))
    gradient = wg.grad(lambda a: a @ np.array([1.0, 10.0, 100.0]) + a.sum())(vector)
    np.testing.assert_allclose(gradient.data, [11.0, 101.0])


def test_as_containers() -> None:
    matrix = random_matrix(4, 5, "csr")
    vector, back = wg.tree.ravel({"a": matrix, "b": 1.0})
    assert vector.shape == (matrix.nnz + 1,)
    np.testing.assert_allclose(back(2.0 * vector)["a"].toarray(), 2.0 * matrix.toarray())
    assert wg.tree.paths(matrix, "a") == ["a.data"]
    assert wg.tree.structure((matrix, 1.0)) == wg.tree.structure((3.0 * matrix.copy(), 2.0))
    pattern = pattern_of(matrix)
    assert pickle.loads(pickle.dumps(pattern)) is pattern
    held = sparse.csr_array(matrix)
    for other in (pickle.loads(pickle.dumps(held)), copy.copy(held), copy.deepcopy(held)):
        np.testing.assert_array_equal(other.toarray(), matrix.toarray())
    step = wg.tree.map(lambda p, g: p - 0.1 * g, matrix, wg.grad(lambda a: np.sum(a @ V))(matrix))
    assert type(step) is scipy.sparse.csr_array
    rng = [lambda a: a @ V, lambda a: a * 2.0]
    for function in rng:
        same = wg.checkpoint(function)(matrix)
        np.testing.assert_allclose(in_full(same), in_full(function(matrix)))


def test_graphs_in_files(tmp_path: Any) -> None:
    matrix = random_matrix(4, 5, "bsr")
    graph = trace(lambda a: a @ V)(matrix)
    save(graph, tmp_path / "product.graph")
    found = load(tmp_path / "product.graph")
    assert found == graph
    np.testing.assert_allclose(found(matrix.data)[0], matrix @ V)


def test_construction() -> None:
    def build(d: Any, e: Any) -> Any:
        a = sparse.diags_array([d, e], offsets=[0, -1], format="csr")
        whole = sparse.block_array([[a, None], [sparse.eye_array(2, 3), sparse.kron(a[:1, :1], sparse.eye_array(2))]])
        return sparse.hstack([whole, sparse.vstack([sparse.tril(whole), sparse.triu(whole)])[::2][:5]]), whole

    d, e = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0])
    found, whole = build(d, e)
    want = np.zeros((5, 5))
    want[:3, :3] = np.diag(d) + np.diag(e, -1)
    want[3:] = np.block([np.eye(2, 3), np.eye(2)])
    np.testing.assert_allclose(whole.toarray(), want)
    parts = np.vstack([np.tril(want), np.triu(want)])[::2]
    np.testing.assert_allclose(found.toarray(), np.hstack([want, parts]))
    gradient = wg.jit(wg.grad(lambda d, e: np.sum(build(d, e)[0].toarray() ** 2), (0, 1)))(d, e)
    count = [np.sum(np.hstack([want, parts]) == x) for x in (*d, *e)]
    count[0] = 3  # of the ones others are constant, or twice there by the product
    np.testing.assert_allclose(gradient[1], 2 * e * count[3:])
    np.testing.assert_allclose(gradient[0][1:], 2 * d[1:] * count[1:3])
    assert sparse.issparse(found)
    assert sparse.block_diag([found, found]).shape == (10, 20)


def test_refusals() -> None:
    matrix = random_matrix(4, 5, "csr")
    for operation, kind, text in [
        (lambda a: a @ np.ones(4), ShapeError, "matmul: a sparse matrix of shape (4, 5) and a Tensor of shape (4,); "),
        (lambda a: a + 1.0, UsageError, "add: a sparse array and the number 1.0; an array is needed, or 0: "),
        (
            lambda a: a / a,
            UsageError,
            "divide: two sparse arrays; an array below is needed, since 0 / 0 is no number. ",
        ),
        (lambda a: a == a, GraphError, "equal: a sparse array of Tensors; numbers or arrays are needed. Compare its "),
        (
            lambda a: a.multiply(np.ones(3)),
            ShapeError,
            "multiply: a sparse array of shape (4, 5) and an array of shape",
        ),
        (lambda a: a + a.T, ShapeError, "add: a sparse array of shape (4, 5) and one of shape (5, 4); one shape is"),
        (lambda a: a.power(0), UsageError, "power: the power 0; a number that is not 0 is needed. Use .toarray()."),
        (lambda a: sparse.csr_array(a.toarray()), GraphError, "csr_array: an array in full that is being "),
    ]:
        with pytest.raises(kind) as caught:
            wg.grad(lambda a, f=operation: in_full(f(a)).sum())(matrix)
        assert str(caught.value).startswith(text)
    with pytest.raises(
        ShapeError, match=r"^sparse: a sparse array with elements of shape \(\); shape \(\d+,\) is needed"
    ):
        wg.vmap(lambda a: a @ V)(matrix)
    with pytest.raises(DtypeError, match=r"^sparse: a lil_array; a sparse array whose stored elements are an array is"):
        wg.grad(lambda a: a.sum())(matrix.tolil())


def test_stacks_of_matrices_give_one_by_one() -> None:
    points = RNG.normal(size=(3, 2, 5))
    stack = wg.vmap(wg.vmap(wg.sparse.jacobian(lambda x: x[1:] * x[:-1])))(points)
    full = np.array([[wg.jacobian(lambda x: x[1:] * x[:-1])(x) for x in row] for row in points])
    assert repr(stack).startswith("<stack of 3 x 2 sparse csr arrays of shape (4, 5) with 8 stored each: array")
    assert (stack.shape, stack.ndim, len(stack)) == (full.shape, 4, 3)
    np.testing.assert_array_equal(stack.toarray(), full)
    assert type(stack[1, 0]) is type(stack[1][0]) is scipy.sparse.csr_array
    np.testing.assert_array_equal(stack[1, 0].toarray(), full[1, 0])
    np.testing.assert_array_equal((2.0 * stack[:2])[0, 1, 2:3].toarray(), 2.0 * full[0, 1, 2:3])
    np.testing.assert_allclose(
        wg.jit(lambda xs: wg.vmap(wg.sparse.jacobian(np.sin))(xs).toarray())(points[0]),
        [np.diag(np.cos(x)) for x in points[0]],
    )
    matrix = random_matrix(4, 5, "csr")
    np.testing.assert_array_equal(wg.jacobian(lambda a: a @ V)(matrix)[1].toarray()[1], V * (matrix.toarray()[1] != 0))
    for format in FORMATS:
        second = wg.hessian(lambda a: np.sum((a @ V) ** 2))(random_matrix(4, 5, format))
        with pytest.raises(
            ShapeError, match=r"whose elements are arrays of shape \(4, 5\).* use wengert.sparse.jacobian"
        ):
            second.toarray()
    uses: list[Callable[[], Any]] = [lambda: stack @ V, lambda: stack.T, lambda: stack * FULL, lambda: stack[:, :, 0]]
    for use in uses:
        with pytest.raises(ShapeError, match=r"^sparse: a stack of 3 x 2 sparse arrays; one sparse array is needed"):
            use()


@pytest.mark.parametrize("form", ["coo", "csr", "csc"])
def test_functions_of_elements_are_of_the_sums_of_elements_stored_twice(form: str) -> None:
    indices = {"coo": (np.array([0, 0, 1, 0]), np.array([0, 0, 1, 1]))}.get(form)
    rest = (np.array([0, 0, 1, 1]), np.array([0, 2, 4])) if indices is None else (indices,)

    def matrix(module: Any, data: Any) -> Any:
        return getattr(module, f"{form}_array")((data, *copy.deepcopy(rest)), shape=(2, 2))  # SciPy writes to them

    data = np.array([0.5, -2.0, 0.25, 1.5])
    operations: list[Callable[[Any], Any]] = [abs, lambda a: a.power(3), lambda a: a.sin(), lambda a: (a * 0.3).sign()]
    for operate in operations:
        right = operate(matrix(scipy.sparse, data.copy())).toarray()
        np.testing.assert_allclose(wg.jit(lambda d, f=operate: f(matrix(sparse, d)).toarray())(data), right)
        slope = wg.jvp(lambda d, f=operate: f(matrix(sparse, d)).toarray(), (data,), (np.ones(4),))[1]
        near = [operate(matrix(scipy.sparse, data + h)).toarray() for h in (1e-6, -1e-6)]
        np.testing.assert_allclose(slope, (near[0] - near[1]) / 2e-6, atol=1e-7)


def test_matrices_without_elements_have_derivatives_of_every_order() -> None:
    def f(data: Any) -> Any:
        places = np.zeros(0, int), np.zeros(0, int)
        return np.sum(sparse.csr_array((data, places), shape=(4, 3)) @ np.ones(3))

    assert wg.jacfwd(wg.jacrev(f))(np.zeros(0)).shape == (0, 0)
    assert wg.vmap(wg.grad(f))(np.zeros((2, 0))).shape == (2, 0)
