"""The operations that `python -m benchmarks operations` measures: a line each.

An operation is a function of a namespace and its operands; those that are differentiated come first. What a library
cannot do it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["OPERATIONS", "Operand", "Operation", "identity"]

Array = np.ndarray[Any, Any]
LARGEST = 100_000


@dataclass(frozen=True)
class Operand:
    """Hold how an operand is made.

    Attributes:
        make: makes the values for a number of elements.
        differentiated: whether they are differentiated; otherwise they are what a user passes as data.
        smallest: the least number of elements there can be; 0 means a 0-d array.
    """

    make: Callable[[np.random.Generator, int], Array]
    differentiated: bool = True
    smallest: int = 10


@dataclass(frozen=True)
class Operation:
    """Hold one operation.

    Attributes:
        name: what is printed.
        function: is given a namespace and the operands.
        operands: those that are differentiated come first.
        largest: the number of elements from which on only the algorithm would be measured.
        differentiable: whether there is anything to differentiate.
        batched: whether `vmap` can do it: shapes must not depend on values.
        steps: of how many operations it consists, each of which may take its time over NumPy.
    """

    name: str
    function: Callable[..., Any]
    operands: tuple[Operand, ...]
    largest: int = LARGEST
    differentiable: bool = True
    batched: bool = True
    steps: int = 1


def identity(_xp: Any, x: Any) -> Any:
    """Do nothing: what is left when a program does this is what the program costs apart from its operation."""
    return x


def plane(size: int) -> tuple[int, int]:
    """Return the shape of a matrix of about a number of elements.

    >>> plane(10), plane(1_000), plane(100_000)
    ((2, 5), (25, 40), (250, 400))
    """
    rows = next(rows for rows in range(int(size**0.5), 0, -1) if size % rows == 0)
    return rows, size // rows


def side(size: int) -> int:
    """Return the rows of a square matrix of at most a number of elements."""
    return int(size**0.5)


def normal(shape: Callable[[int], tuple[int, ...]], smallest: int = 10) -> Operand:
    """Return an operand of normally distributed numbers."""
    return Operand(lambda rng, size: np.asarray(rng.normal(size=shape(size))), smallest=smallest)


def between(low: float, high: float, smallest: int = 0) -> Operand:
    """Return an operand of numbers between two bounds, with one dimension or none."""
    return Operand(
        lambda rng, size: np.asarray(rng.uniform(low, high, size=(size,) if size else ())), smallest=smallest
    )


def data(operand: Operand) -> Operand:
    """Return an operand that is not differentiated: an ndarray, or an array of a library that takes only its own."""
    return Operand(operand.make, differentiated=False, smallest=operand.smallest)


def integers(shape: Callable[[int], tuple[int, ...]], below: Callable[[int], int]) -> Operand:
    """Return an operand of indices."""
    return Operand(lambda rng, size: rng.integers(0, below(size), size=shape(size)), differentiated=False)


def definite(rng: np.random.Generator, size: int) -> Array:
    """Return a positive definite matrix."""
    root = rng.normal(size=(side(size), side(size)))
    return np.asarray(root @ root.T + side(size) * np.eye(side(size)))


x = normal(lambda size: (size,) if size else (), smallest=0)
positive = between(0.5, 2.0)
inside = between(-0.9, 0.9)
factors = between(0.99, 1.01, smallest=10)
vector = normal(lambda size: (size,))
matrix = normal(plane)
other = normal(lambda size: plane(size)[::-1])
row = normal(lambda size: plane(size)[1:])
column = normal(lambda size: (plane(size)[0], 1))
square = normal(lambda size: (side(size), side(size)))
regular = Operand(definite)
inner = normal(lambda size: (size - 2,))
right = normal(lambda size: (side(size),))
pages = normal(lambda size: (2, *plane(size // 2)))
triples = normal(lambda size: (max(size // 3, 1), 3))
mask = Operand(lambda rng, size: np.asarray(rng.uniform(size=(size,) if size else ()) < 0.5), False, smallest=0)
places = integers(lambda size: (size // 2,), lambda size: size)
rows = integers(lambda size: (plane(size)[0],), lambda size: plane(size)[0])
columns = integers(lambda size: (plane(size)[0],), lambda size: plane(size)[1])
order = Operand(lambda rng, size: rng.permutation(size), differentiated=False)


def op(name: str, function: Callable[..., Any], *operands: Operand, **options: Any) -> Operation:
    """Return an operation."""
    return Operation(name, function, operands, **options)


def written(xp: Any, x: Any, index: Any, value: Any) -> Any:
    """Write into a copy."""
    result = xp.copy(x)
    result[index] = value
    return result


def multiplied_in_place(xp: Any, x: Any, y: Any) -> Any:
    """Multiply a copy in place."""
    result = xp.copy(x)
    result *= y
    return result


def added_to_a_part(xp: Any, x: Any, y: Any) -> Any:
    """Add to half of a copy in place."""
    result = xp.copy(x)
    result[::2] += y
    return result


def comparison(name: str, function: Callable[..., Any], *operands: Operand, **options: Any) -> Operation:
    """Return an operation that has no derivative."""
    return Operation(name, function, operands, differentiable=False, **options)


ARITHMETIC = [
    op("x + y", lambda xp, x, y: x + y, x, x),
    op("x * y", lambda xp, x, y: x * y, x, x),
    op("x - ndarray", lambda xp, x, a: x - a, x, data(x)),
    op("x * ndarray", lambda xp, x, a: x * a, x, data(x)),
    op("ndarray * x", lambda xp, x, a: a * x, x, data(x)),
    op("ndarray - x", lambda xp, x, a: a - x, x, data(x)),
    op("x / ndarray", lambda xp, x, a: x / a, x, data(positive)),
    op("ndarray / x", lambda xp, x, a: a / x, positive, data(x)),
    op("x * 2.0", lambda xp, x: x * 2.0, x),
    op("2.0 * x", lambda xp, x: 2.0 * x, x),
    op("1.0 - x", lambda xp, x: 1.0 - x, x),
    op("1.0 / x", lambda xp, x: 1.0 / x, positive),
    op("x + 1", lambda xp, x: x + 1, x),
    op("x / y", lambda xp, x, y: x / y, x, positive),
    op("-x", lambda xp, x: -x, x),
    op("abs(x)", lambda xp, x: abs(x), x),
    op("x ** 2", lambda xp, x: x**2, x),
    op("x ** 3", lambda xp, x: x**3, x),
    op("x ** 0.5", lambda xp, x: x**0.5, positive),
    op("x ** y", lambda xp, x, y: x**y, positive, x),
    op("2.0 ** x", lambda xp, x: 2.0**x, x),
    op("matrix + row", lambda xp, x, y: x + y, matrix, row),
    op("matrix * column", lambda xp, x, y: x * y, matrix, column),
    op("column * row", lambda xp, x, y: x * y, column, row),
]
UFUNCS = [
    op("exp", lambda xp, x: xp.exp(x), x),
    op("log", lambda xp, x: xp.log(x), positive),
    op("sqrt", lambda xp, x: xp.sqrt(x), positive),
    op("sin", lambda xp, x: xp.sin(x), x),
    op("cos", lambda xp, x: xp.cos(x), x),
    op("tan", lambda xp, x: xp.tan(x), inside),
    op("tanh", lambda xp, x: xp.tanh(x), x),
    op("sinh", lambda xp, x: xp.sinh(x), x),
    op("arctan", lambda xp, x: xp.arctan(x), x),
    op("arcsin", lambda xp, x: xp.arcsin(x), inside),
    op("arctanh", lambda xp, x: xp.arctanh(x), inside),
    op("expm1", lambda xp, x: xp.expm1(x), x),
    op("log1p", lambda xp, x: xp.log1p(x), positive),
    op("square", lambda xp, x: xp.square(x), x),
    op("reciprocal", lambda xp, x: xp.reciprocal(x), positive),
    op("absolute", lambda xp, x: xp.absolute(x), x),
    op("maximum", lambda xp, x, y: xp.maximum(x, y), x, x),
    op("minimum", lambda xp, x, a: xp.minimum(x, a), x, data(x)),
    op("arctan2", lambda xp, x, y: xp.arctan2(x, y), x, x),
    op("hypot", lambda xp, x, y: xp.hypot(x, y), x, x),
    op("logaddexp", lambda xp, x, y: xp.logaddexp(x, y), x, x),
    op("multiply", lambda xp, x, y: xp.multiply(x, y), x, x),
    comparison("x > y", lambda xp, x, y: x > y, x, x),
    comparison("x < 0.0", lambda xp, x: x < 0.0, x),
    comparison("floor", lambda xp, x: xp.floor(x), x),
    comparison("isnan", lambda xp, x: xp.isnan(x), x),
]
REDUCTIONS = [
    op("sum", lambda xp, x: xp.sum(x), x),
    op("x.sum()", lambda xp, x: x.sum(), x),
    op("sum, axis 0", lambda xp, x: xp.sum(x, axis=0), matrix),
    op("sum, axis 1", lambda xp, x: xp.sum(x, axis=1), matrix),
    op("sum, axis -1, keepdims", lambda xp, x: xp.sum(x, axis=-1, keepdims=True), matrix),
    op("sum, two axes of three", lambda xp, x: xp.sum(x, axis=(0, 2)), pages),
    op("mean", lambda xp, x: xp.mean(x), x),
    op("x.mean(1)", lambda xp, x: x.mean(1), matrix),
    op("prod", lambda xp, x: xp.prod(x), factors),
    op("max", lambda xp, x: xp.max(x), x),
    op("max, axis 1", lambda xp, x: xp.max(x, axis=1), matrix),
    op("min, axis 0", lambda xp, x: xp.min(x, axis=0), matrix),
    op("var", lambda xp, x: xp.var(x), vector),
    op("std, axis 1", lambda xp, x: xp.std(x, axis=1), matrix),
    op("cumsum", lambda xp, x: xp.cumsum(x, axis=0), vector),
    op("cumprod", lambda xp, x: xp.cumprod(x, axis=0), factors, largest=1_000),
    op("median", lambda xp, x: xp.quantile(x, 0.5), vector),
    comparison("argmax", lambda xp, x: xp.argmax(x), vector),
    comparison("any", lambda xp, x: xp.any(x > 1.0), vector, steps=2),
]
SHAPES = [
    op("reshape", lambda xp, x: xp.reshape(x, (5, -1)), vector),
    op("x.reshape(-1)", lambda xp, x: x.reshape(-1), matrix),
    op("ravel", lambda xp, x: xp.ravel(x), matrix),
    op("x.T", lambda xp, x: x.T, matrix),
    op("transpose", lambda xp, x: xp.transpose(x, (2, 0, 1)), pages),
    op("swapaxes", lambda xp, x: xp.swapaxes(x, 0, 1), matrix),
    op("moveaxis", lambda xp, x: xp.moveaxis(x, 0, -1), pages),
    op("expand_dims", lambda xp, x: xp.expand_dims(x, 0), x),
    op("squeeze", lambda xp, x: xp.squeeze(x), column),
    op("broadcast_to", lambda xp, x: xp.broadcast_to(x, (3, *x.shape)), x),
    op("flip", lambda xp, x: xp.flip(x, 0), vector),
    op("roll", lambda xp, x: xp.roll(x, 3, 0), vector),
    op("repeat", lambda xp, x: xp.repeat(x, 3, 0), vector),
    op("tile", lambda xp, x: xp.tile(x, (2,)), vector),
    op("pad", lambda xp, x: xp.pad(x, 2), vector),
    op("diff", lambda xp, x: xp.diff(x), vector),
    op("tril", lambda xp, x: xp.tril(x), matrix),
    op("diagonal", lambda xp, x: xp.diagonal(x), square),
    op("copy", lambda xp, x: xp.copy(x), x),
    op("astype float32", lambda xp, x: xp.astype(x, xp.float32), x),
]
JOINS = [
    op("concatenate", lambda xp, x, y: xp.concatenate((x, y)), vector, vector),
    op("concatenate, axis 1", lambda xp, x, y: xp.concatenate((x, y), 1), matrix, matrix),
    op("stack", lambda xp, x, y: xp.stack((x, y)), x, x),
    op("stack, axis -1, ndarray", lambda xp, x, a: xp.stack((x, xp.asarray(a)), -1), x, data(x), steps=2),
    op("stack of 4", lambda xp, x, y: xp.stack((x, y, x, y)), x, x),
    op("hstack", lambda xp, x, y: xp.hstack((x, y)), vector, vector),
    op("split", lambda xp, x: xp.split(x, 2)[1], vector),
]
INDEXING = [
    op("x[3]", lambda xp, x: x[3], vector),
    op("x[-1]", lambda xp, x: x[-1], matrix),
    op("x[1, 2]", lambda xp, x: x[1, 2], matrix),
    op("x[1:]", lambda xp, x: x[1:], vector),
    op("x[1:-1]", lambda xp, x: x[1:-1], vector),
    op("x[::2]", lambda xp, x: x[::2], vector),
    op("x[::-1]", lambda xp, x: x[::-1], vector),
    op("x[:, 1]", lambda xp, x: x[:, 1], matrix),
    op("x[1:, :-1]", lambda xp, x: x[1:, :-1], matrix),
    op("x[..., 0]", lambda xp, x: x[..., 0], pages),
    op("x[None]", lambda xp, x: x[None], x),
    op("x[:, None]", lambda xp, x: x[:, None], vector),
    op("x[indices]", lambda xp, x, i: x[i], vector, places),
    op("x[:, indices]", lambda xp, x, i: x[:, i], matrix, columns),
    op("x[rows, columns]", lambda xp, x, i, j: x[i, j], matrix, rows, columns),
    op("x[mask]", lambda xp, x, i: x[i], vector, data(mask), batched=False),
    op("take", lambda xp, x, i: xp.take(x, i, 0), vector, places),
    op("take_along_axis", lambda xp, x, i: xp.take_along_axis(x, i, 0), vector, order),
]
SELECTION = [
    op("where", lambda xp, x, y, m: xp.where(m, x, y), x, x, mask),
    op("where, 0.0", lambda xp, x, m: xp.where(m, x, 0.0), x, mask),
    op("where, x > 0", lambda xp, x: xp.where(x > 0.0, x, 0.1 * x), x, steps=3),
    op("clip", lambda xp, x: xp.clip(x, -1.0, 1.0), x),
    op("sort", lambda xp, x: xp.sort(x), vector),
    op("sort, axis 0", lambda xp, x: xp.sort(x, 0), matrix),
    comparison("argsort", lambda xp, x: xp.argsort(x), vector),
]
PRODUCTS = [
    op("matrix @ matrix", lambda xp, x, y: x @ y, matrix, other),
    op("matrix @ vector", lambda xp, x, y: x @ y, matrix, row),
    op("vector @ vector", lambda xp, x, y: x @ y, vector, vector),
    op("matrix @ ndarray", lambda xp, x, a: x @ a, matrix, data(other)),
    op("ndarray @ vector", lambda xp, x, a: a @ x, row, data(matrix)),
    op("batched matmul", lambda xp, x, y: xp.matmul(x, y), pages, normal(lambda size: (2, *plane(size // 2)[::-1]))),
    op("dot", lambda xp, x, y: xp.dot(x, y), vector, vector),
    op("outer", lambda xp, x, y: xp.outer(x, y), right, right),
    op("inner", lambda xp, x, y: xp.inner(x, y), vector, vector),
    op("tensordot", lambda xp, x, y: xp.tensordot(x, y, 1), matrix, other),
    op("kron", lambda xp, x, y: xp.kron(x, y), square, normal(lambda _size: (2, 2))),
    op("cross", lambda xp, x, y: xp.cross(x, y), triples, triples),
    op("trace", lambda xp, x: xp.trace(x), square),
    op("einsum ij,jk->ik", lambda xp, x, y: xp.einsum("ij,jk->ik", x, y), matrix, other),
    op("einsum ij,ij->i", lambda xp, x, y: xp.einsum("ij,ij->i", x, y), matrix, matrix),
    op("einsum ij->ji", lambda xp, x: xp.einsum("ij->ji", x), matrix),
    op("einsum i,j->ij", lambda xp, x, y: xp.einsum("i,j->ij", x, y), right, right),
]
LINEAR_ALGEBRA = [
    op("norm", lambda xp, x: xp.linalg.norm(x), vector),
    op("solve", lambda xp, x, y: xp.linalg.solve(x, y), regular, right, largest=1_000),
    op("inv", lambda xp, x: xp.linalg.inv(x), regular, largest=1_000),
    op("det", lambda xp, x: xp.linalg.det(x), square, largest=1_000),
    op("slogdet", lambda xp, x: xp.linalg.slogdet(x)[1], regular, largest=1_000),
    op("matrix_power", lambda xp, x: xp.linalg.matrix_power(x, 3), square, largest=1_000),
]
STATISTICS = [
    op("cov", lambda xp, x: xp.cov(x), matrix),
    op("corrcoef", lambda xp, x: xp.corrcoef(x), matrix),
    op("trapezoid", lambda xp, x: xp.trapezoid(x), vector),
]
ASSIGNMENT = [
    op("x[1:-1] = y", lambda xp, x, y: written(xp, x, slice(1, -1), y), vector, inner, steps=2),
    op("x[3] = 0.5", lambda xp, x: written(xp, x, 3, 0.5), vector, steps=2),
    op("x[indices] = 0.5", lambda xp, x, i: written(xp, x, i, 0.5), vector, places, steps=2),
    op("x *= y", multiplied_in_place, x, x, steps=2),
    op("x[::2] += y", added_to_a_part, vector, normal(lambda size: (size // 2,)), steps=4),
]
OPERATIONS = [
    *ARITHMETIC,
    *UFUNCS,
    *REDUCTIONS,
    *SHAPES,
    *JOINS,
    *INDEXING,
    *SELECTION,
    *PRODUCTS,
    *LINEAR_ALGEBRA,
    *STATISTICS,
    *ASSIGNMENT,
]
"""All of them; names are unique."""
