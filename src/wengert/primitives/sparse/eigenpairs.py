"""Some eigenvalues of a sparse Hermitian matrix and their vectors, by ARPACK, and the systems of their derivatives.

With A V = V diag(w), V^H V = 1 and T = V^H dA V, the tangents are

    dw = diag(T),    dV = V (T_ij / (w_j - w_i)) + X,    (A - w_i) x_i + V m_i = -dA v_i,    V^H X = 0

so what vectors turn into each other is as for matrices in full (`linear_algebra/eigenvalues.py`), and what they turn to
beyond is one system for each, with all that were found as its border: it is regular as long as no repeated eigenvalue
was found in part. Systems with a border are a primitive, whose derivatives are such systems again, to any order. With
`sigma` the factor that ARPACK used serves them. (R. Nelson, Simplified calculation of eigenvector derivatives, 1976;
A. Andrew and R. Tan, Computation of derivatives of repeated eigenvalues and the corresponding eigenvectors, 1998.)

Of a matrix A the part (A + A^H) / 2 is differentiated, so that gradients are Hermitian where the pattern is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.form import Form
from wengert.core.forms.shape_probes import Results
from wengert.core.primitives.cotangent import match_dtype
from wengert.core.primitives.declare import opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.errors import NumericalError
from wengert.primitives.contractions import conj
from wengert.primitives.linear_algebra.cluster_derivatives import (
    along_clusters,
    inner_gradient,
    own_ties,
    with_settled,
)
from wengert.primitives.linear_algebra.clusters import over_gaps, refusal, unequal_error
from wengert.primitives.linear_algebra.matrices import adjoint, diagonal_of, length_of
from wengert.primitives.sparse.direct_solves import factor_dtype, factor_of, kept_factor
from wengert.primitives.sparse.iterative_solves import batch_iterative
from wengert.primitives.sparse.products import sampled_product, sparse_product
from wengert.primitives.sparse.storage_pattern import StoragePattern
from wengert.support.records import NamedTuple

Params = Mapping[str, Any]
Array = np.ndarray[Any, Any]
ROUNDINGS = 64
"""Up to how many roundings of a right-hand side what is left of it beyond the vectors is none."""
ALLOWED = 1e3
"""How many times the root of a rounding error the residual of a system of a derivative may be, relative to its right
side: what is left of an eigenvalue that was found in part is as large as that side."""


class Eigenpairs(NamedTuple):
    """Hold eigenvalues, which are sorted, and their vectors."""

    values: Array
    vectors: Array

    @property
    def nnz(self) -> int:
        """Return how many elements they have."""
        return int(self.vectors.size)


class PairsForm(Form):
    """Eigenvalues, and vectors of as many elements as the matrix has rows.

    Attributes:
        has_vectors: whether vectors are among the results.
    """

    has_vectors: bool

    def results(self, _primitive: Primitive, inputs: Sequence[Any], params: Params) -> Results:
        """Return the shapes that the pattern and the number of eigenvalues tell."""
        dtype = factor_dtype(aval_of(inputs[0]).dtype)
        count = dict(params["options"])["k"]
        values = Aval((count,), np.zeros(0, dtype).real.dtype)
        return ((values, Aval((params["pattern"].shape[0], count), dtype)) if self.has_vectors else (values,)), None


class BorderedForm(Form):
    """A system with a border: solutions like the right-hand sides."""

    def results(self, _primitive: Primitive, inputs: Sequence[Any], _params: Params) -> Results:
        """Return the shapes of the right-hand sides."""
        avals = [aval_of(x) for x in inputs]
        dtype = np.result_type(*[x.dtype for x in avals])
        return (Aval(avals[3].shape, dtype), Aval(avals[4].shape, dtype)), None


# Products that are Hermitian


def hermitian_product(data: Any, x: Any, pattern: StoragePattern) -> Any:
    """Return (A + A^H) X / 2."""
    direct = apply(sparse_product, data, x, pattern=pattern, transposed=False)
    return (direct + conj(apply(sparse_product, data, conj(x), pattern=pattern, transposed=True))) / 2


def hermitian_elements(ct: Any, x: Any, pattern: StoragePattern) -> Any:
    """Return the cotangent of the elements of A, given that of (A + A^H) X / 2."""
    direct = apply(sampled_product, ct, x, pattern=pattern)
    return (direct + conj(apply(sampled_product, x, ct, pattern=pattern))) / 2


# Evaluation


@functools.cache
def takes_generator(function: Callable[..., Any]) -> bool:
    """Tell whether a function of SciPy's has the parameter `rng`, as of 1.17, from which further vectors come."""
    return "rng" in inspect.signature(function).parameters


def start_of(v0: Array, size: int, dtype: np.dtype[Any]) -> tuple[Array, dict[str, Any]]:
    """Return the vector to begin with, the same each time if nobody gave one, and further arguments of SciPy's."""
    from scipy.sparse import linalg

    generator = {"rng": np.random.default_rng(0)} if takes_generator(linalg.eigsh) else {}
    start = v0 if v0.size else np.random.default_rng(0).uniform(-1, 1, size)
    return np.array(start, dtype), generator


def found_pairs(data: Array, v0: Array, pattern: StoragePattern, options: Any) -> Eigenpairs:
    """Return the eigenvalues that were asked for and their vectors, which are kept for derivatives."""
    data = data.astype(factor_dtype(data.dtype), copy=False)
    key = ("pairs", v0.tobytes(), options)
    found: Eigenpairs = kept_factor(pattern, key, data, lambda: computed_pairs(data, v0, pattern, dict(options))).factor
    return found


def computed_pairs(data: Array, v0: Array, pattern: StoragePattern, options: dict[str, Any]) -> Eigenpairs:
    """Return eigenvalues and vectors as ARPACK computes them."""
    matrix, split = pattern.matrix(data), options.pop("split", None)
    if split is not None:
        return singular_pairs(matrix.tocsr()[:split, split:], v0, options)
    from scipy.sparse import linalg

    size = pattern.shape[0]
    start, others = start_of(v0, size, data.dtype)
    if "sigma" in options:
        factor = factor_of("eigsh", pattern, (("shift", options["sigma"]),), data).factor
        others["OPinv"] = linalg.LinearOperator((size, size), factor.solve, dtype=data.dtype)
    if data.dtype.kind == "c":
        others.pop("rng", None)  # which `eigsh` does not hand on
    values, vectors = linalg.eigsh(matrix, v0=start, **options, **others)
    if data.dtype.kind == "c":  # vectors of Arnoldi's method are not orthogonal
        vectors = np.linalg.qr(vectors)[0]
        values, turned = np.linalg.eigh(vectors.conj().T @ (matrix @ vectors))
        vectors = (vectors @ turned).astype(data.dtype, copy=False)
    order = np.argsort(values, kind="stable")
    return Eigenpairs(values[order], np.ascontiguousarray(vectors[:, order]))


def singular_pairs(matrix: Any, v0: Array, options: dict[str, Any]) -> Eigenpairs:
    """Return singular values s of A and (u, v) / sqrt(2), the eigenvectors of [[0, A], [A^H, 0]] that belong to s."""
    from scipy.sparse import linalg

    start, others = start_of(v0, min(matrix.shape), matrix.dtype)
    u, s, vh = linalg.svds(matrix, v0=start, **options, **others)
    order = np.argsort(s, kind="stable")
    vectors = np.concatenate([u, vh.conj().T])[:, order] / np.sqrt(s.dtype.type(2))
    return Eigenpairs(s[order], np.ascontiguousarray(vectors.astype(matrix.dtype, copy=False)))


def evaluate_pairs(data: Any, v0: Any, *, pattern: StoragePattern, options: Any) -> Any:
    """Evaluate `sparse_eigh`."""
    found = found_pairs(data, v0, pattern, options)
    return found.values.copy(), found.vectors.copy()


def evaluate_values(data: Any, v0: Any, *, pattern: StoragePattern, options: Any) -> Any:
    """Evaluate `sparse_eigvalsh`."""
    return found_pairs(data, v0, pattern, options).values.copy()


# Systems with a border


def evaluate_bordered(
    data: Any, w: Any, v: Any, right: Any, below: Any, *, pattern: StoragePattern, options: Any
) -> Any:
    """Evaluate `bordered`: X and M of (A - w_i) x_i + V m_i = r_i and V^H x_i = s_i, where A V = V diag(w)."""
    dtype = np.result_type(data, w, v, right, below)
    gaps = w[:, None] - w[None, :]
    found = np.empty(right.shape, dtype)
    system = System(data.astype(factor_dtype(data.dtype), copy=False), v, pattern, dict(options).get("sigma"))
    for i in range(len(w)):
        found[:, i] = system.solve(float(w[i]), right[:, i].astype(v.dtype))
    return found + v @ below, (adjoint(v) @ right - gaps * below).astype(dtype, copy=False)


class System(NamedTuple):
    """Hold a matrix with some of its eigenvectors, beyond which systems are solved."""

    data: Array
    vectors: Array
    pattern: StoragePattern
    sigma: float | None

    def beyond(self, x: Array) -> Array:
        """Return what of a vector is orthogonal to the eigenvectors."""
        rest: Array = x - self.vectors @ (adjoint(self.vectors) @ x)
        return rest

    def solve(self, value: float, right: Array) -> Array:
        """Return x with (A - w) x = r beyond the eigenvectors, where what is left of r by rounding is none.

        Raises:
            NumericalError: there is none.
        """
        whole, right = length_of(right), self.beyond(self.beyond(right))
        size = length_of(right)
        if size <= ROUNDINGS * np.finfo(right.dtype).eps * whole:
            return np.zeros_like(right)
        matrix, unit = self.pattern.matrix(self.data), right / size
        if self.sigma is None:
            found = self.by_minres(lambda x: matrix @ x - value * x, unit)
        else:
            options = (("shift", self.sigma),)
            factor, shift = factor_of("eigsh", self.pattern, options, self.data).factor, value - self.sigma
            found = self.by_minres(lambda x: x - shift * factor.solve(x), self.beyond(factor.solve(unit)))
        missed = float(np.linalg.norm(self.beyond(matrix @ found - value * found) - unit))
        if not missed <= ALLOWED * np.sqrt(np.finfo(unit.dtype).eps):
            given = f"a derivative of the vector of {value:.6g} whose system is missed by {missed:.1g} of its size"
            needed = "all vectors of an eigenvalue, or of those near to it, are needed"
            raise NumericalError("eigsh", given, needed, "Increase k, or pass sigma near to it")
        return found * size

    def by_minres(self, apply_to: Callable[[Array], Array], right: Array) -> Array:
        """Return what MINRES finds beyond the eigenvectors, with complex numbers as pairs of real ones."""
        from scipy.sparse import linalg

        dtype, real = right.dtype, np.zeros(0, right.dtype).real.dtype

        def product(x: Array) -> Array:
            return self.beyond(apply_to(np.ascontiguousarray(x, real).view(dtype))).view(real)

        size = right.size * (2 if dtype.kind == "c" else 1)
        operator = linalg.LinearOperator((size, size), product, dtype=real)
        rtol = float(np.finfo(real).eps)
        found = linalg.minres(operator, np.ascontiguousarray(right).view(real), rtol=rtol)[0]
        return self.beyond(np.ascontiguousarray(found, real).view(dtype))


def vjp_bordered(ct: Sequence[Any], out: Any, data: Any, w: Any, v: Any, right: Any, below: Any, **params: Any) -> Any:
    """Solve once more, with the transpose."""
    (x, m), pattern = out, params["pattern"]
    ct_x, ct_m = (
        np.zeros(aval_of(own).shape, aval_of(own).dtype) if given is None else given
        for given, own in zip(ct, out, strict=True)
    )
    y, n = (conj(z) for z in apply(bordered, data, w, v, conj(ct_x), conj(ct_m), **params))
    by_vectors = -(y @ m.mT) - conj(x @ n.mT)
    results = (-hermitian_elements(y, x, pattern), np.sum(y * x, axis=0).real, by_vectors, y, n)
    return tuple(match_dtype(z, aval_of(own).dtype) for z, own in zip(results, (data, w, v, right, below), strict=True))


def jvp_bordered(
    tangents: Sequence[Any], out: Any, data: Any, w: Any, v: Any, right: Any, below: Any, **params: Any
) -> Any:
    """Solve once more."""
    (x, m), (moved, dw, dv, dright, dbelow) = out, tangents
    beside = np.zeros(aval_of(right).shape, aval_of(x).dtype) if dright is None else dright
    under = np.zeros(aval_of(below).shape, aval_of(m).dtype) if dbelow is None else dbelow
    if moved is not None:
        beside = beside - hermitian_product(moved, x, params["pattern"])
    if dw is not None:
        beside = beside + x * dw
    if dv is not None:
        beside, under = beside - dv @ m, under - adjoint(dv) @ x
    return apply(bordered, data, w, v, beside, under, **params)


bordered: Primitive = opaque(
    "bordered_solve",
    evaluate_bordered,
    vjp=vjp_bordered,
    jvp=jvp_bordered,
    outputs=2,
    form=BorderedForm(),
    batch=batch_iterative,
)


# Eigenvalues and vectors


def solved_beyond(data: Any, w: Any, v: Any, right: Any, params: Params) -> Any:
    """Return X of the systems with these right-hand sides and V^H X = 0."""
    none = np.zeros((aval_of(w).shape[0],) * 2, aval_of(v).dtype)
    return apply(bordered, data, w, v, right, none, **params)[0]


def vjp_pairs(ct: Sequence[Any], out: Any, data: Any, _v0: Any, **params: Any) -> Any:
    """Return V inner V^H as for matrices in full, and -Y V^H with the solutions Y beyond, where A has elements."""
    (w, v), (ct_w, ct_v), pattern = out, ct, params["pattern"]
    if ct_v is None:
        return by_values(ct_w, w, v, data, pattern), None
    v = with_settled(v, w)
    inner = inner_gradient(adjoint(v) @ conj(ct_v) / 2, ct_w, w, False)
    y = conj(solved_beyond(data, w, v, conj(ct_v), params))
    found = conj(apply(sampled_product, v @ inner, conj(v), pattern=pattern))
    return match_dtype(found - hermitian_elements(y, v, pattern), aval_of(data).dtype), None


def jvp_pairs(tangents: Sequence[Any], out: Any, data: Any, _v0: Any, **params: Any) -> Any:
    """Move values by diag(T), and vectors within what was found and beyond."""
    (w, v), moved = out, tangents[0]
    if moved is None:
        return None, None
    change = hermitian_product(moved, v, params["pattern"])
    t = adjoint(v) @ change
    x = solved_beyond(data, w, v, -change, params)
    return diagonal_of(t).real, v @ over_gaps(t, w, strict=True) + x


def differ_in_cluster(g: Any, w: Any) -> Any:
    """Tell which cotangents of sorted eigenvalues differ from the next one of the same eigenvalue."""
    size = np.abs(g)
    limit = np.sqrt(np.finfo(g.dtype).eps) * np.maximum(size[..., 1:], size[..., :-1])
    found = own_ties(w) & (np.abs(g[..., 1:] - g[..., :-1]) > limit)
    return np.concatenate([np.zeros((*found.shape[:-1], 1), bool), found], axis=-1)


equal = refusal("equal_in_clusters", differ_in_cluster, lambda: unequal_error("reverse mode"), "(n),(n)->(n)")


def repeated_error(name: str) -> NumericalError:
    """Return the error about repeated eigenvalues, each differentiated by the equations of its own."""
    needed, action = "eigenvalues that differ are needed to differentiate", "Make a LinearOperator a sparse array"
    if name == "eigs":
        action = "Use functions of the whole matrix, such as expm or det"
    return NumericalError(name, "a repeated eigenvalue", needed, action)


def require_apart(w: Any, name: str) -> Any:
    """Return zeros like eigenvalues that are apart; those that are one are beside each other."""
    return apply(apart, np.arange(aval_of(w).shape[0], dtype=aval_of(w).dtype), w, name=name)


apart = refusal("apart", differ_in_cluster, repeated_error, "(n),(n)->(n)")


def by_values(ct: Any, w: Any, v: Any, data: Any, pattern: StoragePattern) -> Any:
    """Return V diag(g) V^H where A has elements."""
    g = ct + apply(equal, ct, w)
    return match_dtype(conj(apply(sampled_product, v * g, conj(v), pattern=pattern)), aval_of(data).dtype)


def vjp_values(ct: Any, _out: Any, data: Any, v0: Any, **params: Any) -> Any:
    """Return V diag(g) V^H where A has elements."""
    w, v = apply(sparse_eigh, data, v0, **params)
    return by_values(ct, w, v, data, params["pattern"]), None


def jvp_values(tangents: Sequence[Any], _out: Any, data: Any, v0: Any, **params: Any) -> Any:
    """Return the diagonal of V^H dA V, with vectors for which that is diagonal within clusters."""
    if tangents[0] is None:
        return None
    w, v = apply(sparse_eigh, data, v0, **params)
    return along_clusters(adjoint(v) @ hermitian_product(tangents[0], v, params["pattern"]), w)


sparse_eigh: Primitive = opaque(
    "sparse_eigh",
    evaluate_pairs,
    vjp=vjp_pairs,
    jvp=jvp_pairs,
    outputs=2,
    form=PairsForm(True),
    batch=batch_iterative,
)
sparse_eigvalsh: Primitive = opaque(
    "sparse_eigvalsh",
    evaluate_values,
    vjp=vjp_values,
    jvp=jvp_values,
    form=PairsForm(False),
    batch=batch_iterative,
)
