"""Some eigenvalues and singular values of sparse matrices: derivatives against those of matrices in full."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import ArpackNoConvergence

import wengert as wg
from tests.cases import together
from wengert.errors import DtypeError, NumericalError, ShapeError, UsageError
from wengert.primitives.sparse import direct_solves, eigenpairs
from wengert.scipy import sparse
from wengert.scipy.sparse import linalg
from wengert.support.caches import FACTORS

RNG = np.random.default_rng(0)
SIZE, COUNT = 8, 3
HALF = RNG.normal(size=(SIZE, SIZE)) * (RNG.uniform(size=(SIZE, SIZE)) < 0.5)
FULL = HALF + HALF.T + np.diag(2.0 * np.arange(SIZE))
PHASES = np.triu((FULL != 0) * RNG.normal(size=(SIZE, SIZE)), 1)
WIDE = RNG.normal(size=(7, 5)) * (RNG.uniform(size=(7, 5)) < 0.6) + np.eye(7, 5) * np.arange(1, 6)
C = RNG.normal(size=(SIZE, COUNT))
ORTHOGONAL = np.linalg.qr(RNG.normal(size=(SIZE, SIZE)))[0]
REPEATED = scipy.sparse.csr_array((ORTHOGONAL * [1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]) @ ORTHOGONAL.T)


def lowest_in_full(a: Any) -> Any:
    whole = a.toarray()
    w, v = np.linalg.eigh((whole + np.conj(whole.T)) / 2)
    return w[:COUNT], v[:, :COUNT]


def some_in_full(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a.toarray(), full_matrices=False)
    return u[:, COUNT - 1 :: -1], s[COUNT - 1 :: -1], vh[COUNT - 1 :: -1]


def of_pairs(pairs: Any) -> Any:
    def loss(a: Any) -> Any:
        w, v = pairs(a)
        return np.sum(w**3) + np.sum(np.abs(v * C) ** 2 * w) + np.sum((v @ np.conj(v.T) * (C @ C.T)).real)

    return loss


def of_singular(triples: Any) -> Any:
    def loss(a: Any) -> Any:
        u, s, vh = triples(a)
        return np.sum(s**3) + np.sum((u * s) @ vh * WIDE**2) + np.sum(u**2 * C[:7])

    return loss


def by_products(a: Any) -> linalg.LinearOperator:
    return linalg.LinearOperator(a.shape, lambda x: a @ x)


CASES: dict[str, Any] = {
    "eigsh": (FULL, of_pairs(lambda a: linalg.eigsh(a, COUNT, which="SA")), of_pairs(lowest_in_full)),
    "with sigma": (FULL, of_pairs(lambda a: linalg.eigsh(a.tocsc(), COUNT, sigma=-20.0)), of_pairs(lowest_in_full)),
    "complex": (
        FULL + 1j * (PHASES - PHASES.T),
        of_pairs(lambda a: linalg.eigsh(a, COUNT, sigma=-20.0)),
        of_pairs(lowest_in_full),
    ),
    "svds": (WIDE, of_singular(lambda a: linalg.svds(a, COUNT)), of_singular(some_in_full)),
    "by products": (
        FULL,
        of_pairs(lambda a: linalg.eigsh(by_products(a), COUNT, which="SA")),
        of_pairs(lowest_in_full),
    ),
    "values": (
        FULL,
        lambda a: np.sum(linalg.eigsh(a, COUNT, which="SA", v0=np.ones(SIZE), return_eigenvectors=False) ** 3),
        lambda a: np.sum(lowest_in_full(a)[0] ** 3),
    ),
    "singular values": (
        WIDE,
        lambda a: np.sum(linalg.svds(a, 2, which="SM", return_singular_vectors=False) ** 3),
        lambda a: np.sum(np.linalg.svdvals(a.toarray())[3:] ** 3),
    ),
}


@together("name", CASES)
def test_derivatives_of_eigenvalues(name: str) -> None:
    full, loss, wanted = CASES[name]
    matrix = scipy.sparse.csr_array(full)
    direction = matrix.copy()
    direction.data = RNG.normal(size=matrix.data.shape)
    np.testing.assert_allclose(loss(matrix), wanted(matrix), rtol=1e-10)
    want = wg.grad(wanted)(matrix).data
    for gradient in (wg.grad(loss), wg.jit(wg.grad(loss))):
        np.testing.assert_allclose(gradient(matrix).data, want, rtol=1e-8, atol=1e-10)
    for run in (loss, wg.jit(loss)) if name == "eigsh" else (loss,):
        got, want = (wg.jvp(f, (matrix,), (direction,))[1] for f in (run, wanted))
        np.testing.assert_allclose(got, want, rtol=1e-8)
    got, want = (wg.hvp(f, (matrix,), (direction,))[0].data for f in (loss, wanted))
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8)
    got, want = (wg.grad(lambda a, f=f: np.sum(np.abs(wg.grad(f)(a).data) ** 2))(matrix).data for f in (loss, wanted))
    np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-7)


def test_third_derivatives_and_lanes() -> None:
    matrix, loss = scipy.sparse.csr_array(FULL), CASES["with sigma"][1]
    got, want = (
        wg.jvp(lambda a, f=f: wg.hvp(f, (a,), (matrix,))[0].data, (matrix,), (matrix,))[1]
        for f in (loss, CASES["eigsh"][2])
    )
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-7)
    scales = np.array([1.0, 2.0])
    lanes = wg.vmap(wg.grad(lambda s: loss(matrix * s)))(scales)
    np.testing.assert_allclose(lanes, [wg.grad(lambda s: CASES["eigsh"][2](matrix * s))(s) for s in scales])
    single = linalg.eigsh(matrix.astype(np.float32), 2)
    assert [x.dtype for x in single] == [np.float32, np.float32]
    assert linalg.svds(matrix, 2, return_singular_vectors="u")[2] is None


def test_one_run_and_one_factor_serve_all(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    own, factorise = eigenpairs.computed_pairs, direct_solves.factorise
    monkeypatch.setattr(eigenpairs, "computed_pairs", lambda *args: made.append("pairs") or own(*args))
    monkeypatch.setattr(direct_solves, "factorise", lambda *args: made.append("factor") or factorise(*args))
    matrix = scipy.sparse.csr_array(FULL + np.eye(SIZE))
    values = lambda a: np.sum(linalg.eigsh(a, 2, sigma=-20.0, return_eigenvectors=False) ** 2)
    first = wg.grad(values)(matrix)
    wg.hvp(values, (matrix,), (matrix,))
    linalg.eigsh(matrix, 2, sigma=-20.0)
    assert made == ["pairs", "factor"]
    FACTORS.entries.clear()
    np.testing.assert_array_equal(wg.grad(values)(matrix).data, first.data)


def test_repeated_eigenvalues() -> None:
    def spaces(pairs: Any) -> Any:
        return lambda a: np.sum(pairs(a)[1] @ pairs(a)[1].T * (C @ C.T))

    def lowest(a: Any, k: int = COUNT, **options: Any) -> Any:
        return linalg.eigsh(a, k, which="SA", **options)

    got, want = (wg.grad(spaces(f))(REPEATED).data for f in (lowest, lowest_in_full))
    np.testing.assert_allclose(got, want, atol=1e-12)
    values = lambda a: lowest(a, return_eigenvectors=False)
    in_full = lambda a: np.linalg.eigvalsh(a.toarray())[:COUNT]
    sums = [wg.grad(lambda a, f=f: np.sum(f(a)))(REPEATED).todense() for f in (values, in_full)]
    np.testing.assert_allclose(sums[0], (sums[1] + sums[1].T) / 2, atol=1e-12)
    direction = scipy.sparse.csr_array(np.ones((SIZE, SIZE)) + np.diag(np.arange(SIZE)))
    tangents = [wg.jvp(f, (REPEATED,), (direction,))[1] for f in (values, in_full)]
    np.testing.assert_allclose(*tangents, atol=1e-10)
    with pytest.raises(np.linalg.LinAlgError, match=r"^eigenvalues: cotangents that differ between those of one "):
        wg.grad(lambda a: lowest(a, return_eigenvectors=False)[0])(REPEATED)
    with pytest.raises(np.linalg.LinAlgError, match=r"^eigenvectors: a repeated eigenvalue"):
        wg.grad(lambda a: np.sum(lowest(a)[1] ** 2 * C))(REPEATED)
    with pytest.raises(NumericalError, match=r"^eigsh: a derivative of the vector of 1 whose system is missed by "):
        wg.grad(lambda a: np.sum(lowest(a, 1)[1] ** 2 * C[:, :1]))(REPEATED)


def test_operators() -> None:
    scales = np.array([1.0, 2.0])
    lowest = lambda s: linalg.eigsh(by_products(FULL * s + FULL @ FULL / 9), 2, which="SA")
    of = lambda s: np.sum(lowest(s)[0] ** 2) + np.sum(lowest(s)[1] ** 4)

    def in_full(s: Any) -> Any:
        w, v = np.linalg.eigh(FULL * s + FULL @ FULL / 9)
        return np.sum(w[:2] ** 2) + np.sum(v[:, :2] ** 4)

    for transform in (lambda f: f, wg.jit):
        got, want = transform(wg.vmap(wg.grad(of)))(scales), [wg.grad(in_full)(s) for s in scales]
        np.testing.assert_allclose(got, want, rtol=1e-8)
    chain = 3e-4 * (np.eye(100, k=1) + np.eye(100, k=-1))
    ends = lambda d: np.sum(linalg.eigsh(linalg.LinearOperator((100, 100), lambda x: d * x + chain @ x), 1)[1] ** 4)
    ends_in_full = lambda d: np.sum(np.linalg.eigh(d * np.eye(100) + chain)[1][:, -1:] ** 4)
    near = np.concatenate([np.linspace(1.0, 40.0, 98), [50.0, 50.0005]])
    np.testing.assert_allclose(wg.grad(ends)(near), wg.grad(ends_in_full)(near), rtol=1e-6, atol=1e-5)
    single = linalg.LinearOperator((SIZE, SIZE), lambda x: FULL.astype(np.float32) @ x, dtype=np.float32)
    assert [x.dtype for x in linalg.eigsh(single, 2)] == [np.float32, np.float32]
    values = lambda d: np.sum(linalg.eigsh(linalg.LinearOperator((SIZE, SIZE), lambda x: d * x), 2, which="SA")[0])
    repeated = np.maximum(np.arange(SIZE), 1.0)
    for run in (wg.grad(values), wg.jit(wg.grad(values)), lambda d: wg.jvp(values, (d,), (d,))):
        with pytest.raises(NumericalError, match=r"^eigsh: a repeated eigenvalue; eigenvalues that "):
            run(repeated)
    turning = lambda d: np.sum(linalg.eigsh(by_products(d), 1, which="SA")[1] ** 2 * C[:, :1])
    with pytest.raises(NumericalError, match=r"^eigsh: a linear system that minres left with a residual of "):
        wg.grad(turning)(np.diag(repeated))


def test_complex_operators_have_derivatives_to_second_order() -> None:
    turning = 1j * (HALF - HALF.T)
    product = lambda s: linalg.LinearOperator((SIZE, SIZE), lambda x: (FULL * s + turning * s * s) @ x, dtype=complex)
    of = lambda w, v: np.sum(w**3) + np.sum(np.abs(v) ** 4 * C[:, :1])
    by_operator = lambda s: of(*linalg.eigsh(product(s), 2, which="SA"))
    in_full = lambda s: of(*(x[..., :2] for x in np.linalg.eigh(FULL * s + turning * s * s)))
    for transform in (wg.grad, lambda f: wg.grad(wg.grad(f)), lambda f: wg.jit(lambda s: wg.jvp(f, (s,), (1.0,))[1])):
        np.testing.assert_allclose(transform(by_operator)(1.1), transform(in_full)(1.1), rtol=1e-7)
    values, vectors = linalg.eigsh(product(1.1), 2, which="SA")
    assert (values.dtype, vectors.dtype) == (np.float64, np.complex128)


@together("is_complex", [False, True])
def test_eigenvalues_of_square_matrices_are_those_in_full_to_second_order(is_complex: bool) -> None:
    square = HALF + np.diag(np.arange(SIZE)) + (1j * PHASES if is_complex else 0.0)
    whole = scipy.sparse.csr_array(square)
    places = np.argmin(np.abs(np.linalg.eigvals(square) - np.array(linalg.eigs(whole, COUNT)[0])[:, None]), axis=1)
    of = lambda w, v: np.sum(w.real**3 + np.abs(w) ** 2) + np.sum(np.abs(v * C) ** 2 * w.imag + np.abs(v) ** 4)
    by_sparse = lambda a: of(*linalg.eigs(a, COUNT))

    def in_full(a: Any) -> Any:
        w, v = np.linalg.eig(a)
        return of(w[places], v[:, places])

    wanted = wg.grad(in_full)(square) * (square != 0)
    for run in (wg.grad(by_sparse), wg.jit(wg.grad(by_sparse))):
        np.testing.assert_allclose(run(whole).toarray(), wanted, rtol=1e-8, atol=1e-9)
    ways = [
        lambda s: by_sparse(sparse.csr_array(whole) * (s + s * s)),
        lambda s: of(
            *linalg.eigs(linalg.LinearOperator(whole.shape, lambda x: whole @ x * (s + s * s), dtype=square.dtype), 3)
        ),
    ]
    scales = np.array([0.9, 1.1])
    expected = [wg.grad(wg.grad(lambda s: in_full(square * (s + s * s))))(s) for s in scales]
    for way in ways:
        np.testing.assert_allclose(wg.vmap(wg.grad(wg.grad(way)))(scales), expected, rtol=1e-8)
    repeated = scipy.sparse.csr_array(np.diag([5.0, 5.0, 3.0, 2.0, 1.0]))
    with pytest.raises(NumericalError, match="eigs: a repeated eigenvalue; eigenvalues that differ"):
        wg.grad(lambda a: np.sum(linalg.eigs(a, 2)[0].real))(repeated)
    assert linalg.eigs(repeated.astype(np.int8), 3, return_eigenvectors=False).real == pytest.approx([3.0, 5.0, 5.0])
    with pytest.raises(UsageError, match="eigs: k=4 of 4; a whole number from 1 to 3 is needed"):
        linalg.eigs(repeated, 4)
    with pytest.raises(UsageError, match="eigs: sigma of a LinearOperator; a sparse array"):
        linalg.eigs(by_products(whole), 1, sigma=1.0)


def test_refusals_of_eigenvalues() -> None:
    square, wide = scipy.sparse.csr_array(FULL), scipy.sparse.csr_array(WIDE)
    grid = scipy.sparse.diags_array([np.full(400, 2.0), -np.ones(399), -np.ones(399)], offsets=[0, 1, -1])
    for call, kind, said in [
        (lambda: linalg.eigsh(square, 8), UsageError, "eigsh: k=8 of 8; a whole number from 1 to 7 is needed. "),
        (lambda: linalg.svds(wide, 5), UsageError, "svds: k=5 of 5; a whole number from 1 to 4 is needed. "),
        (lambda: linalg.svds(wide, 2, solver="x"), UsageError, "svds: return_singular_vectors=True and solver='x'; "),
        (lambda: linalg.eigsh(square, 2, mode="cayley"), UsageError, "eigsh: mode='cayley'; the problem A v = w v "),
        (lambda: linalg.eigsh(square, 2, v0=np.ones(3)), ShapeError, "eigsh: v0 of shape (3,); shape (8,) is needed. "),
        (lambda: linalg.eigs(square, 2, which="LA"), UsageError, "eigs: which='LA'; 'LM', 'SM', 'LR', 'SR', 'LI' or"),
        (lambda: linalg.eigsh(FULL, 2), DtypeError, "eigsh: a matrix of type ndarray; a sparse array is needed. "),
        (
            lambda: linalg.eigsh(scipy.sparse.linalg.aslinearoperator(FULL), 2),
            DtypeError,
            "eigsh: a matrix of type MatrixLinearOperator; a sparse array is needed. Write wengert.scipy.sparse.linalg",
        ),
        (lambda: linalg.eigsh(wide, 2), ShapeError, "eigsh: a matrix of shape (7, 5); a square one is needed. "),
        (
            lambda: linalg.eigsh(scipy.sparse.csr_array(np.diag(np.arange(9.0))), 2, sigma=3.0),
            NumericalError,
            "eigsh: a matrix with the eigenvalue sigma=3; one with an inverse is needed. Choose another sigma.",
        ),
        (
            lambda: linalg.eigsh(by_products(square), 2, sigma=1.0),
            UsageError,
            "eigsh: sigma of a LinearOperator; a sparse array is needed, whose factor A - sigma is made. Leave sigma ",
        ),
        (lambda: linalg.eigsh(by_products(wide), 2), ShapeError, "eigsh: a LinearOperator of shape (7, 5); a square "),
        (
            lambda: linalg.eigsh(by_products(FULL * 1j), 2),
            DtypeError,
            "eigsh: numbers of dtype complex128; real numbers",
        ),
        (lambda: linalg.eigsh(grid, 4, which="SM", maxiter=2), ArpackNoConvergence, "ARPACK error -1: No convergence"),
    ]:
        with pytest.raises(kind, match="^" + re.escape(said)):
            call()
