"""Colours of patterns: known optima, what is recovered of compressed matrices, and machine code against Python."""

import itertools
import re

import numpy as np
import pytest
from scipy import sparse as sp

from tests.cases import together
from wengert.errors import ShapeError, UsageError
from wengert.sparse import color
from wengert.sparse.coloring import greedy_coloring, native_coloring, vertex_orders
from wengert.sparse.coloring.coloring_methods import Hypergraph, as_pattern, transpose


def stencil(shape, box=False):
    """The pattern of a stencil on a grid: of neighbours along axes, or of all of them."""
    points = np.arange(np.prod(shape)).reshape(shape)
    rows, columns = [], []
    for step in itertools.product((-1, 0, 1), repeat=len(shape)):
        if box or np.abs(step).sum() <= 1:
            here = tuple(slice(max(0, -k), min(m, m - k)) for k, m in zip(step, shape, strict=True))
            there = tuple(slice(max(0, k), min(m, m + k)) for k, m in zip(step, shape, strict=True))
            rows.append(points[here].ravel())
            columns.append(points[there].ravel())
    at = np.concatenate(rows), np.concatenate(columns)
    return sp.csr_array((np.ones(len(at[0])), at), (points.size, points.size))


def band(n, width):
    return sp.diags_array([np.ones(n)] * (2 * width + 1), offsets=range(-width, width + 1), shape=(n, n)).tocsr()


def bordered(inner, full):
    """A pattern with some full rows and columns in front."""
    n = inner.shape[0]
    return sp.block_array([[np.ones((full, full)), np.ones((full, n))], [np.ones((n, full)), inner]]).tocsr()


def scattered(m, n, each, seed):
    rng = np.random.default_rng(seed)
    return sp.csr_array((np.ones(m * each), (np.repeat(np.arange(m), each), rng.integers(0, n, m * each))), (m, n))


def some_values(pattern, symmetric):
    rng = np.random.default_rng(3)
    matrix = sp.csr_array((rng.uniform(1.0, 2.0, pattern.nnz), pattern.indices, pattern.indptr), pattern.shape)
    return (matrix + matrix.T).tocsr() if symmetric else matrix


def require_recovered(coloring, pattern):
    matrix = some_values(pattern, coloring.structure == "symmetric")
    found = coloring.recover(coloring.compress(matrix))
    np.testing.assert_allclose(found.toarray(), matrix.toarray(), rtol=1e-13)
    assert found.nnz == pattern.nnz


OPTIMA = [
    ("band", band(60, 3), 7, 7),
    ("five points", stencil((12, 17)), 5, 5),
    ("five points, a multiple of five wide", stencil((10, 20)), 5, 5),
    ("nine points", stencil((12, 13), box=True), 9, 9),
    ("seven points", stencil((6, 7, 8)), 7, 7),
    ("twenty-seven points", stencil((6, 7, 8), box=True), 27, 27),
    ("blocks", sp.block_diag([np.ones((5, 5))] * 9).tocsr(), 5, 5),
    ("arrow", bordered(sp.eye_array(40), 1), 3, 2),
    ("bordered band", bordered(band(40, 1), 2), 7, 5),
    ("diagonal", sp.eye_array(9).tocsr(), 1, 1),
]


@together("case", OPTIMA)
def test_counts_are_the_known_optima(case):
    _, pattern, general, symmetric = case
    found = color(pattern), color(pattern, "symmetric")
    assert (found[0].count, found[1].count) == (general, symmetric)
    for coloring in found:
        require_recovered(coloring, pattern)


PATTERNS = [
    *(scattered(m, n, each, seed) for seed, (m, n, each) in enumerate([(30, 20, 2), (20, 40, 4), (7, 300, 3)])),
    *(sp.csr_array(shape) for shape in ((0, 0), (0, 3), (4, 0), (3, 4))),
    sp.csr_array(np.ones((1, 1))),
    bordered(sp.csr_array((25, 25)), 1),
    sp.csr_array(np.ones((9, 200))),
]


@together("pattern", PATTERNS)
def test_what_was_compressed_is_recovered_in_every_way(pattern):
    pattern.sum_duplicates()
    for partition, order in itertools.product(("columns", "rows", "both", "auto"), ("auto", *vertex_orders.ORDERS)):
        require_recovered(color(pattern, partition=partition, order=order), pattern)
    if pattern.shape[0] == pattern.shape[1]:
        whole = (pattern + pattern.T + pattern @ pattern.T).tocsr()
        for order in ("auto", *vertex_orders.ORDERS):
            require_recovered(color(whole, "symmetric", order=order), whole)
            require_recovered(color(whole, "symmetric", recovery="substitution", order=order), whole)


def test_machine_code_gives_the_colours_that_python_gives(monkeypatch):
    monkeypatch.setattr("wengert.support.config.NATIVE", True)
    made = native_coloring.functions.__wrapped__()
    assert made is not None
    monkeypatch.setattr(native_coloring, "functions", lambda: made)
    pattern = as_pattern("test", scattered(400, 300, 6, 5))
    wide = as_pattern("test", bordered(scattered(150, 150, 3, 6), 1))
    graph = as_pattern("test", stencil((9, 9), box=True) - sp.eye_array(81))

    def everything():
        for one in (pattern, wide, graph):
            arrays = Hypergraph(one, transpose(one)).arrays
            for name in vertex_orders.ORDERS:
                order = vertex_orders.order_columns(name, *arrays)
                yield order, *greedy_coloring.color_apart(order, *arrays)
        starts, neighbours = graph.indptr.astype(np.int32), graph.indices.astype(np.int32)
        for name in vertex_orders.ORDERS:
            order = vertex_orders.order_columns(name, starts, neighbours, starts, neighbours)
            colours, count = greedy_coloring.color_stars(order, starts, neighbours)
            yield colours, count, greedy_coloring.mark_repeated(starts, neighbours, colours, count)

    compiled = list(everything())
    monkeypatch.setattr(native_coloring, "functions", lambda: None)
    for native, python in zip(compiled, everything(), strict=True):
        for x, y in zip(native, python, strict=True):
            np.testing.assert_array_equal(x, y)


def test_substitution_needs_fewer_colours():
    for pattern, count in ((band(60, 1), 2), (band(60, 3), 4), (stencil((10, 20)), 3), (stencil((5, 6, 7)), 4)):
        coloring = color(pattern, "symmetric", recovery="substitution")
        assert coloring.count == count
        require_recovered(coloring, pattern)


def test_colours_beyond_a_word_of_bits_and_of_long_rows():
    pattern = sp.vstack([np.ones((1, 300)), sp.eye_array(300), scattered(40, 300, 30, 1)]).tocsr()
    pattern.sum_duplicates()
    coloring = color(pattern, partition="columns")
    assert coloring.count == 300
    require_recovered(coloring, pattern)


def test_bad_patterns_and_words_are_refused():
    with pytest.raises(UsageError, match=r"sparse.color: order='first'; 'auto', .* or 'dynamic' is needed\. Pass one"):
        color(np.eye(3), order="first")
    with pytest.raises(UsageError, match=r"sparse.color: partition='rows'; columns get colours where .*\. Leave"):
        color(np.eye(3), "symmetric", partition="rows")
    with pytest.raises(UsageError, match=r"sparse.color: recovery='substitution'; a symmetric structure is needed"):
        color(np.eye(3), recovery="substitution")
    with pytest.raises(ShapeError, match=r"sparse.color: a pattern of 1 axes; a matrix is needed\. Pass an array"):
        color(np.ones(3))
    with pytest.raises(ShapeError, match=r"a pattern with \(0, 2\) and without \(2, 0\); a symmetric one is needed"):
        color(np.array([[1, 0, 1], [0, 1, 0], [0, 0, 1]]), "symmetric")
    with pytest.raises(ShapeError, match=r"a pattern of 2 x 3; a symmetric one is needed"):
        color(np.ones((2, 3)), "symmetric")
    coloring = color(band(6, 1))
    with pytest.raises(ShapeError, match=r"Coloring.compress: a matrix of shape \(3, 6\); the shape of the pattern"):
        coloring.compress(np.ones((3, 6)))
    with pytest.raises(ShapeError, match=r"Coloring.recover: compressed arrays of shapes \(6, 2\); \(6, 3\) is needed"):
        coloring.recover(np.ones((6, 2)))


def test_a_coloring_is_a_picture_in_its_colours():
    pattern = np.tri(7, 7, 1, bool) & ~np.tri(7, 7, -2, bool)
    for coloring in (color(pattern), color(pattern, "symmetric", recovery="substitution")):
        squares = re.findall(r'x="(\d)" y="(\d)" width="1" height="1" fill="hsl\((\d+)', coloring._repr_svg_())
        hues = {(int(y), int(x)): int(hue) for x, y, hue in squares}
        assert set(hues) == set(zip(*(axis.tolist() for axis in np.nonzero(pattern)), strict=True))
        assert len(set(hues.values())) == coloring.count
        if coloring.structure == "general":
            assert all(hue == round(137.5 * coloring.columns[at[1]] % 360) for at, hue in hues.items())
