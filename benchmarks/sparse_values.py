"""Sparse matrices as values: products, systems and their gradients, beside SciPy by hand and `jax.experimental.sparse`.

Every library has one thread, and processor time is measured. By hand, the gradient of a squared solution is one
factorisation and two solves.
"""

from __future__ import annotations

import importlib
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse as scipy_sparse
from scipy.sparse import linalg as scipy_linalg

from benchmarks.measure import Case, Program, timed

__all__ = ["cases"]

Call = Callable[[], Any]
ROWS = 100_000
SIDE = 330


def random_matrix() -> tuple[Any, Any]:
    """Return a matrix of 10^6 elements, and a vector."""
    rng = np.random.default_rng(0)
    return scipy_sparse.random_array((ROWS, ROWS), density=10 / ROWS, format="csr", rng=rng), rng.normal(size=ROWS)


def grid_matrix() -> tuple[Any, Any]:
    """Return the five-point matrix of a square of points, 5.4 * 10^5 elements, and a right-hand side."""
    size = SIDE * SIDE
    offsets, diagonals = [-SIDE, -1, 0, 1, SIDE], [-1.0, -1.0, 5.2, -1.0, -1.0]
    matrix = scipy_sparse.diags_array(diagonals, offsets=offsets, shape=(size, size)).tocsr()
    return matrix, np.random.default_rng(1).normal(size=size)


def jax_matrix(matrix: Any) -> tuple[Any, Any]:
    """Return JAX, and a matrix of its own."""
    jax, sparse = importlib.import_module("jax"), importlib.import_module("jax.experimental.sparse")
    jax.config.update("jax_enable_x64", True)
    return jax, sparse.BCOO.from_scipy_sparse(matrix)


def product(library: str, jitted: bool) -> Call | None:
    """Return what multiplies a matrix and a vector."""
    matrix, x = random_matrix()
    if library == "scipy":
        return lambda: matrix @ x
    if library == "wengert":
        import wengert as wg
        from wengert.scipy.sparse import csr_array

        held = csr_array(matrix)
        function: Any = wg.jit(lambda a, x: a @ x) if jitted else lambda a, x: a @ x
        return lambda: function(held, x)
    if library == "jax-jit" and jitted:
        jax, own = jax_matrix(matrix)
        found = jax.jit(lambda a, x: a @ x)
        return lambda: found(own, x).block_until_ready()
    return None


def gradient_of_product(library: str, jitted: bool) -> Call | None:
    """Return what differentiates the length of a product by the elements of the matrix."""
    matrix, x = random_matrix()
    if library == "scipy":
        rows = np.repeat(np.arange(ROWS), np.diff(matrix.indptr))
        return lambda: (2 * (matrix @ x))[rows] * x[matrix.indices]
    if library == "wengert":
        import wengert as wg

        gradient = wg.grad(lambda a: np.sum((a @ x) ** 2))
        found = wg.jit(gradient) if jitted else gradient
        return lambda: found(matrix)
    if library == "jax-jit" and jitted:
        jax, own = jax_matrix(matrix)
        sparse, indices = importlib.import_module("jax.experimental.sparse"), own.indices
        loss = lambda data: jax.numpy.sum((sparse.BCOO((data, indices), shape=own.shape) @ x) ** 2)  # noqa: E731
        found = jax.jit(jax.grad(loss))
        return lambda: found(own.data).block_until_ready()
    return None


def gradient_of_system(library: str, jitted: bool) -> Call | None:
    """Return what differentiates the length of a solution by the elements of the matrix, another one each time."""
    matrix, b = grid_matrix()
    numbers = itertools.count()
    if library == "scipy":

        def by_hand() -> Any:
            matrix.data[0] = 5.2 + 1e-3 * next(numbers)
            factor = scipy_linalg.splu(matrix.tocsc())
            return factor.solve(2 * factor.solve(b), "T")

        return by_hand
    if library == "wengert":
        import wengert as wg
        from wengert.scipy.sparse import linalg

        gradient = wg.grad(lambda a: np.sum(linalg.spsolve(a, b) ** 2))
        found = wg.jit(gradient) if jitted else gradient

        def differentiated() -> Any:
            matrix.data[0] = 5.2 + 1e-3 * next(numbers)
            return found(matrix)

        return differentiated
    return None


def gradient_of_iterations(library: str, jitted: bool) -> Call | None:
    """Return what solves by conjugate gradients: SciPy the system alone, to the right side of which the others do."""
    matrix, b = grid_matrix()
    if library == "scipy":
        return lambda: scipy_linalg.cg(matrix, b, rtol=1e-8)
    if library == "wengert":
        import wengert as wg
        from wengert.scipy.sparse import linalg

        gradient = wg.grad(lambda b: np.sum(linalg.cg(matrix, b, rtol=1e-8)[0] ** 2))
        found = wg.jit(gradient) if jitted else gradient
        return lambda: found(b)
    return None


def gradient_of_eigenpairs(of_vectors: bool) -> Callable[[str, bool], Call | None]:
    """Return what makes calls that differentiate five eigenvalues, or vectors: SciPy finds them, each time anew."""

    def make(library: str, jitted: bool) -> Call | None:
        matrix, _ = grid_matrix()
        numbers = itertools.count()
        weights = np.random.default_rng(2).normal(size=(matrix.shape[0], 5))
        if library == "scipy":
            return lambda: scipy_linalg.eigsh(matrix, 5, sigma=0.0)
        if library == "wengert":
            import wengert as wg
            from wengert.scipy.sparse import linalg

            def loss(a: Any) -> Any:
                w, v = linalg.eigsh(a, 5, sigma=0.0)
                return np.sum(v**2 * weights) if of_vectors else np.sum(w)

            found = wg.jit(wg.grad(loss)) if jitted else wg.grad(loss)

            def differentiated() -> Any:
                matrix.data[0] = 5.2 + 1e-3 * next(numbers)
                return found(matrix)

            return differentiated
        return None

    return make


WORK: dict[str, Callable[[str, bool], Call | None]] = {
    "product": product,
    "gradient of product by elements": gradient_of_product,
    "gradient of system by elements": gradient_of_system,
    "conjugate gradients, and by right side": gradient_of_iterations,
    "five eigenvalues, and their gradient": gradient_of_eigenpairs(False),
    "five eigenvectors, and their gradient": gradient_of_eigenpairs(True),
}


def cases(_threads: int) -> Iterator[Case]:
    """Yield each work, eagerly and jitted."""
    for name, make in WORK.items():
        for jitted in (False, True):

            def program(library: str, make: Any = make, jitted: bool = jitted) -> Program | None:
                call = make(library, jitted)
                return None if call is None else timed(call, time.process_time)

            yield Case(f"{name}{', jitted' if jitted else ''}", 1, program)
