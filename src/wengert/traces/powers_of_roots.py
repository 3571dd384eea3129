"""Powers of roots: where |x| and norms have a kink, their squares are smooth, and so are what is made of these.

The derivative of f(n(x)) by the chain rule goes through that of the root n, which is a choice where n is 0, so that
second derivatives of n(x)**2 would be those of the choice. But d(n**p) = p/2 n**(p - 2) d(n**2), and primitives that
are roots say what their square is (`Primitive.square`). So the derivative of a power, of at least 2, of a root goes
past the root, also where the root was scaled in between: (n / s)**2 is n**2 / s**2 (ADR 0034). Forward mode carries
the tangent of the square beside that of the root; a sweep looks for the root from the power on. In the same way a root
of a power, sqrt(x**4), goes past the power, where the infinite partial of the root would meet one of 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.primitives.cotangent import match_dtype, unbroadcast
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply
from wengert.primitives.arithmetic import multiply, negative
from wengert.traces.nodes import RESULT, Node

FARTHEST = 6
"""Operations that are looked at between a power and its root: in a chain of products each would look at all."""


def square_of(primitive: Primitive, params: Mapping[str, Any]) -> Primitive | None:
    """Return the primitive whose result is the square of another's; None if that is no root."""
    return primitive.square and primitive.square(**params)


def are_same(nodes: Sequence[Any]) -> bool:
    """Tell whether two operands with these nodes are one value."""
    return len(nodes) == 2 and nodes[0] is nodes[1] is not None


def exponent_of(primitive: Primitive, operands: Sequence[Any], same: bool) -> float:
    """Return the power, of at least 2, that operand 0 is raised to; 0 if it is to none, or to one that varies.

    The operand itself is not looked at; `same` if the second is the same value.
    """
    if not primitive.raises:
        return 2.0 if same and primitive is multiply else 0.0
    if len(operands) == 1:
        return 2.0
    literal = operands[1]
    if isinstance(literal, np.ndarray | np.generic) and not literal.ndim and literal.dtype.kind in "iuf":
        literal = literal.item()
    return float(literal) if isinstance(literal, int | float) and literal >= 2 else 0.0


def is_one_power(exponent: float, further: float) -> bool:
    """Tell whether x**further to a power is x to the product, for x of both signs: (x**2)**4.5 is |x|**9."""
    return exponent % 1 == 0 == further % 1


def power_slope(t: Any, exponent: float, root: Any) -> Any:
    """Return what the tangent (or cotangent) t of the square of a root gives for a power of the root."""
    if exponent == 2:
        return t
    return t * (exponent / 2 * root ** (int(exponent - 2) if exponent == int(exponent) else exponent - 2))


def root_slope(t: Any, degree: int, exponent: float, x: Any) -> Any:
    """Return what the tangent (or cotangent) t of x gives for a root, of this degree, of a power of x.

    The square root of x**(2 k) is |x|**k, and the cube root of x**(3 k) is x**k. Between them the slope is a root of a
    lower power: that of sqrt(x**3) is 3/2 sqrt(x), which is infinite at the next order.
    """
    k = int(exponent / degree)
    if exponent % degree:
        lower = exponent - degree
        root = np.sqrt if degree == 2 else np.cbrt
        return t * (exponent / degree * root(x ** (int(lower) if lower == int(lower) else lower)))
    if degree == 2 and k % 2:
        sign = np.sign(x)
        return t * sign if k == 1 else t * (k * np.absolute(x) ** (k - 1) * sign)
    return t if k == 1 else t * (k * x ** (k - 1))


def root_of_power(x: Any, degree: int, exponent: float) -> Any:
    """Return a root, of this degree, of x**exponent, as a power of x or of its size; where x is 0, from above.

    It is None where some slope has a cusp at 0, as that of cbrt(x**5), which is 5/3 cbrt(x**2): the mean of its sides
    is 0, and so is the derivative of the root by its own rule.
    """
    k = exponent / degree
    if k == int(k):
        return (np.absolute(x) if degree == 2 and k % 2 else x) ** int(k)
    if degree == 2 or exponent % 1:  # NaN below 0
        return x**k
    if exponent % degree == 2:
        return None
    size: Any = np.where(x < 0, -x, x) ** k
    return np.where(x < 0, -size, size) if exponent % 2 else size


# Forward mode


def scaled_square(
    primitive: Primitive,
    squares: Sequence[Callable[[], Any] | None],
    tangents: Sequence[Any],
    out: Any,
    operands: Sequence[Any],
    params: Mapping[str, Any],
) -> Any:
    """Return the tangent of the square of a scaled root; None if the operation scales none.

    The squares give, for each operand that is a root, or a scaled one, the tangent of its square.
    """
    known = next((i for i in primitive.scales if squares[i] is not None), None)
    if known is None:
        return None
    square = squares[known]
    assert square is not None
    t = square()
    if t is None:
        return None
    if primitive.kind == "linear":
        return apply(primitive, t, *operands[1:], **params)
    if primitive is negative:
        return t
    step = tangents[1 - known]
    if primitive is multiply:
        root, factor = operands[known], operands[1 - known]
        found = t * factor * factor
        return found if step is None else found + root * root * (2 * factor * step)
    divisor = operands[1]
    found = t / divisor / divisor
    return found if step is None else found - 2 * (out * out / divisor) * step


def squared_result(
    primitive: Primitive, position: int, square: Callable[[], Any], operands: Sequence[Any], params: Mapping[str, Any]
) -> Any:
    """Return the square of a scaled root, the operand at a position, whose own square a function gives."""
    found = square()
    if primitive.kind == "linear":
        return apply(primitive, found, *operands[1:], **params)
    if primitive is negative:
        return found
    factor = operands[1 - position]
    return apply(primitive, apply(primitive, found, factor), factor)


# The sweep


def power_of(node: Node) -> float:
    """Return the power, of at least 2, that operand 0 of a node is raised to; 0 if to none, or to one that varies."""
    parents, primitive = node.inputs, node.primitive
    if primitive is multiply:
        return 2.0 if are_same(parents) else 0.0
    if not primitive.raises or (len(parents) > 1 and parents[1] is not None):
        return 0.0
    return exponent_of(primitive, node.residuals()[1], False)  # a hook may have to give these back


def path_to_root(node: Node | None, is_open: Callable[[Node], bool]) -> list[Node]:
    """Return the nodes from a scaled root to the root that it is a multiple of; none if there is no root.

    A node is open if nobody but the sweep asks for its cotangent.
    """
    waiting: list[tuple[Node | None, list[Node]]] = [(node, [])]
    for _ in range(FARTHEST):
        if not waiting:
            break
        node, path = waiting.pop()
        primitive = None if node is None else node.primitive
        if node is None or primitive is None or not (primitive.square or primitive.scales):
            continue
        if primitive is RESULT or node.released or not is_open(node):
            continue
        parents, path = node.inputs, [*path, node]
        if square_of(primitive, node.params) is not None:
            return path
        if not are_same(parents):  # that is a power
            waiting += [(parents[i], path) for i in reversed(primitive.scales)]
    return []


def scaled_back(
    node: Node, further: Node, ct: Any, residuals: tuple[Any, Sequence[Any]]
) -> tuple[Any, tuple[Node, Any] | None]:
    """Return the cotangent of the square of what was scaled, and that of the factor, with its node, if it has one.

    The scaling is a node, of which the operand `further` is the (scaled) root; `ct` is that of the result's square.
    """
    out, operands = residuals
    primitive, parents = node.primitive, node.inputs
    if primitive.kind == "linear":
        return primitive.vjp(ct, None, operands, [further, *(None for _ in parents[1:])], node.params)[0], None
    if primitive is negative:
        return ct, None
    known = 0 if parents[0] is further else 1
    other, factor = parents[1 - known], operands[1 - known]
    if primitive is multiply:
        found = ct * factor * factor
        beside = None if other is None else ct * (2 * factor) * (operands[known] * operands[known])
    else:
        found = ct / factor / factor
        beside = None if other is None else -(2 * ct * (out * out)) / factor
    back = match_dtype(unbroadcast(found, further.shape), further.dtype)
    return back, None if other is None else (other, unbroadcast(beside, other.shape))
