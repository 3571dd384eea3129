"""Samples of products, contractions and linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.samples.base import Sample, fixed, normal, sample, spaced, uniform
from wengert.core.forms.labels import labelled
from wengert.core.values.dispatch import apply
from wengert.primitives.contractions import contract
from wengert.primitives.indexing.elements import slopes, within
from wengert.primitives.linear_algebra.determinants import cofactors

KNOTS = np.arange(5.0)


def regular(*shape: int) -> np.ndarray:
    """Return matrices far from singular ones."""
    return normal(*shape) + 3 * np.eye(shape[-1])


def contracted(names: tuple[str, ...], result: str) -> Callable[..., Any]:
    """Return the contraction of operands by labels."""
    return lambda *xs: apply(contract, *xs, labels=labelled([np.shape(x) for x in xs], names, result))


MATMUL = [
    ((3,), (3,)),
    ((3,), (3, 2)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((2, 2, 3), (3, 2)),
    ((2, 3), (2, 3, 2)),
    ((2, 2, 3), (2, 3, 2)),
    ((2, 1, 2, 3), (2, 3, 1)),
    ((3,), (2, 3, 2)),
    ((2, 2, 3), (3,)),
    ((0, 3), (3, 2)),
    ((2, 0), (0, 2)),
]
DOT = [((), ()), ((), (3,)), ((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 2)), ((2, 2, 3), (2, 3, 2)), ((2, 0), (0, 3))]
INNER = [((), (3,)), ((3,), (3,)), ((2, 3), (3,)), ((2, 3), (2, 3)), ((2, 2, 3), (2, 3)), ((0, 3), (2, 3))]
PAIRS = [((), ()), ((3,), (2,)), ((2, 3), (2,)), ((0,), (3,))]
KRON = [((), (3,)), ((2,), (3,)), ((2, 3), (2,)), ((2,), (2, 3)), ((2, 1), (1, 3))]
TENSORDOT = [
    ((3,), (2,), 0),
    ((2, 3), (3, 2), 1),
    ((2, 3, 2), (3, 2), 2),
    ((2, 3), (2, 3), (0, 0)),
    ((2, 3, 2), (2, 3, 2), ([0, 1], [2, 1])),
    ((2, 3), (3, 2), ([1, 0], [0, 1])),
    ((2, 3), (3, 2), ([-1], [-2])),
]
EINSUM_ONE = [
    ("i->", (3,)),
    ("ij->i", (2, 3)),
    ("ij->ji", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("iji->j", (2, 3, 2)),
    ("...ij->...ji", (2, 3, 2)),
]
EINSUM_TWO = [
    ("ij,jk", (2, 3), (3, 2)),
    ("ij,jk->ki", (2, 3), (3, 2)),
    ("i,j->ij", (3,), (2,)),
    ("ij,ij->", (2, 3), (2, 3)),
    ("i,i->i", (1,), (3,)),
    ("ij,kj->ik", (2, 3), (1, 3)),
    ("...ij,...jk", (2, 2, 3), (1, 3, 2)),
    ("ii,ij->j", (2, 2), (2, 3)),
    ("ij,k->", (2, 3), (2,)),
    (",ij->j", (), (2, 3)),
    ("ij,j->i", (0, 3), (3,)),
]
EINSUM_MANY = [
    ("ij,jk,kl", (2, 3), (3, 2), (2, 2)),
    ("i,ij,j->", (2,), (2, 3), (3,)),
    ("i,i,i->i", (3,), (1,), (3,)),
    ("ii,jj,ij->i", (2, 2), (3, 3), (2, 3)),
]
CONTRACT = [
    (("ij", "jk"), "ik", (2, 3), (3, 4)),
    (("ij", "jk"), "ki", (2, 3), (3, 4)),
    (("ij", "lj"), "li", (2, 3), (4, 3)),
    (("j", "lj"), "l", (3,), (4, 3)),
    (("ij", "ljk"), "lik", (2, 3), (4, 3, 2)),
    (("sij", "lsjk"), "lsik", (2, 2, 3), (4, 2, 3, 2)),
    (("sij", "sk"), "iks", (2, 2, 3), (2, 2)),
    (("ij", "ik"), "kij", (2, 3), (2, 4)),
    (("iij", "jk"), "kii", (2, 2, 3), (3, 2)),
    (("ii",), "", (3, 3)),
    (("ij",), "jij", (2, 3)),
    (("ij", "j"), "i", (2, 0), (0,)),
    (("i", "ij", "j"), "ij", (2,), (2, 3), (3,)),
]
NORM = [
    ((4,), {}),
    ((2, 3), {}),
    ((2, 3, 2), {}),
    ((2, 3), {"axis": 0}),
    ((2, 3), {"axis": -1, "keepdims": True}),
    ((2, 3), {"axis": (1, 0), "keepdims": True}),
    ((4,), {"ord": 3}),
    ((2, 3), {"ord": 2.5, "axis": 1}),
    ((3,), {"ord": -1}),
    ((2, 3), {"ord": "fro"}),
]
OPERATOR_NORM = [
    ((4,), {"ord": 0}),
    ((4,), {"ord": 1}),
    ((4,), {"ord": np.inf}),
    ((4,), {"ord": -np.inf}),
    ((2, 3), {"ord": 1}),
    ((2, 3), {"ord": -1, "keepdims": True}),
    ((2, 3, 2), {"ord": np.inf, "axis": (2, 0)}),
    ((2, 3), {"ord": -np.inf}),
]
VECTOR_NORM = [
    ((2, 3), {}),
    ((2, 3), {"ord": 3, "axis": 1}),
    ((2, 3, 2), {"axis": (0, 2), "keepdims": True}),
    ((3,), {"ord": 1}),
]
LENGTHS = [(1, 1), (4, 1), (4, 2), (5, 3), (2, 5), (3, 3)]

products: list[Sample] = [
    *(sample("matmul", np.matmul, normal(*a), normal(*b, seed=1)) for a, b in MATMUL),
    sample("matmul", np.matmul, normal(2, 3), normal(2, 3), axes=[(1, 0), (0, 1), (1, 0)]),
    sample("matmul", np.linalg.matmul, normal(2, 3), normal(3, 2)),
    sample("matmul", lambda x, y: x @ y, normal(2, 3), fixed(normal(3, 2))),
    sample("vecdot", np.vecdot, normal(3), normal(3, seed=1)),
    sample("vecdot", np.vecdot, normal(2, 1, 3), normal(2, 3)),
    sample("vecdot", np.vecdot, normal(3, 2), normal(3, 2, seed=1), axis=0, keepdims=True),
    sample("vecdot", np.vecdot, normal(2, 0), normal(2, 0)),
    sample("vecdot", np.linalg.vecdot, normal(3, 2), normal(3, 2, seed=1), axis=0),
    sample("matvec", np.matvec, normal(2, 3), normal(3)),
    sample("matvec", np.matvec, normal(2, 3), normal(2, 2, 3)),
    sample("matvec", np.matvec, normal(2, 2, 3), normal(3)),
    sample("vecmat", np.vecmat, normal(2), normal(2, 3)),
    sample("vecmat", np.vecmat, normal(3, 2), normal(2, 3)),
    sample("vecmat", np.vecmat, normal(2), normal(2, 2, 3)),
    *(sample("dot", np.dot, normal(*a), normal(*b, seed=1)) for a, b in DOT),
    *(sample("inner", np.inner, normal(*a), normal(*b, seed=1)) for a, b in INNER),
    sample("vdot", np.vdot, normal(2, 3), normal(3, 2)),
    sample("vdot", np.vdot, normal(), normal(seed=1)),
    sample("vdot", np.vdot, normal(0), normal(0)),
    *(sample("outer", np.outer, normal(*a), normal(*b, seed=1)) for a, b in PAIRS),
    sample("outer", np.linalg.outer, normal(3), normal(2)),
    *(sample("kron", np.kron, normal(*a), normal(*b, seed=1)) for a, b in KRON),
    *(sample("tensordot", np.tensordot, normal(*a), normal(*b, seed=1), axes=axes) for a, b, axes in TENSORDOT),
    sample("tensordot", np.linalg.tensordot, normal(2, 3), normal(3, 2), axes=1),
    sample("cross", np.cross, normal(3), normal(3, seed=1)),
    sample("cross", np.cross, normal(2, 1, 3), normal(2, 3)),
    sample("cross", np.cross, normal(3, 2), normal(2, 3), axisa=0, axisb=1, axisc=0),
    sample("cross", np.linalg.cross, normal(3, 2), normal(3, 2, seed=1), axis=0),
    sample("dot", lambda *xs: np.linalg.multi_dot(xs), normal(2, 3), normal(3, 2)),
    sample("dot", lambda *xs: np.linalg.multi_dot(xs), normal(2, 3), normal(3, 4), normal(4, 2)),
    sample("dot", lambda *xs: np.linalg.multi_dot(xs), normal(2), normal(2, 3), normal(3, 2), normal(2, seed=1)),
    *(sample("matmul", np.linalg.matrix_power, regular(2, 2), n) for n in (0, 1, 2, 3, 5)),
    *(sample("inv", np.linalg.matrix_power, regular(2, 2, 2), n) for n in (-1, -3)),
]
sums: list[Sample] = [
    *(sample("einsum_one", np.einsum, subscripts, normal(*a)) for subscripts, a in EINSUM_ONE),
    *(sample("einsum", np.einsum, s, normal(*a), normal(*b, seed=1)) for s, a, b in EINSUM_TWO),
    sample("einsum", np.einsum, normal(2, 3), [0, 1], normal(3, 2), [1, 2], [2, 0]),
    sample("einsum", np.einsum, "ij,jk", normal(2, 3), normal(3, 2), optimize=True),
    sample("einsum", np.einsum, "ij,jk->ik", normal(2, 3), normal(3, 2), dtype=np.float64),
    *(sample("einsum", np.einsum, s, *(normal(*a, seed=i) for i, a in enumerate(x))) for s, *x in EINSUM_MANY),
    sample("einsum", np.einsum, "ij,jk,kl", normal(2, 3), normal(3, 2), normal(2, 2), optimize="optimal"),
    *(
        sample("contract", contracted(names, result), *(normal(*a, seed=i) for i, a in enumerate(shapes)))
        for names, result, *shapes in CONTRACT
    ),
]
sequences: list[Sample] = [
    *(
        sample(name, function, normal(n), normal(m, seed=1), mode=mode)
        for name, function in (("convolve", np.convolve), ("correlate", np.correlate))
        for mode in ("full", "same", "valid")
        for n, m in LENGTHS
    ),
    sample("multiply", np.polyval, normal(4), normal(2, 3)),
    sample("multiply", np.polyval, normal(1), normal()),
    sample("interp", np.interp, uniform(-2, 2, 2, 3), spaced(5, seed=3)[np.argsort(spaced(5, seed=3))], normal(5)),
    sample("interp", np.interp, uniform(-9, 9, 4), fixed(np.arange(3.0)), normal(3), left=0.5, right=-1.0),
    sample("interp", np.interp, uniform(-9, 9, 4), fixed(np.arange(3.0)), normal(3), period=4.0),
    sample("interp_at", np.interp, uniform(-2, 4, 2, 3), fixed(np.array([0.0, 1.0, 3.0])), fixed(KNOTS[:3])),
    sample("interp_at", np.interp, uniform(-2, 4, 3), fixed(KNOTS[:1]), fixed(KNOTS[:1])),
    sample("interp_slopes", lambda x: apply(slopes, x, KNOTS, KNOTS**2), uniform(0, 4, 3), order=0),
    sample("within", lambda x: apply(within, x, np.array([-9.0]), 9.0, name="samples"), normal(2, 3)),
    sample("interp", np.interp, normal(), fixed(np.arange(3.0)), normal(3)),
]
algebra: list[Sample] = [
    *(sample("norm", np.linalg.norm, normal(*shape), **options) for shape, options in NORM),
    *(sample("absolute", np.linalg.norm, normal(*shape), **options) for shape, options in OPERATOR_NORM),
    *(sample("norm", np.linalg.vector_norm, spaced(*shape), **options) for shape, options in VECTOR_NORM),
    sample("norm", np.linalg.matrix_norm, normal(2, 3, 2)),
    sample("absolute", np.linalg.matrix_norm, normal(2, 3, 2), ord=1, keepdims=True),
    *(sample("inv", np.linalg.inv, regular(*shape)) for shape in ((1, 1), (3, 3), (2, 2, 2), (0, 0))),
    *(
        sample("solve", np.linalg.solve, regular(*a), normal(*b))
        for a, b in (((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 2, 2), (2, 1)), ((2, 2), (3, 2, 1)), ((2, 2, 2), (2,)))
    ),
    *(sample("det", np.linalg.det, regular(*shape)) for shape in ((1, 1), (3, 3), (2, 2, 2), (0, 0))),
    sample("det", np.linalg.det, np.outer([1.0, 2.0, 3.0], [1.0, 0.5, -1.0]) + np.diag([1.0, 1.0, 0.0])),
    *(sample("cofactors", lambda x: apply(cofactors, x), regular(*shape)) for shape in ((1, 1), (4, 4), (2, 2, 2))),
    sample("cofactors", lambda x, y: apply(cofactors, x, y), regular(3, 3), normal(3, 3)),
    *(sample("slogdet", np.linalg.slogdet, regular(*shape)) for shape in ((3, 3), (2, 2, 2))),
]
SAMPLES = [*products, *sums, *sequences, *algebra]
