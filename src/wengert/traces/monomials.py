"""Monomials: what powers, roots, sizes, products and quotients make of a few values.

The derivative of sqrt(x**4) by the chain rule multiplies the infinite partial of a root by that of a power, which is
0, and that of norm(x)**2 goes through the kink of a norm. But both are monomials, products of powers of what they were
made of, and the derivative of a monomial is one, too: p x**(p - 1) times the other factors. So the derivative of an
operation that ends a chain of them goes past the chain, to the values that it begins with (ADR 0034). The square of
some of these, roots of sums of squares, is smooth, and is what they are differentiated by where their power allows.

Every trace tells what made a value, as far as it remembers, by a `ChainStep`; `monomial_of` reads a chain of steps.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from wengert.core.memory.views import current
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_of, is_number, strong
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor, unwrap_plain
from wengert.primitives.arithmetic import divide, multiply, negative
from wengert.primitives.powers import EVEN, HALF, ODD, compose_parity, product_parity, size_power
from wengert.support.records import NamedTuple

LONGEST_CHAIN = 6
"""Operations that are looked at in a chain: in one of products each would look at all."""


class ChainStep(NamedTuple):
    """Hold a step of a chain: an operation as a trace remembers it.

    Attributes:
        primitive, params: the operation.
        operands: the values of its operands, one level below; None for those that nobody saved.
        handles: what stands for its operands in the trace; None for constants.
        out: its result, or None.
        shape: that of the result.
        depth: how many operations of a chain it ends, at least.
    """

    primitive: Primitive
    params: Mapping[str, Any]
    operands: Sequence[Any]
    handles: Sequence[Any]
    out: Any
    shape: tuple[int, ...]
    depth: int = 1


Origin: TypeAlias = Callable[[Any], ChainStep | None]
"""From what stands for a value in a trace to the operation that made it, if it is remembered."""


class Power(NamedTuple):
    """Hold a power: its exponent, and what it is below 0: as above (even), its negative (odd), or nothing (half)."""

    exponent: float
    parity: str


ITSELF = Power(1.0, ODD)


class MonomialFactor(NamedTuple):
    """Hold one factor of a monomial: a power of a value.

    Attributes:
        handle: what stands for the value in the trace; None for a constant.
        value: the value, as it is seen through `views`.
        power: what it is raised to.
        turn: the sign of the other factors of what half a power is of, which its value has, too; None for 1.
        views: the views between the value and the monomial, each with the handles of its operand and of itself.
        operations: how many powers, roots and sizes it has passed.
        rooted: whether one of them was a root or a size.
        norm: whether the value is the root of a square that is smooth.
    """

    handle: Any
    value: Any
    power: Power = ITSELF
    turn: Any = None
    views: tuple[tuple[ChainStep, Any, Any], ...] = ()
    operations: int = 0
    rooted: bool = False
    norm: bool = False

    @property
    def by_square(self) -> bool:
        """Whether it is differentiated by the square of its value."""
        return self.norm and self.power.exponent >= 2


def origin_of(value: Any) -> ChainStep | None:
    """Return the operation that a value of forward or Taylor mode remembers it was made by."""
    found: ChainStep | None = value.origin
    return found


def square_of(primitive: Primitive, params: Mapping[str, Any]) -> Primitive | None:
    """Return the primitive whose result is the square of another's; None if that is no root."""
    return primitive.square and primitive.square(**params)


def is_norm(step: ChainStep | None) -> bool:
    """Tell whether a value was made by a root whose square is smooth."""
    return step is not None and square_of(step.primitive, step.params) is not None


def are_same(nodes: Sequence[Any]) -> bool:
    """Tell whether two operands with these nodes are one value."""
    return len(nodes) == 2 and nodes[0] is nodes[1] is not None


def literal_exponent(operands: Sequence[Any]) -> float | None:
    """Return the exponent of a power, 2 if there is no second operand; None if it is no literal."""
    if len(operands) == 1:
        return 2.0
    literal = unwrap_plain(operands[1])
    if isinstance(literal, np.ndarray | np.generic) and not literal.ndim and literal.dtype.kind in "iuf":
        literal = literal.item()
    return float(literal) if isinstance(literal, int | float) else None


def power_of(primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any], same: bool) -> Power | None:
    """Return what an operation raises operand 0 to; None if it is no power by a literal, root, or size."""
    if primitive is size_power:
        return Power(**params)
    if primitive.degree:
        parity = {1: EVEN, 2: HALF, 3: ODD}[primitive.degree]
        return Power(1 / primitive.degree, parity)
    if not primitive.raises:
        return Power(2.0, EVEN) if same and primitive is multiply else None
    exponent = literal_exponent(operands)
    if exponent is None:
        return None
    return Power(exponent, HALF if exponent % 1 else ODD if exponent % 2 else EVEN)


def may_continue(primitive: Any) -> bool:
    """Tell whether a result of a primitive may be a monomial of its operands."""
    return primitive is not None and bool(primitive.raises or primitive.degree or primitive.square or primitive.scales)


def holds_power(node: Any) -> bool:
    """Tell whether a node of a tape is a power, root or size, or may be a multiple or view of one: a quick look."""
    waiting = [node]
    for _ in range(LONGEST_CHAIN):
        if not waiting:
            return False
        node = waiting.pop()
        primitive = None if node is None else node.primitive
        if primitive is None:
            continue
        if primitive.raises or primitive.degree or primitive.square:
            return True
        if primitive.scales:
            if are_same(node.inputs):
                return True
            waiting += node.inputs
    return bool(waiting)


# Chains of steps


def monomial_of(step: ChainStep, origin: Origin) -> list[MonomialFactor] | None:
    """Return the factors of the monomial that an operation ends a chain of; None if the chain rule does as well.

    It does unless some value has passed two operations, of which one is a root or a size: then partials of these meet
    that are infinite, or those of a kink. `origin` gives the step that made a value, if it is remembered.
    """
    same = are_same(step.handles)
    power = power_of(step.primitive, step.operands, step.params, same)
    if power is None or (len(step.handles) > 1 and not same and step.handles[1] is not None):
        return None
    factors = powers_below(step, power, origin, LONGEST_CHAIN)
    if factors is None or not any(is_past_kink(f) for f in factors):
        return None
    return factors


def is_past_kink(factor: MonomialFactor) -> bool:
    """Tell whether a factor has passed operations that the chain rule does not go through as well."""
    return factor.handle is not None and (factor.by_square or (factor.operations > 1 and factor.rooted))


def powers_below(step: ChainStep, power: Power, origin: Origin, farthest: int) -> list[MonomialFactor] | None:
    """Return the factors of a power, root or size of what it was raised from."""
    handle, value = step.handles[0], step.operands[0]
    if value is None and step.primitive.degree and step.out is not None:
        value = step.out**step.primitive.degree
    known = None if handle is None else origin(handle)
    factors = None if known is None else factors_of(known, handle, origin, farthest - 1)
    if factors is None:
        if value is None or aval_of(value).dtype.kind != "f":
            return None
        factors = [MonomialFactor(handle, value, norm=is_norm(known))]
    rooted = bool(step.primitive.degree or step.primitive is size_power or power.exponent % 1)
    return [raise_factor(factors, i, power, rooted) for i in range(len(factors))]


def raise_factor(factors: Sequence[MonomialFactor], i: int, power: Power, rooted: bool) -> MonomialFactor:
    """Return a factor of the power of a monomial."""
    factor = factors[i]
    exponent, parity = factor.power
    turn = factor.turn
    if power.parity == HALF and parity == ODD:  # what is raised is not negative, so others tell the sign of this one
        for j, other in enumerate(factors):
            if j != i and other.power.parity == ODD:
                sign = np.sign(strong(other.value))
                turn = sign if turn is None else turn * sign
    found = Power(product_of(exponent, power.exponent), compose_parity(power.parity, parity))
    return factor._replace(
        turn=turn,
        power=found,
        operations=factor.operations + 1,
        rooted=factor.rooted or rooted,
    )


def product_of(exponent: float, further: float) -> float:
    """Return a product of exponents; one that is whole but for rounding (3 times 1/3) is whole."""
    product = exponent * further
    whole = round(product)
    return float(whole) if abs(product - whole) <= 1e-15 * abs(product) else product


def factors_of(step: ChainStep, result: Any, origin: Origin, farthest: int) -> list[MonomialFactor] | None:
    """Return the factors of the result of an operation, which has this handle; None if it is better taken as it is."""
    if farthest <= 0:
        return None
    primitive, handles = step.primitive, step.handles
    same = are_same(handles)
    power = power_of(primitive, step.operands, step.params, same)
    if power is not None and (same or len(handles) == 1 or handles[1] is None):
        return powers_below(step, power, origin, farthest)
    if primitive.kind == "linear" and primitive.scales:
        return seen_factors(step, result, origin, farthest)
    if primitive is negative or primitive is multiply or primitive is divide:
        return scaled_factors(step, origin, farthest)
    return None


def factors_below(
    known: ChainStep, handle: Any, value: Any, origin: Origin, farthest: int
) -> list[MonomialFactor] | None:
    """Return the factors of an operand that an operation made, itself if it is a norm; None of others."""
    factors = factors_of(known, handle, origin, farthest - 1)
    if factors is None and is_norm(known):
        value = known.out if value is None else value
        factors = None if value is None else [MonomialFactor(handle, value, norm=True)]
    return factors


def scaled_factors(step: ChainStep, origin: Origin, farthest: int) -> list[MonomialFactor] | None:
    """Return the factors of a product, a quotient or a negative, if one of them is more than a value."""
    found: list[MonomialFactor] = [MonomialFactor(None, -1.0)] if step.primitive is negative else []
    more = False
    for i, (handle, value) in enumerate(zip(step.handles, step.operands, strict=True)):
        known = None if handle is None else origin(handle)
        factors = None if known is None else factors_below(known, handle, value, origin, farthest)
        more = more or factors is not None
        factors = factors or [MonomialFactor(handle, value)]
        if any(f.value is None or aval_of(f.value).dtype.kind not in "biuf" for f in factors):
            return None
        if i and step.primitive is divide:
            factors = [f._replace(power=Power(-f.power.exponent, f.power.parity)) for f in factors]
        found += factors
    return merge_factors(found) if more else None


def merge_factors(factors: Sequence[MonomialFactor]) -> list[MonomialFactor]:
    """Return the factors with powers of one value as one: x**2 * x is x**3; elements of one array are others."""
    found: dict[Any, MonomialFactor] = {}
    for i, factor in enumerate(factors):
        single = factor.handle is None or factor.turn is not None
        key = i if single else (id(factor.handle), tuple(id(view) for _, _, view in factor.views))
        if known := found.get(key):
            parity = product_parity(known.power.parity, factor.power.parity)
            factor = known._replace(
                power=Power(known.power.exponent + factor.power.exponent, parity),
                operations=known.operations + factor.operations,
                rooted=known.rooted or factor.rooted,
            )
        found[key] = factor
    return list(found.values())


def seen_factors(step: ChainStep, result: Any, origin: Origin, farthest: int) -> list[MonomialFactor] | None:
    """Return the factors of a view of a monomial: views of its factors."""
    handle = step.handles[0]
    known = None if handle is None else origin(handle)
    factors = None if known is None else factors_below(known, handle, step.operands[0], origin, farthest)
    if factors is None or known is None:
        return None

    def view_factor(value: Any) -> Any:
        return value if is_number(value) else view_of(step, value, known.shape)

    return [
        f._replace(
            value=view_factor(f.value),
            turn=None if f.turn is None else view_factor(f.turn),
            views=f.views if f.handle is None else (*f.views, (step, handle, result)),
        )
        for f in factors
    ]


def view_of(step: ChainStep, value: Any, shape: tuple[int, ...]) -> Any:
    """Return the view of a value that an operation takes of one of this shape."""
    if np.shape(value) != shape:
        value = np.broadcast_to(value, shape)
    found = unwrap_plain(apply(step.primitive, value, *step.operands[1:], **step.params))
    return current(found) if type(found) is Tensor else found


# Their derivatives


def power_value(x: Any, exponent: float, parity: str) -> Any:
    """Return a power of a value, by an operation that says at every order what it is at 0."""
    if exponent == int(exponent):
        whole = int(exponent)
        if whole == 0 and parity == EVEN:
            return 1.0
        if whole > 0 and parity == (ODD if whole % 2 else EVEN):
            return x if whole == 1 else x**whole
    if aval_of(x).dtype.kind != "f":
        x = strong(x) * 1.0
    found = apply(size_power, strong(x), exponent=exponent, parity=parity)
    return float(found) if is_number(x) else found


def value_of(factor: MonomialFactor) -> Any:
    """Return what a factor contributes: its size, if the others tell its sign."""
    exponent, parity = factor.power
    return power_value(factor.value, exponent, parity if factor.turn is None else EVEN)


def turned_power(factor: MonomialFactor) -> Any:
    """Return the power that a factor is, from the side on which the others let it be."""
    turn, (exponent, parity) = factor.turn, factor.power
    if turn is None:
        return value_of(factor)
    return np.where(turn == 0, value_of(factor), power_value(factor.value * turn, exponent, parity))


def rest_of(factors: Sequence[MonomialFactor], i: int) -> Any:
    """Return the product of all factors but one; None if there are no others."""
    others = [value_of(factor) for j, factor in enumerate(factors) if j != i]
    return functools.reduce(operator.mul, others) if others else None


def slope(t: Any, factors: Sequence[MonomialFactor], i: int, guards: Callable[[Any], Any]) -> Any:
    """Return the tangent (or cotangent) t of a monomial by one of its factors, or by the square of this.

    `guards` gives a primitive with the guards that its rules need.
    """
    factor, rest = factors[i], rest_of(factors, i)
    (exponent, parity), x = factor.power, factor.value
    scale = guards(multiply).rules[0]
    if rest is not None:
        t = scale(t, None, None, rest)
    if factor.by_square:
        return t if exponent == 2 else scale(t, None, None, exponent / 2 * power_value(x, exponent - 2, EVEN))
    if exponent == int(exponent) >= 1 and parity == (ODD if exponent % 2 else EVEN):
        partial = exponent * (x if exponent == 2 else x ** int(exponent - 1))
        found = t if exponent == 1 else scale(t, None, None, partial)
    else:
        turned = x if factor.turn is None else x * factor.turn
        found = guards(size_power).rules[0](t, None, strong(turned), exponent=exponent, parity=parity)
    return found if factor.turn is None else scale(found, None, None, factor.turn)


def is_finite_slope(factor: MonomialFactor) -> bool:
    """Tell whether a slope by a factor is finite where the monomial is."""
    return factor.power.exponent >= 1 or factor.power.exponent == 0
